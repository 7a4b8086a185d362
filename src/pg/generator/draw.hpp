// Drawing from a generator: the loop around core's decide(), with its clock, its records and its waits.
#pragma once

#include "clock.hpp"
#include "node_grant.hpp"

namespace uidgen::pg {

struct Drawn {
    core::Run run; // positions
    core::IdEncoder encoder;
};

// Takes up to `want` positions (>= 1). Waits for the clock or for durability as needed. An error takes none. Leaves a
// window for the next calls within the same tick, unless it drew from the backup worker.
Drawn draw(SessionEntry *e, uint64_t want);

// Shared with cached.cpp.

// Bounds a call by uidgen.max_wait, on the monotonic clock.
struct BoundedWait {
    int64_t started_us; // when the call first waited for a clock or read it again; 0: not yet
    uint64_t counted;   // a bit for each Stat that has counted this call as one that waits
    bool rejected;      // one reading of the wall clock was rejected as implausible
    uint32_t tries;     // how many tries have failed
};

// What one call asks for and has read.
struct Call {
    SessionEntry *e;
    uint64_t want;
    core::Durability level;
    int64_t now_us;
    int64_t offset_us; // of the wall clock above the monotonic clock
    NodeGrant grant;   // what this try draws with
    core::ClockState view;
    BoundedWait wait;
    Drawn drawn;
};

// Reads the clock, the generator's word and its grant. Reports a clock that went back or has caught up.
void read_state(Call *call);

// Positions were drawn with the call's reading of the clock.
void note_seen(const Call &call);

// Between two tries of a call: honours cancel, and ends a call that has tried for too long.
void before_next_try(Call *call);

// Whether the clock's offset above the monotonic clock is plausible. If the offset is far larger than before, the check
// takes some milliseconds. False: try again. Error if readings have been implausible for longer than uidgen.max_wait,
// or if the clock has jumped by more than uidgen.max_clock_jump.
bool clock_is_plausible(Call *call);

// Executes the decision. True: positions were drawn. False: try again.
bool execute(Call *call, const core::Decision &decision);

// Writes the next lease ahead of its use, unless the clock reading behind it is implausible.
void reserve_if_plausible(Call *call, int64_t until_tick);

// Makes what is written durable. The time that this takes does not count against the call's bound.
void confirm_lease(Call *call, core::Durability level);

// The encoder for ids with the node of the call's grant or the generator's own. Draws the number that nodes follow from
// if there is none yet. A caller fetches the encoder before it takes positions, so that no draw fails or sleeps between
// a position and its node.
core::IdEncoder encoder_for(const Call &call, bool backup);

// How much longer the call may wait; 0: no longer. Counts the call once for each cause to wait, which is a Stat.
int64_t left_to_wait_us(Call *call, Stat waits, int64_t *waited_us);

inline bool has_waited(const Call &call, Stat waits) { return (call.wait.counted >> index(waits) & 1) != 0; }

} // namespace uidgen::pg
