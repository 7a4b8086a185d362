// What the registry of a fleet decides: which ticks of which node a generator may use.
//
// The generators of one layout form a *pool*. A *node* is the value of the datacenter and worker bits together. A
// *grant* is the right of one *line* (the lives of one generator in one data directory, one after another) to use the
// ticks from <= t < until of a node. An *incarnation* is one life of a generator; each has a random number.
//
// Numbered invariants
//   1. `until` of a node only grows (but for revoked()). A grant to another line starts at or above it. So grants of
//      one node to different lines never overlap.
//   2. A grant is committed, durably, before it is answered.
//   3. While the registry loses no commit, (1) and (2) alone keep nodes apart, and no two clocks are compared
//      (but in revoked()).
//   4. A registry that may have lost commits raises a *fence* before it answers again. Let `base` be its clock at that
//      moment (the latest of the readings in fenced()). Assume that the registries' clocks differ by at most `bound` at
//      any time. Then each lost grant began at or below base + 2 x bound: its `from` was at most the cap, the former
//      registry's clock + bound. So it ends at or below that tick + the longest grant. No line gets a node that is new
//      to it below that end. No line keeps a node unless its grant reaches above base + 2 x bound. Such a grant was
//      followed by no grant to another line, lost or not, because of (1).
//   5. `bound` and the longest grant are the same at a registry and at those that follow it. A change of either that
//      is lost with the grants made under it breaks (4).
//   6. A life that follows another one shows it (Ask::former). The registry extends a line for the latest life that it
//      answered, and for those that follow it. Any other life is refused as superseded: it is a copy, or its ask
//      arrived late. An asker that holds no grant is a newcomer, unless it is the very life that was answered.
//   7. A grant's stamp (term, serial) grows along a history. A member that shows a stamp which the registry has not
//      reached proves that commits were lost.
//   8. What a member shows was given to it by a registry of this fleet: each answer has *seals*, which only a registry
//      can make and verify. So a caller cannot invent what (4), (6) and (7) draw conclusions from.
//
// The clock of an asker serves to choose a range that it can use. A wrong one harms only the asker: it is capped, and
// by (1) a late one leads to a range that is in use already, which only its own line may have. The registry judges by
// its own clock alone, because (4) must not rest on what an asker says.
#pragma once

#include <algorithm>
#include <cstdint>

#include "layout.hpp"

