// uid_stat_sequences(), uid_stat_totals(): the statistics behind the views uid_stat and uid_stat_server.

#include "base/errors.hpp"
#include "base/settings.hpp"
#include "tables/lease_sequence.hpp"
#include "shared/slots.hpp"
#include "shared/statistics.hpp"
#include "shared/trusted_clock.hpp"

namespace uidgen::pg {
namespace {

constexpr bool is_time(uint32_t stat) {
    return stat >= index(Stat::flush_waits) && (stat - index(Stat::flush_waits)) % 2 == 1;
}

// One column for each Stat, in their order. Times are milliseconds, as in PostgreSQL's own views.
void fill_stats(const Stats &stats, Datum *values) {
    for (uint32_t i = 0; i < stat_count; i++)
        values[i] = is_time(i) ? Float8GetDatum(static_cast<double>(stats.values[i]) / us_per_ms)
                               : Int64GetDatum(static_cast<int64_t>(stats.values[i]));
}

// One slot, since it was made.
struct SlotStats {
    Oid sequence;
    SlotKind kind;
    Stats stats;
};

struct Rows {
    SlotStats *rows;
    int used;
    int capacity;
};

void count_slot(Slot *, void *arg) { ++*static_cast<int *>(arg); }

void copy_row(Slot *slot, void *arg) {
    auto *rows = static_cast<Rows *>(arg);
    if (is_of_this_database(slot->key) && rows->used < rows->capacity)
        rows->rows[rows->used++] = {slot->key.sequence, slot->kind, slot_counted(slot)};
}

// Slots of this database. One made between the two visits may be left out.
Rows copy_rows() {
    Rows rows = {};
    slots_visit(count_slot, &rows.capacity);
    rows.rows = static_cast<SlotStats *>(
        MemoryContextAllocHuge(CurrentMemoryContext, sizeof(SlotStats) * static_cast<Size>(rows.capacity + 1)));
    slots_visit(copy_row, &rows);
    return rows;
}

enum class Sight { none, name, all };

// As in pg_sequences: counts reveal how much is drawn. Takes no lock, so that a DROP that another session has not
// committed keeps nobody from looking.
Sight sight_of(Oid sequence) {
    bool is_missing = false;
    const AclResult allowed = pg_class_aclcheck_ext(sequence, GetUserId(), ACL_USAGE | ACL_SELECT, &is_missing);
    if (is_missing)
        return Sight::none;
    const bool may_see = allowed == ACLCHECK_OK || has_privs_of_role(GetUserId(), ROLE_PG_READ_ALL_STATS);
    return may_see ? Sight::all : Sight::name;
}

void add_row(ReturnSetInfo *result, const SlotStats &row) {
    constexpr uint32_t first = 2;
    const Sight sight = sight_of(row.sequence);
    if (sight == Sight::none)
        return;
    Datum values[first + stat_count] = {};
    bool nulls[first + stat_count] = {};
    values[0] = ObjectIdGetDatum(row.sequence);
    values[1] = CStringGetTextDatum(row.kind == SlotKind::generator ? "generator" : "segment");
    fill_stats(row.stats, &values[first]);
    memset(&nulls[first], sight == Sight::name, stat_count);
    tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
}

struct SlotsUsed {
    int all;
    int of_segments;
};

void count_used(Slot *slot, void *arg) {
    auto *used = static_cast<SlotsUsed *>(arg);
    used->all++;
    used->of_segments += slot->kind == SlotKind::segment ? 1 : 0;
}

void add_server(ReturnSetInfo *result) {
    SlotsUsed used = {};
    slots_visit(count_used, &used);
    Datum values[stat_count + server_stat_count + 4] = {};
    bool nulls[lengthof(values)] = {};
    uint32_t column = stat_count;
    fill_stats(slots_counted(), values);
    for (uint32_t i = 0; i < server_stat_count; i++)
        values[column++] = Int64GetDatum(static_cast<int64_t>(counted(static_cast<ServerStat>(i))));
    values[column++] = Int32GetDatum(used.all);
    values[column++] = Int32GetDatum(used.of_segments);
    values[column++] = Int32GetDatum(settings::max_slots);
    values[column++] = Float8GetDatum(static_cast<double>(clock_moved_us()) / us_per_ms);
    tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
}

} // namespace
} // namespace uidgen::pg

using namespace uidgen::pg;

extern "C" {

UIDGEN_SQL_FUNCTION(uid_stat_sequences);
UIDGEN_SQL_FUNCTION(uid_stat_totals);

Datum uid_stat_sequences(PG_FUNCTION_ARGS) {
    InitMaterializedSRF(fcinfo, 0);
    if (!slots_exist())
        return static_cast<Datum>(0);
    const Rows rows = copy_rows();
    for (int i = 0; i < rows.used; i++)
        add_row(reinterpret_cast<ReturnSetInfo *>(fcinfo->resultinfo), rows.rows[i]);
    return static_cast<Datum>(0);
}

Datum uid_stat_totals(PG_FUNCTION_ARGS) {
    InitMaterializedSRF(fcinfo, 0);
    if (slots_exist())
        add_server(reinterpret_cast<ReturnSetInfo *>(fcinfo->resultinfo));
    return static_cast<Datum>(0);
}
}
