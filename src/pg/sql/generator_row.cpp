// What becomes of a generator when its row of uid_generator changes: uid_generator_changing() (the table's trigger),
// uid_generator_raise(), uid_default_set().
//
// Each takes a lock on the lease sequence that excludes all who draw, to the end of the transaction. So nobody holds the
// generator's slot: it is freed, and the next one who draws makes it anew from the row that was committed, above the
// high-water mark. A transaction that altered a generator can't draw from it (config_table.cpp), because a rollback would
// bring the old row back, and ids of the new one would stay. That the builtin generator gets its row is a change of the row
// that it would have without; that it loses it, one back to that.

#include "tables/builtin.hpp"
#include "tables/config_table.hpp"
#include "base/errors.hpp"
#include "tables/new_rows.hpp"
#include "session/new_slot.hpp"
#include "tables/owner_rights.hpp"
#include "tables/sequence_page.hpp"
#include "session/session.hpp"
#include "base/settings.hpp"
#include "base/time_source.hpp"
#include "base/waits.hpp"

namespace uidgen::pg {
namespace {

constexpr LOCKMODE excludes_draws = ShareRowExclusiveLock;

void lock_generator(Oid generator) {
    LockRelationOid(generator, excludes_draws);
    if (get_rel_relkind(generator) != RELKIND_SEQUENCE)
        report_not_a_generator(generator);
}

// Under lock_generator().
void end_lease(Oid generator) {
    if (slots_exist())
        slot_free({MyDatabaseId, generator}, Fate::lives_on);
    CacheInvalidateRelcacheByRelid(generator); // sessions let go of its ring
    open_all_again();
}

int64_t high_water_mark_of(Relation rel) {
    SequencePage page = lock_page_for_reading(rel);
    const PageState state = read_page(page);
    unlock_page(&page);
    return state.counter.last_value;
}

int64_t high_water_mark_of(Oid generator) {
    Relation rel = relation_open(generator, NoLock);
    const int64_t mark = high_water_mark_of(rel);
    relation_close(rel, NoLock);
    return mark;
}

// A term's worker id must be one that the generator never used, so what it follows from can't change either.
bool terms_differ(const GeneratorConfig &a, const GeneratorConfig &b) {
    const bool a_has = a.policy.when_back == core::WhenBack::new_worker;
    const bool b_has = b.policy.when_back == core::WhenBack::new_worker;
    return a_has != b_has || (a_has && a.worker_number != b.worker_number);
}

// A mark further ahead than max_ahead is taken for that of a clock that went back. So where max_ahead becomes shorter than
// the generator stands ahead, this waits: nobody draws meanwhile, and the clock comes up.
void wait_out_lead(Oid generator, const GeneratorConfig &former, const GeneratorConfig &wanted) {
    if (wanted.policy.max_ahead >= former.policy.max_ahead)
        return;
    const core::Layout &layout = former.layout;
    const int64_t mark = core::ticks_of_mark(layout, former.policy, high_water_mark_of(generator)) % former.policy.end;
    const int64_t began_us = monotonic_us();
    for (;;) {
        const int64_t now = core::tick_at(layout, wall_clock_us());
        const int64_t missing_us = (mark - now - wanted.policy.max_ahead) * layout.tick_us;
        if (missing_us <= 0)
            return;
        const int64_t left_us = settings::max_wait_ms * us_per_ms - (monotonic_us() - began_us);
        if (left_us <= 0)
            ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                            errmsg("cannot reduce max_ahead_ms of generator \"%s\" yet", get_rel_name(generator)),
                            errdetail("The generator has leased ids up to %.3f s ahead of the clock.",
                                      static_cast<double>((mark - now) * layout.tick_us) / 1e6),
                            errhint("Try again in %lld s.", static_cast<long long>((missing_us + 999999) / 1000000))));
        sleep_for_clock(Min(missing_us, Min(left_us, 100 * us_per_ms)));
    }
}

// From one row of a generator to another.
void check_change(Oid generator, HeapTuple from, HeapTuple to, TupleDesc desc) {
    const GeneratorConfig former = generator_config_of(from, desc);
    const GeneratorConfig wanted = generator_config_of(to, desc);
    const bool layout = layout_differs(from, to, desc);
    const bool keeps = !layout && !terms_differ(former, wanted);
    const int64_t mark = keeps ? core::no_lease_yet : high_water_mark_of(generator);
    if (mark > core::no_lease_yet)
        ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                        layout ? errmsg("cannot change the layout of generator \"%s\"", get_rel_name(generator))
                               : errmsg("cannot change when_back or worker_number of generator \"%s\"",
                                        get_rel_name(generator)),
                        layout ? errdetail("The generator has leased ids. With another layout they would not decode, "
                                           "and could be issued again.")
                               : errdetail("The generator has leased ids. With when_back new_worker, each term needs "
                                           "a worker id that the generator has never used."),
                        errhint("Create another generator above it: "
                                "SELECT uid_generator_create('name', above => %lld).",
                                static_cast<long long>(core::largest_leased_id(former.layout, former.policy, mark)))));
    if (!layout)
        wait_out_lead(generator, former, wanted);
}

