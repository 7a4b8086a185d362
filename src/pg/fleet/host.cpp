#include "host.hpp"

#include "base/time_source.hpp"

namespace uidgen::pg {
namespace {

// The extension of the registry, and whether it is a standby.
constexpr char look_up[] =
    "SELECT pg_catalog.quote_ident(n.nspname), pg_catalog.pg_is_in_recovery() FROM pg_catalog.pg_extension e "
    "JOIN pg_catalog.pg_namespace n ON n.oid OPERATOR(pg_catalog.=) e.extnamespace "
    "WHERE e.extname OPERATOR(pg_catalog.=) 'uidgen'";

constexpr char check_registry[] =
    "Check uidgen.registry, that the registry is running, and that its pg_hba.conf admits this server.";

void copy_clean(char *into, size_t bytes, const char *text) {
    size_t length = 0;
    for (; *text != '\0' && length + 1 < bytes; text++) {
        const auto byte = static_cast<unsigned char>(*text);
        const bool is_space = byte <= ' ';
        if (is_space && (length == 0 || into[length - 1] == ' '))
            continue;
        into[length++] = is_space ? ' ' : byte > '~' ? '?' : *text;
    }
    while (length > 0 && into[length - 1] == ' ')
        length--;
    into[length] = '\0';
}

// libpq's message names host and port.
void set_connection_error(Host *host, const char *hint) {
    set_error(&host->error, PQerrorMessage(host->connection), hint);
    host->error.names_host = true;
}

// What an administrator can do about an error of the registry. Empty: what its hint says.
const char *hint_for(const char *sqlstate) {
    if (strcmp(sqlstate, "42501") == 0) // insufficient_privilege
        return "Run SELECT uid_fleet_admit('role') on the registry, with the role that uidgen.registry names.";
    if (strcmp(sqlstate, "42883") == 0 || strcmp(sqlstate, "42704") == 0) // undefined_function, undefined_object
        return "Run ALTER EXTENSION uidgen UPDATE on the registry, whose version of uidgen must not be older than this "
               "server's.";
    if (strcmp(sqlstate, "25006") == 0) // read_only_sql_transaction
        return "Name the primary server of the registry in uidgen.registry, or all its servers.";
    return "";
}

void set_statement_error(Host *host) {
    const PGresult *result = host->result;
    const char *sqlstate = PQresultErrorField(result, PG_DIAG_SQLSTATE);
    const char *message = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
    const char *detail = PQresultErrorField(result, PG_DIAG_MESSAGE_DETAIL);
    const char *hint = PQresultErrorField(result, PG_DIAG_MESSAGE_HINT);
    const char *own_hint = hint_for(sqlstate != nullptr ? sqlstate : "");
    if (hint == nullptr || own_hint[0] != '\0')
        hint = own_hint;
    if (message == nullptr)
        set_connection_error(host, hint);
    else if (message[0] == '\0')
        set_not_a_registry(&host->error);
    else
        set_error(&host->error, detail == nullptr ? message : psprintf("%s: %s", message, detail), hint);
}

// A server that is no primary any more must be left.
bool is_about_server(const PGresult *result) {
    const char *sqlstate = PQresultErrorField(result, PG_DIAG_SQLSTATE);
    return sqlstate != nullptr && strcmp(sqlstate, "25006") == 0;
}

void ignore_notice(void *, const PGresult *) {}

void fail(Host *host, const char *message, const char *hint) {
    set_error(&host->error, message, hint);
    close_host(host);
}

void send(Host *host, const char *statement, const char *value) {
    PQclear(host->result);
    host->result = nullptr;
    host->events = WL_SOCKET_READABLE | WL_SOCKET_WRITEABLE;
    if (PQsendQueryParams(host->connection, statement, value != nullptr ? 1 : 0, nullptr, &value, nullptr, nullptr,
                          0) != 0)
        return;
    set_connection_error(host, "");
    close_host(host);
}

// Whether the server may serve as a registry.
void read_extension(Host *host) {
    const PGresult *result = host->result;
    if (PQnfields(result) != 2) {
        set_not_a_registry(&host->error);
        close_host(host);
    } else if (PQntuples(result) != 1) {
        fail(host,
             psprintf("extension \"uidgen\" is not installed in database \"%s\" of the registry",
                      PQdb(host->connection)),
             "Run CREATE EXTENSION uidgen there, or correct dbname in uidgen.registry.");
    } else if (strcmp(PQgetvalue(result, 0, 1), "t") == 0) {
        fail(host, "the server that uidgen.registry names is a standby",
             "Name the primary server of the registry in uidgen.registry, or all its servers.");
    } else {
        strlcpy(host->schema, PQgetvalue(result, 0, 0), sizeof(host->schema));
        send_call(host);
    }
}

// All results of a statement have arrived.
void finish_statement(Host *host) {
    if (PQresultStatus(host->result) != PGRES_TUPLES_OK) {
        set_statement_error(host);
        if (host->stage == Stage::looking_up || PQstatus(host->connection) != CONNECTION_OK ||
            is_about_server(host->result))
            close_host(host);
        else
            host->stage = Stage::idle;
    } else if (host->stage == Stage::looking_up) {
        read_extension(host);
    } else {
        host->error = {};
        host->stage = Stage::idle;
    }
}

// A server that asks for a COPY has not understood the statement, and waits for ever.
bool begins_copy(const PGresult *result) {
    const ExecStatusType status = PQresultStatus(result);
    return status == PGRES_COPY_IN || status == PGRES_COPY_OUT || status == PGRES_COPY_BOTH;
}

// The first error, or else the last result, is kept: an error may follow rows.
void read_results(Host *host) {
    while (PQisBusy(host->connection) == 0) {
        PGresult *result = PQgetResult(host->connection);
        if (result == nullptr) {
            finish_statement(host);
            return;
        }
        if (begins_copy(result)) {
            PQclear(result);
            set_not_a_registry(&host->error);
            close_host(host);
            return;
        }
        const bool has_failed = host->result != nullptr && PQresultStatus(host->result) != PGRES_TUPLES_OK;
        PQclear(has_failed ? result : host->result);
        host->result = has_failed ? host->result : result;
    }
}

void connect_on(Host *host) {
    const PostgresPollingStatusType status = PQconnectPoll(host->connection);
    host->events = status == PGRES_POLLING_READING ? WL_SOCKET_READABLE : WL_SOCKET_WRITEABLE;
    if (status == PGRES_POLLING_FAILED || PQstatus(host->connection) == CONNECTION_BAD ||
        (status == PGRES_POLLING_OK && PQsetnonblocking(host->connection, 1) != 0)) {
        set_connection_error(host, check_registry);
        close_host(host);
    } else if (status == PGRES_POLLING_OK) {
        host->stage = Stage::looking_up;
        send(host, look_up, nullptr);
    }
}

} // namespace

void close_host(Host *host) {
    PQclear(host->result);
    PQfinish(host->connection);
    host->result = nullptr;
    host->connection = nullptr;
    host->stage = Stage::closed;
}

void time_out(Host *host) {
    if (host->stage == Stage::connecting)
        fail(host, "connection to the registry timed out", check_registry);
    else
        fail(host, "the registry did not answer in time", "");
}

void send_call(Host *host) {
    host->stage = Stage::calling;
    send(host,
         psprintf("CALL %1$s.uid_fleet_call(pg_catalog.jsonb_populate_record(NULL::%1$s.uid_fleet_request, $1))",
                  host->schema),
         host->call);
}

// Whatever can be done without waiting.
void advance(Host *host) {
    if (host->stage == Stage::connecting) {
        connect_on(host);
        return;
    }
    const int left = PQflush(host->connection);
    host->events = left > 0 ? WL_SOCKET_READABLE | WL_SOCKET_WRITEABLE : WL_SOCKET_READABLE;
    if (left < 0 || PQconsumeInput(host->connection) == 0) {
        set_connection_error(host, "");
        close_host(host);
        return;
    }
    read_results(host);
}

void start_connecting(Host *host, const char *const *keywords, const char *const *values) {
    host->error = {};
    host->connection = PQconnectStartParams(keywords, values, 1);
    host->stage = Stage::connecting;
    host->events = WL_SOCKET_WRITEABLE;
    if (host->connection == nullptr) {
        fail(host, "out of memory", "");
        return;
    }
    PQsetNoticeReceiver(host->connection, ignore_notice, nullptr);
    if (PQstatus(host->connection) == CONNECTION_BAD) {
        set_connection_error(host, check_registry);
        close_host(host);
    }
}

void set_error(GrantError *error, const char *message, const char *hint) {
    *error = {};
    copy_clean(error->message, sizeof(error->message), message);
    if (error->message[0] == '\0')
        strlcpy(error->message, "the registry gave no reason", sizeof(error->message));
    copy_clean(error->hint, sizeof(error->hint), hint);
    error->at_us = wall_clock_us();
}

void set_refusal(GrantError *error, const FleetAnswer &answer) {
    set_error(error, answer.message != nullptr ? answer.message : answer.refusal,
              answer.hint != nullptr ? answer.hint : "");
    copy_clean(error->refusal, sizeof(error->refusal), answer.refusal);
}

void set_not_a_registry(GrantError *error) {
    set_error(error, "the registry's answer is not valid",
              "Check that uidgen.registry names a registry, and update uidgen on the registry before its members.");
}

} // namespace uidgen::pg
