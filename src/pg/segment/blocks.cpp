#include "blocks.hpp"

#include "memory/segment_state.hpp"
#include "session/slot_life.hpp"
#include "sequence/sequence.hpp"
#include "base/errors.hpp"
#include "config/rows.hpp"
#include "base/settings.hpp"
#include "base/time_source.hpp"

namespace uidgen::pg {
namespace {

// A change of a setting, or of the definition, is noticed that late.
constexpr int64_t longest_wait_us = us_per_second;

bool is_refused(const BlockAnswer &answer, core::Refusal refusal) {
    return answer.state == BlockState::refused && answer.error.refusal == refusal;
}

// A block of that length; a count of 0: too few values are left. If `shown` is not null, the counter may have lost
// values that were handed out: if it does not stand beyond *shown, it is raised in any case, and the segment's own
// ranges are discarded.
core::PlannedRange reserve_values(const SessionEntry *e, const core::SequenceRule &rule, const BlockLength &length,
                                  const int64_t *shown, uint64_t *lsn) {
    Slot *slot = e->slot;
    const int64_t now_us = monotonic_us();
    core::PlannedRange planned = {0, 0, 0};
    *lsn = with_locked_page(e, [&](SequencePage *page) REQUIRES(page_lock) -> uint64_t {
        const bool raises = shown != nullptr && core::is_beyond(slot->expected.counter, rule.increment, *shown);
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
        count(&slot->counters, Stat::records);
        const int64_t kept_back = fault_is(Fault::short_block) ? rule.increment : 0;
        return write_page(page, planned.count > 0 ? planned.last - kept_back : *shown, slot);
    });
    if (planned.count > 0)
        count(&slot->counters, Stat::ids, planned.count);
    else
        count(&slot->counters, Stat::refused_used_up);
    return planned;
}

// USAGE lets a role draw values one after the other. What moves a sequence far at once needs UPDATE.
void check_may_move(const SessionEntry *e, const char *to_do) {
    if (pg_class_aclcheck(e->sequence, GetUserId(), ACL_UPDATE) != ACLCHECK_OK)
        ereport(ERROR, (errcode(ERRCODE_INSUFFICIENT_PRIVILEGE), errmsg("permission denied to %s", to_do),
                        errhint("Run GRANT UPDATE ON SEQUENCE %s TO %s.", qualified_name(e->sequence),
                                quote_identifier(GetUserNameFromId(GetUserId(), false)))));
}

void check_length(const SessionEntry *e, const core::StepBounds &bounds, uint64_t count) {
    if (count > static_cast<uint64_t>(bounds.most))
        check_may_move(e, psprintf("reserve a block of more than %lld values of sequence \"%s\"",
                                   static_cast<long long>(bounds.most), get_rel_name(e->sequence)));
}

core::StepBounds bounds_of(const SessionEntry *e, const core::SequenceRule &rule) {
    return step_bounds(read_segment(e->sequence), rule);
}

int64_t in_sequence(const core::SequenceRule &rule, int64_t shown) {
    return rule.increment > 0 ? Min(shown, rule.max_value) : Max(shown, rule.min_value);
}

} // namespace

void report_too_few(Oid sequence, uint64_t count, const char *way_out) {
    const core::SequenceRule rule = sequence_rule(sequence);
    const bool up = rule.increment > 0;
    ereport(ERROR, (errcode(ERRCODE_SEQUENCE_GENERATOR_LIMIT_EXCEEDED),
                    errmsg("sequence \"%s\" has too few values left for a block of %llu", get_rel_name(sequence),
                           static_cast<unsigned long long>(count)),
                    errhint("Take a smaller block, or change the %s of %lld with ALTER SEQUENCE %s%s.",
                            up ? "MAXVALUE" : "MINVALUE", static_cast<long long>(up ? rule.max_value : rule.min_value),
                            qualified_name(sequence), way_out)));
}

core::PlannedRange reserve_block(const SessionEntry *e, uint64_t count) {
    refuse_attached(e->sequence);
    const core::SequenceRule rule = sequence_rule(e->sequence);
    check_length(e, bounds_of(e, rule), count);
    Relation rel = open_sequence(e);
    refuse_rewritten(rel); // a rollback would give the block again
    relation_close(rel, NoLock);
    uint64_t lsn = 0;
    const core::PlannedRange block = reserve_values(e, rule, {count, count, 0}, nullptr, &lsn);
    durable(&e->slot->counters, lsn, wanted_durability());
    if (block.count == 0)
        report_too_few(e->sequence, count, "");
    return block;
}

bool is_credible(const core::SequenceState &counter, const core::SequenceRule &rule, const core::StepBounds &bounds,
                 int64_t shown) {
    const int64_t known = in_sequence(rule, shown);
    return !core::is_beyond(counter, rule.increment, known) ||
           core::is_credible_loss(core::values_up_to(counter.last_value, rule, known), bounds);
}

core::PlannedRange reserve_beyond(const SessionEntry *e, const BlockLength &length, int64_t shown) {
    const core::SequenceRule rule = sequence_rule(e->sequence);
    const core::StepBounds bounds = bounds_of(e, rule);
    check_length(e, bounds, length.most);
    const int64_t known = in_sequence(rule, shown);
    Relation rel = open_sequence(e);
    const core::SequenceState counter = page_state(rel).counter;
    relation_close(rel, NoLock);
    if (!is_credible(counter, rule, bounds, known))
        check_may_move(e, psprintf("move sequence \"%s\" from %lld to %lld", get_rel_name(e->sequence),
                                   static_cast<long long>(counter.last_value), static_cast<long long>(known)));
    uint64_t lsn = 0;
    const core::PlannedRange block = reserve_values(e, rule, length, &known, &lsn);
    durable(&e->slot->counters, lsn, wanted_durability());
    return block;
}

core::PlannedRange reserve_for_member(const SessionEntry *e, int64_t count, int64_t shown) {
    const core::SequenceRule rule = sequence_rule(e->sequence);
    const int64_t known = in_sequence(rule, shown);
    uint64_t lsn = 0;
    return reserve_values(e, rule, {1, static_cast<uint64_t>(count), 0}, &known, &lsn);
}

const char *name_at_registry(const core::SegmentDefinition &definition) {
    const char *name =
        pg_server_to_any(definition.registry_name, static_cast<int>(strlen(definition.registry_name)), PG_UTF8);
    if (strlen(name) > longest_registry_name)
        ereport(ERROR, (errcode(ERRCODE_NAME_TOO_LONG),
                        errmsg("segment name \"%s\" is too long", shown(definition.registry_name)),
                        errhint("Use a name of at most %d bytes at the registry.", longest_registry_name)));
    return name;
}

void ask_registry(Slot *segment, const core::SegmentDefinition &definition, int64_t values, int64_t known,
                  Counters *counters) {
    if (fleet_version() == 0) {
        count(counters, Stat::refused_registry);
        ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                        errmsg("segment \"%s\" takes its values from a registry, but uidgen.registry is not set",
                               shown(definition.name)),
                        errhint("Set uidgen.registry in postgresql.conf and reload the server.")));
    }
    BlockAsk ask = {};
    ask.count = values;
    ask.shown = known;
    ask.fleet = static_cast<uint64_t>(definition.fleet);
    ask.increment = definition.increment;
    strlcpy(ask.registry_name, name_at_registry(definition), sizeof(ask.registry_name));
    copy_clipped(ask.database, get_database_name(MyDatabaseId), sizeof(ask.database));
    blocks_ask(segment, ask);
}

