// Notices when the clock goes back below what a generator has used, and when it has caught up: one line in the server's
// log each, and counters.
//
// The clock is behind while core::ticks_back() says so, which is as long as the policy when_back applies. One tick is
// enough: a wall clock that the system slews never goes back, so a reading below an earlier one comes from a clock that
// was set. A single bad reading is none: at each change the clock is read once more, and must show the same.
//
// Why there is one line for each change, however many sessions draw:
//   1. ClockEvents::changes counts the changes. A change is one swap from n to n + 1, and the session that makes the
//      swap writes the line.
//   2. A session reads n, then what the generator has used, then the clock. So it has seen the change itself, and not
//      an earlier one: a session that sleeps meanwhile finds another n.
//   3. behind_from is raised before the swap, by sessions that have read an even n. So it stands while n is odd.
//
// Only the slow path looks. That is enough: the fast path of snowflake mode ends when the clock leaves its tick in
// either direction. What it hands out at the last tick is counted by the word's positions: while the clock is behind,
// they follow one another without a gap, unless another command moves the counter, or another grant begins. In cached
// mode they are the positions that go into the ring.
#pragma once

#include "session/session.hpp"

namespace uidgen::pg {

inline bool is_behind(uint64_t changes) { return changes % 2 == 1; }

// Writes the line and counts, if the change is confirmed. Takes no position, so an error loses none.
void note_clock_change(const SessionEntry *e, uint64_t changes, const core::ClockState &view);

// After each reading of the clock.
inline void watch_clock(const SessionEntry *e, uint64_t changes, const core::ClockState &view) {
    const bool shows_behind = core::ticks_back(e->slot->generator.config.policy, view) > 0;
    if (unlikely(shows_behind != is_behind(changes)))
        note_clock_change(e, changes, view);
}

// A term was begun because the clock is behind: nothing of it is ahead of the clock.
void note_new_term(const SessionEntry *e, const core::ClockState &view, int64_t term);

// A call fails because of the clock. `cause` is refused_clock or refused_rate.
void count_clock_error(Slot *slot, Stat cause);

// How many positions were handed out since the clock was last found behind, up to `last`. A new term leaves a gap,
// which does not count. `config` is the slot's, or a copy of it.
inline uint64_t made_since_behind(const GeneratorState &generator, const GeneratorConfig &config, uint64_t last) {
    const uint64_t from = generator.clock.behind_from.load(std::memory_order_relaxed);
    return last >= from && term_of(config, last) == term_of(config, from) ? last + 1 - from : 0;
}

} // namespace uidgen::pg
