// uid_slots(): the state of this database's generators and segments in shared memory.

#include "sequence/sequence.hpp"
#include "generator/node_grant.hpp"
#include "memory/blocks.hpp"
#include "node/worker_node.hpp"
#include "base/time_source.hpp"

namespace uidgen::pg {
namespace {

enum Column {
    col_sequence,
    col_kind,
    col_protection,
    col_node,
    col_datacenter,
    col_worker,
    col_last,
    col_until,
    col_first,
    col_length,
    col_left,
    col_next_ready,
    col_step,
    col_step_reason,
    col_refills, // one column a cause
    col_last_refill = col_refills + refill_causes,
    col_rate,
    col_ring_size,
    col_ring_filled,
    col_paddings, // one column a cause
    col_rejected_puts = col_paddings + ring_refill_causes,
    col_rejected_takes,
    col_too_old,
    col_ahead,
    col_granted,
    col_clock_steps_back,
    col_backup_ids,
    col_next_asked,
    col_registry_error,
    columns
};

const char *reason_name(core::StepReason reason) {
    switch (reason) {
    case core::StepReason::base:
        return "base";
    case core::StepReason::grown:
        return "grown";
    case core::StepReason::kept:
        return "kept";
    case core::StepReason::shrunk:
        return "shrunk";
    case core::StepReason::disturbed:
        break;
    }
    return "disturbed";
}

Datum count_of(const std::atomic<uint64_t> &counter) {
    return Int64GetDatum(static_cast<int64_t>(counter.load(std::memory_order_relaxed)));
}

void fill_ring(const CachedConfig &cached, const RingState &ring, Datum *values, bool *nulls) {
    const uint64_t filled =
        Min(ring.hints.tail.load(std::memory_order_relaxed) - ring.hints.cursor.load(std::memory_order_relaxed),
            cached.cells);
    values[col_ring_size] = Int64GetDatum(static_cast<int64_t>(cached.cells * cached.run));
    values[col_ring_filled] = Float8GetDatum(static_cast<double>(filled) / static_cast<double>(cached.cells));
    for (uint32_t cause = 0; cause < ring_refill_causes; cause++)
        values[col_paddings + cause] = count_of(ring.ring_refills[cause]);
    values[col_rejected_puts] = count_of(ring.rejected_puts);
    values[col_rejected_takes] = count_of(ring.rejected_takes);
    values[col_too_old] = count_of(ring.too_old);
    memset(&nulls[col_ring_size], false, col_too_old - col_ring_size + 1);
}

void fill_clock(const ClockEvents &clock, Datum *values, bool *nulls) {
    const uint64_t changes = clock.changes.load(std::memory_order_relaxed);
    values[col_clock_steps_back] = Int64GetDatum(static_cast<int64_t>((changes + 1) / 2));
    values[col_backup_ids] = count_of(clock.backup_ids);
    nulls[col_clock_steps_back] = nulls[col_backup_ids] = false;
}

// The node that the next id will have, as far as it is known.
void fill_node(const Slot *slot, Datum *values, bool *nulls) {
    const GeneratorConfig &config = slot->generator.config;
    const NodeGrant grant = present_grant(slot);
    const int64_t number = slot->generator.number.load(std::memory_order_acquire);
    const core::Node node =
        grant.in_fleet ? core::Node{grant.view.node, core::Protection::registry} : own_node(config, number);
    const bool is_known = grant.in_fleet ? grant.view.granted : number != no_number;
    const core::NodeFields fields = core::fields_of_node(config.layout, node.value);
    values[col_protection] = CStringGetTextDatum(protection_name(node.protection));
    values[col_node] = Int64GetDatum(node.value);
    values[col_datacenter] = Int32GetDatum(static_cast<int32>(fields.datacenter));
    values[col_worker] = Int32GetDatum(static_cast<int32>(fields.worker));
    nulls[col_node] = nulls[col_datacenter] = nulls[col_worker] = !is_known;
    nulls[col_granted] = !grant.in_fleet || !is_known;
    if (!nulls[col_granted])
        values[col_granted] = TimestampTzGetDatum(
            to_timestamptz(core::start_of(config.layout, Min(grant.view.until, config.policy.end))));
}

// Under the slot's lock.
void fill_generator(const Slot *slot, Datum *values, bool *nulls) {
    const GeneratorState &generator = slot->generator;
    const GeneratorConfig &config = generator.config;
    const core::Layout &layout = config.layout;
    const auto tick_of = [&layout](uint64_t position) {
        return static_cast<int64_t>(position >> layout.sequence_bits);
    };
    const auto instant = [&](int64_t tick) {
        return TimestampTzGetDatum(to_timestamptz(core::start_of(layout, tick)));
    };
    const int64_t last = tick_of(generator.ticks.last());
    const int64_t until = tick_of(generator.ticks.written_range().until);
    values[col_last] = instant(last);
    values[col_until] = instant(until);
    nulls[col_first] = nulls[col_length] = nulls[col_left] = true;
    for (int column = col_next_ready; column < columns; column++)
        nulls[column] = true;
    nulls[col_ahead] = false;
    fill_node(slot, values, nulls);
    fill_clock(generator.clock, values, nulls);
    const int64_t ahead_us = core::start_of(layout, last) - wall_clock_us();
    values[col_ahead] = Int64GetDatum(Max(ahead_us / us_per_ms, 0));
    if (config.cached.on)
        fill_ring(config.cached, generator.ring, values, nulls);
}

// The state of a segment's slot, read under its page's lock.
struct SegmentView {
    core::Range range;
    bool in_use;
    bool next_ready;
    bool is_block; // the ranges come from the fleet's registry
    uint64_t next;
    core::RangeStep step;
    core::Pace pace;
    int64_t refilled_at_us;
    uint64_t refills[refill_causes];
};

SegmentView view_of(const SegmentState &segment, Relation rel) {
    SegmentView view = {};
    SequencePage page = lock_page_for_reading(rel);
    view.in_use = segment.word.current(&view.range);
    view.next_ready = view.in_use && segment.word.end() != view.range.end;
    view.is_block = segment.fleet != 0;
    view.next = segment.word.next();
    view.step = segment.step;
    view.pace = segment.pace;
    view.refilled_at_us = segment.refilled_at_us;
    memcpy(view.refills, segment.refills, sizeof(view.refills));
    unlock_page(&page);
    return view;
}

// The block that follows, of a segment that is attached to one of the registry.
void fill_block(const BlockAnswer &next, Datum *values, bool *nulls) {
    values[col_next_ready] = BoolGetDatum(next.state == BlockState::ready);
    values[col_next_asked] = BoolGetDatum(next.state == BlockState::asked);
    values[col_registry_error] = CStringGetTextDatum(error_for_user(next.error).message);
    nulls[col_next_asked] = false;
    nulls[col_registry_error] = next.error.at_us == 0;
}

void fill_segment(const Slot *slot, Relation rel, Datum *values, bool *nulls) {
    const SegmentView view = view_of(slot->segment, rel);
    const BlockAnswer next = blocks_look(slot);
    const core::Range &range = view.range;
    memset(&nulls[col_protection], true, col_until - col_protection + 1);
    nulls[col_first] = nulls[col_length] = nulls[col_left] = !view.in_use;
    values[col_first] = Int64GetDatum(range.first);
    values[col_length] = Int64GetDatum(static_cast<int64_t>(range.end - range.begin));
    values[col_left] = Int64GetDatum(static_cast<int64_t>(range.end > view.next ? range.end - view.next : 0));
    values[col_next_ready] = BoolGetDatum(view.next_ready);
    values[col_step] = Int64GetDatum(view.step.size);
    values[col_step_reason] = CStringGetTextDatum(reason_name(view.step.reason));
    for (uint32_t cause = 0; cause < refill_causes; cause++)
        values[col_refills + cause] = Int64GetDatum(static_cast<int64_t>(view.refills[cause]));
    nulls[col_last_refill] = view.refilled_at_us == 0;
    values[col_last_refill] = TimestampTzGetDatum(to_timestamptz(view.refilled_at_us));
    memset(&nulls[col_ring_size], true, columns - col_ring_size);
    nulls[col_rate] = view.pace.us <= 0;
    if (!nulls[col_rate])
        values[col_rate] =
            Float8GetDatum(static_cast<double>(view.pace.values) * 1e6 / static_cast<double>(view.pace.us));
    if (view.is_block || next.state != BlockState::none)
        fill_block(next, values, nulls);
}

// As in pg_sequences: the position of a counter reveals how much is drawn.
bool may_see(Oid sequence) {
    return pg_class_aclcheck(sequence, GetUserId(), ACL_USAGE | ACL_SELECT) == ACLCHECK_OK ||
           has_privs_of_role(GetUserId(), ROLE_PG_READ_ALL_STATS);
}

// A slot that is ready, of this database.
struct Look {
    Oid sequence; // InvalidOid: it is not
    uint64_t generation;
};

Look look_at(Slot *slot) {
    LWLockAcquire(&slot->lock, LW_SHARED);
    const bool is_ours = slot->phase == SlotPhase::ready && is_of_this_database(slot->key);
    const Look look = {is_ours ? slot->key.sequence : InvalidOid, slot->generation.load(std::memory_order_relaxed)};
    LWLockRelease(&slot->lock);
    return look;
}

// AccessShareLock on the sequence excludes DROP, but not that the slot is reset. Then there is no row.
void add_row(ReturnSetInfo *result, Slot *slot) {
    const Look look = look_at(slot);
    Relation rel = OidIsValid(look.sequence) ? try_relation_open(look.sequence, AccessShareLock) : nullptr;
    if (rel == nullptr)
        return;
    Datum values[columns] = {};
    bool nulls[columns] = {};
    const bool is_generator = slot->kind == SlotKind::generator;
    values[col_sequence] = ObjectIdGetDatum(look.sequence);
    values[col_kind] = CStringGetTextDatum(is_generator ? "generator" : "segment");
    if (!may_see(look.sequence)) {
        memset(&nulls[col_protection], true, columns - col_protection);
    } else if (is_generator) {
        LWLockAcquire(&slot->lock, LW_SHARED);
        fill_generator(slot, values, nulls);
        LWLockRelease(&slot->lock);
    } else if (rel->rd_rel->relkind == RELKIND_SEQUENCE) {
        fill_segment(slot, rel, values, nulls);
    }
    if (slot->generation.load(std::memory_order_acquire) == look.generation)
        tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
    relation_close(rel, AccessShareLock);
}

void add_rows(ReturnSetInfo *result, SlotKind kind) {
    for (Slot *slot = first_slot(kind); slot != nullptr; slot = next_slot(slot)) {
        add_row(result, slot);
        CHECK_FOR_INTERRUPTS();
    }
}

} // namespace
} // namespace uidgen::pg

using namespace uidgen::pg;

extern "C" {

UIDGEN_SQL_FUNCTION(uid_slots);

Datum uid_slots(PG_FUNCTION_ARGS) {
    InitMaterializedSRF(fcinfo, 0);
    add_rows(reinterpret_cast<ReturnSetInfo *>(fcinfo->resultinfo), SlotKind::generator);
    add_rows(reinterpret_cast<ReturnSetInfo *>(fcinfo->resultinfo), SlotKind::segment);
    return static_cast<Datum>(0);
}
}
