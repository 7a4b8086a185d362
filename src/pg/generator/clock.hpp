// What is said of the clock: in the log, and in the hint of an error.
//
// The library notices when the clock goes back below what a generator has used, and when it has caught up: one line in
// the server's log each, and a counter.
//
// The clock is behind while core::ticks_back() says so, which is as long as the policy when_back applies. One tick is
// enough: a wall clock that the system slews never goes back, so a reading below an earlier one comes from a clock that
// was set. A single bad reading is none: at each change the clock is read once more, and must show the same.
//
// There is one line for each change, however many sessions draw: ClockEvents::changes counts the changes, a change is
// one swap from n to n + 1, and the session that makes the swap writes the line. A session reads n, then what the
// generator has used, then the clock. So it has seen the change itself, and not an earlier one: a session that sleeps
// meanwhile finds another n.
//
// Only the slow path looks. That is enough: the fast path of snowflake mode ends when the clock leaves its tick in
// either direction.
#pragma once

#include "session/session.hpp"
#include "core/layout.hpp"
#include "base/postgres.hpp"

namespace uidgen::pg {

inline bool is_behind(uint64_t changes) { return changes % 2 == 1; }

// The clock jumped forward by moved_us, and draws continue: a line in the log, and a counter. There is one clock, so it
// is not a generator's.
void note_clock_jump(int64_t now_us, int64_t moved_us);

// Writes the line and counts, if the change is confirmed. Takes no position, so an error loses none.
void note_clock_change(const SessionEntry *e, uint64_t changes, const core::ClockState &view);

// After each reading of the clock.
inline void watch_clock(const SessionEntry *e, uint64_t changes, const core::ClockState &view) {
    const bool shows_behind = core::ticks_back(e->slot->generator.config.policy, view) > 0;
    if (unlikely(shows_behind != is_behind(changes)))
        note_clock_change(e, changes, view);
}

// What to do about a generator that is ahead of the clock: a hint. `soon` is the one for a generator that is ahead by
// minutes, or has not reached its epoch. For all others another generator is the way out.
const char *clock_hint(const SessionEntry *e, int64_t ahead_us, const char *soon);

// Statements that a hint shows: they create another generator like one that cannot draw, with the layout of that one,
// and its preset's policies. The name is one that is free.
//
// Ids of one layout are kept apart by the node. A layout without node bits gets an epoch that is earlier by how far the
// generator is ahead of the clock. So the ids of the other generator are above those of this one.
struct SimilarGenerator {
    const char *name; // qualified, as a literal
    const char *statements;
    bool is_above;
};
SimilarGenerator similar_generator(Oid generator, const core::Layout &layout, int64_t ahead_us);

} // namespace uidgen::pg
