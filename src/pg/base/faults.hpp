// Guarantees that a test build can break, one at a time, to prove that a test notices it.
//
// Only a build with UIDGEN_FAULTS has the settings `uidgen.fault` and `uidgen.bad_samples`; in every other build
// fault_is() and samples_are_bad() are the constant false and leave no trace in the machine code.
#pragma once

namespace uidgen::pg {

enum class Fault : int {
    none,
    no_flush,      // a range is handed out before its record is flushed
    delta_record,  // the record carries what changed on the page, not the page
    stale_log_cnt, // the page keeps nextval's count of values logged ahead
    resume_lease,  // after a start a generator goes on inside the lease that it finds
    keep_slot,     // DROP DATABASE leaves the database's slots behind
    release_lock,  // the lock on the sequence belongs to the subtransaction
    trust_clock,   // one reading of the wall clock is enough, however far ahead it is
    trust_copy,    // a server's file of grants counts in a copy of its directory, too
    outlive_grant, // a generator draws beyond the end of its grant
    no_fence,      // a registry does not notice that another server answered before it
    overreach,     // a segment hands out a value beyond its range
    blind_reserve, // a range is reserved above the last one, wherever the counter stands
    ignore_setval, // reserved values count although another command has moved the counter
    draw_altered,  // a generator draws in the transaction that gave its sequence a new file
    no_standby,    // no session waits for a synchronous standby
    forget_lost,   // a new generator may start below the last ids of a lost one
    same_bit,      // ids of the backup worker have no backup bit
    short_block,   // the counter stops before the last value of a block
    no_swap,       // a session draws from a segment's window without a swap
    keep_altered,  // an altered generator keeps its slot
    put_back,      // a run that a session has taken out of a ring is put back, too
    stay_open,     // an entry stays open when its transaction has ended
    unwritten,     // a row shows what an UPDATE wrote, not what was reserved for it
    stale_row,     // the sequence is not raised to what a restored row shows
    async_block,   // the commit of a block follows synchronous_commit
    unsafe_grant,  // a registry answers before its commit is flushed
    answer_early,  // a registry answers before its commit
    no_wait,       // a registry accepts newcomers at once after it has lost commits
    forget_until,  // a newcomer gets a node before the grant of another line has ended
    late_asks,     // a registry answers a life that another one has followed
    hide_use,      // a registry ignores what a newcomer has drawn before it joined the fleet
    any_fleet,     // a registry takes members of another fleet for its own
    any_closing,   // a handover saves the fence, even if the closing has expired
    any_answer,    // a member takes answers that no registry gives
};

#ifdef UIDGEN_FAULTS
extern int active_fault; // written by the setting
inline bool fault_is(Fault fault) { return static_cast<Fault>(active_fault) == fault; }

// Not a broken guarantee, but an environment in which all guarantees must hold: at times the wall clock is a year
// ahead.
extern bool bad_samples; // written by the setting
inline bool samples_are_bad() { return bad_samples; }
#else
constexpr bool fault_is(Fault) { return false; }
constexpr bool samples_are_bad() { return false; }
#endif

} // namespace uidgen::pg
