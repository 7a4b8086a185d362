// uid_slots(): the state of this database's generators and segments in shared memory.

#include "sequence/sequence.hpp"
#include "generator/draw.hpp"
#include "memory/memberships.hpp"
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
    col_refills_late,
    col_refills_disturbed,
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

// Columns that nothing is put in are NULL.
struct Row {
    Datum values[columns];
    bool nulls[columns];
};

Row empty_row() {
    Row row = {};
    memset(row.nulls, true, sizeof(row.nulls));
    return row;
}

void put(Row *row, int column, Datum value) {
    row->values[column] = value;
    row->nulls[column] = false;
}

void put_number(Row *row, int column, uint64_t number) {
    put(row, column, Int64GetDatum(static_cast<int64_t>(number)));
}

void put_count(Row *row, int column, const std::atomic<uint64_t> &counter) {
    put_number(row, column, counter.load(std::memory_order_relaxed));
}

void put_instant(Row *row, int column, const core::Layout &layout, int64_t tick) {
    put(row, column, TimestampTzGetDatum(to_timestamptz(core::start_of(layout, tick))));
}

void put_ring(Row *row, const CachedConfig &cached, const RingState &ring) {
    const uint64_t filled =
        Min(ring.hints.tail.load(std::memory_order_relaxed) - ring.hints.cursor.load(std::memory_order_relaxed),
            cached.cells);
    put_number(row, col_ring_size, cached.cells * cached.run);
    put(row, col_ring_filled, Float8GetDatum(static_cast<double>(filled) / static_cast<double>(cached.cells)));
    for (uint32_t cause = 0; cause < ring_refill_causes; cause++)
        put_count(row, col_paddings + static_cast<int>(cause), ring.ring_refills[cause]);
    put_count(row, col_rejected_puts, ring.rejected_puts);
    put_count(row, col_rejected_takes, ring.rejected_takes);
    put_count(row, col_too_old, ring.too_old);
}

// The node that the next id will have, as far as it is known.
void put_node(Row *row, const Slot *slot) {
    const GeneratorConfig &config = slot->generator.config;
    const NodeGrant grant = present_grant(slot);
    const int64_t number = slot->generator.number.load(std::memory_order_acquire);
    const core::Node node =
        grant.in_fleet ? core::Node{grant.view.node, core::Protection::registry} : own_node(config, number);
    put(row, col_protection, CStringGetTextDatum(protection_name(node.protection)));
    if (grant.in_fleet ? !grant.view.granted : number == no_number)
        return;
    const core::NodeFields fields = core::fields_of_node(config.layout, node.value);
    put(row, col_node, Int64GetDatum(node.value));
    put(row, col_datacenter, Int32GetDatum(static_cast<int32>(fields.datacenter)));
    put(row, col_worker, Int32GetDatum(static_cast<int32>(fields.worker)));
    if (grant.in_fleet)
        put_instant(row, col_granted, config.layout, Min(grant.view.until, config.policy.end));
}

// Under the slot's lock.
void put_generator(Row *row, const Slot *slot) {
    const GeneratorState &generator = slot->generator;
    const core::Layout &layout = generator.config.layout;
    const auto tick_of = [&layout](uint64_t position) {
        return static_cast<int64_t>(position >> layout.sequence_bits);
    };
    const int64_t last = tick_of(generator.ticks.last());
    const int64_t ahead_us = core::start_of(layout, last) - wall_clock_us();
    put_instant(row, col_last, layout, last);
    put_instant(row, col_until, layout, tick_of(generator.ticks.written_range().until));
    put(row, col_ahead, Int64GetDatum(Max(ahead_us / us_per_ms, 0)));
    put_node(row, slot);
    put_number(row, col_clock_steps_back, (generator.clock.changes.load(std::memory_order_relaxed) + 1) / 2);
    put_count(row, col_backup_ids, generator.clock.backup_ids);
    if (generator.config.cached.on)
        put_ring(row, generator.config.cached, generator.ring);
}

// The state of a segment's slot, read under its page's lock.
struct SegmentView {
    core::Range range;
    bool in_use;
    bool next_ready;
    bool is_block; // the ranges come from the fleet's registry
    uint64_t next;
    int64_t step;
    core::Pace pace;
    uint64_t refills_late;
    uint64_t refills_disturbed;
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
    view.refills_late = segment.refills_late;
    view.refills_disturbed = segment.refills_disturbed;
    unlock_page(&page);
    return view;
}

void put_segment(Row *row, const Slot *slot, Relation rel) {
    const SegmentView view = view_of(slot->segment, rel);
    const BlockAnswer next = blocks_look(slot);
    const bool is_attached = view.is_block || next.state != BlockState::none;
    const core::Range &range = view.range;
    if (view.in_use) {
        put(row, col_first, Int64GetDatum(range.first));
        put_number(row, col_length, range.end - range.begin);
        put_number(row, col_left, range.end > view.next ? range.end - view.next : 0);
    }
    put(row, col_next_ready, BoolGetDatum(is_attached ? next.state == BlockState::ready : view.next_ready));
    put(row, col_step, Int64GetDatum(view.step));
    put_number(row, col_refills_late, view.refills_late);
    put_number(row, col_refills_disturbed, view.refills_disturbed);
    if (view.pace.us > 0)
        put(row, col_rate,
            Float8GetDatum(static_cast<double>(view.pace.values) * 1e6 / static_cast<double>(view.pace.us)));
    if (is_attached)
        put(row, col_next_asked, BoolGetDatum(next.state == BlockState::asked));
    if (is_attached && next.error.at_us != 0)
        put(row, col_registry_error, CStringGetTextDatum(error_for_user(next.error).message));
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
    Row row = empty_row();
    const bool is_generator = slot->kind == SlotKind::generator;
    put(&row, col_sequence, ObjectIdGetDatum(look.sequence));
    put(&row, col_kind, CStringGetTextDatum(is_generator ? "generator" : "segment"));
    if (may_see(look.sequence) && is_generator) {
        LWLockAcquire(&slot->lock, LW_SHARED);
        put_generator(&row, slot);
        LWLockRelease(&slot->lock);
    } else if (may_see(look.sequence) && rel->rd_rel->relkind == RELKIND_SEQUENCE) {
        put_segment(&row, slot, rel);
    }
    if (slot->generation.load(std::memory_order_acquire) == look.generation)
        tuplestore_putvalues(result->setResult, result->setDesc, row.values, row.nulls);
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
