#include "config_table.hpp"

#include "errors.hpp"
#include "time_source.hpp"

namespace uidgen::pg {
namespace {

// Columns of uid_generator and uid_segment, as the install script makes them.
enum GeneratorColumn : AttrNumber {
    generator_sequence = 1,
    generator_epoch = 3,
    generator_tick_us,
    generator_time_bits,
    generator_datacenter_bits,
    generator_worker_bits,
    generator_sequence_bits,
    generator_lease_ms,
    generator_max_ahead_ms,
    generator_builtin = 12,
};
enum SegmentColumn : AttrNumber { segment_name = 1, segment_sequence, segment_step, segment_max_step };

// One row found by one column; visit(tuple, desc, arg) is called for it.
using Visit = void (*)(HeapTuple tuple, TupleDesc desc, void *arg);

bool find_row(Oid table, Oid index, ScanKeyData *key, Visit visit, void *arg) {
    Relation rel = table_open(table, AccessShareLock);
    SysScanDesc scan = systable_beginscan(rel, index, OidIsValid(index), nullptr, 1, key);
    HeapTuple tuple = systable_getnext(scan);
    const bool found = HeapTupleIsValid(tuple);
    if (found)
        visit(tuple, RelationGetDescr(rel), arg);
    systable_endscan(scan);
    table_close(rel, AccessShareLock);
    return found;
}

Datum column(HeapTuple tuple, TupleDesc desc, AttrNumber number) {
    bool is_null = false;
    const Datum value = heap_getattr(tuple, number, desc, &is_null);
    return is_null ? Int64GetDatum(0) : value;
}

// Ticks that a time of that many milliseconds takes, at least one.
int64_t ticks_of_ms(const core::Layout &layout, int32_t ms) {
    const int64_t ticks = ms * us_per_ms / layout.tick_us;
    return ticks > 0 ? ticks : 1;
}

void copy_generator(HeapTuple tuple, TupleDesc desc, void *arg) {
    auto *config = static_cast<GeneratorConfig *>(arg);
    core::Layout &layout = config->layout;
    const TimestampTz epoch = DatumGetTimestampTz(column(tuple, desc, generator_epoch));
    // An infinite epoch must not wrap into a valid one.
    layout.epoch_us = TIMESTAMP_NOT_FINITE(epoch) ? -1 : to_unix_us(epoch);
    layout.tick_us = DatumGetInt64(column(tuple, desc, generator_tick_us));
    layout.time_bits = DatumGetInt16(column(tuple, desc, generator_time_bits));
    layout.datacenter_bits = DatumGetInt16(column(tuple, desc, generator_datacenter_bits));
    layout.worker_bits = DatumGetInt16(column(tuple, desc, generator_worker_bits));
    layout.sequence_bits = DatumGetInt16(column(tuple, desc, generator_sequence_bits));
    const core::LayoutFault fault = core::check(layout);
    if (fault != core::LayoutFault::none)
        report_layout(DatumGetObjectId(column(tuple, desc, generator_sequence)), fault);
    config->policy = {layout.sequence_bits, core::largest(layout.time_bits) + 1,
                      ticks_of_ms(layout, DatumGetInt32(column(tuple, desc, generator_lease_ms))),
                      ticks_of_ms(layout, DatumGetInt32(column(tuple, desc, generator_max_ahead_ms)))};
}

void copy_generator_sequence(HeapTuple tuple, TupleDesc desc, void *arg) {
    *static_cast<Oid *>(arg) = DatumGetObjectId(column(tuple, desc, generator_sequence));
}

void copy_segment_sequence(HeapTuple tuple, TupleDesc desc, void *arg) {
    *static_cast<Oid *>(arg) = DatumGetObjectId(column(tuple, desc, segment_sequence));
}

void copy_segment_steps(HeapTuple tuple, TupleDesc desc, void *arg) {
    *static_cast<SegmentSteps *>(arg) = {DatumGetInt64(column(tuple, desc, segment_step)),
                                         DatumGetInt64(column(tuple, desc, segment_max_step))};
}

// The unique index on that column alone; InvalidOid, so a scan of the table, if there is none.
Oid index_on(Oid table, AttrNumber column_number) {
    Oid found = InvalidOid;
    Relation rel = table_open(table, AccessShareLock);
    List *indexes = RelationGetIndexList(rel);
    ListCell *cell;
    foreach (cell, indexes) {
        HeapTuple tuple = SearchSysCache1(INDEXRELID, ObjectIdGetDatum(lfirst_oid(cell)));
        if (!HeapTupleIsValid(tuple))
            continue;
        const auto *index = reinterpret_cast<Form_pg_index>(GETSTRUCT(tuple));
        if (index->indisunique && index->indisvalid && index->indnkeyatts == 1 &&
            index->indkey.values[0] == column_number)
            found = lfirst_oid(cell);
        ReleaseSysCache(tuple);
    }
    list_free(indexes);
    table_close(rel, AccessShareLock);
    return found;
}

} // namespace

Oid schema_of_function(Oid function) { return get_func_namespace(function); }

Oid extension_table(Oid schema, const char *name) { return get_relname_relid(name, schema); }

Oid required_table(Oid schema, const char *name) {
    const Oid table = extension_table(schema, name);
    if (!OidIsValid(table))
        ereport(ERROR, (errcode(ERRCODE_UNDEFINED_TABLE), errmsg("table \"%s\" of extension uidgen does not exist", name),
                        errhint("Run DROP EXTENSION uidgen and CREATE EXTENSION uidgen.")));
    return table;
}

bool read_generator_config(Oid schema, Oid generator, GeneratorConfig *config) {
    const Oid table = required_table(schema, "uid_generator");
    ScanKeyData key;
    ScanKeyInit(&key, generator_sequence, BTEqualStrategyNumber, F_OIDEQ, ObjectIdGetDatum(generator));
    return find_row(table, index_on(table, generator_sequence), &key, copy_generator, config);
}

Oid read_default_generator(Oid schema) {
    Oid generator = InvalidOid;
    ScanKeyData key;
    ScanKeyInit(&key, generator_builtin, BTEqualStrategyNumber, F_BOOLEQ, BoolGetDatum(true));
    if (!find_row(required_table(schema, "uid_generator"), InvalidOid, &key, copy_generator_sequence, &generator))
        ereport(ERROR, (errcode(ERRCODE_UNDEFINED_OBJECT), errmsg("the database has no default generator"),
                        errhint("Name a generator: uid_next('uid_generators.name').")));
    return generator;
}

Oid read_segment_by_name(Oid schema, const text *name) {
    Oid sequence = InvalidOid;
    const Oid table = required_table(schema, "uid_segment");
    ScanKeyData key;
    ScanKeyEntryInitialize(&key, 0, segment_name, BTEqualStrategyNumber, InvalidOid, DEFAULT_COLLATION_OID, F_TEXTEQ,
                           PointerGetDatum(name));
    find_row(table, index_on(table, segment_name), &key, copy_segment_sequence, &sequence);
    return sequence;
}

SegmentSteps read_segment_steps(Oid schema, Oid sequence) {
    SegmentSteps steps = {0, 0};
    ScanKeyData key;
    ScanKeyInit(&key, segment_sequence, BTEqualStrategyNumber, F_OIDEQ, ObjectIdGetDatum(sequence));
    const Oid table = required_table(schema, "uid_segment");
    find_row(table, index_on(table, segment_sequence), &key, copy_segment_steps, &steps);
    return steps;
}

} // namespace uidgen::pg
