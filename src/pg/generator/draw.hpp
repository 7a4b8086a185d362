// Drawing from a generator: draw.cpp has the loop around core's decide(), with its records and its waits. The node of a
// try is in node_grant.cpp, what is said of the clock in clock.cpp, cached mode in cached.cpp and refiller.cpp.
#pragma once

#include "memory/generator_state.hpp"
#include "session/session.hpp"

namespace uidgen::pg {

struct Drawn {
    core::Run run; // positions
    core::IdEncoder encoder;
};

// Takes up to `want` positions (>= 1). Waits for the clock or for durability as needed. An error takes none. Leaves a
// window for the next calls within the same tick, unless it drew from the backup worker.
Drawn draw(SessionEntry *e, uint64_t want);

// The same in cached mode: from the run that all sessions share, else from the ring, else by the generator's policy for
// an empty ring. Leaves a window on the rest of the run. Throws away what is older than half of max_staleness, so that
// the fast path may continue for the other half without the wall clock (docs/design.md, P4).
Drawn draw_cached(SessionEntry *e, uint64_t want);

// ---------------------------------------------------------------------------------------------------------
// The node that the ids of one try carry: the generator's own, or in a fleet that of its grant.
// A try reads one grant, after the bounds of the generator's word and before the clock (docs/design.md, P1 16).
// ---------------------------------------------------------------------------------------------------------

struct NodeGrant {
    bool in_fleet; // else `view` holds all ticks
    GrantView view;
};

NodeGrant read_node_grant(SessionEntry *e);

// A grant's node that the generator's row of worker_node does not show yet gets a row.
void show_node(SessionEntry *e, const GrantView &grant);

// The grant of a generator for a reader that has no entry, under the slot's lock; in a fleet without a grant: the
// generator has not drawn yet.
NodeGrant present_grant(const Slot *slot) REQUIRES_SHARED(slot_lock);

// ---------------------------------------------------------------------------------------------------------
// What one call asks for and has read, and its steps.
// ---------------------------------------------------------------------------------------------------------

struct DrawCall {
    SessionEntry *e;
    uint64_t want;
    core::Durability level;
    int64_t now_us;
    int64_t offset_us; // of the wall clock above the monotonic clock
    NodeGrant grant;   // what this try draws with
    core::ClockState view;
    // uidgen.max_wait bounds the call, on the monotonic clock.
    int64_t started_us; // when the call first waited for a clock or read it again; 0: not yet
    uint64_t waits;     // a bit for each Stat that has counted this call as one that waits
    bool rejected;      // one reading of the wall clock was rejected as implausible
    uint32_t tries;     // how many tries have failed
    Drawn drawn;
};

// Reads the clock, the generator's word and its grant. Reports a clock that went back or has caught up.
void read_state(DrawCall *call);

// Between two tries of a call: honours cancel, and ends a call that has tried for too long.
void before_next_try(DrawCall *call);

// Whether the clock's offset above the monotonic clock is plausible. If the offset is far larger than before, the check
// takes some milliseconds. False: try again. Error if readings have been implausible for longer than uidgen.max_wait,
// or if the clock has jumped by more than uidgen.max_clock_jump.
bool clock_is_plausible(DrawCall *call);

// Executes the decision. True: positions were drawn. False: try again.
bool execute(DrawCall *call, const core::Decision &decision);

// Writes a lease inside the call's grant. Ahead of its use, it does not wait for the flush.
void reserve_in_grant(DrawCall *call, int64_t until_tick, bool ahead);

// Makes what is written durable. The time that this takes does not count against the call's bound.
void confirm_lease(DrawCall *call, core::Durability level);

// The encoder for ids with the node of the call's grant or the generator's own. Draws the number that nodes follow from
// if there is none yet. A caller fetches the encoder before it takes positions, so that no draw fails or sleeps between
// a position and its node.
core::IdEncoder encoder_for(const DrawCall &call, bool backup);

// How much longer the call may wait; 0: no longer. Counts the call once for each cause to wait, which is a Stat.
int64_t left_to_wait_us(DrawCall *call, Stat waits, int64_t *waited_us);

// ---------------------------------------------------------------------------------------------------------
// What is said of the clock: in the log, and in the hint of an error.
//
// A line in the log and a counter say when the clock goes back below what a generator has used (core::ticks_back()),
// and when it has caught up. A single bad reading is none: at each change the clock is read once more, and must show
// the same. A session reads clock_changes, then what the generator has used, then the clock. So the session
// whose swap counts the change has seen the change itself, and writes the line.
// ---------------------------------------------------------------------------------------------------------

inline bool is_behind(uint64_t changes) { return changes % 2 == 1; }

// Writes the line and counts, if the change is confirmed. Takes no position, so an error loses none.
void note_clock_change(const SessionEntry *e, uint64_t changes, const core::ClockState &view);

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

// ---------------------------------------------------------------------------------------------------------
// The refiller: a background process that fills the rings of generators in cached mode ahead of time. It only moves
// positions inside a durable lease from the generator's word into the ring. It cannot extend a lease; callers do.
// ---------------------------------------------------------------------------------------------------------

// The limit of what may be taken from the generator's word now: durable on this server, at most max_ahead above the
// clock, and inside the grant.
uint64_t refill_limit(const GeneratorState &generator, const GrantView &grant, int64_t now_us);

// A refill: moves runs from the generator's word into its ring, with positions from `floor` on and below `limit`, and
// counts itself in one of the ring's counters. Returns how many, runs_at_a_time or fewer. *left_over becomes the first
// position of a run that found no room, because other processes refilled too.
constexpr uint64_t runs_at_a_time = 256; // some ten microseconds
uint64_t refill_ring(GeneratorState *generator, core::Ring<> ring, uint64_t floor, uint64_t limit,
                     std::atomic<uint64_t> *refills, uint64_t *left_over);

// The first position that is fresh enough to be handed out now.
uint64_t fresh_from(const GeneratorState &generator, int64_t now_us);

} // namespace uidgen::pg
