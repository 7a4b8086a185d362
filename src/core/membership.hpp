// What a member of a fleet does with the answers of its registry: one generator's membership. And which registry a
// server goes to, if more than one answers.
//
// Numbered invariants
//   1. A start begins a new incarnation and stores it, before it asks (begin_incarnation()). So of two lives that
//      follow one another the registry can tell which is the later one, and a copy of a life does not follow it.
//   2. A grant counts only while the data directory, host and timeline are those that it was stored for. The caller
//      checks it. Otherwise, and for a generator without a high-water mark, a new membership begins
//      (begin_membership()), because the holder of the grant may be alive.
//   3. A grant is stored before it is used. It then counts until its end, whether the registry can be reached or not.
//   4. A member never goes back: an answer of an earlier term than one that was seen is ignored, whatever it says. So
//      is one of a rival of that term, one that is older than the grant in hand, one to an earlier life, and one of
//      another fleet. A life that was refused as superseded ignores all answers. What an unclaimed registry answers
//      says nothing of the fleet: it may be a copy, whose serials the registry has not reached.
//   5. A newcomer, a member whose grant has ended or that was refused, and a server that connects, says hello to every
//      registry that it can reach, at the same time, and goes to the one with the largest term (best_registry()). It
//      shows that term to the others, and tells that one when the others granted last (term.hpp, 11). A generator whose
//      grant lasts renews it where its server is connected. A connected server says hello to all of them at least once
//      in half the longest grant.
//   6. A later term of its fleet counts from the hello of its registry on (seen_after_hello()). Otherwise a server that
//      needed nothing there yet would end the wait of a former registry (term.hpp, 12), although the later one has
//      admitted newcomers without a fence, by the word of an administrator.
#pragma once

#include "grant.hpp"

