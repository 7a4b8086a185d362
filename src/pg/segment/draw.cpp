#include "draw.hpp"

#include "blocks.hpp"

#include "config/definition.hpp"
#include "node/fleet_term.hpp"
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

[[noreturn]] void refuse_used_up(const SessionEntry *e, const core::SequenceRule &rule) {
    const Oid sequence = e->sequence;
    const bool up = rule.increment > 0;
    count(&e->slot->counters, Stat::refused_used_up);
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
    core::StepBounds bounds;
    const char *name; // at the registry; null: it is not attached
    int64_t term;     // if it is attached, the number of the fleet's term that the database has
};

Source read_source(Oid sequence) {
    const core::SegmentDefinition definition = read_segment(sequence);
    const bool attached = is_attached(definition);
    const core::SequenceRule rule =
        attached ? core::SequenceRule{definition.increment, 0, 0, false} : sequence_rule(sequence);
    return {definition, rule, step_bounds(definition, rule), attached ? name_at_registry(definition) : nullptr,
            attached ? agree_on_fleet_term() : 0};
}

struct RangeState {
    core::Range range; // the range that holds the next ordinal
    bool found;
    uint64_t prefetch_at; // the ordinal from which on the next range is due; the range's end: it is not
    bool is_block;        // the range comes from the fleet's registry
};

