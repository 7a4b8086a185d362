// The triggers of the extension's tables. uid_generator_changing() is that of uid_generator, with its rules for a
// changed row:
//
//   1. The layout may change until the first lease.
//   2. max_ahead may become shorter only as far as the clock covers what is leased.
//   3. A change ends the generator's lease (slot_life.hpp). The transaction that altered a generator cannot draw
//      from it (config/rows.cpp), because a rollback would bring the old row back, and ids of the new one would stay.
//   4. The row of the builtin generator is in each new database, and in a dump if it was altered or is not the default.
//      So an insert of its row is a change of the row that CREATE EXTENSION inserted, and an insert of another default
//      takes that from it.

#include "config/rows.hpp"
#include "config/extension.hpp"
#include "base/errors.hpp"
#include "session/slot_life.hpp"
#include "node/worker_node.hpp"
#include "base/settings.hpp"
#include "base/time_source.hpp"
#include "base/compat.hpp"

namespace uidgen::pg {

namespace {

// Waits until the high-water mark is at most the new max_ahead above the clock. Beyond that it would look like the mark
// of a clock that moved backwards. No session draws meanwhile, so the clock catches up.
void wait_out_lead(Oid generator, const GeneratorConfig &former, const GeneratorConfig &wanted) {
    if (wanted.policy.max_ahead >= former.policy.max_ahead)
        return;
    const core::Layout &layout = former.layout;
    const int64_t mark = core::tick_of_mark(former.policy, high_water_mark_of(generator));
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
        sleep_for(Min(missing_us, Min(left_us, 100 * us_per_ms)), wait_event("UidgenClock"));
    }
}

// Whether a generator may change from one row to the other. Under lock_generator().
void check_change(Oid generator, Row from, Row to) {
    const GeneratorConfig former = generator_config_of(from);
    const bool layout = !core::same_layout(former.layout, generator_layout_of(to));
    const int64_t mark = layout ? high_water_mark_of(generator) : core::no_lease_yet;
    if (mark > core::no_lease_yet)
        ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                        errmsg("cannot change the layout of generator \"%s\"", get_rel_name(generator)),
                        errdetail("The generator has leased ids. With another layout they would not decode, and could "
                                  "be issued again."),
                        errhint("Create another generator above it: "
                                "SELECT uid_generator_create('name', above => %lld).",
                                static_cast<long long>(core::largest_leased_id(former.layout, former.policy, mark)))));
    const GeneratorConfig wanted = generator_config_of(to);
    if (layout)
        warn_of_end(generator, wanted.layout);
    else
        wait_out_lead(generator, former, wanted);
}

Oid generator_of(Row row) { return DatumGetObjectId(column(row, "generator")); }

// Returns the row to be stored. It is that of the builtin generator only until that is altered.
HeapTuple row_updated(Row from, Row to) {
    const Oid generator = generator_of(to);
    const auto differs = [&](const char *name) { return column(from, name) != column(to, name); };
    if (differs("generator") || differs("created") || differs("builtin"))
        ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
                        errmsg("cannot change generator, created or builtin in a row of uid_generator"),
                        errhint("Create another generator with uid_generator_create().")));
    lock_generator(generator);
    check_change(generator, from, to);
    end_lease(generator);
    int number = column_number(to.desc, "builtin");
    Datum builtin = BoolGetDatum(DatumGetBool(column(from, "builtin")) && differs("is_default"));
    bool null = false;
    return heap_modify_tuple_by_cols(to.tuple, to.desc, 1, &number, &builtin, &null);
}

// The sequence may have a slot that was made from an earlier row, or of a sequence that had its oid.
void row_inserted(Oid table, Row row) {
    const Oid generator = generator_of(row);
    const GeneratorConfig config = generator_config_of(row); // raises an error if the row is not valid
    lock_generator(generator);
    const Row present = find_generator_row(get_rel_namespace(table), generator);
    if (present.tuple == nullptr) {
        warn_of_end(generator, config.layout);
        forget_generator(generator);
    } else if (DatumGetBool(column(present, "builtin"))) { // otherwise this insert fails, or does nothing
        check_change(generator, present, row);
        write_as_owner(table,
                       psprintf("DELETE FROM %%1$s WHERE builtin AND generator::pg_catalog.oid "
                                "OPERATOR(pg_catalog.=) %u::pg_catalog.oid",
                                generator),
                       0, nullptr, nullptr);
    }
    if (DatumGetBool(column(row, "is_default")))
        write_as_owner(table, "UPDATE %1$s SET is_default = false WHERE builtin AND is_default", 0, nullptr, nullptr);
    note_datacenter_id(generator, config);
}