namespace uidgen::core {

struct Membership {
    uint64_t incarnation;
    bool holds;
    bool superseded; // refused as such: draws nothing until a new one begins
    Grant held;
    Former former; // incarnations from the one that was answered last; the last field, as grant_file.cpp writes it
};

// Begins as a newcomer. `fresh` is a random number that was never used.
constexpr void begin_membership(Membership *m, uint64_t fresh) noexcept {
    *m = {};
    m->incarnation = fresh;
}

// The next life of the same membership. If too many lives have passed without an answer, a new one begins.
constexpr void begin_incarnation(Membership *m, uint64_t fresh) noexcept {
    if (m->former.count == most_former) {
        begin_membership(m, fresh);
        return;
    }
    m->former.incarnations[m->former.count++] = m->incarnation;
    m->incarnation = fresh;
}

constexpr Request request_of(const Membership &m, const FleetSeen &seen, int64_t clock_us, int64_t lowest,
                             int64_t length) noexcept {
    return {m.incarnation, m.former, m.holds, m.held, clock_us, lowest, length, seen};
}

// The registry's answer. A refusal has no grant.
struct Answer {
    Refusal why;
    uint64_t incarnation; // of the request
    uint64_t fleet;
    Grant grant;      // with the stamp of the answer, even in a refusal
    int64_t seal = 0; // of the stamp
};

// Whether an answer is of an earlier term than the server has seen in that fleet (4): its registry does not count. A
// server that has only a database's word for the term takes it for one of that fleet.
constexpr bool is_past(const FleetSeen &seen, uint64_t fleet, const Term &term) noexcept {
    return (seen.fleet == 0 || fleet == seen.fleet) && term.number < seen.term.number;
}

// What a server has seen after an answer that counts.
constexpr FleetSeen seen_after(const FleetSeen &seen, const Answer &answer) noexcept {
    const Grant &grant = answer.grant;
    const bool is_news = grant.term != seen.term || grant.serial > seen.serial;
    return is_news ? FleetSeen{answer.fleet, grant.term, grant.serial, answer.seal} : seen;
}

// The same after a block of values. A server without a fleet keeps the number alone, as a database does, because it may
// have segments of another fleet next.
constexpr FleetSeen seen_after_block(const FleetSeen &seen, const Answer &answer) noexcept {
    if (seen.fleet == answer.fleet)
        return seen_after(seen, answer);
    return seen.fleet == 0 ? FleetSeen{0, {answer.grant.term.number, 0}, 0, 0} : seen;
}

// Whether the fleet must know of a registry's term. An unclaimed one is a copy, and one without a standby may be,
// unless it has granted in its term. (Of others that cannot be told, because the number may be above the clock.)
constexpr bool may_have_granted(const Answer &hello, int64_t granted_last_us) noexcept {
    return hello.why == Refusal::no_standby ? granted_last_us >= hello.grant.term.number
                                            : hello.why != Refusal::unclaimed;
}

// The same after the hello of the registry that the server goes to, if it may_have_granted() (6). A server without a
// fleet keeps nothing, because a registry of whatever fleet may say hello.
constexpr FleetSeen seen_after_hello(const FleetSeen &seen, const Answer &hello) noexcept {
    const bool is_later = hello.fleet == seen.fleet && hello.grant.term.number > seen.term.number;
    return is_later ? seen_after(seen, hello) : seen;
}

// True: the membership has a grant of that answer, and must be stored before it is used. False: the answer is ignored
// (4), or a refusal, by which the membership may have become superseded.
constexpr bool accept(Membership *m, FleetSeen *seen, const Answer &answer) noexcept {
    const Grant &grant = answer.grant;
    const bool is_of_other = (seen->fleet != 0 && answer.fleet != seen->fleet) || are_rivals(grant.term, seen->term);
    const bool is_old = is_past(*seen, answer.fleet, grant.term) ||
                        (m->holds && grant.term == m->held.term && grant.serial <= m->held.serial);
    if (is_of_other || is_old || answer.why == Refusal::unclaimed || m->superseded ||
        answer.incarnation != m->incarnation)
        return false;
    *seen = seen_after(*seen, answer);
    if (answer.why != Refusal::none) {
        m->superseded = answer.why == Refusal::superseded;
        return false;
    }
    const bool same_node = m->holds && m->held.node == grant.node && m->held.membership == grant.membership;
    const int64_t until = same_node ? std::max(m->held.until, grant.until) : grant.until;
    m->held = grant;
    m->held.until = until;
    m->holds = true;
    m->former.count = 0;
    return true;
}

// ---------------------------------------------------------------------------------------------------------
// Which registry.
// ---------------------------------------------------------------------------------------------------------

// How a server answers to a hello.
struct Hello {
    bool answers; // false: it is no registry, so the rest does not count
    bool open;    // it may grant
    uint64_t server;
    uint64_t fleet;
    Term term;
    int64_t granted_last_us; // by its clock; 0: never
};

constexpr int no_registry = -1;
struct Best {
    int index;     // no_registry: none
    bool is_alone; // false: newcomers must wait, because two registries cannot be told apart
};

namespace detail {

constexpr bool is_of(const Hello &h, const FleetSeen &seen) noexcept {
    return h.answers && (seen.fleet == 0 || h.fleet == seen.fleet) && !is_past(seen, h.fleet, h.term);
}

constexpr bool is_better(const Hello &a, const Hello &b, const FleetSeen &seen) noexcept {
    if (a.term.number != b.term.number)
        return a.term.number > b.term.number;
    if ((a.term == seen.term) != (b.term == seen.term))
        return a.term == seen.term;
    return a.open && !b.open;
}

} // namespace detail

// The registry with the largest term, whether it is open or not: another one must not be used, nor one whose term is
// smaller than one that was seen. A server that is named twice answers twice.
constexpr Best best_registry(const Hello *hellos, int count, const FleetSeen &seen) noexcept {
    Best best = {no_registry, true};
    for (int i = 0; i < count; i++)
        if (detail::is_of(hellos[i], seen) &&
            (best.index == no_registry || detail::is_better(hellos[i], hellos[best.index], seen)))
            best.index = i;
    for (int i = 0; i < count && best.index != no_registry; i++) {
        const Hello &h = hellos[i];
        const Hello &chosen = hellos[best.index];
        const bool is_other = detail::is_of(h, seen) && h.open && h.server != chosen.server;
        if (is_other && (h.fleet != chosen.fleet || h.term.number == chosen.term.number))
            best.is_alone = false;
    }
    return best;
}

// Of the registries of the best one's fleet with another term, the one that granted last; no_registry: there is none.
constexpr int last_of_others(const Hello *hellos, int count, int best) noexcept {
    int last = no_registry;
    for (int i = 0; i < count; i++)
        if (hellos[i].answers && hellos[i].fleet == hellos[best].fleet && hellos[i].term != hellos[best].term &&
            (last == no_registry || hellos[i].granted_last_us > hellos[last].granted_last_us))
            last = i;
    return last;
}

} // namespace uidgen::core
