#include "message.hpp"

#include <algorithm>
#include <iterator>

#include "node/worker_node.hpp"

namespace uidgen::pg {
namespace {

constexpr char hello[] = "SELECT h.fleet, h.term, h.longest, h.clock, "
                         "pg_catalog.set_config('default_transaction_isolation', 'read committed', false), "
                         "pg_catalog.set_config('application_name', $3, false) FROM uid_registry.hello($1, $2) AS h";

// The name of the connections tells this server's calls from those of others with its login.
constexpr char hello_that_ends_calls[] =
    "SELECT h.fleet, h.term, h.longest, h.clock, "
    "pg_catalog.set_config('default_transaction_isolation', 'read committed', false), "
    "pg_catalog.set_config('application_name', $3, false), "
    "(SELECT pg_catalog.count(pg_catalog.pg_cancel_backend(a.pid)) FROM pg_catalog.pg_stat_activity AS a "
    "WHERE a.usename = session_user AND a.application_name = $3 AND a.pid <> pg_catalog.pg_backend_pid()) "
    "FROM uid_registry.hello($1, $2) AS h";

constexpr char grant_call[] = "SELECT request, why, node, since, until, taken, term, detail "
                              "FROM uid_registry.grant($1, $2, $3)";

constexpr char block_call[] = "SELECT why, first, given, increment, term, detail "
                              "FROM uid_registry.block($1, $2, $3, $4, $5)";

// In the current memory context.
const char *number_text(int64_t number) { return psprintf(INT64_FORMAT, number); }

// ---------------------------------------------------------------------------------------------------------
// Requests
// ---------------------------------------------------------------------------------------------------------

// Appends a key to the JSON object that is being written.
void put_json_key(StringInfo into, const char *key) {
    const char last = into->data[into->len - 1];
    appendStringInfo(into, "%s\"%s\":", last == '{' ? "" : ",", key);
}

void put_json(StringInfo into, const char *key, int64_t number) {
    put_json_key(into, key);
    appendStringInfo(into, INT64_FORMAT, number);
}

// Puts a text in UTF-8. One that is not, a name in the encoding of another database, it changes in place.
void put_json(StringInfo into, const char *key, char *text) {
    if (pg_encoding_verifymbstr(PG_UTF8, text, static_cast<int>(strlen(text))) != static_cast<int>(strlen(text)))
        for (char *c = text; *c != '\0'; c++)
            *c = static_cast<unsigned char>(*c) < 0x80 ? *c : '?';
    put_json_key(into, key);
    escape_json(into, text);
}

// For the registry: layouts with equal widths could give equal ids.
char *widths_of(const core::Layout &layout) {
    return psprintf("%d/%d/%d, tick %lld us%s", layout.time_bits, core::node_bits(layout), layout.sequence_bits,
                    static_cast<long long>(layout.tick_us), layout.sequence_first ? ", sequence first" : "");
}

// Who holds a node, as the registry's administrator reads it: host, port, database, generator.
char *holder_of(const GrantRequest &request) {
    const ServerAddress address = address_of_server();
    return psprintf("%s:%s, database %s, generator %s, preset %s, uidgen %s", address.host, address.port,
                    request.database, request.generator, request.preset, UIDGEN_VERSION);
}

// How long a grant is asked for, by the request and uidgen.registry_lease.
int64_t length_asked_us(const GrantRequest &request) {
    constexpr int64_t longest_us = 100 * us_per_day; // a registry has no longer ones
    const int64_t asked_us = settings::registry_lease_ms > 0 ? settings::registry_lease_ms * us_per_ms : longest_us;
    return Max(asked_us, request.least_length * request.layout.tick_us);
}

// Appends the request for one member, which is prepared, as a JSON object.
void put_request(StringInfo into, const Member &member) {
    const GrantRequest &request = member.request;
    const core::Holding &holding = member.holding;
    const core::NodeRange range = node_range_of(request);
    const int64_t preferred = holding.holds ? holding.grant.node : request.former_node;
    appendStringInfo(into, "%s{", into->len > 1 ? "," : "");
    put_json(into, "layout", pstrdup(layout_text(request.layout)));
    put_json(into, "widths", widths_of(request.layout));
    put_json_key(into, "own_pool");
    appendStringInfoString(into, request.own_pool ? "true" : "false");
    put_json(into, "lowest", range.lowest);
    put_json(into, "highest", range.highest);
    put_json(into, "new_token", holding.new_token);
    put_json(into, "earliest", holding.earliest);
    put_json(into, "length", length_asked_us(request));
    put_json(into, "holder", holder_of(request));
    if (!core::calls_as_newcomer(holding)) {
        put_json(into, "node", holding.grant.node);
        put_json(into, "since", holding.grant.since);
        put_json(into, "until", holding.grant.until);
        put_json(into, "token", holding.grant.token);
    } else if (preferred >= 0) {
        put_json(into, "prefer", preferred);
    }
    appendStringInfoChar(into, '}');
}

// ---------------------------------------------------------------------------------------------------------
// Answers
// ---------------------------------------------------------------------------------------------------------

// libpq's rows, as core parses them.
struct Rows {
    const PGresult *rows;

