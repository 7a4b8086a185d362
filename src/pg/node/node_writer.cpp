#include "node_writer.hpp"

#include <unistd.h>

#include "worker_node.hpp"
#include "config/rows.hpp"
#include "base/errors.hpp"
#include "memory/generator_state.hpp"
#include "config/extension.hpp"
#include "base/settings.hpp"
#include "base/time_source.hpp"

namespace uidgen::pg {
namespace {

// ---------------------------------------------------------------------------------------------------------
// The list of the slots whose rows are due. Sessions add to it, and only the writer takes out of it. A slot that is
// freed or reset stays in it, without a row, until the writer comes by.
// ---------------------------------------------------------------------------------------------------------

dsa_pointer &first_owed() REQUIRES_SHARED(state_lock) { return server_state->area.rows_owed; }

bool has_row(const Slot *slot) REQUIRES_SHARED(state_lock) {
    const GeneratorState &generator = generator_of(slot);
    return is_ready_under_state(slot) && generator.worker_draw.load(std::memory_order_relaxed) > 0 &&
           !generator.owed.settled;
}

template <typename Visit> void for_each_owed(Visit visit) {
    lock_state();
    for (auto *slot = in_area<Slot>(first_owed()); slot != nullptr; slot = in_area<Slot>(generator_of(slot).owed.next))
        visit(slot);
    unlock_state();
}

// Release pairs with note_generator_in_use(): from then on the slot is the next session's to add.
template <typename Predicate> void remove_owed(Predicate is_removed) {
    lock_state();
    for (dsa_pointer *link = &first_owed(); DsaPointerIsValid(*link);) {
        auto *slot = in_area<Slot>(*link);
        if (!is_removed(slot)) {
            link = &generator_of(slot).owed.next;
            continue;
        }
        *link = generator_of(slot).owed.next;
        generator_of(slot).owed.listed.store(false, std::memory_order_release);
    }
    unlock_state();
}

// What this transaction adds at its end.
Slot *first_added = nullptr;
Slot *last_added = nullptr;
bool is_wanted = false;

// ---------------------------------------------------------------------------------------------------------
// In the writer.
// ---------------------------------------------------------------------------------------------------------

// DROP DATABASE and CREATE DATABASE wait five seconds for connections to end.
constexpr int64_t longest_run_us = 2 * us_per_second;

constexpr int64_t longest_nap_us = 10 * us_per_second;

// When all rows are written, it waits for so long, so that first draws that follow one another have their rows written
// together, and by few processes.
constexpr int64_t collect_us = 100 * us_per_ms;

// How old `modified` may be while the generator is in use.
constexpr int64_t refresh_us = 3600 * us_per_second;

// A row that could not be written is tried again after this time, or after a quarter of the time for which it is owed.
// If that is longer, it waits for the next use of the generator. After a run that has written nothing all rows of the
// database wait.
constexpr int64_t retry_us = 5 * us_per_second;
constexpr int64_t longest_retry_us = 1800 * us_per_second;
constexpr int64_t pause_us = 2 * us_per_second;

// How many rows are written in a transaction: more after each success, and one after a failure, so that a row that
// cannot be written does not keep back others.
constexpr int most_rows = 512;

struct DueRow {
    Slot *slot;
    Oid generator;
    int64_t draw;
    int64_t drawn_at_us;
    TimestampTz used_at;
    core::NodeFields node;
    core::Layout layout;
    int64_t id; // of the row: that of the draw, or of a repeated one; 0: the generator is not visible yet
};

bool any_owed() {
    lock_state_shared();
    const bool any = DsaPointerIsValid(first_owed());
    unlock_state();
    return any;
}

// The database of the row that is due since longest. If none is, waits.
Oid next_database() {
    for (;;) {
        Oid database = InvalidOid;
        int64_t nap_us = longest_nap_us;
        const int64_t now_us = monotonic_us();
        remove_owed([](const Slot *slot) REQUIRES(state_lock) { return !has_row(slot); });
        for_each_owed([&](const Slot *slot) REQUIRES(state_lock) {
            const int64_t wait_us = generator_of(slot).owed.retry_at_us - now_us;
            if (wait_us <= 0)
                database = key_under_state(slot).database;
            else
                nap_us = Min(nap_us, wait_us);
        });
        if (OidIsValid(database))
            return database;
        if (any_owed())
            sleep_for(nap_us, wait_event("UidgenNodeWriter"));
        else if (worker_may_end(SingleWorker::node_writer, any_owed))
            proc_exit(0);
    }
}

int collect(DueRow *rows, int most) {
    int count = 0;
    const int64_t now_us = monotonic_us();
    for_each_owed([&](Slot *slot) REQUIRES(state_lock) {
        GeneratorState &g = generator_of(slot);
        if (count < most && has_row(slot) && is_of_this_database(key_under_state(slot)) && g.owed.retry_at_us <= now_us)
            rows[count++] = {slot,
                             key_under_state(slot).sequence,
                             g.worker_draw.load(std::memory_order_relaxed),
                             g.drawn_at_us,
                             g.owed.used_at,
                             core::fields_of_node(g.config.layout, g.drawn_node),
                             g.config.layout,
                             0};
    });
    return count;
}

// Relaxed: the value stands alone, and the fields that it refers to are read under a lock.
void put_off(GeneratorState *generator, int64_t now_us) REQUIRES(state_lock) {
    const int64_t wait_us = Max(retry_us, (now_us - generator->owed.listed_at_us) / 4);
    generator->owed.retry_at_us = now_us + wait_us;
    generator->owed.settled = wait_us > longest_retry_us;
    generator->row_due.store(GetCurrentTimestamp() + wait_us, std::memory_order_relaxed);
}

// After a success, or of one row after a failure. Does nothing if there was another draw meanwhile.
void note_result(const DueRow *rows, int count) {
    const int64_t now_us = monotonic_us();
    lock_state();
    for (const DueRow *row = rows; row < rows + count; row++) {
        GeneratorState &generator = generator_of(row->slot);
        int64_t draw = row->draw;
        if (!same_key(key_under_state(row->slot), slot_key(row->generator)) ||
            !generator.worker_draw.compare_exchange_strong(draw, row->id != 0 ? row->id : draw,
                                                           std::memory_order_relaxed))
            continue;
        put_off(&generator, now_us);
        if (row->id == 0)
            continue;
        generator.owed.settled = true;
        generator.row_due.store(row->used_at + refresh_us, std::memory_order_relaxed);
    }
    unlock_state();
    remove_owed([](const Slot *slot) REQUIRES(state_lock) { return !has_row(slot); });
}

bool is_in_container() {
    return access("/.dockerenv", F_OK) == 0 || access("/run/.containerenv", F_OK) == 0 ||
           getenv("KUBERNETES_SERVICE_HOST") != nullptr;
}

Datum array_of(Oid type, Datum *values, int count) {
    int16 length = 0;
    bool by_value = false;
    char align = '\0';
    get_typlenbyvalalign(type, &length, &by_value, &align);
    return PointerGetDatum(construct_array(values, count, type, length, by_value, align));
}

// Writes those that have an id. Returns how many rows exist now. For the others another row has that id.
uint64 insert_or_refresh(Oid table, const DueRow *rows, int count) {
    constexpr int of_row = 7; // columns that differ from row to row
    const ServerAddress address = address_of_server();
    Argument arguments[] = {
        {INT8OID, 0},
        {TIMESTAMPTZOID, 0},
        {TIMESTAMPTZOID, 0},
        {TEXTOID, 0},
        {INT4OID, 0},
        {INT4OID, 0},
        {TEXTOID, 0},
        {TEXTOID, CStringGetTextDatum(address.host)},
        {TEXTOID, CStringGetTextDatum(address.port)},
        {INT4OID, Int32GetDatum(is_in_container() ? 1 : 2)},
        {DATEOID, DirectFunctionCall1(timestamptz_date, TimestampTzGetDatum(PgStartTime))},
        {INT8OID, Int64GetDatum(static_cast<int64>(GetSystemIdentifier()))},
        {INT4OID, Int32GetDatum(static_cast<int32>(GetWALInsertionTimeLine()))},
        {OIDOID, ObjectIdGetDatum(MyDatabaseId)},
        {INT8OID, Int64GetDatum(static_cast<int64>(server_state->place))},
    };
    auto *columns = static_cast<Datum *>(palloc(sizeof(Datum) * static_cast<Size>(of_row * count)));
    int filled = 0;
    for (const DueRow *row = rows; row < rows + count; row++) {
        if (row->id == 0)
            continue;
        const Datum cells[of_row] = {
            Int64GetDatum(row->id),
            TimestampTzGetDatum(to_timestamptz(row->drawn_at_us)),
            TimestampTzGetDatum(row->used_at),
            CStringGetTextDatum(qualified_name(row->generator)),
            Int32GetDatum(static_cast<int32>(row->node.worker)),
            Int32GetDatum(static_cast<int32>(row->node.datacenter)),
            CStringGetTextDatum(layout_text(row->layout)),
        };
        for (int i = 0; i < of_row; i++)
            columns[i * count + filled] = cells[i];
        filled++;
    }
    for (int i = 0; i < of_row; i++) {
        const Oid type = arguments[i].type;
        arguments[i] = {get_array_type(type), array_of(type, columns + i * count, filled)};
    }
    const char *statement =
        "INSERT INTO %1$s AS node (id, host_name, port, type, launch_date, modified, created, generator, worker_id, "
        "datacenter_id, system_identifier, timeline, database, layout, place) "
        "SELECT r.id, $8, $9, $10, $11, GREATEST(r.created, r.used), r.created, r.generator, r.worker, r.datacenter, "
        "$12, $13, $14, r.layout, $15 "
        "FROM unnest($1, $2, $3, $4, $5, $6, $7) "
        "AS r (id, created, used, generator, worker, datacenter, layout) "
        "ON CONFLICT (system_identifier, id) DO UPDATE SET modified = EXCLUDED.modified "
        "WHERE node.created OPERATOR(pg_catalog.=) EXCLUDED.created";
    return write_as_owner(table, statement, arguments, lengthof(arguments));
}

// In a transaction. False: of several rows one has an id that another row has. That of one row is drawn again. So it is
// if the sequence was set back, or if that row was inserted by hand.
bool write_rows(DueRow *rows, int count) {
    constexpr int tries = 100;
    const Oid schema = extension_schema();
    uint64 visible = 0;
    for (DueRow *row = rows; row < rows + count; row++) {
        row->id = OidIsValid(schema) && get_rel_name(row->generator) != nullptr ? row->draw : 0;
        visible += row->id != 0 ? 1 : 0;
    }
    if (visible == 0)
        return true;
    const Oid table = required_table(schema, node_table_name);
    PushActiveSnapshot(GetTransactionSnapshot());
    bool done = insert_or_refresh(table, rows, count) == visible;
    for (int i = 0; !done && count == 1; i++) {
        if (i == tries)
            ereport(ERROR, (errcode(ERRCODE_UNIQUE_VIOLATION),
                            errmsg("could not insert any of the last %d ids into worker_node", tries),
                            errdetail("The ids were in use already, or a trigger did not return NEW."),
                            errhint("Run SELECT setval('worker_node_id_seq', max(id)) FROM worker_node, or correct the "
                                    "trigger.")));
        CHECK_FOR_INTERRUPTS();
        rows->id = draw_node_id(schema);
        done = insert_or_refresh(table, rows, count) > 0;
    }
    PopActiveSnapshot();
    return done;
}

// All in one transaction, or none. The failure of one row alone is logged.
bool try_rows(DueRow *rows, int count) {
    MemoryContext context = CurrentMemoryContext;
    bool done = false;
    PG_TRY();
    {
        StartTransactionCommand();
        done = write_rows(rows, count);
        if (done)
            CommitTransactionCommand();
        else
            AbortCurrentTransaction();
    }
    PG_CATCH();
    {
        MemoryContextSwitchTo(context);
        ErrorData *error = CopyErrorData();
        FlushErrorState();
        AbortCurrentTransaction();
        done = false;
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

// False: there would be too little time left.
bool wait_for_more(int64_t until_us) {
    const int64_t end_us = monotonic_us() + collect_us;
    if (end_us + collect_us >= until_us)
        return false;
    for (int64_t left_us = collect_us; left_us > 0; left_us = end_us - monotonic_us())
        sleep_for(left_us, wait_event("UidgenNodeWriter"));
    return true;
}

void write_due_rows(DueRow *rows, int64_t until_us) {
    bool any = false;
    bool waited = false; // when the list was empty
    for (int most = 1; monotonic_us() < until_us;) {
        const int count = collect(rows, most);
        if (count == 0 && waited)
            return;
        waited = count < most;
        const bool done = count > 0 && try_rows(rows, count);
        any = any || done;
        if (count > 0 && !done)
            rows->id = 0;
        if (done || count == 1)
            note_result(rows, count);
        if (waited && !wait_for_more(until_us))
            return;
        most = done ? Min(2 * most, most_rows) : 1;
    }
    const int64_t now_us = monotonic_us();
    if (!any)
        for_each_owed([now_us](Slot *slot) REQUIRES(state_lock) {
            int64_t &retry_at_us = generator_of(slot).owed.retry_at_us;
            if (key_under_state(slot).database == MyDatabaseId)
                retry_at_us = Max(retry_at_us, now_us + pause_us);
        });
}

// Overrides settings that the database or its owner has made for other sessions. A commit is flushed here, so that the
// row survives a crash as the ids do. It does not wait for a standby. A timeout of transactions would end it again and
// again, in the same database, while the rows of all others wait.
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
    if (GetConfigOption("transaction_timeout", true, false) != nullptr) // PostgreSQL 17
        SetConfigOption("transaction_timeout", "0", PGC_SUSET, PGC_S_OVERRIDE);
}

// A database that cannot be connected to is left to a later transaction in it; the process that tried has ended.
void connect() {
    Oid &connects_to = server_state->writer_connects_to;
    remove_owed([&](const Slot *slot) REQUIRES(state_lock) { return key_under_state(slot).database == connects_to; });
    connects_to = InvalidOid;
    connects_to = next_database();
    set_up();
    BackgroundWorkerInitializeConnectionByOid(connects_to, InvalidOid, 0);
    connects_to = InvalidOid;
    // Of a former database with the same oid.
    remove_owed([](const Slot *slot) REQUIRES(state_lock) {
        return key_under_state(slot).database == MyDatabaseId && !is_of_this_database(key_under_state(slot));
    });
}

} // namespace

// A time further ahead than any that is ever set comes from before the clock went back. Acquire: a slot that the writer
// has removed is this session's.
void note_generator_in_use(Slot *slot) UNCHECKED {
    GeneratorState &generator = generator_of(slot);
    const TimestampTz now = GetCurrentTransactionStartTimestamp();
    const int64_t due = generator.row_due.load(std::memory_order_relaxed);
    if (likely(due > now && due <= now + refresh_us) || generator.worker_draw.load(std::memory_order_relaxed) == 0)
        return;
    is_wanted = true; // also for a row in the list: the writer may have found no place
    if (generator.owed.listed.exchange(true, std::memory_order_acquire))
        return;
    generator.owed.settled = false;
    generator.owed.next = first_added != nullptr ? first_added->self : InvalidDsaPointer;
    generator.owed.used_at = now;
    generator.owed.listed_at_us = monotonic_us();
    generator.owed.retry_at_us = 0;
    first_added = slot;
    if (last_added == nullptr)
        last_added = slot;
}

// At the end of a transaction nothing may fail.
void node_writer_transaction_ended() {
    if (likely(!is_wanted))
        return;
    if (first_added != nullptr) {
        lock_state();
        generator_of(last_added).owed.next = first_owed();
        first_owed() = first_added->self;
        unlock_state();
    }
    first_added = last_added = nullptr;
    is_wanted = false;
    (void)wake_worker(SingleWorker::node_writer);
}

} // namespace uidgen::pg

using namespace uidgen::pg;

extern "C" {

PGDLLEXPORT void uidgen_node_writer_main(Datum argument);

// A process has one database. If rows are left, the next process goes on, or the postmaster starts this one again.
void uidgen_node_writer_main(Datum) {
    pqsignal(SIGTERM, die);
    begin_as_worker(SingleWorker::node_writer);
    if (!attach_area())
        proc_exit(0);
    connect();
    // One timeout for all rows from here on. It cancels the command that is running then, and none begins later.
    const int64_t until_us = monotonic_us() + longest_run_us;
    enable_timeout_after(STATEMENT_TIMEOUT, static_cast<int>(longest_run_us / us_per_ms));
    pgstat_report_activity(STATE_RUNNING, "writing rows of worker_node");
    write_due_rows(static_cast<DueRow *>(palloc(sizeof(DueRow) * most_rows)), until_us);
    const bool may_end = worker_may_end(SingleWorker::node_writer, any_owed);
    proc_exit(may_end || worker_hands_over(SingleWorker::node_writer) ? 0 : 1);
}
}
