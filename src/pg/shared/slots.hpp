// Slots: what the server remembers in shared memory of each generator and segment in use.
//
// Locking contract
//   - To find, make or free a slot: the directory lock (one LWLock), taken inside this file and held over no
//     I/O, no wait, no palloc. It comes after every heavyweight lock and before no other lock. Only to make or free a slot
//     is it exclusive, and then for a time that does not depend on the number of slots; worker ids are the exception.
//   - To use a slot: RowExclusiveLock on its sequence, held to the end of the transaction. That lock is what
//     keeps the slot: while its database lives it is freed only by who holds a lock that excludes all users, DROP's
//     AccessExclusiveLock, the ExclusiveLock of a reclaim (reclaim.hpp), an alteration's ShareRowExclusiveLock
//     (locked_generator.hpp). Who only looks (status.cpp) copies, and then asks whether it was the same tenant all along.
//   - Fields marked "page" are written under the exclusive lock of the sequence's buffer page, and read under
//     that lock, shared or exclusive. So a page and what its slot says of it never differ by a race.
//   - The other fields are atomics, or never change while the slot is in use.
//
// A slot that outlives its sequence is harmless: whoever attaches compares the page with "expected" and the
// file with "file", and gives up what the slot has in hand when they differ. The exception is an identical
// database made again (same oids, files and values), which is why DROP DATABASE purges (drop_hooks.cpp).
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

