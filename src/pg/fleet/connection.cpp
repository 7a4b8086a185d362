#include "connection.hpp"

#include <sys/resource.h>

#include "base/time_source.hpp"
#include "base/waits.hpp"

namespace uidgen::pg {
namespace {

constexpr int64_t statement_timeout_us = 5 * us_per_second;
constexpr int64_t connect_timeout_us = 5 * us_per_second; // unless the connection string has another one

// The extension of the registry, and whether it is a standby.
constexpr char look_up[] =
    "SELECT pg_catalog.quote_ident(n.nspname), pg_catalog.pg_is_in_recovery() FROM pg_catalog.pg_extension e "
    "JOIN pg_catalog.pg_namespace n ON n.oid OPERATOR(pg_catalog.=) e.extnamespace "
    "WHERE e.extname OPERATOR(pg_catalog.=) 'uidgen'";

constexpr int look_up_columns = 2;

constexpr char not_a_registry[] = "the registry's answer is not valid";
constexpr char check_registry[] =
    "Check uidgen.registry, that the registry is running, and that its pg_hba.conf admits this server.";

PGconn *connection = nullptr;
char schema[2 * NAMEDATALEN + 3] = "";

// ---------------------------------------------------------------------------------------------------------
// Errors
// ---------------------------------------------------------------------------------------------------------

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

// An error that comes after another one of the same attempt.
void add_error(GrantError *error, const GrantError &other) {
    if (error->message[0] == '\0') {
        *error = other;
        return;
    }
    const size_t length = strlen(error->message);
    snprintf(error->message + length, sizeof(error->message) - length, "; %s", other.message);
    if (other.hint[0] != '\0')
        memcpy(error->hint, other.hint, sizeof(error->hint));
    error->names_host = error->names_host || other.names_host;
}

// libpq's message names host and port.
void set_connection_error(GrantError *error, const char *hint) {
    set_error(error, PQerrorMessage(connection), hint);
    error->names_host = true;
}

// What an administrator can do about an error of the registry. Empty: what its hint says.
const char *hint_for(const char *sqlstate) {
    if (strcmp(sqlstate, "42501") == 0) // insufficient_privilege
        return "Run SELECT uid_fleet_admit('role') on the registry, with the role that uidgen.registry names.";
    if (strcmp(sqlstate, "42883") == 0) // undefined_function
        return "Run ALTER EXTENSION uidgen UPDATE on the registry, whose version of uidgen must not be older than this "
               "server's.";
    if (strcmp(sqlstate, "25006") == 0) // read_only_sql_transaction
        return "Name the primary server of the registry in uidgen.registry, or all its servers.";
    return "";
}

void set_statement_error(GrantError *error, const PGresult *result) {
    const char *sqlstate = PQresultErrorField(result, PG_DIAG_SQLSTATE);
    const char *message = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
    const char *hint = PQresultErrorField(result, PG_DIAG_MESSAGE_HINT);
    const char *own_hint = hint_for(sqlstate != nullptr ? sqlstate : "");
    if (hint == nullptr || own_hint[0] != '\0')
        hint = own_hint;
    if (message == nullptr)
        set_connection_error(error, hint);
    else
        set_error(error, message[0] != '\0' ? message : not_a_registry, hint);
}

// A server that is no primary any more must be left.
bool is_about_server(const PGresult *result) {
    const char *sqlstate = PQresultErrorField(result, PG_DIAG_SQLSTATE);
    return sqlstate != nullptr && strcmp(sqlstate, "25006") == 0;
}

void ignore_notice(void *, const PGresult *) {}

// ---------------------------------------------------------------------------------------------------------
// Waiting
// ---------------------------------------------------------------------------------------------------------

// False: the time is over, or the process is asked to end.
bool wait_for_socket(uint32 events, int64_t until_us) {
    for (;;) {
        const int64_t left_us = until_us - monotonic_us();
        if (left_us <= 0 || ShutdownRequestPending)
            return false;
        if ((wait_as_registrar(PQsocket(connection), events, left_us) & events) != 0)
            return true;
    }
}

// False: not connected in time; *error says why.
bool finish_connecting(int64_t until_us, GrantError *error) {
    PostgresPollingStatusType status = PGRES_POLLING_WRITING;
    while (status != PGRES_POLLING_OK) {
        const bool failed = PQstatus(connection) == CONNECTION_BAD || status == PGRES_POLLING_FAILED;
        if (failed) {
            set_connection_error(error, check_registry);
            return false;
        }
        const uint32 events = status == PGRES_POLLING_READING ? WL_SOCKET_READABLE : WL_SOCKET_WRITEABLE;
        if (!wait_for_socket(events, until_us)) {
            set_error(error, "connection to the registry timed out", check_registry);
            return false;
        }
        status = PQconnectPoll(connection);
    }
    return PQsetnonblocking(connection, 1) == 0;
}

// False: the statement was not sent in time.
bool flush(int64_t until_us) {
    for (;;) {
        const int left = PQflush(connection);
        if (left <= 0)
            return left == 0;
        if (!wait_for_socket(WL_SOCKET_WRITEABLE | WL_SOCKET_READABLE, until_us) || PQconsumeInput(connection) == 0)
            return false;
    }
}

bool next_result(int64_t until_us, PGresult **result) {
    while (PQisBusy(connection) != 0)
        if (!wait_for_socket(WL_SOCKET_READABLE, until_us) || PQconsumeInput(connection) == 0)
            return false;
    *result = PQgetResult(connection);
    return true;
}

// A server that asks for a COPY has not understood the statement, and waits for ever.
bool begins_copy(const PGresult *result) {
    const ExecStatusType status = PQresultStatus(result);
    return status == PGRES_COPY_IN || status == PGRES_COPY_OUT || status == PGRES_COPY_BOTH;
}

// All results of a statement, to the server's being ready for the next one. The first error, or else the last result,
// is kept: an error may follow rows. False: they did not come in time, or there is no end of them.
bool all_results(int64_t until_us, PGresult **kept) {
    *kept = nullptr;
    for (;;) {
        PGresult *result = nullptr;
        if (!next_result(until_us, &result))
            return false;
        if (result == nullptr)
            return true;
        if (begins_copy(result) || monotonic_us() >= until_us || ShutdownRequestPending) {
            PQclear(*kept);
            *kept = result;
            return false;
        }
        const bool has_failed = *kept != nullptr && PQresultStatus(*kept) != PGRES_TUPLES_OK;
        PQclear(has_failed ? result : *kept);
        *kept = has_failed ? *kept : result;
    }
}

// ---------------------------------------------------------------------------------------------------------
// Connecting
// ---------------------------------------------------------------------------------------------------------

// The parts of the connection string that decide how it is tried.
struct Hosts {
    const char *host;
    const char *hostaddr;
    const char *port;
    int count;
    int64_t timeout_us;
};

int elements_of(const char *list) {
    int count = 1;
    for (; *list != '\0'; list++)
        count += *list == ',' ? 1 : 0;
    return count;
}

// One port serves all hosts.
const char *element(const char *list, int index) {
    if (list == nullptr || elements_of(list) == 1)
        return list;
    for (; index > 0; index--)
        list = strchrnul(list, ',') + 1;
    return pnstrdup(list, static_cast<Size>(strchrnul(list, ',') - list));
}

Hosts hosts_of(const char *conninfo) {
    Hosts hosts = {nullptr, nullptr, nullptr, 1, connect_timeout_us};
    PQconninfoOption *options = PQconninfoParse(conninfo, nullptr);
    for (const PQconninfoOption *option = options; option != nullptr && option->keyword != nullptr; option++) {
        if (option->val == nullptr || option->val[0] == '\0')
            continue;
        if (strcmp(option->keyword, "host") == 0)
            hosts.host = pstrdup(option->val);
        else if (strcmp(option->keyword, "hostaddr") == 0)
            hosts.hostaddr = pstrdup(option->val);
        else if (strcmp(option->keyword, "port") == 0)
            hosts.port = pstrdup(option->val);
        else if (strcmp(option->keyword, "connect_timeout") == 0 && atoi(option->val) > 0)
            hosts.timeout_us = Max(atoi(option->val), 2) * us_per_second; // as in libpq
    }
    PQconninfoFree(options);
    const char *list = hosts.hostaddr != nullptr ? hosts.hostaddr : hosts.host;
    hosts.count = list != nullptr ? elements_of(list) : 1;
    return hosts;
}

// libpq itself reports lists of different lengths.
bool can_be_split(const Hosts &hosts) {
    const bool hosts_fit = hosts.host == nullptr || elements_of(hosts.host) == hosts.count;
    const int ports = hosts.port != nullptr ? elements_of(hosts.port) : 1;
    return hosts.count > 1 && hosts_fit && (ports == 1 || ports == hosts.count);
}

// A later keyword overrides an earlier one, and the connection string stands in the place of the first dbname.
void start_connecting(const char *conninfo, const Hosts &hosts, int index, bool split) {
    const char *keywords[] = {"dbname", "fallback_application_name", "client_encoding", nullptr, nullptr, nullptr,
                              nullptr};
    const char *values[] = {conninfo, "uidgen registrar", "UTF8", nullptr, nullptr, nullptr, nullptr};
    if (split) {
        const char *const names[] = {"host", "hostaddr", "port"};
        const char *const lists[] = {hosts.host, hosts.hostaddr, hosts.port};
        for (int i = 0; i < 3; i++) {
            keywords[3 + i] = names[i];
            values[3 + i] = element(lists[i], index);
        }
    }
    connection = PQconnectStartParams(keywords, values, 1);
}

// Whether the server may serve as a registry.
bool inspect(GrantError *error) {
    PGresult *result = connection_query(look_up, 0, nullptr, error);
    if (result == nullptr)
        return false;
    if (PQnfields(result) != look_up_columns) {
        set_not_a_registry(error);
        PQclear(result);
        return false;
    }
    const bool installed = PQntuples(result) == 1;
    const bool standby = installed && strcmp(PQgetvalue(result, 0, 1), "t") == 0;
    if (!installed)
        set_error(
            error,
            psprintf("extension \"uidgen\" is not installed in database \"%s\" of the registry", PQdb(connection)),
            "Run CREATE EXTENSION uidgen there, or correct dbname in uidgen.registry.");
    else if (standby)
        set_error(error, "the server that uidgen.registry names is a standby",
                  "Name the primary server of the registry in uidgen.registry, or all its servers.");
    else
        strlcpy(schema, PQgetvalue(result, 0, 0), sizeof(schema));
    PQclear(result);
    return installed && !standby;
}

bool try_host(const char *conninfo, const Hosts &hosts, int index, bool split, GrantError *error) {
    start_connecting(conninfo, hosts, index, split);
    if (connection == nullptr) {
        set_error(error, "out of memory", "");
        return false;
    }
    PQsetNoticeReceiver(connection, ignore_notice, nullptr);
    if (finish_connecting(monotonic_us() + hosts.timeout_us, error) && inspect(error))
        return true;
    connection_close();
    return false;
}

} // namespace

void connection_limit_memory() {
    constexpr rlim_t most_more = 32 * 1024 * 1024; // no answer of a registry is that long
    unsigned long data_pages = 0;
    FILE *usage = fopen("/proc/self/statm", "r");
    const bool known = usage != nullptr && fscanf(usage, "%*u %*u %*u %*u %*u %lu", &data_pages) == 1;
    rlimit limit;
    if (usage != nullptr)
        fclose(usage);
    if (!known || getrlimit(RLIMIT_DATA, &limit) != 0)
        return;
    limit.rlim_cur = Min(limit.rlim_cur, data_pages * static_cast<rlim_t>(sysconf(_SC_PAGESIZE)) + most_more);
    (void)setrlimit(RLIMIT_DATA, &limit);
}

bool connection_open(const char *conninfo, GrantError *error) {
    const Hosts hosts = hosts_of(conninfo);
    const bool split = can_be_split(hosts);
    *error = {};
    for (int i = 0; i < (split ? hosts.count : 1) && !ShutdownRequestPending; i++) {
        GrantError of_host = {};
        if (try_host(conninfo, hosts, i, split, &of_host))
            return true;
        add_error(error, of_host);
    }
    return false;
}

void connection_close() {
    PQfinish(connection);
    connection = nullptr;
    schema[0] = '\0';
}

bool connection_is_open() { return connection != nullptr; }

pgsocket connection_socket() { return connection != nullptr ? PQsocket(connection) : PGINVALID_SOCKET; }

void connection_read_idle() {
    if (connection == nullptr)
        return;
    if (PQconsumeInput(connection) == 0 || PQstatus(connection) == CONNECTION_BAD)
        connection_close();
}

PGresult *connection_query(const char *statement, int count, const char *const *values, GrantError *error) {
    const int64_t until_us = monotonic_us() + statement_timeout_us;
    PGresult *result = nullptr;
    const bool answered = PQsendQueryParams(connection, statement, count, nullptr, values, nullptr, nullptr, 0) != 0 &&
                          flush(until_us) && all_results(until_us, &result);
    if (answered && PQresultStatus(result) == PGRES_TUPLES_OK)
        return result;
    bool usable = answered;
    if (answered) {
        set_statement_error(error, result);
        usable = PQstatus(connection) == CONNECTION_OK && !is_about_server(result);
    } else if (PQstatus(connection) == CONNECTION_BAD) {
        set_connection_error(error, "");
    } else if (begins_copy(result)) {
        set_not_a_registry(error);
    } else {
        set_error(error, "the registry did not answer in time", "");
    }
    PQclear(result);
    if (!usable)
        connection_close();
    return nullptr;
}

const char *connection_schema() { return schema; }

bool connection_takes_utf8() {
    const char *encoding = connection != nullptr ? PQparameterStatus(connection, "server_encoding") : nullptr;
    return encoding != nullptr && strcmp(encoding, "UTF8") == 0;
}

void set_error(GrantError *error, const char *message, const char *hint) {
    *error = {};
    copy_clean(error->message, sizeof(error->message), message);
    if (error->message[0] == '\0')
        strlcpy(error->message, "the registry gave no reason", sizeof(error->message));
    copy_clean(error->hint, sizeof(error->hint), hint);
    error->at_us = wall_clock_us();
}

void set_not_a_registry(GrantError *error) {
    set_error(error, not_a_registry, "Check that the setting uidgen.registry names a registry.");
}

} // namespace uidgen::pg
