// Slots: what the server keeps in shared memory for each generator and segment in use.
//
// Locking contract
//   1. To find, make or free a slot: the directory lock (one LWLock). Only slots.cpp takes it. No I/O, no wait and no
//      palloc happens under it. It comes after every heavyweight lock, and no other lock is taken under it. Making and
//      freeing a slot take it exclusively, for a time that does not depend on the number of slots. Setting a worker id
//      scans all slots under it.
//   2. To use a slot: RowExclusiveLock on the sequence, held to the end of the transaction. A slot is freed only under
//      a lock that excludes all users: the ExclusiveLock of the sweep (sweep.hpp) or of a reclaim (reclaim.hpp), an
//      alteration's ShareRowExclusiveLock (locked_generator.hpp), or that of a creation that is rolled back. A view has
//      no such lock (status.cpp): it copies the slot, and afterwards checks that the generation is unchanged.
//   3. Fields marked "page" are written under the exclusive lock of the sequence's buffer page, and read under that
//      lock, shared or exclusive. So no race makes a page and its slot differ.
//   4. All other fields are atomics, or never change while the slot is in use.
//
// A slot may outlive its sequence without harm (sweep.hpp). A session that opens an entry compares the page with
// `expected` and the file with `file`; if they differ, it invalidates the reserved range. This comparison cannot detect
// an identical database made again (same oids, files and values), so keys say which database it is (directory.hpp).
#pragma once

#include <atomic>
#include <type_traits>

#include "core/clock_policy.hpp"
#include "core/layout.hpp"
#include "core/range.hpp"
#include "core/ring.hpp"
#include "core/step_policy.hpp"
#include "core/position_allocator.hpp"
#include "base/compat.hpp"
#include "counters.hpp"
#include "directory.hpp"

