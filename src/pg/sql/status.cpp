// The functions behind the views of live state and of statistics.

#include "generator/draw.hpp"
#include "config/label.hpp"
#include "node/worker_node.hpp"
#include "segment/ranges.hpp"

namespace uidgen::pg {
namespace {

void put_instant(ResultRow *row, const char *column, const core::Layout &layout, int64_t tick) {
    put_column(row, column, to_timestamptz(core::start_of(layout, tick)));
}

void put_ring(ResultRow *row, const GeneratorState &generator) REQUIRES_SHARED(slot_lock) {
    const double size = static_cast<double>(generator.config.cached.size);
    put_column(row, "ring_size", generator.config.cached.size);
    put_column(row, "ring_filled", static_cast<double>(ids_in_ring(generator)) / size);
    put_column(row, "padded", generator.ring.refills);
    put_column(row, "padded_inline", generator.ring.refills_by_caller);
    put_column(row, "rejected_takes", generator.ring.rejected_takes);
    put_column(row, "discarded_stale", generator.ring.too_old);
}

// The node that the next id will have, as far as it is known.
void put_node(ResultRow *row, Slot *slot) REQUIRES_SHARED(slot_lock) {
    const GeneratorConfig &config = generator_of(slot).config;
    const NodeGrant grant = present_grant(slot);
    const NodeDraw *drawn = own_node_so_far(slot);
    core::Node node = {core::no_node, core::protection_of(config.layout, node_source(config))};
    if (grant.in_fleet)
        node = {grant.view.granted ? grant.view.node : core::no_node, core::Protection::registry};
    else if (drawn != nullptr)
        node = drawn->node;
    put_column(row, "protection", protection_name(node.protection));
    if (node.value == core::no_node)
        return;
    const core::NodeFields fields = core::fields_of_node(config.layout, node.value);
    put_column(row, "node", node.value);
    put_column(row, "datacenter_id", static_cast<int32_t>(fields.datacenter));
    put_column(row, "worker_id", static_cast<int32_t>(fields.worker));
    if (grant.in_fleet)
        put_instant(row, "granted_until", config.layout, Min(grant.view.until, config.policy.end));
}

void put_generator(ResultRow *row, Slot *slot) REQUIRES_SHARED(slot_lock) {
    const GeneratorState &generator = generator_of(slot);
    const core::Layout &layout = generator.config.layout;
    const auto tick_of = [&layout](uint64_t position) {
        return static_cast<int64_t>(position >> layout.sequence_bits);
    };
    // A backup word that has given nothing may be above the other one.
    const bool is_backed_up = generator.backup_ids.load(std::memory_order_relaxed) > 0;
    const int64_t last = tick_of(Max(generator.ticks.last(), is_backed_up ? generator.backup.last() : 0));
    const int64_t ahead_us = core::start_of(layout, last) - wall_clock_us();
    put_instant(row, "last_time", layout, last);
    put_instant(row, "leased_until", layout, tick_of(generator.ticks.written_range().until));
    put_column(row, "ahead_ms", Max(ahead_us / us_per_ms, 0));
    put_node(row, slot);
    put_column(row, "clock_steps_back", (generator.clock_changes.load(std::memory_order_relaxed) + 1) / 2);
    put_column(row, "backup_ids", generator.backup_ids);
    if (generator.config.cached.on)
        put_ring(row, generator);
}

// Takes the slot's lock.
void put_segment(ResultRow *row, const Slot *slot) EXCLUDES(slot_lock, state_lock) {
    const SegmentState &segment = segment_of(slot);
    const BlockAnswer next = blocks_look(slot);
    lock_slot_shared(slot);
    const SegmentRanges reserved = ranges_under_slot(slot);
    const bool is_attached = segment.config.is_attached();
    unlock_slot(slot);
    core::Range range;
    const uint64_t at = segment.ordinals.last() + 1;
    const bool in_use = reserved.ranges.find(at, &range);
    const bool is_block = is_attached || next.state != BlockState::none;
    const bool is_ahead = in_use && reserved.ranges.latest.end != range.end;
    if (in_use) {
        put_column(row, "range_first", range.first);
        put_column(row, "range_length", range.end - range.begin);
        put_column(row, "range_left", range.end - at);
    }
    put_column(row, "next_ready", is_block ? next.state == BlockState::ready : is_ahead);
    if (reserved.steps.step > 0)
        put_column(row, "step", reserved.steps.step);
    put_column(row, "refills_late", reserved.steps.refills_late);
    put_column(row, "refills_disturbed", reserved.steps.refills_disturbed);
    if (is_block)
        put_column(row, "next_asked", next.state == BlockState::asked);
    if (is_block && next.error.at_us != 0)
        put_column(row, "registry_error", error_for_user(next.error).message);
}

// By the privileges of the current user, as in pg_sequences: counts reveal how much is drawn. For a role that may see
// all, nothing is looked up, because a session keeps what it looks up.
bool may_see(Oid sequence) {
    bool is_missing = false;
    return fault_is("show_all") || has_privs_of_role(GetUserId(), ROLE_PG_READ_ALL_STATS) ||
           pg_class_aclcheck_ext(sequence, GetUserId(), ACL_USAGE | ACL_SELECT, &is_missing) == ACLCHECK_OK;
}

// A slot at one moment.
struct Look {
    bool is_there; // it is the sequence's
    bool is_ready;
    uint64_t generation;
    Stats counted;
};

// For the views. It takes the slot's lock, and notes in shared memory the counts that it shows (slot_counted()).
Look look_at_slot(Slot *slot, const SlotKey &key) EXCLUDES(slot_lock, state_lock) {
    lock_slot_shared(slot);
    const bool is_there = slot->phase != SlotPhase::free && same_key(slot->key, key);
    const Look look = {.is_there = is_there,
                       .is_ready = slot->phase >= SlotPhase::altered,
                       .generation = slot->generation.load(std::memory_order_relaxed),
                       .counted = is_there ? slot_counted(slot) : Stats{}};
    unlock_slot(slot);
    return look;
}

// One column for each Stat. Times are milliseconds, as in PostgreSQL's own views.
void put_stats(ResultRow *row, const Stats &stats) {
    for (uint32_t i = 0; i < stat_count; i++)
        if (is_time(static_cast<Stat>(i)))
            put_column(row, stat_names[i], static_cast<double>(stats.values[i]) / us_per_ms);
        else
            put_column(row, stat_names[i], stats.values[i]);
}

// Takes the slot's lock. False: there is no live state any more. A slot may be reset at any time.
bool put_live_generator(ResultRow *row, Slot *slot, const Look &look) EXCLUDES(slot_lock, state_lock) {
    if (!look.is_ready)
        return false;
    lock_slot_shared(slot);
    put_generator(row, slot);
    unlock_slot(slot);
    return slot->generation.load(std::memory_order_acquire) == look.generation;
}

// The name is in the label, which is read even while another session alters or drops the sequence.
void put_names(ResultRow *row, Oid sequence) {
    core::Definition definition;
    const char *label = label_of(sequence).text;
    if (label == nullptr || !parses(label, &definition) || definition.kind != core::DefinitionKind::segment)
        return;
    put_column(row, "name", name_of_segment(sequence, definition.segment));
    if (definition.segment.registry_name != nullptr)
        put_column(row, "registry_name", definition.segment.registry_name);
}

// Takes the slot's lock; the names are those of the label. False: there is no live state any more.
bool put_live_segment(ResultRow *row, Slot *slot, const Look &look) EXCLUDES(slot_lock, state_lock) {
    if (!look.is_ready)
        return false;
    put_segment(row, slot);
    put_names(row, sequence_of(slot));
    return slot->generation.load(std::memory_order_acquire) == look.generation;
}

// By the look, and the slot's kind, which never changes: without a lock.
bool put_counters(ResultRow *row, Slot *slot, const Look &look) {
    put_column(row, "kind", slot->kind == SlotKind::generator ? "generator" : "segment");
    put_stats(row, look.counted);
    return true;
}

using PutRest = bool (*)(ResultRow *, Slot *, const Look &);

// A row for the sequence's slot of the kind, found in the table of slots (find_slot()) and read under its lock
// (look_at_slot(), put_rest()), if there is what to put into it. The sequence is not locked.
void add_slot(const ReturnSetInfo *result, Oid sequence, SlotKind kind, PutRest put_rest)
    EXCLUDES(page_lock, table_lock, slot_lock, state_lock) {
    const SlotKey key = slot_key(sequence);
    Slot *slot = find_slot(key, kind);
    if (slot == nullptr || !may_see(sequence))
        return;
    add_row(result, [&](ResultRow *row) {
        const Look look = look_at_slot(slot, key);
        put_column(row, "sequence", static_cast<int64_t>(sequence));
        return look.is_there && put_rest(row, slot, look);
    });
}

// Calls visit(oid) for each sequence in the catalogs, without a lock on it, once the process has attached to the area.
// Goes through those of the database, of which other databases may have more.
template <typename Visit> void for_each_sequence(Visit visit) {
    if (!attach_area())
        return;
    MemoryContext each = AllocSetContextCreate(CurrentMemoryContext, "uidgen status", ALLOCSET_DEFAULT_SIZES);
    MemoryContext caller = CurrentMemoryContext;
    for_each_row(table_open(SequenceRelationId, AccessShareLock), InvalidOid, nullptr, [&](Row row) {
        CHECK_FOR_INTERRUPTS();
        MemoryContextSwitchTo(each);
        visit(reinterpret_cast<const FormData_pg_sequence *>(GETSTRUCT(row.tuple))->seqrelid);
        MemoryContextSwitchTo(caller);
        MemoryContextReset(each);
    });
    MemoryContextDelete(each);
}

// Those that sequences of any database have, each under its lock.
int32_t count_slots(SlotKind kind) EXCLUDES(slot_lock, state_lock) {
    int32_t slots = 0;
    for_each_slot(kind, [&slots](Slot *) { slots++; });
    return slots;
}

// From the server's state, and from all slots, each under its lock; notes in atomics what it shows (slots_counted()).
bool put_server(ResultRow *row) EXCLUDES(slot_lock, state_lock) {
    if (!attach_server_state())
        return false;
    put_stats(row, slots_counted());
    put_column(row, "refused_standby", server_state->refused_on_standby);
    put_column(row, "clock_jumps", server_state->clock.jumps);
    put_column(row, "generators", count_slots(SlotKind::generator));
    put_column(row, "segments", count_slots(SlotKind::segment));
    put_column(row, "clock_moved_ms", static_cast<double>(clock_moved_us()) / us_per_ms);
    return true;
}

} // namespace

// From the slots, found in the table of slots, each under its lock (add_slot()); no lock on a sequence, and no page is
// read. Notes in atomics what it shows.
UIDGEN_SQL_FUNCTION(uid_live_generators) {
    const ReturnSetInfo *result = new_result(fcinfo);
    const auto add = [result](Oid generator) { add_slot(result, generator, SlotKind::generator, put_live_generator); };
    if (PG_ARGISNULL(0))
        for_each_sequence(add);
    else
        add(PG_GETARG_OID(0));
    return static_cast<Datum>(0);
}

// As uid_live_generators() does, of segments, with the names in their labels.
UIDGEN_SQL_FUNCTION(uid_live_segments) {
    const ReturnSetInfo *result = new_result(fcinfo);
    for_each_sequence([result](Oid sequence) { add_slot(result, sequence, SlotKind::segment, put_live_segment); });
    return static_cast<Datum>(0);
}

// From the slots, found in the table of slots, each under its lock (add_slot()); notes there what it shows.
UIDGEN_SQL_FUNCTION(uid_counters) {
    const ReturnSetInfo *result = new_result(fcinfo);
    for_each_sequence([result](Oid sequence) {
        add_slot(result, sequence, SlotKind::generator, put_counters);
        add_slot(result, sequence, SlotKind::segment, put_counters);
    });
    return static_cast<Datum>(0);
}

// From the server's state and all slots, each under its lock; notes in atomics what it shows.
UIDGEN_SQL_FUNCTION(uid_server_counters) {
    add_row(new_result(fcinfo), put_server);
    return static_cast<Datum>(0);
}

} // namespace uidgen::pg
