#include "slots.hpp"

#include "saved_ranges.hpp"
#include "settings.hpp"
#include "time_source.hpp"

namespace uidgen::pg {
namespace {

constexpr char directory_name[] = "uidgen directory";
constexpr char slots_name[] = "uidgen slots";
constexpr char tranche_name[] = "uidgen";

struct DirectoryEntry {
    SlotKey key; // must come first: dynahash's key
    int32_t index;
};

HTAB *directory = nullptr; // in shared memory, guarded by directory_lock
LWLock *directory_lock = nullptr;
Slot *slots = nullptr;

// A generator whose users were told when its time ends.
struct Warned {
    SlotKey key;
    int64_t end_us;
};
constexpr uint32_t warned_places = 64;

// Stands before the slots.
struct Header {
    Warned warned[warned_places]; // the latest ones, in a circle; under the directory lock
    uint32_t warned_next;
    std::atomic<int64_t> believed_clock_us;
    std::atomic<Latch *> padder;
    std::atomic<int64_t> padder_started_at_us;
};
Header *header = nullptr;

Size slots_bytes() { return mul_size(static_cast<Size>(settings::max_slots), sizeof(Slot)); }

// Shared memory is handed out in multiples of a cache line only by chance.
Size slots_bytes_aligned() { return add_size(add_size(slots_bytes(), sizeof(Header)), core::cache_line); }

DirectoryEntry *lookup(const SlotKey &key, HASHACTION action) {
    return static_cast<DirectoryEntry *>(hash_search(directory, &key, action, nullptr));
}

bool segments_have_their_share() {
    int32_t segments = 0;
    for (int32_t i = 0; i < settings::max_slots; i++)
        segments += slots[i].kind == SlotKind::segment ? 1 : 0;
    return segments >= settings::max_slots - settings::max_slots / 8;
}

int32_t unused_index(SlotKind wanted_for) {
    if (wanted_for == SlotKind::segment && segments_have_their_share())
        return -1;
    for (int32_t i = 0; i < settings::max_slots; i++)
        if (slots[i].kind == SlotKind::unused)
            return i;
    return -1;
}

void initialize(RingState *ring, dsm_handle memory, uint64_t run) {
    ring->hints.reset(0);
    ring->shared.reset(run);
    ring->memory = memory;
    ring->given_up_below.store(0, std::memory_order_relaxed);
    ring->padded_at_us.store(0, std::memory_order_relaxed);
    ring->went_stale.store(false, std::memory_order_relaxed);
    for (auto &count : ring->paddings)
        count.store(0, std::memory_order_relaxed);
    ring->rejected_puts.store(0, std::memory_order_relaxed);
    ring->rejected_takes.store(0, std::memory_order_relaxed);
    ring->too_old.store(0, std::memory_order_relaxed);
}

void initialize(Slot *slot, const SlotKey &key, const SlotInit &init) {
    slot->key = key;
    slot->kind = init.kind;
    slot->file = init.file;
    slot->expected = init.expected;
    slot->used_at.store(0, std::memory_order_relaxed);
    slot->records.store(0, std::memory_order_relaxed);
    slot->flush_waits.store(0, std::memory_order_relaxed);
    slot->standby_waits.store(0, std::memory_order_relaxed);
    slot->clock_waits.store(0, std::memory_order_relaxed);
    if (init.kind == SlotKind::generator) {
        GeneratorState &generator = slot->generator;
        generator.ticks.reset(init.first_position);
        generator.backup.reset(init.first_position);
        generator.seen.store(core::nothing_seen, std::memory_order_relaxed);
        generator.config = init.config;
        generator.not_its_own = init.not_its_own;
        generator.worker_id.store(no_worker, std::memory_order_relaxed);
        generator.row_owed.store(false, std::memory_order_relaxed);
        generator.row_due.store(0, std::memory_order_relaxed);
        initialize(&generator.ring, init.ring_memory, init.config.cached.run);
    } else if (init.kind == SlotKind::segment) {
        SegmentState &segment = slot->segment;
        segment.word.reset(0);
        const SavedRanges kept = saved_ranges_take(key.database, key.sequence, init.file, init.expected.counter, init.expected.lsn);
        for (const RangeLeft &left : kept.left)
            if (left.count > 0)
                segment.word.publish(left.count, left.first, left.increment, kept.lsn);
        segment.bounds = init.bounds;
        segment.step = {init.bounds.base, core::StepReason::base};
        segment.disturbed = false;
        segment.reserved_at_us = segment.lasted_us = segment.refilled_at_us = 0;
        for (auto &count : segment.refills)
            count = 0;
    } else {
        for (GoneGenerators &gone : slot->database.gone)
            gone = {};
    }
}

bool same_layout(const core::Layout &a, const core::Layout &b) {
    return a.epoch_us == b.epoch_us && a.tick_us == b.tick_us && a.time_bits == b.time_bits &&
           a.datacenter_bits == b.datacenter_bits && a.worker_bits == b.worker_bits &&
           a.sequence_bits == b.sequence_bits && a.sequence_first == b.sequence_first && a.backup == b.backup;
}

// The layout's own place, or the one that was left longest ago.
GoneGenerators *place_for(DatabaseState *database, const core::Layout &layout) {
    GoneGenerators *place = &database->gone[0];
    for (GoneGenerators &gone : database->gone) {
        if (same_layout(gone.layout, layout))
            return &gone;
        if (gone.handed_out_until_us < place->handed_out_until_us)
            place = &gone;
    }
    *place = {layout, 0};
    return place;
}

void remember_last_time(const Slot &slot) {
    const DirectoryEntry *entry = lookup({slot.key.database, InvalidOid}, HASH_FIND);
    const bool has_leased = slot.kind == SlotKind::generator && slot.records.load(std::memory_order_relaxed) > 0;
    if (!has_leased || entry == nullptr)
        return;
    const core::Layout &layout = slot.generator.config.layout;
    const uint64_t position = Max(slot.generator.ticks.last(), slot.generator.backup.last());
    const int64_t last = static_cast<int64_t>(position >> layout.sequence_bits) % slot.generator.config.policy.end;
    GoneGenerators *gone = place_for(&slots[entry->index].database, layout);
    gone->handed_out_until_us = Max(gone->handed_out_until_us, core::start_of(layout, last));
}

bool has_ring(const Slot &slot) { return slot.kind == SlotKind::generator && slot.generator.config.cached.on; }

// Its ring's memory, to be unpinned when the lock is released; DSM_HANDLE_INVALID if there is none.
dsm_handle free_entry(DirectoryEntry *entry) {
    Slot *slot = &slots[entry->index];
    remember_last_time(*slot);
    const dsm_handle memory = has_ring(*slot) ? slot->generator.ring.memory : DSM_HANDLE_INVALID;
    slot->kind = SlotKind::unused;
    slot->tenancy.fetch_add(1, std::memory_order_release); // pairs with the check in attach.cpp
    lookup(entry->key, HASH_REMOVE);
    return memory;
}

// The memory goes when the last process has let go of it.
void unpin(dsm_handle memory) {
    if (memory != DSM_HANDLE_INVALID)
        dsm_unpin_segment(memory);
}

bool worker_is_taken(const Slot *of, int32_t worker_id) {
    for (int32_t i = 0; i < settings::max_slots; i++) {
        const Slot &other = slots[i];
        if (&other != of && other.kind == SlotKind::generator &&
            other.generator.worker_id.load(std::memory_order_relaxed) == worker_id &&
            same_layout(other.generator.config.layout, of->generator.config.layout))
            return true;
    }
    return false;
}

// Relaxed: the row's writer reads them under the directory lock.
void set_draw(GeneratorState *generator, int64_t draw, int64_t now_us) {
    generator->worker_draw.store(draw, std::memory_order_relaxed);
    generator->drawn_at_us = now_us;
    generator->drawn_datacenter_id = settings::datacenter_id;
    generator->row_owed.store(true, std::memory_order_relaxed);
    generator->row_due.store(0, std::memory_order_relaxed);
}

RangeLeft range_left(const core::Range &range, uint64_t next) {
    const uint64_t from = Max(range.begin, next);
    if (from >= range.end)
        return {0, 0, 0};
    return {range.end - from, range.value(from), range.increment};
}

// The ranges of the next segment from slot number *cursor on that has something left. Only when no backend is left.
bool next_saved(SavedRanges *entry, int *cursor) {
    while (*cursor < settings::max_slots) {
        const Slot &slot = slots[(*cursor)++];
        if (slot.kind != SlotKind::segment)
            continue;
        core::Range ranges[2];
        slot.segment.word.ranges(ranges);
        const uint64_t next = slot.segment.word.next();
        *entry = {slot.key.database, slot.key.sequence, slot.file, slot.expected.counter.last_value, slot.expected.lsn, InvalidXLogRecPtr,
                  {range_left(ranges[0], next), range_left(ranges[1], next)}};
        if (entry->left[0].count > 0 || entry->left[1].count > 0)
            return true;
    }
    return false;
}

void save_ranges(int code, Datum) {
    if (code == 0)
        saved_ranges_write(next_saved);
}

} // namespace

bool slots_segments_have_their_share() {
    LWLockAcquire(directory_lock, LW_SHARED);
    const bool full = segments_have_their_share();
    LWLockRelease(directory_lock);
    return full;
}

bool slots_exist() { return slots != nullptr; }

// Relaxed: a figure of its own.
int64_t slots_believed_clock() { return header->believed_clock_us.load(std::memory_order_relaxed); }
void slots_believe_clock(int64_t offset_us) { header->believed_clock_us.store(offset_us, std::memory_order_relaxed); }

void slots_request_memory() {
    const Size entries =
        hash_estimate_size(static_cast<long>(settings::max_slots), sizeof(DirectoryEntry));
    RequestAddinShmemSpace(add_size(add_size(slots_bytes_aligned(), saved_ranges_bytes()), entries));
    RequestNamedLWLockTranche(tranche_name, 1);
}

void slots_attach_memory() {
    bool found = false;
    LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
    directory_lock = &GetNamedLWLockTranche(tranche_name)->lock;

    HASHCTL control = {};
    control.keysize = sizeof(SlotKey);
    control.entrysize = sizeof(DirectoryEntry);
    directory = ShmemInitHash(directory_name, settings::max_slots, settings::max_slots, &control,
                              HASH_ELEM | HASH_BLOBS);

    char *memory = static_cast<char *>(ShmemInitStruct(slots_name, slots_bytes_aligned(), &found));
    header = reinterpret_cast<Header *>(memory);
    slots = reinterpret_cast<Slot *>(TYPEALIGN(core::cache_line, memory + sizeof(Header)));
    if (!found) {
        memset(static_cast<void *>(slots), 0, slots_bytes()); // every slot unused
        header->warned_next = 0;
        for (Warned &warned : header->warned)
            warned = {};
        slots_believe_clock(clock_offset_us());
        header->padder.store(nullptr, std::memory_order_relaxed);
        header->padder_started_at_us.store(0, std::memory_order_relaxed);
    }
    saved_ranges_attach_memory();
    if (!IsUnderPostmaster)
        on_shmem_exit(save_ranges, 0);
    LWLockRelease(AddinShmemInitLock);
}

int64_t gone_until_us(const core::Layout &layout) {
    int64_t until = 0;
    LWLockAcquire(directory_lock, LW_SHARED);
    const DirectoryEntry *entry = lookup({MyDatabaseId, InvalidOid}, HASH_FIND);
    if (entry != nullptr)
        for (const GoneGenerators &gone : slots[entry->index].database.gone)
            if (same_layout(gone.layout, layout))
                until = gone.handed_out_until_us;
    LWLockRelease(directory_lock);
    return until;
}

bool slots_first_warning(SlotKey key, int64_t end_us) {
    bool known = false;
    LWLockAcquire(directory_lock, LW_EXCLUSIVE);
    for (const Warned &warned : header->warned)
        known = known || (memcmp(&warned.key, &key, sizeof(key)) == 0 && warned.end_us == end_us);
    if (!known)
        header->warned[header->warned_next++ % warned_places] = {key, end_us};
    LWLockRelease(directory_lock);
    return !known;
}

Slot *slot_find(SlotKey key) {
    LWLockAcquire(directory_lock, LW_SHARED);
    const DirectoryEntry *entry = lookup(key, HASH_FIND);
    Slot *slot = entry != nullptr ? &slots[entry->index] : nullptr;
    LWLockRelease(directory_lock);
    return slot;
}

bool slot_copy(SlotKey key, SlotCopy *copy) {
    LWLockAcquire(directory_lock, LW_SHARED);
    const DirectoryEntry *entry = lookup(key, HASH_FIND);
    const Slot *slot = entry != nullptr ? &slots[entry->index] : nullptr;
    if (slot != nullptr) {
        *copy = {slot, slot->kind, slot->tenancy.load(std::memory_order_relaxed), {}};
        if (slot->kind == SlotKind::generator)
            copy->config = slot->generator.config;
    }
    LWLockRelease(directory_lock);
    return slot != nullptr;
}

Slot *slot_find_or_make(SlotKey key, const SlotInit &init) {
    LWLockAcquire(directory_lock, LW_EXCLUSIVE);
    const DirectoryEntry *found = lookup(key, HASH_FIND);
    int32_t index = found != nullptr ? found->index : -1;
    if (found == nullptr) {
        index = unused_index(init.kind);
        if (index >= 0) {
            initialize(&slots[index], key, init);
            lookup(key, HASH_ENTER)->index = index;
        }
    }
    LWLockRelease(directory_lock);
    return index >= 0 ? &slots[index] : nullptr;
}

void slot_free(SlotKey key) {
    LWLockAcquire(directory_lock, LW_EXCLUSIVE);
    DirectoryEntry *entry = lookup(key, HASH_FIND);
    const dsm_handle memory = entry != nullptr ? free_entry(entry) : DSM_HANDLE_INVALID;
    LWLockRelease(directory_lock);
    unpin(memory);
}

bool slot_note_drop(SlotKey key) {
    LWLockAcquire(directory_lock, LW_EXCLUSIVE);
    const DirectoryEntry *entry = lookup(key, HASH_FIND);
    if (entry != nullptr)
        remember_last_time(slots[entry->index]);
    if (saved_ranges_exist())
        saved_ranges_forget(key.database, key.sequence);
    LWLockRelease(directory_lock);
    return entry != nullptr;
}

// Frees slots of the database until so many have had a ring; how many.
static int32_t free_some(Oid database, dsm_handle *memories, int32_t most) {
    int32_t found = 0;
    HASH_SEQ_STATUS scan;
    LWLockAcquire(directory_lock, LW_EXCLUSIVE);
    hash_seq_init(&scan, directory);
    // Removing the entry just returned is what dynahash allows during a scan.
    while (auto *entry = static_cast<DirectoryEntry *>(hash_seq_search(&scan))) {
        if (entry->key.database != database)
            continue;
        const dsm_handle memory = free_entry(entry);
        if (memory != DSM_HANDLE_INVALID)
            memories[found++] = memory;
        if (found == most) {
            hash_seq_term(&scan);
            break;
        }
    }
    saved_ranges_forget(database, InvalidOid);
    LWLockRelease(directory_lock);
    return found;
}

void slots_free_database(Oid database) {
    constexpr int32_t at_a_time = 32;
    dsm_handle memories[at_a_time];
    int32_t found = 0;
    do {
        found = free_some(database, memories, at_a_time);
        for (int32_t i = 0; i < found; i++)
            unpin(memories[i]);
    } while (found == at_a_time);
}

int32_t slots_places() { return settings::max_slots; }

int32_t slots_next_ring(int32_t from) {
    int32_t place = from;
    LWLockAcquire(directory_lock, LW_SHARED);
    while (place < settings::max_slots && !has_ring(slots[place]))
        place++;
    LWLockRelease(directory_lock);
    return place < settings::max_slots ? place : -1;
}

bool slots_with_ring(int32_t place, void (*pad)(Slot *slot, void *arg), void *arg) {
    LWLockAcquire(directory_lock, LW_SHARED);
    const bool there = has_ring(slots[place]);
    if (there)
        pad(&slots[place], arg);
    LWLockRelease(directory_lock);
    return there;
}

// Acquire and release: a latch is seen only after it was made ready, and no latch only after what was said before.
Latch *slots_padder() { return header->padder.load(std::memory_order_acquire); }

bool slots_become_padder(Latch *latch) {
    Latch *none = nullptr;
    return header->padder.compare_exchange_strong(none, latch, std::memory_order_acq_rel, std::memory_order_relaxed);
}

void slots_resign_as_padder(Latch *latch) {
    header->padder.compare_exchange_strong(latch, nullptr, std::memory_order_acq_rel, std::memory_order_relaxed);
}

void slots_padder_found_nothing() { header->padder_started_at_us.store(0, std::memory_order_relaxed); }

bool slots_may_start_padder(int64_t now_us) {
    constexpr int64_t pause_us = 1000 * us_per_ms;
    int64_t last = header->padder_started_at_us.load(std::memory_order_relaxed);
    return (last == 0 || now_us - last > pause_us) &&
           header->padder_started_at_us.compare_exchange_strong(last, now_us, std::memory_order_relaxed);
}

void slots_visit(void (*visit)(Slot *slot, void *arg), void *arg) {
    LWLockAcquire(directory_lock, LW_SHARED);
    for (int32_t i = 0; i < settings::max_slots; i++)
        if (slots[i].kind != SlotKind::unused)
            visit(&slots[i], arg);
    LWLockRelease(directory_lock);
}

bool slot_set_worker(Slot *slot, int32_t worker_id, int64_t draw, int64_t now_us, bool insist) {
    GeneratorState &generator = slot->generator;
    LWLockAcquire(directory_lock, LW_EXCLUSIVE);
    const bool set_already = generator.worker_id.load(std::memory_order_relaxed) != no_worker;
    const bool free = !set_already && (insist || !worker_is_taken(slot, worker_id));
    if (free) {
        set_draw(&generator, draw, now_us);
        generator.worker_id.store(worker_id, std::memory_order_release);
    }
    LWLockRelease(directory_lock);
    return set_already || free;
}

void slot_begin_term(Slot *slot, int64_t draw, int64_t now_us) {
    LWLockAcquire(directory_lock, LW_EXCLUSIVE);
    set_draw(&slot->generator, draw, now_us);
    LWLockRelease(directory_lock);
}

} // namespace uidgen::pg
