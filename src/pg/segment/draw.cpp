#include "draw.hpp"

#include "config/definition.hpp"
#include "sequence/sequence.hpp"
#include "memory/segment_state.hpp"
#include "session/slot_life.hpp"
#include "base/errors.hpp"
#include "base/settings.hpp"
#include "base/time_source.hpp"

namespace uidgen::pg {
namespace {

// The next range is reserved when this part of the current one is used (Leaf's rule).
constexpr uint64_t prefetch_divisor = 10;

[[noreturn]] void report_used_up(Oid sequence, const core::SequenceRule &rule) {
    const bool up = rule.increment > 0;
    ereport(ERROR, (errcode(ERRCODE_SEQUENCE_GENERATOR_LIMIT_EXCEEDED),
                    errmsg("segment_next: reached %s value of sequence \"%s\" (%lld)", up ? "maximum" : "minimum",
                           get_rel_name(sequence), static_cast<long long>(up ? rule.max_value : rule.min_value)),
                    errhint("Change its %s, or run ALTER SEQUENCE %s CYCLE to start over.",
                            up ? "MAXVALUE" : "MINVALUE", qualified_name(sequence))));
}

// Where a segment's ranges come from: its own sequence or, if it is attached, blocks of the fleet's registry. Of these
// only the increment of the rule counts. Read for each range, so that a changed definition or sequence takes effect
// with the next range.
struct Source {
    core::SegmentDefinition definition;
    core::SequenceRule rule;
    const char *name; // at the registry, of one that is attached
};

Source source_of(const SessionEntry *e) {
    const core::SegmentDefinition definition = read_segment(e->sequence);
    if (!is_attached(definition))
        return {definition, sequence_rule(e->sequence), nullptr};
    return {definition, {definition.increment, 0, 0, false}, name_at_registry(definition)};
}

struct RangeState {
    core::Range range; // the range that holds the next ordinal
    bool found;
    bool may_prefetch; // no range is reserved ahead yet, and one would not be lost
    bool is_block;     // the range comes from the fleet's registry
};

RangeState range_state_of(const SessionEntry *e) {
    RangeState view = {};
    Relation rel = open_sequence(e);
    SequencePage page = lock_page_for_reading(rel);
    const SegmentState &segment = segment_of(e->slot);
    view.found = segment.ranges.find(segment.ordinals.last() + 1, &view.range);
    // While another session keeps moving the counter, a range reserved ahead would be lost as well.
    view.may_prefetch = view.found && segment.ranges.latest.end == view.range.end && !segment.was_disturbed;
    view.is_block = segment.fleet != 0;
    unlock_page(&page);
    relation_close(rel, NoLock);
    return view;
}

// The pace of draws since a range was reserved.
core::Pace pace_of(const SegmentState &segment, int64_t now_us) REQUIRES_SHARED(page_lock) {
    return {segment.ordinals.last() + 1 - segment.reserved_at, now_us - segment.reserved_at_us};
}

// How many values the next range gets.
int64_t size_next_range(const SegmentState &segment, const core::StepBounds &bounds, int64_t now_us)
    REQUIRES_SHARED(page_lock) {
    int64_t step = segment.step;
    if (!segment.disturbed && segment.reserved_at_us != 0)
        step = core::next_step(step, bounds, pace_of(segment, now_us));
    // The bounds may have changed. A raised base takes effect at once. A step below an unchanged base is recovering
    // from a disturbance.
    if (bounds.base > segment.bounds.base && !segment.disturbed)
        step = Max(step, bounds.base);
    return Min(step, bounds.most);
}

void note_refill(SegmentState *segment, bool ahead, int64_t now_us) REQUIRES(page_lock) {
    if (segment->disturbed)
        segment->refills_disturbed++;
    else if (segment->reserved_at_us != 0 && !ahead)
        segment->refills_late++;
    segment->was_disturbed = segment->disturbed;
    segment->disturbed = false;
    const core::Pace pace = pace_of(*segment, now_us);
    if (segment->reserved_at_us != 0 && pace.values == 0)
        return; // counted in the next interval
    segment->reserved_at_us = now_us;
    segment->reserved_at += pace.values;
}

// Reserves the next range, ahead of its use or because none is left. Does nothing if another backend has. False: the
// sequence is used up, or no block is ready.
bool reserve_range(const SessionEntry *e, const Source &source, bool ahead) {
    Slot *slot = e->slot;
    SegmentState &segment = segment_of(slot);
    uint64_t lsn = InvalidXLogRecPtr;
    bool more = true;
    const int64_t now_us = monotonic_us();
    const core::StepBounds bounds = step_bounds(source.definition, source.rule);

    Relation rel = open_sequence(e);
    SequencePage page = lock_page_of(slot, rel);
    const core::SequenceState counter = slot->expected.counter;
    const uint64_t next = segment.ordinals.last() + 1;
    core::Range in_use;
    const bool wanted = ahead ? segment.ranges.room(next) : !segment.ranges.find(next, &in_use);
    if (wanted) {
        const int64_t step = size_next_range(segment, bounds, now_us);
        const core::PlannedRange planned = is_attached(source.definition)
                                               ? take_block(slot, source.name, source.definition, counter)
                                               : core::plan_range(counter, source.rule, static_cast<uint64_t>(step));
        more = planned.count > 0;
        if (more) {
            segment.step = step;
            segment.bounds = bounds;
            lsn = write_page(&page, planned.last, slot);
            const uint64_t begin = segment.ordinals.written_range().until;
            const uint64_t end = begin + planned.count + (fault_is(Fault::overreach) ? 1 : 0);
            segment.ranges.add({begin, end, planned.first, source.rule.increment});
            (void)segment.ordinals.publish(begin, end, lsn);
            segment.fleet = is_attached(source.definition) ? static_cast<uint64_t>(source.definition.fleet) : 0;
            count(&slot->counters, Stat::records);
            note_refill(&segment, ahead, now_us);
        }
    }
    unlock_page(&page);
    relation_close(rel, NoLock);
    if (ahead)
        durable_soon(lsn);
    return more;
}

// Asks for the block that follows, unless it is there already.
void ask_for_block(const SessionEntry *e, const Source &source) {
    const core::StepBounds bounds = step_bounds(source.definition, source.rule);
    Relation rel = open_sequence(e);
    SequencePage page = lock_page_for_reading(rel);
    const int64_t values = size_next_range(segment_of(e->slot), bounds, monotonic_us());
    const int64_t shown = read_page(page).counter.last_value;
    unlock_page(&page);
    relation_close(rel, NoLock);
    ask_registry(e->slot, source.definition, values, shown, &e->slot->counters);
}

// No block is reserved ahead: while sessions draw, the next one stays in its place (memberships.hpp). A server that has
// left its fleet draws what it has.
void reserve_ahead(const SessionEntry *e, bool is_block) {
    if (!is_block)
        reserve_range(e, source_of(e), true);
    else if (fleet_version() != 0 && blocks_look(e->slot).state != BlockState::ready)
        ask_for_block(e, source_of(e));
}

// Up to which ordinal the range may be drawn from before a session must return here to reserve the next one.
uint64_t limit_of_draws(SessionEntry *e, const RangeState &view) {
    if (!view.may_prefetch)
        return view.range.end;
    const uint64_t prefetch_at = view.range.begin + (view.range.end - view.range.begin) / prefetch_divisor;
    if (segment_of(e->slot).ordinals.last() + 1 < prefetch_at)
        return prefetch_at;
    reserve_ahead(e, view.is_block);
    return view.range.end;
}

// Makes the range durable, and draws from it. Leaves a window up to the limit, unless a lower durability was reached
// because no standby is awaited any more.
SegmentValues draw_from(SessionEntry *e, const RangeState &view, core::Durability level, uint64_t want) {
    core::PositionAllocator<> &ordinals = segment_of(e->slot).ordinals;
    const core::Range &range = view.range;
    core::Durability reached = level;
    if (ordinals.usable(level) < range.end) {
        const core::WrittenRange written = ordinals.written_range();
        reached = durable(&e->slot->counters, written.lsn, level);
        ordinals.confirm(reached, written.until);
    }
    const uint64_t limit = limit_of_draws(e, view);
    const core::Run run = ordinals.take(0, limit, want);
    const auto increment = static_cast<uint64_t>(range.increment);
    const uint64_t origin = static_cast<uint64_t>(range.first) - range.begin * increment;
    const uint64_t last = run.first + run.count - 1;
    if (run.count > 0 && reached == level)
        open_window(e, {ordinals.word(), last, last, limit - 1, origin + increment, increment});
    return {origin + run.first * increment, increment, run.count};
}

} // namespace

SegmentValues draw_segment(SessionEntry *e, uint64_t want) {
    int64_t give_up_at_us = 0;
    for (;;) {
        const core::Durability level = close_window(e);
        const RangeState view = range_state_of(e);
        if (view.found) {
            const SegmentValues values = draw_from(e, view, level, want);
            if (values.count > 0)
                return values;
        } else {
            const Source source = source_of(e);
            if (!reserve_range(e, source, false)) {
                Counters *counters = &e->slot->counters;
                if (!is_attached(source.definition)) {
                    count(counters, Stat::refused_used_up);
                    report_used_up(e->sequence, source.rule);
                }
                ask_for_block(e, source);
                wait_for_block(e->slot, source.definition, &give_up_at_us, counters);
            }
        }
        CHECK_FOR_INTERRUPTS();
    }
}

} // namespace uidgen::pg
