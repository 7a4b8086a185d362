#include "config_table.hpp"

#include "builtin.hpp"
#include "base/errors.hpp"
#include "generator_columns.hpp"
#include "base/time_source.hpp"

namespace uidgen::pg {
namespace {

// Finds one row by one column, and calls visit(tuple, desc, arg) for it.
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

constexpr int64_t longest_ahead_ms = 600000;

const char *text_column(HeapTuple tuple, TupleDesc desc, AttrNumber number) {
    bool is_null = false;
    const Datum value = heap_getattr(tuple, number, desc, &is_null);
    return is_null ? "" : TextDatumGetCString(value);
}

// A field of uid_generator with one of several words. Returns its index, in the order of their enum.
int word_column(HeapTuple tuple, TupleDesc desc, AttrNumber number, const char *const *words, int count) {
    const char *value = text_column(tuple, desc, number);
    for (int i = 0; i < count; i++)
        if (strcmp(value, words[i]) == 0)
            return i;
    StringInfoData all;
    initStringInfo(&all);
    for (int i = 0; i < count; i++)
        appendStringInfo(&all, i == 0 ? "'%s'" : ", '%s'", words[i]);
    report_generator_field(NameStr(TupleDescAttr(desc, number - 1)->attname), value,
                           psprintf("Use one of %s.", all.data));
}

int64_t number_column(HeapTuple tuple, TupleDesc desc, AttrNumber number, int64_t least, int64_t most) {
    const int64_t value = DatumGetInt32(column(tuple, desc, number));
    if (value < least || value > most)
        report_generator_field(
            NameStr(TupleDescAttr(desc, number - 1)->attname), psprintf("%lld", static_cast<long long>(value)),
            psprintf("Use a number from %lld to %lld.", static_cast<long long>(least), static_cast<long long>(most)));
    return value;
}

bool is_null(HeapTuple tuple, TupleDesc desc, AttrNumber number) {
    bool null = false;
    heap_getattr(tuple, number, desc, &null);
    return null;
}

// How many ticks that many milliseconds take.
int64_t ticks_of_ms(const core::Layout &layout, int64_t ms) { return ms * us_per_ms / layout.tick_us; }
int64_t at_least_one(int64_t ticks) { return ticks > 0 ? ticks : 1; }

core::Layout layout_of_row(HeapTuple tuple, TupleDesc desc) {
    core::Layout layout = {};
    const TimestampTz epoch = DatumGetTimestampTz(column(tuple, desc, generator_epoch));
    // An infinite epoch must not wrap into a valid one.
    layout.epoch_us = TIMESTAMP_NOT_FINITE(epoch) ? -1 : to_unix_us(epoch);
    layout.tick_us = DatumGetInt64(column(tuple, desc, generator_tick_us));
    layout.time_bits = DatumGetInt16(column(tuple, desc, generator_time_bits));
    layout.datacenter_bits = DatumGetInt16(column(tuple, desc, generator_datacenter_bits));
    layout.worker_bits = DatumGetInt16(column(tuple, desc, generator_worker_bits));
    layout.sequence_bits = DatumGetInt16(column(tuple, desc, generator_sequence_bits));
    layout.sequence_first = DatumGetBool(column(tuple, desc, generator_sequence_first));
    layout.backup = DatumGetBool(column(tuple, desc, generator_backup_worker));
    const core::LayoutFault fault = core::check(layout);
    if (fault != core::LayoutFault::none)
        report_layout(DatumGetObjectId(column(tuple, desc, generator_sequence)), fault);
    return layout;
}

core::ClockPolicy policy_of_row(HeapTuple tuple, TupleDesc desc, const core::Layout &layout) {
    const int64_t max_ahead_ms = number_column(tuple, desc, generator_max_ahead_ms, 1, longest_ahead_ms);
    const int64_t lease_ms = number_column(tuple, desc, generator_lease_ms, 1, max_ahead_ms);
    const bool unlimited = is_null(tuple, desc, generator_tolerance_ms);
    const int64_t tolerance_ms = unlimited ? 0 : number_column(tuple, desc, generator_tolerance_ms, 0, PG_INT32_MAX);
    core::ClockPolicy policy = {layout.sequence_bits, core::largest(layout.time_bits) + 1,
                                at_least_one(ticks_of_ms(layout, lease_ms)),
                                at_least_one(ticks_of_ms(layout, max_ahead_ms))};
    const char *const full[] = {"wait", "borrow", "backup"};
    const char *const back[] = {"hold", "wait", "backup", "error", "new_worker"};
    policy.when_full = static_cast<core::WhenFull>(word_column(tuple, desc, generator_when_full, full, lengthof(full)));
    policy.when_back = static_cast<core::WhenBack>(word_column(tuple, desc, generator_when_back, back, lengthof(back)));
    policy.tolerance = unlimited ? core::no_limit : ticks_of_ms(layout, tolerance_ms);
    if (DatumGetBool(column(tuple, desc, generator_spread)))
        policy.spread = core::spread_for(layout.sequence_bits);
    const bool uses_backup = policy.when_full == core::WhenFull::backup || policy.when_back == core::WhenBack::backup;
    if (uses_backup && !layout.backup)
        report_generator_field("backup_worker", "false", "Use true, or policies other than backup.",
                               "The policy backup of when_full and when_back needs a backup worker.");
    return policy;
}

void worker_of_row(HeapTuple tuple, TupleDesc desc, GeneratorConfig *config) {
    const char *const policies[] = {"disposable", "sticky", "static"};
    config->worker_policy =
        static_cast<WorkerPolicy>(word_column(tuple, desc, generator_worker_policy, policies, lengthof(policies)));
    config->worker_number = 0;
    if (config->worker_policy == WorkerPolicy::fixed) {
        if (is_null(tuple, desc, generator_worker_number))
            report_generator_field("worker_number", "NULL", "Set worker_number to a worker id.",
                                   "worker_policy static needs a worker_number.");
        config->worker_number = static_cast<int32_t>(number_column(
            tuple, desc, generator_worker_number, 0, core::largest(core::drawn_worker_bits(config->layout))));
    }
    // A term's worker id must be one that this generator never used, so it cannot be drawn at random.
    if (config->policy.when_back == core::WhenBack::new_worker &&
        (config->worker_policy != WorkerPolicy::fixed || config->layout.backup))
        report_generator_field("worker_policy", text_column(tuple, desc, generator_worker_policy),
                               "Set worker_policy to static, worker_number to a worker id, and backup_worker to false.",
                               "when_back new_worker needs a fixed worker id and no backup worker.");
}

constexpr int64_t most_boost_power = 20;
// The longest run without a chunk: long, so that calls seldom fetch another run, but the ring still holds several.
constexpr uint64_t longest_shared_run = 4096;
constexpr uint64_t fewest_shared_runs = 4;
constexpr uint64_t most_ring_bytes = UINT64_C(64) * 1024 * 1024;

// The length of the runs that all sessions share, in a ring of so many ids. A run is of one tick.
uint64_t shared_run(const core::Layout &layout, uint64_t ids) {
    const uint64_t of_ring = Max(ids / fewest_shared_runs, 1);
    return Min(longest_shared_run, Min(UINT64_C(1) << layout.sequence_bits, of_ring));
}

// The layout and the policy have been checked; the ring's bounds depend on both.
CachedConfig cached_of_row(HeapTuple tuple, TupleDesc desc, const core::Layout &layout,
                           const core::ClockPolicy &policy) {
    CachedConfig cached = {};
    const char *const modes[] = {"snowflake", "cached"};
    const char *const full[] = {"stop", "discard"};
    const char *const empty[] = {"pad", "wait", "error"};
    const int64_t boost = number_column(tuple, desc, generator_boost_power, 0, most_boost_power);
    const int64_t percent = number_column(tuple, desc, generator_padding_factor, 1, 100);
    const int64_t chunk =
        number_column(tuple, desc, generator_chunk, 1, Min(core::largest(layout.sequence_bits) + 1, PG_INT32_MAX));
    const int64_t staleness_ms = number_column(tuple, desc, generator_max_staleness_ms, 1, PG_INT32_MAX);
    cached.on = word_column(tuple, desc, generator_mode, modes, lengthof(modes)) == 1;
    cached.discards = word_column(tuple, desc, generator_when_ring_full, full, lengthof(full)) == 1;
    cached.when_empty =
        static_cast<WhenRingEmpty>(word_column(tuple, desc, generator_when_ring_empty, empty, lengthof(empty)));
    if (!is_null(tuple, desc, generator_schedule_ms))
        cached.schedule_us = number_column(tuple, desc, generator_schedule_ms, 1, PG_INT32_MAX) * us_per_ms;
    if (!cached.on)
        return cached;

    const uint64_t ids = (UINT64_C(1) << layout.sequence_bits) << boost;
    const char *show_chunk = psprintf("%lld", static_cast<long long>(chunk));
    if ((chunk & (chunk - 1)) != 0)
        report_generator_field("chunk", show_chunk, "Use a power of two.");
    cached.shares = chunk == 1;
    cached.run = cached.shares ? shared_run(layout, ids) : static_cast<uint64_t>(chunk);
    cached.cells = ids / cached.run;
    cached.threshold = Max(cached.cells * static_cast<uint64_t>(percent) / 100, 1);
    cached.fresh_us = staleness_ms * us_per_ms / 2;
    const auto mebibytes = [](uint64_t bytes) { return static_cast<unsigned long long>(bytes >> 20); };
    const char *show_boost = psprintf("%lld", static_cast<long long>(boost));
    if (cached.cells * sizeof(uint64_t) > most_ring_bytes)
        report_generator_field(
            "boost_power", show_boost,
            psprintf("Use a smaller boost_power, or a chunk above %llu.", static_cast<unsigned long long>(cached.run)),
            psprintf("The ring would need %llu MB of memory. The limit is %llu MB.",
                     mebibytes(cached.cells * sizeof(uint64_t)), mebibytes(most_ring_bytes)));
    if ((INT64_C(1) << boost) > policy.max_ahead)
        report_generator_field("boost_power", show_boost, "Use a smaller boost_power, or a larger max_ahead_ms.",
                               psprintf("The ring would hold the ids of %lld ticks. "
                                        "The limit from max_ahead_ms is %lld.",
                                        static_cast<long long>(1) << boost, static_cast<long long>(policy.max_ahead)));
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
    if (sequence->rd_createSubid != InvalidSubTransactionId)
        return true;
    HeapTuple tuple =
        IsParallelWorker() ? SearchSysCache1(RELOID, ObjectIdGetDatum(RelationGetRelid(sequence))) : nullptr;
    if (!HeapTupleIsValid(tuple))
        return false;
    const bool ours = TransactionIdIsCurrentTransactionId(HeapTupleHeaderGetXmin(tuple->t_data));
    ReleaseSysCache(tuple);
    return ours;
}

// A row that the open transaction has changed or added may be rolled back, but its ids would stay. The exception is a
// generator as new as its row: it is rolled back too.
void refuse_altered_here(HeapTuple row, Relation sequence) {
    const bool ours = TransactionIdIsCurrentTransactionId(HeapTupleHeaderGetXmin(row->t_data));
    if (ours && ((row->t_data->t_infomask & HEAP_UPDATED) != 0 || !made_in_this_transaction(sequence)))
        report_altered_here(RelationGetRelid(sequence));
}

void copy_generator(HeapTuple tuple, TupleDesc desc, void *arg) {
    *static_cast<GeneratorConfig *>(arg) = generator_config_of(tuple, desc);
}

struct ToDraw {
    Relation sequence;
    GeneratorConfig *config;
};

void copy_generator_to_draw(HeapTuple tuple, TupleDesc desc, void *arg) {
    const auto *to_draw = static_cast<const ToDraw *>(arg);
    refuse_altered_here(tuple, to_draw->sequence);
    copy_generator(tuple, desc, to_draw->config);
}

void ignore_row(HeapTuple, TupleDesc, void *) {}

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

} // namespace

Oid unique_index_on(Oid table, AttrNumber column_number) {
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

Oid schema_of_function(Oid function) { return get_func_namespace(function); }

Oid extension_table(Oid schema, const char *name) { return get_relname_relid(name, schema); }

Oid required_table(Oid schema, const char *name) {
    const Oid table = extension_table(schema, name);
    if (!OidIsValid(table))
        ereport(ERROR,
                (errcode(ERRCODE_UNDEFINED_TABLE), errmsg("table \"%s\" of extension uidgen does not exist", name),
                 errhint("Run DROP EXTENSION uidgen and CREATE EXTENSION uidgen.")));
    return table;
}

void copy_clipped(char *to, const char *from, size_t size) {
    const int length = pg_mbcliplen(from, static_cast<int>(strlen(from)), static_cast<int>(size) - 1);
    memcpy(to, from, static_cast<size_t>(length));
    to[length] = '\0';
}

GeneratorConfig generator_config_of(HeapTuple row, TupleDesc desc) {
    GeneratorConfig config = {};
    config.layout = layout_of_row(row, desc);
    config.policy = policy_of_row(row, desc, config.layout);
    config.cached = cached_of_row(row, desc, config.layout, config.policy);
    config.datacenter_id = -1;
    copy_clipped(config.preset, text_column(row, desc, generator_preset), sizeof(config.preset));
    worker_of_row(row, desc, &config);
    return config;
}

namespace {

bool find_generator_row(Oid schema, Oid generator, Visit visit, void *arg) {
    const Oid table = required_table(schema, "uid_generator");
    ScanKeyData key;
    ScanKeyInit(&key, generator_sequence, BTEqualStrategyNumber, F_OIDEQ, ObjectIdGetDatum(generator));
    return find_row(table, unique_index_on(table, generator_sequence), &key, visit, arg);
}

// The builtin generator's configuration while it has no row.
bool read_builtin_config(Oid schema, Oid generator, GeneratorConfig *config) {
    if (generator != builtin_generator())
        return false;
    Relation rel = table_open(required_table(schema, "uid_generator"), AccessShareLock);
    copy_generator(builtin_row(generator, true, RelationGetDescr(rel)), RelationGetDescr(rel), config);
    table_close(rel, AccessShareLock);
    return true;
}

} // namespace

bool has_generator_row(Oid schema, Oid generator) { return find_generator_row(schema, generator, ignore_row, nullptr); }

GeneratorConfig read_generator_config(Oid schema, Oid generator) {
    GeneratorConfig config;
    if (!find_generator_row(schema, generator, copy_generator, &config) &&
        !read_builtin_config(schema, generator, &config))
        report_not_a_generator(generator);
    return config;
}

bool read_generator_to_draw(Oid schema, Relation sequence, GeneratorConfig *config) {
    ToDraw to_draw = {sequence, config};
    const Oid generator = RelationGetRelid(sequence);
    return find_generator_row(schema, generator, copy_generator_to_draw, &to_draw) ||
           read_builtin_config(schema, generator, config);
}

Oid find_default_generator(Oid schema) {
    Oid generator = InvalidOid;
    ScanKeyData chosen;
    ScanKeyInit(&chosen, generator_is_default, BTEqualStrategyNumber, F_BOOLEQ, BoolGetDatum(true));
    if (find_row(required_table(schema, "uid_generator"), InvalidOid, &chosen, copy_generator_sequence, &generator))
        return generator;
    const Oid builtin = builtin_generator();
    return OidIsValid(builtin) && !has_generator_row(schema, builtin) ? builtin : InvalidOid;
}

Oid read_default_generator(Oid schema) {
    const Oid generator = find_default_generator(schema);
    if (!OidIsValid(generator))
        ereport(ERROR, (errcode(ERRCODE_UNDEFINED_OBJECT), errmsg("the database has no default generator"),
                        errhint("Draw with uid_next('uid_generators.name'), or choose a default with "
                                "uid_default_set().")));
    return generator;
}

Oid generator_of_row(HeapTuple row, TupleDesc desc) { return DatumGetObjectId(column(row, desc, generator_sequence)); }
bool is_builtin_row(HeapTuple row, TupleDesc desc) { return DatumGetBool(column(row, desc, generator_builtin)); }
bool is_default_row(HeapTuple row, TupleDesc desc) { return DatumGetBool(column(row, desc, generator_is_default)); }

bool layout_differs(HeapTuple a, HeapTuple b, TupleDesc desc) {
    for (AttrNumber number = generator_epoch; number <= generator_backup_worker; number++)
        if (column(a, desc, number) != column(b, desc, number))
            return true;
    return false;
}

bool identity_differs(HeapTuple a, HeapTuple b, TupleDesc desc) {
    return column(a, desc, generator_sequence) != column(b, desc, generator_sequence) ||
           column(a, desc, generator_created) != column(b, desc, generator_created) ||
           column(a, desc, generator_builtin) != column(b, desc, generator_builtin);
}

Oid read_segment_by_name(Oid schema, const text *name) {
    Oid sequence = InvalidOid;
    const Oid table = required_table(schema, "uid_segment");
    ScanKeyData key;
    ScanKeyEntryInitialize(&key, 0, segment_name, BTEqualStrategyNumber, InvalidOid, DEFAULT_COLLATION_OID, F_TEXTEQ,
                           PointerGetDatum(name));
    find_row(table, unique_index_on(table, segment_name), &key, copy_segment_sequence, &sequence);
    return sequence;
}

namespace {

bool find_segment_row(Oid schema, Oid sequence, Visit visit, void *arg) {
    const Oid table = required_table(schema, "uid_segment");
    ScanKeyData key;
    ScanKeyInit(&key, segment_sequence, BTEqualStrategyNumber, F_OIDEQ, ObjectIdGetDatum(sequence));
    return find_row(table, unique_index_on(table, segment_sequence), &key, visit, arg);
}

} // namespace

bool has_segment(Oid schema, Oid sequence) { return find_segment_row(schema, sequence, ignore_row, nullptr); }

SegmentSteps read_segment_steps(Oid schema, Oid sequence) {
    SegmentSteps steps = {0, 0};
    find_segment_row(schema, sequence, copy_segment_steps, &steps);
    return steps;
}

} // namespace uidgen::pg
