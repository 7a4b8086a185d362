#include "member_call.hpp"

#include <unistd.h>

#include "connection.hpp"
#include "base/time_source.hpp"

namespace uidgen::pg {
namespace {

constexpr int64_t longest_retry_ms = INT64_C(24) * 3600 * 1000;

// The values of the call's parameters, in order. Null: SQL's NULL.
struct Parameters {
    const char *values[40];
    int count;
};

void put(Parameters *p, const char *value) {
    Assert(p->count < static_cast<int>(lengthof(p->values)));
    p->values[p->count++] = value;
}

void put(Parameters *p, int64_t value) { put(p, psprintf(INT64_FORMAT, value)); }
void put(Parameters *p, uint64_t value) { put(p, static_cast<int64_t>(value)); } // positive as bigint
void put(Parameters *p, int32_t value) { put(p, static_cast<int64_t>(value)); }
void put(Parameters *p, bool value) { put(p, value ? "t" : "f"); }

void put_if(Parameters *p, bool known, int64_t value) {
    if (known)
        put(p, value);
    else
        put(p, static_cast<const char *>(nullptr));
}

// Names are in the encoding of a database that this process knows nothing of.
void put_name(Parameters *p, const char *name) {
    const int length = static_cast<int>(strlen(name));
    char *copy = pstrdup(name);
    if (!connection_takes_utf8() || pg_encoding_verifymbstr(PG_UTF8, name, length) != length)
        for (char *c = copy; *c != '\0'; c++)
            *c = static_cast<unsigned char>(*c) < 0x80 ? *c : '?';
    put(p, copy);
}

void put_former(Parameters *p, const core::Ask &ask) {
    StringInfoData list;
    initStringInfo(&list);
    appendStringInfoChar(&list, '{');
    for (uint32_t i = 0; i < ask.former_count; i++)
        appendStringInfo(&list, "%s" UINT64_FORMAT, i > 0 ? "," : "", ask.former[i]);
    appendStringInfoChar(&list, '}');
    put(p, list.data);
}

void put_ask(Parameters *p, const core::Ask &ask) {
    put(p, fleet_protocol);
    put(p, ask.incarnation);
    put_former(p, ask);
    put(p, ask.fleet);
    put(p, ask.term);
    put(p, ask.serial);
    put_if(p, ask.holds, ask.held.node);
    put_if(p, ask.holds, ask.held.from);
    put_if(p, ask.holds, ask.held.until);
    put_if(p, ask.holds, static_cast<int64_t>(ask.held.line));
    put_if(p, ask.holds, ask.held.term);
    put_if(p, ask.holds, ask.held.serial);
    put(p, ask.clock_us);
    put(p, ask.lowest);
    put(p, ask.length);
}

void put_layout(Parameters *p, const core::Layout &layout) {
    put(p, layout.epoch_us);
    put(p, layout.tick_us);
    put(p, layout.time_bits);
    put(p, layout.datacenter_bits);
    put(p, layout.worker_bits);
    put(p, layout.sequence_bits);
    put(p, layout.sequence_first);
    put(p, layout.backup);
}

const char *policy_name(WorkerPolicy policy) {
    switch (policy) {
    case WorkerPolicy::disposable:
        return "disposable";
    case WorkerPolicy::sticky:
        return "sticky";
    case WorkerPolicy::fixed:
        break;
    }
    return "static";
}

// A generator that joins names the node that it drew with so far.
void put_order(Parameters *p, const GrantOrder &order, const core::Ask &ask) {
    const bool joins = !ask.holds && order.former_node >= 0;
    put(p, policy_name(order.policy));
    put_if(p, order.policy == WorkerPolicy::fixed, order.worker_number);
    put_if(p, order.datacenter_id >= 0, order.datacenter_id);
    put_if(p, joins, order.former_node);
    put_if(p, joins, order.former_until);
}

void put_server(Parameters *p, const GrantOrder &order) {
    char host[256] = "";
    (void)gethostname(host, sizeof(host) - 1);
    put_name(p, host);
    put(p, PostPortNumber);
    put(p, static_cast<int64_t>(GetSystemIdentifier()));
    put(p, static_cast<int64_t>(GetWALInsertionTimeLine()));
    put_name(p, order.database);
    put_name(p, order.generator);
    put(p, UIDGEN_VERSION);
}

const char *statement(int count) {
    StringInfoData text;
    initStringInfo(&text);
    appendStringInfo(&text, "SELECT * FROM %s.uid_fleet_call(", connection_schema());
    for (int i = 1; i <= count; i++)
        appendStringInfo(&text, "%s$%d", i > 1 ? ", " : "", i);
    appendStringInfoChar(&text, ')');
    return text.data;
}

// ---------------------------------------------------------------------------------------------------------
// The answer. Columns go by their names, so that a later registry may add some.
// ---------------------------------------------------------------------------------------------------------

// Null: SQL's NULL, or there is no such column.
const char *text_of(const PGresult *result, const char *column) {
    const int field = PQfnumber(result, column);
    return field >= 0 && PQgetisnull(result, 0, field) == 0 ? PQgetvalue(result, 0, field) : nullptr;
}

bool number_of(const PGresult *result, const char *column, int64_t *number) {
    const char *text = text_of(result, column);
    char *end = nullptr;
    errno = 0;
    *number = text != nullptr ? strtoll(text, &end, 10) : 0;
    return text != nullptr && end != text && *end == '\0' && errno == 0;
}

// A refusal has no grant. What the member does is the same for all that are not named here.
core::Refusal refusal_of(const char *name) {
    if (name == nullptr)
        return core::Refusal::none;
    if (strcmp(name, "superseded") == 0)
        return core::Refusal::superseded;
    if (strcmp(name, "ahead") == 0)
        return core::Refusal::ahead;
    return strcmp(name, "other_fleet") == 0 ? core::Refusal::other_fleet : core::Refusal::fenced;
}

bool read_grant(const PGresult *result, core::Grant *grant) {
    int64_t line = 0;
    const bool complete = number_of(result, "node", &grant->node) && number_of(result, "granted_from", &grant->from) &&
                          number_of(result, "granted_until", &grant->until) && number_of(result, "line", &line);
    grant->line = static_cast<uint64_t>(line);
    return complete;
}

bool read_stamp(const PGresult *result, core::Answer *answer) {
    int64_t fleet = 0;
    const bool complete = number_of(result, "fleet", &fleet) && number_of(result, "term", &answer->grant.term) &&
                          number_of(result, "serial", &answer->grant.serial);
    answer->fleet = static_cast<uint64_t>(fleet);
    return complete && fleet > 0;
}

// What no registry answers. A grant outside the layout would give ids that other generators have, too.
bool is_valid(const FleetReply &reply, const core::Layout &layout) {
    constexpr int64_t latest_us = PG_INT64_MAX / 2;
    constexpr int64_t last_term = INT64_C(1) << 53;
    const core::Grant &grant = reply.answer.grant;
    const bool may_be_read = reply.registry_clock_us > 0 && reply.registry_clock_us <= latest_us && grant.term >= 0 &&
                             grant.term <= last_term;
    if (!may_be_read || reply.answer.why != core::Refusal::none)
        return may_be_read;
    return grant.node >= 0 && grant.node <= core::largest(core::drawn_node_bits(layout)) && grant.from >= 0 &&
           grant.from < grant.until && grant.until <= core::largest(layout.time_bits) + 1 &&
           static_cast<int64_t>(grant.line) > 0 && grant.term > 0 && grant.serial > 0;
}

bool read_reply(const PGresult *result, const core::Ask &ask, FleetReply *reply) {
    if (PQntuples(result) != 1)
        return false;
    core::Answer &answer = reply->answer;
    answer.incarnation = ask.incarnation;
    answer.why = refusal_of(text_of(result, "refusal"));
    if (!read_stamp(result, &answer) || !number_of(result, "registry_clock_us", &reply->registry_clock_us))
        return false;
    if (answer.why == core::Refusal::none)
        return read_grant(result, &answer.grant);
    const char *message = text_of(result, "message");
    const char *hint = text_of(result, "hint");
    int64_t retry_after_ms = 0;
    set_error(&reply->error, message != nullptr ? message : text_of(result, "refusal"), hint != nullptr ? hint : "");
    if (number_of(result, "retry_after_ms", &retry_after_ms))
        reply->retry_after_us = Min(Max(retry_after_ms, 0), longest_retry_ms) * us_per_ms;
    return true;
}

} // namespace

bool member_call(const Member &member, const core::Ask &ask, FleetReply *reply) {
    Parameters p = {};
    *reply = {};
    put_ask(&p, ask);
    put_name(&p, member.order.preset);
    put_layout(&p, member.order.layout);
    put_order(&p, member.order, ask);
    put_server(&p, member.order);
    PGresult *result = connection_query(statement(p.count), p.count, p.values, &reply->error);
    if (result == nullptr)
        return false;
    const bool complete = read_reply(result, ask, reply);
    PQclear(result);
    if (!complete)
        set_error(&reply->error, "the registry's answer is incomplete",
                  "Update uidgen on the registry before its members.");
    else if (is_valid(*reply, member.order.layout))
        return true;
    else
        set_error(&reply->error, "the registry's answer is not valid",
                  "Check that the setting uidgen.registry names a registry.");
    reply->retry_after_us = 0;
    return false;
}

GrantError reply_error(const FleetReply &reply, const core::FleetSeen &seen) {
    GrantError error = reply.error;
    if (error.at_us != 0)
        return error;
    if (seen.fleet != 0 && reply.answer.fleet != seen.fleet)
        set_error(&error, "the registry belongs to another fleet",
                  "Correct uidgen.registry, or run SELECT uid_fleet_move() on this server to move it to that fleet.");
    else if (reply.answer.grant.term < seen.term)
        set_error(&error, "the registry has lost answers that this server has seen",
                  "Check that uidgen.registry names the present primary server of the registry.");
    return error;
}

} // namespace uidgen::pg
