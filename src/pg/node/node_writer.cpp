#include <unistd.h>

#include "worker_node.hpp"
#include "config/rows.hpp"
#include "memory/generator_state.hpp"

namespace uidgen::pg {
namespace {

// DROP DATABASE and CREATE DATABASE wait five seconds for connections to end.
constexpr int64_t longest_run_us = 2 * us_per_second;

constexpr int64_t longest_nap_us = 10 * us_per_second;

// When all rows are written, it waits for so long, so that first draws that follow one another have their rows written
// together, and by few processes.
constexpr int64_t collect_us = 100 * us_per_ms;

// How old `modified` may be while the generator is in use.
constexpr int64_t refresh_us = 3600 * us_per_second;

// A row that could not be written is tried again after this time, or after a quarter of the time for which it is owed.
// If that is longer, it waits for the next use of the generator.
constexpr int64_t retry_us = 5 * us_per_second;
constexpr int64_t longest_retry_us = 1800 * us_per_second;

// How many rows are written in a transaction: more after each success, and one after a failure, so that a row that
// cannot be written does not keep back others.
constexpr int most_rows = 512;

// The nodes that this transaction has used, and whose rows are due but not owed yet. In the memory of the transaction.
List *used = NIL;
bool is_wanted = false; // the writer

// ---------------------------------------------------------------------------------------------------------
// In the writer.
// ---------------------------------------------------------------------------------------------------------

struct DueRow {
    Slot *slot;
    NodeDraw *draw;
    Oid generator;
    int64_t drawn_id;
    int64_t drawn_at_us;
    TimestampTz used_at;
    core::NodeFields node;
    core::Layout layout;
    int64_t id; // of the row: that of the draw, or of a repeated one; 0: it is not written
};

// Calls visit(slot, draw), under the state's lock, for each node whose row is owed. A slot that was reset or freed owes
// none.
template <typename Visit> void for_each_owed(Visit visit) EXCLUDES(state_lock) {
    for (Slot *slot = first_slot(SlotKind::generator); slot != nullptr; slot = next_slot(slot))
        for (NodeDraw *draw = first_node_draw(slot); draw != nullptr; draw = next_node_draw(draw)) {
            if (likely(draw->row_owed.load(std::memory_order_relaxed) == 0))
                continue;
            lock_state();
            if (is_ready_under_state(slot) && draw->row_owed.load(std::memory_order_relaxed) != 0 &&
                draw->row.load(std::memory_order_relaxed) > 0)
                visit(slot, draw);
            unlock_state();
        }
}

// Whether any slot owes a row of worker_node, of whichever database, by for_each_owed().
bool any_owed() EXCLUDES(state_lock) {
    bool any = false;
    for_each_owed([&any](const Slot *, const NodeDraw *) { any = true; });
    return any;
}

// By for_each_owed(): no row of that database is owed any more, until a generator there is used again.
void forget_rows_of(Oid database) EXCLUDES(state_lock) {
    for_each_owed([database](const Slot *slot, NodeDraw *draw) REQUIRES(state_lock) {
        if (key_under_state(slot).database == database)
            draw->row_owed.store(0, std::memory_order_relaxed);
    });
}

// The database of the row that is owed since longest, by for_each_owed(). Waits if all are put off, under no lock.
// Resigns and ends the process if none is owed (worker_resigns()).
Oid wait_for_database() EXCLUDES(page_lock, table_lock, slot_lock, state_lock) {
    for (;;) {
        Oid database = InvalidOid;
        TimestampTz since = DT_NOEND;
        int64_t wait_us = PG_INT64_MAX;
        for_each_owed([&, now_us = monotonic_us()](const Slot *slot, const NodeDraw *draw) REQUIRES(state_lock) {
            const TimestampTz owed = draw->row_owed.load(std::memory_order_relaxed);
            wait_us = Min(wait_us, draw->retry_at_us - now_us);
            if (draw->retry_at_us <= now_us && owed < since) {
                since = owed;
                database = key_under_state(slot).database;
            }
        });
        if (OidIsValid(database))
            return database;
        if (wait_us < PG_INT64_MAX)
            sleep_for(Min(wait_us, longest_nap_us), wait_event("UidgenNodeWriter"));
        else if (worker_resigns(SingleWorker::node_writer, any_owed))
            proc_exit(0);
    }
}

// Copies, by for_each_owed(), what slots of this database owe, and returns how many rows. Those of a former database
// with the same oid are forgotten.
int collect_due_rows(DueRow *rows, int most) EXCLUDES(state_lock) {
    int count = 0;
    for_each_owed([&, now_us = monotonic_us()](Slot *slot, NodeDraw *draw) REQUIRES(state_lock) {
        const SlotKey &key = key_under_state(slot);
        if (key.database != MyDatabaseId)
            return;
        if (!is_of_this_database(key))
            draw->row_owed.store(0, std::memory_order_relaxed);
        else if (count < most && draw->retry_at_us <= now_us)
            rows[count++] = {.slot = slot,
                             .draw = draw,
                             .generator = key.sequence,
                             .drawn_id = draw->row.load(std::memory_order_relaxed),
                             .drawn_at_us = draw->at_us,
                             .used_at = draw->row_owed.load(std::memory_order_relaxed),
                             .node = core::fields_of_node(draw->layout, draw->node.value),
                             .layout = draw->layout,
                             .id = 0};
    });
    return count;
}

// The row is tried again later, or, if it is owed for long, at the next use of its node: changes what is in shared
// memory of it. Relaxed: the values stand alone, and the fields that they refer to are read under a lock.
void put_row_off(NodeDraw *draw) REQUIRES(state_lock) {
    const TimestampTz now = GetCurrentTimestamp();
    const int64_t wait_us = Max(retry_us, (now - draw->row_owed.load(std::memory_order_relaxed)) / 4);
    draw->retry_at_us = monotonic_us() + wait_us;
    draw->row_due.store(now + wait_us, std::memory_order_relaxed);
    if (wait_us > longest_retry_us)
        draw->row_owed.store(0, std::memory_order_relaxed);
}

// Notes under the state's lock that the row is written, or puts it off. Does nothing if there was another draw
// meanwhile.
void note_row_result(const DueRow &row) EXCLUDES(state_lock) {
    lock_state();
    const bool is_same = same_key(key_under_state(row.slot), slot_key(row.generator)) &&
                         row.draw->row.load(std::memory_order_relaxed) == row.drawn_id;
    if (is_same && row.id == 0)
        put_row_off(row.draw);
    if (is_same && row.id != 0) {
        row.draw->row.store(row.id, std::memory_order_relaxed);
        row.draw->row_due.store(row.used_at + refresh_us, std::memory_order_relaxed);
        row.draw->row_owed.store(0, std::memory_order_relaxed);
        row.draw->retry_at_us = 0;
    }
    unlock_state();
}

// By files of the system and the environment.
bool is_in_container() {
    return access("/.dockerenv", F_OK) == 0 || access("/run/.containerenv", F_OK) == 0 ||
           getenv("KUBERNETES_SERVICE_HOST") != nullptr;
}

// Writes the row with that id, by a statement as the table's owner, after is_in_container(). It names a function in
// uid_internal and no table, so it needs no hold_names(). False: another row has it.
bool insert_or_refresh(Oid table, const DueRow &row, int64_t id) {
    const ServerAddress address = address_of_server();
    const TimestampTz created = to_timestamptz(row.drawn_at_us);
    return execute_as(owner_of(table),
                      "SELECT FROM uid_internal.uid_write_node($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, "
                      "$14, $15, $16)",
                      {{INT8OID, Int64GetDatum(id)},
                       {TEXTOID, CStringGetTextDatum(address.host)},
                       {TEXTOID, CStringGetTextDatum(address.port)},
                       {INT4OID, Int32GetDatum(is_in_container() ? 1 : 2)},
                       {DATEOID, DirectFunctionCall1(timestamptz_date, TimestampTzGetDatum(PgStartTime))},
                       {TIMESTAMPTZOID, TimestampTzGetDatum(Max(created, row.used_at))},
                       {TIMESTAMPTZOID, TimestampTzGetDatum(created)},
                       {TEXTOID, CStringGetTextDatum(stored_name(row.generator))},
                       {OIDOID, ObjectIdGetDatum(row.generator)},
                       {INT4OID, Int32GetDatum(static_cast<int32>(row.node.worker))},
                       {INT4OID, Int32GetDatum(static_cast<int32>(row.node.datacenter))},
                       {INT8OID, Int64GetDatum(static_cast<int64>(GetSystemIdentifier()))},
                       {INT4OID, Int32GetDatum(static_cast<int32>(GetWALInsertionTimeLine()))},
                       {OIDOID, ObjectIdGetDatum(MyDatabaseId)},
                       {TEXTOID, CStringGetTextDatum(layout_text(row.layout))},
                       {INT8OID, Int64GetDatum(static_cast<int64>(server_state->place))}}) > 0;
}

// Writes the row of worker_node (insert_or_refresh()), and returns its id, which is drawn again (draw_node_id()) if the
// sequence was set back, or if a row was inserted by hand.
int64_t write_node_row(Oid schema, const DueRow &row) EXCLUDES(page_lock, table_lock, slot_lock, state_lock) {
    constexpr int tries = 100;
    const Oid table = required_table(schema, node_table_name);
    int64_t id = row.drawn_id;
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
    return id;
}

// Writes rows of worker_node (write_node_row()), in the caller's transaction. A generator that is not visible has been
// dropped, or its creation is not committed.
void write_node_rows(DueRow *rows, int count) EXCLUDES(page_lock, table_lock, slot_lock, state_lock) {
    const Oid schema = extension_schema();
    PushActiveSnapshot(GetTransactionSnapshot());
    for (DueRow *row = rows; row < rows + count; row++)
        if (OidIsValid(schema) && get_rel_name(row->generator) != nullptr)
            row->id = write_node_row(schema, *row);
    PopActiveSnapshot();
}

// Writes all in one transaction of its own (write_node_rows()), or none. The failure of one row is logged.
bool try_node_rows(DueRow *rows, int count) EXCLUDES(page_lock, table_lock, slot_lock, state_lock) {
    MemoryContext context = CurrentMemoryContext;
    volatile bool done = false;
    PG_TRY();
    {
        StartTransactionCommand();
        write_node_rows(rows, count);
        CommitTransactionCommand();
        done = true;
    }
    PG_CATCH();
    {
        MemoryContextSwitchTo(context);
        ErrorData *error = CopyErrorData();
        FlushErrorState();
        AbortCurrentTransaction();
        rows->id = 0;
        error->elevel = LOG;
        error->message = psprintf("could not write the row of worker_node: %s", error->message);
        error->detail = pstrdup("Ids do not depend on the row. It is tried again later.");
        if (count == 1)
            ThrowErrorData(error);
    }
    PG_END_TRY();
    MemoryContextSwitchTo(context);
    return done;
}

// Sleeps for collect_us, all of it: a session that wakes the writer does not shorten it.
void wait_for_more() EXCLUDES(page_lock, table_lock, slot_lock, state_lock) {
    const int64_t end_us = monotonic_us() + collect_us;
    for (int64_t left_us = collect_us; left_us > 0; left_us = end_us - monotonic_us())
        sleep_for(left_us, wait_event("UidgenNodeWriter"));
}

// Writes the rows of worker_node that slots of this database owe (try_node_rows()), and notes it there, under the
// state's lock, until none is due any more, or the time is over. If it has written none, all are put off. Sleeps
// between two transactions (wait_for_more()).
void write_due_rows(int64_t until_us) EXCLUDES(page_lock, table_lock, slot_lock, state_lock) {
    auto *rows = static_cast<DueRow *>(palloc(sizeof(DueRow) * most_rows));
    bool any = false;
    bool is_last = false; // fewer rows were due than could have been written
    for (int most = 1; monotonic_us() < until_us;) {
        if (is_last)
            wait_for_more();
        const int count = collect_due_rows(rows, most);
        if (count == 0 && is_last)
            return;
        is_last = count < most;
        const bool done = count > 0 && try_node_rows(rows, count);
        for (int i = 0; i < count && (done || count == 1); i++)
            note_row_result(rows[i]);
        any = any || done;
        most = done ? Min(2 * most, most_rows) : 1;
    }
    if (!any) // other databases have their turn
        for_each_owed([](const Slot *slot, NodeDraw *draw) REQUIRES(state_lock) {
            if (key_under_state(slot).database == MyDatabaseId)
                put_row_off(draw);
        });
}

// Overrides, in this process, settings that the database or its owner has made for other sessions. A commit is flushed
// here, so that the row survives a crash as the ids do. It does not wait for a standby. A timeout of transactions would
// end it again and again, in the same database, while the rows of all others wait.
void override_settings() {
    const char *const own[][2] = {
        {"default_transaction_read_only", "off"},
        {"default_transaction_isolation", "read committed"},
        {"default_transaction_deferrable", "off"},
        {"synchronous_commit", "local"},
        {"lock_timeout", "1s"},
        {"transaction_timeout", "0"}, // since PostgreSQL 17
    };
    for (const auto &setting : own)
        if (GetConfigOption(setting[0], true, false) != nullptr)
            SetConfigOption(setting[0], setting[1], PGC_SUSET, PGC_S_OVERRIDE);
}

// Overrides settings, and connects the writer to the database that slots owe a row for longest, for which it may wait
// (wait_for_database()). Meanwhile the server state names it, without a lock, because there is one writer. If one is
// named there before, the process that tried it has ended: its rows are left to a later use of them (forget_rows_of()).
void connect_to_database() EXCLUDES(page_lock, table_lock, slot_lock, state_lock) {
    Oid &connects_to = server_state->writer_connects_to;
    forget_rows_of(connects_to);
    connects_to = InvalidOid;
    connects_to = wait_for_database();
    override_settings();
    BackgroundWorkerInitializeConnectionByOid(connects_to, InvalidOid, 0);
    connects_to = InvalidOid;
}

} // namespace

// A time further ahead than any that is ever set comes from before the clock went back. An error leaves the row to the
// next use.
void note_node_in_use(NodeDraw *draw) {
    const TimestampTz now = GetCurrentTransactionStartTimestamp();
    const int64_t due = draw->row_due.load(std::memory_order_relaxed);
    if (likely(due > now && due <= now + refresh_us))
        return;
    is_wanted = true;
    if (draw->row_owed.load(std::memory_order_relaxed) != 0)
        return;
    MemoryContext caller = MemoryContextSwitchTo(TopTransactionContext);
    used = list_append_unique_ptr(used, draw);
    MemoryContextSwitchTo(caller);
}

// At the end of a transaction nothing may fail. The writer is woken also for rows that were owed before: it may have
// found no place.
void node_writer_transaction_ended() {
    if (likely(!is_wanted))
        return;
    is_wanted = false;
    const TimestampTz now = GetCurrentTimestamp();
    for (int i = 0; i < list_length(used); i++) {
        int64_t none = 0;
        static_cast<NodeDraw *>(list_nth(used, i))
            ->row_owed.compare_exchange_strong(none, now, std::memory_order_relaxed);
    }
    used = NIL;
    (void)wake_worker(SingleWorker::node_writer);
}

// The process of the node writer: begin_as_worker(), connect_to_database(), write_due_rows(), then worker_resigns(). If
// rows are left, the next process goes on (worker_hands_over()), or the postmaster starts this one again.
UIDGEN_WORKER_MAIN(uidgen_node_writer_main) {
    pqsignal(SIGTERM, die);
    begin_as_worker(SingleWorker::node_writer);
    if (!attach_area())
        proc_exit(0);
    connect_to_database();
    // One timeout for all rows from here on. It cancels the command that is running then, and none begins later.
    const int64_t until_us = monotonic_us() + longest_run_us - 2 * collect_us;
    enable_timeout_after(STATEMENT_TIMEOUT, static_cast<int>(longest_run_us / us_per_ms));
    pgstat_report_activity(STATE_RUNNING, "writing rows of worker_node");
    write_due_rows(until_us);
    const bool resigned = worker_resigns(SingleWorker::node_writer, any_owed);
    proc_exit(resigned || worker_hands_over(SingleWorker::node_writer) ? 0 : 1);
}

} // namespace uidgen::pg
