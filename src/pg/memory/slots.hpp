// Slots: what the server keeps in shared memory for each generator and segment in use. Slots are in the area
// (area.hpp), as many as are used. A slot's memory is of one kind for good, and is never given back: a freed slot is
// used again for another sequence.
//
// Locking contract (more of it in server_state.hpp)
//   1. To make or use a slot: RowExclusiveLock on the sequence, held to the end of the transaction.
//   2. To reset or free a slot: a lock on the sequence that excludes all users, or a sequence that no other session
//      sees. Each changes the generation. So a session that kept a pointer compares the generation, under the lock on
//      the sequence.
//   3. Fields marked "page" are written under the exclusive lock of the sequence's buffer page, and read under that
//      lock, shared or exclusive. So no race makes a page and its slot differ.
//   4. Fields marked "lock" are guarded by the slot's own lock. A process that does not hold a lock on the sequence
//      (the refiller, the registrar, a view) reads the others under it, shared, while phase is not free.
//   5. A process that makes, resets or frees a slot holds the slot's lock and the state's, exclusively. So who looks at
//      many slots at one moment needs only the state's.
//   6. All other fields are atomics, or never change while the slot is in use.
#pragma once

#include <atomic>
#include <type_traits>

#include "core/clock_policy.hpp"
#include "core/definition.hpp"
#include "core/layout.hpp"
#include "core/membership.hpp"
#include "core/node.hpp"
#include "core/range.hpp"
#include "core/ring.hpp"
#include "core/position_allocator.hpp"
#include "base/compat.hpp"
#include "area.hpp"
#include "counters.hpp"
#include "server_state.hpp"

