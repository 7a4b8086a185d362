#include "fleet_call.hpp"

namespace uidgen::pg {
namespace {

constexpr size_t longest_text = 1024;

struct Bounds {
    const char *name;
    int64_t value;
    int64_t least;
    int64_t most;
};

template <size_t n> void check(const Bounds (&all)[n]) {
    for (const Bounds &b : all)
        if (b.value < b.least || b.value > b.most)
            report_field(b.name, psprintf(INT64_FORMAT, b.value));
}

void check_texts(const FleetRequest &r) {
    const char *const texts[][2] = {{"host", r.host},       {"port", r.port},      {"database", r.database},
                                    {"version", r.version}, {"generator", r.name}, {"preset", r.preset},
                                    {"policy", r.policy},   {"segment", r.segment}};
    for (const auto &text : texts)
        if (text[1] != nullptr && strlen(text[1]) > longest_text)
            report_field(text[0], "too long");
}

void check_server(const FleetRequest &r) {
    if (r.protocol != fleet_protocol)
        ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
                        errmsg("protocol version %d of the member is not supported by the registry", r.protocol),
                        errdetail("The registry speaks version %d.", fleet_protocol),
                        errhint("Upgrade the registry first, then the members.")));
}

// The grant came with an answer, and the latest answer is this one or a later one. A seal proves the rest, unless it is
// lost.
void check_held(core::Request *request, const core::Layout &layout) {
    const core::Grant &held = request->held;
    const int64_t end = core::largest(layout.time_bits) + 1;
    request->holds = held.node != no_node;
    if (!request->holds) {
        request->held = {};
        return;
    }
    check({{"held_node", held.node, 0, core::largest(core::drawn_node_bits(layout))},
           {"held_from", held.from, 0, end},
           {"held_until", held.until, held.from, end},
           {"held_membership", static_cast<int64_t>(held.membership), 1, PG_INT64_MAX},
           {"held_term", held.term.number, 1, request->seen.term.number},
           {"held_serial", held.serial, 1, PG_INT64_MAX}});
}

WorkerPolicy policy_of(const char *name) {
    for (int i = 0; i < static_cast<int>(lengthof(worker_policy_names)); i++)
        if (name != nullptr && strcmp(name, worker_policy_names[i]) == 0)
            return static_cast<WorkerPolicy>(i);
    report_field("policy", name == nullptr ? "null" : psprintf("\"%s\"", name));
}

// A worker number counts for static alone, a datacenter id in a layout that has the field.
void check_wish(FleetRequest *r, WorkerPolicy policy) {
    const core::Layout &layout = r->layout;
    const int64_t last_node = core::largest(core::drawn_node_bits(layout));
    if (layout.datacenter_bits == 0)
        r->datacenter_id = any_datacenter;
    check({{"worker_number", policy == WorkerPolicy::fixed ? r->worker_number : 0, 0,
            core::largest(core::drawn_worker_bits(layout))},
           {"datacenter_id", r->datacenter_id, any_datacenter, core::largest(layout.datacenter_bits)},
           {"former_node", r->former_node, no_node, last_node},
           {"former_until", r->former_node == no_node ? 0 : r->former_until, 0, core::largest(layout.time_bits) + 1}});
}

void check_generator(Call *call) {
    FleetRequest &r = call->request;
    core::Request &g = r.generator;
    if (core::check(r.layout) != core::LayoutFault::none)
        report_field("layout", "these widths, tick and epoch make no layout");
    if (r.name == nullptr || r.database == nullptr)
        report_field(r.name == nullptr ? "generator" : "database", "null");
    check({{"incarnation", static_cast<int64_t>(g.incarnation), 1, PG_INT64_MAX},
           {"clock_us", g.clock_us, 0, core::max_instant_us},
           {"lowest", g.lowest, 0, core::largest(r.layout.time_bits)},
           {"length", g.length, 1, PG_INT64_MAX}});
    check_held(&g, r.layout);
    call->policy = policy_of(r.policy);
    check_wish(&r, call->policy);
    r.preset = r.preset == nullptr ? "custom" : r.preset;
}

