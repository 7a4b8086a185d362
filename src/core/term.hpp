// The registry of a fleet as a whole: its terms, its fence, and other registries of the same fleet.
//
// A *term* is the reign of one registry. It has a number, which grows, and a random nonce, which is drawn with it.
// Two registries of one fleet are alive if a former primary comes back, or a copy was started.
//
// Numbered invariants, after those of grant.hpp
//   9. A server that takes over draws a term, whether commits were lost or not. So of two registries that are alive
//      one has the larger number, or both have the same number and differ in the nonce.
//  10. A registry that was shown a larger number grants nothing any more. One that was shown its own number with
//      another nonce admits no newcomer. Both end when an administrator has it draw a term.
//  11. A newcomer, and a member that connects, asks each registry that it can reach, shows the largest number to the
//      others, and goes to that one (membership.hpp). It tells it when the others granted last, by their clocks. A
//      grant began at or below that clock + bound. So a fence covers all grants that were made up to base + bound.
//      Without a fence, those that the registry knows are covered. If another one granted later, the base rises to that
//      time - bound.
//  12. A registry that starts while grants of its last run last admits no newcomer until a member has called that knows
//      of no larger number, or the longest grant has passed: if another one took over, members know its number. A
//      caller that this run has told the number knows nothing of others. So what it shows must have been given before.
#pragma once

#include <algorithm>
#include <cstdint>

namespace uidgen::core {

struct Term {
    int64_t number = 0; // 0: none
    int64_t nonce = 0;
};

constexpr bool operator==(const Term &a, const Term &b) noexcept { return a.number == b.number && a.nonce == b.nonce; }
constexpr bool operator!=(const Term &a, const Term &b) noexcept { return !(a == b); }

// Of two registries that drew the same number.
constexpr bool are_rivals(const Term &a, const Term &b) noexcept {
    return a.number != 0 && a.number == b.number && a.nonce != b.nonce;
}

// A larger number is none of a term. The next one always fits.
constexpr int64_t largest_term = INT64_C(1) << 53;

// What a server has seen of its fleet, in the answers to all its generators.
struct FleetSeen {
    uint64_t fleet = 0; // 0: none yet
    Term term;          // the latest one
    int64_t serial = 0; // of the latest answer in it
    int64_t seal = 0;   // the registry's proof that it answered with these two
};

// The registry, and what it reads at the start of a call, after it has taken its lock.
struct RegistryView {
    uint64_t fleet;
    Term term;
    Term former;           // the term before it, if no commit of it was lost; 0: none
    int64_t former_serial; // the last serial of that term
    Term shown;            // another one that a member has shown, not smaller; 0: none
    int64_t serial;        // the last one drawn before this call
    int64_t own_serial;    // the one drawn for this call's answer
    int64_t fence_base_us; // 0: there was no fence yet
    int64_t covered_us;    // grants that other registries made up to then, by their clocks, are known or fenced
    int64_t longest_us;    // the longest grant of the fleet
    int64_t bound_us;      // how far two clocks of the fleet may differ
    int64_t now_us;        // its clock
    bool awaits_member;    // awaits_member()
    bool is_elsewhere;     // its own server draws in another fleet: ids of the two could be equal
};

enum class Refusal : uint8_t {
    none,
    other_fleet,      // the member belongs to another fleet
    stale_registry,   // a member has seen a larger term, so this registry has lost it, or is not the registry any more
    unclaimed,        // no administrator has said what this registry is
    handing_over,     // it is closed for another server
    no_standby,       // it relies on a synchronous standby, and has none
    rival,            // a member has seen this term with another nonce: there are two registries
    superseded,       // another incarnation follows the one that the member follows, or the membership was revoked
    in_other_fleet,   // no node is given to a newcomer while the registry's own server is a member of another fleet
    too_many_layouts, // the caller's role has brought all that it may
    starting,         // no node is given to a newcomer before a member has called
    fenced,           // no node is given to a newcomer before the fence
    ahead, // the member's clock or high-water mark, or the layout's epoch, is so far ahead that no grant reaches it
};

// Whether the registry may answer a server that has seen that much.
constexpr Refusal judge_server(const RegistryView &r, const FleetSeen &seen) noexcept {
    if (seen.fleet != 0 && seen.fleet != r.fleet)
        return Refusal::other_fleet;
    if (std::max(seen.term.number, r.shown.number) > r.term.number)
        return Refusal::stale_registry;
    return are_rivals(seen.term, r.term) ? Refusal::rival : Refusal::none;
}

// Whether a member of this fleet shows a term that the registry must remember.
constexpr bool is_news(const RegistryView &r, const Term &shown) noexcept {
    return (shown.number > r.term.number || are_rivals(shown, r.term)) && shown.number > r.shown.number;
}

// Whether what a caller shows was given before the server started, when `last_serial` was the last serial.
constexpr bool is_from_before(const RegistryView &r, const FleetSeen &seen, int64_t last_serial) noexcept {
    return seen.term.number != 0 && (seen.term.number < r.term.number || seen.serial <= last_serial);
}

// Whether newcomers must wait (12). `started_us` is when the server started, `latest_end_us` when the last grant of a
// member ends, `called` whether a member has called since the start.
constexpr bool awaits_member(const RegistryView &r, int64_t started_us, int64_t latest_end_us, bool called) noexcept {
    const int64_t up_us = r.now_us - started_us;
    return !called && latest_end_us > started_us && up_us >= 0 && up_us < r.longest_us;
}

// What the rows that a membership has say of the clocks that their grants were made by. (What an outside generator or a
// joining member says of its node is not read from a clock.)
struct KnownGrants {
    int64_t latest_end_us; // the greatest latest_end_us(); 0: there is none
    int64_t last_us;       // when the last one was made or extended
    int64_t end_us = 0;    // when the last one ends, for awaits_member(); 0: there is none
};

// The registry when it draws a term. While all clocks agree within the bound, the end of the latest grant adds
// nothing to a fence; it makes up for a registry whose clock is behind.
constexpr RegistryView succeeded(RegistryView r, int64_t nonce, bool lost, const KnownGrants &known) noexcept {
    r.former = lost ? Term{} : r.term;
    r.former_serial = r.serial;
    r.term = {std::max(r.term.number, r.shown.number) + 1, nonce};
    r.shown = {};
    if (lost)
        r.fence_base_us = std::max({r.fence_base_us, r.now_us, known.latest_end_us - r.longest_us});
    r.covered_us = std::max({r.covered_us, known.last_us, lost ? r.fence_base_us + r.bound_us : 0});
    return r;
}

// The registry after a member has told it when another one of the fleet granted last (11).
constexpr RegistryView told_of_other(RegistryView r, int64_t granted_last_us) noexcept {
    if (granted_last_us > r.covered_us) {
        r.fence_base_us = std::max(r.fence_base_us, granted_last_us - r.bound_us);
        r.covered_us = granted_last_us;
    }
    return r;
}

// When newcomers are accepted again; 0: there was no fence.
constexpr int64_t fence_end_us(const RegistryView &r) noexcept {
    return r.fence_base_us == 0 ? 0 : r.fence_base_us + 2 * r.bound_us + r.longest_us;
}

} // namespace uidgen::core
