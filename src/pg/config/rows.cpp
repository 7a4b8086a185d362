#include "rows.hpp"

#include <algorithm>
#include "extension.hpp"
#include "base/errors.hpp"
#include "sequence/sequence.hpp"
#include "base/time_source.hpp"

namespace uidgen::pg {

namespace {

// InvalidOid if there is none. A partial index lacks rows.
Oid unique_index_on(Relation table, AttrNumber number) {
    Oid found = InvalidOid;
    List *indexes = RelationGetIndexList(table);
    ListCell *cell;
    foreach (cell, indexes) {
        HeapTuple tuple = SearchSysCache1(INDEXRELID, ObjectIdGetDatum(lfirst_oid(cell)));
        if (!HeapTupleIsValid(tuple))
            continue;
        const auto *index = reinterpret_cast<Form_pg_index>(GETSTRUCT(tuple));
        if (index->indisunique && index->indisvalid && index->indnkeyatts == 1 && index->indkey.values[0] == number &&
            heap_attisnull(tuple, Anum_pg_index_indpred, nullptr))
            found = lfirst_oid(cell);
        ReleaseSysCache(tuple);
    }
    list_free(indexes);
    return found;
}

bool is_in(Oid catalog, Oid index, AttrNumber oid_column, Oid oid) {
    ScanKeyData key;
    ScanKeyInit(&key, oid_column, BTEqualStrategyNumber, F_OIDEQ, ObjectIdGetDatum(oid));
    Relation table = table_open(catalog, AccessShareLock);
    SysScanDesc scan = systable_beginscan(table, index, true, nullptr, 1, &key);
    const bool found = HeapTupleIsValid(systable_getnext(scan));
    systable_endscan(scan);
    table_close(table, AccessShareLock);
    return found;
}

} // namespace

bool is_relation(Oid oid) { return is_in(RelationRelationId, ClassOidIndexId, Anum_pg_class_oid, oid); }
bool is_database(Oid oid) { return is_in(DatabaseRelationId, DatabaseOidIndexId, Anum_pg_database_oid, oid); }

AttrNumber column_number(TupleDesc desc, const char *name, Oid type) {
    const int number = SPI_fnumber(desc, name);
    if (number <= 0 || (OidIsValid(type) && !IsBinaryCoercible(SPI_gettypeid(desc, number), type)))
        ereport(ERROR, (errcode(ERRCODE_UNDEFINED_COLUMN),
                        errmsg("a table of extension uidgen has no column \"%s\"%s", name,
                               OidIsValid(type) ? psprintf(" of type %s", format_type_be(type)) : ""),
                        errhint("Run ALTER EXTENSION uidgen UPDATE, or change your own table with ALTER TABLE.")));
    return static_cast<AttrNumber>(number);
}

bool is_null(Row row, const char *name) { return heap_attisnull(row.tuple, column_number(row.desc, name), row.desc); }

Datum column(Row row, const char *name) {
    bool null = false;
    const Datum value = heap_getattr(row.tuple, column_number(row.desc, name), row.desc, &null);
    return null ? Int64GetDatum(0) : value;
}

const char *text_column(Row row, const char *name) {
    (void)column_number(row.desc, name, TEXTOID);
    return is_null(row, name) ? "" : TextDatumGetCString(column(row, name));
}

namespace {

// Begins a scan for the rows whose column equals the value by the function `equal`. It uses the unique index on that
// column alone, if there is one.
SysScanDesc begin_scan(Relation table, const char *name, RegProcedure equal, Datum value) {
    const TupleDesc desc = RelationGetDescr(table);
    Oid *types = nullptr;
    int arguments = 0;
    (void)get_func_signature(equal, &types, &arguments);
    const AttrNumber number = column_number(desc, name, types[0]);
    const Oid index = unique_index_on(table, number);
    ScanKeyData key;
    ScanKeyEntryInitialize(&key, 0, number, BTEqualStrategyNumber, InvalidOid,
                           TupleDescAttr(desc, number - 1)->attcollation, equal, value);
    return systable_beginscan(table, index, OidIsValid(index), nullptr, 1, &key);
}

} // namespace

Row find_row(Oid schema, const char *table, const char *name, RegProcedure equal, Datum value) {
    Relation rel = open_required_table(schema, table);
    SysScanDesc scan = begin_scan(rel, name, equal, value);
    const Row row = {heap_copytuple(systable_getnext(scan)), CreateTupleDescCopyConstr(RelationGetDescr(rel))};
    systable_endscan(scan);
    table_close(rel, AccessShareLock);
    return row;
}

Row find_generator_row(Oid schema, Oid generator) {
    return find_row(schema, "uid_generator", "generator", F_OIDEQ, ObjectIdGetDatum(generator));
}

namespace {

// A field of uid_generator with one of several words, in the order of their enum.
template <typename Enum, size_t count> Enum word_column(Row row, const char *name, const char *const (&words)[count]) {
    const char *value = text_column(row, name);
    StringInfoData all;
    initStringInfo(&all);
    for (size_t i = 0; i < count; i++) {
        if (strcmp(value, words[i]) == 0)
            return static_cast<Enum>(i);
        appendStringInfo(&all, i == 0 ? "'%s'" : ", '%s'", words[i]);
    }
    report_generator_field(name, value, psprintf("Use one of %s.", all.data));
}

int64_t number_column(Row row, const char *name, int64_t least, int64_t most) {
    const int64_t value = DatumGetInt32(column(row, name));
    if (value < least || value > most)
        report_generator_field(
            name, psprintf("%lld", static_cast<long long>(value)),
            psprintf("Use a number from %lld to %lld.", static_cast<long long>(least), static_cast<long long>(most)));
    return value;
}

// How many ticks that many milliseconds take.
int64_t ticks_of_ms(const core::Layout &layout, int64_t ms) { return ms * us_per_ms / layout.tick_us; }
int64_t at_least_one(int64_t ticks) { return ticks > 0 ? ticks : 1; }

core::Layout layout_of_row(Row row) {
    core::Layout layout = {};
    const TimestampTz epoch = DatumGetTimestampTz(column(row, "epoch"));
    // An infinite epoch must not wrap into a valid one.
    layout.epoch_us = TIMESTAMP_NOT_FINITE(epoch) ? -1 : to_unix_us(epoch);
    layout.tick_us = DatumGetInt64(column(row, "tick_us"));
    layout.time_bits = DatumGetInt16(column(row, "time_bits"));
    layout.datacenter_bits = DatumGetInt16(column(row, "datacenter_bits"));
    layout.worker_bits = DatumGetInt16(column(row, "worker_bits"));
    layout.sequence_bits = DatumGetInt16(column(row, "sequence_bits"));
    layout.sequence_first = DatumGetBool(column(row, "sequence_first"));
    layout.backup = DatumGetBool(column(row, "backup_worker"));
    const core::LayoutFault fault = core::check(layout);
    if (fault != core::LayoutFault::none)
        report_layout(DatumGetObjectId(column(row, "generator")), fault);
    return layout;
}

core::ClockPolicy policy_of_row(Row row, const core::Layout &layout) {
    const int64_t max_ahead_ms = number_column(row, "max_ahead_ms", 1, core::longest_ahead_ms);
    const int64_t lease_ms = number_column(row, "lease_ms", 1, max_ahead_ms);
    const bool unlimited = is_null(row, "tolerance_ms");
    const int64_t tolerance_ms = unlimited ? 0 : number_column(row, "tolerance_ms", 0, PG_INT32_MAX);
    core::ClockPolicy policy = {layout.sequence_bits, core::largest(layout.time_bits) + 1,
                                at_least_one(ticks_of_ms(layout, lease_ms)),
                                at_least_one(ticks_of_ms(layout, max_ahead_ms))};
    policy.when_full = word_column<core::WhenFull>(row, "when_full", {"wait", "borrow", "backup"});
    policy.when_back = word_column<core::WhenBack>(row, "when_back", {"hold", "wait", "backup", "error"});
    policy.tolerance = unlimited ? core::no_limit : ticks_of_ms(layout, tolerance_ms);
    if (DatumGetBool(column(row, "spread")))
        policy.spread = core::spread_for(layout.sequence_bits, policy.when_full);
    const bool uses_backup = policy.when_full == core::WhenFull::backup || policy.when_back == core::WhenBack::backup;
    if (uses_backup && !layout.backup)
        report_generator_field("backup_worker", "false", "Use true, or policies other than backup.",
                               "The policy backup of when_full and when_back needs a backup worker.");
    return policy;
}

void node_of_row(Row row, GeneratorConfig *config) {
    config->worker_policy = word_column<WorkerPolicy>(row, "worker_policy", worker_policy_names);
    config->worker_number = 0;
    if (config->worker_policy == WorkerPolicy::fixed) {
        if (is_null(row, "worker_number"))
            report_generator_field("worker_number", "NULL", "Set worker_number to a worker id.",
                                   "worker_policy static needs a worker_number.");
        config->worker_number = static_cast<int32_t>(
            number_column(row, "worker_number", 0, core::largest(core::drawn_worker_bits(config->layout))));
    }
    // Without a field of its own it takes the top bits of worker ids.
    config->datacenter_id = -1;
    if (!is_null(row, "datacenter_id"))
        config->datacenter_id = static_cast<int32_t>(
            number_column(row, "datacenter_id", 0, core::largest(core::datacenter_id_bits(config->layout))));
}

constexpr int64_t most_boost_power = 20;
// A run is of one tick. It is long, so that calls seldom fetch another one, but the ring still holds several.
constexpr uint64_t longest_run = 4096;
constexpr uint64_t fewest_runs = 4;
constexpr uint64_t most_cells = UINT64_C(8) * 1024 * 1024; // 64 MB

// The layout and the policy have been checked; the ring's bounds depend on both.
CachedConfig cached_of_row(Row row, const core::Layout &layout, const core::ClockPolicy &policy) {
    CachedConfig cached = {};
    const int64_t boost = number_column(row, "boost_power", 0, most_boost_power);
    const int64_t percent = number_column(row, "padding_factor", 1, 100);
    const int64_t staleness_ms = number_column(row, "max_staleness_ms", 1, PG_INT32_MAX);
    cached.on = word_column<int>(row, "mode", {"snowflake", "cached"}) == 1;
    cached.discards = word_column<int>(row, "when_ring_full", {"stop", "discard"}) == 1;
    cached.when_empty = word_column<WhenRingEmpty>(row, "when_ring_empty", {"pad", "wait", "error"});
    if (!is_null(row, "schedule_ms"))
        cached.schedule_us = number_column(row, "schedule_ms", 1, PG_INT32_MAX) * us_per_ms;
    if (!cached.on)
        return cached;

    const uint64_t ids = (UINT64_C(1) << layout.sequence_bits) << boost;
    cached.run = Min(longest_run, Min(UINT64_C(1) << layout.sequence_bits, Max(ids / fewest_runs, 1)));
    cached.cells = ids / cached.run;
    cached.threshold = Max(cached.cells * static_cast<uint64_t>(percent) / 100, 1);
    cached.fresh_us = staleness_ms * us_per_ms / 2;
    if (cached.cells > most_cells || (INT64_C(1) << boost) > policy.max_ahead)
        report_generator_field("boost_power", psprintf("%lld", static_cast<long long>(boost)),
                               "Use a smaller boost_power, or a larger max_ahead_ms.",
                               psprintf("The ring would hold the ids of %lld ticks in %llu runs. The limits are %lld "
                                        "ticks, from max_ahead_ms, and %llu runs.",
                                        1LL << boost, static_cast<unsigned long long>(cached.cells),
                                        static_cast<long long>(policy.max_ahead),
                                        static_cast<unsigned long long>(most_cells)));
    if (cached.fresh_us < layout.tick_us)
        report_generator_field("max_staleness_ms", psprintf("%lld", static_cast<long long>(staleness_ms)),
                               "Use the length of two ticks, or more.");
    if (policy.when_full != core::WhenFull::borrow || policy.when_back != core::WhenBack::hold ||
        policy.tolerance != core::no_limit || policy.spread.count != 0)
        report_generator_field("mode", "cached",
                               "Use when_full => 'borrow', when_back => 'hold', tolerance_ms => -1, spread => false.",
                               "In cached mode, ids are made ahead of the call, so other policies cannot apply.");
    return cached;
}

// In a parallel worker the relcache does not know what the leader has created. There it must be enough that the
// transaction wrote the catalog row.
bool made_in_this_transaction(Relation sequence) {
    return sequence->rd_createSubid != InvalidSubTransactionId ||
           (IsParallelWorker() && is_written_here(RelationGetRelid(sequence)));
}

// A row that the open transaction has changed or added may be rolled back, but its ids would stay. The exception is a
// generator as new as its row: it is rolled back too.
void refuse_altered_here(HeapTuple tuple, Relation sequence) {
    const bool ours = TransactionIdIsCurrentTransactionId(HeapTupleHeaderGetXmin(tuple->t_data));
    if (ours && ((tuple->t_data->t_infomask & HEAP_UPDATED) != 0 || !made_in_this_transaction(sequence)))
        report_altered_here(RelationGetRelid(sequence));
}

} // namespace

// In a moment in which the extension is dropped, the relation of that name may be one of the schema's owner.
Oid required_table(Oid schema, const char *name, char kind) {
    const Oid table = get_relname_relid(name, schema);
    if (!OidIsValid(table) || get_rel_relkind(table) != kind)
        ereport(ERROR, (errcode(ERRCODE_UNDEFINED_TABLE),
                        errmsg("%s \"%s\" of extension uidgen does not exist",
                               kind == RELKIND_SEQUENCE ? "sequence" : "table", name),
                        errhint("%sCREATE EXTENSION uidgen.",
                                OidIsValid(extension_schema()) ? "Run DROP EXTENSION uidgen and " : "Run ")));
    return table;
}

// While it waits for the lock, another session may drop the extension, and create it again.
Relation open_required_table(Oid schema, const char *name, LOCKMODE mode, char kind) {
    Relation rel = nullptr;
    while (rel == nullptr)
        rel = try_relation_open(required_table(schema, name, kind), mode);
    return rel;
}

void copy_clipped(char *to, const char *from, size_t size) {
    const int length = pg_mbcliplen(from, static_cast<int>(strlen(from)), static_cast<int>(size) - 1);
    memcpy(to, from, static_cast<size_t>(length));
    to[length] = '\0';
}

GeneratorConfig generator_config_of(Row row) {
    GeneratorConfig config = {};
    config.layout = layout_of_row(row);
    config.policy = policy_of_row(row, config.layout);
    node_of_row(row, &config);
    config.cached = cached_of_row(row, config.layout, config.policy);
    copy_clipped(config.preset, text_column(row, "preset"), sizeof(config.preset));
    return config;
}

GeneratorConfig read_generator_config(Oid schema, Oid generator, Relation to_draw) {
    const Row row = find_generator_row(schema, generator);
    if (row.tuple == nullptr)
        report_not_a_generator(generator);
    if (to_draw != nullptr)
        refuse_altered_here(row.tuple, to_draw);
    return generator_config_of(row);
}

Oid find_default_generator(Oid schema) {
    const Row chosen = find_row(schema, "uid_generator", "is_default", F_BOOLEQ, BoolGetDatum(true));
    return chosen.tuple != nullptr ? DatumGetObjectId(column(chosen, "generator")) : InvalidOid;
}

Oid read_default_generator(Oid schema) {
    const Oid generator = find_default_generator(schema);
    if (!OidIsValid(generator))
        ereport(ERROR, (errcode(ERRCODE_UNDEFINED_OBJECT), errmsg("database has no default generator"),
                        errhint("Draw with uid_next('uid_generators.name'), or choose a default with "
                                "uid_default_set().")));
    return generator;
}

Oid read_segment_by_name(Oid schema, const text *name) {
    const Row row = find_row(schema, "uid_segment", "name", F_TEXTEQ, PointerGetDatum(name));
    return row.tuple == nullptr ? InvalidOid : DatumGetObjectId(column(row, "sequence"));
}

SegmentRow read_segment_row(Oid schema, Oid sequence) {
    const Row row = find_row(schema, "uid_segment", "sequence", F_OIDEQ, ObjectIdGetDatum(sequence));
    if (row.tuple == nullptr)
        return {};
    SegmentRow segment = {DatumGetInt64(column(row, "step")), DatumGetInt64(column(row, "max_step")),
                          text_column(row, "name")};
    if (!is_null(row, "registry_name")) {
        segment.registry_name = text_column(row, "registry_name");
        segment.fleet = static_cast<uint64_t>(DatumGetInt64(column(row, "fleet")));
        segment.increment = DatumGetInt64(column(row, "increment"));
    }
    return segment;
}

} // namespace uidgen::pg
