// Notices when the clock goes back below what a generator has used, and when it has caught up: one line in the server's
// log each, and a counter.
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

namespace uidgen::pg {

inline bool is_behind(uint64_t changes) { return changes % 2 == 1; }

// The clock jumped forward by moved_us, and draws go on: a line in the log, and a counter. There is one clock, so it is
// not a generator's.
void note_clock_jump(int64_t now_us, int64_t moved_us);

// Writes the line and counts, if the change is confirmed. Takes no position, so an error loses none.
void note_clock_change(const SessionEntry *e, uint64_t changes, const core::ClockState &view);

// After each reading of the clock.
inline void watch_clock(const SessionEntry *e, uint64_t changes, const core::ClockState &view) {
    const bool shows_behind = core::ticks_back(e->slot->generator.config.policy, view) > 0;
    if (unlikely(shows_behind != is_behind(changes)))
        note_clock_change(e, changes, view);
}

} // namespace uidgen::pg
