#include "fleet_request.hpp"

#include "fleet_block.hpp"

namespace uidgen::pg {
namespace {

constexpr size_t longest_text = 1024;

// What is not valid is refused, and what else is in the call is answered.
void refuse_field(Call *call, const char *name, const char *value) {
    refuse(call, core::Refusal::invalid, psprintf("invalid value for \"%s\": %s", name, value));
}

// Members send UTF-8. What this database cannot have is replaced. Refuses a text that is too long.
void take_texts(Call *call) {
    for (const Field &field : request_fields) {
        char *text = field.type == FieldType::text ? core::field_in<char *>(&call->request, field) : nullptr;
        if (text == nullptr)
            continue;
        const size_t length = strlen(text);
        if (length > longest_text)
            return refuse_field(call, field.name, "too long");
        if (GetDatabaseEncoding() == PG_UTF8 && pg_verifymbstr(text, static_cast<int>(length), true))
            continue;
        for (char *c = text; *c != '\0'; c++)
            *c = static_cast<unsigned char>(*c) < 0x80 ? *c : '?';
    }
}

// The grant in hand came with an answer, and the latest answer is this one or a later one. A seal proves the rest,
// unless it is lost. A worker number counts for static alone, a datacenter id in a layout that has the field. Completes
// the request, or refuses it.
void take_generator(Call *call) {
    constexpr int policies = static_cast<int>(lengthof(worker_policy_names));
    FleetRequest &r = call->request;
    core::Request &g = r.generator;
    const core::Layout &layout = r.layout;
    int policy = 0;
    if (core::check(layout) != core::LayoutFault::none)
        return refuse_field(call, "layout", "these widths, tick and epoch make no layout");
    if (r.name == nullptr || r.policy == nullptr)
        return refuse_field(call, r.name == nullptr ? "generator" : "policy", "null");
    while (policy < policies && strcmp(r.policy, worker_policy_names[policy]) != 0)
        policy++;
    if (policy == policies)
        return refuse_field(call, "policy", psprintf("\"%s\"", r.policy));
    call->policy = static_cast<WorkerPolicy>(policy);
    r.preset = r.preset == nullptr ? "custom" : r.preset;
    g.holds = g.held.node != no_node;
    if (!g.holds)
        g.held = {};
    if (layout.datacenter_bits == 0)
        r.datacenter_id = any_datacenter;
    const core::Grant &held = g.held;
    const int64_t least = g.holds ? 1 : 0;
    const int64_t last_tick = core::largest(layout.time_bits);
    const int64_t last_node = core::largest(core::drawn_node_bits(layout));
    const struct {
        const char *name;
        int64_t value;
        int64_t least;
        int64_t most;
    } numbers[] = {{"incarnation", static_cast<int64_t>(g.incarnation), 1, PG_INT64_MAX},
                   {"clock_us", g.clock_us, 0, core::max_instant_us},
                   {"lowest", g.lowest, 0, last_tick},
                   {"length", g.length, 1, PG_INT64_MAX},
                   {"held_node", held.node, 0, last_node},
                   {"held_from", held.from, 0, last_tick + 1},
                   {"held_until", held.until, held.from, last_tick + 1},
                   {"held_membership", static_cast<int64_t>(held.membership), least, PG_INT64_MAX},
                   {"held_term", held.term.number, least, g.holds ? g.seen.term.number : 0},
                   {"held_serial", held.serial, least, PG_INT64_MAX},
                   {"worker_number", call->policy == WorkerPolicy::fixed ? r.worker_number : 0, 0,
                    core::largest(core::drawn_worker_bits(layout))},
                   {"datacenter_id", r.datacenter_id, any_datacenter, core::largest(layout.datacenter_bits)},
                   {"former_node", r.former_node, no_node, last_node},
                   {"former_until", r.former_node == no_node ? 0 : r.former_until, 0, last_tick + 1}};
    for (const auto &n : numbers)
        if (n.value < n.least || n.value > n.most)
            return refuse_field(call, n.name, psprintf(INT64_FORMAT, n.value));
}

// Checks and completes the request, or refuses it.
void take_fields(Call *call) {
    const FleetRequest &r = call->request;
    take_texts(call);
    if (is_refused(*call) || is_hello(r))
        return;
    if (r.database == nullptr)
        refuse_field(call, "database", "null");
    else if (r.generator.incarnation != 0)
        take_generator(call);
    else if (r.count < 0)
        refuse_field(call, "count", psprintf(INT64_FORMAT, r.count));
}

int64_t seal(const FleetState &state, const char *kind, std::initializer_list<int64_t> numbers) {
    uint8 digest[PG_SHA256_DIGEST_LENGTH];
    uint64 bits = 0;
    if (state.key == nullptr)
        ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE), errmsg("the registry has no key for seals"),
                        errhint("Restore the row of uid_secrets.uid_fleet_key, or run "
                                "INSERT INTO uid_secrets.uid_fleet_key DEFAULT VALUES and SELECT uid_fleet_move() on "
                                "each member.")));
    StringInfoData text;
    initStringInfo(&text);
    appendStringInfo(&text, "%s " UINT64_FORMAT, kind, state.view.fleet);
    for (const int64_t number : numbers)
        appendStringInfo(&text, " " INT64_FORMAT, number);
    pg_hmac_ctx *context = pg_hmac_create(PG_SHA256);
    const bool made = context != nullptr &&
                      pg_hmac_init(context, reinterpret_cast<const uint8 *>(state.key), strlen(state.key)) >= 0 &&
                      pg_hmac_update(context, reinterpret_cast<const uint8 *>(text.data), text.len) >= 0 &&
                      pg_hmac_final(context, digest, sizeof(digest)) >= 0;
    pg_hmac_free(context);
    if (!made)
        elog(ERROR, "could not compute an HMAC");
    memcpy(&bits, digest, sizeof(bits));
    return static_cast<int64_t>(pg_ntoh64(bits) >> 1);
}

