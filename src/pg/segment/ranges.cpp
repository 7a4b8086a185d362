#include "ranges.hpp"

namespace uidgen::pg {
namespace {

// The next range is reserved when this part of the current one is used (Leaf's rule).
constexpr uint64_t prefetch_divisor = 10;

// A change of a setting, or of the definition, is noticed that late.
constexpr int64_t longest_wait_us = us_per_second;

// What a try has found. One look at the word decides all of it.
struct Reading {
    core::Durability level;   // that values must have
    core::Durability reached; // that those of the range have: less if no standby is awaited any more
    core::Range range;        // that holds the next ordinal
    bool has_range;           // there is such a range
    bool is_due;              // the next one is
    uint64_t limit;           // the first ordinal that this try does not hand out
};

// Closes the window, reads the ranges under the page's lock, shared, and then makes the one in use durable, which it
// notes in the slot's word. The next one is due unless it is reserved ahead already. While another session keeps moving
// the counter, it would be lost as well. A session that does not see that it is due stops where it is, so that one
// session sees it.
Reading begin_segment_try(SessionEntry *entry) EXCLUDES(page_lock, table_lock, slot_lock, state_lock) {
    SegmentState &segment = segment_of(entry->slot);
    const core::Durability level = close_window(entry);
    Reading reading = {};
    reading.level = reading.reached = level;
    core::Range &range = reading.range;
    Relation rel = open_sequence(entry);
    SequencePage page = lock_page_for_reading(rel);
    const uint64_t next = segment.ordinals.last() + 1;
    reading.has_range = segment.reserved.ranges.find(next, &range);
    const bool is_last = segment.reserved.ranges.latest.end == range.end && !segment.reserved.steps.was_disturbed;
    unlock_page(&page);
    relation_close(rel, NoLock);
    const uint64_t due_at = range.begin + (range.end - range.begin) / prefetch_divisor;
    reading.is_due = reading.has_range && is_last && next >= due_at;
    reading.limit = is_last && next < due_at ? due_at : range.end;
    if (!reading.has_range)
        reading.limit = 0;
    else if (segment.ordinals.usable(level) < range.end) {
        const core::WrittenRange written = segment.ordinals.written_range();
        reading.reached = make_durable(&entry->slot->counters, written.lsn, level);
        segment.ordinals.confirm(reading.reached, written.until);
    }
    return reading;
}

// Moves the counter, logs the page, and publishes the range in the slot. Returns the record's end.
uint64_t add_range(SequencePage *page, Slot *slot, const core::PlannedRange &planned, int64_t increment)
    REQUIRES(page_lock) EXCLUDES(slot_lock, state_lock) {
    SegmentState &segment = segment_of(slot);
    const uint64_t lsn = write_page(page, planned.last, slot);
    const uint64_t begin = segment.ordinals.written_range().until;
    const uint64_t end = begin + planned.count + (fault_is("overreach") ? 1 : 0);
    const core::Range range = {.begin = begin, .end = end, .first = planned.first, .increment = increment};
    change_ranges(slot, [&range](SegmentRanges *reserved) { reserved->ranges.append(range); });
    (void)segment.ordinals.publish(begin, end, lsn);
    return lsn;
}

// What a reservation has come to.
struct Reservation {
    SegmentConfig config;
    core::SequenceRule rule; // of an attached segment only the increment counts
    bool is_missing;         // there are no values: the sequence is used up, or no block is ready
    int64_t step;            // how many values were to be reserved
    int64_t shown;           // the counter
};

// Reserves the next range under the page's lock (lock_matched_page()), unless another session has: moves the counter,
// logs the page, and puts the range into the slot. A block comes from its place in the slot (blocks_take()). Does not
// flush. No block of the registry is reserved ahead: while sessions draw, the next one stays in its place
// (memberships.hpp). What is reserved ahead, no session waits for: it is durable soon.
Reservation reserve_range(const SessionEntry *entry, Needed needed)
    EXCLUDES(page_lock, table_lock, slot_lock, state_lock) {
    Slot *slot = entry->slot;
    SegmentState &segment = segment_of(slot);
    const int64_t now_us = monotonic_us();
    Reservation result = {};
    result.config = segment_config(slot);
    const bool is_block = result.config.is_attached();
    if (is_block)
        result.rule = {.increment = result.config.increment, .min_value = PG_INT64_MIN, .max_value = PG_INT64_MAX};
    else
        result.rule = sequence_rule(entry->sequence);
    Relation rel = open_sequence(entry);
    SequencePage page = lock_matched_page(slot, rel);
    const core::SequenceState counter = slot->expected.counter;
    const uint64_t next = segment.ordinals.last() + 1;
    const core::StepBounds bounds = core::step_bounds(result.config.step, result.config.max_step, result.rule);
    core::Range in_use;
    core::PlannedRange planned = {};
    uint64_t lsn = InvalidXLogRecPtr;
    result.step = segment.reserved.steps.next_length(bounds, next, now_us);
    result.shown = counter.last_value;
    const core::Ranges &ranges = segment.reserved.ranges;
    const bool is_wanted = needed == Needed::later ? ranges.room(next) : !ranges.find(next, &in_use);
    if (is_wanted && is_block && needed == Needed::now)
        planned = blocks_take(slot, result.config, counter);
    else if (is_wanted && !is_block)
        planned = core::plan_range(counter, result.rule, static_cast<uint64_t>(result.step));
    result.is_missing = is_wanted && planned.count == 0;
    if (planned.count > 0) {
        change_ranges(slot, [&](SegmentRanges *reserved) {
            reserved->steps.note_range(result.step, bounds, next, now_us, needed == Needed::now);
        });
        lsn = add_range(&page, slot, planned, result.rule.increment);
    }
    unlock_page(&page);
    relation_close(rel, NoLock);
    if (needed == Needed::later)
        make_durable_soon(lsn);
    return result;
}

// Reserves the next range (reserve_range()), or asks the registrar for a block, through the slot (ask_for_block()). If
// a value is needed, waits for the block up to uidgen.max_wait, and raises an error when there is none.
void reserve_or_ask(const SessionEntry *entry, Needed needed, BlockWait *wait)
    EXCLUDES(page_lock, table_lock, slot_lock, state_lock) {
    const Reservation reserved = reserve_range(entry, needed);
    if (reserved.is_missing && reserved.config.is_attached())
        (void)ask_for_block(entry->slot, reserved.config, reserved.step, reserved.shown,
                            needed == Needed::now ? wait : nullptr);
    else if (reserved.is_missing && needed == Needed::now) {
        wait->counters->count(Stat::refused_used_up);
        report_used_up(entry->sequence, reserved.rule);
    }
}

// The HINT of an error, by the configuration alone. Without a statement if the slot may have a shortened name, by which
// another segment would be attached.
const char *how_to_go_on(const SegmentConfig &segment) {
    const int length = static_cast<int>(strlen(segment.registry_name));
    if (strlen(segment.name) + MAX_MULTIBYTE_CHAR_LEN >= sizeof(segment.name))
        return "Correct uidgen.registry or the segment there, or attach it again.";
    return psprintf("Correct uidgen.registry or the segment there, or run SELECT segment_attach(%s, %s) to continue "
                    "with the segment as it is there now.",
                    quote_literal_cstr(segment.name),
                    quote_literal_cstr(pg_any_to_server(segment.registry_name, length, PG_UTF8)));
}

// An attached segment has no block, because the registry gave none, or the server is in no fleet (`error` is null).
[[noreturn]] void report_no_block(const SegmentConfig &segment, const GrantError *error, int64_t waited_us) {
    if (error != nullptr)
        ereport(ERROR, (errcode(error->why == core::Why::used_up ? ERRCODE_SEQUENCE_GENERATOR_LIMIT_EXCEEDED
                                                                 : ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                        error_details(*error, waited_us,
                                      error->why == core::Why::other_fleet ? how_to_go_on(segment) : nullptr),
                        errmsg("segment \"%s\" has no values from the registry", clipped(segment.name))));
    ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                    errmsg("segment \"%s\" takes its values from a registry, but uidgen.registry is not set",
                           clipped(segment.name)),
                    errhint("Set uidgen.registry in postgresql.conf and reload the server.")));
}

} // namespace