RangeState read_range_state(const SessionEntry *e) {
    RangeState state = {};
    Relation rel = open_sequence(e);
    SequencePage page = lock_page_for_reading(rel);
    const SegmentState &segment = segment_of(e->slot);
    state.found = segment.ranges.find(segment.ordinals.last() + 1, &state.range);
    // A range is due unless one is reserved ahead already. While another session keeps moving the counter, it would be
    // lost as well.
    const core::Range &range = state.range;
    const bool is_due = segment.ranges.latest.end == range.end && !segment.was_disturbed;
    state.prefetch_at = is_due ? range.begin + (range.end - range.begin) / prefetch_divisor : range.end;
    state.is_block = segment.fleet != 0;
    unlock_page(&page);
    relation_close(rel, NoLock);
    return state;
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

void note_refill(SegmentState *segment, Needed needed, int64_t now_us) REQUIRES(page_lock) {
    if (segment->disturbed)
        segment->refills_disturbed++;
    else if (segment->reserved_at_us != 0 && needed == Needed::now)
        segment->refills_late++;
    segment->was_disturbed = segment->disturbed;
    segment->disturbed = false;
    const core::Pace pace = pace_of(*segment, now_us);
    if (segment->reserved_at_us != 0 && pace.values == 0)
        return; // counted in the next interval
    segment->reserved_at_us = now_us;
    segment->reserved_at += pace.values;
}

// Whether no other session has reserved the range meanwhile. Under the page's lock.
bool is_wanted(const SegmentState &segment, Needed needed) REQUIRES_SHARED(page_lock) {
    const uint64_t next = segment.ordinals.last() + 1;
    core::Range in_use;
    return needed == Needed::later ? segment.ranges.room(next) : !segment.ranges.find(next, &in_use);
}

// What a reservation has come to.
struct Reservation {
    bool is_missing; // there are no values: the sequence is used up, or no block is ready
    int64_t step;    // how many values were to be reserved
    int64_t shown;   // the counter
};

// Writes the record of the range, and publishes it. Returns the record's end. Under the page's exclusive lock.
uint64_t add_range(SequencePage *page, Slot *slot, const Source &source, const core::PlannedRange &planned)
    REQUIRES(page_lock) {
    SegmentState &segment = segment_of(slot);
    const uint64_t lsn = write_page(page, planned.last, slot);
    const uint64_t begin = segment.ordinals.written_range().until;
    const uint64_t end = begin + planned.count + (fault_is(Fault::overreach) ? 1 : 0);
    segment.ranges.add({begin, end, planned.first, source.rule.increment});
    (void)segment.ordinals.publish(begin, end, lsn);
    segment.bounds = source.bounds;
    segment.fleet = source.name != nullptr ? static_cast<uint64_t>(source.definition.fleet) : 0;
    count(&slot->counters, Stat::records);
    return lsn;
}

// Reserves the next range, unless another session has. No block of the registry is reserved ahead: while sessions draw,
// the next one stays in its place (memberships.hpp). What is reserved ahead, no session waits for: it is durable soon.
Reservation reserve_range(const SessionEntry *e, const Source &source, Needed needed) {
    Slot *slot = e->slot;
    SegmentState &segment = segment_of(slot);
    const int64_t now_us = monotonic_us();
    Reservation result = {};
    const uint64_t lsn = with_locked_page(e, [&](SequencePage *page) REQUIRES(page_lock) -> uint64_t {
        const core::SequenceState counter = slot->expected.counter;
        result = {false, size_next_range(segment, source.bounds, now_us), counter.last_value};
        if (!is_wanted(segment, needed))
            return InvalidXLogRecPtr;
        core::PlannedRange planned = {0, 0, 0};
        if (source.name == nullptr)
            planned = core::plan_range(counter, source.rule, static_cast<uint64_t>(result.step));
        else if (needed == Needed::now)
            planned = take_block(slot, source.name, source.definition, source.term, counter);
        result.is_missing = planned.count == 0;
        if (result.is_missing)
            return InvalidXLogRecPtr;
        segment.step = result.step;
        const uint64_t end_of_record = add_range(page, slot, source, planned);
        note_refill(&segment, needed, now_us);
        return end_of_record;
    });
    if (needed == Needed::later)
        durable_soon(lsn);
    return result;
}

// Reserves the next range, or asks the registry for a block. If a value is needed, waits for the block up to
// uidgen.max_wait, and raises an error when there is none. No lock of a page may be held.
void refill_range(const SessionEntry *e, Needed needed, int64_t *give_up_at_us) {
    const Source source = read_source(e->sequence);
    const Reservation reserved = reserve_range(e, source, needed);
    if (!reserved.is_missing)
        return;
    Counters *counters = &e->slot->counters;
    if (source.name != nullptr && (needed == Needed::now || fleet_version() != 0))
        ask_registry(e->slot, source.definition, reserved.step, reserved.shown, counters);
    if (needed == Needed::later)
        return;
    if (source.name == nullptr)
        refuse_used_up(e, source.rule);
    wait_for_block(e->slot, source.definition, give_up_at_us, counters);
}

// Whether there is something to reserve or to ask for while the range lasts. A server that has left its fleet draws
// what it has.
bool may_refill(const Slot *slot, const RangeState &state) {
    return !state.is_block || (fleet_version() != 0 && blocks_look(slot).state != BlockState::ready);
}

// Makes the range durable, and draws from it. Leaves a window up to where the next range is due, unless a lower
// durability was reached because no standby is awaited any more.
SegmentValues draw_from(SessionEntry *e, const RangeState &state, core::Durability level, uint64_t want) {
    core::PositionAllocator<> &ordinals = segment_of(e->slot).ordinals;
    const core::Range &range = state.range;
    core::Durability reached = level;
    if (ordinals.usable(level) < range.end) {
        const core::WrittenRange written = ordinals.written_range();
        reached = durable(&e->slot->counters, written.lsn, level);
        ordinals.confirm(reached, written.until);
    }
    // One look at the word decides both. A session that does not see that the next range is due stops where it is, so
    // that one session sees it.
    const bool is_due = state.prefetch_at < range.end && ordinals.last() + 1 >= state.prefetch_at;
    if (is_due && may_refill(e->slot, state))
        refill_range(e, Needed::later, nullptr);
    const uint64_t limit = is_due ? range.end : state.prefetch_at;
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
        const RangeState state = read_range_state(e);
        const SegmentValues values = state.found ? draw_from(e, state, level, want) : SegmentValues{0, 0, 0};
        if (values.count > 0)
            return values;
        if (!state.found)
            refill_range(e, Needed::now, &give_up_at_us);
        CHECK_FOR_INTERRUPTS();
    }
}

} // namespace uidgen::pg
