// uid_stat_sequences(), uid_stat_totals(): the statistics behind the views uid_stat and uid_stat_server.

#include "base/errors.hpp"
#include "sequence/sequence.hpp"
#include "memory/slots.hpp"
#include "memory/server_state.hpp"

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

// A slot's sequence and counts at one moment. False: it is not of this database.
bool copy_slot(Slot *slot, Oid *sequence, Stats *stats) {
    LWLockAcquire(&slot->lock, LW_SHARED);
    const bool is_ours = slot->phase != SlotPhase::free && is_of_this_database(slot->key);
    if (is_ours) {
        *sequence = slot->key.sequence;
        *stats = slot_counted(slot);
    }
    LWLockRelease(&slot->lock);
    return is_ours;
}

void add_row(ReturnSetInfo *result, Slot *slot) {
    constexpr uint32_t first = 2;
    Oid sequence = InvalidOid;
    Stats stats;
    if (!copy_slot(slot, &sequence, &stats))
        return;
    const Sight sight = sight_of(sequence);
    if (sight == Sight::none)
        return;
    Datum values[first + stat_count] = {};
    bool nulls[first + stat_count] = {};
    values[0] = ObjectIdGetDatum(sequence);
    values[1] = CStringGetTextDatum(slot->kind == SlotKind::generator ? "generator" : "segment");
    fill_stats(stats, &values[first]);
    memset(&nulls[first], sight == Sight::name, stat_count);
    tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
}

void add_rows(ReturnSetInfo *result, SlotKind kind) {
    for (Slot *slot = first_slot(kind); slot != nullptr; slot = next_slot(slot)) {
        add_row(result, slot);
        CHECK_FOR_INTERRUPTS();
    }
}

int32_t slots_of(SlotKind kind) {
    int32_t slots = 0;
    for_each_slot(kind, [&slots](Slot *) { slots++; });
    return slots;
}

void add_server(ReturnSetInfo *result) {
    const auto count_of = [](const std::atomic<uint64_t> &counter) {
        return Int64GetDatum(static_cast<int64_t>(counter.load(std::memory_order_relaxed)));
    };
    Datum values[stat_count + 5] = {};
    bool nulls[lengthof(values)] = {};
    fill_stats(slots_counted(), values);
    values[stat_count] = count_of(server_state->refused_on_standby);
    values[stat_count + 1] = count_of(server_state->clock.jumps);
    values[stat_count + 2] = Int32GetDatum(slots_of(SlotKind::generator));
    values[stat_count + 3] = Int32GetDatum(slots_of(SlotKind::segment));
    values[stat_count + 4] = Float8GetDatum(static_cast<double>(clock_moved_us()) / us_per_ms);
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
    add_rows(reinterpret_cast<ReturnSetInfo *>(fcinfo->resultinfo), SlotKind::generator);
    add_rows(reinterpret_cast<ReturnSetInfo *>(fcinfo->resultinfo), SlotKind::segment);
    return static_cast<Datum>(0);
}

Datum uid_stat_totals(PG_FUNCTION_ARGS) {
    InitMaterializedSRF(fcinfo, 0);
    if (attach_server_state())
        add_server(reinterpret_cast<ReturnSetInfo *>(fcinfo->resultinfo));
    return static_cast<Datum>(0);
}
}