void row_updated(HeapTuple from, HeapTuple to, TupleDesc desc) {
    const Oid generator = generator_of_row(to, desc);
    if (identity_differs(from, to, desc))
        ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
                        errmsg("cannot change generator, created or builtin in a row of uid_generator"),
                        errhint("Create another generator with uid_generator_create().")));
    lock_generator(generator);
    check_change(generator, from, to, desc);
    end_lease(generator);
}

// A slot there may be is of a row that is there no more.
void row_inserted(HeapTuple row, TupleDesc desc) {
    const Oid generator = generator_of_row(row, desc);
    const bool builtin = generator == builtin_generator();
    generator_config_of(row, desc); // for the error
    if (is_builtin_row(row, desc) != builtin)
        report_generator_field("builtin", builtin ? "false" : "true",
                               builtin ? "Use true for the generator that comes with the extension."
                                       : "Use false for a generator that does not come with the extension.");
    lock_generator(generator);
    if (builtin)
        check_change(generator, builtin_row(generator, true, desc), row, desc);
    end_lease(generator);
    note_new_row(generator);
}

// Only the builtin generator is one without its row. (The sequence of another may be gone.)
void row_deleted(HeapTuple row, TupleDesc desc) {
    const Oid generator = generator_of_row(row, desc);
    if (generator != builtin_generator())
        return;
    lock_generator(generator);
    check_change(generator, row, builtin_row(generator, true, desc), desc);
    end_lease(generator);
}

// The tick that a generator must not go below for its ids to be above that one; error if the layout has none, or none yet.
int64_t tick_above(Oid generator, const GeneratorConfig &config, int64_t id) {
    const core::Layout &layout = config.layout;
    const int64_t tick = id < 0 ? 0 : (id >> core::time_shift(layout)) + 1;
    const int64_t now = core::tick_at(layout, wall_clock_us());
    if (tick <= now + config.policy.max_ahead && tick < config.policy.end)
        return tick;
    const char *name = get_rel_name(generator);
    if (tick < config.policy.end)
        ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                        errmsg("generator \"%s\" cannot start above %lld yet", name, static_cast<long long>(id)),
                        errdetail("Its ids exceed that value from %s on.",
                                  timestamptz_to_str(to_timestamptz(core::start_of(layout, tick)))),
                        errhint("Wait until then, or use a layout with more bits, an earlier epoch or "
                                "shorter ticks.")));
    ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                    errmsg("generator \"%s\" cannot start above %lld", name, static_cast<long long>(id)),
                    errdetail("The layout of the generator has no id above that value."),
                    errhint("Use a layout with more bits, an earlier epoch or shorter ticks.")));
}

// Under lock_generator(), or on a sequence that nobody else sees yet.
void raise_high_water_mark(Oid generator, const GeneratorConfig &config, int64_t tick) {
    if (core::terms_of(config.layout, config.policy) > 1)
        ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
                        errmsg("generator \"%s\" cannot guarantee ids above a given id", get_rel_name(generator)),
                        errdetail("With when_back new_worker, a new term starts at the clock, below earlier ids."),
                        errhint("Use a generator with another when_back policy.")));
    Relation rel = relation_open(generator, NoLock);
    check_lease_sequence(rel);
    refuse_rewritten(rel);
    int64_t mark = Max(tick - 1, 0);
    if (high_water_mark_of(rel) == core::no_lease_yet)
        mark = Max(mark, last_tick_of_lost(config)); // which a first lease looks at only while there is no mark
    SequencePage page = lock_page_for_writing(rel);
    const bool higher = mark > read_page(page).counter.last_value;
    // A mark that is high enough already may be one whose raising was canceled before it was durable.
    const uint64_t lsn = higher ? write_page(&page, mark) : read_page(page).lsn;
    unlock_page(&page);
    relation_close(rel, NoLock);
    durable(lsn, wanted_durability()); // a commit that wrote nothing else would not wait
}

GeneratorConfig required_config(Oid schema, Oid generator) {
    GeneratorConfig config;
    if (!read_generator_config(schema, generator, &config))
        report_not_a_generator(generator);
    return config;
}

void check_may_choose_default(Oid table) {
    if (!has_privs_of_role(GetUserId(), owner_of(table)) && !has_privs_of_role(GetUserId(), ROLE_PG_DATABASE_OWNER))
        ereport(ERROR, (errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
                        errmsg("permission denied to choose the default generator"),
                        errdetail("Only the owner of the database or of the extension may choose it.")));
}

