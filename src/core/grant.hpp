// What the registry of a fleet decides: which ticks of which node a generator may use.
//
// The generators of one layout form a *pool*. A *node* is the value of the datacenter and worker bits together. A
// *grant* is the right of one *membership* to use the ticks from <= t < until of a node. A membership is the lives of
// one generator in one data directory, one after another. Each life is an *incarnation* and has a random number. A
// membership is named by the incarnation that was granted its node first. A *term* is the reign of one registry
// (term.hpp, which has invariants 9 to 15).
//
// Numbered invariants
//   1. `until` of a node only grows (but for revoked()). A grant to another membership starts at or above it. So grants
//      of one node to different memberships never overlap.
//   2. An answer is committed, durably, before it is given: with its serial, and with all that it rests on.
//   3. While the registry loses no commit, and there is one registry, (1) and (2) alone keep nodes apart, and no two
//      clocks are compared (but in revoked()).
//   4. A registry that may have lost commits raises a *fence* before it answers again. Let `base` be its clock at that
//      moment (the latest of the readings in succeeded()). Assume that the registries' clocks differ by at most `bound`
//      at any time. Then each lost grant began at or below base + 2 x bound: its `from` was at most the cap, the former
//      registry's clock + bound. So it ends at or below that tick + the longest grant. No membership gets a node that
//      is new to it below that end. None keeps a node unless its grant reaches above base + 2 x bound. Such a grant was
//      followed by no grant to another membership, lost or not, because of (1).
//   5. `bound` and the longest grant are the same at a registry and at those that follow it. A change of either that
//      is lost with the grants made under it breaks (4).
//   6. A life that follows another one shows it (Request::former). The registry extends a membership for the latest
//      life that it answered, and for those that follow it. Any other life is refused as superseded: it is a copy, or
//      its request arrived late. A member that holds no grant is a newcomer, unless it is the very life that was
//      answered.
//   7. A grant's stamp (term, serial) grows along a history. A member that shows a stamp which the registry has not
//      reached proves that commits were lost.
//   8. What a member shows was given to it by a registry of this fleet: each answer has *seals*, which only a registry
//      can make and verify. So a caller cannot invent what these invariants draw conclusions from.
//
// The clock of a member serves to choose a range that it can use. A wrong one harms only that member: it is capped, and
// by (1) a late one leads to a range that is in use already, which only its own membership may have. The registry
// judges by its own clock alone, because (4) must not rest on what a member says.
#pragma once

#include "term.hpp"
#include "layout.hpp"

