#include "connection.hpp"

#include <algorithm>
#include <sys/resource.h>

namespace uidgen::pg {
namespace {

// How long hosts may take to connect, or to answer, and how long once another one has answered an inquiry.
constexpr int64_t timeout_us = 5 * us_per_second;
constexpr int64_t patience_us = us_per_second;

const char *conninfo = nullptr; // that the hosts are of
Host *hosts = nullptr;
int host_count = 0;
Host *current = nullptr; // the registry, unless its connection has ended

bool any_host(bool (*is)(const Host &)) { return std::any_of(hosts, hosts + host_count, is); }

// Waits until one of those hosts, or the process, has something to do, and has the host do it.
void wait_for(bool (*is)(const Host &), int64_t us) {
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
            advance(static_cast<Host *>(event->user_data));
    pfree(events);
    CHECK_FOR_INTERRUPTS();
}

// Until all hosts are idle or closed, or the time is over; once one is idle, for that long at most. Others time out.
void run(int64_t once_idle_us) {
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
            time_out(host);
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
        host->conninfo = conninfo;
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
    auto *of_rivals = static_cast<FleetRequest *>(palloc(sizeof(FleetRequest) * static_cast<Size>(host_count)));
    int rivals = 0;
    for (int i = 0; i < host_count; i++) {
        if (!hellos[i].answers || hellos[i].fleet != chosen.fleet || hellos[i].term == chosen.term)
            continue;
        if (core::are_rivals(hellos[i].term, chosen.term))
            of_rivals[rivals++] = hello_with_stamp(hello, *answer_of(hosts[i]));
        call_host(&hosts[i], {&of_best, 1});
    }
    if (rivals > 0)
        call_host(&hosts[best], {of_rivals, Min(rivals, most_requests)});
    run(timeout_us);
    for (int i = 0; i < host_count; i++)
        hellos[i] = i == best ? chosen : hello_of(hosts[i]);
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

// Goes to the best registry, if that is open.
void choose(const FleetRequest &hello, core::Hello *hellos, const core::Best &best, Found *found) {
    Host *chosen = &hosts[best.index];
    if (core::may_have_granted(answer_of(*chosen)->given, answer_of(*chosen)->granted_last.granted_us))
        found->hello = answer_of(*chosen)->given;
    show_terms(hello, hellos, best.index);
    const int last = core::last_of_others(hellos, host_count, best.index);
    if (last != core::no_registry) {
        const FleetAnswer *answer = answer_of(hosts[last]);
        found->other = {answer->granted_last.granted_us, answer->given.grant.term, answer->granted_last.seal};
    }
    const FleetAnswer *answer = answer_of(*chosen);
    if (!hellos[best.index].open || answer == nullptr)
        return;
    current = chosen;
    found->host = chosen->name;
    found->is_alone = best.is_alone;
    found->awaits_member = answer->awaits_member;
    found->longest_us = answer->longest_us;
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
    current = nullptr;
    if (host_count == 0) { // libpq's message would quote parts of it, perhaps a password
        *error = make_error(
            "uidgen.registry is not a connection string that libpq can parse",
            "Use keywords and values, such as \"host=ids.example.com dbname=ids user=uid_fleet\", or a URI. Quote "
            "a value that contains spaces.");
        return false;
    }
    auto *hellos = static_cast<core::Hello *>(palloc0(sizeof(core::Hello) * static_cast<Size>(host_count)));
    for (Host *host = hosts; host < hosts + host_count; host++)
        call_host(host, {&hello, 1});
    run(patience_us);
    std::transform(hosts, hosts + host_count, hellos, hello_of);
    const core::Best best = core::best_registry(hellos, host_count, seen);
    count_registries(hellos, best.index, found);
    if (best.index != core::no_registry)
        choose(hello, hellos, best, found);
    for (int i = 0; i < host_count; i++) {
        const bool is_outdated = hellos[i].answers && core::is_past(seen, hellos[i].fleet, hellos[i].term);
        const GrantError of_host = is_outdated ? error_of(core::Refusal::outdated) : error_of(hosts[i]);
        if (current == nullptr)
            add_error(error, of_host);
        if (found->refused_by == nullptr && of_host.refusal != core::Refusal::none)
            found->refused_by = hosts[i].name;
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

Answers connection_call(const Requests &requests, GrantError *error) {
    call_host(current, requests);
    run(timeout_us);
    *error = current->error;
    return current->answers;
}

} // namespace uidgen::pg
