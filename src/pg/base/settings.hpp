// The settings of a server: its datacenter id, its registry, how long callers wait; and the faults of a test build.
#pragma once

namespace uidgen::pg::settings {

extern int datacenter_id;    // uidgen.datacenter_id
extern int max_wait_ms;      // uidgen.max_wait
extern int max_clock_jump_s; // uidgen.max_clock_jump; 0: no limit
extern int segment_step;     // uidgen.segment_step
extern int segment_max_step; // uidgen.segment_max_step

extern char *registry;              // uidgen.registry; empty: this server belongs to no fleet
extern int registry_lease_ms;       // uidgen.registry_lease
extern int registry_clock_bound_ms; // uidgen.registry_clock_bound

extern bool is_preloaded;

// The setting that keeps databases apart, uidgen.registry or uidgen.datacenter_id, if one of them is set although the
// library is not preloaded; else null. What a session reads of them then cannot be relied on: a client may pass another
// value before the library is loaded, and a parallel worker has an old one.
const char *unreliable_setting();

// Whether this session sees a value of one of them.
bool is_set();

// `changed` is called when ids must carry another datacenter id from now on, even in the middle of a transaction.
// `registry_changed` is called before uidgen.registry changes.
void define(void (*changed)(), void (*registry_changed)(bool in_fleet));

} // namespace uidgen::pg::settings

// ---------------------------------------------------------------------------------------------------------
// Guarantees that a test build can break, one at a time, to prove that a test notices it. Only a build with
// UIDGEN_FAULTS has the setting `uidgen.fault`; in every other build fault_is() is the constant false and leaves no
// trace in the machine code.
// ---------------------------------------------------------------------------------------------------------

namespace uidgen::pg {

#define UIDGEN_ALL_FAULTS(FAULT)                                                                                       \
    FAULT(no_flush)      /* a range is handed out before its record is flushed */                                      \
    FAULT(delta_record)  /* the record carries what changed on the page, not the page */                               \
    FAULT(stale_log_cnt) /* the page keeps nextval's count of values logged ahead */                                   \
    FAULT(resume_lease)  /* after a start a generator goes on inside the lease that it finds */                        \
    FAULT(keep_slot)     /* a database that gets the oid of another one meets its slots */                             \
    FAULT(release_lock)  /* the lock on the sequence belongs to the subtransaction */                                  \
    FAULT(trust_clock)   /* one reading of the wall clock is enough, however far ahead it is */                        \
    FAULT(trust_copy)    /* a server's file of grants counts in a copy of its directory, too */                        \
    FAULT(outlive_grant) /* a generator draws beyond the end of its grant */                                           \
    FAULT(no_fence)      /* a registry does not notice that another server answered before it */                       \
    FAULT(overreach)     /* a segment hands out a value beyond its range */                                            \
    FAULT(blind_reserve) /* a range is reserved above the last one, wherever the counter stands */                     \
    FAULT(ignore_setval) /* reserved values count although another command has moved the counter */                    \
    FAULT(draw_altered)  /* a generator draws in the transaction that gave its sequence a new file */                  \
    FAULT(no_standby)    /* no session waits for a synchronous standby */                                              \
    FAULT(forget_lost)   /* a new generator may start below the last ids of a lost one */                              \
    FAULT(same_bit)      /* ids of the backup worker have no backup bit */                                             \
    FAULT(short_block)   /* the counter stops before the last value of a block */                                      \
    FAULT(no_swap)       /* a session draws from a segment's window without a swap */                                  \
    FAULT(keep_altered)  /* an altered generator keeps its slot */                                                     \
    FAULT(trust_commit)  /* what is reserved in a new file is used before its commit is durable */                     \
    FAULT(put_back)      /* a run that a session has taken out of a ring is put back, too */                           \
    FAULT(stay_open)     /* an entry stays open when its transaction has ended */                                      \
    FAULT(unwritten)     /* a row shows what an UPDATE wrote, not what was reserved for it */                          \
    FAULT(stale_row)     /* the sequence is not raised to what a restored row shows */                                 \
    FAULT(async_block)   /* the commit of a block follows synchronous_commit */                                        \
    FAULT(unsafe_grant)  /* a registry answers before its commit is flushed */                                         \
    FAULT(answer_early)  /* a registry answers before its commit */                                                    \
    FAULT(no_wait)       /* a registry accepts newcomers at once after it has lost commits */                          \
    FAULT(start_open)    /* a registry that starts accepts newcomers before a member has called it */                  \
    FAULT(forget_until)  /* a newcomer gets a node before the former grant of it has ended */                          \
    FAULT(late_asks)     /* a registry answers a life that another one has followed */                                 \
    FAULT(hide_use)      /* a registry ignores what a newcomer has drawn before it joined the fleet */                 \
    FAULT(any_fleet)     /* a registry takes members of another fleet for its own */                                   \
    FAULT(any_closing)   /* a handover saves the fence, even if the closing has expired */                             \
    FAULT(go_back)       /* a member forgets the terms that it has seen */                                             \
    FAULT(extend_ended)  /* a registry extends grants that have ended, whoever else may have the node */               \
    FAULT(clock_term)    /* the number of a term is the clock's, whatever the registry knows */                        \
    FAULT(any_epoch)     /* a fleet takes layouts whose ids could be equal */                                          \
    FAULT(mix_answers)   /* a member takes the answers of a call in the wrong order */                                 \
    FAULT(any_answer)    /* a member takes answers that no registry gives */

#define UIDGEN_FAULT(name) name,
enum class Fault : int { none, UIDGEN_ALL_FAULTS(UIDGEN_FAULT) };
#undef UIDGEN_FAULT

#ifdef UIDGEN_FAULTS
extern int active_fault; // written by the setting
inline bool fault_is(Fault fault) { return static_cast<Fault>(active_fault) == fault; }
#else
constexpr bool fault_is(Fault) { return false; }
#endif

} // namespace uidgen::pg
