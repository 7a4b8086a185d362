// The registry of a fleet as a whole: its terms, its fence, and other registries of the same fleet.
//
// A *term* is the reign of one registry. It has a number, which grows, and a random nonce, which is drawn with it.
// Two registries of one fleet are alive if a former primary comes back, a copy was started, or a registry that was lost
// comes back after it was replaced.
//
// Numbered invariants, after those of grant.hpp
//   9. A server that takes over draws a term, whether commits were lost or not. The number is the clock's microseconds,
//      or above the largest number that it knows. So of two registries that are alive one has the larger number, or
//      both have the same number and differ in the nonce.
//  10. A registry that was shown a larger number grants nothing any more. One that was shown its own number with
//      another nonce admits no newcomer. Both end when an administrator has it draw a term.
//  11. A newcomer, and a member that connects, asks each registry that it can reach, shows the largest number to the
//      others, and goes to that one (membership.hpp). It tells it when the others granted last, by their clocks. A
//      grant began at or below that clock + bound. So a fence covers all grants that were made up to base + bound.
//      Without a fence, those that the registry knows are covered. If another one granted later, the base rises to that
//      time - bound.
//  12. A registry that starts, whether grants of its last run last or not, admits no newcomer for wait_us(), because
//      another one may have taken over and have stopped again. Each connected member asks all hosts at least once in
//      half the longest grant. So by then this one has been shown the number of the other one, or all grants of the
//      other one have ended. A member whose grant was given in this term before the start, and lasts, ends the wait:
//      the other one would still be fenced, so it has admitted no newcomer. It may have extended grants. So until
//      wait_us() has passed only nodes are free whose grants had ended when this one granted last. No member ends the
//      wait if the other one may have been without a fence.
//  13. A grant that has ended is extended only if a newcomer would be admitted, and begins at the present tick.
//      Otherwise a registry that comes back would extend it although another one has given the node away since.
//  14. A larger number without a proof is a *claim*: another registry has another key. It closes the registry to
//      newcomers, to grants that have ended and to blocks. It counts for claim_us() after it was shown last, or until
//      an administrator has the registry draw a term.
//  15. A number that is more than a day ahead of the clock does not exist, for registries and members: no clock has
//      drawn it. Otherwise an invented number would leave none above it.
#pragma once

#include <algorithm>
#include <cstdint>

#include "refusal.hpp"

