#include "blocks.hpp"

#include "attached.hpp"
#include "session/slot_life.hpp"
#include "sequence/sequence.hpp"
#include "sequence/page.hpp"
#include "base/errors.hpp"
#include "base/faults.hpp"
#include "base/time_source.hpp"

namespace uidgen::pg {
namespace {

// The values that are left, if they suffice. False: they do not. If `raises`, the counter may have lost values that
// were handed out: if it does not stand beyond wish.shown, it is raised in any case, and the segment's own ranges are
// discarded.
bool reserve_values(const SessionEntry *e, const core::SequenceRule &rule, const BlockWish &wish, bool raises,
                    core::PlannedRange *planned) {
    Slot *slot = e->slot;
    uint64_t lsn = InvalidXLogRecPtr;

    Relation rel = open_sequence(e);
    SequencePage page = lock_page_for_writing(rel);
    const PageState state = read_page(page);
    raises = raises && core::is_beyond(state.counter, rule.increment, wish.shown);
    if (raises || !same_state(state, slot->expected))
        adopt_page(slot, rel, state);
    const core::SequenceState from = raises ? core::SequenceState{wish.shown, true} : state.counter;
    *planned = core::plan_range(from, rule, wish.most + wish.rest);
    if (planned->count == wish.most + wish.rest)
        *planned = core::plan_range(from, rule, wish.most);
    const bool suffices = planned->count >= wish.least;
    if (suffices || raises) {
        const int64_t kept_back = fault_is(Fault::short_block) ? rule.increment : 0;
        lsn = write_page(&page, suffices ? planned->last - kept_back : wish.shown);
        slot->expected = read_page(page);
        count(&slot->counters, Stat::records);
    }
    unlock_page(&page);
    relation_close(rel, NoLock);
    durable(&slot->counters, lsn, wanted_durability());
    if (suffices)
        count(&slot->counters, Stat::ids, planned->count);
    else
        count(&slot->counters, Stat::refused_used_up);
    return suffices;
}

bool may_move(const SessionEntry *e) { return pg_class_aclcheck(e->sequence, GetUserId(), ACL_UPDATE) == ACLCHECK_OK; }

[[noreturn]] void report_no_block(Oid sequence, const core::SequenceRule &rule, uint64_t count, uint64_t left) {
    const bool up = rule.increment > 0;
    const char *bound = up ? "MAXVALUE" : "MINVALUE";
    const char *change = up ? "increase" : "decrease";
    const char *hint;
    if (left == 0)
        hint = psprintf("Run ALTER SEQUENCE %s to %s its %s, or with CYCLE to start over.", qualified_name(sequence),
                        change, bound);
    else if (rule.cycle)
        hint = psprintf("Reserve a block of at most %llu. The next one starts over.",
                        static_cast<unsigned long long>(left));
    else
        hint = psprintf("Reserve a block of at most %llu, or %s the %s of the sequence.",
                        static_cast<unsigned long long>(left), change, bound);
    ereport(ERROR, (errcode(ERRCODE_SEQUENCE_GENERATOR_LIMIT_EXCEEDED),
                    errmsg("sequence \"%s\" has too few values left for a block of %llu", get_rel_name(sequence),
                           static_cast<unsigned long long>(count)),
                    errdetail("Number of values up to its %s of %lld: %llu.", bound,
                              static_cast<long long>(up ? rule.max_value : rule.min_value),
                              static_cast<unsigned long long>(left)),
                    errhint("%s", hint)));
}

// USAGE lets a role draw values one after the other. A block of any length would use up the sequence at once.
void check_length(const SessionEntry *e, const core::StepBounds &bounds, uint64_t count) {
    if (count > static_cast<uint64_t>(bounds.most) && !may_move(e))
        ereport(ERROR, (errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
                        errmsg("permission denied to reserve a block of more than %lld values of sequence \"%s\"",
                               static_cast<long long>(bounds.most), get_rel_name(e->sequence)),
                        errhint("Reserve a smaller block, or run GRANT UPDATE ON SEQUENCE %s TO %s.",
                                qualified_name(e->sequence), quote_identifier(GetUserNameFromId(GetUserId(), false)))));
}

core::StepBounds bounds_of(const SessionEntry *e, const core::SequenceRule &rule) {
    return step_bounds(read_segment_row(schema_of_function(e->function), e->sequence), rule);
}

int64_t in_sequence(const core::SequenceRule &rule, int64_t shown) {
    return rule.increment > 0 ? Min(shown, rule.max_value) : Max(shown, rule.min_value);
}

} // namespace

Block reserve_block(const SessionEntry *e, uint64_t count) {
    refuse_attached(e->function, e->sequence);
    const core::SequenceRule rule = sequence_rule(e->sequence);
    core::PlannedRange planned;
    check_length(e, bounds_of(e, rule), count);
    if (!reserve_values(e, rule, {count, count, 0, 0}, false, &planned))
        report_no_block(e->sequence, rule, count, planned.count);
    return {planned.first, planned.last, rule.increment};
}

void check_wish(const SessionEntry *e, const BlockWish &wish) {
    const core::SequenceRule rule = sequence_rule(e->sequence);
    const core::StepBounds bounds = bounds_of(e, rule);
    const int64_t shown = in_sequence(rule, wish.shown);
    check_length(e, bounds, wish.most);
    Relation rel = open_sequence(e);
    const core::SequenceState counter = page_state(rel).counter;
    relation_close(rel, NoLock);
    if (core::is_beyond(counter, rule.increment, shown) &&
        !core::is_credible_loss(core::values_up_to(counter, rule, shown), bounds) && !may_move(e))
        ereport(ERROR, (errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
                        errmsg("permission denied to move sequence \"%s\" from %lld to %lld", get_rel_name(e->sequence),
                               static_cast<long long>(counter.last_value), static_cast<long long>(shown)),
                        errhint("Use a value closer to the counter, or run GRANT UPDATE ON SEQUENCE %s TO %s.",
                                qualified_name(e->sequence), quote_identifier(GetUserNameFromId(GetUserId(), false)))));
}

core::PlannedRange reserve_beyond(const SessionEntry *e, const BlockWish &wish) {
    const core::SequenceRule rule = sequence_rule(e->sequence);
    BlockWish known = wish;
    known.shown = in_sequence(rule, wish.shown);
    core::PlannedRange planned;
    return reserve_values(e, rule, known, true, &planned) ? planned : core::PlannedRange{0, 0, 0};
}

core::PlannedRange reserve_for_member(const SessionEntry *e, int64_t count, int64_t shown) {
    return reserve_beyond(e, {1, static_cast<uint64_t>(count), 0, shown});
}

} // namespace uidgen::pg
