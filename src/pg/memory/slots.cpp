#include "slots.hpp"

#include "generator_state.hpp"
#include "segment_state.hpp"

namespace uidgen::pg {
namespace {

// In the server state: only an address.
SlotLists &lists_of(SlotKind kind) { return server_state->area.slots[index(kind)]; }

constexpr Size bytes_of(SlotKind kind) {
    return kind == SlotKind::generator ? sizeof(GeneratorSlot) : sizeof(SegmentSlot);
}

// ---------------------------------------------------------------------------------------------------------
// Memory
// ---------------------------------------------------------------------------------------------------------

// A slot in new memory of the area, which is free but not on the list of free ones. The state's lock guards the list of
// all. Locks and condition variables are initialised once, because a process may look at any slot at any time.
Slot *new_slot(SlotKind kind) REQUIRES(table_lock) EXCLUDES(state_lock) UNCHECKED {
    const dsa_pointer memory = allocate_in_area(bytes_of(kind) + core::cache_line, "slots of generators and segments");
    const dsa_pointer self = TYPEALIGN(core::cache_line, memory); // aligns the address, too
    auto *slot = in_area<Slot>(self);
    slot->self = self;
    slot->kind = kind;
    slot->phase = SlotPhase::free;
    LWLockInitialize(&slot->lock, server_state->tranche);
    ConditionVariableInit(kind == SlotKind::generator ? &membership_of(slot).changed : &block_place_of(slot).changed);
    lock_state();
    slot->next = lists_of(kind).newest.load(std::memory_order_relaxed);
    lists_of(kind).newest.store(self, std::memory_order_release); // pairs with first_slot()
    unlock_state();
    return slot;
}

// A free slot, from the list of free ones under the state's lock, or a new one. Raises an error if there is no memory.
Slot *take_free_slot(SlotKind kind) REQUIRES(table_lock) EXCLUDES(state_lock) {
    lock_state();
    auto *slot = in_area<Slot>(lists_of(kind).first_free);
    if (slot != nullptr)
        lists_of(kind).first_free = slot->next_free;
    unlock_state();
    return slot != nullptr ? slot : new_slot(kind);
}

// ---------------------------------------------------------------------------------------------------------
// Contents
// ---------------------------------------------------------------------------------------------------------

// By (5) of the contract.
void lock_slot_and_state(Slot *slot) ACQUIRE(slot_lock, state_lock) {
    lock_slot(slot);
    lock_state();
}

void unlock_slot_and_state(Slot *slot) RELEASE(slot_lock, state_lock) {
    unlock_state();
    unlock_slot(slot);
}

// Sets all of a generator's slot but its membership, its nodes and what all slots have.
void reset_generator(GeneratorState *generator, const SlotInit &init) REQUIRES(slot_lock, state_lock) {
    memset(static_cast<void *>(generator), 0, sizeof(GeneratorState));
    generator->former_mark = init.mark;
    generator->ticks.reset(init.first_position);
    generator->backup.reset(init.first_position);
    generator->seen.store(core::nothing_seen, std::memory_order_relaxed);
    generator->config = init.config;
    generator->config.policy.spread.salt = server_state->salt;
    generator->granted_node.store(core::no_node, std::memory_order_relaxed);
}

// What is not set here begins with 0. The membership stays, to be requested again, and so do the place of a block and
// what all slots count. Sets what the page's lock guards without that lock: no session uses a slot that is reset.
void reset_slot(Slot *slot, const SlotInit &init) REQUIRES(slot_lock, state_lock) UNCHECKED {
    slot->file = init.file;
    slot->expected = init.expected;
    slot->uncommitted_in = 0;
    slot->passed_over.reset(init.first_position);
    if (slot->kind == SlotKind::generator) {
        const int64_t until_us = slot->phase != SlotPhase::free ? slot_last_time(*slot) : 0;
        reset_generator(&generator_of(slot), init);
        generator_of(slot).former_until_us = until_us;
        membership_of(slot).is_requested.store(false, std::memory_order_relaxed);
        generator_of(slot).records_before = slot->counters.counted(Stat::records);
    } else {
        memset(static_cast<void *>(&segment_of(slot)), 0, sizeof(SegmentState));
        segment_of(slot).ordinals.reset(init.first_position);
    }
}

// Changes the generation, too, so sessions that kept a pointer open the slot again.
void set_phase(Slot *slot, SlotPhase phase) REQUIRES(slot_lock, state_lock) {
    slot->phase = phase;
    slot->generation.fetch_add(1, std::memory_order_release); // pairs with slot_was_freed() in session.cpp
}

// The atomic of the server state that lost generators of the layout and the database share. Needs no lock.
std::atomic<int64_t> &dropped_time(const SlotKey &key, const core::Layout &layout) {
    return server_state->dropped_until_us[core::node_hash(layout, key.database) % dropped_times];
}

// Raises dropped_time() of the slot's generator to its last time. Does nothing for a segment.
void note_dropped(const Slot &slot) REQUIRES_SHARED(slot_lock) {
    if (slot.kind == SlotKind::generator)
        core::raise_to(dropped_time(slot.key, generator_of(&slot).config.layout), slot_last_time(slot),
                       std::memory_order_relaxed);
}

// Gives a free slot to a sequence, under both locks of (5). It is stale until make_slot_ready().
void begin_slot_use(Slot *slot, const SlotKey &key) REQUIRES(table_lock) EXCLUDES(slot_lock, state_lock) {
    lock_slot_and_state(slot);
    slot->key = key;
    memset(static_cast<void *>(&slot->counters), 0, sizeof(slot->counters));
    slot->ids_shown.store(0, std::memory_order_relaxed);
    empty_node_places(slot);
    reset_slot(slot, {.kind = slot->kind});
    set_phase(slot, SlotPhase::stale);
    unlock_slot_and_state(slot);
}

// In shared memory only, where sessions that wait for a block are woken.
void forget_membership_or_block(Slot *slot) REQUIRES(slot_lock) {
    if (slot->kind == SlotKind::generator)
        membership_forget(slot);
    else
        blocks_discard(slot);
}

// The slot's ids that are known without being counted, by its words.
uint64_t ids_by_words(Slot *slot) REQUIRES_SHARED(slot_lock) {
    const bool has_backup = slot->kind == SlotKind::generator;
    const uint64_t of_backup = has_backup ? generator_of(slot).backup_ids.load(std::memory_order_relaxed) : 0;
    return slot->passed_over.handed_out(word_of(slot).last() + 1) + of_backup;
}

// Sets the slot's configuration. A block of the registry is for the segment there that it was asked for, so that of
// another one is discarded (blocks_discard()). segment_attach() asks before it knows the fleet.
void set_segment_config(Slot *slot, const SegmentConfig &config) REQUIRES(slot_lock) {
    SegmentConfig &own = segment_of(slot).config;
    if ((own.fleet != 0 && own.fleet != config.fleet) || strcmp(own.registry_name, config.registry_name) != 0)
        blocks_discard(slot);
    own = config;
}

// Unless another session has done so, gives the slot the definition and the phase of `init` (set_segment_config()), and
// before that resets it, if it was not only `altered` (reset_slot()): under both locks of (5). Then gives its former
// nodes back (give_back_nodes()).
void make_slot_ready(Slot *slot, const SlotInit &init) EXCLUDES(page_lock, table_lock, slot_lock, state_lock) {
    lock_slot_and_state(slot);
    if (slot->phase < SlotPhase::altered) {
        empty_node_places(slot);
        const uint64_t ids = ids_by_words(slot); // which the words lose
        slot->counters.count(Stat::ids, ids);
        reset_slot(slot, init);
    }
    // While an alteration is open, many sessions read the same definition: then nothing changes.
    const bool is_known = slot->phase == init.phase && has_definition(slot, init.segment);
    if (slot->phase != SlotPhase::ready && !is_known) {
        if (slot->kind == SlotKind::segment)
            set_segment_config(slot, init.segment);
        set_phase(slot, init.phase);
    }
    unlock_slot_and_state(slot);
    give_back_nodes(slot);
}

// Frees a slot that no session uses, under both locks of (5). What it has counted is added to what freed slots have,
// and its last time to those of lost generators (note_dropped()).
void end_slot_use(Slot *slot) REQUIRES(table_lock) EXCLUDES(slot_lock, state_lock) {
    lock_slot_and_state(slot);
    forget_membership_or_block(slot);
    note_dropped(*slot);
    empty_node_places(slot);
    add_stats(&server_state->freed, slot_counted(slot));
    set_phase(slot, SlotPhase::free);
    slot->next_free = lists_of(slot->kind).first_free;
    lists_of(slot->kind).first_free = slot->self;
    unlock_slot_and_state(slot);
}

// ---------------------------------------------------------------------------------------------------------
// The table
// ---------------------------------------------------------------------------------------------------------

// The row of that key, locked in that mode; null: none, which is released like any other. The process has attached.
SlotRow *find_slot_row(const SlotKey &key, LWLockMode mode) ACQUIRE(table_lock) UNCHECKED {
    return static_cast<SlotRow *>(dshash_find(slot_table, &key, mode == LW_EXCLUSIVE));
}

void release_row(SlotRow *row) RELEASE(table_lock) UNCHECKED {
    if (row != nullptr)
        dshash_release_lock(slot_table, row);
}

// Deletes a row that is locked exclusively.
void release_unused_row(SlotRow *row) RELEASE(table_lock) UNCHECKED { dshash_delete_entry(slot_table, row); }

// The row of that key, locked exclusively. Raises an error if there is no memory. The process has attached to the area.
SlotRow *find_or_make_slot_row(const SlotKey &key) ACQUIRE(table_lock) UNCHECKED {
    bool found = false;
    ErrorContextCallback context;
    begin_allocation(&context, of_slot_table);
    auto *row = static_cast<SlotRow *>(dshash_find_or_insert(slot_table, &key, &found));
    end_allocation(context);
    if (!found)
        *row = {.key = key};
    return row;
}

// Changes in the table of slots how many generators have a node, or, with no_node, how many of the layout have any, and
// returns that. A row whose number becomes 0 is deleted. Error if there is no memory for a row. The process has
// attached.
int64_t change_node_count(const core::Layout &layout, int64_t node, int by)
    EXCLUDES(page_lock, table_lock, slot_lock, state_lock) {
    SlotRow *row = find_or_make_slot_row({.born = core::node_hash(layout, node)});
    row->count += by;
    const int64_t count = row->count;
    if (count == 0)
        release_unused_row(row);
    else
        release_row(row);
    return count;
}

} // namespace

Slot *find_slot(const SlotKey &key, SlotKind kind) {
    if (!attach_area())
        return nullptr;
    SlotRow *row = find_slot_row(key, LW_SHARED);
    Slot *slot = row != nullptr ? in_area<Slot>(row->slots[index(kind)]) : nullptr;
    release_row(row);
    return slot;
}

// If there is no memory for a slot, the row remains, which is like none.
Slot *claim_slot(const SlotKey &key, SlotKind kind) {
    SlotRow *row = find_or_make_slot_row(key);
    auto *slot = in_area<Slot>(row->slots[index(kind)]);
    if (slot == nullptr) {
        slot = take_free_slot(kind);
        begin_slot_use(slot, key);
        row->slots[index(kind)] = slot->self;
    }
    release_row(row);
    return slot;
}

Slot *make_slot(const SlotKey &key, const SlotInit &init) {
    open_area();
    Slot *slot = claim_slot(key, init.kind);
    make_slot_ready(slot, init);
    return slot;
}

void mark_stale(Slot *slot, SlotPhase to) {
    lock_slot_and_state(slot);
    if (slot->phase >= to)
        set_phase(slot, to);
    if (slot->kind == SlotKind::segment && to != SlotPhase::altered)
        blocks_discard(slot);
    unlock_slot_and_state(slot);
}

void expire_slot(Slot *slot, SlotPhase to) {
    mark_stale(slot, to);
    lock_slot_and_state(slot);
    empty_node_places(slot);
    unlock_slot_and_state(slot);
    give_back_nodes(slot);
}

void free_slot(const SlotKey &key, SlotKind kind) {
    if (!attach_area())
        return;
    SlotRow *row = find_slot_row(key, LW_EXCLUSIVE);
    auto *slot = row != nullptr ? in_area<Slot>(row->slots[index(kind)]) : nullptr;
    if (slot == nullptr)
        return release_row(row);
    end_slot_use(slot);
    row->slots[index(kind)] = InvalidDsaPointer;
    if (!DsaPointerIsValid(row->slots[0]) && !DsaPointerIsValid(row->slots[1]))
        release_unused_row(row);
    else
        release_row(row);
    give_back_nodes(slot);
}

void note_dropped(Slot *slot, const SlotKey &key) {
    lock_slot_shared(slot);
    if (same_key(slot->key, key))
        note_dropped(*slot);
    unlock_slot(slot);
}

int64_t dropped_until_us(const core::Layout &layout) {
    return dropped_time(slot_key(InvalidOid), layout).load(std::memory_order_relaxed);
}

NodeHolders take_node(const core::Layout &layout, int64_t node) {
    return {change_node_count(layout, node, 1) - 1, change_node_count(layout, core::no_node, 1) - 1};
}

void give_back_node(const core::Layout &layout, int64_t node) {
    (void)change_node_count(layout, node, -1);
    (void)change_node_count(layout, core::no_node, -1);
}

bool slot_has_name(const SlotKey &key, const char *name) {
    Slot *slot = find_slot(key, SlotKind::segment);
    if (slot == nullptr)
        return false;
    lock_slot_shared(slot);
    const bool has =
        slot->phase == SlotPhase::ready && same_key(slot->key, key) && strcmp(segment_of(slot).config.name, name) == 0;
    unlock_slot(slot);
    return has;
}

Oid known_default() {
    if (!attach_area())
        return InvalidOid;
    SlotRow *row = find_slot_row(slot_key(InvalidOid), LW_SHARED);
    const Oid generator = row != nullptr ? row->default_generator : InvalidOid;
    release_row(row);
    return generator;
}

void note_default(Oid generator) {
    if (!attach_area() || (!OidIsValid(generator) && !OidIsValid(known_default())))
        return;
    SlotRow *row = find_or_make_slot_row(slot_key(InvalidOid));
    row->default_generator = generator;
    release_row(row);
}

core::PositionAllocator<> &word_of(Slot *slot) {
    return slot->kind == SlotKind::generator ? generator_of(slot).ticks : segment_of(slot).ordinals;
}

Slot *first_slot(SlotKind kind) {
    return attach_area() ? in_area<Slot>(lists_of(kind).newest.load(std::memory_order_acquire)) : nullptr;
}

// Relaxed: two sessions that look at the same slot do no harm.
Slot *take_next_look(SlotKind kind) {
    if (!attach_area())
        return nullptr;
    std::atomic<dsa_pointer> &next_look = lists_of(kind).next_look;
    auto *slot = in_area<Slot>(next_look.load(std::memory_order_relaxed));
    if (slot == nullptr)
        slot = first_slot(kind);
    next_look.store(slot != nullptr ? slot->next : InvalidDsaPointer, std::memory_order_relaxed);
    return slot;
}

bool has_leased(const Slot &slot) { return slot.counters.counted(Stat::records) != generator_of(&slot).records_before; }

int64_t slot_last_time(const Slot &slot) {
    const GeneratorState &generator = generator_of(&slot);
    const core::Layout &layout = generator.config.layout;
    if (!has_leased(slot))
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

// A slot that is freed meanwhile is in neither part, but a sum must not go back. The walk is without the state's lock,
// which sessions need.
Stats slots_counted() {
    lock_state_shared();
    Stats sum = server_state->freed;
    unlock_state();
    for (const SlotKind kind : {SlotKind::generator, SlotKind::segment})
        for_each_slot(kind, [&sum](Slot *slot) REQUIRES_SHARED(slot_lock) { add_stats(&sum, slot_counted(slot)); });
    for (uint32_t i = 0; i < stat_count; i++) {
        std::atomic<uint64_t> &shown = server_state->shown.values[i];
        core::raise_to(shown, sum.values[i], std::memory_order_relaxed);
        sum.values[i] = shown.load(std::memory_order_relaxed);
    }
    return sum;
}

} // namespace uidgen::pg