// Null: another call of the function. A superuser may use it on other tables, whose columns are of other types.
const TriggerData *change_of_generators(FunctionCallInfo fcinfo) {
    const auto *trigger = CALLED_AS_TRIGGER(fcinfo) ? reinterpret_cast<TriggerData *>(fcinfo->context) : nullptr;
    const bool is_row =
        trigger != nullptr && TRIGGER_FIRED_BEFORE(trigger->tg_event) && TRIGGER_FIRED_FOR_ROW(trigger->tg_event);
    return is_row && RelationGetRelid(trigger->tg_relation) == required_table(find_extension().schema, "uid_generator")
               ? trigger
               : nullptr;
}

// If the sequence is gone, this transaction or an earlier one has dropped it, and no session draws from it.
void row_deleted(Row row) {
    const Oid generator = generator_of(row);
    if (!is_relation(generator)) {
        LockRelationOid(generator, excludes_draws); // so that no sweep frees the slot meanwhile
        end_lease(generator, true);
        return;
    }
    lock_generator(generator);
    end_lease(generator);
}

} // namespace

// uid_keep_local(): the trigger that keeps logical replication away from the extension's tables. Their rows describe
// sequences of this server, numbers that it drew, or grants of this registry. A FOR ALL TABLES publication includes
// these tables, because every database with the extension has them. The trigger is ENABLE ALWAYS, and acts only in an
// apply or tablesync worker. It does not check session_replication_role, because restores set that too.

namespace {

// A worker can leave out rows, but not a TRUNCATE. So no session may send one.
[[noreturn]] void refuse_truncate(Relation table) {
    ereport(ERROR,
            (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
             errmsg("cannot truncate table \"%s\"", RelationGetRelationName(table)),
             errdetail("Its rows describe sequences, or keep nodes from being granted twice."),
             errhint("Drop generators with uid_generator_drop(), segments with segment_drop(), and keys with DROP "
                     "SEQUENCE. Free a node whose holder does not run any more with uid_fleet_takeover().")));
}

} // namespace

} // namespace uidgen::pg

using namespace uidgen::pg;

extern "C" {

UIDGEN_SQL_FUNCTION(uid_generator_changing);

Datum uid_generator_changing(PG_FUNCTION_ARGS) {
    const TriggerData *trigger = change_of_generators(fcinfo);
    if (trigger == nullptr)
        report_other_call("uid_generator_changing", "BEFORE trigger for each row of uid_generator");
    const TupleDesc desc = RelationGetDescr(trigger->tg_relation);
    if (IsLogicalWorker())
        return static_cast<Datum>(0); // as uid_keep_local() does
    CacheInvalidateRelcache(trigger->tg_relation);
    if (TRIGGER_FIRED_BY_UPDATE(trigger->tg_event))
        PG_RETURN_POINTER(row_updated({trigger->tg_trigtuple, desc}, {trigger->tg_newtuple, desc}));
    if (TRIGGER_FIRED_BY_INSERT(trigger->tg_event))
        row_inserted(RelationGetRelid(trigger->tg_relation), {trigger->tg_trigtuple, desc});
    else
        row_deleted({trigger->tg_trigtuple, desc});
    PG_RETURN_POINTER(trigger->tg_trigtuple);
}

UIDGEN_SQL_FUNCTION(uid_keep_local);

Datum uid_keep_local(PG_FUNCTION_ARGS) {
    const auto *trigger = CALLED_AS_TRIGGER(fcinfo) ? reinterpret_cast<TriggerData *>(fcinfo->context) : nullptr;
    if (trigger == nullptr || !TRIGGER_FIRED_BEFORE(trigger->tg_event))
        report_other_call("uid_keep_local", "BEFORE trigger");
    if (TRIGGER_FIRED_BY_TRUNCATE(trigger->tg_event))
        refuse_truncate(trigger->tg_relation);
    if (IsLogicalWorker())
        return static_cast<Datum>(0); // leaves the change out
    return PointerGetDatum(TRIGGER_FIRED_BY_UPDATE(trigger->tg_event) ? trigger->tg_newtuple : trigger->tg_trigtuple);
}
}
