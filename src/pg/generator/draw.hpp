// Drawing from a generator: one call reads, decides and acts, and tries again until it has positions or fails.
//
// A try reads the word, the grant and the clock (begin_try()); core's decide() says what is to be done; a reading that
// looks wrong is verified (clock.hpp); the node of the ids is fixed (fix_node()); and execute_decision() does it.
#pragma once

#include "memory/generator_state.hpp"
#include "session/session.hpp"

namespace uidgen::pg {

struct Drawn {
    core::Run run; // positions
    core::IdEncoder encoder;
};

// Takes up to `want` positions (>= 1), by the parts below: begin_try(), verify_clock(), limit_to_ring(), fix_node(),
// execute_decision(), conclude_try(). Waits for the clock, for durability, for the ring or for a grant as needed. An
// error takes none. Leaves a window for the next calls within the same tick, unless it drew from the backup worker; in
// cached mode for half of max_staleness (docs/design.md, P4). Under no lock but those that the parts take.
Drawn draw_ids(SessionEntry *entry, uint64_t want) EXCLUDES(page_lock, table_lock, slot_lock, state_lock);

// ---------------------------------------------------------------------------------------------------------
// The parts of a call. All are for a session with an open entry that holds no lock but the sequence's.
// ---------------------------------------------------------------------------------------------------------

// What a call asks for, and how long it has tried.
struct DrawCall {
    SessionEntry *entry;
    uint64_t want;
    // uidgen.max_wait bounds the call, on the monotonic clock.
    int64_t started_us; // when the call first measured how long it has waited; 0: not yet
    uint64_t waits;     // a bit for each Stat that has counted this call as one that waits
    bool rejected;      // one reading of the wall clock was rejected as implausible
    uint32_t tries;     // how many tries have failed
};

// The node that the ids of one try carry: the generator's own, or in a fleet that of its grant. A try reads one grant,
// after the bounds of the generator's word and before the clock (docs/design.md, P1 16).
struct NodeGrant {
    bool in_fleet; // else `view` holds all ticks
    GrantView view;
};

// The grant to draw with, read under the slot's lock. Joins the fleet or leaves it first, if the setting has changed:
// in the slot. To join, it reads the page and worker_node, and wakes the registrar (membership_request()); to leave, it
// draws an id for a row (draw_own_row_again()).
NodeGrant join_or_leave_fleet(SessionEntry *entry) EXCLUDES(page_lock, table_lock, slot_lock, state_lock);

// Notes in this process that the transaction draws with the grant's node (note_node_in_use()). If the grant is still
// the membership's (membership_view()), and the generator's row of worker_node does not show it yet, draws an id for a
// row, which the node writer will write (draw_row_of_grant()).
void show_node(SessionEntry *entry, const GrantView &grant) EXCLUDES(page_lock, table_lock, slot_lock, state_lock);

// The grant of a generator for a reader that has no entry; in a fleet none before the first draw there.
NodeGrant present_grant(const Slot *slot) REQUIRES_SHARED(slot_lock);

// What a try has read.
struct DrawReading {
    core::Durability level; // that ids must have
    int64_t now_us;
    int64_t offset_us; // of the wall clock above the monotonic clock
    NodeGrant grant;   // what this try draws with
    core::ClockState state;
};

struct WorkerDecision : core::Decision { // never ClockAction::backup
    bool by_backup = false;              // it is the backup worker's
};

enum class Outcome : uint8_t {
    done,
    again, // try again
    // The call fails (clock.hpp).
    ahead,      // the generator is ahead of the clock, and the call has waited for uidgen.max_wait
    clock_back, // the clock moved backwards
    no_grant,   // the registry gave none within uidgen.max_wait
    used_up,    // the layout has no ticks left
};

// Begins a try: closes the entry's window, and reads the word, the grant and the clock. Joins or leaves the fleet if
// the setting has changed (join_or_leave_fleet()). Logs that the clock went back or has caught up, and counts it in an
// atomic of the slot (note_clock_change()); in a fleet notes there when it was used (membership_note_use()).
DrawReading begin_try(DrawCall *call) EXCLUDES(page_lock, table_lock, slot_lock, state_lock);

// Fixes the node of the try's ids: that of its grant (show_node()), or the generator's own, for which it draws the
// number that nodes follow from if there is none yet (own_node_for()). Notes its use in this process
// (note_node_in_use()). Warns of a datacenter id that is not used (warn_of_datacenter_id()). It comes before positions
// are taken, so that no draw fails or sleeps between a position and its node; and before the first lease, so that no
// crash keeps the lease and loses the number.
core::IdEncoder fix_node(SessionEntry *entry, const DrawReading &reading, bool by_backup = false)
    EXCLUDES(page_lock, table_lock, slot_lock, state_lock);

// In cached mode: limits a decision to take to what is in the ring. False: the ring was empty, and the call has filled
// it in the slot, or slept once for the refiller, which it wakes when the ring runs low. Or, by the policy, an error.
bool limit_to_ring(DrawCall *call, const core::ClockState &state, core::Decision *decision)
    EXCLUDES(page_lock, table_lock, slot_lock, state_lock);

// Counts in the slot the ids in the ring that a take has passed over, because they were too old.
void note_passed_over(GeneratorState *generator, const core::Run &run);

// How many ids are in the ring of an open entry's slot, or of one under its lock. Approximate.
uint64_t ids_in_ring(const GeneratorState &generator);

// Does what was decided: takes positions (take_positions(), take_of_backup()), writes a lease (write_lease()), makes it
// durable (confirm_lease()), or waits once, for the clock or a grant, which it asks the registrar for
// (wait_for_grant(), join_while_behind()). `drawn` has the encoder, and gets the run if the outcome is `done`.
Outcome execute_decision(DrawCall *call, const DrawReading &reading, const WorkerDecision &decision, Drawn *drawn)
    EXCLUDES(page_lock, table_lock, slot_lock, state_lock);

// Between two tries of a call: honours cancel, and ends a call that has tried for too long.
void before_next_try(DrawCall *call);

// Writes a lease inside the grant, unless another session has: under the exclusive lock of the page, which it takes
// (lock_matched_page()), on the page, in the log and in the slot's word. In a fleet it starts the registrar if none
// runs. What is needed later is durable soon.
void write_lease(const DrawCall &call, const DrawReading &reading, int64_t until_tick, Needed needed)
    EXCLUDES(page_lock, table_lock, slot_lock, state_lock);

// Flushes the log, waits for the standby (make_durable()), and confirms the lease in the slot's word. The time that
// this takes does not count against the call's bound.
void confirm_lease(DrawCall *call, core::Durability level) EXCLUDES(page_lock, table_lock, slot_lock, state_lock);

// For how long the call has waited. The first time it is 0.
inline int64_t measure_wait_us(DrawCall *call) {
    const int64_t now_us = monotonic_us();
    if (call->started_us == 0)
        call->started_us = now_us;
    return now_us - call->started_us;
}

// Waits once for a cause, which is a Stat: calls sleep(us) with the time that the call may still wait. Counts in the
// slot the call once for each cause, and the time. False: it may not wait any more.
template <typename Sleep> bool wait_once(DrawCall *call, Stat waits, Sleep sleep) {
    const int64_t left_us = settings::max_wait_ms * us_per_ms - measure_wait_us(call);
    const uint64_t bit = UINT64_C(1) << index(waits);
    Counters *counters = &call->entry->slot->counters;
    if ((call->waits & bit) == 0)
        counters->count(waits);
    call->waits |= bit;
    if (left_us <= 0)
        return false;
    const int64_t began_us = monotonic_us();
    sleep(left_us);
    counters->count_time(waits, began_us);
    return true;
}

} // namespace uidgen::pg
