#include "connection.hpp"

#include <sys/resource.h>

#include "base/time_source.hpp"

namespace uidgen::pg {
namespace {

// How long hosts may take to connect, or to answer, and how long once another one has answered an inquiry.
constexpr int64_t timeout_us = 5 * us_per_second;
constexpr int64_t patience_us = us_per_second;

const char *conninfo = nullptr; // that the hosts are of
Host *hosts = nullptr;
int host_count = 0;
Host *current = nullptr; // the registry, unless its connection has ended

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

// Until all hosts are idle or closed, or the time is over.
void run(bool is_inquiry) {
    int64_t until_us = monotonic_us() + timeout_us;
    for (;;) {
        const int64_t now_us = monotonic_us();
        bool busy = false;
        bool answered = false;
        for (int i = 0; i < host_count; i++) {
            busy = busy || is_busy(hosts[i]);
            answered = answered || hosts[i].stage == Stage::idle;
        }
        if (is_inquiry && answered)
            until_us = Min(until_us, now_us + patience_us);
        if (!busy || now_us >= until_us || ShutdownRequestPending)
            break;
        wait_for_hosts(until_us - now_us);
    }
    for (int i = 0; i < host_count; i++)
        if (is_busy(hosts[i]))
            time_out(&hosts[i]);
}

// ---------------------------------------------------------------------------------------------------------
// The hosts of a connection string
// ---------------------------------------------------------------------------------------------------------

const char *value_of(const PQconninfoOption *options, const char *keyword) {
    for (; options->keyword != nullptr; options++)
        if (strcmp(options->keyword, keyword) == 0 && options->val != nullptr && options->val[0] != '\0')
            return pstrdup(options->val);
    return nullptr;
}

int elements_of(const char *list) {
    int count = 1;
    for (; list != nullptr && *list != '\0'; list++)
        count += *list == ',' ? 1 : 0;
    return count;
}

// One port serves all hosts. libpq reports a list of another length, of which it is given all.
const char *element(const char *list, int index) {
    if (list == nullptr || elements_of(list) != host_count)
        return list;
    for (; index > 0; index--)
        list = strchrnul(list, ',') + 1;
    return pnstrdup(list, static_cast<Size>(strchrnul(list, ',') - list));
}

void make_hosts() {
    PQconninfoOption *options = PQconninfoParse(conninfo, nullptr);
    host_count = 0;
    if (options == nullptr)
        return;
    const char *names = value_of(options, "host");
    const char *addresses = value_of(options, "hostaddr");
    const char *ports = value_of(options, "port");
    PQconninfoFree(options);
    host_count = elements_of(addresses != nullptr ? addresses : names);
    hosts = static_cast<Host *>(palloc0(sizeof(Host) * static_cast<Size>(host_count)));
    for (int i = 0; i < host_count; i++) {
        Host *host = &hosts[i];
        host->host = element(names, i);
        host->address = element(addresses, i);
        host->port = element(ports, i);
        const char *name = host->host != nullptr ? host->host : host->address;
        host->name =
            psprintf("%s:%s", name != nullptr ? name : "", host->port != nullptr ? host->port : DEF_PGPORT_STR);
    }
}

// ---------------------------------------------------------------------------------------------------------
// The inquiry
// ---------------------------------------------------------------------------------------------------------

core::Hello hello_of(const Host &host) {
    const FleetAnswer *answer = answer_of(host);
    if (answer == nullptr)
        return {};
    return {true,
            answer->is_open,
            answer->server,
            answer->given.fleet,
            answer->given.grant.term,
            answer->granted_last.granted_us};
}

void say_hello(const FleetRequest &hello) {
    for (int i = 0; i < host_count; i++) {
        hosts[i].requests = {&hello, 1};
        if (hosts[i].connection == nullptr)
            start_connecting(&hosts[i], conninfo);
        else
            send_call(&hosts[i]);
    }
    run(true);
}

// A hello that shows the stamp of an answer.
FleetRequest hello_with_stamp(FleetRequest hello, const FleetAnswer &answer) {
    const core::Answer &given = answer.given;
    hello.generator.seen = {given.fleet, given.grant.term, given.grant.serial, given.seal};
    return hello;
}

// The largest term, to the registries that have another one. Of two with one number each learns of the other.
void show_terms(const FleetRequest &hello, core::Hello *hellos, int best) {
    const FleetRequest of_best = hello_with_stamp(hello, *answer_of(hosts[best]));
    const core::Hello chosen = hellos[best];
    for (int i = 0; i < host_count; i++) {
        if (!hellos[i].answers || hellos[i].fleet != chosen.fleet || hellos[i].term == chosen.term)
            continue;
        const FleetRequest of_other = hello_with_stamp(hello, *answer_of(hosts[i]));
        if (core::are_rivals(hellos[i].term, chosen.term) && answer_of(hosts[best]) != nullptr) {
            hosts[best].requests = {&of_other, 1};
            send_call(&hosts[best]);
        }
        hosts[i].requests = {&of_best, 1};
        send_call(&hosts[i]);
        run(false);
        hellos[i] = hello_of(hosts[i]);
    }
}

// An error that comes after another one of the same attempt.
void add_error(GrantError *error, const GrantError &other) {
    if (error->at_us == 0 || other.at_us == 0) {
        *error = error->at_us == 0 ? other : *error;
        return;
    }
    const size_t length = strlen(error->message);
    snprintf(error->message + length, sizeof(error->message) - length, "; %s", other.message);
    if (other.hint[0] != '\0')
        memcpy(error->hint, other.hint, sizeof(error->hint));
    error->names_host = error->names_host || other.names_host;
    if (error->refusal == core::Refusal::none)
        error->refusal = other.refusal;
}

GrantError error_of(const Host &host) {
    const FleetAnswer *answer = answer_of(host);
    return answer != nullptr ? refusal_error(*answer) : host.error;
}

// The number of registries, of whatever fleet, whether they may grant or not; one that is named twice counts once.
void count_registries(const core::Hello *hellos, int best, Found *found) {
    for (int i = 0; i < host_count; i++) {
        bool is_new = hellos[i].answers;
        for (int k = 0; k < i; k++)
            is_new = is_new && !(hellos[k].answers && hellos[k].server == hellos[i].server);
        found->registries += is_new ? 1 : 0;
        if (!is_new || best == core::no_registry || hellos[i].server == hellos[best].server)
            continue;
        if (found->others[0] != '\0')
            strlcat(found->others, ", ", sizeof(found->others));
        strlcat(found->others, hosts[i].name, sizeof(found->others));
    }
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

bool connection_use(const char *text) {
    static MemoryContext context = nullptr;
    if (conninfo != nullptr && strcmp(conninfo, text) == 0)
        return false;
    connection_close();
    if (context == nullptr)
        context = AllocSetContextCreate(TopMemoryContext, "uidgen hosts", ALLOCSET_SMALL_SIZES);
    MemoryContextReset(context);
    MemoryContext caller = MemoryContextSwitchTo(context);
    conninfo = pstrdup(text);
    make_hosts();
    MemoryContextSwitchTo(caller);
    return true;
}

bool connection_inquire(const FleetRequest &hello, const core::FleetSeen &seen, Found *found, GrantError *error) {
    *found = {};
    *error = {};
    if (host_count == 0) { // libpq's message would quote parts of it, perhaps a password
        set_error(
            error, "uidgen.registry is not a connection string that libpq can parse",
            "Use keywords and values, such as \"host=ids.example.com dbname=ids user=uid_fleet\", or a URI. Quote "
            "a value that contains spaces.");
        return false;
    }
    auto *hellos = static_cast<core::Hello *>(palloc0(sizeof(core::Hello) * static_cast<Size>(host_count)));
    say_hello(hello);
    for (int i = 0; i < host_count; i++)
        hellos[i] = hello_of(hosts[i]);
    const core::Best best = core::best_registry(hellos, host_count, seen);
    count_registries(hellos, best.index, found);
    current = nullptr;
    if (best.index != core::no_registry) {
        show_terms(hello, hellos, best.index);
        const int last = core::last_of_others(hellos, host_count, best.index);
        if (last != core::no_registry) {
            const FleetAnswer *answer = answer_of(hosts[last]);
            found->other = {answer->granted_last.granted_us, answer->given.grant.term, answer->granted_last.seal};
        }
        if (hellos[best.index].open && answer_of(hosts[best.index]) != nullptr)
            current = &hosts[best.index];
    }
    for (int i = 0; i < host_count; i++) {
        GrantError of_host = error_of(hosts[i]);
        if (hellos[i].answers && core::is_past(seen, hellos[i].fleet, hellos[i].term))
            set_outdated(&of_host);
        if (current == nullptr)
            add_error(error, of_host);
        if (found->refused_by == nullptr && of_host.refusal != core::Refusal::none)
            found->refused_by = hosts[i].name;
        if (&hosts[i] != current)
            close_host(&hosts[i]);
    }
    if (current != nullptr) {
        found->host = current->name;
        found->awaits_member = answer_of(*current)->awaits_member;
        found->longest_us = answer_of(*current)->longest_us;
    }
    found->is_alone = current != nullptr && best.is_alone;
    return current != nullptr;
}

void connection_close() {
    for (int i = 0; i < host_count; i++)
        close_host(&hosts[i]);
    current = nullptr;
}

bool connection_is_open() { return current != nullptr && current->stage != Stage::closed; }

void connection_nap(int64_t us) {
    const bool is_open = connection_is_open();
    WaitingSocket socket = {is_open ? PQsocket(current->connection) : PGINVALID_SOCKET, WL_SOCKET_READABLE, false};
    wait_as_registrar(&socket, is_open ? 1 : 0, us);
    if (socket.ready && (PQconsumeInput(current->connection) == 0 || PQstatus(current->connection) == CONNECTION_BAD))
        close_host(current);
}

Answers connection_call(const Requests &requests, GrantError *error) {
    current->requests = requests;
    send_call(current);
    run(false);
    *error = current->error;
    return current->answers;
}

} // namespace uidgen::pg
