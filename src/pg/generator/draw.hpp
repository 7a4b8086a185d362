// Drawing from a generator: draw.cpp has the loop around core's decide(), with its records and its waits. The node of a
// try is in node_grant.cpp, what is said of the clock in clock.cpp, cached mode in cached.cpp and refiller.cpp.
#pragma once

#include "memory/memberships.hpp"
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
// an empty ring. Leaves a window on the rest of the run. When the wall clock is read:
//   1. The fast path does not read it, only the coarse monotonic clock (3).
//   2. The slow path (a transaction's first call, a new run, an empty ring) reads it, and throws away what is older
//      than half of max_staleness.
//   3. The fast path may then continue for the other half. It measures that time by the coarse monotonic clock,
//      because the wall clock may be set meanwhile.
// So no id is older than max_staleness when it is handed out, even without a refiller.
Drawn draw_cached(SessionEntry *e, uint64_t want);

// ---------------------------------------------------------------------------------------------------------
// The node that the ids of one try carry: the generator's own, or in a fleet that of its grant.
//
// While uidgen.registry is set, a generator draws inside grants (memory/memberships.hpp), whose ticks bound what
// decide() allows. A try reads one grant, after the bounds of the generator's word and before the clock. So joining a
// fleet needs no pause (docs/design.md, P1 16).
// ---------------------------------------------------------------------------------------------------------

struct NodeGrant {
    bool in_fleet; // else `view` holds all ticks
    GrantView view;
};

NodeGrant read_node_grant(SessionEntry *e);

// The encoder for ids of that grant. A node that the generator's row of worker_node does not show yet gets a row.
core::IdEncoder granted_encoder(SessionEntry *e, const NodeGrant &grant, bool backup);

// The grant of a generator for a reader that has no entry, under the slot's lock; in a fleet without a grant: the
// generator has not drawn yet.
NodeGrant present_grant(const Slot *slot);

// ---------------------------------------------------------------------------------------------------------
// What one call asks for and has read, and its steps.
// ---------------------------------------------------------------------------------------------------------

// Bounds a call by uidgen.max_wait, on the monotonic clock.
struct BoundedWait {
    int64_t started_us; // when the call first waited for a clock or read it again; 0: not yet
    uint64_t counted;   // a bit for each Stat that has counted this call as one that waits
    bool rejected;      // one reading of the wall clock was rejected as implausible
    uint32_t tries;     // how many tries have failed
};

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

// ---------------------------------------------------------------------------------------------------------
// What is said of the clock: in the log, and in the hint of an error.
//
// A line in the log and a counter say when the clock goes back below what a generator has used, and when it has caught
// up. The clock is behind while core::ticks_back() says so, which is as long as the policy when_back applies. A single
// bad reading is none: at each change the clock is read once more, and must show the same. ClockEvents::changes counts
// the changes. A session reads it, then what the generator has used, then the clock. So the session whose swap counts
// the change has seen the change itself, and writes the line.
// ---------------------------------------------------------------------------------------------------------

inline bool is_behind(uint64_t changes) { return changes % 2 == 1; }

// Writes the line and counts, if the change is confirmed. Takes no position, so an error loses none.
void note_clock_change(const SessionEntry *e, uint64_t changes, const core::ClockState &view);

// The clock jumped forward by moved_us, and draws continue: a line in the log, and a counter of the server.
void note_clock_jump(int64_t now_us, int64_t moved_us);

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
// The refiller: a background process that fills the rings of generators in cached mode ahead of time.
//
// The first caller that finds no refiller starts it. It ends when no such generator is in use. It has no database
// connection, so it blocks no other command. It only works in shared memory: it moves positions inside a durable lease
// from the generator's word into the ring. It cannot extend a lease; callers do. Correctness does not depend on it: a
// caller that finds the ring empty refills it, unless the generator's row says otherwise.
// ---------------------------------------------------------------------------------------------------------

// The limit of what may be taken from the generator's word now: durable on this server, at most max_ahead above the
// clock, and inside the grant.
uint64_t refill_limit(const GeneratorState &generator, const GrantView &grant, int64_t now_us);

// Moves at most `most` runs from the generator's word into its ring, with positions from `floor` on and below `limit`.
// Returns how many. *left_over is the first position of a run that found no room because other processes refilled too,
// or empty_cell.
uint64_t refill_ring(GeneratorState *generator, core::Ring<> ring, uint64_t floor, uint64_t limit, uint64_t most,
                     uint64_t *left_over);

// Counts a refill. The first one counts as the initial one, whichever process did it.
void note_ring_refill(RingState *ring, RingRefill why);

// The first position that is fresh enough to be handed out now.
uint64_t fresh_from(const GeneratorState &generator, int64_t now_us);

} // namespace uidgen::pg
