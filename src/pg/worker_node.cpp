#include "worker_node.hpp"

#include <unistd.h>

#include "config_table.hpp"
#include "errors.hpp"
#include "owner_rights.hpp"
#include "reserve.hpp"
#include "settings.hpp"
#include "time_source.hpp"

namespace uidgen::pg {
namespace {

constexpr char table_name[] = "worker_node";
constexpr char identity_name[] = "worker_node_id_seq";

enum NodeType : int32 { container = 1, actual = 2 };

// The generators whose row this transaction shall write, in TopTransactionContext.
struct Wanted {
    Slot *slot;
    uint64_t tenancy; // an altered generator leaves its slot in mid-transaction
    Oid function;
    bool claimed;
};
List *wanted = NIL;

NodeType node_type() {
    const bool contained = access("/.dockerenv", F_OK) == 0 || access("/run/.containerenv", F_OK) == 0 ||
                           getenv("KUBERNETES_SERVICE_HOST") != nullptr;
    return contained ? container : actual;
}

// The next value of the identity sequence. Its lock is released at once: the draw is nobody's transaction.
int64_t draw_from_identity(Oid schema) {
    const Oid sequence = extension_table(schema, identity_name);
    if (!OidIsValid(sequence))
        ereport(ERROR, (errcode(ERRCODE_UNDEFINED_TABLE), errmsg("sequence \"%s\" does not exist", identity_name),
                        errhint("Run DROP EXTENSION uidgen and CREATE EXTENSION uidgen.")));
    Relation rel = relation_open(sequence, RowExclusiveLock);
    const core::SequenceRule rule = {1, 1, PG_INT64_MAX, true};
    SequencePage page = lock_page_for_writing(rel);
    const core::PlannedRange draw = core::plan_range(read_page(page).counter, rule, 1);
    write_page(&page, draw.last);
    unlock_page(&page);
    relation_close(rel, RowExclusiveLock);
    return draw.first;
}

bool still_holds_slot(const Wanted &row) { return row.slot->tenancy.load(std::memory_order_acquire) == row.tenancy; }

bool is_wanted(const Slot *slot) {
    ListCell *cell;
    foreach (cell, wanted) {
        const auto *row = static_cast<const Wanted *>(lfirst(cell));
        if (row->slot == slot && still_holds_slot(*row))
            return true;
    }
    return false;
}

Datum text_datum(const char *value) { return CStringGetTextDatum(value); }

struct Address {
    char host[NI_MAXHOST];
    const char *port;
};

Address address_of_server() {
    Address address = {};
    gethostname(address.host, sizeof(address.host) - 1);
    address.host[64] = '\0'; // as wide as the column
    address.port = psprintf("%d", PostPortNumber);
    return address;
}

// The columns of worker_node that tell whose row it is, as the install script makes them.
enum NodeColumn : AttrNumber { node_id = 1, node_host_name, node_port, node_generator = 8, node_worker_id };

bool is_text(HeapTuple tuple, TupleDesc desc, AttrNumber column, const char *expected) {
    bool is_null = false;
    const Datum value = heap_getattr(tuple, column, desc, &is_null);
    return !is_null && strcmp(TextDatumGetCString(value), expected) == 0;
}

// The worker id of the generator's latest row from this host and port; no_worker if there is none. Rows may lag or be
// lost: then a number is drawn, as nothing rests on it but that numbers change seldom.
int32_t former_worker_id(Oid schema, Oid generator) {
    const Address address = address_of_server();
    const char *name = qualified_name(generator);
    Relation rel = table_open(required_table(schema, table_name), AccessShareLock);
    const TupleDesc desc = RelationGetDescr(rel);
    SysScanDesc scan = systable_beginscan(rel, InvalidOid, false, nullptr, 0, nullptr);
    int64_t latest = 0;
    int32_t worker_id = no_worker;
    bool is_null = false;
    HeapTuple tuple;
    while (HeapTupleIsValid(tuple = systable_getnext(scan))) {
        const int64_t id = DatumGetInt64(heap_getattr(tuple, node_id, desc, &is_null));
        if (id > latest && is_text(tuple, desc, node_host_name, address.host) &&
            is_text(tuple, desc, node_port, address.port) && is_text(tuple, desc, node_generator, name)) {
            latest = id;
            worker_id = DatumGetInt32(heap_getattr(tuple, node_worker_id, desc, &is_null));
        }
    }
    systable_endscan(scan);
    table_close(rel, AccessShareLock);
    return worker_id;
}

void insert_row(const Wanted &row, Oid table) {
    const GeneratorState &generator = row.slot->generator;
    const Oid sequence = row.slot->key.sequence;
    const Address address = address_of_server();

    Oid types[] = {INT8OID, TEXTOID, TEXTOID,     INT4OID, DATEOID, TIMESTAMPTZOID,
                   TEXTOID, INT4OID, INT4OID, INT8OID, INT4OID};
    Datum values[] = {
        Int64GetDatum(generator.worker_draw),
        text_datum(address.host),
        text_datum(address.port),
        Int32GetDatum(node_type()),
        DirectFunctionCall1(timestamptz_date, TimestampTzGetDatum(PgStartTime)),
        TimestampTzGetDatum(to_timestamptz(generator.drawn_at_us)),
        text_datum(qualified_name(sequence)),
        Int32GetDatum(static_cast<int32>(worker_id_at(generator.config, generator.worker_id.load(std::memory_order_acquire),
                                                      generator.ticks.last()))),
        Int32GetDatum(settings::datacenter_id),
        Int64GetDatum(static_cast<int64>(GetSystemIdentifier())),
        Int32GetDatum(static_cast<int32>(GetWALInsertionTimeLine())),
    };
    const char *query =
        psprintf("INSERT INTO %s (id, host_name, port, type, launch_date, modified, created, generator, worker_id, "
                 "datacenter_id, system_identifier, timeline) "
                 "VALUES ($1, $2, $3, $4, $5, pg_catalog.clock_timestamp(), $6, $7, $8, $9, $10, $11)",
                 qualified_name(table));
    PushActiveSnapshot(GetTransactionSnapshot()); // none is active any more at this point of a commit
    execute_as_owner(table, query, lengthof(types), types, values);
    PopActiveSnapshot();
}

// Whether the row can be written without waiting for anybody: the commit of somebody else's transaction is
// no place to wait. Takes the lock that the insert needs.
bool table_is_free(Oid table) {
    return OidIsValid(table) && get_rel_relkind(table) == RELKIND_RELATION &&
           ConditionalLockRelationOid(table, RowExclusiveLock);
}

// Somebody else's uncommitted row of the same id would be waited for; nobody's commit shall.
constexpr int lock_timeout_ms = 1;

// In a subtransaction of its own, so that whatever goes wrong leaves the caller's transaction as it was.
bool try_insert_row(const Wanted &row, Oid table) {
    MemoryContext context = CurrentMemoryContext;
    ResourceOwner owner = CurrentResourceOwner;
    volatile bool written = false;
    const int callers_timeout = LockTimeout;
    LockTimeout = lock_timeout_ms;
    BeginInternalSubTransaction(nullptr);
    PG_TRY();
    {
        insert_row(row, table);
        ReleaseCurrentSubTransaction();
        written = true;
    }
    PG_CATCH();
    {
        MemoryContextSwitchTo(context);
        ErrorData *error = CopyErrorData();
        FlushErrorState();
        RollbackAndReleaseCurrentSubTransaction(); // also restores the user
        ereport(LOG, (errmsg("could not write the row of worker_node: %s", error->message),
                      errdetail("A later transaction tries again; ids do not depend on it.")));
        FreeErrorData(error);
    }
    PG_END_TRY();
    LockTimeout = callers_timeout;
    MemoryContextSwitchTo(context);
    CurrentResourceOwner = owner;
    return written;
}

bool change_state(Slot *slot, RowState from, RowState to) {
    return slot->generator.row.compare_exchange_strong(from, to, std::memory_order_acq_rel,
                                                       std::memory_order_relaxed);
}

// Somebody has made it impossible, a row of the same id or a trigger: after some tries at once, one a minute.
constexpr uint32_t tries_at_once = 3;
constexpr int64_t retry_after_us = INT64_C(60) * 1000 * 1000;

void note_failure(GeneratorState *generator) {
    if (generator->row_failures.fetch_add(1, std::memory_order_relaxed) + 1 >= tries_at_once)
        generator->row_retry_at.store(GetCurrentTransactionStartTimestamp() + retry_after_us,
                                      std::memory_order_relaxed);
}

void write_row(Wanted *row) {
    if (!still_holds_slot(*row))
        return;
    const Oid table = extension_table(schema_of_function(row->function), table_name);
    if (get_rel_name(row->slot->key.sequence) == nullptr || !table_is_free(table))
        return; // dropped in this transaction; or somebody else's turn
    if (!change_state(row->slot, RowState::due, RowState::claimed))
        return;
    row->claimed = true;
    if (!try_insert_row(*row, table)) {
        note_failure(&row->slot->generator);
        change_state(row->slot, RowState::claimed, RowState::due);
        row->claimed = false;
    }
}

} // namespace

void draw_worker_id(Slot *slot, Oid function) {
    const GeneratorConfig &config = slot->generator.config;
    const int64_t now_us = wall_clock_ns() / ns_per_us;
    const Oid schema = schema_of_function(function);
    const int64_t mask = core::largest(core::drawn_worker_bits(config.layout));
    int32_t former = no_worker;
    if (config.worker_policy == WorkerPolicy::sticky)
        former = former_worker_id(schema, slot->key.sequence);
    // As many draws as there are slots meet every number that a live generator can hold, and one more.
    const int64_t tries = Min(mask + 1, static_cast<int64_t>(settings::max_slots) + 1);
    for (int64_t i = 1;; i++) {
        const int64_t draw = draw_from_identity(schema); // the row's id, whatever the number
        if (config.worker_policy == WorkerPolicy::fixed) {
            slot_set_worker(slot, config.worker_number, draw, now_us, true);
            break;
        }
        if (former != no_worker && former <= mask && slot_set_worker(slot, former, draw, now_us, false))
            break;
        if (slot_set_worker(slot, static_cast<int32_t>(draw & mask), draw, now_us, i >= tries))
            break;
    }
    worker_row_wanted(slot, function);
}

void draw_row_of_term(Slot *slot, Oid function) {
    slot_begin_term(slot, draw_from_identity(schema_of_function(function)), wall_clock_ns() / ns_per_us);
    worker_row_wanted(slot, function);
}

void worker_row_wanted(Slot *slot, Oid function) {
    const GeneratorState &generator = slot->generator;
    if (likely(generator.row.load(std::memory_order_acquire) != RowState::due) || IsParallelWorker() ||
        is_wanted(slot) ||
        generator.row_retry_at.load(std::memory_order_relaxed) > GetCurrentTransactionStartTimestamp())
        return;
    MemoryContext caller = MemoryContextSwitchTo(TopTransactionContext);
    auto *row = static_cast<Wanted *>(palloc(sizeof(Wanted)));
    *row = {slot, slot->tenancy.load(std::memory_order_acquire), function, false};
    wanted = lappend(wanted, row);
    MemoryContextSwitchTo(caller);
}

void worker_rows_before_commit() {
    if (wanted == NIL || XactReadOnly)
        return;
    ListCell *cell;
    foreach (cell, wanted)
        write_row(static_cast<Wanted *>(lfirst(cell)));
}

void worker_rows_after_transaction(bool committed) {
    ListCell *cell;
    foreach (cell, wanted) {
        const auto *row = static_cast<Wanted *>(lfirst(cell));
        if (row->claimed && still_holds_slot(*row))
            change_state(row->slot, RowState::claimed, committed ? RowState::written : RowState::due);
    }
    wanted = NIL; // its memory goes with the transaction
}

} // namespace uidgen::pg