    int count() const { return PQntuples(rows); }
    int columns() const { return PQnfields(rows); }
    const char *text(int row, int column) const {
        return PQgetisnull(rows, row, column) != 0 ? nullptr : PQgetvalue(rows, row, column);
    }
};

} // namespace

Statement make_hello(const core::FleetSeen &seen, bool ends_calls) {
    const uint64 name = core::mix(server_state->salt);
    return {
        .sql = ends_calls ? hello_that_ends_calls : hello,
        .count = 3,
        .types = {INT8OID, INT8OID, TEXTOID},
        .values = {number_text(seen.fleet), number_text(seen.term), psprintf("uidgen registrar " UINT64_FORMAT, name)}};
}

bool read_hello(const PGresult *rows, core::Hello *hello) { return core::parse_hello(Rows{rows}, hello); }

Statement make_grant_call(const core::FleetSeen &seen, const Member *const *members, int count) {
    StringInfoData requests;
    initStringInfo(&requests);
    appendStringInfoChar(&requests, '[');
    for (int i = 0; i < count; i++)
        put_request(&requests, *members[i]);
    appendStringInfoChar(&requests, ']');
    return {.sql = grant_call,
            .count = 3,
            .types = {INT8OID, INT8OID, JSONBOID},
            .values = {number_text(seen.fleet), number_text(seen.term), requests.data}};
}

bool read_grant_answer(const PGresult *rows, int index, int64_t fleet, core::GrantAnswer *answer) {
    return core::parse_grant_answer(Rows{rows}, index, fleet, answer);
}

// A member that has no value yet shows none.
Statement make_block_call(const core::FleetSeen &seen, const AskedBlock &asked) {
    return {.sql = block_call,
            .count = 5,
            .types = {INT8OID, INT8OID, TEXTOID, INT8OID, INT8OID},
            .values = {number_text(asked.ask.fleet != 0 ? static_cast<int64_t>(asked.ask.fleet) : seen.fleet),
                       number_text(seen.term), pstrdup(asked.registry_name), number_text(asked.ask.count),
                       asked.ask.shown >= 0 ? number_text(asked.ask.shown) : nullptr}};
}

bool read_block_reply(const PGresult *rows, int64_t fleet, core::BlockReply *reply) {
    return core::parse_block_reply(Rows{rows}, fleet, reply);
}

core::NodeRange node_range_of(const GrantRequest &request) {
    const bool is_given = request.policy == WorkerPolicy::fixed;
    return core::node_range(request.layout, request.datacenter_id, is_given ? request.worker_number : -1);
}

namespace {

// What an administrator reads of a refusal, and does about it.
struct RefusalText {
    core::Why why;
    const char *message;
    const char *hint;
};
constexpr RefusalText refusals[] = {
    {core::Why::ahead, "no grant reaches the time that is needed",
     "Correct the clock of this server or of the registry. If the clock was ahead when ids were drawn, or the epoch of "
     "the generator is, wait until then."},
    {core::Why::fenced, "the registry may have lost grants, and gives no other nodes until those have ended",
     "Wait. Or, if no commit of the registry was lost, run SELECT uid_registry.nothing_was_lost() there."},
    {core::Why::none_free, "no node is free",
     "Wait until one is. If this happens again, use a layout with more datacenter and worker bits, another "
     "worker_number, or a shorter uidgen.registry_lease."},
    {core::Why::lost, "the registry does not know the grant of this generator", ""},
    {core::Why::taken, "another server continues with the node of this generator",
     "If this server or its volume was cloned, stop the clone."},
    {core::Why::range, "the node is not one that this generator may have", ""},
    {core::Why::outdated, "only a former registry of this server's fleet answers", "Start the present registry."},
    {core::Why::other_fleet, "the registry belongs to another fleet",
     "Correct uidgen.registry, or run SELECT uid_fleet_move() on this server to move it to that fleet."},
    {core::Why::layout_differs, "generators of this fleet have the same widths, but another epoch or split",
     "Create the generator with own_pool => true if its preset has an epoch of its own. Otherwise use their layout."},
    {core::Why::malformed, "the registry does not accept the request",
     "Install the uidgen_registry.sql of this version of uidgen."},
    {core::Why::not_kept, "the registry may have lost values of this segment, or may lose them",
     "SELECT * FROM uid_registry.status on the registry shows which segments are closed."},
    {core::Why::no_segment, "the registry has no segment of this name",
     "INSERT it INTO uid_registry.segment there, with a next_value above all values in use."},
    {core::Why::values_lost, "the registry has lost values of this segment",
     "Raise next_value of the segment in uid_registry.segment above all values that were given."},
    {core::Why::used_up, "the segment of the registry is used up", "Raise its max_value in uid_registry.segment."},
    {core::Why::unknown, "the registry refuses", "Update uidgen on this server."},
    {core::Why::shortened, "the registry of this fleet was made anew with shorter grants",
     "Make it again with the former longest grant, which uid_registry_status shows. Or run SELECT uid_fleet_move() on "
     "this server."},
    {core::Why::too_short, "the longest grant of the fleet is shorter than two ticks of the layout",
     "Use a layout with shorter ticks."},
};

// The text of a refusal in the table `refusals`.
const RefusalText &refusal_text(core::Why why) {
    return *std::find_if(std::begin(refusals), std::end(refusals) - 1,
                         [why](const RefusalText &text) { return text.why == why; });
}

} // namespace

GrantError refusal_error(core::Why why, const core::AnswerNotes &notes) {
    const RefusalText &text = refusal_text(why);
    const bool has_detail = notes.detail != nullptr && notes.detail[0] != '\0';
    const char *message = text.message;
    if (notes.until_us > 0)
        message = psprintf("%s (until %s)", message, instant_text(notes.until_us));
    if (has_detail)
        message = psprintf("%s: %s", message, notes.detail);
    GrantError error = make_error(message, text.hint, why);
    error.until_us = notes.until_us;
    return error;
}

} // namespace uidgen::pg