namespace uidgen::core {

// Terms grow by one a fence, so a larger one is invalid. The next one always fits.
constexpr int64_t largest_term = INT64_C(1) << 53;

// The right of a line, as the member keeps it and shows it.
struct Grant {
    int64_t node;
    int64_t from;  // ticks
    int64_t until; // the first tick beyond
    uint64_t line; // the incarnation that was granted the node first
    int64_t term;  // the stamp of the answer: the registry's term and serial
    int64_t serial;
    int64_t seal = 0; // the registry's proof that it gave this
};

// How many incarnations a member can show: the last one that was answered, and those that asked since.
constexpr uint32_t most_former = 64;

struct Ask {
    uint64_t incarnation;
    uint32_t former_count;
    uint64_t former[most_former];
    bool holds;       // `held` counts
    Grant held;       // the grant in hand
    int64_t clock_us; // the asker's clock
    int64_t lowest;   // the lowest tick that it can use: max(clock, high-water mark + 1)
    int64_t length;   // ticks that it asks for
    uint64_t fleet;   // the fleet that it belongs to; 0: none yet
    int64_t term;     // the term of the latest answer that its server has seen
    int64_t serial;   // the serial of the latest grant in that term; 0: none
    int64_t seal;     // the registry's proof that it answered with these two
};

// What the registry knows of a node. Every row was all zeros but for `node` before the node's first grant.
struct NodeRow {
    int64_t node;
    int64_t from;
    int64_t until;
    uint64_t line;        // 0: no holder
    uint64_t incarnation; // the one that was answered last
    int64_t term;         // the stamp of that answer
    int64_t serial;
    uint64_t revoked; // the line that was declared dead (revoke()); 0: none
};

// The registry, and what it reads at the start of a call, after it has taken its locks.
struct RegistryView {
    uint64_t fleet;
    int64_t term;          // counts the fences; 1 for a new fleet
    int64_t serial;        // the last one drawn before this call
    int64_t own_serial;    // the one drawn for this call's answer
    int64_t term_shown;    // the highest term that a member has shown
    int64_t fence_base_us; // 0: there was no fence yet
    int64_t longest_us;    // the longest grant of the fleet
    int64_t bound_us;      // how far two clocks of the fleet may differ
    int64_t now_us;        // its clock
};

enum class Verdict : uint8_t {
    extend,   // the asker keeps its node: extended()
    newcomer, // the asker gets another node: of the rows that is_free() allows, granted()
    fence,    // commits were lost: raise the fence, then judge again
    refuse,
};

enum class Refusal : uint8_t {
    none,
    other_fleet,    // the asker belongs to another fleet
    stale_registry, // a member has seen a later term, so this registry has lost it, or is not the registry any more
    superseded,     // another incarnation follows the one that the asker follows, or the line was revoked
    fenced,         // no node is given to a newcomer before the fence
    ahead, // the asker's clock or high-water mark, or the layout's epoch, is so far ahead that no grant reaches it
};

struct Judgement {
    Verdict verdict;
    Refusal why; // of refuse
};

// Whether the registry may answer a server that has seen that term of that fleet (0: of none yet).
constexpr Refusal judge_fleet(const RegistryView &r, uint64_t fleet, int64_t term) noexcept {
    if (fleet != 0 && fleet != r.fleet)
        return Refusal::other_fleet;
    return std::max(term, r.term_shown) > r.term ? Refusal::stale_registry : Refusal::none;
}

constexpr int64_t longest_ticks(const Layout &l, const RegistryView &r) noexcept {
    return std::max(r.longest_us / l.tick_us, INT64_C(2));
}

// No grant reaches further above its beginning.
constexpr int64_t grant_ticks(const Layout &l, const RegistryView &r, const Ask &a) noexcept {
    return std::clamp(a.length, INT64_C(2), longest_ticks(l, r));
}

// No grant that is new to its node begins above this tick.
constexpr int64_t cap(const Layout &l, const RegistryView &r) noexcept { return tick_at(l, r.now_us + r.bound_us); }

// Whether the layout has no tick yet that could be granted.
constexpr bool is_before_epoch(const Layout &l, const RegistryView &r) noexcept { return cap(l, r) < 0; }

// Whether the layout ends before a grant that begins now can.
constexpr bool ends_too_soon(const Layout &l, const RegistryView &r) noexcept {
    return tick_at(l, r.now_us) + longest_ticks(l, r) > largest(l.time_bits);
}

// Where a grant to this asker begins, if it is new to the node.
constexpr int64_t beginning(const Layout &l, const RegistryView &r, const Ask &a) noexcept {
    return std::min(a.lowest, cap(l, r));
}

// The last tick at which a lost grant can have begun; negative: there was no fence.
constexpr int64_t last_lost_beginning(const Layout &l, const RegistryView &r) noexcept {
    return r.fence_base_us == 0 ? -1 : tick_at(l, r.fence_base_us + 2 * r.bound_us);
}

// The first tick that may be granted to a newcomer.
constexpr int64_t fence_tick(const Layout &l, const RegistryView &r) noexcept {
    return r.fence_base_us == 0 ? 0 : last_lost_beginning(l, r) + longest_ticks(l, r);
}

// When newcomers are accepted again; 0: there was no fence.
constexpr int64_t fence_end_us(const RegistryView &r) noexcept {
    return r.fence_base_us == 0 ? 0 : r.fence_base_us + 2 * r.bound_us + r.longest_us;
}

constexpr bool is_former(const Ask &a, uint64_t incarnation) noexcept {
    for (uint32_t i = 0; i < a.former_count; i++)
        if (a.former[i] == incarnation)
            return true;
    return false;
}

constexpr bool is_same_life(const Ask &a, const NodeRow &row) noexcept {
    return row.line != 0 && (row.incarnation == a.incarnation || is_former(a, row.incarnation));
}

// Whether the row's last answer was given after the one that the asker shows.
constexpr bool is_later(const NodeRow &row, const Grant &held) noexcept {
    return row.term > held.term || (row.term == held.term && row.serial > held.serial);
}

// Whether the asker missed the answer that granted it this node: it was lost on the way, or is still under way. It
// must be the very life that was answered. An earlier one may have used the grant, and the asker be its copy.
constexpr bool is_missed(const Ask &a, const NodeRow &row) noexcept {
    const bool was_answered = row.line != 0 && row.incarnation == a.incarnation;
    return was_answered && (!a.holds || (row.node != a.held.node && is_later(row, a.held)));
}

// The ask, as it is judged against the row of an answer that was missed.
constexpr Ask without_held(Ask a) noexcept {
    a.holds = false;
    a.held = {};
    return a;
}

// Whether the asker shows an answer of this term that the registry has lost. (One of an earlier term may have been
// lost before the fence that began this term.)
constexpr bool shows_lost_commit(const RegistryView &r, const Ask &a, const NodeRow *row) noexcept {
    const bool shows_later_row =
        a.holds && a.held.term == r.term && (row == nullptr || row->term < r.term || a.held.serial > row->serial);
    return shows_later_row || (a.term == r.term && a.serial > r.serial);
}

namespace detail {

constexpr Judgement newcomer(const Layout &l, const RegistryView &r, const Ask &a) noexcept {
    const int64_t from = beginning(l, r, a);
    if (is_before_epoch(l, r))
        return {Verdict::refuse, Refusal::ahead};
    if (from < fence_tick(l, r))
        return {Verdict::refuse, Refusal::fenced};
    if (a.lowest >= from + grant_ticks(l, r, a))
        return {Verdict::refuse, Refusal::ahead};
    return {Verdict::newcomer, Refusal::none};
}

} // namespace detail

// What to do with an asker. There are two rows that it may keep:
//   - that of the node that it holds
//   - that of an answer that it missed (is_missed(); of several rows the one with the latest stamp)
// An asker that holds a node is judged against the first. If that makes it a newcomer and there is the second row, it
// is judged against the second by without_held(). So an ask that is repeated takes no second node. An asker that
// holds none is judged against the second alone. Null: there is no such row.
constexpr Judgement judge(const Layout &l, const RegistryView &r, const Ask &a, const NodeRow *row) noexcept {
    const Refusal of_fleet = judge_fleet(r, a.fleet, a.term);
    if (of_fleet != Refusal::none)
        return {Verdict::refuse, of_fleet};
    if (shows_lost_commit(r, a, row))
        return {Verdict::fence, Refusal::none};
    if (a.holds && row != nullptr && row->revoked == a.held.line)
        return {Verdict::refuse, Refusal::superseded};
    // A row whose last answer is older than the asker's may name an earlier life. A later answer was given to a life
    // that the asker must know, or the asker is a copy or an ask that arrives late.
    const bool same_line = row != nullptr && (a.holds ? row->line == a.held.line : is_missed(a, *row));
    const bool judged_since_fence = row != nullptr && row->term == r.term;
    if (same_line && !is_same_life(a, *row) && (judged_since_fence || is_later(*row, a.held)))
        return {Verdict::refuse, Refusal::superseded};
    // At the first ask since the fence the line keeps the node only if its grant cannot have been followed by a lost
    // one, and if no other line has it. Of two lines the one whose grant ends later had the node later, and so it has
    // the later stamp. (A line that was revoked may still show a grant that ends later.)
    const int64_t shown = a.holds ? a.held.until : 0;
    const int64_t known = row != nullptr ? row->until : 0;
    const bool is_latest = same_line || (a.holds && shown > known && (row == nullptr || !is_later(*row, a.held)));
    const bool keeps = judged_since_fence ? same_line : is_latest && std::max(shown, known) > last_lost_beginning(l, r);
    if (!keeps)
        return detail::newcomer(l, r, a);
    if (a.lowest >= std::max({shown, known, beginning(l, r, a) + grant_ticks(l, r, a)}))
        return {Verdict::refuse, Refusal::ahead};
    return {Verdict::extend, Refusal::none};
}

// The row after the asker has kept its node. A life that got the node twice, with another line in between, has one
// line number for both grants. So the later beginning counts.
constexpr NodeRow extended(const Layout &l, const RegistryView &r, const Ask &a, const NodeRow *row) noexcept {
    const NodeRow before = row != nullptr ? *row : NodeRow{a.held.node, 0, 0, 0, 0, 0, 0, 0};
    const bool same_line = before.line != 0 && (!a.holds || before.line == a.held.line);
    const int64_t shown_from = a.holds ? a.held.from : before.from;
    const int64_t until =
        std::max({before.until, a.holds ? a.held.until : 0, beginning(l, r, a) + grant_ticks(l, r, a)});
    return {before.node,
            same_line ? std::max(before.from, shown_from) : shown_from,
            std::min(until, largest(l.time_bits) + 1),
            same_line ? before.line : a.held.line,
            a.incarnation,
            r.term,
            r.own_serial,
            before.revoked};
}

// Whether a newcomer may have that node.
constexpr bool is_free(const Layout &l, const RegistryView &r, const Ask &a, const NodeRow &row) noexcept {
    return row.until <= beginning(l, r, a);
}

// The row after a newcomer was granted a node that is_free() for it.
constexpr NodeRow granted(const Layout &l, const RegistryView &r, const Ask &a, const NodeRow &row) noexcept {
    const int64_t from = beginning(l, r, a);
    return {row.node,      from,          std::min(from + grant_ticks(l, r, a), largest(l.time_bits) + 1),
            a.incarnation, a.incarnation, r.term,
            r.own_serial,  row.revoked};
}

// Whether an asker that joins claims more of a node than a grant would give it. One that is not `ahead` never does: it
// used the ticks below its high-water mark, and its lowest tick is above that.
constexpr bool claims_too_much(const Layout &l, const RegistryView &r, const Ask &a, int64_t until) noexcept {
    return until > beginning(l, r, a) + grant_ticks(l, r, a);
}

// The row after an asker has said that it used the node's ticks below `until` before it joined the fleet. A line that
// had the node loses it, because the ticks up to there are not its own. A node that is in use is left as it is.
constexpr NodeRow used_before(const Layout &l, const RegistryView &r, const Ask &a, NodeRow row,
                              int64_t until) noexcept {
    if (!is_free(l, r, a, row) || until <= row.until)
        return row;
    row.until = std::min(until, largest(l.time_bits) + 1);
    row.line = 0;
    row.incarnation = 0;
    return row;
}

// The order in which newcomers get free nodes: the one that was used longest ago first.
constexpr bool comes_before(const NodeRow &x, const NodeRow &y) noexcept {
    return x.until != y.until ? x.until < y.until : x.node < y.node;
}

// When a newcomer whose clock is right can have the node.
constexpr int64_t free_at_us(const Layout &l, const RegistryView &r, const NodeRow &row) noexcept {
    return start_of(l, std::max(row.until, fence_tick(l, r)));
}

// What a row says to fenced(): an end that a grant of longest_us had, had it begun where this one did at the latest.
constexpr int64_t latest_end_us(const Layout &l, const RegistryView &r, const NodeRow &row) noexcept {
    return start_of(l, row.until - longest_ticks(l, r)) + r.longest_us;
}

// The registry after a fence. `newest_until_us` is the greatest latest_end_us() of the rows that a line has; 0: there
// is none. (What an outside generator or a joining member says of its node is not read from a clock.) While all clocks
// agree within the bound it adds nothing; it makes up for a registry whose clock is behind.
constexpr RegistryView fenced(RegistryView r, int64_t newest_until_us) noexcept {
    r.fence_base_us = std::max({r.fence_base_us, r.now_us, newest_until_us - r.longest_us});
    r.term = std::max(r.term, r.term_shown) + 1;
    return r;
}

// The row after its holder was declared dead: its ticks end where its clock + `ahead` can have been. `ahead` is how
// many ticks above its clock it was allowed to draw: its max_ahead (half of the length that it asked for is at least
// that). The holder must not live, and its clock must have agreed with the registry's within the bound.
constexpr NodeRow revoked(const Layout &l, const RegistryView &r, const NodeRow &row, int64_t ahead) noexcept {
    const int64_t until = std::min(row.until, tick_at(l, r.now_us + r.bound_us) + ahead + 1);
    return {row.node, row.from, until, 0, 0, r.term, r.own_serial, row.line != 0 ? row.line : row.revoked};
}

} // namespace uidgen::core