namespace uidgen::pg {

// What a sequence's page says. The lsn shows that the counter was moved, even if it was moved back.
struct PageState {
    core::SequenceState counter;
    XLogRecPtr lsn;
};

inline bool same_state(const PageState &a, const PageState &b) {
    return a.counter.last_value == b.counter.last_value && a.counter.is_called == b.counter.is_called && a.lsn == b.lsn;
}

enum class SlotKind : uint32_t { unused, generator, segment };

constexpr int64_t no_number = -1;

// Where a generator's worker id comes from.
enum class WorkerPolicy : uint32_t {
    disposable, // drawn anew at each start of the server
    sticky,     // the last one of this host and port; drawn if there is none
    fixed,      // the number that the user gave (`static`)
};

enum class WhenRingEmpty : uint32_t { pad, wait, error };

// Cached mode. A run is the content of one cell of the ring. A session takes a whole run, or all sessions share one.
struct CachedConfig {
    bool on;
    bool shares;         // all sessions draw from one run
    uint64_t run;        // ids in a run, a power of two
    uint64_t cells;      // cells in the ring, a power of two
    uint64_t threshold;  // filled cells below which the ring is refilled
    int64_t schedule_us; // time between two refills; 0: no schedule
    bool discards;       // the rest of a tick that does not fit into the ring
    WhenRingEmpty when_empty;
    int64_t fresh_us; // half of max_staleness: how long a reading of the clock counts, and how old an id may be at it
};

// What the row of uid_generator says, copied when the slot is made; and the incarnation's salt.
struct GeneratorConfig {
    core::Layout layout;
    core::ClockPolicy policy;
    CachedConfig cached;
    WorkerPolicy worker_policy;
    int32_t worker_number;    // of WorkerPolicy::fixed
    int32_t datacenter_id;    // -1: none of its own
    char preset[NAMEDATALEN]; // shortened if need be
};

// Why a ring was refilled.
enum class RingRefill : uint32_t { initial, threshold, schedule, by_caller };
constexpr uint32_t ring_refill_causes = 4;

struct RingState {
    core::RingHints<> hints;
    core::SharedRun<> shared;
    std::atomic<uint64_t> shared_before;      // ids drawn from the runs that were shared before the present one
    dsm_handle memory;                        // of the cells; never changes
    std::atomic<uint64_t> discarded_below;    // positions below it are invalidated
    std::atomic<int64_t> refilled_ring_at_us; // on the monotonic clock; 0: never
    std::atomic<bool> went_stale;             // every run in it was too old, and it was not refilled since
    std::atomic<uint64_t> ring_refills[ring_refill_causes];
    std::atomic<uint64_t> rejected_puts;
    std::atomic<uint64_t> rejected_takes;
    std::atomic<uint64_t> too_old;
};

// What a generator has seen of a wrong clock (clock_watch.hpp).
struct ClockEvents {
    std::atomic<uint64_t> changes;    // odd while the clock is behind
    std::atomic<uint64_t> backup_ids; // of the backup worker
};

struct GeneratorState {
    core::PositionAllocator<> ticks; // page: its bounds
    core::BackupAllocator<> backup;  // of layouts with a backup worker; draws under the leases of `ticks`
    PassedOver passed_over;          // by `ticks`, except in cached mode
    std::atomic<int64_t> seen;       // the latest tick of the clock that an id was made with
    GeneratorConfig config;          // never changes
    RingState ring;                  // of cached mode
    // What the nodes of this incarnation follow from (core/node.hpp); no_number: not drawn yet. Set once, under the
    // directory lock.
    std::atomic<int64_t> number;
    std::atomic<bool> warned; // of a datacenter id that is not used
    // The generator's row of worker_node (node_writer.cpp): its id, and the time and the node of its draw. Written
    // under the exclusive directory lock; under the shared lock only the id may change.
    std::atomic<int64_t> worker_draw;
    int64_t drawn_at_us;
    int64_t drawn_node;
    // In a fleet (grants.hpp): the generator's place, below the epoch in which it was found (0: not in a fleet), and
    // the node of the registry that drawn_node shows (-1: none).
    std::atomic<uint64_t> grant_place;
    std::atomic<int64_t> granted_node;
    std::atomic<bool> row_owed;   // the row must be written, for the first time or again
    std::atomic<int64_t> row_due; // a timestamptz: a transaction that ends after it has the row written
    ClockEvents clock;
};

// Why a segment's range was reserved.
enum class Refill : uint32_t {
    first,     // the first use since the slot was made
    ahead,     // before the range in use was used up
    late,      // after the range in use was used up, so a caller waited for the flush
    disturbed, // the counter was moved by another command
};
constexpr uint32_t refill_causes = 4;

struct SegmentState {
    core::SegmentWord<> word; // its ranges are guarded by the page
    PassedOver passed_over;   // by the word
    core::StepBounds bounds;  // page: those of the last range
    core::RangeStep step;     // page: of the last range
    bool disturbed;           // page: the counter was moved since the last range
    uint64_t fleet;           // page: the fleet whose registry gave its ranges; 0: they are of the sequence itself
    // page: start of the interval that the next pace is measured over. It is the time of a reservation on the monotonic
    // clock (0: none yet), and the next ordinal at that time plus the ordinals invalidated since. A reservation begins
    // a new interval only if a value was drawn in the present one.
    int64_t reserved_at_us;
    uint64_t reserved_at;
    core::Pace pace;                 // page: between that reservation and the one before it
    int64_t refilled_at_us;          // page: the time of the last reservation on the wall clock
    uint64_t refills[refill_causes]; // page
};

struct Slot {
    SlotKey key;
    SlotKind kind;
    // Changes whenever the slot is freed. So a session notices that a pointer it kept leads to another sequence's slot.
    std::atomic<uint64_t> generation;
    std::atomic<int64_t> used_at; // start of the last transaction that used it; the earliest is reclaimed first
    RelationFile file;            // page: the sequence's file that `expected` belongs to
    PageState expected;           // page: what the sequence's page says unless another command moved the counter
    Counters counters;
    std::atomic<uint64_t> ids_shown; // the most ids that a reader of the statistics was told
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
    uint64_t first_position; // generator: no position below it is handed out
    dsm_handle ring_memory;  // generator in cached mode
    core::StepBounds bounds; // segment
};

// False if the server did not preload the library.
bool slots_exist();

void slots_request_memory(); // from shmem_request_hook
void slots_attach_memory();  // from shmem_startup_hook

// Whether segments hold their share of all slots, seven eighths. The rest is kept for generators: any role may make
// sequences and draw from all of them in one transaction.
bool slots_segments_have_their_share();

// Null if there is none.
Slot *slot_find(SlotKey key);

// The slot of that key, made with `init` if there is none. Null if all are in use.
Slot *slot_find_or_make(SlotKey key, const SlotInit &init);

// What a slot says at one moment, for a reader without a lock that keeps the slot. False: there is none.
struct SlotCopy {
    const Slot *slot;
    SlotKind kind;
    uint64_t generation;
    GeneratorConfig config; // of a generator
};
bool slot_copy(SlotKey key, SlotCopy *copy);

// Does nothing if there is none.
void slot_free(SlotKey key);

// Start of the latest tick in an id of the slot's generator; 0: it has none. Under the directory lock, as in
// slots_visit().
int64_t slot_last_time(const Slot &slot);

// The keys of the next slots, so many at most, in turn.
int slots_to_look_at(SlotKey *keys, int most);

// Calls visit(slot, arg) for every slot in use, under the shared directory lock. visit must not raise an error.
void slots_visit(void (*visit)(Slot *slot, void *arg), void *arg);

// What a slot has counted since it was made. Under the directory lock, as in slots_visit().
Stats slot_counted(Slot *slot);

// What all slots of the server have counted since its start, also those that were freed.
Stats slots_counted();

// Changes when a slot with a ring is freed: a reclaim sends no invalidation, and a ring's memory lasts until every
// session has unmapped it. 0 without the preload.
uint64_t slots_rings_freed();

// The number of places, and the first place from `from` on with a generator in cached mode; -1: there is none.
int32_t slots_places();
int32_t slots_next_ring(int32_t from);

// Calls refill(slot, arg) for the slot at that place, if it is a generator in cached mode. The shared directory lock
// keeps the slot meanwhile; refill must not raise an error. False: no such slot is at that place.
bool slots_with_ring(int32_t place, void (*refill)(Slot *slot, void *arg), void *arg);

// The draw of a node: the id of its row of worker_node, and what goes into the row.
struct NodeDraw {
    int64_t id;
    int64_t at_us;
    int64_t node;
};

// Sets the number that the nodes of a generator's slot follow from, unless it has one already. Without `insist`, a node
// that another slot with the same layout has is refused. False: refused, so the caller must draw another one.
bool slot_set_number(Slot *slot, int64_t number, const NodeDraw &draw, bool insist);

// The generator draws with another node from now on.
void slot_set_node(Slot *slot, const NodeDraw &draw);

} // namespace uidgen::pg
