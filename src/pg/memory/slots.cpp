#include "slots.hpp"

#include "base/errors.hpp"
#include "base/time_source.hpp"
#include "memberships.hpp"

namespace uidgen::pg {

namespace {

using Cell = std::atomic<uint64_t>;
static_assert(sizeof(Cell) == sizeof(uint64_t), "the ring's size is reckoned by its cells' contents");

// Slots are made so many bytes at a time. Objects of more than 8 kB begin at a page, which aligns slots to cache lines.
constexpr Size bytes_at_a_time = 32 * 1024;

SlotLists &lists_of(SlotKind kind) {
    return server_state->area.slots[static_cast<uint32_t>(kind) - static_cast<uint32_t>(SlotKind::generator)];
}

constexpr Size bytes_of(SlotKind kind) {
    const Size end = kind == SlotKind::generator ? offsetof(Slot, generator) + sizeof(GeneratorState)
                                                 : offsetof(Slot, segment) + sizeof(SegmentState);
    return TYPEALIGN(core::cache_line, end);
}

// ---------------------------------------------------------------------------------------------------------
// Memory
// ---------------------------------------------------------------------------------------------------------

// Locks and condition variables are initialised once, because a process may look at a slot at any time from then on.
void initialize_once(Slot *slot, dsa_pointer self, SlotKind kind) {
    slot->self = self;
    slot->kind = kind;
    slot->phase = SlotPhase::free;
    LWLockInitialize(&slot->lock, server_state->tranche);
    if (kind == SlotKind::generator)
        ConditionVariableInit(&slot->generator.membership.changed);
    else
        ConditionVariableInit(&slot->segment.block.changed);
}

void add_to_lists(Slot *slot) {
    SlotLists &lists = lists_of(slot->kind);
    lock_state(LW_EXCLUSIVE);
    slot->next = lists.newest.load(std::memory_order_relaxed);
    slot->next_free = lists.first_free;
    lists.first_free = slot->self;
    lists.newest.store(slot->self, std::memory_order_release); // pairs with first_slot()
    unlock_state();
}

void add_slots(SlotKind kind) {
    const Size stride = bytes_of(kind);
    const dsa_pointer memory = allocate_in_area(bytes_at_a_time, "slots of generators and segments");
    char *first = in_area<char>(memory);
    for (Size at = 0; at + stride <= bytes_at_a_time; at += stride) {
        auto *slot = reinterpret_cast<Slot *>(first + at);
        initialize_once(slot, memory + at, kind);
        add_to_lists(slot);
    }
}

dsa_pointer make_ring(uint64_t cells) {
    const Size bytes = cells * sizeof(Cell);
    const dsa_pointer memory = allocate_in_area(bytes, psprintf("the ring of a generator, %zu bytes", bytes));
    core::Ring<>(nullptr, in_area<Cell>(memory), cells).clear();
    return memory;
}

// InvalidDsaPointer: another session has taken the last one.
dsa_pointer take_free_slot(SlotKind kind) {
    SlotLists &lists = lists_of(kind);
    lock_state(LW_EXCLUSIVE);
    const dsa_pointer taken = lists.first_free;
    if (DsaPointerIsValid(taken))
        lists.first_free = in_area<Slot>(taken)->next_free;
    unlock_state();
    return taken;
}

// ---------------------------------------------------------------------------------------------------------
// Contents
// ---------------------------------------------------------------------------------------------------------

// Whoever changes what the draw of a node compares.
void lock_both(Slot *slot) {
    LWLockAcquire(&slot->lock, LW_EXCLUSIVE);
    lock_state(LW_EXCLUSIVE);
}

void unlock_both(Slot *slot) {
    unlock_state();
    LWLockRelease(&slot->lock);
}

// All but the membership. What is not set here begins with 0.
void reset(GeneratorState *generator, const SlotInit &init, dsa_pointer cells) {
    const uint64_t run = init.config.cached.run;
    memset(static_cast<void *>(generator), 0, offsetof(GeneratorState, membership));
    generator->ticks.reset(init.first_position);
    generator->backup.reset(init.first_position);
    generator->passed_over.reset(init.first_position);
    generator->seen.store(core::nothing_seen, std::memory_order_relaxed);
    generator->config = init.config;
    generator->config.policy.spread.salt = server_state->salt;
    generator->number.store(no_number, std::memory_order_relaxed);
    generator->granted_node.store(core::no_node, std::memory_order_relaxed);
    generator->membership.requested_in.store(0, std::memory_order_relaxed);
    generator->ring.cells = cells;
    generator->ring.is_refilled = true;
    generator->ring.shared.reset(run);
    generator->ring.shared_before.store(0 - run, std::memory_order_relaxed); // the word begins at the end of a run
}

// All but the block.
void reset(SegmentState *segment, const SlotInit &init) {
    memset(static_cast<void *>(segment), 0, offsetof(SegmentState, block));
    segment->bounds = init.bounds;
    segment->step = init.bounds.base;
}

void reset(Slot *slot, const SlotInit &init, dsa_pointer cells) {
    slot->file = init.file;
    slot->expected = init.expected;
    if (slot->kind == SlotKind::segment) {
        reset(&slot->segment, init);
        return;
    }
    reset(&slot->generator, init, cells);
    slot->generator.records_before = counted(slot->counters, Stat::records);
}

void set_phase(Slot *slot, SlotPhase phase) {
    slot->phase = phase;
    slot->generation.fetch_add(1, std::memory_order_release); // pairs with slot_was_freed() in session.cpp
}

void begin_use(Slot *slot, const SlotKey &key) {
    lock_both(slot);
    slot->key = key;
    memset(static_cast<void *>(&slot->counters), 0, sizeof(slot->counters));
    slot->ids_shown.store(0, std::memory_order_relaxed);
    reset(slot, {slot->kind}, InvalidDsaPointer);
    set_phase(slot, SlotPhase::stale);
    unlock_both(slot);
}

void forget_fleet(Slot *slot) {
    if (slot->kind == SlotKind::generator)
        slot->generator.membership.fields.used = false;
    else
        blocks_discard(slot);
}

// The cells of its ring, to be freed when the locks are released.
dsa_pointer take_cells(Slot *slot) {
    if (slot->kind != SlotKind::generator)
        return InvalidDsaPointer;
    const dsa_pointer cells = slot->generator.ring.cells;
    slot->generator.ring.cells = InvalidDsaPointer;
    return cells;
}

// The slot has no ring until now: it was free, or has lost it when it was reset.
void make_ready(Slot *slot, const SlotInit &init, dsa_pointer *cells) {
    lock_both(slot);
    const int64_t until_us = slot->kind == SlotKind::generator ? slot_last_time(*slot) : 0;
    count(&slot->counters, Stat::ids, ids_by_words(*slot)); // the words lose what they say
    reset(slot, init, *cells);
    if (slot->kind == SlotKind::generator)
        slot->generator.former_until_us = until_us;
    set_phase(slot, SlotPhase::ready);
    unlock_both(slot);
    *cells = InvalidDsaPointer;
}

// Returns the cells of its ring.
dsa_pointer end_use(Slot *slot) {
    lock_both(slot);
    forget_fleet(slot);
    const dsa_pointer cells = take_cells(slot);
    add(&server_state->freed, slot_counted(slot));
    set_phase(slot, SlotPhase::free);
    slot->next_free = lists_of(slot->kind).first_free;
    lists_of(slot->kind).first_free = slot->self;
    unlock_both(slot);
    return cells;
}

// ---------------------------------------------------------------------------------------------------------
// The table
// ---------------------------------------------------------------------------------------------------------

// Null: there is none.
Slot *slot_of(const SlotEntry *entry) {
    return entry != nullptr && DsaPointerIsValid(entry->slot) ? in_area<Slot>(entry->slot) : nullptr;
}

void release(SlotEntry *entry) {
    if (entry != nullptr)
        dshash_release_lock(slot_table, entry);
}

// The caller holds the entry's lock.
SlotEntry *find_or_make_entry(const SlotKey &key) {
    bool found = false;
    auto *entry = static_cast<SlotEntry *>(
        explained(of_slot_table, [&] { return dshash_find_or_insert(slot_table, &key, &found); }));
    if (!found) {
        entry->slot = InvalidDsaPointer;
        entry->lost_until_us = 0;
    }
    return entry;
}

SlotKey database_of(const SlotKey &key) { return {key.database, InvalidOid, 0}; }

void remember_last_time(const SlotKey &key, int64_t until_us) {
    SlotEntry *entry = find_or_make_entry(database_of(key));
    entry->lost_until_us = Max(entry->lost_until_us, until_us);
    release(entry);
}

// A segment has the oid that a generator had.
void remember_former(const SlotKey &key, Slot *generator) {
    LWLockAcquire(&generator->lock, LW_SHARED);
    const int64_t until_us = same_key(generator->key, key) ? slot_last_time(*generator) : 0;
    LWLockRelease(&generator->lock);
    if (until_us > 0)
        remember_last_time(key, until_us);
}

// What may fail for lack of memory, before anything is taken.
void prepare(const SlotKey &key, SlotKind kind) {
    SlotEntry *entry = find_or_make_entry(key);
    Slot *former = slot_of(entry);
    release(entry);
    if (former != nullptr && former->kind == SlotKind::generator && kind == SlotKind::segment)
        remember_former(key, former);
    if (!DsaPointerIsValid(lists_of(kind).first_free)) // without the lock, because claim() may find none anyhow
        add_slots(kind);
}

// The slot of the key, locked in the table by *entry. A slot of the other kind is of a sequence that had the oid
// before. Null: there is no free slot.
Slot *claim(const SlotKey &key, SlotKind kind, SlotEntry **entry, dsa_pointer *cells) {
    *entry = static_cast<SlotEntry *>(dshash_find(slot_table, &key, true));
    Slot *slot = slot_of(*entry);
    if (*entry == nullptr || (slot != nullptr && slot->kind == kind))
        return slot;
    if (slot != nullptr)
        *cells = end_use(slot);
    (*entry)->slot = take_free_slot(kind);
    slot = slot_of(*entry);
    if (slot != nullptr)
        begin_use(slot, key);
    return slot;
}

} // namespace

Slot *find_slot(Oid sequence) {
    if (!attach_area())
        return nullptr;
    const SlotKey key = slot_key(sequence);
    auto *entry = static_cast<SlotEntry *>(dshash_find(slot_table, &key, false));
    Slot *slot = slot_of(entry);
    release(entry);
    return slot;
}

Slot *find_ready_slot(Oid sequence, SlotKind kind) {
    Slot *slot = find_slot(sequence);
    if (slot == nullptr || slot->kind != kind)
        return nullptr;
    LWLockAcquire(&slot->lock, LW_SHARED);
    const bool is_ready = slot->phase == SlotPhase::ready;
    LWLockRelease(&slot->lock);
    return is_ready ? slot : nullptr;
}

Slot *make_slot(Oid sequence, const SlotInit &init) {
    const SlotKey key = slot_key(sequence);
    Slot *slot = nullptr;
    open_area();
    while (slot == nullptr) {
        SlotEntry *entry = nullptr;
        dsa_pointer former = InvalidDsaPointer;
        prepare(key, init.kind);
        dsa_pointer cells = init.config.cached.on ? make_ring(init.config.cached.cells) : InvalidDsaPointer;
        slot = claim(key, init.kind, &entry, &former);
        if (slot != nullptr && slot->phase != SlotPhase::ready)
            make_ready(slot, init, &cells);
        release(entry);
        free_in_area(cells);
        free_in_area(former);
    }
    return slot;
}

Slot *make_stale_slot(const SlotKey &key) {
    SlotEntry *entry = nullptr;
    dsa_pointer former = InvalidDsaPointer;
    prepare(key, SlotKind::generator);
    Slot *slot = claim(key, SlotKind::generator, &entry, &former);
    release(entry);
    return slot;
}

void expire_slot(Slot *slot) {
    lock_both(slot);
    const dsa_pointer cells = take_cells(slot);
    if (slot->phase == SlotPhase::ready)
        set_phase(slot, SlotPhase::stale);
    if (slot->kind == SlotKind::segment)
        blocks_discard(slot);
    unlock_both(slot);
    free_in_area(cells);
}

void end_slot(Slot *slot) {
    lock_both(slot);
    const dsa_pointer cells = take_cells(slot);
    set_phase(slot, SlotPhase::dropped);
    unlock_both(slot);
    free_in_area(cells);
}

void free_slot(const SlotKey &key, int64_t last_time_us) {
    if (last_time_us > 0)
        remember_last_time(key, last_time_us); // first, because it may fail
    auto *entry = static_cast<SlotEntry *>(dshash_find(slot_table, &key, true));
    if (entry == nullptr)
        return;
    Slot *slot = slot_of(entry);
    const dsa_pointer cells = slot != nullptr ? end_use(slot) : InvalidDsaPointer;
    dshash_delete_entry(slot_table, entry);
    free_in_area(cells);
}

void forget_database(const SlotKey &key) {
    const SlotKey database = database_of(key);
    (void)dshash_delete_key(slot_table, &database);
}

int64_t lost_until_us() {
    if (!attach_area())
        return 0;
    const SlotKey database = database_of(slot_key(InvalidOid));
    auto *entry = static_cast<SlotEntry *>(dshash_find(slot_table, &database, false));
    const int64_t until_us = entry != nullptr ? entry->lost_until_us : 0;
    release(entry);
    return until_us;
}

core::Ring<> ring_of(Slot *slot) {
    GeneratorState &generator = slot->generator;
    return {&generator.ring.hints, in_area<Cell>(generator.ring.cells), generator.config.cached.cells};
}

Slot *first_slot(SlotKind kind) {
    if (!attach_area())
        return nullptr;
    const dsa_pointer newest = lists_of(kind).newest.load(std::memory_order_acquire);
    return DsaPointerIsValid(newest) ? in_area<Slot>(newest) : nullptr;
}

// Relaxed: two sessions that look at the same slots do no harm.
int slots_to_look_at(SlotKind kind, Slot **slots, int most) {
    if (!attach_area())
        return 0;
    std::atomic<dsa_pointer> &next_look = lists_of(kind).next_look;
    const dsa_pointer next = next_look.load(std::memory_order_relaxed);
    Slot *slot = DsaPointerIsValid(next) ? in_area<Slot>(next) : first_slot(kind);
    int count = 0;
    for (; count < most && slot != nullptr; slot = next_slot(slot))
        slots[count++] = slot;
    next_look.store(count == most ? slots[count - 1]->next : InvalidDsaPointer, std::memory_order_relaxed);
    return count;
}

int64_t slot_last_time(const Slot &slot) {
    const GeneratorState &generator = slot.generator;
    const core::Layout &layout = generator.config.layout;
    if (counted(slot.counters, Stat::records) == generator.records_before)
        return generator.former_until_us;
    const uint64_t position = Max(generator.ticks.last(), generator.backup.last());
    return Max(generator.former_until_us,
               core::start_of(layout, static_cast<int64_t>(position >> layout.sequence_bits)));
}

// ---------------------------------------------------------------------------------------------------------
// Statistics
// ---------------------------------------------------------------------------------------------------------

namespace {

// How many ids of a generator's ring the sessions have drawn from shared runs. Acquire pairs with take_shared() in
// cached.cpp: the run that is read next is not one of those before.
uint64_t drawn_from_shared_runs(const RingState &ring, uint64_t run) {
    const uint64_t before = ring.shared_before.load(std::memory_order_acquire);
    return before + (ring.shared.last() & (run - 1)) + 1;
}

} // namespace

uint64_t ids_by_words(const Slot &slot) {
    if (slot.kind == SlotKind::segment)
        return slot.segment.passed_over.handed_out(slot.segment.word.next());
    const GeneratorState &generator = slot.generator;
    const CachedConfig &cached = generator.config.cached;
    const uint64_t backup = generator.clock.backup_ids.load(std::memory_order_relaxed);
    if (cached.on)
        return drawn_from_shared_runs(generator.ring, cached.run);
    return generator.passed_over.handed_out(generator.ticks.last() + 1) + backup;
}

// The words may say less than a moment ago (PassedOver, invariant 1), but a counter must not go back.
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

// Under no lock for long, because there may be many slots. What is freed after the first lines is missing: the sum is
// never too high, but it may be less than a moment ago.
Stats slots_counted() {
    lock_state(LW_SHARED);
    Stats sum = server_state->freed;
    unlock_state();
    for_each_slot([&sum](Slot *slot) { add(&sum, slot_counted(slot)); });
    for (uint32_t i = 0; i < stat_count; i++) {
        std::atomic<uint64_t> &shown = server_state->shown.values[i];
        core::raise_to(shown, sum.values[i], std::memory_order_relaxed);
        sum.values[i] = shown.load(std::memory_order_relaxed);
    }
    return sum;
}

} // namespace uidgen::pg