SegmentConfig segment_config(const Slot *slot) {
    lock_slot_shared(slot);
    SegmentConfig config = segment_of(slot).config;
    unlock_slot(slot);
    config.step = config.step > 0 ? config.step : settings::segment_step;
    config.max_step = config.max_step > 0 ? config.max_step : settings::segment_max_step;
    return config;
}

BlockAnswer ask_for_block(Slot *slot, const SegmentConfig &config, int64_t count, int64_t shown, BlockWait *wait) {
    const bool in_fleet = is_in_fleet();
    const int64_t now_us = monotonic_us();
    if (in_fleet && wait != nullptr && wait->began_us == 0) {
        wait->began_us = now_us;
        wait->counters->count(Stat::registry_waits);
    }
    const int64_t give_up_at_us = wait != nullptr ? wait->began_us + settings::max_wait_ms * us_per_ms : now_us;
    const int64_t wait_us = Min(give_up_at_us - now_us, longest_wait_us);
    BlockAnswer answer = in_fleet ? blocks_ask(slot, config, count, shown, wait_us) : BlockAnswer{};
    if (wait == nullptr) // a server that has left its fleet draws what it has
        return answer;
    if (in_fleet)
        wait->counters->count_time(Stat::registry_waits, now_us);
    // Without an answer: another session has taken the block that this one waited for, or it was discarded.
    const bool is_over = answer.state == BlockState::refused || monotonic_us() >= give_up_at_us;
    if (in_fleet && (answer.state == BlockState::ready || answer.state == BlockState::none || !is_over))
        return answer;
    if (answer.state == BlockState::asked)
        answer.error.why = core::Why::granted; // that of an error that passes by itself
    const bool is_used_up = answer.error.why == core::Why::used_up;
    wait->counters->count(is_used_up ? Stat::refused_used_up : Stat::refused_registry);
    report_no_block(config, in_fleet ? &answer.error : nullptr, monotonic_us() - wait->began_us);
}

SegmentValues draw_segment(SessionEntry *entry, uint64_t want) {
    BlockWait wait = {.counters = &entry->slot->counters};
    for (;;) {
        const Reading reading = begin_segment_try(entry);
        if (reading.is_due || !reading.has_range)
            reserve_or_ask(entry, reading.has_range ? Needed::later : Needed::now, &wait);
        core::PositionAllocator<> &ordinals = segment_of(entry->slot).ordinals;
        const core::Range &range = reading.range;
        const core::Run run = ordinals.take(0, reading.limit, want);
        const auto increment = static_cast<uint64_t>(range.increment);
        const uint64_t origin = static_cast<uint64_t>(range.first) - range.begin * increment;
        const uint64_t last = run.first + run.count - 1;
        if (run.count > 0 && reading.reached == reading.level)
            open_window(entry, {.word = ordinals.word(),
                                .expected = last,
                                .first = last,
                                .limit = reading.limit - 1,
                                .origin = origin + increment,
                                .step = increment});
        if (run.count > 0)
            return {.first = origin + run.first * increment, .increment = increment, .count = run.count};
        CHECK_FOR_INTERRUPTS();
    }
}

} // namespace uidgen::pg