void wait_for_block(Slot *segment, const core::SegmentDefinition &definition, int64_t *give_up_at_us,
                    Counters *counters) {
    const int64_t now_us = monotonic_us();
    const int64_t max_wait_us = settings::max_wait_ms * us_per_ms;
    const BlockAnswer answer = blocks_look(segment);
    if (*give_up_at_us == 0) {
        *give_up_at_us = now_us + max_wait_us;
        count(counters, Stat::registry_waits);
    }
    if (answer.state == BlockState::refused || (answer.state == BlockState::asked && now_us >= *give_up_at_us)) {
        const bool used_up = is_refused(answer, core::Refusal::used_up);
        const bool changed =
            is_refused(answer, core::Refusal::other_fleet) || is_refused(answer, core::Refusal::increment_differs);
        const int64_t waited_us = now_us - (*give_up_at_us - max_wait_us);
        count(counters, used_up ? Stat::refused_used_up : Stat::refused_registry);
        ereport(
            ERROR,
            (errcode(used_up ? ERRCODE_SEQUENCE_GENERATOR_LIMIT_EXCEEDED : ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
             errmsg("segment \"%s\" has no values from the registry", shown(definition.name)),
             error_details(answer.error, waited_us,
                           changed ? psprintf("Correct uidgen.registry or the segment there, or run SELECT "
                                              "segment_attach(%s, %s) to continue with the segment as it is there now.",
                                              quote_literal_cstr(definition.name),
                                              quote_literal_cstr(definition.registry_name))
                                   : nullptr)));
    }
    if (answer.state == BlockState::asked) {
        blocks_wait(segment, Min(*give_up_at_us - now_us, longest_wait_us));
        count_time(counters, Stat::registry_waits, now_us);
    }
}

// A block of another fleet, segment or increment was asked for before the segment was attached again. One of a later
// term has come after `term` was read.
core::PlannedRange take_block(Slot *segment, const char *name, const core::SegmentDefinition &definition, int64_t term,
                              const core::SequenceState &counter) {
    FleetBlock block;
    if (!blocks_take(segment, name, &block) || block.count == 0 || block.term > term ||
        block.fleet != static_cast<uint64_t>(definition.fleet) || block.increment != definition.increment ||
        !core::is_beyond(counter, block.increment, block.first))
        return {0, 0, 0};
    const auto length = static_cast<int64_t>(block.count - 1);
    return {block.count, block.first, block.first + length * block.increment};
}

void refuse_attached(Oid sequence) {
    if (!is_attached(read_segment(sequence)))
        return;
    ereport(ERROR, (errcode(ERRCODE_WRONG_OBJECT_TYPE),
                    errmsg("segment of sequence \"%s\" is attached to a fleet's registry", get_rel_name(sequence)),
                    errdetail("Its values come from the registry, in blocks."),
                    errhint("Reserve or set values on the registry.")));
}

} // namespace uidgen::pg