namespace uidgen::core {

struct Term {
    int64_t number = 0; // 0: none
    int64_t nonce = 0;
};

constexpr bool operator==(const Term &a, const Term &b) noexcept { return a.number == b.number && a.nonce == b.nonce; }
constexpr bool operator!=(const Term &a, const Term &b) noexcept { return !(a == b); }

// Of two registries that drew the same number. A nonce of 0 is not known.
constexpr bool are_rivals(const Term &a, const Term &b) noexcept {
    return a.number != 0 && a.number == b.number && a.nonce != b.nonce && a.nonce != 0 && b.nonce != 0;
}

// A larger number is none of a term. The next one always fits.
constexpr int64_t largest_term = INT64_C(1) << 53;

constexpr int64_t day_us = INT64_C(86400) * 1000 * 1000;

// Whether a clock of the fleet can have drawn that number (15).
constexpr bool can_be_drawn(int64_t number, int64_t now_us) noexcept {
    return number <= largest_term && number <= now_us + day_us;
}

// Whether it exists for members whose clocks are hours behind, too.
constexpr bool exists_for_all(int64_t number, int64_t now_us) noexcept {
    return can_be_drawn(number, now_us - day_us / 2);
}

// What a server has seen of its fleet, in the answers to all its generators.
struct FleetSeen {
    uint64_t fleet = 0; // 0: none yet, but there may be a term
    Term term;          // the latest one
    int64_t serial = 0; // of the latest answer in it
    int64_t seal = 0;   // the registry's proof that it answered with these two; 0: it is lost
};

// What a server may show of that: a registry takes nothing without the proof.
constexpr FleetSeen with_proof(const FleetSeen &seen) noexcept {
    return seen.seal != 0 ? seen : FleetSeen{seen.fleet, {}, 0, 0};
}

// The registry, and what it reads at the start of a call, after it has taken its lock.
struct RegistryView {
    uint64_t fleet;
    Term term;
    Term former;                 // the term before it, if no commit of it was lost; 0: none
    int64_t former_serial;       // the last serial of that term
    Term shown;                  // another one that a member has shown, not smaller; 0: none
    int64_t claimed;             // the largest number that was shown without a proof and counts (14); 0: none
    int64_t first;               // the number of the first term that this fleet's key can prove
    int64_t unproven_base_us;    // of the fence in which grants of a registry count that was lost with its key; 0: none
    int64_t own_serial;          // the one drawn for this call's answer
    int64_t fence_base_us;       // 0: there was no fence yet
    int64_t covered_us;          // grants that other registries made up to then, by their clocks, are known or fenced
    int64_t longest_us;          // the longest grant of the fleet
    int64_t bound_us;            // how far two clocks of the fleet may differ
    int64_t now_us;              // its clock
    int64_t up_us;               // how long its server has run, by the monotonic clock
    int64_t closed_until_us;     // for a handover; 0: the registry is open
    int64_t started_us;          // when the server started, as of the last call
    int64_t serial_at_start;     // the last serial before; 0: a member has ended the wait; or endable_by_none
    int64_t granted_at_start_us; // when it had granted last before; 0: no wait, or it is over
    int64_t ended_by_us;         // of with_wait(): only nodes whose grants had ended by then are free (12); 0: any
    bool awaits_member;          // of with_wait(): newcomers wait, and no member has ended it
    bool is_elsewhere;           // its own server draws in another fleet: ids of the two could be equal
};

// Whether the registry may answer a server that has seen that much.
constexpr Refusal judge_server(const RegistryView &r, const FleetSeen &seen) noexcept {
    if (seen.fleet != 0 && seen.fleet != r.fleet)
        return Refusal::other_fleet;
    if (std::max(seen.term.number, r.shown.number) > r.term.number)
        return Refusal::stale_registry;
    return are_rivals(seen.term, r.term) ? Refusal::rival : Refusal::none;
}

// Whether a member of this fleet shows a term that the registry must remember (10). One that is half a day ahead stops
// that member only, even if it has a proof: a clock that was ahead has drawn it. So the one that is drawn above exists.
constexpr bool is_news(const RegistryView &r, const Term &shown) noexcept {
    const bool is_later = shown.number > r.term.number && exists_for_all(shown.number, r.now_us);
    return (is_later || are_rivals(shown, r.term)) && shown.number > r.shown.number;
}

// How long a registry waits that has started (12).
constexpr int64_t wait_us(const RegistryView &r) noexcept { return r.longest_us + r.longest_us / 2 + 2 * r.bound_us; }

// Whether newcomers must wait, unless a member has ended it (12). Its clock may be set right after the start, so that
// does not count.
constexpr bool is_in_wait(const RegistryView &r) noexcept { return r.up_us < wait_us(r); }

// When it ends, if its clock is right.
constexpr int64_t wait_end_us(const RegistryView &r) noexcept { return r.now_us + wait_us(r) - r.up_us; }

constexpr int64_t endable_by_none = -1; // serial_at_start: no member can end the wait

// The registry when its server has started, and what it reads of that at each call. A server that takes over from a
// synchronous one raises no fence, so no member can end the wait. None can either if the clock was ahead when it
// granted last, which then says nothing. A start in the wait of another one knows no more than that one: what it has
// extended meanwhile does not say what the other registry has given away.
constexpr RegistryView started(RegistryView r, int64_t started_us, int64_t granted_last_us,
                               bool is_synchronous) noexcept {
    const bool was_in_wait = r.granted_at_start_us != 0;
    const bool can_be_ended =
        !is_synchronous && granted_last_us <= r.now_us && !(was_in_wait && r.serial_at_start == endable_by_none);
    r.started_us = started_us;
    r.serial_at_start = can_be_ended ? std::max(r.own_serial - 1, INT64_C(1)) : endable_by_none;
    const int64_t granted_us = std::max(granted_last_us, INT64_C(1));
    r.granted_at_start_us = was_in_wait ? std::min(r.granted_at_start_us, granted_us) : granted_us;
    return r;
}

constexpr RegistryView with_wait(RegistryView r) noexcept {
    const bool is_early = r.granted_at_start_us != 0 && is_in_wait(r);
    r.awaits_member = is_early && r.serial_at_start != 0;
    r.ended_by_us = is_early ? r.granted_at_start_us : 0;
    return r;
}

// The greatest `step` of next_number(), in microseconds.
constexpr int64_t longest_step = 1000000;

// Whether a number that is shown without a proof is a claim (14). The one that is drawn above it must exist for all.
constexpr bool is_claim(const RegistryView &r, const Term &shown) noexcept {
    return shown.number > r.term.number && shown.number <= largest_term &&
           exists_for_all(shown.number + r.bound_us + longest_step, r.now_us);
}

// How long after it was shown last a claim counts.
constexpr int64_t claim_us(const RegistryView &r) noexcept { return r.longest_us + 2 * r.bound_us; }

// Why no block is given: another registry may give the same values, as far as this one has been told.
constexpr Refusal judge_rivals(const RegistryView &r) noexcept {
    if (r.shown.number != 0)
        return Refusal::rival;
    return r.claimed > r.term.number ? Refusal::claimed : Refusal::none;
}

// Why neither a newcomer nor the holder of a grant that has ended gets a node.
constexpr Refusal judge_admission(const RegistryView &r) noexcept {
    const Refusal why = judge_rivals(r);
    return why == Refusal::none && r.awaits_member ? Refusal::starting : why;
}

// What the rows that a membership has say of the clocks that their grants were made by. (What an outside generator or a
// joining member says of its node is not read from a clock.)
struct KnownGrants {
    int64_t latest_end_us; // the greatest latest_end_us(); 0: there is none
    int64_t last_us;       // when the last one was made or extended
};

// The number of the next term (9). `step` is random and not 0, so that two registries that were shown one number do not
// draw one number.
constexpr int64_t next_number(const RegistryView &r, int64_t step) noexcept {
    int64_t known = 0;
    for (const int64_t number : {r.term.number, r.shown.number, r.claimed})
        known = can_be_drawn(number, r.now_us) ? std::max(known, number) : known;
    return r.now_us > known ? r.now_us : known + step;
}

// What a registry draws at random with a term.
struct RandomParts {
    int64_t nonce;
    int64_t step;
};

// What is known of the commits of the registry before. If it is declared, fences end until another registry grants.
enum class Commits : uint8_t { are_known, are_declared, may_be_lost };

// A closed registry grants nothing. The server that takes over knows of the closing, and so of every grant, and needs
// no fence. That is only so as long as the former server cannot be open again, so the closing has an end:
//   - the one that takes over counts on it while its clock + the bound is below closed_until
//   - the former one may be opened again when its clock has passed closed_until by twice the bound. It raises a fence
//     then, because the other one may have taken over, have granted, and be gone
constexpr bool is_closed(const RegistryView &r) noexcept { return r.closed_until_us != 0; }
constexpr bool is_handed_over(const RegistryView &r) noexcept { return r.now_us + r.bound_us < r.closed_until_us; }

// The serial of an answer. The server that takes over has not reached those that a closed one draws, so a member that
// has called the closed one meanwhile must not show them.
constexpr int64_t answered_serial(const RegistryView &r) noexcept { return is_closed(r) ? 1 : r.own_serial; }

constexpr int64_t may_open_us(const RegistryView &r) noexcept { return r.closed_until_us + 2 * r.bound_us; }

// Why a registry cannot be handed over: the next one must know of all grants by what this one knows. (A claim does not
// matter: a login could prevent the handover by it. The next one then raises a fence.) A closed one notes no start.
constexpr Refusal judge_handover(const RegistryView &r, int64_t started_us) noexcept {
    if (r.shown.number != 0)
        return r.shown.number > r.term.number ? Refusal::stale_registry : Refusal::rival;
    return r.ended_by_us != 0 || (is_closed(r) && r.started_us != started_us) ? Refusal::starting : Refusal::none;
}

// What a server that takes over from that state knows. A synchronous one has every commit of the former one. These are
// all grants, unless that one had met another registry, or may have missed one.
constexpr Commits commits_of_former(const RegistryView &r, bool is_synchronous) noexcept {
    const bool has_all = is_handed_over(r) || (is_synchronous && !is_closed(r)); // a closed one notes no start
    const bool knew_all = judge_rivals(r) == Refusal::none && r.granted_at_start_us == 0;
    return has_all && knew_all ? Commits::are_known : Commits::may_be_lost;
}

// The registry when it draws a term. While all clocks agree within the bound, the end of the latest grant adds
// nothing to a fence; it makes up for a registry whose clock is behind. Stamps and grants of the registry that a claim
// is of can never be verified, so they must not count as later than this term.
constexpr RegistryView succeeded(RegistryView r, const RandomParts &drawn, Commits commits,
                                 const KnownGrants &known) noexcept {
    const bool lost = commits == Commits::may_be_lost;
    const int64_t number = next_number(r, drawn.step);
    r.former = lost ? Term{} : r.term;
    r.former_serial = r.own_serial - 1;
    r.unproven_base_us = r.claimed > r.term.number ? 0 : r.unproven_base_us;
    r.first = r.claimed > r.term.number ? number : r.first;
    r.term = {number, drawn.nonce};
    r.shown = {};
    r.claimed = 0;
    r.closed_until_us = r.serial_at_start = r.granted_at_start_us = 0;
    if (commits == Commits::are_declared)
        r.fence_base_us = r.covered_us = 0;
    if (lost)
        r.fence_base_us = std::max({r.fence_base_us, r.now_us, known.latest_end_us - r.longest_us});
    r.covered_us = std::max({r.covered_us, known.last_us, lost ? r.fence_base_us + r.bound_us : 0});
    return with_wait(r);
}

// The registry after a member has told it when another one of the fleet granted last (11).
constexpr RegistryView told_of_other(RegistryView r, int64_t granted_last_us) noexcept {
    if (granted_last_us > r.covered_us) {
        r.fence_base_us = std::max(r.fence_base_us, granted_last_us - r.bound_us);
        r.covered_us = granted_last_us;
    }
    return r;
}

// When the fence with that base ends; 0: there was none.
constexpr int64_t fence_end_us(const RegistryView &r, int64_t base_us) noexcept {
    return base_us == 0 ? 0 : base_us + 2 * r.bound_us + r.longest_us;
}

// When newcomers are accepted again.
constexpr int64_t fence_end_us(const RegistryView &r) noexcept { return fence_end_us(r, r.fence_base_us); }

} // namespace uidgen::core
