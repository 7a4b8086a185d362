// Whether the wall clock is believed, what the log says of it, and why a draw fails.
//
// The wall clock is compared with the monotonic clock before a lease far above the last one, and before the end of time
// is reported. A clock that was really set shows the same time again a little later.
//
// A line in the log and a counter say when the clock goes back below what a generator has used (core::ticks_back()),
// and when it has caught up. A single bad reading is none: at each change the clock is read once more, and must show
// the same. A session reads clock_changes, then what the generator has used, then the clock. So the session
// whose swap counts the change has seen the change itself, and writes the line.
#pragma once

#include "draw.hpp"

namespace uidgen::pg {

// Verifies the reading of a try as far as the action depends on it. A reading whose offset above the monotonic clock is
// far larger than before, or that shows a clock which moved backwards, is compared with others for some milliseconds
// (reread_clock()). Unless it moved backwards, its offset becomes that of the server's state, and a jump is logged
// (accept_offset()). False: the reading was rejected, so the call tries again. Error if readings have been rejected for
// longer than uidgen.max_wait, or if the clock has jumped forward by more than uidgen.max_clock_jump.
bool verify_clock(DrawCall *call, const DrawReading &reading, core::ClockAction action)
    EXCLUDES(page_lock, table_lock, slot_lock, state_lock);

inline bool is_behind(uint64_t changes) { return changes % 2 == 1; }

// Writes a line in the log and counts in an atomic of the slot, if the change is confirmed. May read catalogs. Takes no
// position, so an error loses none.
void note_clock_change(const SessionEntry *entry, uint64_t changes, const core::ClockState &view);

// Whether the outcome is `done`. For one that ends the call: counts the refusal in the slot, and raises the error, for
// which it may read the page and the slot, each under its lock (clock_hint()).
bool conclude_try(DrawCall *call, const DrawReading &reading, const core::Decision &decision, Outcome outcome)
    EXCLUDES(page_lock, table_lock, slot_lock, state_lock);

} // namespace uidgen::pg
