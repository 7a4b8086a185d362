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
void wait_out_lead(Oid generator, const core::Layout &layout, int64_t mark, int64_t max_ahead) {
    const int64_t until_us = monotonic_us() + settings::max_wait_ms * us_per_ms;
    for (;;) {
        const int64_t lead = mark - core::tick_at(layout, wall_clock_us());
        const int64_t missing_us = (lead - max_ahead) * layout.tick_us;
        const int64_t left_us = until_us - monotonic_us();
        if (missing_us <= 0)
            return;
        if (left_us <= 0)
            ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                            errmsg("cannot reduce max_ahead_ms of generator \"%s\" yet", get_rel_name(generator)),
                            errdetail("The generator has leased ids up to %.3f s ahead of the clock.",
                                      static_cast<double>(lead * layout.tick_us) / 1e6),
                            errhint("Try again in %lld s.", static_cast<long long>((missing_us + 999999) / 1000000))));
        sleep_for(Min(missing_us, Min(left_us, 100 * us_per_ms)), wait_event("UidgenClock"));
    }
}

// Whether a generator may change from one configuration to the other. Under lock_generator().
void check_change(Oid generator, const GeneratorConfig &former, const GeneratorConfig &wanted) {
    const int64_t mark = high_water_mark_of(generator);
    if (mark <= core::no_lease_yet)
        return;
    if (!core::same_layout(former.layout, wanted.layout))
        ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                        errmsg("cannot change the layout of generator \"%s\"", get_rel_name(generator)),
                        errdetail("The generator has leased ids. With another layout they would not decode, and could "
                                  "be issued again."),
                        errhint("Create another generator above it: "
                                "SELECT uid_generator_create('name', above => %lld).",
                                static_cast<long long>(core::largest_leased_id(former.layout, former.policy, mark)))));
    if (wanted.policy.max_ahead < former.policy.max_ahead)
        wait_out_lead(generator, former.layout, core::tick_of_mark(former.policy, mark), wanted.policy.max_ahead);
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
    const GeneratorConfig wanted = generator_config_of(to); // raises an error if the row is not valid
    lock_generator(generator);
    check_change(generator, generator_config_of(from), wanted);
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
        forget_generator(generator);
    } else if (DatumGetBool(column(present, "builtin"))) {
        check_change(generator, generator_config_of(present), config);
        write_as_owner(table,
                       psprintf("DELETE FROM %%1$s WHERE builtin AND generator::pg_catalog.oid "
                                "OPERATOR(pg_catalog.=) %u::pg_catalog.oid",
                                generator),
                       0, nullptr, nullptr);
    } else {
        return; // the insert fails, or does nothing
    }
    warn_of_end(generator, config.layout);
    if (DatumGetBool(column(row, "is_default")))
        write_as_owner(table, "UPDATE %1$s SET is_default = false WHERE builtin AND is_default", 0, nullptr, nullptr);
    note_datacenter_id(generator, config);
}

// If the sequence is gone, no session draws from it. The lock keeps a sweep from freeing the slot meanwhile.
void row_deleted(Oid generator) {
    LockRelationOid(generator, excludes_draws);
    end_lease(generator, !is_relation(generator));
}

// The row to be stored, or deleted.
HeapTuple row_of(const TriggerData *trigger) {
    return TRIGGER_FIRED_BY_UPDATE(trigger->tg_event) ? trigger->tg_newtuple : trigger->tg_trigtuple;
}

const TriggerData *trigger_of(FunctionCallInfo fcinfo) {
    return CALLED_AS_TRIGGER(fcinfo) ? reinterpret_cast<TriggerData *>(fcinfo->context) : nullptr;
}

} // namespace

} // namespace uidgen::pg

using namespace uidgen::pg;

extern "C" {

UIDGEN_SQL_FUNCTION(uid_generator_changing);
UIDGEN_SQL_FUNCTION(uid_segment_changed);
UIDGEN_SQL_FUNCTION(uid_keep_local);

// A superuser may use it on other tables, whose columns are of other types.
Datum uid_generator_changing(PG_FUNCTION_ARGS) {
    const TriggerData *trigger = trigger_of(fcinfo);
    if (trigger == nullptr || !TRIGGER_FIRED_BEFORE(trigger->tg_event) || !TRIGGER_FIRED_FOR_ROW(trigger->tg_event) ||
        RelationGetRelid(trigger->tg_relation) != required_table(extension_schema(), "uid_generator"))
        report_other_call("uid_generator_changing", "BEFORE trigger for each row of uid_generator");
    if (IsLogicalWorker())
        return static_cast<Datum>(0); // as uid_keep_local() does
    CacheInvalidateRelcache(trigger->tg_relation);
    const TupleDesc desc = RelationGetDescr(trigger->tg_relation);
    const Row row = {row_of(trigger), desc};
    if (TRIGGER_FIRED_BY_INSERT(trigger->tg_event))
        row_inserted(RelationGetRelid(trigger->tg_relation), row);
    else if (TRIGGER_FIRED_BY_DELETE(trigger->tg_event))
        row_deleted(generator_of(row));
    else
        return PointerGetDatum(row_updated({trigger->tg_trigtuple, desc}, row));
    return PointerGetDatum(row.tuple);
}

// What sessions keep of a table, such as names of segments, is up to date until its relation changes.
Datum uid_segment_changed(PG_FUNCTION_ARGS) {
    if (trigger_of(fcinfo) == nullptr)
        report_other_call("uid_segment_changed", "trigger");
    CacheInvalidateRelcache(trigger_of(fcinfo)->tg_relation);
    PG_RETURN_DATUM(0);
}

// Keeps logical replication away from the extension's tables. Their rows describe sequences of this server, numbers
// that it drew, or grants of this registry. A FOR ALL TABLES publication includes these tables, because every database
// with the extension has them. The trigger is ENABLE ALWAYS, and acts only in an apply or tablesync worker. It does not
// check session_replication_role, because restores set that too. A worker can leave out rows, but not a TRUNCATE, so no
// session may send one.
Datum uid_keep_local(PG_FUNCTION_ARGS) {
    const TriggerData *trigger = trigger_of(fcinfo);
    if (trigger == nullptr || !TRIGGER_FIRED_BEFORE(trigger->tg_event))
        report_other_call("uid_keep_local", "BEFORE trigger");
    if (TRIGGER_FIRED_BY_TRUNCATE(trigger->tg_event))
        ereport(ERROR,
                (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
                 errmsg("cannot truncate table \"%s\"", RelationGetRelationName(trigger->tg_relation)),
                 errdetail("Its rows describe sequences, or keep nodes from being granted twice."),
                 errhint("Drop generators with uid_generator_drop(), segments with segment_drop(), and keys with DROP "
                         "SEQUENCE. Free a node whose holder does not run any more with uid_fleet_takeover().")));
    return IsLogicalWorker() ? static_cast<Datum>(0) : PointerGetDatum(row_of(trigger)); // 0 leaves the change out
}
}