namespace uidgen::pg {

// What a sequence's page says. The lsn shows that the counter was moved, even if it was moved back.
struct PageState {
    core::SequenceState counter;
    XLogRecPtr lsn;
};

inline bool same_state(const PageState &a, const PageState &b) {
    return a.counter.last_value == b.counter.last_value && a.counter.is_called == b.counter.is_called && a.lsn == b.lsn;
}

enum class SlotPhase : uint32_t {
    free,    // of no sequence
    dropped, // of a sequence that does not exist any more, unless its DROP is rolled back
    stale,   // what is drawn with must be made again
    ready,
};

constexpr int64_t no_number = -1;

using core::CachedConfig;
using core::WhenRingEmpty;
using core::worker_policy_names;
using core::WorkerPolicy;

// What the generator's definition says, copied when the slot is made; and the incarnation's salt.
struct GeneratorConfig {
    core::Layout layout;
    core::ClockPolicy policy;
    CachedConfig cached;
    WorkerPolicy worker_policy;
    int32_t worker_number; // of WorkerPolicy::fixed
    int32_t datacenter_id; // -1: none of its own
    bool own_pool;
    char preset[NAMEDATALEN]; // shortened if need be
};

struct RingState {
    core::RingHints<> hints;
    core::SharedRun<> shared;
    std::atomic<uint64_t> shared_before;      // ids drawn from the runs that were shared before the present one
    dsa_pointer cells;                        // "lock"; InvalidDsaPointer: not in cached mode
    std::atomic<uint64_t> discarded_below;    // positions below it are invalidated
    std::atomic<int64_t> refilled_ring_at_us; // on the monotonic clock; 0: never
    bool is_refilled;                         // the refiller's: until the ring is full; a new ring is
    std::atomic<bool> went_stale;             // every run in it was too old, and it was not refilled since
    std::atomic<uint64_t> refills;            // by the refiller
    std::atomic<uint64_t> refills_by_caller;
    std::atomic<uint64_t> rejected_puts;  // ids that found no room
    std::atomic<uint64_t> rejected_takes; // calls
    std::atomic<uint64_t> too_old;        // ids
};

// What the registrar needs to ask for a generator. Set by the first session that draws after a start, an alteration, or
// a change of uidgen.registry.
struct GrantRequest {
    core::Layout layout;
    int64_t length; // ticks: max(uidgen.registry_lease, 2 x (max_ahead + lease))
    WorkerPolicy policy;
    int32_t worker_number; // of WorkerPolicy::fixed
    int32_t datacenter_id; // the generator's own or the setting; -1: none that fits
    int64_t former_node;   // the node that the generator drew with before it had a registry; -1: none
    int64_t former_until;  // the first tick above the high-water mark that it had then
    bool own_pool;         // it may have ids that generators of another epoch or split have
    char preset[NAMEDATALEN];
    char generator[2 * NAMEDATALEN + 8]; // qualified name, shortened if need be
    char database[NAMEDATALEN];
};

// What the registrar keeps about a member, as long as its incarnation stays the same.
struct RegistrarNotes {
    uint64_t incarnation;
    int64_t renew_at;        // tick; 0: unknown
    int64_t wanted_since_us; // on the monotonic clock, as the next one; 0: it is not wanted
    int64_t not_before_us;   // when it may be asked for (again)
    int64_t pause_us;        // after a refusal, which the log has; 0: it was not refused
};

// What the slot's lock guards of a membership.
struct MembershipFields {
    bool used;
    bool requested;       // false: only the file knows it; no session has used it since the server's start
    GrantRequest request; // if not requested, only the layout
    core::Membership membership;
    int64_t renewals; // grants accepted since the server's start
    GrantError error;
};

// A generator's membership in the fleet (memberships.hpp).
struct MembershipState {
    MembershipFields fields;            // lock
    RegistrarNotes notes;               // the registrar's
    std::atomic<uint32_t> requested_in; // the epoch in which a session of this slot has requested it; 0: none
    std::atomic<int64_t> wanted;        // the lowest tick that a session has asked for last; 0: the grant covers it
    std::atomic<int64_t> used_at_us;    // when a session last read or wanted it, on the wall clock; 0: never
    ConditionVariable changed;          // initialised once
};

// In the list of slots whose row of worker_node is owed (node_writer.cpp). All but the first field are guarded by the
// state's lock; until it is in the list, they are those of the session that adds it.
struct OwedRow {
    std::atomic<bool> listed; // or a session is about to add it
    bool settled;             // there is nothing to write any more
    dsa_pointer next;
    int64_t used_at;      // a timestamptz: the transaction that has added it
    int64_t listed_at_us; // on the monotonic clock
    int64_t retry_at_us;  // on the monotonic clock; 0: it was not tried yet
};

struct GeneratorState {
    core::PositionAllocator<> ticks;  // page: its bounds
    core::PositionAllocator<> backup; // of layouts with a backup worker; draws under the leases of `ticks`
    uint64_t records_before;          // what Stat::records counted when the slot was made ready
    int64_t former_until_us;          // slot_last_time() when the slot was made ready
    int64_t former_mark;              // the high-water mark, and the first position to hand out, when it was made ready
    uint64_t first_position;
    std::atomic<int64_t> seen; // the latest tick of the clock that an id was made with
    GeneratorConfig config;    // changes under the lock of the slot and that of the state
    RingState ring;            // of cached mode
    // What the nodes of this incarnation follow from (core/node.hpp); no_number: not drawn yet. Set once, under the
    // state's lock.
    std::atomic<int64_t> number;
    int64_t node_taken;       // the one that follows from it (take_node()); core::no_node: none. State's lock
    std::atomic<bool> warned; // of a datacenter id that is not used
    // The generator's row of worker_node (node_writer.cpp): its id, and the time and the node of its draw. Written
    // under the state's lock; without it only the id may change.
    std::atomic<int64_t> worker_draw;
    int64_t drawn_at_us;
    int64_t drawn_node;
    std::atomic<int64_t> granted_node;   // the node of the registry that drawn_node shows; -1: none
    std::atomic<int64_t> row_due;        // a timestamptz: a transaction that begins after it has the row written
    std::atomic<uint64_t> clock_changes; // odd while the clock is behind (generator/draw.hpp)
    std::atomic<uint64_t> backup_ids;    // of the backup worker
    // The rest outlives a reset.
    MembershipState membership;
    OwedRow owed;
};

constexpr int longest_registry_name = 255; // bytes

// What the registry is asked.
struct BlockAsk {
    int64_t count; // 0: none, only what the segment is like
    int64_t shown; // the last value that this server was given
    uint64_t fleet;
    int64_t increment; // with the fleet: what they were when the segment was attached; 0: any
    char registry_name[longest_registry_name + 1]; // in UTF-8
    char database[NAMEDATALEN];
};

// `count` values: first, first + increment, ... With a count of 0 it says what the segment is like.
struct FleetBlock {
    uint64_t fleet;
    int64_t first;
    uint64_t count;
    int64_t increment;
    bool is_synchronous; // whether the registry has a synchronous standby
};

enum class BlockState : uint32_t {
    none,
    asked,   // the registrar asks for it, until it is there or is refused
    ready,   // a session may take it
    refused, // a session may ask again
};

struct BlockAnswer {
    BlockState state; // asked: the error passes by itself, so the registrar asks again
    FleetBlock block; // of ready
    GrantError error; // at_us 0: none
};

// The one place for a block of the registry that a segment's slot has (memberships.hpp). The slot's lock guards it.
struct BlockPlace {
    uint64_t number;       // of the request, in this place
    int64_t not_before_us; // when it may be asked (again), on the monotonic clock
    BlockAsk ask;          // of asked, ready and refused
    BlockAnswer answer;    // the state; the error also while the block is asked for
    ConditionVariable changed;
};

struct SegmentState {
    core::PositionAllocator<> ordinals; // the segment's word
    core::Ranges ranges;                // page
    core::StepBounds bounds;            // page: those of the last range
    int64_t step;                       // page: of the last range
    bool disturbed;                     // page: another command has moved the counter since the last range was reserved
    bool was_disturbed;                 // page: the same at the time when the last range was reserved
    uint64_t name_hash;                 // lock: of a named segment's name; 0: it has none, or it may be rolled back
    uint64_t fleet; // page: the fleet whose registry gave its ranges; 0: they are of the sequence itself
    // page: start of the interval that the next pace is measured over. It is the time of a reservation on the monotonic
    // clock (0: none yet), and the next ordinal at that time plus the ordinals invalidated since. A reservation begins
    // a new interval only if a value was drawn in the present one.
    int64_t reserved_at_us;
    uint64_t reserved_at;
    int64_t block_at_us;        // page: when the last block was reserved, on the monotonic clock; 0: never
    uint64_t refills_late;      // page: ranges that callers had to wait for, because the one before was used up
    uint64_t refills_disturbed; // page: ranges reserved because another command had moved the counter
    BlockPlace block;           // last, because it outlives a reset
};

struct Slot {
    dsa_pointer self; // never changes, as the next two
    dsa_pointer next; // of all slots of the kind
    SlotKind kind;
    dsa_pointer next_free; // guarded by the state's lock
    LWLock lock;
    SlotPhase phase; // lock
    SlotKey key;     // lock
    std::atomic<uint64_t> generation;
    RelationFile file;  // page: the sequence's file that `expected` belongs to
    PageState expected; // page: what the sequence's page says unless another command moved the counter
    Counters counters;
    PassedOver passed_over;          // by the word that sessions draw from, except in cached mode
    std::atomic<uint64_t> ids_shown; // the most ids that a reader of the statistics was told
    // Last: the memory of a slot ends with the member of its kind.
    union {
        GeneratorState generator;
        SegmentState segment;
    };
};

static_assert(std::is_standard_layout_v<Slot> && std::is_trivially_destructible_v<Slot>,
              "slots live in memory that no constructor or destructor of C++ manages");

struct SlotInit {
    SlotKind kind;
    RelationFile file;
    PageState expected;
    GeneratorConfig config;  // generator
    int64_t mark;            // generator: the high-water mark
    uint64_t first_position; // no position or ordinal below it is handed out
    core::StepBounds bounds; // segment
    uint64_t name_hash;      // segment
};

// ---------------------------------------------------------------------------------------------------------
// For sessions that hold a lock on the sequence.
// ---------------------------------------------------------------------------------------------------------

// Null if there is none.
Slot *find_slot(const SlotKey &key, SlotKind kind);
Slot *find_ready_slot(const SlotKey &key, SlotKind kind);

// The slot of that key, made ready with `init` unless another session has done so first. Raises an error if there is no
// memory.
Slot *make_slot(const SlotKey &key, const SlotInit &init);

// The slot of that key; if there is none, a stale one.
Slot *claim_slot(const SlotKey &key, SlotKind kind);

// What the slot was made from has changed, or may have been rolled back: its ring goes, and the next draw makes again
// what it draws with. Statistics and membership stay. If the sequence was dropped, they are out of sight, unless the
// DROP is rolled back. In a rollback (`is_rollback`) it raises no error, and leaves the node to a later call.
void expire_slot(Slot *slot, SlotPhase to = SlotPhase::stale, bool is_rollback = false);

// Frees the slot, if there is one. No session may use it. A generator counts as lost.
void free_slot(const SlotKey &key, SlotKind kind);

// Notes how far the ids of a generator reach that the database has lost, or may lose: its sequence is dropped, or the
// creation is rolled back. Does nothing if the slot is another sequence's by now. Raises no error.
void note_lost(Slot *slot, const SlotKey &key);

// No id of a lost generator of this layout and this database has a later time; 0: there is none. Times of other
// databases and layouts may count, too.
int64_t lost_until_us(const core::Layout &layout);

// For a generator to draw with, until its slot is made ready again, expires or is freed. False:
// another generator of that layout has it, and the caller does not insist. *others is how many of the layout have one.
bool take_node(const core::Layout &layout, int64_t node, bool insist, int64_t *others);
void give_back_node(const core::Layout &layout, int64_t node);

// Whether the slot is ready, and of a segment whose name has that hash. Callers need no lock on the sequence.
bool slot_has_name(const SlotKey &key, uint64_t name_hash);
void slot_forget_name(Slot *segment);

// The default generator of this database, so that no session reads labels to find it; InvalidOid: they must be read.
//
//   1. It is noted under RowExclusiveLock on that generator, after its label was read under this lock.
//   2. A session that makes another default, or drops it, notes InvalidOid under a lock that excludes those, and keeps
//      it to the end of its transaction. So what is known was committed, and is the default until that lock is taken.
Oid known_default();
void note_default(Oid generator);

// This process's view of a generator's ring. Valid as long as the slot's generation does not change.
core::Ring<> ring_of(Slot *slot);

// ---------------------------------------------------------------------------------------------------------
// For readers without a lock on the sequence.
// ---------------------------------------------------------------------------------------------------------

// All slots of a kind that were ever made, the newest first; null at the end. Slots that are made meanwhile are
// missing.
Slot *first_slot(SlotKind kind);
inline Slot *next_slot(const Slot *slot) { return in_area<Slot>(slot->next); }

// Calls visit(slot) for each slot that a sequence has, under its lock. It must not raise an error.
template <typename Visit> void for_each_slot(SlotKind kind, Visit visit, LWLockMode mode = LW_SHARED) {
    for (Slot *slot = first_slot(kind); slot != nullptr; slot = next_slot(slot)) {
        LWLockAcquire(&slot->lock, mode);
        if (slot->phase != SlotPhase::free)
            visit(slot);
        LWLockRelease(&slot->lock);
    }
}

// The next slot of a kind in turn, to be looked at whether its sequence is still there; null at the end of a round.
Slot *slot_to_look_at(SlotKind kind);

// Start of the latest tick in an id that was drawn from the slot's generator; 0: there is none. Under the slot's lock.
int64_t slot_last_time(const Slot &slot);

// ---------------------------------------------------------------------------------------------------------
// What slots have counted.
// ---------------------------------------------------------------------------------------------------------

// The word that sessions draw from, except in cached mode.
inline core::PositionAllocator<> &word_of(Slot *slot) {
    return slot->kind == SlotKind::generator ? slot->generator.ticks : slot->segment.ordinals;
}

// What a slot has counted since its sequence has it. Under the slot's lock.
Stats slot_counted(Slot *slot);

// What all slots of the server have counted since its start, also those that were freed.
Stats slots_counted();

} // namespace uidgen::pg