const char *message_of_ahead(const core::RegistryView &view, const FleetRequest &r) {
    const int64_t claimed = r.former_node == no_node ? r.generator.lowest : Max(r.generator.lowest, r.former_until);
    const int64_t ahead_us = (claimed - core::beginning(r.layout, view, r.generator)) * r.layout.tick_us;
    return psprintf("the generator is too far ahead of the clocks of the fleet, by %.3f s",
                    seconds(ahead_us + view.bound_us));
}

} // namespace

Calls take_calls(const Registry &registry, const bytea *message) {
    Message left = {VARDATA_ANY(message), static_cast<int64_t>(VARSIZE_ANY_EXHDR(message))};
    Calls calls = {static_cast<Call *>(palloc0(sizeof(Call) * most_requests)), 0};
    while (left.bytes > 0 || calls.count == 0) {
        if (calls.count == most_requests || !take_row(&left, request_fields, &calls.calls[calls.count].request))
            ereport(ERROR, (errcode(ERRCODE_INVALID_BINARY_REPRESENTATION), errmsg("invalid requests of a member"),
                            errhint("Update uidgen on the registry, and then on its members.")));
        Call *call = &calls.calls[calls.count++];
        clear_fields(answer_fields, &call->answer);
        if (call->request.protocol != fleet_protocol)
            ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
                            errmsg("protocol version %d of the member is not supported by the registry",
                                   call->request.protocol),
                            errdetail("The registry speaks version %d.", fleet_protocol),
                            errhint("Upgrade the registry first, then the members.")));
        call->login = GetUserNameFromId(registry.role, false);
        take_fields(call);
        open_segment(registry, call);
    }
    return calls;
}

int64_t seal_of_number(const FleetState &state, const char *kind, const core::Term &term, int64_t number) {
    return seal(state, kind, {term.number, term.nonce, number});
}

int64_t seal_of_grant(const FleetState &state, const core::Layout &l, const core::Grant &grant) {
    return seal(state, "grant",
                {l.epoch_us, l.tick_us, l.time_bits, l.datacenter_bits, l.worker_bits, l.sequence_bits,
                 l.sequence_first ? 1 : 0, l.backup ? 1 : 0, grant.node, grant.from, grant.until,
                 static_cast<int64_t>(grant.membership), grant.term.number, grant.term.nonce, grant.serial});
}

bool is_stamp_proven(const FleetState &state, const FleetRequest &r) {
    const core::FleetSeen &seen = r.generator.seen;
    return seen.term.number == 0 || seen.seal == seal_of_number(state, "stamp", seen.term, seen.serial);
}

bool keep_what_is_proven(const FleetState &state, Call *call) {
    FleetRequest *r = &call->request;
    core::Request &g = r->generator;
    const GrantedLast &other = r->other;
    const bool is_held_proven = !g.holds || g.held.seal == seal_of_grant(state, r->layout, g.held);
    if (!is_held_proven || !is_stamp_proven(state, *r))
        g = core::without_proof(r->layout, state.view, g, is_held_proven);
    if (other.granted_us != 0 && other.seal != seal_of_number(state, "last", other.term, other.granted_us)) {
        if (other.term.number >= state.view.first)
            return false;
        r->other = {};
    }
    return is_stamp_proven(state, *r) && (!g.holds || is_held_proven || g.held.term.number < state.view.first);
}

void refuse(Call *call, core::Refusal why, const char *message, const char *hint) {
    const core::RefusalRow &row = core::row_of(why);
    call->answer.given.why = why;
    call->answer.message = message != nullptr ? message : row.message;
    call->answer.hint = hint != nullptr ? hint : row.hint;
}

bool refuse_if_judged(const Registry &registry, Call *call, core::Refusal why) {
    const core::RegistryView &view = registry.state.view;
    const char *message = nullptr;
    const char *hint = nullptr;
    if (why == core::Refusal::none)
        return false;
    if (why == core::Refusal::ahead)
        message = message_of_ahead(view, call->request);
    if (why == core::Refusal::starting) {
        const bool is_endable = view.serial_at_start != core::endable_by_none;
        message = is_endable ? "the registry has started, and no member whose grant lasts has called yet"
                             : "the registry has started, and its synchronous standby may have been the registry since";
        hint = psprintf("Wait %suntil %s. If no other server can be the registry, run SELECT "
                        "uid_fleet_fence(cancel => true) on it.",
                        is_endable ? "for one, or " : "", instant(core::wait_end_us(view)));
    }
    if (why == core::Refusal::fenced) {
        message = "the registry may have lost grants and accepts no newcomer yet";
        hint = psprintf("Try again after %s.", instant(core::fence_end_us(view)));
    }
    refuse(call, why, message, hint);
    return true;
}

core::Refusal reason_for_all(const Registry &registry) {
    if (registry.unclaimed != nullptr)
        return core::Refusal::unclaimed;
    if (core::is_closed(registry.state.view))
        return core::Refusal::handing_over;
    if (registry.state.synchronous && !standbys_are_awaited())
        return core::Refusal::no_standby;
    return core::judge_server(registry.state.view, {});
}

} // namespace uidgen::pg
