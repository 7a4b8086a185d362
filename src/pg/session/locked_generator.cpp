#include "locked_generator.hpp"

#include "base/errors.hpp"
#include "base/faults.hpp"
#include "slot_life.hpp"
#include "config/rows.hpp"
#include "sequence/sequence.hpp"
#include "config/extension.hpp"
#include "sequence/page.hpp"
#include "session.hpp"
#include "base/time_source.hpp"

namespace uidgen::pg {
namespace {

// The lowest tick whose ids are all above `id`.
int64_t tick_above(const core::Layout &layout, int64_t id) { return id < 0 ? 0 : (id >> core::time_shift(layout)) + 1; }

[[noreturn]] void report_cannot_start(Oid generator, const GeneratorConfig &config, int64_t id, const char *hint) {
    const core::Layout &layout = config.layout;
    const int64_t tick = tick_above(layout, id);
    const char *name = get_rel_name(generator);
    if (tick < config.policy.end)
        ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                        errmsg("generator \"%s\" cannot start above %lld yet", name, static_cast<long long>(id)),
                        errdetail("Its ids exceed that value from %s on.",
                                  timestamptz_to_str(to_timestamptz(core::start_of(layout, tick)))),
                        errhint("%s", hint != nullptr ? hint
                                                      : "Wait until then, or use a layout with more bits, an earlier "
                                                        "epoch or shorter ticks.")));
    ereport(
        ERROR,
        (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
         errmsg("generator \"%s\" cannot start above %lld", name, static_cast<long long>(id)),
         errdetail("The layout of the generator has no id above that value."),
         errhint("%s", hint != nullptr ? hint : "Use a layout with more bits, an earlier epoch or shorter ticks.")));
}

void raise_high_water_mark(Oid generator, const GeneratorConfig &config, int64_t tick, bool below_lost) {
    Relation rel = relation_open(generator, NoLock);
    check_lease_sequence(RelationGetRelid(rel));
    refuse_rewritten(rel);
    int64_t mark = Max(tick - 1, 0);
    if (!below_lost && page_state(rel).counter.last_value == core::no_lease_yet)
        mark = Max(mark, last_tick_to_pass(generator, config)); // only while there is no mark
    SequencePage page = lock_page_for_writing(rel);
    const bool higher = mark > read_page(page).counter.last_value;
    // Even a mark that is high enough may not be durable yet: the call that raised it may have been canceled.
    const uint64_t lsn = higher ? write_page(&page, mark) : read_page(page).lsn;
    unlock_page(&page);
    relation_close(rel, NoLock);
    durable(lsn, wanted_durability()); // a commit that wrote nothing else would not wait
}

} // namespace

void lock_generator(Oid generator) {
    lock_sequence(generator, excludes_draws);
    if (get_rel_relkind(generator) != RELKIND_SEQUENCE)
        report_not_a_generator(generator);
}

GeneratorConfig lock_own_generator(Oid schema, Oid generator) {
    read_generator_config(schema, generator); // raises an error if it is no generator
    check_is_sequence(generator);             // a row may outlive its sequence where the library is not loaded
    if (!has_privs_of_role(GetUserId(), owner_of(generator)))
        aclcheck_error(ACLCHECK_NOT_OWNER, OBJECT_SEQUENCE, get_rel_name(generator));
    if (RecoveryInProgress())
        report_in_recovery();
    lock_generator(generator);
    return read_generator_config(schema, generator); // again under the lock, because it may have been altered
}

void end_lease(Oid generator) {
    Slot *slot = find_slot(slot_key(generator));
    if (slot != nullptr && !fault_is(Fault::keep_altered))
        expire_slot(slot);
    open_all_again();
}

void end_generator(Oid generator, SlotPhase phase) {
    close_all_windows(); // which counts what this transaction has drawn
    Slot *slot = find_slot(slot_key(generator));
    if (slot != nullptr)
        end_slot(slot, phase);
}

int64_t high_water_mark_of(Oid generator) {
    Relation rel = try_relation_open(generator, AccessShareLock);
    if (rel == nullptr)
        return core::no_lease_yet;
    const bool is_sequence = rel->rd_rel->relkind == RELKIND_SEQUENCE;
    const int64_t mark = is_sequence ? page_state(rel).counter.last_value : core::no_lease_yet;
    relation_close(rel, AccessShareLock);
    return mark;
}

bool may_start_above(const GeneratorConfig &config, int64_t id) {
    const int64_t tick = tick_above(config.layout, id);
    return tick <= core::tick_at(config.layout, wall_clock_us()) + config.policy.max_ahead && tick < config.policy.end;
}

void raise_above_id(Oid generator, const GeneratorConfig &config, int64_t id, const char *hint, bool below_lost) {
    if (!may_start_above(config, id))
        report_cannot_start(generator, config, id, hint);
    raise_high_water_mark(generator, config, tick_above(config.layout, id), below_lost);
    end_lease(generator);
}

} // namespace uidgen::pg
