#include "slots.hpp"

#include "base/settings.hpp"
#include "base/time_source.hpp"
#include "memberships.hpp"

namespace uidgen::pg {

namespace {

using Cell = std::atomic<uint64_t>;
static_assert(sizeof(Cell) == sizeof(uint64_t), "the ring's size is reckoned by its cells' contents");

// Slots are made so many bytes at a time. Objects of more than 8 kB begin at a page, which aligns slots to cache lines.
constexpr Size bytes_at_a_time = 32 * 1024;

SlotLists &lists_of(SlotKind kind) { return server_state->area.slots[static_cast<uint32_t>(kind)]; }

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

Slot *take_free_slot(SlotKind kind) {
    SlotLists &lists = lists_of(kind);
    for (;; add_slots(kind)) {
        lock_state(LW_EXCLUSIVE);
        Slot *taken = DsaPointerIsValid(lists.first_free) ? in_area<Slot>(lists.first_free) : nullptr;
        if (taken != nullptr)
            lists.first_free = taken->next_free;
        unlock_state();
        if (taken != nullptr)
            return taken;
    }
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
    if (fault_is(Fault::resume_lease))
        generator->ticks.publish(init.first_position,
                                 core::position_above(init.config.policy, init.expected.counter.last_value), 0);
    generator->backup.reset(init.first_position);
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

constexpr uint64_t first_ordinal = 1;

// All but the block.
void reset(SegmentState *segment, const SlotInit &init) {
    memset(static_cast<void *>(segment), 0, offsetof(SegmentState, block));
    segment->ordinals.reset(first_ordinal);
    segment->bounds = init.bounds;
    segment->step = init.bounds.base;
}

void reset(Slot *slot, const SlotInit &init, dsa_pointer cells) {
    slot->file = init.file;
    slot->expected = init.expected;
    slot->passed_over.reset(slot->kind == SlotKind::segment ? first_ordinal : init.first_position);
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

// How many ids of a generator's ring the sessions have drawn from shared runs. Acquire pairs with take_shared() in
// cached.cpp: the run that is read next is not one of those before.
uint64_t drawn_from_shared_runs(const RingState &ring, uint64_t run) {
    const uint64_t before = ring.shared_before.load(std::memory_order_acquire);
    return before + (ring.shared.last() & (run - 1)) + 1;
}

// Ids that are known without being counted.
uint64_t ids_by_words(Slot *slot) {
    if (slot->kind == SlotKind::generator && slot->generator.config.cached.on)
        return drawn_from_shared_runs(slot->generator.ring, slot->generator.config.cached.run);
    return slot->passed_over.handed_out(word_of(slot).last() + 1);
}

// The slot has no ring until now: it was free, or has lost it when it was reset. False: another session was first.
bool make_ready(Slot *slot, const SlotInit &init, dsa_pointer cells) {
    lock_both(slot);
    const bool is_stale = slot->phase != SlotPhase::ready;
    if (is_stale) {
        const int64_t until_us = slot->kind == SlotKind::generator ? slot_last_time(*slot) : 0;
        const uint64_t drawn = ids_by_words(slot);
        count(&slot->counters, Stat::ids, drawn); // the words lose what they say
        reset(slot, init, cells);
        if (slot->kind == SlotKind::generator)
            slot->generator.former_until_us = until_us;
        set_phase(slot, SlotPhase::ready);
    }
    unlock_both(slot);
    return is_stale;
}

// Returns the cells of its ring.
dsa_pointer end_use(Slot *slot) {
    lock_both(slot);
    forget_fleet(slot);
    const dsa_pointer cells = take_cells(slot);
    if (slot->kind == SlotKind::generator)
        core::raise_to(server_state->lost_until_us, slot_last_time(*slot), std::memory_order_relaxed);
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
Slot *slot_of(const SlotEntry *entry, SlotKind kind) {
    const dsa_pointer slot = entry != nullptr ? entry->slots[static_cast<uint32_t>(kind)] : InvalidDsaPointer;
    return DsaPointerIsValid(slot) ? in_area<Slot>(slot) : nullptr;
}

void set_slot(SlotEntry *entry, SlotKind kind, dsa_pointer slot) { entry->slots[static_cast<uint32_t>(kind)] = slot; }

void release(SlotEntry *entry) {
    if (entry != nullptr)
        dshash_release_lock(slot_table, entry);
}

// The caller holds the entry's lock.
SlotEntry *find_or_make_entry(const SlotKey &key) {
    bool found = false;
    ErrorContextCallback context;
    begin_allocation(&context, of_slot_table);
    auto *entry = static_cast<SlotEntry *>(dshash_find_or_insert(slot_table, &key, &found));
    end_allocation(context);
    if (!found)
        *entry = {key, {InvalidDsaPointer, InvalidDsaPointer}};
    return entry;
}

} // namespace

Slot *find_slot(const SlotKey &key, SlotKind kind) {
    if (!attach_area())
        return nullptr;
    auto *entry = static_cast<SlotEntry *>(dshash_find(slot_table, &key, false));
    Slot *slot = slot_of(entry, kind);
    release(entry);
    return slot;
}

Slot *find_ready_slot(const SlotKey &key, SlotKind kind) {
    Slot *slot = find_slot(key, kind);
    if (slot == nullptr)
        return nullptr;
    LWLockAcquire(&slot->lock, LW_SHARED);
    const bool is_ready = slot->phase == SlotPhase::ready;
    LWLockRelease(&slot->lock);
    return is_ready ? slot : nullptr;
}

// If there is no memory for a slot, the entry remains, which is like none.
Slot *claim_slot(const SlotKey &key, SlotKind kind) {
    SlotEntry *entry = find_or_make_entry(key);
    Slot *slot = slot_of(entry, kind);
    if (slot == nullptr) {
        slot = take_free_slot(kind);
        begin_use(slot, key);
        set_slot(entry, kind, slot->self);
    }
    release(entry);
    return slot;
}

Slot *make_slot(const SlotKey &key, const SlotInit &init) {
    open_area();
    Slot *slot = claim_slot(key, init.kind);
    const dsa_pointer cells = init.config.cached.on ? make_ring(init.config.cached.cells) : InvalidDsaPointer;
    if (!make_ready(slot, init, cells))
        free_in_area(cells);
    return slot;
}

void expire_slot(Slot *slot, SlotPhase to) {
    lock_both(slot);
    const dsa_pointer cells = take_cells(slot);
    if (slot->phase > to)
        set_phase(slot, to);
    if (slot->kind == SlotKind::segment)
        blocks_discard(slot);
    unlock_both(slot);
    free_in_area(cells);
}

void free_slot(const SlotKey &key, SlotKind kind) {
    Slot *slot = find_slot(key, kind);
    auto *entry = slot != nullptr ? static_cast<SlotEntry *>(dshash_find(slot_table, &key, true)) : nullptr;
    if (entry == nullptr)
        return;
    const dsa_pointer cells = end_use(slot);
    set_slot(entry, kind, InvalidDsaPointer);
    if (slot_of(entry, SlotKind::generator) == nullptr && slot_of(entry, SlotKind::segment) == nullptr)
        dshash_delete_entry(slot_table, entry);
    else
        release(entry);
    free_in_area(cells);
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

// Relaxed: two sessions that look at the same slot do no harm.
Slot *slot_to_look_at(SlotKind kind) {
    if (!attach_area())
        return nullptr;
    std::atomic<dsa_pointer> &next_look = lists_of(kind).next_look;
    const dsa_pointer next = next_look.load(std::memory_order_relaxed);
    Slot *slot = DsaPointerIsValid(next) ? in_area<Slot>(next) : first_slot(kind);
    next_look.store(slot != nullptr ? slot->next : InvalidDsaPointer, std::memory_order_relaxed);
    return slot;
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

// The words may say less than a moment ago (PassedOver, invariant 1), but a counter must not go back.
Stats slot_counted(Slot *slot) {
    Stats now;
    for (uint32_t i = 0; i < stat_count; i++)
        now.values[i] = slot->counters.values[i].load(std::memory_order_relaxed);
    uint64_t &ids = now.values[index(Stat::ids)];
    ids += ids_by_words(slot);
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