// How many rows a statement wrote is compared with what a look at the table as it is now has found: a transaction may have a
// snapshot of before.
void write_default(Oid table, uint64 former_rows, Oid generator) {
    const char *name = qualified_name(table);
    Oid types[] = {OIDOID};
    Datum values[] = {ObjectIdGetDatum(generator)};
    const bool done =
        execute_as_owner(table, psprintf("UPDATE %s SET is_default = false WHERE is_default", name), 0, nullptr, nullptr) == former_rows &&
        execute_as_owner(table, psprintf("UPDATE %s SET is_default = true WHERE generator::pg_catalog.oid OPERATOR(pg_catalog.=) $1", name),
                         lengthof(types), types, values) == 1;
    if (!done)
        ereport(ERROR, (errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
                        errmsg("could not choose the default generator due to a concurrent change"),
                        errhint("Retry the transaction.")));
}

// Ids of the new default are above all that the former one may have issued. Under locks on both.
void raise_above(Oid schema, Oid former, Oid generator) {
    const int64_t mark = high_water_mark_of(former);
    if (mark == core::no_lease_yet)
        return;
    const GeneratorConfig config = required_config(schema, generator); // nobody alters it any more
    const GeneratorConfig former_config = required_config(schema, former);
    const int64_t largest = core::largest_leased_id(former_config.layout, former_config.policy, mark);
    raise_high_water_mark(generator, config, tick_above(generator, config, largest));
    end_lease(generator);
}

} // namespace

} // namespace uidgen::pg

using namespace uidgen::pg;

extern "C" {

UIDGEN_SQL_FUNCTION(uid_generator_changing);
UIDGEN_SQL_FUNCTION(uid_generator_raise);
UIDGEN_SQL_FUNCTION(uid_default_set);

Datum uid_generator_changing(PG_FUNCTION_ARGS) {
    const auto *trigger = CALLED_AS_TRIGGER(fcinfo) ? reinterpret_cast<TriggerData *>(fcinfo->context) : nullptr;
    // Anybody may make triggers on tables of their own, with columns of any type.
    if (trigger == nullptr || !TRIGGER_FIRED_FOR_ROW(trigger->tg_event) || !TRIGGER_FIRED_BEFORE(trigger->tg_event) ||
        RelationGetRelid(trigger->tg_relation) !=
            extension_table(schema_of_function(fcinfo->flinfo->fn_oid), "uid_generator"))
        ereport(ERROR, (errcode(ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED),
                        errmsg("function \"uid_generator_changing\" must be called as a BEFORE ROW trigger of "
                               "uid_generator"),
                        errhint("Use a trigger function of your own on other tables.")));
    const TupleDesc desc = RelationGetDescr(trigger->tg_relation);
    CacheInvalidateRelcache(trigger->tg_relation);
    if (TRIGGER_FIRED_BY_UPDATE(trigger->tg_event)) {
        row_updated(trigger->tg_trigtuple, trigger->tg_newtuple, desc);
        PG_RETURN_POINTER(trigger->tg_newtuple);
    }
    if (TRIGGER_FIRED_BY_INSERT(trigger->tg_event))
        row_inserted(trigger->tg_trigtuple, desc);
    else
        row_deleted(trigger->tg_trigtuple, desc);
    PG_RETURN_POINTER(trigger->tg_trigtuple);
}

Datum uid_generator_raise(PG_FUNCTION_ARGS) {
    const Oid generator = PG_GETARG_OID(0);
    const Oid schema = schema_of_function(fcinfo->flinfo->fn_oid);
    required_config(schema, generator); // for the error
    if (!has_privs_of_role(GetUserId(), owner_of(generator)))
        aclcheck_error(ACLCHECK_NOT_OWNER, OBJECT_SEQUENCE, get_rel_name(generator));
    if (RecoveryInProgress())
        report_in_recovery();
    lock_generator(generator);
    const GeneratorConfig config = required_config(schema, generator); // nobody alters it any more
    raise_high_water_mark(generator, config, tick_above(generator, config, PG_GETARG_INT64(1)));
    end_lease(generator);
    PG_RETURN_VOID();
}

Datum uid_default_set(PG_FUNCTION_ARGS) {
    const Oid generator = PG_GETARG_OID(0);
    const Oid schema = schema_of_function(fcinfo->flinfo->fn_oid);
    const Oid table = required_table(schema, "uid_generator");
    check_may_choose_default(table);
    required_config(schema, generator); // for the error
    if (RecoveryInProgress())
        report_in_recovery();
    LockRelationOid(table, ShareUpdateExclusiveLock); // one choice at a time; rows may be added meanwhile
    const Oid former = find_default_generator(schema); // none if it was dropped
    if (former == generator)
        PG_RETURN_VOID();
    if (OidIsValid(former))
        lock_generator(former);
    lock_generator(generator);
    if (OidIsValid(former))
        raise_above(schema, former, generator);
    const uint64 former_rows = OidIsValid(former) && has_generator_row(schema, former) ? 1 : 0;
    const Oid builtin = builtin_generator();
    if (OidIsValid(builtin) && !has_generator_row(schema, builtin))
        insert_builtin_row(table, false); // so that it is not the default if the new one is dropped
    write_default(table, former_rows, generator);
    default_changed_in = transaction_number;
    PG_RETURN_VOID();
}
}
