// The functions behind the views of live state and of statistics.

#include "generator/draw.hpp"
#include "config/rows.hpp"
#include "node/worker_node.hpp"
#include "segment/draw.hpp"

namespace uidgen::pg {
namespace {

void put_instant(ResultRow *row, const char *column, const core::Layout &layout, int64_t tick) {
    put(row, column, to_timestamptz(core::start_of(layout, tick)));
}

void put_ring(ResultRow *row, Slot *slot) {
    const CachedConfig &cached = generator_of(slot).config.cached;
    const RingState &ring = generator_of(slot).ring;
    put(row, "ring_size", cached.cells * cached.run);
    put(row, "ring_filled", static_cast<double>(ring_of(slot).filled()) / static_cast<double>(cached.cells));
    put(row, "padded", ring.refills);
    put(row, "padded_inline", ring.refills_by_caller);
    put(row, "rejected_puts", ring.rejected_puts);
    put(row, "rejected_takes", ring.rejected_takes);
    put(row, "discarded_stale", ring.too_old);
}

// The node that the next id will have, as far as it is known.
void put_node(ResultRow *row, const Slot *slot) REQUIRES_SHARED(slot_lock) {
    const GeneratorConfig &config = generator_of(slot).config;
    const NodeGrant grant = present_grant(slot);
    const int64_t number = generator_of(slot).number.load(std::memory_order_acquire);
    const core::Node node =
        grant.in_fleet ? core::Node{grant.view.node, core::Protection::registry} : own_node(config, number);
    put(row, "protection", protection_name(node.protection));
    if (grant.in_fleet ? !grant.view.granted : number == no_number)
        return;
    const core::NodeFields fields = core::fields_of_node(config.layout, node.value);
    put(row, "node", node.value);
    put(row, "datacenter_id", static_cast<int32_t>(fields.datacenter));
    put(row, "worker_id", static_cast<int32_t>(fields.worker));
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
    put(row, "ahead_ms", Max(ahead_us / us_per_ms, 0));
    put_node(row, slot);
    put(row, "clock_steps_back", (generator.clock_changes.load(std::memory_order_relaxed) + 1) / 2);
    put(row, "backup_ids", generator.backup_ids);
    if (generator.config.cached.on)
        put_ring(row, slot);
}

void put_segment(ResultRow *row, const Slot *slot, Relation rel) {
    const SegmentState &segment = segment_of(slot);
    const BlockAnswer next = blocks_look(slot);
    const SegmentConfig config = segment_config(slot);
    const core::SequenceRule rule = sequence_rule(RelationGetRelid(rel));
    core::Range range;
    SequencePage page = lock_page_for_reading(rel);
    const uint64_t at = segment.ordinals.last() + 1;
    const bool in_use = segment.ranges.find(at, &range);
    const bool is_block = config.is_attached() || next.state != BlockState::none;
    const bool next_ready =
        is_block ? next.state == BlockState::ready : in_use && segment.ranges.latest.end != range.end;
    if (in_use) {
        put(row, "range_first", range.first);
        put(row, "range_length", range.end - range.begin);
        put(row, "range_left", range.end - at);
    }
    put(row, "next_ready", next_ready);
    const int64_t step = segment.steps.step;
    put(row, "refills_late", segment.steps.refills_late);
    put(row, "refills_disturbed", segment.steps.refills_disturbed);
    unlock_page(&page);
    put(row, "step", step > 0 ? step : core::step_bounds(config.step, config.max_step, rule).base);
    if (is_block)
        put(row, "next_asked", next.state == BlockState::asked);
    if (is_block && next.error.at_us != 0)
        put(row, "registry_error", error_for_user(next.error).message);
}

// As in pg_sequences: counts reveal how much is drawn. Takes no lock, so that a DROP that another session has not
// committed keeps nobody from looking. False also if the sequence does not exist.
bool may_see(Oid sequence) {
    bool is_missing = false;
    const AclResult allowed = pg_class_aclcheck_ext(sequence, GetUserId(), ACL_USAGE | ACL_SELECT, &is_missing);
    return !is_missing && (allowed == ACLCHECK_OK || has_privs_of_role(GetUserId(), ROLE_PG_READ_ALL_STATS));
}

// A slot at one moment.
struct Look {
    Oid sequence; // InvalidOid: it is free, of another database, or not for the user to see
    bool is_ready;
    uint64_t generation;
    Stats counted;
};

Look look_at(Slot *slot) {
    lock_slot_shared(slot);
    const bool is_ours = slot->phase != SlotPhase::free && is_of_this_database(slot->key);
    Look look = {is_ours ? slot->key.sequence : InvalidOid, slot->phase >= SlotPhase::altered,
                 slot->generation.load(std::memory_order_relaxed), is_ours ? slot_counted(slot) : Stats{}};
    unlock_slot(slot);
    if (is_ours && !may_see(look.sequence))
        look.sequence = InvalidOid;
    return look;
}

// One column for each Stat. Times are milliseconds, as in PostgreSQL's own views.
void put_stats(ResultRow *row, const Stats &stats) {
    for (uint32_t i = 0; i < stat_count; i++)
        if (is_time(static_cast<Stat>(i)))
            put(row, stat_names[i], static_cast<double>(stats.values[i]) / us_per_ms);
        else
            put(row, stat_names[i], stats.values[i]);
}

// Null while another session drops the sequence, or if it is gone.
Relation open_unless_dropped(Oid sequence) {
    if (!ConditionalLockRelationOid(sequence, AccessShareLock))
        return nullptr;
    Relation rel = try_relation_open(sequence, NoLock);
    if (rel != nullptr && rel->rd_rel->relkind == RELKIND_SEQUENCE)
        return rel;
    if (rel != nullptr)
        relation_close(rel, NoLock);
    UnlockRelationOid(sequence, AccessShareLock);
    return nullptr;
}

// False: there is no live state any more. A slot may be reset at any time.
bool put_live_generator(ResultRow *row, Slot *slot, const Look &look) {
    if (!look.is_ready)
        return false;
    lock_slot_shared(slot);
    put_generator(row, slot);
    unlock_slot(slot);
    return slot->generation.load(std::memory_order_acquire) == look.generation;
}

bool put_live_segment(ResultRow *row, Slot *slot, const Look &look) {
    Relation rel = look.is_ready ? open_unless_dropped(look.sequence) : nullptr;
    if (rel == nullptr)
        return false;
    put_segment(row, slot, rel);
    relation_close(rel, AccessShareLock);
    return slot->generation.load(std::memory_order_acquire) == look.generation;
}

bool put_counters(ResultRow *row, Slot *slot, const Look &look) {
    put(row, "kind", slot->kind == SlotKind::generator ? "generator" : "segment");
    put_stats(row, look.counted);
    return true;
}

// A row for each slot of the kind, if put_rest() finds what to put into it.
void add_slots(const ReturnSetInfo *result, SlotKind kind, bool (*put_rest)(ResultRow *, Slot *, const Look &)) {
    for (Slot *slot = first_slot(kind); slot != nullptr; slot = next_slot(slot)) {
        CHECK_FOR_INTERRUPTS();
        const Look look = look_at(slot);
        add_row(result, [&](ResultRow *row) {
            put(row, "sequence", static_cast<int64_t>(look.sequence));
            return OidIsValid(look.sequence) && put_rest(row, slot, look);
        });
    }
}

int32_t slots_of(SlotKind kind) {
    int32_t slots = 0;
    for_each_slot(kind, [&slots](Slot *) { slots++; });
    return slots;
}

bool put_server(ResultRow *row) {
    if (!attach_server_state())
        return false;
    put_stats(row, slots_counted());
    put(row, "refused_standby", server_state->refused_on_standby);
    put(row, "clock_jumps", server_state->clock.jumps);
    put(row, "generators", slots_of(SlotKind::generator));
    put(row, "segments", slots_of(SlotKind::segment));
    put(row, "clock_moved_ms", static_cast<double>(clock_moved_us()) / us_per_ms);
    return true;
}

} // namespace

UIDGEN_SQL_FUNCTION(uid_live_generators) {
    add_slots(new_result(fcinfo), SlotKind::generator, put_live_generator);
    return static_cast<Datum>(0);
}

UIDGEN_SQL_FUNCTION(uid_live_segments) {
    add_slots(new_result(fcinfo), SlotKind::segment, put_live_segment);
    return static_cast<Datum>(0);
}

UIDGEN_SQL_FUNCTION(uid_counters) {
    const ReturnSetInfo *result = new_result(fcinfo);
    add_slots(result, SlotKind::generator, put_counters);
    add_slots(result, SlotKind::segment, put_counters);
    return static_cast<Datum>(0);
}

UIDGEN_SQL_FUNCTION(uid_server_counters) {
    add_row(new_result(fcinfo), put_server);
    return static_cast<Datum>(0);
}

} // namespace uidgen::pg