void check_segment(const FleetRequest &r) {
    check({{"count", r.count, 0, PG_INT64_MAX}});
    if (r.database == nullptr)
        report_field("database", "null");
}

int64_t hash(const FleetState &state, const char *text) {
    uint8 digest[PG_SHA256_DIGEST_LENGTH];
    uint64 bits = 0;
    if (state.key == nullptr)
        ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE), errmsg("the registry has no key for seals"),
                        errhint("Restore the row of uid_secrets.uid_fleet_key, or run "
                                "INSERT INTO uid_secrets.uid_fleet_key DEFAULT VALUES and SELECT uid_fleet_move() on "
                                "each member.")));
    pg_hmac_ctx *context = pg_hmac_create(PG_SHA256);
    const bool made = context != nullptr &&
                      pg_hmac_init(context, reinterpret_cast<const uint8 *>(state.key), strlen(state.key)) >= 0 &&
                      pg_hmac_update(context, reinterpret_cast<const uint8 *>(text), strlen(text)) >= 0 &&
                      pg_hmac_final(context, digest, sizeof(digest)) >= 0;
    pg_hmac_free(context);
    if (!made)
        elog(ERROR, "could not compute an HMAC");
    memcpy(&bits, digest, sizeof(bits));
    return static_cast<int64_t>(pg_ntoh64(bits) >> 1);
}

template <size_t n> int64_t seal(const FleetState &state, const char *kind, const int64_t (&numbers)[n]) {
    StringInfoData text;
    initStringInfo(&text);
    appendStringInfo(&text, "%s " UINT64_FORMAT, kind, state.view.fleet);
    for (const int64_t number : numbers)
        appendStringInfo(&text, " " INT64_FORMAT, number);
    return hash(state, text.data);
}

} // namespace

void read_call(FunctionCallInfo fcinfo, Call *call) {
    if (PG_ARGISNULL(0))
        ereport(ERROR, (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED), errmsg("request must not be null")));
    HeapTupleHeader row = PG_GETARG_HEAPTUPLEHEADER(0);
    HeapTupleData tuple = {};
    tuple.t_len = HeapTupleHeaderGetDatumLength(row);
    tuple.t_data = row;
    TupleDesc desc = lookup_rowtype_tupdesc(HeapTupleHeaderGetTypeId(row), HeapTupleHeaderGetTypMod(row));
    read_fields(request_fields, &call->request, &tuple, desc);
    ReleaseTupleDesc(desc);
    check_server(call->request);
    check_texts(call->request);
    if (call->request.generator.incarnation != 0)
        check_generator(call);
    else if (call->request.segment != nullptr)
        check_segment(call->request);
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

bool is_proven(const FleetState &state, Call *call) {
    const core::RegistryView &view = state.view;
    FleetRequest *r = &call->request;
    core::Request &g = r->generator;
    const bool is_held_lost = g.holds && g.held.term.number < state.first_term;
    call->claims_unseen = is_held_lost;
    if (g.seen.term.number < state.first_term)
        g.seen = {g.seen.fleet, {}, 0, 0};
    if (r->other.term.number < state.first_term)
        r->other = {};
    if (is_held_lost) {
        g.held.until = Min(g.held.until, core::fence_tick(r->layout, view)); // no grant that was lost reaches beyond
        if (view.now_us >= core::fence_end_us(view) || g.held.from >= g.held.until)
            g = core::without_held(g);
    }
    return (g.seen.term.number == 0 || g.seen.seal == seal_of_number(state, "stamp", g.seen.term, g.seen.serial)) &&
           (!g.holds || is_held_lost || g.held.seal == seal_of_grant(state, r->layout, g.held)) &&
           (r->other.granted_us == 0 ||
            r->other.seal == seal_of_number(state, "last", r->other.term, r->other.granted_us));
}

} // namespace uidgen::pg
