// The registrar: a background process that asks the registry of the fleet for grants, and for blocks of segments, ahead
// of use.
//
// The first draw that needs it starts it. It ends when no generator of the server has drawn for ten grants' length, or
// when uidgen.registry is empty. It has no database connection, so it blocks no other command. It can be killed at any
// moment:
//   1. An incarnation is in the file of grants before it asks, so that the registry can tell which of two lives is the
//      later one, even if the answer is lost.
//   2. A grant is in the file before sessions see it.
// It is the only process that writes the file, and a server has one of it (shared/single_worker.hpp). uid_fleet_move()
// removes the file.

#include "block_call.hpp"
#include "connection.hpp"
#include "member_call.hpp"
#include "grant_file.hpp"
#include "registrar_status.hpp"
#include "base/conninfo.hpp"
#include "base/settings.hpp"
#include "base/time_source.hpp"
#include "base/waits.hpp"
#include "shared/single_worker.hpp"

namespace uidgen::pg {
namespace {

// Between two attempts to connect, doubling, and after a refusal that passes with time: clocks may be set meanwhile. If
// a session waits for a grant, the pause before a connection is shorter.
constexpr int64_t shortest_pause_us = 100 * us_per_ms;
constexpr int64_t longest_pause_us = 5 * us_per_second;
constexpr int64_t pause_if_wanted_us = 500 * us_per_ms;

// Between two asks for one member.
constexpr int64_t shortest_ask_pause_us = 100 * us_per_ms;
constexpr int64_t longest_ask_pause_us = 60 * us_per_second;
constexpr int64_t refused_pause_us = us_per_second;

constexpr int64_t longest_nap_us = 10 * us_per_second; // the wall clock may be set meanwhile

// After so many lengths of a grant without a draw a member is not renewed any more.
constexpr int64_t idle_lengths = 10;

constexpr int64_t always_due = -1; // a tick

// What this process keeps about the member at a place, for as long as its incarnation stays the same.
struct Known {
    uint64_t incarnation;
    bool stored;           // in the file
    bool refused;          // the log says so
    int64_t renew_at;      // tick; 0: unknown
    int64_t not_before_us; // on the monotonic clock
};
Known *known = nullptr;

char *conninfo = nullptr; // that the connection was made with
RegistrarStatus status = {};
int64_t last_attempt_us = 0; // on the monotonic clock
int64_t pause_us = 0;        // after it
bool said_away = false;
bool said_clock = false;

// ---------------------------------------------------------------------------------------------------------
// Which member to ask for
// ---------------------------------------------------------------------------------------------------------

// The next thing to do.
struct Agenda {
    bool any;    // there are members that are in use
    bool wanted; // a session waits for one
    int place;   // to ask for now; no_place: none
    Member member;
    int64_t next_us; // how long until another one is due
};

int64_t length_us(const GrantOrder &order) { return order.length * order.layout.tick_us; }

bool is_in_use(const Member &member, int64_t now_us) {
    return member.ordered && member.used_at_us != 0 &&
           now_us - member.used_at_us < idle_lengths * length_us(member.order);
}

bool is_wanted(const Member &member) {
    const core::Membership &m = member.membership;
    return member.wanted > 0 && (!m.holds || member.wanted >= m.held.until);
}

// When `left` ticks of a grant are left at tick `now`: its half, or up to an eighth of it earlier.
int64_t renewal(int64_t now, int64_t left, uint64_t incarnation) {
    const int64_t spread = static_cast<int64_t>(incarnation % static_cast<uint64_t>(left / 8 + 1));
    return now + left / 2 - spread;
}

Known *known_of(int place, const Member &member) {
    Known *entry = &known[place];
    if (entry->incarnation != member.membership.incarnation)
        *entry = {member.membership.incarnation, false, false, 0, 0};
    if (entry->renew_at == 0 && member.membership.holds)
        entry->renew_at = renewal(member.membership.held.until - member.order.length, member.order.length,
                                  member.membership.incarnation);
    return entry;
}

// How long until the member is due; 0: now; negative: there is nothing to ask. After a start the registry learns of the
// new incarnation at once, so that a copy that was made below the file system is found out early.
int64_t due_in_us(int place, const Member &member, int64_t now_us, int64_t now_monotonic_us) {
    const Known *entry = known_of(place, member);
    if (member.membership.superseded)
        return -1;
    int64_t wait_us = 0;
    if (!is_wanted(member)) {
        if (!member.membership.holds)
            return -1;
        if (member.membership.former_count == 0)
            wait_us = core::start_of(member.order.layout, entry->renew_at) - now_us;
    }
    return Max(Max(wait_us, entry->not_before_us - now_monotonic_us), 0);
}

// After a start only the file knows of it.
void explain_superseded(int place, const Member &member) {
    GrantError error = {};
    if (member.error.at_us != 0)
        return;
    set_error(&error, "another server continues as this generator, or its node was taken over",
              "If this server must issue ids, run SELECT uid_fleet_move() on it. Its generators then get new nodes.");
    grants_note_error(place, member.key, error);
}

// Wanted members come before those that are due for renewal. Of each, the first one after `after`.
Agenda look_around(int after) {
    Agenda agenda = {};
    Member member;
    bool chosen_is_wanted = false;
    agenda.wanted = blocks_are_asked();
    agenda.any = agenda.wanted || block_was_called_lately();
    agenda.place = no_place;
    agenda.next_us = longest_nap_us;
    const int64_t now_us = wall_clock_us();
    const int64_t now_monotonic_us = monotonic_us();
    const int places = grants_places();
    for (int i = 0; i < places; i++) {
        const int place = (after + 1 + i) % places;
        if (!grants_copy(place, &member) || !is_in_use(member, now_us))
            continue;
        agenda.any = true;
        if (member.membership.superseded)
            explain_superseded(place, member);
        const int64_t wait_us = due_in_us(place, member, now_us, now_monotonic_us);
        if (wait_us < 0)
            continue;
        const bool wanted = is_wanted(member);
        agenda.wanted = agenda.wanted || wanted;
        if (wait_us > 0) {
            agenda.next_us = Min(agenda.next_us, wait_us);
        } else if (agenda.place == no_place || (wanted && !chosen_is_wanted)) {
            agenda.place = place;
            agenda.member = member;
            chosen_is_wanted = wanted;
        }
    }
    return agenda;
}

// ---------------------------------------------------------------------------------------------------------
// Errors and the status
// ---------------------------------------------------------------------------------------------------------

void note_error(int place, const Member &member, const GrantError &error) {
    grants_note_error(place, member.key, error);
    status.last_error = error;
    registrar_status_set(status);
}

// The registry cannot be used: every member learns why.
void note_away(const GrantError &error) {
    Member member;
    for (int place = 0; place < grants_places(); place++)
        if (grants_copy(place, &member) && member.ordered)
            grants_note_error(place, member.key, error);
    blocks_note_away(error);
    status.connected = false;
    status.last_error = error;
    if (status.away_since_us == 0)
        status.away_since_us = wall_clock_us();
    registrar_status_set(status);
    if (said_away)
        return;
    said_away = true;
    ereport(LOG, (errmsg("could not use the registry of this server's fleet: %s", error.message),
                  error.hint[0] != '\0' ? errhint("%s", error.hint) : 0,
                  errdetail("The registry is \"%s\".", conninfo_redacted(conninfo))));
}

void note_connected() {
    status.connected = true;
    status.away_since_us = 0;
    registrar_status_set(status);
    if (said_away)
        ereport(LOG, (errmsg("connected to the registry of this server's fleet again")));
    said_away = false;
}

// One line each time that the clocks begin to differ too much.
void compare_clocks(int64_t sent_us, const FleetReply &reply) {
    const int64_t bound_us = settings::registry_clock_bound_ms * us_per_ms;
    const int64_t now_us = wall_clock_us();
    const int64_t middle_us = sent_us + (now_us - sent_us) / 2;
    status.compared_clocks = true;
    status.clock_offset_us = middle_us - reply.registry_clock_us;
    const bool differ = status.clock_offset_us > bound_us || status.clock_offset_us < -bound_us;
    if (differ && !said_clock)
        ereport(WARNING, (errmsg("the clock of this server differs from the registry's by " INT64_FORMAT " ms",
                                 status.clock_offset_us / us_per_ms),
                          errdetail("uidgen.registry_clock_bound is %d ms.", settings::registry_clock_bound_ms),
                          errhint("Synchronize the clocks of the fleet.")));
    said_clock = differ;
}

// ---------------------------------------------------------------------------------------------------------
// Asking
// ---------------------------------------------------------------------------------------------------------

// Writes the file, unless the member's incarnation is in it. The file has those of all members that were there before.
bool store_incarnation(int place, const Member &member) {
    if (known_of(place, member)->stored)
        return true;
    Member other;
    const int places = grants_places();
    for (int i = 0; i < places; i++)
        if (grants_copy(i, &other))
            (void)known_of(i, other);
    const bool stored = grant_file_write(nullptr);
    for (int i = 0; i < places; i++)
        known[i].stored = known[i].stored || stored;
    return stored;
}

void schedule(Known *entry, const core::Layout &layout, const core::Ask &ask, const core::Grant &grant) {
    const int64_t left = Max(grant.until - ask.lowest, 0);
    const int64_t pause = left > 0 ? Min(left * layout.tick_us / 16, longest_ask_pause_us) : refused_pause_us;
    entry->refused = entry->refused && left == 0;
    entry->renew_at = renewal(ask.lowest, left, ask.incarnation);
    entry->not_before_us = monotonic_us() + Max(pause, shortest_ask_pause_us);
}

// What accept() made of the answer goes to the file, and then to the sessions. An answer that says nothing new of the
// fleet, and has no grant, is not worth the file.
void take_answer(int place, const Member &member, const core::Ask &ask, const FleetReply &reply) {
    const core::FleetSeen before = grants_fleet_seen();
    GrantChange change = {place, member.key, member.membership, before};
    const core::Accepted accepted = core::accept(&change.membership, &change.seen, reply.answer);
    const bool changed = accepted == core::Accepted::grant ||
                         change.membership.superseded != member.membership.superseded ||
                         change.seen.fleet != before.fleet || change.seen.term != before.term;
    if (changed && !grant_file_write(&change)) {
        GrantError error = {};
        set_error(&error, "could not write the file of grants", "See the server log of this server.");
        note_error(place, member, error);
        return;
    }
    (void)grants_publish(place, member.key, change.membership, change.seen);
    if (accepted == core::Accepted::grant)
        schedule(&known[place], member.order.layout, ask, change.membership.held);
}

void log_first_refusal(Known *entry, const Member &member, const GrantError &error) {
    if (!entry->refused)
        ereport(LOG, (errmsg("the registry refuses generator \"%s\" in database \"%s\": %s", member.order.generator,
                             member.order.database, error.message),
                      error.hint[0] != '\0' ? errhint("%s", error.hint) : 0));
    entry->refused = true;
}

void ask_for(int place, const Member &member) {
    Known *entry = known_of(place, member);
    FleetReply reply;
    entry->not_before_us = monotonic_us() + refused_pause_us;
    if (!store_incarnation(place, member))
        return;
    const core::Layout &layout = member.order.layout;
    const int64_t sent_us = wall_clock_us();
    const core::FleetSeen seen = grants_fleet_seen();
    const int64_t lowest = Max(core::tick_at(layout, sent_us), member.wanted);
    const core::Ask ask = core::ask_of(member.membership, seen, sent_us, lowest, member.order.length);
    const bool answered = member_call(member, ask, &reply);
    if (answered)
        compare_clocks(sent_us, reply);
    const GrantError error = answered ? reply_error(reply, seen, lowest) : reply.error;
    if (answered)
        take_answer(place, member, ask, reply);
    if (answered && reply.answer.why == core::Refusal::ahead)
        grants_unwant(place, member.key, member.wanted);
    if (reply.retry_after_us > 0)
        entry->not_before_us = monotonic_us() + Min(Max(reply.retry_after_us, shortest_ask_pause_us), longest_pause_us);
    if (error.at_us != 0) {
        note_error(place, member, error);
        if (answered || connection_is_open())
            log_first_refusal(entry, member, error);
    } else {
        registrar_status_set(status);
    }
}

// ---------------------------------------------------------------------------------------------------------
// The connection
// ---------------------------------------------------------------------------------------------------------

// Up to a quarter longer or shorter, so that the members of a fleet do not return at one moment.
int64_t with_jitter(int64_t us) {
    uint8_t random = 128;
    (void)pg_strong_random(&random, sizeof(random));
    return us * (192 + random / 2) / 256;
}

void connect() {
    GrantError error = {};
    const bool connected = connection_open(conninfo, &error);
    last_attempt_us = monotonic_us();
    pause_us = connected ? shortest_pause_us : Min(Max(2 * pause_us, shortest_pause_us), longest_pause_us);
    if (connected)
        note_connected();
    else if (!ShutdownRequestPending)
        note_away(error);
}

// How long until the next attempt; at most 0: now.
int64_t attempt_in_us(bool wanted) {
    const int64_t pause = wanted ? Min(pause_us, pause_if_wanted_us) : pause_us;
    return last_attempt_us + with_jitter(pause) - monotonic_us();
}

void disconnect() {
    connection_close();
    status.connected = false;
    status.away_since_us = 0;
    registrar_status_set(status);
}

void read_settings() {
    ProcessConfigFile(PGC_SIGHUP);
    if (strcmp(conninfo, settings::registry) == 0)
        return;
    pfree(conninfo);
    conninfo = MemoryContextStrdup(TopMemoryContext, settings::registry);
    disconnect();
    pause_us = 0;
    said_away = false;
    // Every member asks at once, so that a wrong setting is found out while the grants last.
    for (int place = 0; place < settings::max_slots; place++) {
        known[place].renew_at = always_due;
        known[place].not_before_us = 0;
        known[place].refused = false;
    }
}

// ---------------------------------------------------------------------------------------------------------
// The process
// ---------------------------------------------------------------------------------------------------------

// From now on another registrar may be started at once.
void leave() {
    worker_found_nothing(SingleWorker::registrar);
    resign_as_worker(SingleWorker::registrar);
}

// Whether no member is in use (single_worker.hpp).
bool may_end() {
    leave();
    return !look_around(no_place).any || !become_worker(SingleWorker::registrar);
}

void nap(int64_t us) {
    const uint32 ready = wait_as_registrar(connection_socket(), connection_is_open() ? WL_SOCKET_READABLE : 0, us);
    if ((ready & WL_SOCKET_READABLE) == 0)
        return;
    connection_read_idle();
    status.connected = connection_is_open();
    registrar_status_set(status);
}

// False: no block is due.
bool ask_for_block(Agenda *agenda) {
    if (!block_call_next(&agenda->next_us))
        return false;
    if (block_call_error().at_us != 0)
        status.last_error = block_call_error();
    registrar_status_set(status);
    return true;
}

// One round: connects, asks for one block and one member, or sleeps. False: the process may end.
bool one_round(int *last_place) {
    if (ConfigReloadPending) {
        ConfigReloadPending = false;
        read_settings();
    }
    if (conninfo[0] == '\0') {
        leave();
        return false;
    }
    Agenda agenda = look_around(*last_place);
    if (!agenda.any && may_end())
        return false;
    if (!connection_is_open()) {
        const int64_t wait_us = attempt_in_us(agenda.wanted);
        if (wait_us > 0)
            nap(wait_us);
        else
            connect();
    } else if (!ask_for_block(&agenda) && agenda.place == no_place) {
        nap(agenda.next_us);
    } else if (agenda.place != no_place && connection_is_open()) {
        *last_place = agenda.place;
        ask_for(agenda.place, agenda.member);
    }
    return true;
}

void serve() {
    MemoryContext context = AllocSetContextCreate(TopMemoryContext, "uidgen registrar", ALLOCSET_DEFAULT_SIZES);
    MemoryContextSwitchTo(context);
    int last_place = no_place;
    while (!ShutdownRequestPending && one_round(&last_place))
        MemoryContextReset(context);
    disconnect();
}

} // namespace
} // namespace uidgen::pg

using namespace uidgen::pg;

extern "C" {

PGDLLEXPORT void uidgen_registrar_main(Datum argument);

void uidgen_registrar_main(Datum) {
    pqsignal(SIGTERM, SignalHandlerForShutdownRequest);
    pqsignal(SIGHUP, SignalHandlerForConfigReload);
    begin_as_worker(SingleWorker::registrar);
    known = static_cast<Known *>(
        MemoryContextAllocZero(TopMemoryContext, static_cast<Size>(settings::max_slots) * sizeof(Known)));
    conninfo = MemoryContextStrdup(TopMemoryContext, settings::registry);
    status = registrar_status();
    connection_limit_memory();
    serve();
    proc_exit(0);
}
}
