#include "message.hpp"

namespace uidgen::pg {
namespace {

#define ASK(member, name, none) UIDGEN_FIELD(FleetRequest, member, name, none)
constexpr Field of_request[] = {ASK(protocol, "protocol", required),
                                ASK(generator.seen.fleet, "fleet", 0),
                                ASK(generator.seen.term.number, "term", 0),
                                ASK(generator.seen.term.nonce, "term_nonce", 0),
                                ASK(generator.seen.serial, "serial", 0),
                                ASK(generator.seen.seal, "seal", 0),
                                ASK(other.granted_us, "other_granted_us", 0),
                                ASK(other.term.number, "other_term", 0),
                                ASK(other.term.nonce, "other_term_nonce", 0),
                                ASK(other.seal, "other_seal", 0),
                                ASK(host, "host", required),
                                ASK(port, "port", required),
                                ASK(database, "database", 0),
                                ASK(version, "version", required),
                                ASK(generator.incarnation, "incarnation", 0),
                                ASK(generator.former, "former", 0),
                                ASK(generator.held.node, "held_node", no_node),
                                ASK(generator.held.from, "held_from", -1),
                                ASK(generator.held.until, "held_until", -1),
                                ASK(generator.held.membership, "held_membership", 0),
                                ASK(generator.held.term.number, "held_term", 0),
                                ASK(generator.held.term.nonce, "held_term_nonce", 0),
                                ASK(generator.held.serial, "held_serial", 0),
                                ASK(generator.held.seal, "held_seal", 0),
                                ASK(generator.clock_us, "clock_us", -1),
                                ASK(generator.lowest, "lowest", -1),
                                ASK(generator.length, "length", 0),
                                ASK(name, "generator", 0),
                                ASK(preset, "preset", 0),
                                ASK(layout.epoch_us, "layout_epoch_us", -1),
                                ASK(layout.tick_us, "tick_us", 0),
                                ASK(layout.time_bits, "time_bits", -1),
                                ASK(layout.datacenter_bits, "datacenter_bits", -1),
                                ASK(layout.worker_bits, "worker_bits", -1),
                                ASK(layout.sequence_bits, "sequence_bits", -1),
                                ASK(layout.sequence_first, "sequence_first", 0),
                                ASK(layout.backup, "backup_worker", 0),
                                ASK(own_pool, "own_pool", 0),
                                ASK(policy, "policy", 0),
                                ASK(worker_number, "worker_number", no_worker),
                                ASK(datacenter_id, "datacenter_id", any_datacenter),
                                ASK(former_node, "former_node", no_node),
                                ASK(former_until, "former_until", -1),
                                ASK(segment, "segment", 0),
                                ASK(count, "count", 0),
                                ASK(shown, "shown", 0),
                                ASK(increment, "increment", 0)};

#define ANSWER(member, name, none) UIDGEN_FIELD(FleetAnswer, member, name, none)
constexpr Field of_answer[] = {ANSWER(given.fleet, "fleet", required),
                               ANSWER(given.grant.term.number, "term", required),
                               ANSWER(given.grant.term.nonce, "term_nonce", required),
                               ANSWER(given.grant.serial, "serial", required),
                               ANSWER(given.seal, "seal", required),
                               ANSWER(refusal, "refusal", 0),
                               ANSWER(message, "message", 0),
                               ANSWER(hint, "hint", 0),
                               ANSWER(clock_us, "clock_us", required),
                               ANSWER(server, "server", required),
                               ANSWER(is_open, "is_open", required),
                               ANSWER(awaits_member, "awaits_member", required),
                               ANSWER(longest_us, "longest_us", required),
                               ANSWER(granted_last.granted_us, "granted_last_us", 0),
                               ANSWER(granted_last.seal, "granted_last_seal", 0),
                               ANSWER(given.grant.node, "node", no_node),
                               ANSWER(given.grant.from, "granted_from", -1),
                               ANSWER(given.grant.until, "granted_until", -1),
                               ANSWER(given.grant.membership, "membership", 0),
                               ANSWER(given.grant.seal, "held_seal", 0),
                               ANSWER(first, "first", no_value),
                               ANSWER(count, "count", no_block),
                               ANSWER(increment, "increment", 0),
                               ANSWER(is_synchronous, "is_synchronous", 0)};

constexpr RefusalRow refusals[] = {
    {core::Refusal::other_fleet, "other_fleet", true, "the registry belongs to another fleet",
     "Correct uidgen.registry, or run SELECT uid_fleet_move() on this server to move it to that fleet."},
    {core::Refusal::stale_registry, "stale_registry", true,
     "another server is the registry by now, or this one has lost commits",
     "Check that uidgen.registry names the current primary server of the registry. If it does, run "
     "SELECT uid_fleet_fence() there."},
    {core::Refusal::unclaimed, "unclaimed", true,
     "the registry is not the server that it was, and nobody has said what it is",
     "On the registry, as its owner, run SELECT uid_fleet_admit('role', 'successor') if it follows the former one, "
     "with 'unchanged' if nothing was lost and the former one has ended, or with 'new' if it is a copy with members of "
     "its own."},
    {core::Refusal::handing_over, "handing_over", true, "the registry is being handed over to another server",
     "Wait for the switchover. If it does not happen, run SELECT uid_fleet_handover(cancel => true) on the registry."},
    {core::Refusal::no_standby, "no_standby", true, "the registry has no synchronous standby",
     "Set synchronous_standby_names on the registry. Or, if it may lose commits, run UPDATE uid_fleet_state SET "
     "synchronous = false there, and make its standbys again."},
    {core::Refusal::rival, "rival", true, "there are two registries of this fleet",
     "Stop one of them, and run SELECT uid_fleet_fence() on the other one."},
    {core::Refusal::claimed, "claimed", false, "the registry was shown a later term that it cannot verify",
     "If another server is the registry of this fleet, correct uidgen.registry. Otherwise run SELECT uid_fleet_fence() "
     "on this registry, whose log says which login has shown it."},
    {core::Refusal::superseded, "superseded", false,
     "another server continues as this generator, or its node was taken over",
     "If this server must issue ids, run SELECT uid_fleet_move() on it. Its generators then get new nodes."},
    {core::Refusal::in_other_fleet, "in_other_fleet", false,
     "the server of the registry is itself a member of another fleet",
     "Correct uidgen.registry on this server, so that it names the registry of that fleet. Or correct it on the "
     "registry's server, and run SELECT uid_fleet_move() there."},
    {core::Refusal::too_many_layouts, "too_many_layouts", false,
     "this server's login has brought 1,000 layouts to the fleet already",
     "Use a layout that the fleet has, or name another role in uidgen.registry."},
    {core::Refusal::starting, "starting", false, nullptr, nullptr},
    {core::Refusal::fenced, "fenced", false, nullptr, nullptr},
    {core::Refusal::ahead, "ahead", false, nullptr, nullptr}};

} // namespace

const Fields request_fields = fields_in(of_request);
const Fields answer_fields = fields_in(of_answer);

const RefusalRow *find_refusal(core::Refusal why) {
    for (const RefusalRow &row : refusals)
        if (row.why == why)
            return &row;
    return nullptr;
}

const RefusalRow *find_refusal(const char *name) {
    for (const RefusalRow &row : refusals)
        if (strcmp(row.name, name) == 0)
            return &row;
    return nullptr;
}

} // namespace uidgen::pg
