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

// What is not valid is refused, and what else is in the call is answered.
bool refuse_field(Call *call, const char *name, const char *value) {
    return refuse(&call->answer, "invalid", psprintf("invalid value for \"%s\": %s", name, value),
                  "Update uidgen on the registry, and then on this server.");
}

template <size_t n> bool refuse_numbers(Call *call, const Bounds (&all)[n]) {
    for (const Bounds &b : all)
        if (b.value < b.least || b.value > b.most)
            return refuse_field(call, b.name, psprintf(INT64_FORMAT, b.value));
    return false;
}

// Members send UTF-8. What this database cannot have is replaced.
const char *own_text(const char *text) {
    const auto length = static_cast<int>(strlen(text));
    if (GetDatabaseEncoding() == PG_UTF8 && pg_verifymbstr(text, length, true))
        return text;
    char *copy = pstrdup(text);
    for (char *c = copy; *c != '\0'; c++)
        *c = static_cast<unsigned char>(*c) < 0x80 ? *c : '?';
    return copy;
}

bool refuse_texts(Call *call) {
    FleetRequest &r = call->request;
    const struct {
        const char *name;
        const char **text;
    } texts[] = {{"host", &r.host},      {"port", &r.port},     {"database", &r.database}, {"version", &r.version},
                 {"generator", &r.name}, {"preset", &r.preset}, {"policy", &r.policy},     {"segment", &r.segment}};
    for (const auto &t : texts) {
        if (*t.text == nullptr)
            continue;
        if (strlen(*t.text) > longest_text)
            return refuse_field(call, t.name, "too long");
        *t.text = own_text(*t.text);
    }
    return false;
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
bool refuse_held(Call *call) {
    core::Request *request = &call->request.generator;
    const core::Layout &layout = call->request.layout;
    const core::Grant &held = request->held;
    const int64_t end = core::largest(layout.time_bits) + 1;
    request->holds = held.node != no_node;
    if (!request->holds) {
        request->held = {};
        return false;
    }
    return refuse_numbers(call, {{"held_node", held.node, 0, core::largest(core::drawn_node_bits(layout))},
                                 {"held_from", held.from, 0, end},
                                 {"held_until", held.until, held.from, end},
                                 {"held_membership", static_cast<int64_t>(held.membership), 1, PG_INT64_MAX},
                                 {"held_term", held.term.number, 1, request->seen.term.number},
                                 {"held_serial", held.serial, 1, PG_INT64_MAX}});
}

bool refuse_former(Call *call) {
    const core::Former &former = call->request.generator.former;
    for (uint32_t i = 0; i < former.count; i++)
        if (static_cast<int64_t>(former.incarnations[i]) <= 0)
            return refuse_field(call, "former", "not all values are positive");
    return false;
}

bool refuse_policy(Call *call) {
    const char *name = call->request.policy;
    for (int i = 0; i < static_cast<int>(lengthof(worker_policy_names)); i++)
        if (name != nullptr && strcmp(name, worker_policy_names[i]) == 0) {
            call->policy = static_cast<WorkerPolicy>(i);
            return false;
        }
    return refuse_field(call, "policy", name == nullptr ? "null" : psprintf("\"%s\"", name));
}

// A worker number counts for static alone, a datacenter id in a layout that has the field.
bool refuse_wish(Call *call) {
    FleetRequest &r = call->request;
    const core::Layout &layout = r.layout;
    const int64_t last_node = core::largest(core::drawn_node_bits(layout));
    if (layout.datacenter_bits == 0)
        r.datacenter_id = any_datacenter;
    return refuse_numbers(
        call,
        {{"worker_number", call->policy == WorkerPolicy::fixed ? r.worker_number : 0, 0,
          core::largest(core::drawn_worker_bits(layout))},
         {"datacenter_id", r.datacenter_id, any_datacenter, core::largest(layout.datacenter_bits)},
         {"former_node", r.former_node, no_node, last_node},
         {"former_until", r.former_node == no_node ? 0 : r.former_until, 0, core::largest(layout.time_bits) + 1}});
}

bool refuse_fields_of_generator(Call *call) {
    FleetRequest &r = call->request;
    const core::Request &g = r.generator;
    if (core::check(r.layout) != core::LayoutFault::none)
        return refuse_field(call, "layout", "these widths, tick and epoch make no layout");
    if (r.name == nullptr || r.database == nullptr)
        return refuse_field(call, r.name == nullptr ? "generator" : "database", "null");
    r.preset = r.preset == nullptr ? "custom" : r.preset;
    return refuse_numbers(call, {{"incarnation", static_cast<int64_t>(g.incarnation), 1, PG_INT64_MAX},
                                 {"clock_us", g.clock_us, 0, core::max_instant_us},
                                 {"lowest", g.lowest, 0, core::largest(r.layout.time_bits)},
                                 {"length", g.length, 1, PG_INT64_MAX}}) ||
           refuse_held(call) || refuse_former(call) || refuse_policy(call) || refuse_wish(call);
}

bool refuse_fields_of_segment(Call *call) {
    if (call->request.database == nullptr)
        return refuse_field(call, "database", "null");
    return refuse_numbers(call, {{"count", call->request.count, 0, PG_INT64_MAX}});
}

bool refuse_fields(Call *call) {
    if (refuse_texts(call))
        return true;
    if (call->request.generator.incarnation != 0)
        return refuse_fields_of_generator(call);
    return call->request.segment != nullptr && refuse_fields_of_segment(call);
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

Calls read_calls(FunctionCallInfo fcinfo) {
    if (PG_ARGISNULL(0))
        ereport(ERROR, (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED), errmsg("requests must not be null")));
    const bytea *message = PG_GETARG_BYTEA_PP(0);
    Message left = {VARDATA_ANY(message), VARSIZE_ANY_EXHDR(message)};
    Calls calls = {static_cast<Call *>(palloc0(sizeof(Call) * most_requests)), 0};
    while (left.bytes > 0 || calls.count == 0) {
        if (calls.count == most_requests || !take_row(&left, request_fields, &calls.calls[calls.count].request))
            ereport(ERROR, (errcode(ERRCODE_INVALID_BINARY_REPRESENTATION), errmsg("invalid requests of a member"),
                            errhint("Update uidgen on the registry, and then on its members.")));
        Call *call = &calls.calls[calls.count++];
        clear_fields(answer_fields, &call->answer);
        check_server(call->request);
        (void)refuse_fields(call);
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
