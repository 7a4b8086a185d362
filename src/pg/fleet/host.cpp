#include "host.hpp"

namespace uidgen::pg {
namespace {

constexpr char call[] = "CALL uid_internal.uid_fleet_call($1)";

constexpr char check_registry[] =
    "Check uidgen.registry, that the registry is running, and that its pg_hba.conf admits this server.";

// By libpq's error, which names host and port.
void fail(Host *host, const char *hint) {
    host->error = make_error(PQerrorMessage(host->connection), hint);
    host->error.names_host = true;
    close_host(host);
}

// What an administrator can do about an error of the registry, unless its hint says it.
const char *hint_for(const char *sqlstate, const char *hint) {
    if (strcmp(sqlstate, "42501") == 0) // insufficient_privilege
        return "Run SELECT uid_fleet_admit('role') on the registry, with the role that uidgen.registry names.";
    if (strcmp(sqlstate, "25006") == 0) // read_only_sql_transaction
        return "Name the registry's primary in uidgen.registry, too.";
    for (const char *missing : {"3F000", "42883", "42704"}) // invalid_schema_name, undefined_function, undefined_object
        if (strcmp(sqlstate, missing) == 0)
            return "Correct dbname in uidgen.registry. Or run CREATE EXTENSION uidgen on the registry, or ALTER "
                   "EXTENSION uidgen UPDATE if its version of uidgen is older than this server's.";
    return hint != nullptr ? hint : "";
}

// A server that takes no writes any more (read_only_sql_transaction) is left.
void take_error(Host *host) {
    const char *sqlstate = PQresultErrorField(host->result, PG_DIAG_SQLSTATE);
    const char *message = PQresultErrorField(host->result, PG_DIAG_MESSAGE_PRIMARY);
    const char *detail = PQresultErrorField(host->result, PG_DIAG_MESSAGE_DETAIL);
    if (sqlstate == nullptr || message == nullptr) {
        fail(host, "");
        return;
    }
    host->error = make_error(detail == nullptr ? message : psprintf("%s: %s", message, detail),
                             hint_for(sqlstate, PQresultErrorField(host->result, PG_DIAG_MESSAGE_HINT)));
    if (strcmp(sqlstate, "25006") == 0 || PQstatus(host->connection) != CONNECTION_OK)
        close_host(host);
    else
        host->stage = Stage::idle;
}

void ignore_notice(void *, const PGresult *) {}

// What no registry answers must not be carried to one.
bool is_sane(const FleetAnswer &a) {
    const core::Grant &grant = a.given.grant;
    const auto is_instant = [](int64_t us) { return us >= 0 && us <= core::max_instant_us; };
    return static_cast<int64_t>(a.given.fleet) > 0 && grant.term.number > 0 && grant.term.nonce >= 0 &&
           grant.serial > 0 && a.clock_us > 0 && is_instant(a.clock_us) && a.longest_us > 0 &&
           is_instant(a.longest_us) && is_instant(a.granted_last.granted_us);
}

void take_answers(Host *host) {
    const PGresult *result = host->result;
    Answers answers = {static_cast<FleetAnswer *>(palloc(sizeof(FleetAnswer) * most_requests)), 0};
    host->stage = Stage::idle;
    bool is_valid = PQntuples(result) == 1 && PQnfields(result) == 1 && PQftype(result, 0) == BYTEAOID;
    Message left = {};
    if (is_valid)
        left = {PQgetvalue(result, 0, 0), PQgetlength(result, 0, 0)};
    while (is_valid && left.bytes > 0) {
        FleetAnswer *answer = &answers.answers[answers.count];
        is_valid = answers.count < host->requests.count && take_row(&left, answer_fields, answer) && is_sane(*answer);
        answers.count++;
    }
    if (is_valid && answers.count > 0 &&
        !core::can_be_drawn(answers.answers[0].given.grant.term.number, wall_clock_us()))
        host->error = make_error("the registry's term is more than a day ahead of this server's clock",
                                 "Correct the clock of this server. Or correct that of the registry, and run SELECT "
                                 "uid_fleet_fence() there.");
    else if (is_valid && answers.count > 0)
        host->answers = answers;
    else
        host->error = not_a_registry();
}

// The first error, or else the last result, is kept: an error may follow rows. A server that asks for a COPY has not
// understood the statement, and waits for ever.
void take_results(Host *host) {
    while (PQisBusy(host->connection) == 0) {
        PGresult *result = PQgetResult(host->connection);
        if (result == nullptr && PQresultStatus(host->result) == PGRES_TUPLES_OK)
            return take_answers(host);
        if (result == nullptr)
            return take_error(host);
        const bool has_failed = host->result != nullptr && PQresultStatus(host->result) != PGRES_TUPLES_OK;
        PQclear(has_failed ? result : host->result);
        host->result = has_failed ? host->result : result;
        const ExecStatusType status = PQresultStatus(host->result);
        if (status != PGRES_TUPLES_OK && status != PGRES_FATAL_ERROR) {
            host->error = not_a_registry();
            return close_host(host);
        }
    }
}

// In PostgreSQL's binary format both ways.
void send_call(Host *host) {
    constexpr Oid type = BYTEAOID;
    constexpr int binary = 1;
    StringInfoData message;
    initStringInfo(&message);
    for (int i = 0; i < host->requests.count; i++)
        append_row(&message, request_fields, &host->requests.requests[i]);
    PQclear(host->result);
    host->result = nullptr;
    host->stage = Stage::calling;
    host->answers = {};
    host->error = {};
    host->events = WL_SOCKET_READABLE | WL_SOCKET_WRITEABLE;
    if (PQsendQueryParams(host->connection, call, 1, &type, &message.data, &message.len, &binary, binary) == 0)
        fail(host, "");
    pfree(message.data);
}

// A later keyword overrides an earlier one, and the connection string stands in the place of the first dbname.
void start_connecting(Host *host) {
    const char *const keywords[] = {
        "dbname", "fallback_application_name", "client_encoding", "host", "hostaddr", "port", nullptr};
    const char *const values[] = {host->conninfo, "uidgen registrar", "UTF8", host->host,
                                  host->address,  host->port,         nullptr};
    host->error = {};
    host->connection = PQconnectStartParams(keywords, values, 1);
    host->stage = Stage::connecting;
    host->events = WL_SOCKET_WRITEABLE;
    PQsetNoticeReceiver(host->connection, ignore_notice, nullptr);
    if (PQstatus(host->connection) == CONNECTION_BAD) // also if there is no memory for one
        fail(host, check_registry);
}

void connect_on(Host *host) {
    const PostgresPollingStatusType status = PQconnectPoll(host->connection);
    host->events = status == PGRES_POLLING_READING ? WL_SOCKET_READABLE : WL_SOCKET_WRITEABLE;
    if (status == PGRES_POLLING_FAILED || (status == PGRES_POLLING_OK && PQsetnonblocking(host->connection, 1) != 0))
        fail(host, check_registry);
    else if (status == PGRES_POLLING_OK)
        send_call(host);
}

} // namespace

void close_host(Host *host) {
    PQclear(host->result);
    PQfinish(host->connection);
    host->result = nullptr;
    host->connection = nullptr;
    host->stage = Stage::closed;
    host->answers = {};
}

void time_out(Host *host) {
    host->error = make_error("the registry did not answer in time", check_registry);
    close_host(host);
}

void call_host(Host *host, const Requests &requests) {
    host->requests = requests;
    if (host->connection == nullptr)
        start_connecting(host);
    else
        send_call(host);
}

void advance(Host *host) {
    if (host->stage == Stage::connecting)
        return connect_on(host);
    const int left = PQflush(host->connection);
    host->events = left > 0 ? WL_SOCKET_READABLE | WL_SOCKET_WRITEABLE : WL_SOCKET_READABLE;
    if (left < 0 || PQconsumeInput(host->connection) == 0 ||
        (is_idle(*host) && PQstatus(host->connection) == CONNECTION_BAD))
        fail(host, "");
    else if (host->stage == Stage::calling)
        take_results(host);
}

GrantError refusal_error(const FleetAnswer &answer) {
    if (answer.given.why == core::Refusal::none)
        return {};
    return make_error(answer.message != nullptr ? answer.message : core::row_of(answer.given.why).word,
                      answer.hint != nullptr ? answer.hint : "", answer.given.why);
}

GrantError not_a_registry() {
    return make_error("the registry's answer is not valid",
                      "Check that uidgen.registry names a registry, and update uidgen on the registry before its "
                      "members.");
}

} // namespace uidgen::pg
