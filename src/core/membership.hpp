// What a member of a fleet does with the answers of its registry: one generator's membership.
//
// Numbered invariants
//   1. A start begins a new incarnation and stores it, before it asks (begin_incarnation()). So of two lives that
//      follow one another the registry can tell which is the later one, and a copy of a life does not follow
//      it.
//   2. A grant counts only while the data directory, host and timeline are those that the file was written for. The
//      caller checks it. Otherwise, and for a generator without a high-water mark, a new line begins (begin_line()),
//      because the holder of the grant may be alive.
//   3. A grant is stored before it is used. It then counts until its end, whether the registry can be reached or not.
//   4. An answer of an earlier term than one that was seen is ignored. So is one that is older than the grant in hand,
//      one to an earlier life, and one of another fleet. A life that was refused as superseded ignores all answers.
//   5. A refusal has a serial of its own, so that (4) can tell whether it is old. It need not be durable at the
//      registry. So a member does not show it: it would be taken for an answer that was lost.
#pragma once

#include "grant.hpp"

namespace uidgen::core {

struct Membership {
    uint64_t incarnation;
    uint32_t former_count; // incarnations since the last answer, beginning with the one that was answered
    uint64_t former[most_former];
    bool holds;
    bool superseded; // refused as such: draws nothing until begin_line() is called by the administrator
    Grant held;
};

// What a server knows of its fleet, from the answers to all its members.
struct FleetSeen {
    uint64_t fleet; // 0: none yet
    int64_t term;
    int64_t serial;   // of the latest grant in that term; 0: none
    int64_t seal = 0; // of these two
};

// Begins as a newcomer. `fresh` is a random number that was never used.
constexpr void begin_line(Membership *m, uint64_t fresh) noexcept {
    *m = {};
    m->incarnation = fresh;
}

// The next life of the same line. If too many lives have passed without an answer, a new line begins.
constexpr void begin_incarnation(Membership *m, uint64_t fresh) noexcept {
    if (m->former_count == most_former) {
        begin_line(m, fresh);
        return;
    }
    m->former[m->former_count++] = m->incarnation;
    m->incarnation = fresh;
}

constexpr Ask ask_of(const Membership &m, const FleetSeen &seen, int64_t clock_us, int64_t lowest,
                     int64_t length) noexcept {
    Ask a = {};
    a.incarnation = m.incarnation;
    a.former_count = m.former_count;
    for (uint32_t i = 0; i < m.former_count; i++)
        a.former[i] = m.former[i];
    a.holds = m.holds;
    a.held = m.held;
    a.clock_us = clock_us;
    a.lowest = lowest;
    a.length = length;
    a.fleet = seen.fleet;
    a.term = seen.term;
    a.serial = seen.serial;
    a.seal = seen.seal;
    return a;
}

// The registry's answer. A refusal has no grant.
struct Answer {
    Refusal why;
    uint64_t incarnation; // of the ask
    uint64_t fleet;
    Grant grant;      // with the stamp of the answer, even in a refusal
    int64_t seal = 0; // of the stamp, with serial 0 in a refusal
};

enum class Accepted : uint8_t {
    grant,       // the membership has changed, and must be stored before it is used
    refused,     // the membership is unchanged; it may have become superseded
    ignored,     // by invariant 4
    other_fleet, // the registry is that of another fleet
};

constexpr Accepted accept(Membership *m, FleetSeen *seen, const Answer &answer) noexcept {
    if (seen->fleet != 0 && answer.fleet != seen->fleet)
        return Accepted::other_fleet;
    const bool is_old = answer.grant.term < seen->term ||
                        (m->holds && answer.grant.term == m->held.term && answer.grant.serial <= m->held.serial);
    if (is_old || m->superseded || answer.incarnation != m->incarnation)
        return Accepted::ignored;
    seen->fleet = answer.fleet;
    const int64_t durable = answer.why == Refusal::none ? answer.grant.serial : 0;
    if (answer.grant.term > seen->term || durable > seen->serial) {
        seen->serial = durable;
        seen->seal = answer.seal;
    }
    seen->term = answer.grant.term;
    if (answer.why != Refusal::none) {
        m->superseded = answer.why == Refusal::superseded;
        return Accepted::refused;
    }
    const bool same_node = m->holds && m->held.node == answer.grant.node && m->held.line == answer.grant.line;
    const int64_t until = same_node ? std::max(m->held.until, answer.grant.until) : answer.grant.until;
    m->held = answer.grant;
    m->held.until = until;
    m->holds = true;
    m->former_count = 0;
    return Accepted::grant;
}

} // namespace uidgen::core
