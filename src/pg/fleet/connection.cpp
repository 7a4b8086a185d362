#include "connection.hpp"

#include <sys/resource.h>

#include "base/identity.hpp"
#include "base/time_source.hpp"

namespace uidgen::pg {
namespace {

constexpr int64_t statement_timeout_us = 5 * us_per_second;
constexpr int64_t connect_timeout_us = 5 * us_per_second; // unless the connection string has another one

// How long other hosts are waited for once one has answered, and one that did not answer the last time.
constexpr int64_t patience_us = us_per_second;
constexpr int64_t patience_if_silent_us = 200 * us_per_ms;

char *conninfo = nullptr; // that the hosts are of
Host *hosts = nullptr;
int host_count = 0;
Host *current = nullptr; // the registry, unless its connection has ended

// Until all hosts are idle or closed, or the time is over: *until_us, or earlier if a host has answered.
bool is_time_over(int64_t until_us, int64_t answered_at_us) {
    const int64_t now_us = monotonic_us();
    if (now_us >= until_us || ShutdownRequestPending)
        return true;
    for (int i = 0; i < host_count; i++)
        if (is_busy(hosts[i]) && (answered_at_us == 0 ||
                                  now_us < answered_at_us + (hosts[i].is_silent ? patience_if_silent_us : patience_us)))
            return false;
    return true;
}

void wait_for_hosts(int64_t us) {
    auto *sockets = static_cast<WaitingSocket *>(palloc(sizeof(WaitingSocket) * static_cast<Size>(host_count)));
    int count = 0;
    for (int i = 0; i < host_count; i++)
        if (is_busy(hosts[i]))
            sockets[count++] = {PQsocket(hosts[i].connection), hosts[i].events, false};
    wait_as_registrar(sockets, count, us);
    for (int i = 0, k = 0; i < host_count && k < count; i++)
        if (is_busy(hosts[i]) && sockets[k++].ready)
            advance(&hosts[i]);
    pfree(sockets);
}

void run(int64_t timeout_us, bool is_impatient) {
    const int64_t until_us = monotonic_us() + timeout_us;
    int64_t answered_at_us = 0;
    for (;;) {
        bool busy = false;
        for (int i = 0; i < host_count; i++) {
            busy = busy || is_busy(hosts[i]);
            if (is_impatient && is_there(hosts[i]) && answered_at_us == 0)
                answered_at_us = monotonic_us();
        }
        if (!busy || is_time_over(until_us, answered_at_us))
            break;
        wait_for_hosts(Min(until_us - monotonic_us(), patience_if_silent_us));
    }
    for (int i = 0; i < host_count; i++) {
        hosts[i].is_silent = is_busy(hosts[i]);
        if (hosts[i].is_silent)
            time_out(&hosts[i]);
    }
}

// ---------------------------------------------------------------------------------------------------------
// The hosts of a connection string
// ---------------------------------------------------------------------------------------------------------

// The parts of the connection string that decide how it is tried.
struct Parts {
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

// libpq itself reports lists of different lengths, of which it is given all. A count of 0: it cannot parse the text.
Parts parts_of(const char *text) {
    Parts parts = {nullptr, nullptr, nullptr, 0, connect_timeout_us};
    PQconninfoOption *options = PQconninfoParse(text, nullptr);
    if (options == nullptr)
        return parts;
    for (const PQconninfoOption *option = options; option != nullptr && option->keyword != nullptr; option++) {
        if (option->val == nullptr || option->val[0] == '\0')
            continue;
        if (strcmp(option->keyword, "host") == 0)
            parts.host = pstrdup(option->val);
        else if (strcmp(option->keyword, "hostaddr") == 0)
            parts.hostaddr = pstrdup(option->val);
        else if (strcmp(option->keyword, "port") == 0)
            parts.port = pstrdup(option->val);
        else if (strcmp(option->keyword, "connect_timeout") == 0 && atoi(option->val) > 0)
            parts.timeout_us = Max(atoi(option->val), 2) * us_per_second; // as in libpq
    }
    PQconninfoFree(options);
    const char *list = parts.hostaddr != nullptr ? parts.hostaddr : parts.host;
    const int count = list != nullptr ? elements_of(list) : 1;
    const bool hosts_fit = parts.host == nullptr || elements_of(parts.host) == count;
    const int ports = parts.port != nullptr ? elements_of(parts.port) : 1;
    parts.count = hosts_fit && (ports == 1 || ports == count) ? count : 1;
    return parts;
}

// A later keyword overrides an earlier one, and the connection string stands in the place of the first dbname.
void connect(Host *host, const Parts &parts) {
    const char *keywords[] = {"dbname", "fallback_application_name", "client_encoding", nullptr, nullptr, nullptr,
                              nullptr};
    const char *values[] = {conninfo, "uidgen registrar", "UTF8", nullptr, nullptr, nullptr, nullptr};
    if (parts.count > 1) {
        const char *const names[] = {"host", "hostaddr", "port"};
        const char *const lists[] = {parts.host, parts.hostaddr, parts.port};
        for (int i = 0; i < 3; i++) {
            keywords[3 + i] = names[i];
            values[3 + i] = element(lists[i], static_cast<int>(host - hosts));
        }
    }
    start_connecting(host, keywords, values);
}

void use_conninfo(const char *text, const Parts &parts) {
    if (conninfo != nullptr && strcmp(conninfo, text) == 0)
        return;
    connection_close();
    for (int i = 0; i < host_count; i++)
        pfree(hosts[i].name);
    if (conninfo != nullptr) {
        pfree(hosts);
        pfree(conninfo);
    }
    conninfo = MemoryContextStrdup(TopMemoryContext, text);
    host_count = parts.count;
    hosts =
        static_cast<Host *>(MemoryContextAllocZero(TopMemoryContext, sizeof(Host) * static_cast<Size>(parts.count)));
    for (int i = 0; i < host_count; i++) {
        const char *name = element(parts.host != nullptr ? parts.host : parts.hostaddr, i);
        const char *port = element(parts.port, i);
        hosts[i].name = MemoryContextStrdup(
            TopMemoryContext, psprintf("%s:%s", name != nullptr ? name : "", port != nullptr ? port : DEF_PGPORT_STR));
    }
}

// ---------------------------------------------------------------------------------------------------------
// Requests and answers
// ---------------------------------------------------------------------------------------------------------

bool takes_utf8(const Host &host) {
    const char *encoding = PQparameterStatus(host.connection, "server_encoding");
    return encoding != nullptr && strcmp(encoding, "UTF8") == 0;
}

// Of an encoding that this process does not know. JSON must be text.
const char *json_of(const FleetRequest &request, bool utf8) {
    StringInfoData json;
    initStringInfo(&json);
    append_json(&json, request_fields, &request);
    if (!utf8 || pg_encoding_verifymbstr(PG_UTF8, json.data, json.len) != json.len)
        for (int i = 0; i < json.len; i++)
            json.data[i] = static_cast<unsigned char>(json.data[i]) < 0x80 ? json.data[i] : '?';
    return json.data;
}

// What no registry answers must not be carried to one.
bool is_sane(const FleetAnswer &a) {
    const core::Grant &grant = a.given.grant;
    const auto is_instant = [](int64_t us) { return us >= 0 && us <= core::max_instant_us; };
    return static_cast<int64_t>(a.given.fleet) > 0 && grant.epoch.number > 0 &&
           grant.epoch.number <= core::largest_epoch && grant.epoch.nonce >= 0 && grant.serial > 0 && a.clock_us > 0 &&
           is_instant(a.clock_us) && is_instant(a.granted_last.granted_us);
}

// False: it is no answer of a registry, which the error says.
bool read_answer(Host *host, FleetAnswer *answer) {
    const PGresult *result = host->result;
    *answer = {};
    if (result == nullptr || host->error.at_us != 0)
        return false;
    if (PQntuples(result) == 1 && PQnfields(result) == 1 && PQgetisnull(result, 0, 0) == 0 &&
        parse_fields(answer_fields, answer, pstrdup(PQgetvalue(result, 0, 0))) && is_sane(*answer))
        return true;
    set_not_a_registry(&host->error);
    return false;
}

core::Hello hello_of(Host *host) {
    FleetAnswer answer;
    if (!is_there(*host) || !read_answer(host, &answer))
        return {};
    return {true,
            answer.is_open,
            answer.server,
            answer.given.fleet,
            answer.given.grant.epoch,
            answer.granted_last.granted_us};
}

// ---------------------------------------------------------------------------------------------------------
// The inquiry
// ---------------------------------------------------------------------------------------------------------

void say_hello(const Parts &parts, const core::FleetSeen &seen) {
    const FleetRequest request = new_request(seen);
    const char *json = json_of(request, false);
    for (int i = 0; i < host_count; i++) {
        hosts[i].call = json;
        if (hosts[i].connection == nullptr)
            connect(&hosts[i], parts);
        else
            send_call(&hosts[i]);
    }
    run(parts.timeout_us, true);
}

// Of the answer that the host has given.
core::FleetSeen stamp_of(Host *host) {
    FleetAnswer answer;
    (void)read_answer(host, &answer);
    return {answer.given.fleet, answer.given.grant.epoch, answer.given.grant.serial, answer.given.seal};
}

// The largest epoch, to the registries that have another one. Of two with one number each learns of the other.
void show_epochs(core::Hello *hellos, int best) {
    const char *of_best = json_of(new_request(stamp_of(&hosts[best])), false);
    const core::Hello chosen = hellos[best];
    for (int i = 0; i < host_count; i++) {
        if (!hellos[i].answers || hellos[i].fleet != chosen.fleet || hellos[i].epoch == chosen.epoch)
            continue;
        if (core::are_rivals(hellos[i].epoch, chosen.epoch) && is_there(hosts[best])) {
            hosts[best].call = json_of(new_request(stamp_of(&hosts[i])), false);
            send_call(&hosts[best]);
        }
        hosts[i].call = of_best;
        send_call(&hosts[i]);
        run(statement_timeout_us, false);
        hellos[i] = hello_of(&hosts[i]);
    }
}

// An error that comes after another one of the same attempt.
void add_error(GrantError *error, const GrantError &other) {
    if (other.message[0] == '\0')
        return;
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

// One that answers, but is not the registry, has said why.
void add_refusal(Host *host, GrantError *error) {
    FleetAnswer answer;
    if (!is_there(*host) || !read_answer(host, &answer) || answer.refusal == nullptr) {
        add_error(error, host->error);
        return;
    }
    GrantError refused = {};
    set_refusal(&refused, answer);
    add_error(error, refused);
}

// The number of registries, of whatever fleet, whether they may grant or not; one that is named twice counts once.
void count_registries(const core::Hello *hellos, int best, Found *found) {
    static char *kept = nullptr;
    StringInfoData others;
    initStringInfo(&others);
    for (int i = 0; i < host_count; i++) {
        bool is_new = hellos[i].answers;
        for (int k = 0; k < i; k++)
            is_new = is_new && !(hellos[k].answers && hellos[k].server == hellos[i].server);
        found->registries += is_new ? 1 : 0;
        if (is_new && best != core::no_registry && hellos[i].server != hellos[best].server)
            appendStringInfo(&others, "%s%s", others.len > 0 ? ", " : "", hosts[i].name);
    }
    if (kept != nullptr)
        pfree(kept);
    kept = others.len > 0 ? MemoryContextStrdup(TopMemoryContext, others.data) : nullptr;
    found->others = kept;
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

bool connection_inquire(const char *text, const core::FleetSeen &seen, Found *found, GrantError *error) {
    const Parts parts = parts_of(text);
    *found = {};
    *error = {};
    if (parts.count == 0) { // libpq's message would quote parts of it, perhaps a password
        set_error(
            error, "uidgen.registry is not a connection string that libpq can parse",
            "Use keywords and values, such as \"host=ids.example.com dbname=ids user=uid_fleet\", or a URI. Quote "
            "a value that contains spaces.");
        return false;
    }
    use_conninfo(text, parts);
    auto *hellos = static_cast<core::Hello *>(palloc0(sizeof(core::Hello) * static_cast<Size>(host_count)));
    say_hello(parts, seen);
    for (int i = 0; i < host_count; i++)
        hellos[i] = hello_of(&hosts[i]);
    const core::Best best = core::best_registry(hellos, host_count, seen);
    count_registries(hellos, best.index, found);
    if (best.index != core::no_registry)
        show_epochs(hellos, best.index);
    const bool is_open = best.index != core::no_registry && hellos[best.index].open && is_there(hosts[best.index]);
    if (!is_open) {
        for (int i = 0; i < host_count; i++) {
            add_refusal(&hosts[i], error);
            close_host(&hosts[i]);
        }
        return false;
    }
    const int last = core::last_of_others(hellos, host_count, best.index);
    FleetAnswer answer;
    if (last != core::no_registry && is_there(hosts[last]) && read_answer(&hosts[last], &answer))
        found->other = {answer.granted_last.granted_us, answer.given.grant.epoch, answer.granted_last.seal};
    for (int i = 0; i < host_count; i++)
        if (i != best.index)
            close_host(&hosts[i]);
    current = &hosts[best.index];
    found->is_alone = best.is_alone;
    found->host = current->name;
    return true;
}

void connection_close() {
    for (int i = 0; i < host_count; i++)
        close_host(&hosts[i]);
    current = nullptr;
}

bool connection_is_open() { return current != nullptr && current->stage != Stage::closed; }

pgsocket connection_socket() { return connection_is_open() ? PQsocket(current->connection) : PGINVALID_SOCKET; }

void connection_read_idle() {
    if (connection_is_open() &&
        (PQconsumeInput(current->connection) == 0 || PQstatus(current->connection) == CONNECTION_BAD))
        close_host(current);
}

bool connection_call(const FleetRequest &request, FleetAnswer *answer, GrantError *error) {
    Host *host = current;
    *error = {};
    host->call = json_of(request, takes_utf8(*host));
    send_call(host);
    if (is_busy(*host))
        run(statement_timeout_us, false);
    const bool answered = is_there(*host) && read_answer(host, answer);
    *error = host->error;
    host->error = {};
    return answered;
}

FleetRequest new_request(const core::FleetSeen &seen) {
    static char host[256];
    FleetRequest request = {};
    (void)read_host_name(host, sizeof(host));
    clear_fields(request_fields, &request);
    request.protocol = fleet_protocol;
    request.generator.seen = seen;
    request.host = host;
    request.port = psprintf("%d", PostPortNumber);
    request.version = UIDGEN_VERSION;
    return request;
}

} // namespace uidgen::pg