namespace uidgen::core {

// The right of a membership, as the member keeps it and shows it.
struct Grant {
    int64_t node;
    int64_t from;  // ticks
    int64_t until; // the first tick beyond
    uint64_t membership;
    Term term; // the stamp of the answer: the registry's term and serial
    int64_t serial;
    int64_t seal = 0; // the registry's proof that it gave this
};

// The incarnations that a member can show: the last one that was answered, and those that asked since.
constexpr uint32_t most_former = 64;
struct Former {
    uint32_t count;
    uint64_t incarnations[most_former];
};

// What a generator asks for.
struct Request {
    uint64_t incarnation;
    Former former;
    bool holds;       // `held` counts
    Grant held;       // the grant that it draws with
    int64_t clock_us; // the member's clock
    int64_t lowest;   // the lowest tick that it can use: max(clock, high-water mark + 1)
    int64_t length;   // ticks that it asks for
    FleetSeen seen;
};

// What the registry knows of a node. Every row was all zeros but for `node` before the node's first grant.
struct NodeRow {
    int64_t node;
    int64_t from;
    int64_t until;
    uint64_t membership;  // 0: no holder
    uint64_t incarnation; // the one that was answered last
    Term term;            // the stamp of that answer
    int64_t serial;
    uint64_t revoked; // the membership that was declared dead (revoked()); 0: none
};

enum class Verdict : uint8_t {
    extend,   // the member keeps its node: extended()
    newcomer, // the member gets another node: of the rows that is_free() allows, granted()
    fence,    // commits were lost: raise the fence, then judge again
    refuse,
};

struct Judgement {
    Verdict verdict;
    Refusal why; // of refuse
};

// ---------------------------------------------------------------------------------------------------------
// Ticks.
// ---------------------------------------------------------------------------------------------------------

constexpr int64_t longest_ticks(const Layout &l, const RegistryView &r) noexcept {
    return std::max(r.longest_us / l.tick_us, INT64_C(2));
}

// No grant reaches further above its beginning.
constexpr int64_t grant_ticks(const Layout &l, const RegistryView &r, const Request &a) noexcept {
    return std::clamp(a.length, INT64_C(2), longest_ticks(l, r));
}

// No grant that is new to its node begins above this tick.
constexpr int64_t cap(const Layout &l, const RegistryView &r) noexcept { return tick_at(l, r.now_us + r.bound_us); }

// Where a grant to this member begins, if it is new to the node. Negative: the layout has no tick yet.
constexpr int64_t beginning(const Layout &l, const RegistryView &r, const Request &a) noexcept {
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

// ---------------------------------------------------------------------------------------------------------
// The judgement.
// ---------------------------------------------------------------------------------------------------------

constexpr bool is_former(const Request &a, uint64_t incarnation) noexcept {
    for (uint32_t i = 0; i < a.former.count; i++)
        if (a.former.incarnations[i] == incarnation)
            return true;
    return false;
}

constexpr bool is_same_life(const Request &a, const NodeRow &row) noexcept {
    return row.membership != 0 && (row.incarnation == a.incarnation || is_former(a, row.incarnation));
}

// Whether the row's last answer was given after the one that the member shows. Of two registries with one number it is
// not known, so the row counts.
constexpr bool is_later(const NodeRow &row, const Grant &held) noexcept {
    if (row.term == held.term)
        return row.serial > held.serial;
    return row.term.number >= held.term.number;
}

// Whether the member missed the answer that granted it this node: it was lost on the way, or is still under way. It
// must be the very life that was answered. An earlier one may have used the grant, and the member be its copy.
constexpr bool is_missed(const Request &a, const NodeRow &row) noexcept {
    const bool was_answered = row.membership != 0 && row.incarnation == a.incarnation;
    return was_answered && (!a.holds || (row.node != a.held.node && is_later(row, a.held)));
}

// The request, as it is judged against the row of an answer that was missed.
constexpr Request without_held(Request a) noexcept {
    a.holds = false;
    a.held = {};
    return a;
}

// What a member may show: no stamp without its proof, and no grant of a later term than the stamp. (If a database alone
// knows the term, the stamp has no proof.)
constexpr Request with_proof(Request a) noexcept {
    a.seen = with_proof(a.seen);
    return a.holds && a.held.term.number > a.seen.term.number ? without_held(a) : a;
}

namespace detail {

// Whether a stamp is of the term before, and beyond what was reached in it.
constexpr bool is_beyond_former(const RegistryView &r, const Term &term, int64_t serial) noexcept {
    return r.former.number != 0 && term == r.former && serial > r.former_serial;
}

// Whether a stamp is beyond what this registry has reached in its term, or in the one before.
constexpr bool is_beyond(const RegistryView &r, const Term &term, int64_t serial) noexcept {
    return (term == r.term && serial >= r.own_serial) || is_beyond_former(r, term, serial);
}

// Whether the member shows an answer that the registry has lost. (One of an earlier term may have been lost before the
// fence that began this one.)
constexpr bool shows_lost_commit(const RegistryView &r, const Request &a, const NodeRow &row) noexcept {
    const bool shows_later_row = a.holds && a.held.term == r.term && (row.term != r.term || a.held.serial > row.serial);
    return shows_later_row || (a.holds && is_beyond(r, a.held.term, a.held.serial)) ||
           is_beyond(r, a.seen.term, a.seen.serial);
}

constexpr Judgement newcomer(const Layout &l, const RegistryView &r, const Request &a) noexcept {
    const int64_t from = beginning(l, r, a);
    if (from < 0)
        return {Verdict::refuse, Refusal::ahead};
    if (judge_admission(r) != Refusal::none)
        return {Verdict::refuse, judge_admission(r)};
    if (from < fence_tick(l, r))
        return {Verdict::refuse, Refusal::fenced};
    if (a.lowest >= from + grant_ticks(l, r, a))
        return {Verdict::refuse, Refusal::ahead};
    if (r.is_elsewhere)
        return {Verdict::refuse, Refusal::in_other_fleet};
    return {Verdict::newcomer, Refusal::none};
}

} // namespace detail

// Whether a grant to that tick has ended, by the registry's clock.
constexpr bool has_ended(const Layout &l, const RegistryView &r, int64_t until) noexcept {
    return until <= tick_at(l, r.now_us);
}

// Whether a server shows an answer of the term before that the registry has lost, whatever it asks for. (Of the present
// term a former primary that comes back would take an answer of its successor for a lost one.)
constexpr bool shows_lost_answer(const RegistryView &r, const FleetSeen &seen) noexcept {
    return judge_server(r, seen) == Refusal::none && detail::is_beyond_former(r, seen.term, seen.serial);
}

// What to do with a member, as decide() describes it.
constexpr Judgement judge(const Layout &l, const RegistryView &r, const Request &a, const NodeRow &row) noexcept {
    const Refusal of_server = judge_server(r, a.seen);
    if (of_server != Refusal::none)
        return {Verdict::refuse, of_server};
    if (detail::shows_lost_commit(r, a, row))
        return {Verdict::fence, Refusal::none};
    if (a.holds && row.revoked == a.held.membership)
        return {Verdict::refuse, Refusal::superseded};
    // A row whose last answer is older than the member's may name an earlier life. A later answer was given to a life
    // that the member must know, or the member is a copy or a request that arrives late.
    const bool same = a.holds ? row.membership == a.held.membership : is_missed(a, row);
    const bool judged_in_term = row.term == r.term;
    if (same && !is_same_life(a, row) && (judged_in_term || is_later(row, a.held)))
        return {Verdict::refuse, Refusal::superseded};
    // At the first request in this term the membership keeps the node only if its grant cannot have been followed by a
    // lost one, and if no other membership has it. Of two memberships the one whose grant ends later had the node
    // later, and so it has the later stamp. (A membership that was revoked may still show a grant that ends later.)
    const int64_t shown = a.holds ? a.held.until : 0;
    const int64_t end = std::max(shown, row.until);
    const bool is_latest = same || (a.holds && shown > row.until && !is_later(row, a.held));
    const bool keeps = judged_in_term ? same : is_latest && end > last_lost_beginning(l, r);
    if (!keeps)
        return detail::newcomer(l, r, a);
    if (a.lowest >= std::max(end, beginning(l, r, a) + grant_ticks(l, r, a)))
        return {Verdict::refuse, Refusal::ahead};
    // An ended grant is extended only where a newcomer would be accepted (term.hpp, 13).
    const Judgement ended = detail::newcomer(l, r, a);
    if (has_ended(l, r, end) && ended.verdict == Verdict::refuse)
        return ended;
    return {Verdict::extend, Refusal::none};
}

// Whether the caller ends the wait of a registry that has started (term.hpp, 12). `last_serial` was its last serial.
// The grant must last by both clocks, because the registry's may be set right after its start.
constexpr bool ends_wait(const Layout &l, const RegistryView &r, const Request &a, int64_t last_serial) noexcept {
    return judge_server(r, a.seen) == Refusal::none && a.holds && a.held.term == r.term &&
           a.held.serial <= last_serial && a.held.until > tick_at(l, std::max(r.now_us, a.clock_us));
}

// What a registry with another key has given (before `first`) has no proof. If this one was made because that one was
// lost with its key, a grant of it counts while the fence lasts that this one began with, and at most to its end. All
// else is forgotten, because any caller can invent it.
constexpr Request without_proof(const Layout &l, const RegistryView &r, Request a, bool is_held_proven) noexcept {
    if (a.seen.term.number < r.first)
        a.seen = {a.seen.fleet, {}, 0, 0};
    if (!a.holds || is_held_proven || a.held.term.number >= r.first)
        return a;
    a.held.until = std::min(a.held.until, fence_tick(l, r));
    return r.now_us >= fence_end_us(r, r.unproven_base_us) || a.held.from >= a.held.until ? without_held(a) : a;
}

// The judgement, and the request and the row that it is about.
struct Ruling {
    Judgement judgement;
    Request request;
    NodeRow row;
};

// There are two rows that a member may keep:
//   held    that of the node that it holds
//   missed  that of an answer that it missed (is_missed(); of several rows the one with the latest stamp)
// A member that holds a node is judged against the first. If that makes it a newcomer and there is the second row, it
// is judged against the second by without_held(). So a request that is repeated takes no second node. A member that
// holds none is judged against the second alone.
constexpr Ruling decide(const Layout &l, const RegistryView &r, const Request &a, const NodeRow &held,
                        const NodeRow &missed) noexcept {
    const NodeRow &row = a.holds ? held : missed;
    const Judgement judgement = judge(l, r, a, row);
    if (!a.holds || judgement.verdict != Verdict::newcomer || !is_missed(a, missed))
        return {judgement, a, row};
    return {judge(l, r, without_held(a), missed), without_held(a), missed};
}

// ---------------------------------------------------------------------------------------------------------
// Rows.
// ---------------------------------------------------------------------------------------------------------

// The row after the member has kept its node. A life that got the node twice, with another membership in between, has
// one number for both grants. So the later beginning counts. An ended grant begins at the present tick, because the
// ticks between may be those of a membership that another registry has admitted.
constexpr NodeRow extended(const Layout &l, const RegistryView &r, const Request &a, const NodeRow &before) noexcept {
    const bool same = before.membership != 0 && (!a.holds || before.membership == a.held.membership);
    const int64_t shown_from = a.holds ? a.held.from : before.from;
    const int64_t from = same ? std::max(before.from, shown_from) : shown_from;
    const int64_t known = std::max(before.until, a.holds ? a.held.until : 0);
    const int64_t until = std::max(known, beginning(l, r, a) + grant_ticks(l, r, a));
    return {before.node,
            has_ended(l, r, known) ? std::max(from, beginning(l, r, a)) : from,
            std::min(until, largest(l.time_bits) + 1),
            same ? before.membership : a.held.membership,
            a.incarnation,
            r.term,
            r.own_serial,
            before.revoked};
}

// A node whose last grant ends by that tick is free for a newcomer. After a wait that a member has ended, the tick is
// when the registry granted last before its start: another one may have extended later grants (term.hpp, 12).
constexpr int64_t free_from(const Layout &l, const RegistryView &r, const Request &a) noexcept {
    const int64_t from = beginning(l, r, a);
    return r.ended_by_us == 0 ? from : std::min(from, tick_at(l, r.ended_by_us));
}

// Whether a newcomer may have that node.
constexpr bool is_free(const Layout &l, const RegistryView &r, const Request &a, const NodeRow &row) noexcept {
    return row.until <= free_from(l, r, a);
}

// The row after a newcomer was granted a node that is_free() for it.
constexpr NodeRow granted(const Layout &l, const RegistryView &r, const Request &a, const NodeRow &row) noexcept {
    const int64_t from = beginning(l, r, a);
    return {row.node,      from,          std::min(from + grant_ticks(l, r, a), largest(l.time_bits) + 1),
            a.incarnation, a.incarnation, r.term,
            r.own_serial,  row.revoked};
}

// Whether a member that joins claims more of a node than a grant would give it. One that is not `ahead` never does: it
// used the ticks below its high-water mark, and its lowest tick is above that.
constexpr bool claims_too_much(const Layout &l, const RegistryView &r, const Request &a, int64_t until) noexcept {
    return until > beginning(l, r, a) + grant_ticks(l, r, a);
}

// The row after a member has said that it used the node's ticks below `until` before it joined the fleet. A membership
// that had the node loses it, because the ticks up to there are not its own. A node that is in use is left as it is.
constexpr NodeRow used_before(const Layout &l, const RegistryView &r, const Request &a, NodeRow row,
                              int64_t until) noexcept {
    if (!is_free(l, r, a, row) || until <= row.until)
        return row;
    row.until = std::min(until, largest(l.time_bits) + 1);
    row.membership = 0;
    row.incarnation = 0;
    return row;
}

// What a row that ends there says to succeeded(): an end that a grant of longest_us had, had it begun where this one
// did at the latest.
constexpr int64_t latest_end_us(const Layout &l, const RegistryView &r, int64_t until) noexcept {
    return start_of(l, until - longest_ticks(l, r)) + r.longest_us;
}

// The row after its holder was declared dead: its ticks end where its clock + `ahead` can have been. `ahead` is how
// many ticks above its clock it was allowed to draw: its max_ahead (half of the length that it asked for is at least
// that). The holder must not live, and its clock must have agreed with the registry's within the bound.
constexpr NodeRow revoked(const Layout &l, const RegistryView &r, const NodeRow &row, int64_t ahead) noexcept {
    const int64_t until = std::min(row.until, tick_at(l, r.now_us + r.bound_us) + ahead + 1);
    return {row.node, row.from, until, 0, 0, r.term, r.own_serial, row.membership != 0 ? row.membership : row.revoked};
}

// ---------------------------------------------------------------------------------------------------------
// How many nodes one login may have.
// ---------------------------------------------------------------------------------------------------------

constexpr int64_t most_nodes = 65536;

// While few nodes are left, a login gets no more than its share of them, so no login leaves the others without.
constexpr bool are_few_left(int64_t nodes, int64_t used) noexcept { return nodes - used < nodes / 4; }
constexpr bool is_full_share(int64_t nodes, int64_t own, int64_t logins) noexcept {
    return logins > 1 && own >= std::max(nodes / logins, INT64_C(1));
}

} // namespace uidgen::core
