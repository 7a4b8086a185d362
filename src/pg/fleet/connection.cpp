#include "connection.hpp"

#include <algorithm>
#include <sys/resource.h>

#include "message.hpp"

namespace uidgen::pg {
namespace {

// How long hosts may take to connect and to answer a hello, and how long once another one has answered. A call may wait
// for locks of others (lock_timeout in uidgen_registry.sql).
constexpr int64_t hello_timeout_us = 3 * us_per_second;
constexpr int64_t patience_us = us_per_second;
constexpr int64_t call_timeout_us = 8 * us_per_second;

const char *conninfo = nullptr; // that the hosts are of
Host *hosts = nullptr;
int host_count = 0;
Host *current = nullptr; // the registry, unless its connection has ended

// Whether this is true of one of the hosts, by what the process knows of them.
bool any_host(bool (*is)(const Host &)) { return std::any_of(hosts, hosts + host_count, is); }

// Waits for the sockets of those hosts and the latch until one of them has something to do, and has the host do it.
void wait_for(bool (*is)(const Host &), int64_t us) EXCLUDES(grant_file_lock, slot_lock, state_lock) {
    auto *events = static_cast<WaitEvent *>(palloc(sizeof(WaitEvent) * static_cast<Size>(host_count + 1)));
    WaitEventSet *set = new_wait_event_set(host_count + 2);
    AddWaitEventToSet(set, WL_LATCH_SET, PGINVALID_SOCKET, MyLatch, nullptr);
    AddWaitEventToSet(set, WL_EXIT_ON_PM_DEATH, PGINVALID_SOCKET, nullptr, nullptr);
    for (Host *host = hosts; host < hosts + host_count; host++)
        if (is(*host))
            AddWaitEventToSet(set, host->events, PQsocket(host->connection), nullptr, host);
    const int happened = WaitEventSetWait(set, wait_ms(us), events, host_count + 1, wait_event("UidgenRegistrar"));
    FreeWaitEventSet(set);
    for (const WaitEvent *event = events; event < events + happened; event++)
        if (event->events == WL_LATCH_SET)
            ResetLatch(MyLatch);
        else
            advance_host(static_cast<Host *>(event->user_data));
    pfree(events);
    CHECK_FOR_INTERRUPTS();
}

// Sends, receives and waits until all hosts are idle or closed, or the time is over; once one is idle, for that long at
// most. Closes those that time out.
void run_hosts(int64_t timeout_us, int64_t once_idle_us) EXCLUDES(grant_file_lock, slot_lock, state_lock) {
    int64_t until_us = monotonic_us() + timeout_us;
    while (any_host(is_busy) && !ShutdownRequestPending) {
        const int64_t now_us = monotonic_us();
        if (any_host(is_idle))
            until_us = Min(until_us, now_us + once_idle_us);
        if (now_us >= until_us)
            break;
        wait_for(is_busy, until_us - now_us);
    }
    for (Host *host = hosts; host < hosts + host_count; host++)
        if (is_busy(*host))
            time_out_host(host);
}

// ---------------------------------------------------------------------------------------------------------
// The hosts of a connection string
// ---------------------------------------------------------------------------------------------------------

// A copy of a keyword's value; null: it has none.
const char *option_value(const PQconninfoOption *options, const char *keyword) {
    for (; options->keyword != nullptr; options++)
        if (strcmp(options->keyword, keyword) == 0 && options->val != nullptr && options->val[0] != '\0')
            return pstrdup(options->val);
    return nullptr;
}

// How many elements a list with commas has; null: one.
int count_elements(const char *list) {
    int count = 1;
    for (; list != nullptr && *list != '\0'; list++)
        count += *list == ',' ? 1 : 0;
    return count;
}

// One host's element of a list with commas. One port serves all hosts. libpq gets all of a list of another length, and
// reports it.
const char *list_element(const char *list, int index) {
    if (list == nullptr || count_elements(list) != host_count)
        return list;
    for (; index > 0; index--)
        list = strchrnul(list, ',') + 1;
    return pnstrdup(list, static_cast<Size>(strchrnul(list, ',') - list));
}

// Parses the connection string into `hosts`, and connects to none. If it cannot be parsed, there are none.
void make_hosts() {
    PQconninfoOption *options = PQconninfoParse(conninfo, nullptr);
    host_count = 0;
    if (options == nullptr)
        return;
    const char *names = option_value(options, "host");
    const char *addresses = option_value(options, "hostaddr");
    const char *ports = option_value(options, "port");
    PQconninfoFree(options);
    host_count = count_elements(addresses != nullptr ? addresses : names);
    hosts = static_cast<Host *>(palloc0(sizeof(Host) * static_cast<Size>(host_count)));
    for (int i = 0; i < host_count; i++) {
        Host *host = &hosts[i];
        host->conninfo = conninfo;
        host->host = list_element(names, i);
        host->address = list_element(addresses, i);
        host->port = list_element(ports, i);
        const char *name = host->host != nullptr ? host->host : host->address;
        host->was_given_up = true; // by a registrar before
        host->name =
            psprintf("%s:%s", name != nullptr ? name : "", host->port != nullptr ? host->port : DEF_PGPORT_STR);
    }
}

// ---------------------------------------------------------------------------------------------------------
// The inquiry
// ---------------------------------------------------------------------------------------------------------

// What a host has answered to the hello; by `answers`, whether it has.
core::Hello hello_of(const Host &host) {
    core::Hello hello = {};
    if (has_rows(host))
        hello.answers = read_hello(host.result, &hello);
    return hello;
}

// Adds to an error another one of the same attempt.
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
    if (error->why == core::Why::granted)
        error->why = other.why;
}

GrantError why_not_chosen(const Host &host, const core::Hello &hello) {
    if (!has_rows(host))
        return host.error;
    return hello.answers ? refusal_error(core::Why::other_fleet, {}) : not_a_registry();
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

bool connection_inquire(const core::FleetSeen &seen, Found *found, GrantError *error) {
    *found = {};
    *error = {};
    current = nullptr;
    if (host_count == 0) { // libpq's message would quote parts of it, perhaps a password
        *error = make_error(
            "uidgen.registry is not a connection string that libpq can parse",
            "Use keywords and values, such as \"host=ids.example.com dbname=ids user=fleet_app1\", or a URI. Quote "
            "a value that contains spaces.");
        return false;
    }
    auto *hellos = static_cast<core::Hello *>(palloc0(sizeof(core::Hello) * static_cast<Size>(host_count)));
    const int64_t sent_us = wall_clock_us();
    for (Host *host = hosts; host < hosts + host_count; host++)
        run_on_host(host, make_hello(seen, host->was_given_up));
    run_hosts(hello_timeout_us, patience_us);
    std::transform(hosts, hosts + host_count, hellos, hello_of);
    const int best = core::best_registry(hellos, host_count, seen);
    if (best >= 0 && core::is_shortened(seen, hellos[best]))
        *error = refusal_error(core::Why::shortened, {});
    else if (best >= 0) {
        current = &hosts[best];
        *found = {.host = current->name, .hello = hellos[best], .sent_us = sent_us};
    }
    for (int i = 0; i < host_count; i++) {
        if (best < 0)
            add_error(error, why_not_chosen(hosts[i], hellos[i]));
        hosts[i].was_given_up = hosts[i].was_given_up && !has_rows(hosts[i]);
        if (&hosts[i] != current)
            close_host(&hosts[i]);
    }
    return current != nullptr;
}

void connection_close() {
    for (int i = 0; i < host_count; i++)
        close_host(&hosts[i]);
    current = nullptr;
}

bool connection_is_open() { return current != nullptr && current->stage != Stage::closed; }

void connection_nap(int64_t us) { wait_for(is_idle, us); }

const PGresult *connection_run(const Statement &statement, GrantError *error) {
    run_on_host(current, statement);
    run_hosts(call_timeout_us, call_timeout_us);
    *error = current->error;
    return current->result;
}

} // namespace uidgen::pg
