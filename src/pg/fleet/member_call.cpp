#include "member_call.hpp"

#include "registry_call.hpp"
#include "base/faults.hpp"
#include "base/time_source.hpp"

namespace uidgen::pg {
namespace {

constexpr int64_t longest_retry_ms = INT64_C(24) * 3600 * 1000;

void put_former(CallParameters *p, const core::Ask &ask) {
    StringInfoData list;
    initStringInfo(&list);
    appendStringInfoChar(&list, '{');
    for (uint32_t i = 0; i < ask.former_count; i++)
        appendStringInfo(&list, "%s" UINT64_FORMAT, i > 0 ? "," : "", ask.former[i]);
    appendStringInfoChar(&list, '}');
    put(p, list.data);
}

void put_ask(CallParameters *p, const core::Ask &ask) {
    put(p, fleet_protocol);
    put(p, ask.incarnation);
    put_former(p, ask);
    put(p, ask.fleet);
    put(p, ask.term);
    put(p, ask.serial);
    put(p, ask.seal);
    put_if(p, ask.holds, ask.held.node);
    put_if(p, ask.holds, ask.held.from);
    put_if(p, ask.holds, ask.held.until);
    put_if(p, ask.holds, static_cast<int64_t>(ask.held.line));
    put_if(p, ask.holds, ask.held.term);
    put_if(p, ask.holds, ask.held.serial);
    put_if(p, ask.holds, ask.held.seal);
    put(p, ask.clock_us);
    put(p, ask.lowest);
    put(p, ask.length);
}

void put_layout(CallParameters *p, const core::Layout &layout) {
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
void put_order(CallParameters *p, const GrantOrder &order, const core::Ask &ask) {
    const bool joins = !ask.holds && order.former_node >= 0;
    put(p, policy_name(order.policy));
    put_if(p, order.policy == WorkerPolicy::fixed, order.worker_number);
    put_if(p, order.datacenter_id >= 0, order.datacenter_id);
    put_if(p, joins, order.former_node);
    put_if(p, joins, order.former_until);
}

void put_server(CallParameters *p, const GrantOrder &order) {
    put_address(p);
    put(p, static_cast<int64_t>(GetSystemIdentifier()));
    put(p, static_cast<int64_t>(GetWALInsertionTimeLine()));
    put_name(p, order.database);
    put_name(p, order.generator);
    put(p, UIDGEN_VERSION);
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
    const bool complete = answer_number(result, "node", &grant->node) &&
                          answer_number(result, "granted_from", &grant->from) &&
                          answer_number(result, "granted_until", &grant->until) &&
                          answer_number(result, "line", &line) && answer_number(result, "held_seal", &grant->seal);
    grant->line = static_cast<uint64_t>(line);
    return complete;
}

bool read_stamp(const PGresult *result, core::Answer *answer) {
    int64_t fleet = 0;
    const bool complete =
        answer_number(result, "fleet", &fleet) && answer_number(result, "term", &answer->grant.term) &&
        answer_number(result, "serial", &answer->grant.serial) && answer_number(result, "seal", &answer->seal);
    answer->fleet = static_cast<uint64_t>(fleet);
    return complete && fleet > 0;
}

// What no registry answers. A grant outside the layout would give ids that other generators have, too.
bool is_valid(const FleetReply &reply, const core::Layout &layout) {
    constexpr int64_t latest_us = PG_INT64_MAX / 2;
    const core::Grant &grant = reply.answer.grant;
    const bool may_be_read = reply.registry_clock_us > 0 && reply.registry_clock_us <= latest_us && grant.term >= 0 &&
                             grant.term <= core::largest_term && reply.retry_after_us >= 0;
    if (fault_is(Fault::any_answer))
        return true;
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
    answer.why = refusal_of(answer_text(result, "refusal"));
    if (!read_stamp(result, &answer) || !answer_number(result, "registry_clock_us", &reply->registry_clock_us))
        return false;
    if (answer.why == core::Refusal::none)
        return read_grant(result, &answer.grant);
    int64_t retry_after_ms = 0;
    set_refusal(&reply->error, result, answer_text(result, "refusal"));
    if (answer_number(result, "retry_after_ms", &retry_after_ms))
        reply->retry_after_us = Min(Max(retry_after_ms, -1), longest_retry_ms) * us_per_ms;
    return true;
}

} // namespace

bool member_call(const Member &member, const core::Ask &ask, FleetReply *reply) {
    CallParameters p = {};
    *reply = {};
    put_ask(&p, ask);
    put_name(&p, member.order.preset);
    put_layout(&p, member.order.layout);
    put_order(&p, member.order, ask);
    put_server(&p, member.order);
    PGresult *result = call_registry("uid_fleet_call", p, &reply->error);
    if (result == nullptr)
        return false;
    const bool complete = read_reply(result, ask, reply);
    PQclear(result);
    if (!complete)
        set_incomplete(&reply->error);
    else if (is_valid(*reply, member.order.layout))
        return true;
    else
        set_not_a_registry(&reply->error);
    reply->retry_after_us = 0;
    return false;
}

GrantError reply_error(const FleetReply &reply, const core::FleetSeen &seen, int64_t lowest) {
    GrantError error = reply.error;
    if (error.at_us != 0)
        return error;
    if (seen.fleet != 0 && reply.answer.fleet != seen.fleet)
        set_error(&error, "the registry belongs to another fleet",
                  "Correct uidgen.registry, or run SELECT uid_fleet_move() on this server to move it to that fleet.");
    else if (reply.answer.grant.term < seen.term)
        set_error(&error, "the registry has lost answers that this server has seen",
                  "Check that uidgen.registry names the current primary server of the registry.");
    else if (reply.answer.grant.until <= lowest)
        set_error(&error, "the registry granted only ticks that this server has passed",
                  "Compare the clocks of this server and of the registry. The view uid_registry_status shows by how "
                  "much they differ.");
    return error;
}

} // namespace uidgen::pg
