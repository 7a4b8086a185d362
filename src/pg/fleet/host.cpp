#include "host.hpp"

namespace uidgen::pg {
namespace {

constexpr char check_registry[] =
    "Check uidgen.registry, that the registry is running, and that its pg_hba.conf admits this server.";

// Closes the connection, and keeps libpq's error, which names host and port.
void fail_host(Host *host, const char *hint) {
    host->error = make_error(PQerrorMessage(host->connection), hint);
    host->error.names_host = true;
    close_host(host);
}

// What an administrator can do about an error of the registry, unless its hint says it.
const char *hint_for(const char *sqlstate, const char *hint) {
    if (strcmp(sqlstate, "42501") == 0) // insufficient_privilege
        return "Run GRANT uid_member TO the role that uidgen.registry names, on the registry.";
    if (strcmp(sqlstate, "25006") == 0) // read_only_sql_transaction
        return "Name the registry's primary in uidgen.registry, too.";
    for (const char *missing : {"3F000", "42883", "42P01"}) // invalid_schema_name, undefined_function, undefined_table
        if (strcmp(sqlstate, missing) == 0)
            return "Correct dbname in uidgen.registry, or run uidgen_registry.sql in that database.";
    return hint != nullptr ? hint : "";
}

// Keeps the error of a statement, and frees the result, which is not the host's any more. The connection is closed if
// it has failed, if the error is libpq's own, or if the server takes no writes any more (read_only_sql_transaction).
void take_error(Host *host, PGresult *result) {
    const char *sqlstate = PQresultErrorField(result, PG_DIAG_SQLSTATE);
    const char *message = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
    const char *detail = PQresultErrorField(result, PG_DIAG_MESSAGE_DETAIL);
    if (sqlstate == nullptr || message == nullptr) {
        fail_host(host, "");
    } else {
        host->error = make_error(detail == nullptr ? message : psprintf("%s: %s", message, detail),
                                 hint_for(sqlstate, PQresultErrorField(result, PG_DIAG_MESSAGE_HINT)));
        host->stage = Stage::idle;
        if (strcmp(sqlstate, "25006") == 0 || PQstatus(host->connection) != CONNECTION_OK)
            close_host(host);
    }
    PQclear(result);
}

// A callback of libpq: keeps the first WARNING, which may come with any result.
void note_notice(void *argument, const PGresult *notice) {
    auto *host = static_cast<Host *>(argument);
    const char *severity = PQresultErrorField(notice, PG_DIAG_SEVERITY_NONLOCALIZED);
    const char *message = PQresultErrorField(notice, PG_DIAG_MESSAGE_PRIMARY);
    const bool is_warning = severity != nullptr && strcmp(severity, "WARNING") == 0;
    if (is_warning && host->warning[0] == '\0')
        strlcpy(host->warning, message != nullptr && message[0] != '\0' ? message : "WARNING", sizeof(host->warning));
}

// Keeps the rows of a call, unless a WARNING says that they may not be durable: then it closes the connection.
void finish_call(Host *host, PGresult *rows) {
    host->stage = Stage::idle;
    if (host->warning[0] == '\0' || fault_is("count_warned")) {
        host->result = rows;
        return;
    }
    PQclear(rows);
    host->error = make_error(psprintf("the registry's answer may not be durable: %s", host->warning),
                             "Check the registry's synchronous standbys.");
    close_host(host);
}

// Takes from libpq what has arrived, without waiting. The first error, or else the last result, is kept: an error may
// follow rows. A server that asks for a COPY has not understood the statement, and waits for ever.
void take_results(Host *host) {
    while (PQisBusy(host->connection) == 0) {
        PGresult *result = PQgetResult(host->connection);
        PGresult *before = host->result;
        if (result == nullptr) {
            host->result = nullptr;
            return PQresultStatus(before) == PGRES_TUPLES_OK ? finish_call(host, before) : take_error(host, before);
        }
        const bool has_failed = before != nullptr && PQresultStatus(before) != PGRES_TUPLES_OK;
        PQclear(has_failed ? result : before);
        host->result = has_failed ? before : result;
        const ExecStatusType status = PQresultStatus(host->result);
        if (status != PGRES_TUPLES_OK && status != PGRES_FATAL_ERROR) {
            host->error = not_a_registry();
            return close_host(host);
        }
    }
}

// Sends the statement on the open connection, or closes that. The result of the one before is gone.
void send_statement(Host *host) {
    const Statement &statement = host->statement;
    PQclear(host->result);
    host->result = nullptr;
    host->warning[0] = '\0';
    host->stage = Stage::calling;
    host->error = {};
    host->events = WL_SOCKET_READABLE | WL_SOCKET_WRITEABLE;
    if (PQsendQueryParams(host->connection, statement.sql, statement.count, statement.types, statement.values, nullptr,
                          nullptr, 0) == 0)
        fail_host(host, "");
}

// Begins to connect, without waiting for the host. A later keyword overrides an earlier one, and the
// connection string stands in the place of the first dbname. target_session_attrs would choose among hosts.
void start_connecting(Host *host) {
    const char *const keywords[] = {
        "fallback_application_name", "dbname", "client_encoding", "host", "hostaddr", "port",
        "target_session_attrs",      nullptr};
    const char *const values[] = {"uidgen registrar", host->conninfo, "UTF8", host->host,
                                  host->address,      host->port,     "any",  nullptr};
    host->error = {};
    host->connection = PQconnectStartParams(keywords, values, 1);
    host->stage = Stage::connecting;
    host->events = WL_SOCKET_WRITEABLE;
    PQsetNoticeReceiver(host->connection, note_notice, host);
    if (PQstatus(host->connection) == CONNECTION_BAD) // also if there is no memory for one
        fail_host(host, check_registry);
}

// Goes on with connecting, without waiting. Once connected, sends the statement; after a failure, closes (fail_host()).
void continue_connecting(Host *host) {
    const PostgresPollingStatusType status = PQconnectPoll(host->connection);
    host->events = status == PGRES_POLLING_READING ? WL_SOCKET_READABLE : WL_SOCKET_WRITEABLE;
    if (status == PGRES_POLLING_FAILED || (status == PGRES_POLLING_OK && PQsetnonblocking(host->connection, 1) != 0))
        fail_host(host, check_registry);
    else if (status == PGRES_POLLING_OK)
        send_statement(host);
}

} // namespace

void close_host(Host *host) {
    PQclear(host->result);
    PQfinish(host->connection);
    host->result = nullptr;
    host->connection = nullptr;
    host->stage = Stage::closed;
}

void time_out_host(Host *host) {
    host->was_given_up = host->was_given_up || host->stage == Stage::calling;
    host->error = make_error("the registry did not answer in time", check_registry);
    close_host(host);
}

void run_on_host(Host *host, const Statement &statement) {
    host->statement = statement;
    if (host->connection == nullptr)
        start_connecting(host);
    else
        send_statement(host);
}

void advance_host(Host *host) {
    if (host->stage == Stage::connecting)
        return continue_connecting(host);
    const int left = PQflush(host->connection);
    host->events = left > 0 ? WL_SOCKET_READABLE | WL_SOCKET_WRITEABLE : WL_SOCKET_READABLE;
    if (left < 0 || PQconsumeInput(host->connection) == 0 ||
        (is_idle(*host) && PQstatus(host->connection) == CONNECTION_BAD))
        fail_host(host, "");
    else if (host->stage == Stage::calling)
        take_results(host);
}

GrantError not_a_registry() {
    return make_error("the registry's answer is not valid", "Check that uidgen.registry names a registry, and that "
                                                            "its uidgen_registry.sql is of this version of uidgen.");
}

} // namespace uidgen::pg
