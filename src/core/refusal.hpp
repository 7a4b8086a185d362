// Why the registry of a fleet grants nothing: every word that it says, and what a member does about it. Members know
// these words by name, so that a later version may have more of them.
#pragma once

#include <cstdint>
#include <cstring>

namespace uidgen::core {

enum class Refusal : uint8_t {
    none,
    // Of a registry, a pool or a membership: what the decisions of term.hpp and grant.hpp come to.
    other_fleet,      // the member belongs to another fleet
    stale_registry,   // a member has seen a larger term, so this registry has lost it, or is not the registry any more
    unclaimed,        // no administrator has said what this registry is
    handing_over,     // it is closed for another server
    no_standby,       // it relies on a synchronous standby, and has none
    rival,            // a member has seen this term with another nonce: there are two registries
    claimed,          // a member shows a larger term that this registry cannot verify
    superseded,       // another incarnation follows the one that the member follows, or the membership was revoked
    in_other_fleet,   // no node is given to a newcomer while the registry's own server is a member of another fleet
    too_many_layouts, // the caller's role has brought all that it may
    starting,         // no node is given to a newcomer before a member has called
    fenced,           // no node is given to a newcomer before the fence
    ahead, // the member's clock or high-water mark, or the layout's epoch, is so far ahead that no grant reaches it
    // Of one request.
    invalid,        // a field of it
    unproven,       // it shows what the registry has not given
    none_free,      // no node
    too_many_nodes, // the caller's role has its share
    node_taken,     // the one that it must have
    epoch_differs,  // ids could be equal to those of a pool that the fleet has
    split_differs,  // the same
    // Of a segment.
    no_segment,
    no_privilege,
    attached, // it takes its own values from a registry
    not_shareable,
    increment_differs,
    being_altered,
    unknown_value, // the member shows one far beyond all that was given
    used_up,
    // A member's own.
    outdated, // only a registry of an earlier term than it has seen answers
    unknown,  // a word that a later version of the registry says
};

// What a refusal is about, and so what ends it.
enum class Scope : uint8_t {
    request,  // what was asked for, or the membership: the same request is refused again
    moment,   // ends by itself
    registry, // the server that has refused: another one in uidgen.registry may answer
    fleet,    // its fleet: another one may be of the member's; values of a segment come only after it is attached again
};

struct RefusalRow {
    Refusal why;
    const char *word; // in messages, tables and views
    Scope scope;
    const char *message; // null: it depends on the request, as the hint does then unless it is here
    const char *hint;
};

constexpr const char *hint_of_superseded =
    "If this server must issue ids, run SELECT uid_fleet_move() on it. Its generators then get new nodes.";

constexpr RefusalRow refusals[] = {
    {Refusal::none, "", Scope::request, nullptr, nullptr},
    {Refusal::other_fleet, "other_fleet", Scope::fleet, "the registry belongs to another fleet",
     "Correct uidgen.registry, or run SELECT uid_fleet_move() on this server to move it to that fleet."},
    {Refusal::stale_registry, "stale_registry", Scope::registry,
     "another server has become the registry, or this one has lost commits",
     "Check that uidgen.registry names the current primary server of the registry. If it does, run "
     "SELECT uid_fleet_fence() there."},
    {Refusal::unclaimed, "unclaimed", Scope::registry,
     "the registry is not the server that it was, and no administrator has confirmed it",
     "On the registry, as its owner, run SELECT uid_fleet_admit('role', 'successor') if it follows the former one. "
     "If nothing was lost, or it is a copy, see docs/runbooks/registry-copy.md."},
    {Refusal::handing_over, "handing_over", Scope::registry, "the registry is being handed over to another server",
     "Wait for the switchover. If it does not happen, run SELECT uid_fleet_handover(cancel => true) on the registry."},
    {Refusal::no_standby, "no_standby", Scope::registry, "the registry has no synchronous standby",
     "Set synchronous_standby_names on the registry. Or, if it may lose commits, run UPDATE uid_fleet_state SET "
     "synchronous = false there, and rebuild its standbys."},
    {Refusal::rival, "rival", Scope::registry, "there are two registries of this fleet",
     "Stop one of them, and run SELECT uid_fleet_fence() on the other one."},
    {Refusal::claimed, "claimed", Scope::request, "the registry was shown a later term that it cannot verify",
     "If another server is the registry of this fleet, correct uidgen.registry. Otherwise run SELECT uid_fleet_fence() "
     "on this registry, whose log says which login has shown it."},
    {Refusal::superseded, "superseded", Scope::request,
     "another server continues as this generator, or its node was taken over", hint_of_superseded},
    {Refusal::in_other_fleet, "in_other_fleet", Scope::request,
     "the server of the registry is itself a member of another fleet",
     "Correct uidgen.registry on this server, so that it names the registry of that fleet. Or correct it on the "
     "registry's server, and run SELECT uid_fleet_move() there."},
    {Refusal::too_many_layouts, "too_many_layouts", Scope::request,
     "this server's login has brought 1,000 layouts to the fleet already",
     "Use a layout that the fleet has, or name another role in uidgen.registry."},
    {Refusal::starting, "starting", Scope::request, nullptr, nullptr},
    {Refusal::fenced, "fenced", Scope::request, nullptr, nullptr},
    {Refusal::ahead, "ahead", Scope::request, nullptr,
     "Correct the clock of this server or of the registry. If the clock was ahead when ids were drawn, or the epoch of "
     "the generator is, wait until then."},
    {Refusal::invalid, "invalid", Scope::request, nullptr, "Update uidgen on the registry, and then on this server."},
    {Refusal::unproven, "unproven", Scope::request, "this server presents a proof that the registry did not issue",
     hint_of_superseded},
    {Refusal::none_free, "none_free", Scope::request, nullptr, nullptr},
    {Refusal::too_many_nodes, "too_many_nodes", Scope::request,
     "this server's login holds its share of the nodes of the layout already",
     "Use a layout with more datacenter and worker bits, or stop a generator. \"Nodes of a login\" in docs/security.md "
     "says how large a share is."},
    {Refusal::node_taken, "node_taken", Scope::request, nullptr,
     "Use another worker_number. If its holder no longer runs, wait, or ask the administrator of the registry, whose "
     "view uid_fleet shows the holder, to run uid_fleet_takeover()."},
    {Refusal::epoch_differs, "epoch_differs", Scope::request,
     "generators of the same widths in this fleet have another epoch", nullptr},
    {Refusal::split_differs, "split_differs", Scope::request,
     "generators of the same widths in this fleet have another split of the node into datacenter and worker bits",
     nullptr},
    {Refusal::no_segment, "no_segment", Scope::request, nullptr, nullptr},
    {Refusal::no_privilege, "no_privilege", Scope::request, nullptr, nullptr},
    {Refusal::attached, "attached", Scope::request, nullptr, "Attach to the segment that its values come from."},
    {Refusal::not_shareable, "not_shareable", Scope::request, nullptr, nullptr},
    {Refusal::increment_differs, "increment_differs", Scope::request, nullptr, nullptr},
    {Refusal::being_altered, "being_altered", Scope::moment, nullptr,
     "Wait until the transaction there that locks its sequence has ended."},
    {Refusal::unknown_value, "unknown_value", Scope::request, nullptr, nullptr},
    {Refusal::used_up, "used_up", Scope::request, nullptr, nullptr},
    {Refusal::outdated, "outdated", Scope::registry, "only a former registry of this server's fleet answers",
     "Start the present registry. If the former one must be the registry again, run SELECT uid_fleet_fence() there, or "
     "SELECT uid_fleet_move() on this server."},
    {Refusal::unknown, "refused", Scope::request, nullptr, nullptr},
};

constexpr const RefusalRow &row_of(Refusal why) noexcept { return refusals[static_cast<uint8_t>(why)]; }

constexpr bool refusals_are_in_order() noexcept {
    bool in_order = sizeof(refusals) / sizeof(refusals[0]) == static_cast<size_t>(Refusal::unknown) + 1;
    for (uint8_t i = 0; in_order && i <= static_cast<uint8_t>(Refusal::unknown); i++)
        in_order = refusals[i].why == static_cast<Refusal>(i);
    return in_order;
}
static_assert(refusals_are_in_order());

inline Refusal refusal_of(const char *word) noexcept {
    for (const RefusalRow &row : refusals)
        if (strcmp(row.word, word) == 0)
            return row.why;
    return Refusal::unknown;
}

// Whether another server of the registry may answer what this one has refused.
constexpr bool may_be_answered_elsewhere(Refusal why) noexcept { return row_of(why).scope >= Scope::registry; }

} // namespace uidgen::core
