#include "reserve_block.hpp"

#include "attached_segment.hpp"
#include "session/new_slot.hpp"
#include "tables/lease_sequence.hpp"
#include "tables/sequence_page.hpp"
#include "base/errors.hpp"
#include "base/faults.hpp"
#include "base/time_source.hpp"

namespace uidgen::pg {
namespace {

struct Wish {
    uint64_t least; // 1 to most
    uint64_t most;
    const int64_t *first; // if not null, the block must begin there
    const int64_t *shown; // if not null, the block must lie beyond it
};

// Reserves `least` to `most` values, those that are left. If the counter does not stand beyond `shown`, it has lost
// values that were handed out: so it is raised in any case, and the segment's own ranges are discarded.
BlockFault reserve_values(const SessionEntry *e, const core::SequenceRule &rule, const Wish &wish,
                          core::PlannedRange *planned) {
    Slot *slot = e->slot;
    uint64_t lsn = InvalidXLogRecPtr;
    BlockFault fault = BlockFault::none;
    const int64_t wall_us = wall_clock_us();

    Relation rel = open_sequence(e);
    SequencePage page = lock_page_for_writing(rel);
    const PageState state = read_page(page);
    const bool raises = wish.shown != nullptr && core::is_beyond(state.counter, rule.increment, *wish.shown);
    if (raises || !same_state(state, slot->expected))
        adopt_page(slot, rel, state);
    *planned = core::plan_range(raises ? core::SequenceState{*wish.shown, true} : state.counter, rule, wish.most);
    if (planned->count < wish.least)
        fault = BlockFault::too_few;
    else if (wish.first != nullptr && planned->first != *wish.first)
        fault = BlockFault::moved;
    if (fault == BlockFault::none || raises) {
        const int64_t kept_back = fault_is(Fault::short_block) ? rule.increment : 0;
        lsn = write_page(&page, fault == BlockFault::none ? planned->last - kept_back : *wish.shown);
        slot->expected = read_page(page);
        count(&slot->counters, Stat::records);
        slot->segment.refilled_at_us = wall_us;
    }
    unlock_page(&page);
    relation_close(rel, NoLock);
    durable(&slot->counters, lsn, wanted_durability());
    if (fault == BlockFault::none) {
        count(&slot->counters, Stat::blocks);
        count(&slot->counters, Stat::ids, planned->count);
    } else if (fault == BlockFault::too_few) {
        count(&slot->counters, Stat::refused_used_up);
    }
    return fault;
}

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

} // namespace

Block reserve_block(const SessionEntry *e, uint64_t count) {
    refuse_attached(e->function, e->sequence);
    const core::SequenceRule rule = sequence_rule(e->sequence);
    core::PlannedRange planned;
    if (reserve_values(e, rule, {count, count, nullptr, nullptr}, &planned) != BlockFault::none)
        report_no_block(e->sequence, rule, count, planned.count);
    return {planned.first, planned.last, rule.increment};
}

BlockFault try_reserve_block(const SessionEntry *e, uint64_t count, const int64_t *first, Block *block) {
    refuse_attached(e->function, e->sequence);
    const core::SequenceRule rule = sequence_rule(e->sequence);
    core::PlannedRange planned;
    const BlockFault fault = reserve_values(e, rule, {count, count, first, nullptr}, &planned);
    *block = {planned.first, planned.last, rule.increment};
    return fault;
}

core::PlannedRange reserve_for_member(const SessionEntry *e, int64_t count, int64_t shown) {
    const core::SequenceRule rule = sequence_rule(e->sequence);
    const int64_t most = core::bounded_by_sequence(count, core::values_in(rule));
    const int64_t known = rule.increment > 0 ? Min(shown, rule.max_value) : Max(shown, rule.min_value);
    core::PlannedRange planned;
    reserve_values(e, rule, {1, static_cast<uint64_t>(most), nullptr, &known}, &planned);
    return planned;
}

} // namespace uidgen::pg
