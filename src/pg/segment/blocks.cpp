#include "blocks.hpp"

#include "ranges.hpp"

namespace uidgen::pg {
namespace {

// Moves the counter, logs the page and counts, under the page's lock (with_locked_page()). Does not flush: the caller
// makes *lsn durable. A block of that length; a count of 0: too few values are left. If `shown` is not null, the
// counter may have lost values that were handed out: if it does not stand beyond *shown, it is raised in any case, and
// the segment's own ranges are discarded.
core::PlannedRange reserve_values(const SessionEntry *entry, const core::SequenceRule &rule, const BlockLength &length,
                                  const int64_t *shown, uint64_t *lsn)
    EXCLUDES(page_lock, table_lock, slot_lock, state_lock) {
    Slot *slot = entry->slot;
    const int64_t now_us = monotonic_us();
    core::PlannedRange planned = {};
    *lsn = with_locked_page(entry, [&](SequencePage *page) REQUIRES(page_lock) -> uint64_t {
        const bool raises = shown != nullptr && core::lies_beyond(slot->expected.counter, rule.increment, *shown);
        if (raises)
            adopt_page(slot, slot->file, slot->expected);
        const core::SequenceState from = raises ? core::SequenceState{*shown, true} : slot->expected.counter;
        planned = core::plan_range(from, rule, length.most + length.rest);
        if (planned.count == length.most + length.rest)
            planned = core::plan_range(from, rule, length.most);
        if (planned.count < length.least)
            planned.count = 0;
        if (planned.count == 0 && !raises)
            return InvalidXLogRecPtr;
        segment_of(slot).block_at_us = now_us;
        const int64_t kept_back = fault_is("short_block") ? rule.increment : 0;
        return write_page(page, planned.count > 0 ? planned.last - kept_back : *shown, slot);
    });
    if (planned.count > 0)
        slot->counters.count(Stat::ids, planned.count);
    else
        slot->counters.count(Stat::refused_used_up);
    return planned;
}

// Error unless the role has UPDATE on the sequence. USAGE lets a role draw values one after the other. What moves a
// sequence far at once needs UPDATE.
void check_may_move(const SessionEntry *entry, const char *to_do) {
    if (pg_class_aclcheck(entry->sequence, GetUserId(), ACL_UPDATE) != ACLCHECK_OK)
        ereport(ERROR, (errcode(ERRCODE_INSUFFICIENT_PRIVILEGE), errmsg("permission denied to %s", to_do),
                        errhint("Run GRANT UPDATE ON SEQUENCE %s TO %s.", qualified_name(entry->sequence),
                                quote_identifier(GetUserNameFromId(GetUserId(), false)))));
}

// Error if that many values are more than a range may have, and the role lacks UPDATE on the sequence.
void check_length(const SessionEntry *entry, const core::StepBounds &bounds, uint64_t count) {
    if (count > static_cast<uint64_t>(bounds.most))
        check_may_move(entry, psprintf("reserve a block of more than " INT64_FORMAT " values of sequence \"%s\"",
                                       bounds.most, get_rel_name(entry->sequence)));
}

int64_t clamped_to_sequence(const core::SequenceRule &rule, int64_t shown) {
    return rule.increment > 0 ? Min(shown, rule.max_value) : Max(shown, rule.min_value);
}

} // namespace

core::StepBounds step_bounds_of(const SessionEntry *entry, const core::SequenceRule &rule) {
    const SegmentConfig config = segment_config(entry->slot);
    return core::step_bounds(config.step, config.max_step, rule);
}

void report_too_few(Oid sequence, uint64_t count, const char *way_out) {
    ereport(
        ERROR,
        (errcode(ERRCODE_SEQUENCE_GENERATOR_LIMIT_EXCEEDED),
         errmsg("sequence \"%s\" has too few values left for a block of " UINT64_FORMAT, get_rel_name(sequence), count),
         errhint("Take a smaller block, or %s%s.", way_to_more_values(sequence, sequence_rule(sequence)), way_out)));
}

core::PlannedRange reserve_block(const SessionEntry *entry, uint64_t count) {
    check_not_attached(entry);
    const core::SequenceRule rule = sequence_rule(entry->sequence);
    check_length(entry, step_bounds_of(entry, rule), count);
    Relation rel = open_sequence(entry);
    check_not_rewritten(rel); // a rollback would give the block again
    relation_close(rel, NoLock);
    uint64_t lsn = 0;
    const core::PlannedRange block = reserve_values(entry, rule, exactly(count), nullptr, &lsn);
    make_durable(&entry->slot->counters, lsn, wanted_durability());
    if (block.count == 0)
        report_too_few(entry->sequence, count, "");
    return block;
}

bool is_credible(const core::SequenceState &counter, const core::SequenceRule &rule, const core::StepBounds &bounds,
                 int64_t shown) {
    const int64_t known = clamped_to_sequence(rule, shown);
    return !core::lies_beyond(counter, rule.increment, known) ||
           core::is_credible_loss(core::values_up_to(counter.last_value, rule, known), bounds);
}

core::PlannedRange reserve_beyond(const SessionEntry *entry, const BlockLength &length, int64_t shown) {
    const core::SequenceRule rule = sequence_rule(entry->sequence);
    const core::StepBounds bounds = step_bounds_of(entry, rule);
    check_length(entry, bounds, length.most);
    const int64_t known = clamped_to_sequence(rule, shown);
    Relation rel = open_sequence(entry);
    const core::SequenceState counter = page_state(rel).counter;
    relation_close(rel, NoLock);
    if (!is_credible(counter, rule, bounds, known))
        check_may_move(entry, psprintf("move sequence \"%s\" from " INT64_FORMAT " to " INT64_FORMAT,
                                       get_rel_name(entry->sequence), counter.last_value, known));
    uint64_t lsn = 0;
    const core::PlannedRange block = reserve_values(entry, rule, length, &known, &lsn);
    make_durable(&entry->slot->counters, lsn, wanted_durability());
    return block;
}

// What the slot says of that, no alteration changes.
void check_not_attached(const SessionEntry *entry) {
    if (segment_config(entry->slot).is_attached())
        report_attached(entry->sequence);
}

void report_attached(Oid sequence) {
    ereport(ERROR, (errcode(ERRCODE_WRONG_OBJECT_TYPE),
                    errmsg("segment of sequence \"%s\" is attached to a fleet's registry", get_rel_name(sequence)),
                    errdetail("Its values come from the registry, in blocks."),
                    errhint("Change the row of uid_registry.segment on the registry.")));
}

} // namespace uidgen::pg
