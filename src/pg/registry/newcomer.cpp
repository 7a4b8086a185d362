#include "newcomer.hpp"

#include "base/identity.hpp"

namespace uidgen::pg {
namespace {

NodeRange nodes_of_datacenter(const Call &call, int64_t datacenter) {
    const int32_t bits = core::drawn_worker_bits(call.request.layout);
    return {call.pool, datacenter << bits, (datacenter << bits) + core::largest(bits)};
}

// All nodes of the pool, or of the datacenter id that the request names.
NodeRange nodes_for(const Call &call) {
    const FleetRequest &r = call.request;
    return r.datacenter_id == any_datacenter ? all_nodes(call.pool, r.layout)
                                             : nodes_of_datacenter(call, r.datacenter_id);
}

// A node that was never used, if it is near a random one; then the one whose grant ended first. The last ones that were
// never used may be far.
bool find_disposable(NodeRange range, int64_t from, NodeRecord *found) {
    const int64_t start = range.first + (random_number() & (range.last - range.first)); // a power of two of nodes
    return find_unused_node({range.pool, start, Min(start + 7, range.last)}, found) ||
           read_oldest_node(range, from, found) || find_unused_node({range.pool, start, range.last}, found) ||
           find_unused_node(range, found);
}

// What this session last counted of a login's nodes, with grants that last. Thousands are not counted again for each
// newcomer: each serial since then is an answer to one request, which gives a login a node, and at most another one
// that it drew with before. In a later term, or if the clock is set back, they are counted again.
struct Counted {
    core::Term term;
    int64_t tick;
    NodeRange range; // nodes_for() the newcomer
    char login[NAMEDATALEN];
    int64_t serial; // when they were counted
    int64_t own_of_pool;
    int64_t own;           // in that range; 0: the rest does not count
    int64_t logins_serial; // when these were counted
    int64_t logins;
};

Counted counted = {};

bool is_of(const Counted &c, const core::RegistryView &view, const NodeRange &range, const char *login, int64_t now) {
    return c.own > 0 && c.term == view.term && c.serial <= view.own_serial && c.tick <= now &&
           c.range.pool == range.pool && c.range.first == range.first && c.range.last == range.last &&
           strcmp(c.login, login) == 0;
}

Counted count(const Call &call, const core::RegistryView &view, const NodeRange &range, int64_t now) {
    const NodeRange all = all_nodes(range.pool, call.request.layout);
    const bool are_all = range.first == all.first && range.last == all.last;
    Counted c = {view.term, now, range, {}, view.own_serial, 0, 0, view.own_serial, 0};
    strlcpy(c.login, call.login, sizeof(c.login));
    c.own = count_nodes_of(call.login, range, now);
    c.own_of_pool = are_all ? c.own : count_nodes_of(call.login, all, now);
    c.logins = c.own > 0 ? count_logins(range, now) : 0;
    return c;
}

// Whether the login may have as many nodes by now as any may have; or as its share is.
bool may_have_most(const Counted &c, int64_t serial) {
    return c.own_of_pool + 2 * (serial - c.serial) >= core::most_nodes;
}
bool may_have_share(const Counted &c, int64_t serial) {
    return core::is_full_share(c.range.last - c.range.first + 1, c.own + 2 * (serial - c.serial),
                               c.logins + serial - c.logins_serial);
}

// Whether the caller's login may not have another node.
bool exceeds_quota(const Registry &registry, const Call &call) {
    const core::RegistryView &view = registry.state.view;
    const int64_t serial = view.own_serial;
    const NodeRange range = nodes_for(call);
    const int64_t nodes = range.last - range.first + 1;
    const int64_t now = core::tick_at(call.request.layout, view.now_us);
    const int64_t next = serial + 1; // this request may have given it a node already
    const bool is_counted = is_of(counted, view, range, call.login, now) && !may_have_most(counted, next);
    if (is_counted && may_have_share(counted, next)) {
        counted.logins = count_logins(range, now);
        counted.logins_serial = next;
    }
    if (is_counted && !may_have_share(counted, next))
        return false;
    counted = count(call, view, range, now);
    return may_have_most(counted, serial) ||
           (may_have_share(counted, serial) && core::are_few_left(nodes, count_nodes(range, now, nodes)));
}

bool have_same_nodes(const Call *a, const Call &b) {
    return a != nullptr && a->pool == b.pool && a->request.datacenter_id == b.request.datacenter_id;
}

// Whether there was no node for an earlier newcomer of this call, which looked where this one would.
bool is_known_full(const Registry &registry, const Call *full, const Call &call) {
    const auto begins = [&registry](const Call &c) {
        return core::beginning(c.request.layout, registry.state.view, c.request.generator);
    };
    return have_same_nodes(full, call) && call.policy != WorkerPolicy::fixed && begins(call) <= begins(*full);
}

void refuse_none_free(Call *call) {
    const FleetRequest &request = call->request;
    const NodeRange range = nodes_for(*call);
    const char *of_datacenter =
        request.datacenter_id == any_datacenter ? "" : psprintf(" with datacenter id %d", request.datacenter_id);
    NodeRecord first;
    (void)read_oldest_node(range, PG_INT64_MAX, &first);
    refuse(
        call, core::Refusal::none_free,
        psprintf("all " INT64_FORMAT " nodes%s of the layout are in use", range.last - range.first + 1, of_datacenter),
        psprintf("The first grant ends at %s, unless its holder renews it. Use a layout with more datacenter and "
                 "worker bits, or stop a generator: its node is free when its grant has ended.",
                 instant(core::start_of(request.layout, first.row.until))));
}

} // namespace

void admit_newcomer(const Registry &registry, const Call **full, Call *call) {
    const FleetRequest &r = call->request;
    NodeRecord node;
    if (is_known_full(registry, *full, *call))
        return refuse(call, (*full)->answer.given.why, (*full)->answer.message, (*full)->answer.hint);
    const bool exceeds = exceeds_quota(registry, *call);
    if (!exceeds && find_node(registry, *call, &node))
        return grant(registry, call, core::granted(r.layout, registry.state.view, r.generator, node.row));
    if (!exceeds && call->policy == WorkerPolicy::fixed)
        return refuse(call, core::Refusal::node_taken,
                      psprintf("worker number %d is in use until %s", r.worker_number,
                               instant(core::start_of(r.layout, node.row.until))));
    *full = call;
    if (exceeds)
        refuse(call, core::Refusal::too_many_nodes);
    else if (registry.state.view.ended_by_us != 0)
        (void)refuse_if_judged(registry, call, core::Refusal::starting); // others may be free when the wait is over
    else
        refuse_none_free(call);
}

void note_use_before(const Registry &registry, const Call &call) {
    const FleetRequest &r = call.request;
    NodeRecord record;
    if (exceeds_quota(registry, call))
        return;
    (void)read_node(call.pool, r.former_node, &record);
    const int64_t until = record.row.until;
    record.row = core::used_before(r.layout, registry.state.view, r.generator, record.row, r.former_until);
    record.login = call.login;
    if (record.row.until != until)
        put_node(record);
}

bool find_node(const Registry &registry, const Call &call, NodeRecord *found) {
    const FleetRequest &r = call.request;
    const NodeRange range = nodes_for(call);
    const auto is_free = [&] { return core::is_free(r.layout, registry.state.view, r.generator, found->row); };
    if (call.policy == WorkerPolicy::fixed) {
        (void)read_node(call.pool, nodes_of_datacenter(call, Max(r.datacenter_id, 0)).first + r.worker_number, found);
        return is_free();
    }
    if (call.policy == WorkerPolicy::sticky && read_sticky_node(call.pool, r, call.login, found) &&
        found->row.node >= range.first && found->row.node <= range.last && is_free())
        return true;
    const int64_t from =
        fault_is("forget_until") ? PG_INT64_MAX : core::free_from(r.layout, registry.state.view, r.generator);
    return find_disposable(range, from, found);
}

// What a caller says of itself is bounded before it is stored: a holder draws no further ahead of its clock than a
// grant lasts, and a clock that is off by more than a day is just wrong.
void put_member(const Registry &registry, const Call &call, const core::NodeRow &row) {
    const FleetRequest &r = call.request;
    const core::RegistryView &view = registry.state.view;
    const int64_t offset_us = std::clamp(r.generator.clock_us - view.now_us, -us_per_day, us_per_day);
    const int64_t length = Min(r.generator.length, 2 * core::longest_ticks(r.layout, view));
    put_node({call.pool, row, r.host, r.port, r.database, r.name, r.version, r.policy, call.login, offset_us, length,
              view.now_us});
}

void grant(const Registry &registry, Call *call, const core::NodeRow &row) {
    core::Grant *given = &call->answer.given.grant;
    *given = {row.node, row.from, row.until, row.membership, row.term, row.serial};
    given->seal = seal_of_grant(registry.state, call->request.layout, *given);
    put_member(registry, *call, row);
}

} // namespace uidgen::pg
