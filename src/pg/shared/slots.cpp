#include "slots.hpp"

#include "incarnation.hpp"
#include "lost_generators.hpp"
#include "base/settings.hpp"
#include "base/time_source.hpp"

namespace uidgen::pg {
namespace {

constexpr char slots_name[] = "uidgen slots";
constexpr char tranche_name[] = "uidgen";

Directory directory; // guarded by directory_lock
LWLock *directory_lock = nullptr;
Slot *slots = nullptr;

// Stands before the slots.
struct Header {
    int32_t segments;                  // slots of segments; guarded by the directory lock
    std::atomic<uint64_t> rings_freed; // how many slots with a ring were freed
    std::atomic<uint32_t> next_look;   // where slots_to_look_at() goes on
    Stats freed;                       // what the slots counted that were freed
};
Header *header = nullptr;

Size slots_bytes() { return mul_size(static_cast<Size>(settings::max_slots), sizeof(Slot)); }

// Shared memory is handed out in multiples of a cache line only by chance.
Size slots_bytes_aligned() { return add_size(add_size(slots_bytes(), sizeof(Header)), core::cache_line); }

bool segments_have_their_share() { return header->segments >= settings::max_slots - settings::max_slots / 8; }

// Null: there is none.
Slot *find(const SlotKey &key) {
    const int32_t place = directory.find(key);
    return place != no_cell ? &slots[place] : nullptr;
}

// Null: all are in use, or all that segments may use.
Slot *take_unused(const SlotKey &key, SlotKind wanted_for) {
    if (wanted_for == SlotKind::segment && segments_have_their_share())
        return nullptr;
    const Directory::Taken taken = directory.take(key);
    return taken.cell != no_cell ? &slots[taken.cell] : nullptr;
}

void initialize(RingState *ring, dsm_handle memory, uint64_t run) {
    ring->hints.reset(0);
    ring->shared.reset(run);
    ring->memory = memory;
    ring->discarded_below.store(0, std::memory_order_relaxed);
    ring->refilled_ring_at_us.store(0, std::memory_order_relaxed);
    ring->went_stale.store(false, std::memory_order_relaxed);
    for (auto &count : ring->ring_refills)
        count.store(0, std::memory_order_relaxed);
    ring->shared_before.store(0 - run, std::memory_order_relaxed); // the word begins at the end of a run
    ring->rejected_puts.store(0, std::memory_order_relaxed);
    ring->rejected_takes.store(0, std::memory_order_relaxed);
    ring->too_old.store(0, std::memory_order_relaxed);
}

void initialize(ClockEvents *clock) {
    clock->changes.store(0, std::memory_order_relaxed);
    clock->backup_ids.store(0, std::memory_order_relaxed);
}

void initialize(Slot *slot, const SlotKey &key, const SlotInit &init) {
    slot->key = key;
    slot->kind = init.kind;
    slot->file = init.file;
    slot->expected = init.expected;
    slot->used_at.store(0, std::memory_order_relaxed);
    reset(&slot->counters);
    slot->ids_shown.store(0, std::memory_order_relaxed);
    if (init.kind == SlotKind::generator) {
        GeneratorState &generator = slot->generator;
        generator.ticks.reset(init.first_position);
        generator.backup.reset(init.first_position);
        generator.passed_over.reset(init.first_position);
        generator.seen.store(core::nothing_seen, std::memory_order_relaxed);
        generator.config = init.config;
        generator.config.policy.spread.salt = incarnation_salt();
        generator.number.store(no_number, std::memory_order_relaxed);
        generator.warned.store(false, std::memory_order_relaxed);
        generator.worker_draw.store(0, std::memory_order_relaxed);
        generator.grant_place.store(0, std::memory_order_relaxed);
        generator.granted_node.store(-1, std::memory_order_relaxed);
        generator.row_owed.store(false, std::memory_order_relaxed);
        generator.row_due.store(0, std::memory_order_relaxed);
        initialize(&generator.ring, init.ring_memory, init.config.cached.run);
        initialize(&generator.clock);
    } else {
        header->segments++;
        SegmentState &segment = slot->segment;
        segment.word.reset(0);
        segment.passed_over.reset(0);
        segment.fleet = 0;
        segment.bounds = init.bounds;
        segment.step = {init.bounds.base, core::StepReason::base};
        segment.disturbed = false;
        segment.reserved_at_us = segment.refilled_at_us = 0;
        segment.reserved_at = 0;
        segment.pace = {0, 0};
        for (auto &count : segment.refills)
            count = 0;
    }
}

// How many ids of a generator's ring the sessions have drawn from shared runs. Acquire pairs with take_shared() in
// draw_cached.cpp: the run that is read next is not one of those before.
uint64_t drawn_from_shared_runs(const RingState &ring, uint64_t run) {
    const uint64_t before = ring.shared_before.load(std::memory_order_acquire);
    return before + (ring.shared.last() & (run - 1)) + 1;
}

// Ids that are known without being counted.
uint64_t ids_by_words(const Slot &slot) {
    if (slot.kind == SlotKind::segment)
        return slot.segment.passed_over.handed_out(slot.segment.word.next());
    const GeneratorState &generator = slot.generator;
    const CachedConfig &cached = generator.config.cached;
    const uint64_t backup = generator.clock.backup_ids.load(std::memory_order_relaxed);
    if (cached.on)
        return cached.shares ? drawn_from_shared_runs(generator.ring, cached.run) : 0;
    return generator.passed_over.handed_out(generator.ticks.last() + 1) + backup;
}

bool has_ring(const Slot &slot) { return slot.kind == SlotKind::generator && slot.generator.config.cached.on; }

// Its ring's memory, to be unpinned when the lock is released; DSM_HANDLE_INVALID if there is none.
dsm_handle free_under_lock(Slot *slot) {
    const dsm_handle memory = has_ring(*slot) ? slot->generator.ring.memory : DSM_HANDLE_INVALID;
    add(&header->freed, slot_counted(slot));
    header->segments -= slot->kind == SlotKind::segment ? 1 : 0;
    header->rings_freed.fetch_add(memory != DSM_HANDLE_INVALID ? 1 : 0, std::memory_order_relaxed);
    slot->kind = SlotKind::unused;
    slot->generation.fetch_add(1, std::memory_order_release); // pairs with slot_was_freed() in session.cpp
    directory.give_up(slot->key);
    return memory;
}

// The memory goes when the last process has let go of it.
void unpin(dsm_handle memory) {
    if (memory != DSM_HANDLE_INVALID)
        dsm_unpin_segment(memory);
}

bool node_is_taken(const Slot *of, int64_t node) {
    for (int32_t i = 0; i < directory.ever_used(); i++) {
        const Slot &other = slots[i];
        if (&other != of && other.kind == SlotKind::generator &&
            other.generator.number.load(std::memory_order_relaxed) != no_number && other.generator.drawn_node == node &&
            core::same_layout(other.generator.config.layout, of->generator.config.layout))
            return true;
    }
    return false;
}

// Relaxed: the row's writer reads them under the directory lock.
void set_draw(GeneratorState *generator, const NodeDraw &draw) {
    generator->worker_draw.store(draw.id, std::memory_order_relaxed);
    generator->drawn_at_us = draw.at_us;
    generator->drawn_node = draw.node;
    generator->row_owed.store(true, std::memory_order_relaxed);
    generator->row_due.store(0, std::memory_order_relaxed);
}

} // namespace

// The words may say less than a moment ago (PassedOver, invariant 1), but a counter must not
// go back.
Stats slot_counted(Slot *slot) {
    Stats now;
    for (uint32_t i = 0; i < stat_count; i++)
        now.values[i] = slot->counters.values[i].load(std::memory_order_relaxed);
    uint64_t &ids = now.values[index(Stat::ids)];
    ids += ids_by_words(*slot);
    core::raise_to(slot->ids_shown, ids, std::memory_order_relaxed);
    ids = Max(ids, slot->ids_shown.load(std::memory_order_relaxed));
    return now;
}

bool slots_segments_have_their_share() {
    LWLockAcquire(directory_lock, LW_SHARED);
    const bool full = segments_have_their_share();
    LWLockRelease(directory_lock);
    return full;
}

bool slots_exist() { return slots != nullptr; }

void slots_request_memory() {
    Directory::request_memory();
    RequestAddinShmemSpace(slots_bytes_aligned());
    RequestNamedLWLockTranche(tranche_name, 1);
}

void slots_attach_memory() {
    bool found = false;
    LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
    directory_lock = &GetNamedLWLockTranche(tranche_name)->lock;
    directory.attach(slots_name);
    char *memory = static_cast<char *>(ShmemInitStruct(slots_name, slots_bytes_aligned(), &found));
    header = reinterpret_cast<Header *>(memory);
    slots = reinterpret_cast<Slot *>(TYPEALIGN(core::cache_line, memory + sizeof(Header)));
    if (!found) {
        memset(static_cast<void *>(slots), 0, slots_bytes()); // every slot unused
        header->segments = 0;
        header->rings_freed.store(0, std::memory_order_relaxed);
        header->next_look.store(0, std::memory_order_relaxed);
        header->freed = {};
    }
    LWLockRelease(AddinShmemInitLock);
}

Slot *slot_find(SlotKey key) {
    LWLockAcquire(directory_lock, LW_SHARED);
    Slot *slot = find(key);
    LWLockRelease(directory_lock);
    return slot;
}

bool slot_copy(SlotKey key, SlotCopy *copy) {
    LWLockAcquire(directory_lock, LW_SHARED);
    const Slot *slot = find(key);
    if (slot != nullptr) {
        *copy = {slot, slot->kind, slot->generation.load(std::memory_order_relaxed), {}};
        if (slot->kind == SlotKind::generator)
            copy->config = slot->generator.config;
    }
    LWLockRelease(directory_lock);
    return slot != nullptr;
}

Slot *slot_find_or_make(SlotKey key, const SlotInit &init) {
    LWLockAcquire(directory_lock, LW_EXCLUSIVE);
    Slot *slot = find(key);
    if (slot == nullptr) {
        slot = take_unused(key, init.kind);
        if (slot != nullptr)
            initialize(slot, key, init);
    }
    LWLockRelease(directory_lock);
    return slot;
}

void slot_free(SlotKey key) {
    if (slot_find(key) == nullptr)
        return;
    dsm_handle memory = DSM_HANDLE_INVALID;
    int64_t until_us = 0;
    core::Layout layout = {};
    LWLockAcquire(directory_lock, LW_EXCLUSIVE);
    Slot *slot = find(key);
    if (slot != nullptr) {
        until_us = slot_last_time(*slot);
        if (until_us > 0)
            layout = slot->generator.config.layout;
        memory = free_under_lock(slot);
    }
    LWLockRelease(directory_lock);
    unpin(memory);
    if (until_us > 0)
        remember_last_time(key, layout, until_us);
}

int slots_to_look_at(SlotKey *keys, int most) {
    int count = 0;
    LWLockAcquire(directory_lock, LW_SHARED);
    const int32_t in_use = directory.ever_used();
    for (int32_t i = 0; i < Min(most, in_use); i++) {
        const Slot &slot =
            slots[header->next_look.fetch_add(1, std::memory_order_relaxed) % static_cast<uint32_t>(in_use)];
        if (slot.kind != SlotKind::unused)
            keys[count++] = slot.key;
    }
    LWLockRelease(directory_lock);
    return count;
}

int64_t slot_last_time(const Slot &slot) {
    if (slot.kind != SlotKind::generator || counted(slot.counters, Stat::records) == 0)
        return 0;
    const core::Layout &layout = slot.generator.config.layout;
    const uint64_t position = Max(slot.generator.ticks.last(), slot.generator.backup.last());
    const int64_t tick = static_cast<int64_t>(position >> layout.sequence_bits) % slot.generator.config.policy.end;
    return core::start_of(layout, tick);
}

// Relaxed: a session that sees it late unmaps the ring after a later transaction.
uint64_t slots_rings_freed() { return slots_exist() ? header->rings_freed.load(std::memory_order_relaxed) : 0; }

int32_t slots_places() { return settings::max_slots; }

int32_t slots_next_ring(int32_t from) {
    LWLockAcquire(directory_lock, LW_SHARED);
    int32_t place = from;
    while (place < directory.ever_used() && !has_ring(slots[place]))
        place++;
    const bool found = place < directory.ever_used();
    LWLockRelease(directory_lock);
    return found ? place : -1;
}

bool slots_with_ring(int32_t place, void (*refill)(Slot *slot, void *arg), void *arg) {
    LWLockAcquire(directory_lock, LW_SHARED);
    const bool there = has_ring(slots[place]);
    if (there)
        refill(&slots[place], arg);
    LWLockRelease(directory_lock);
    return there;
}

void slots_visit(void (*visit)(Slot *slot, void *arg), void *arg) {
    LWLockAcquire(directory_lock, LW_SHARED);
    for (int32_t i = 0; i < directory.ever_used(); i++)
        if (slots[i].kind != SlotKind::unused)
            visit(&slots[i], arg);
    LWLockRelease(directory_lock);
}

Stats slots_counted() {
    LWLockAcquire(directory_lock, LW_SHARED);
    Stats sum = header->freed;
    for (int32_t i = 0; i < directory.ever_used(); i++)
        if (slots[i].kind != SlotKind::unused)
            add(&sum, slot_counted(&slots[i]));
    LWLockRelease(directory_lock);
    return sum;
}

bool slot_set_number(Slot *slot, int64_t number, const NodeDraw &draw, bool insist) {
    GeneratorState &generator = slot->generator;
    LWLockAcquire(directory_lock, LW_EXCLUSIVE);
    const bool set_already = generator.number.load(std::memory_order_relaxed) != no_number;
    const bool free = !set_already && (insist || !node_is_taken(slot, draw.node));
    if (free) {
        set_draw(&generator, draw);
        generator.number.store(number, std::memory_order_release);
    }
    LWLockRelease(directory_lock);
    return set_already || free;
}

void slot_set_node(Slot *slot, const NodeDraw &draw) {
    LWLockAcquire(directory_lock, LW_EXCLUSIVE);
    set_draw(&slot->generator, draw);
    LWLockRelease(directory_lock);
}

} // namespace uidgen::pg
