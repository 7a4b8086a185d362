#include "worker_node.hpp"

#include <unistd.h>

#include "config/rows.hpp"
#include "base/errors.hpp"
#include "memory/server_state.hpp"
#include "config/extension.hpp"
#include "base/settings.hpp"
#include "base/time_source.hpp"

namespace uidgen::pg {
namespace {

// ---------------------------------------------------------------------------------------------------------
// In the sessions: which rows are due, and when to start the writer.
// ---------------------------------------------------------------------------------------------------------

// How old `modified` may be while the generator is in use.
constexpr int64_t refresh_us = 3600 * us_per_second;

// For how long after it was claimed no other session starts the writer for the same row. Longer than the writer lives.
constexpr int64_t pause_us = 5 * us_per_second;

// Whether this transaction has used a generator whose row it has claimed.
bool is_wanted = false;

// A time further ahead than any that is ever set comes from before the clock went back. Relaxed: the value stands
// alone, and the fields that it refers to are read under a lock.
bool is_due(int64_t due, TimestampTz now) { return due <= now || due > now + refresh_us; }

// The writer's argument.
struct Argument {
    Oid database;
    TimestampTz now; // by the clock of the transaction that ended
};
static_assert(sizeof(Argument) <= BGW_EXTRALEN, "it goes with the background worker's entry");

// ---------------------------------------------------------------------------------------------------------
// In the writer.
// ---------------------------------------------------------------------------------------------------------

// DROP DATABASE and CREATE DATABASE wait five seconds for connections to end.
constexpr int64_t longest_run_us = 2 * us_per_second;

struct DueRow {
    Slot *slot;
    Oid generator;
    int64_t draw;
    int64_t drawn_at_us;
    core::NodeFields node;
    core::Layout layout;
};

Argument argument = {};

// What the slot owes. The draw's fields change under the state's lock.
bool is_owed(Slot *slot, DueRow *row) {
    GeneratorState &generator = slot->generator;
    lock_state(LW_SHARED);
    const int64_t draw = generator.worker_draw.load(std::memory_order_relaxed);
    const bool owed = slot->phase == SlotPhase::ready && is_of_this_database(slot->key) && draw > 0 &&
                      generator.row_owed.load(std::memory_order_relaxed);
    if (owed)
        *row = {slot,
                slot->key.sequence,
                draw,
                generator.drawn_at_us,
                core::fields_of_node(generator.config.layout, generator.drawn_node),
                generator.config.layout};
    unlock_state();
    return owed;
}

// With the result of write_row(). Does nothing if there was another draw meanwhile.
void note_result(const DueRow &row, int64_t id) {
    GeneratorState &generator = row.slot->generator;
    const bool is_written = id != 0;
    int64_t draw = row.draw;
    lock_state(LW_EXCLUSIVE);
    if (same_key(row.slot->key, slot_key(row.generator)) &&
        generator.worker_draw.compare_exchange_strong(draw, is_written ? id : draw, std::memory_order_relaxed)) {
        generator.row_owed.store(!is_written, std::memory_order_relaxed);
        generator.row_due.store(is_written ? argument.now + refresh_us : 0, std::memory_order_relaxed);
    }
    unlock_state();
}

bool is_in_container() {
    return access("/.dockerenv", F_OK) == 0 || access("/run/.containerenv", F_OK) == 0 ||
           getenv("KUBERNETES_SERVICE_HOST") != nullptr;
}

// Whether the row exists now. False: another row has that id.
bool insert_or_refresh(Oid table, const DueRow &row, int64_t id) {
    const ServerAddress address = address_of_server();
    const TimestampTz created = to_timestamptz(row.drawn_at_us);
    Oid types[] = {INT8OID, TEXTOID, TEXTOID, INT4OID, DATEOID, TIMESTAMPTZOID, TIMESTAMPTZOID, TEXTOID,
                   INT4OID, INT4OID, INT8OID, INT4OID, OIDOID,  TEXTOID,        INT8OID};
    Datum values[] = {
        Int64GetDatum(id),
        CStringGetTextDatum(address.host),
        CStringGetTextDatum(address.port),
        Int32GetDatum(is_in_container() ? 1 : 2),
        DirectFunctionCall1(timestamptz_date, TimestampTzGetDatum(PgStartTime)),
        TimestampTzGetDatum(Max(argument.now, created)),
        TimestampTzGetDatum(created),
        CStringGetTextDatum(qualified_name(row.generator)),
        Int32GetDatum(static_cast<int32>(row.node.worker)),
        Int32GetDatum(static_cast<int32>(row.node.datacenter)),
        Int64GetDatum(static_cast<int64>(GetSystemIdentifier())),
        Int32GetDatum(static_cast<int32>(GetWALInsertionTimeLine())),
        ObjectIdGetDatum(MyDatabaseId),
        CStringGetTextDatum(layout_text(row.layout)),
        Int64GetDatum(static_cast<int64>(server_state->place)),
    };
    const char *statement =
        "INSERT INTO %1$s AS node (id, host_name, port, type, launch_date, modified, created, generator, worker_id, "
        "datacenter_id, system_identifier, timeline, database, layout, place) "
        "VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15) "
        "ON CONFLICT (system_identifier, id) DO UPDATE SET modified = EXCLUDED.modified "
        "WHERE node.created OPERATOR(pg_catalog.=) EXCLUDED.created";
    return write_as_owner(table, statement, lengthof(types), types, values) > 0;
}

// In a transaction. Another row has the id if the sequence was set back, or if that row was inserted by hand. One
// writer at a time, and its snapshot is from after the lock, so it sees what the writer before it has written. Returns
// the id, that of the draw or of a repeated one; 0: the generator is not visible yet.
int64_t write_row(const DueRow &row, Oid schema) {
    constexpr int tries = 100;
    int64_t id = row.draw;
    if (get_rel_name(row.generator) == nullptr)
        return 0;
    const Oid table = required_table(schema, node_table_name);
    LockRelationOid(table, ShareUpdateExclusiveLock);
    PushActiveSnapshot(GetTransactionSnapshot());
    for (int i = 0; !insert_or_refresh(table, row, id); i++) {
        if (i == tries)
            ereport(ERROR, (errcode(ERRCODE_UNIQUE_VIOLATION),
                            errmsg("could not insert any of the last %d ids into worker_node", tries),
                            errdetail("The ids were in use already, or a trigger did not return NEW."),
                            errhint("Run SELECT setval('worker_node_id_seq', max(id)) FROM worker_node, or correct the "
                                    "trigger.")));
        CHECK_FOR_INTERRUPTS();
        id = draw_node_id(schema);
    }
    PopActiveSnapshot();
    return id;
}

// Each row in its own transaction, so that one that cannot be written does not affect the others.
void try_row(const DueRow &row) {
    MemoryContext context = CurrentMemoryContext;
    PG_TRY();
    {
        StartTransactionCommand();
        const int64_t id = write_row(row, extension_schema());
        CommitTransactionCommand();
        note_result(row, id);
    }
    PG_CATCH();
    {
        MemoryContextSwitchTo(context);
        ErrorData *error = CopyErrorData();
        FlushErrorState();
        AbortCurrentTransaction();
        error->elevel = LOG;
        error->message = psprintf("could not write the row of worker_node: %s", error->message);
        error->detail = pstrdup("Ids do not depend on the row. A later transaction that uses the generator retries.");
        ThrowErrorData(error);
    }
    PG_END_TRY();
    MemoryContextSwitchTo(context);
}

void write_due_rows(int64_t until_us) {
    DueRow row;
    for (Slot *slot = first_slot(SlotKind::generator); slot != nullptr && monotonic_us() < until_us;
         slot = next_slot(slot))
        if (is_owed(slot, &row))
            try_row(row);
}

// Overrides settings that the database or its owner has made for other sessions. A commit is flushed here, so that the
// row survives a crash as the ids do. It does not wait for a standby.
void set_up() {
    const char *const own[][2] = {
        {"default_transaction_read_only", "off"},
        {"default_transaction_isolation", "read committed"},
        {"default_transaction_deferrable", "off"},
        {"synchronous_commit", "local"},
        {"lock_timeout", "1s"},
    };
    for (const auto &setting : own)
        SetConfigOption(setting[0], setting[1], PGC_SUSET, PGC_S_OVERRIDE);
}

} // namespace

void note_generator_in_use(Slot *slot) {
    GeneratorState &generator = slot->generator;
    const TimestampTz now = GetCurrentTransactionStartTimestamp();
    int64_t due = generator.row_due.load(std::memory_order_relaxed);
    if (likely(!is_due(due, now)) || generator.worker_draw.load(std::memory_order_relaxed) == 0 ||
        !generator.row_due.compare_exchange_strong(due, now + pause_us, std::memory_order_relaxed))
        return;
    generator.row_owed.store(true, std::memory_order_relaxed); // also for a row that only needs a refresh
    is_wanted = true;
}

// At the end of a transaction nothing may fail. If there is no place for the writer, a later transaction starts it.
void node_writer_transaction_ended() {
    if (is_wanted) {
        const Argument started = {MyDatabaseId, GetCurrentTimestamp()};
        (void)start_worker("uidgen node writer", "uidgen_node_writer_main", BGWORKER_BACKEND_DATABASE_CONNECTION,
                           &started, sizeof(started));
    }
    is_wanted = false;
}

} // namespace uidgen::pg

using namespace uidgen::pg;

extern "C" {

PGDLLEXPORT void uidgen_node_writer_main(Datum argument);

void uidgen_node_writer_main(Datum) {
    memcpy(&argument, MyBgworkerEntry->bgw_extra, sizeof(argument));
    pqsignal(SIGTERM, die);
    BackgroundWorkerUnblockSignals();
    set_up();
    BackgroundWorkerInitializeConnectionByOid(argument.database, InvalidOid, 0);
    // One timeout for all rows from here on. It cancels the command that is running then, and none begins later.
    const int64_t until_us = monotonic_us() + longest_run_us;
    enable_timeout_after(STATEMENT_TIMEOUT, static_cast<int>(longest_run_us / us_per_ms));
    pgstat_report_activity(STATE_RUNNING, "writing rows of worker_node");
    if (attach_area())
        write_due_rows(until_us);
    proc_exit(0);
}
}