namespace uidgen::pg {

// What a sequence's page says. The lsn tells a counter that was moved away and back from one that was not.
struct PageState {
    core::SequenceState counter;
    XLogRecPtr lsn;
};

inline bool same_state(const PageState &a, const PageState &b) {
    return a.counter.last_value == b.counter.last_value && a.counter.is_called == b.counter.is_called && a.lsn == b.lsn;
}

struct SlotKey {
    Oid database;
    Oid sequence;
};

enum class SlotKind : uint32_t { unused, generator, segment };

constexpr int32_t no_worker = -1;

// Where a generator's worker id comes from.
enum class WorkerPolicy : uint32_t {
    disposable, // a new draw each start of the server
    sticky,     // the one that this host and port had last; else a draw
    fixed,      // a number that the user gave: `static`
};

enum class WhenRingEmpty : uint32_t { pad, wait, error };

// Cached mode; a run is what one cell of the ring stands for, and what one backend takes at a time, or all share.
struct CachedConfig {
    bool on;
    bool shares;    // all sessions draw from one run
    uint64_t run;   // ids, a power of two
    uint64_t cells; // of the ring, a power of two
    uint64_t threshold; // filled cells below which the ring is refilled
    int64_t schedule_us; // 0: never
    bool discards; // what does not fit into the ring
    WhenRingEmpty when_empty;
    int64_t fresh_us; // half of max_staleness: how long a look at the clock is good, and how old an id may be then
};

// What a generator's slot takes over from uid_generator when it is made.
struct GeneratorConfig {
    core::Layout layout;
    core::ClockPolicy policy;
    CachedConfig cached;
    WorkerPolicy worker_policy;
    int32_t worker_number; // fixed
};

// Why a ring was refilled.
enum class RingRefill : uint32_t { initial, threshold, schedule, by_caller };
constexpr uint32_t ring_refill_causes = 4;

struct RingState {
    core::RingHints<> hints;
    core::SharedRun<> shared;
    dsm_handle memory; // fixed: of the cells
    std::atomic<uint64_t> given_up_below; // positions below it are not handed out any more
    std::atomic<int64_t> refilled_ring_at_us;    // on the clock that never steps; 0: never
    std::atomic<bool> went_stale;         // all that was in it was too old, and it was not refilled since
    std::atomic<uint64_t> ring_refills[ring_refill_causes];
    std::atomic<uint64_t> rejected_puts;
    std::atomic<uint64_t> rejected_takes;
    std::atomic<uint64_t> too_old;
};

struct GeneratorState {
    core::PositionAllocator<> ticks;   // its writes are serialized by the page
    core::BackupAllocator<> backup; // of layouts with a backup worker; draws under the leases of `ticks`
    std::atomic<int64_t> seen; // latest tick of the clock that an id was made with, in the word's count
    GeneratorConfig config;    // fixed
    uint64_t inherited_floor;      // fixed
    RingState ring;            // of cached mode
    // The worker id of this incarnation. Set once, under the directory lock. With when_back new_worker it is that of term 0.
    std::atomic<int32_t> worker_id;
    // Of its row of worker_node (node_writer.cpp): the row's id, and when and under which datacenter id it was drawn. Written
    // under the directory lock; a holder of the shared lock may change the id alone.
    std::atomic<int64_t> worker_draw;
    int64_t drawn_at_us;
    int32_t drawn_datacenter_id;
    std::atomic<bool> row_owed;   // it is to be written, for the first time or again
    std::atomic<int64_t> row_due; // a timestamptz: from when on the end of a transaction has it written
};

inline int64_t term_of(const GeneratorConfig &config, uint64_t position) {
    return static_cast<int64_t>(position >> config.layout.sequence_bits) / config.policy.end;
}

// The worker id of ids at that position, without the backup bit, when that of term 0 is `first`. Terms have one each, in a
// circle.
inline int64_t worker_id_at(const GeneratorConfig &config, int64_t first, uint64_t position) {
    return (first + term_of(config, position)) & core::largest(config.layout.worker_bits);
}

// Why a segment's range was reserved.
enum class Refill : uint32_t {
    first,     // none was there: the first use since the slot was made
    ahead,     // before the range in use was used up
    late,      // the range in use was used up, so a caller waited for the new one's flush
    disturbed, // somebody else had moved the counter
};
constexpr uint32_t refill_causes = 4;

struct SegmentState {
    core::SegmentWord<> word; // its ranges are guarded by the page
    core::StepBounds bounds;  // page: as they were for the last range
    core::RangeStep step;     // page: of the last range
    bool disturbed;           // page: the counter was moved since the last range
    // page: when a range was reserved, on the clock that never steps, and the next ordinal then, plus what was given up
    // since. Of the last reservation, or of one before it, if nothing was drawn in between. 0: never.
    int64_t reserved_at_us;
    uint64_t reserved_at;
    core::Pace pace;        // page: between that reservation and the one before it
    int64_t refilled_at_us; // page: when the last range was reserved, on the wall clock
    uint64_t refills[refill_causes]; // page
};

struct Slot {
    SlotKey key;
    SlotKind kind;
    int32_t next_unused; // of an unused slot: the place of another one; -1: there is none
    // Changes whenever the slot is freed, so that a pointer kept by a backend can be told from a new tenant.
    std::atomic<uint64_t> generation;
    std::atomic<int64_t> used_at; // start of the last transaction that used it: which one to reclaim first
    RelationFile file;            // page: the sequence's file that `expected` speaks of
    PageState expected;           // page: what the sequence's page says unless somebody else moved it
    std::atomic<uint64_t> records;
    std::atomic<uint64_t> flush_waits;
    std::atomic<uint64_t> standby_waits;
    std::atomic<uint64_t> clock_waits;
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
    GeneratorConfig config;   // generator
    uint64_t first_position;  // generator: nothing below it is handed out
    uint64_t inherited_floor;     // generator: up to there others that are gone have leased
    dsm_handle ring_memory;   // generator in cached mode
    core::StepBounds bounds;  // segment
};

// The server has loaded the library at its start, so there are slots.
bool slots_exist();

void slots_request_memory(); // from shmem_request_hook
void slots_attach_memory();  // from shmem_startup_hook

// Whether segments hold all slots that they may: seven eighths. Anybody may make sequences and draw from them all in
// one transaction, and the generators of others must go on.
bool slots_segments_have_their_share();

// Null if there is none.
Slot *slot_find(SlotKey key);

// The slot of that key, made with `init` if there is none. Null if all are in use.
Slot *slot_find_or_make(SlotKey key, const SlotInit &init);

// What a slot said at one moment, for those who only look and hold no lock that keeps it. False: there is none.
struct SlotCopy {
    const Slot *slot;
    SlotKind kind;
    uint64_t generation;
    GeneratorConfig config; // of a generator
};
bool slot_copy(SlotKey key, SlotCopy *copy);

// What becomes of a sequence whose slot is freed: it lives on, or it is dropped or its creation is rolled back.
enum class Fate { lives_on, lost };

// Nothing happens if there is none.
void slot_free(SlotKey key, Fate fate);
void slots_free_database(Oid database);

// The sequence is about to be dropped: its generator counts as lost at once, for one that the same transaction creates.
// Whether it has a slot.
bool slot_note_drop(SlotKey key);

// Calls visit(slot, arg) for every slot in use, under the directory lock held shared: no errors in visit.
void slots_visit(void (*visit)(Slot *slot, void *arg), void *arg);

// The slots that were in use at some time since the start: for the postmaster, when no backend is left.
int32_t slots_ever_used();
const Slot *slot_at(int32_t place);

// The places of slots, and the first one from `from` on that holds a generator in cached mode; -1: there is none.
int32_t slots_places();
int32_t slots_next_ring(int32_t from);

// Pads rings: calls pad(slot, arg) for the slot at that place, if it is a generator in cached mode, under the directory
// lock held shared, so that nobody frees it meanwhile. False: there is none.
bool slots_with_ring(int32_t place, void (*pad)(Slot *slot, void *arg), void *arg);

// Gives a generator's slot its worker id, unless it has one already or another live generator of the same
// layout holds that number and `insist` is false. False: draw another number.
bool slot_set_worker(Slot *slot, int32_t worker_id, int64_t draw, int64_t now_us, bool insist);

// A term has begun, with a worker id that follows from the one set: its row is named after that draw.
void slot_begin_term(Slot *slot, int64_t draw, int64_t now_us);

} // namespace uidgen::pg
