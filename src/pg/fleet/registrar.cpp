// The registrar: a background process that asks the registry of the fleet for grants, and for blocks of segments, ahead
// of use.
//
// The first draw that needs it starts it. It ends when no generator of the server has drawn for ten grants' length, or
// when uidgen.registry is empty. It has no database connection, so it blocks no other command. It can be killed at any
// moment:
//   1. An incarnation that follows another one is in the file of grants before it asks (grant_file_restore()), so that
//      the registry can tell which of two lives is the later one, even if the answer is lost.
//   2. A grant is in the file before sessions see it.
// A server has one of it (memory/server_state.hpp).

#include "calls.hpp"
#include "grant_file.hpp"
#include "report.hpp"
#include "base/settings.hpp"
#include "base/time_source.hpp"
#include "memory/server_state.hpp"

namespace uidgen::pg {
namespace {

// Between two attempts to connect, and between two if a session waits for a grant.
constexpr int64_t pause_us = 5 * us_per_second;
constexpr int64_t pause_if_wanted_us = 500 * us_per_ms;

// Between two asks for one member.
constexpr int64_t granted_pause_us = 100 * us_per_ms;
constexpr int64_t refused_pause_us = us_per_second;

constexpr int64_t longest_nap_us = 10 * us_per_second; // the wall clock may be set meanwhile

// So long after a call for a block the registrar stays, so that the connection lasts from one block to the next.
constexpr int64_t idle_after_block_us = 60 * us_per_second;

constexpr int64_t always_due = -1; // a tick

// After an inquiry its result counts for so long, for newcomers, and while there is more than one registry.
constexpr int64_t inquiry_counts_us = us_per_second;
constexpr int64_t others_count_us = 60 * us_per_second;

Found found = {};
int64_t last_inquiry_us = 0; // on the monotonic clock; 0: the next one is due
int64_t last_block_us = 0;   // the last call for a block, on the monotonic clock; 0: none yet

// ---------------------------------------------------------------------------------------------------------
// Which member to ask for
// ---------------------------------------------------------------------------------------------------------

// The next thing to do.
struct Agenda {
    bool any;    // there are members that are in use
    bool wanted; // a session waits for one
    bool due;    // `member` is to be asked for now
    Member member;
    bool block_due; // so is `block`
    AskedBlock block;
    int64_t next_us; // how long until another one is due
};

bool is_wanted(const Member &member) {
    const core::Membership &m = member.membership;
    return member.wanted > 0 && (!m.holds || member.wanted >= m.held.until);
}

// When `left` ticks of a grant are left at tick `now`: its half, or up to an eighth of it earlier.
int64_t renewal(int64_t now, int64_t left, uint64_t incarnation) {
    const int64_t spread = static_cast<int64_t>(incarnation % static_cast<uint64_t>(left / 8 + 1));
    return now + left / 2 - spread;
}

// Only this process uses the notes.
RegistrarNotes *notes_of(const Member &member) {
    RegistrarNotes *notes = &member.slot->generator.membership.notes;
    if (notes->incarnation != member.membership.incarnation)
        *notes = {member.membership.incarnation};
    if (notes->renew_at == 0 && member.membership.holds)
        notes->renew_at = renewal(member.membership.held.until - member.request.length, member.request.length,
                                  member.membership.incarnation);
    return notes;
}

// How long until the member is due; 0: now; negative: there is nothing to ask. After a start the registry learns of the
// new incarnation at once, so that a copy that was made below the file system is found out early.
int64_t due_in_us(const Member &member, int64_t now_us, int64_t now_monotonic_us) {
    const RegistrarNotes *notes = notes_of(member);
    if (member.membership.superseded)
        return -1;
    int64_t wait_us = 0;
    if (!is_wanted(member)) {
        if (!member.membership.holds)
            return -1;
        if (member.membership.former.count == 0)
            wait_us = core::start_of(member.request.layout, notes->renew_at) - now_us;
    }
    return Max(Max(wait_us, notes->not_before_us - now_monotonic_us), 0);
}

// After a start only the file knows of it.
void explain_superseded(const Member &member) {
    GrantError error = {};
    if (member.error.at_us != 0)
        return;
    set_error(&error, "another server continues as this generator, or its node was taken over",
              "If this server must issue ids, run SELECT uid_fleet_move() on it. Its generators then get new nodes.");
    membership_note_error(member, error);
}

// Wanted members come before those that are due for renewal, unless they were refused last time: these ask again every
// second, and must not hold up renewals. Of each, the one that may be asked for since longest.
bool comes_first(const Member &a, const Member &b) {
    const bool a_is_urgent = is_wanted(a) && !notes_of(a)->refused;
    const bool b_is_urgent = is_wanted(b) && !notes_of(b)->refused;
    return a_is_urgent != b_is_urgent ? a_is_urgent : notes_of(a)->not_before_us < notes_of(b)->not_before_us;
}

Agenda look_around() {
    Agenda agenda = {};
    if (settings::registry[0] == '\0')
        return agenda;
    const int64_t now_us = wall_clock_us();
    const int64_t now_monotonic_us = monotonic_us();
    int64_t block_due_us = 0;
    agenda.wanted = blocks_next_asked(&agenda.block, &block_due_us);
    agenda.block_due = agenda.wanted && block_due_us <= now_monotonic_us;
    agenda.any = agenda.wanted || (last_block_us != 0 && now_monotonic_us - last_block_us < idle_after_block_us);
    agenda.next_us = agenda.wanted ? Min(longest_nap_us, block_due_us - now_monotonic_us) : longest_nap_us;
    for_each_member([&](const Member &member) {
        if (!is_in_use(member, now_us))
            return;
        agenda.any = true;
        if (member.membership.superseded)
            explain_superseded(member);
        const int64_t wait_us = due_in_us(member, now_us, now_monotonic_us);
        if (wait_us < 0)
            return;
        agenda.wanted = agenda.wanted || is_wanted(member);
        if (wait_us > 0) {
            agenda.next_us = Min(agenda.next_us, wait_us);
        } else if (!agenda.due || comes_first(member, agenda.member)) {
            agenda.due = true;
            agenda.member = member;
        }
    });
    return agenda;
}

// ---------------------------------------------------------------------------------------------------------
// Errors
// ---------------------------------------------------------------------------------------------------------

// The registry cannot be used: every member learns why.
void note_away(const GrantError &error) {
    for_each_member([&error](const Member &member) {
        if (member.requested)
            membership_note_error(member, error);
    });
    blocks_note_away(error);
    report_away(error, found);
}

// ---------------------------------------------------------------------------------------------------------
// Asking
// ---------------------------------------------------------------------------------------------------------

// What accept() made of the answer goes to the file, and then to the sessions, unless it has no grant and says nothing
// new of the fleet. No registry gives a grant that accept() does not take, since it refuses a server that has seen
// another fleet, or a later answer than its own.
void take_answer(const Member &member, const core::Request &ask, const core::Answer &answer, GrantError *error) {
    const core::FleetSeen before = fleet_seen();
    MembershipChange change = {member.slot, member.membership, before, before};
    const bool is_granted = core::accept(&change.membership, &change.seen, answer);
    const bool is_news = is_granted || change.membership.superseded || change.seen.term != before.term;
    if (!is_news)
        membership_publish(change); // what was seen proves commits that the registry may lose
    else if (!grant_file_store(change, error))
        return;
    if (is_granted)
        *notes_of(member) = {ask.incarnation, false,
                             renewal(ask.lowest, change.membership.held.until - ask.lowest, ask.incarnation),
                             monotonic_us() + granted_pause_us};
    else if (answer.why == core::Refusal::none)
        set_not_a_registry(error);
}

// The first of several errors is logged.
void note_error(RegistrarNotes *notes, const Member &member, const GrantError &error) {
    membership_note_error(member, error);
    report_error(error);
    if (!notes->refused)
        ereport(LOG, (errmsg("generator \"%s\" in database \"%s\" gets no grant from the registry: %s",
                             member.request.generator, member.request.database, error.message),
                      error.hint[0] != '\0' ? errhint("%s", error.hint) : 0));
    notes->refused = true;
}

// Of two registries that cannot be told apart, none is asked for a node or a block.
GrantError two_registries() {
    GrantError error = {};
    set_error(&error, psprintf("there is more than one registry: %s and %s", found.host, found.others), stop_others);
    error.names_host = true;
    strlcpy(error.refusal, "rival", sizeof(error.refusal));
    return error;
}

void ask_for(const Member &member) {
    RegistrarNotes *notes = notes_of(member);
    FleetAnswer answer;
    GrantError error = {};
    notes->not_before_us = monotonic_us() + refused_pause_us;
    if (!member.membership.holds && !found.is_alone) {
        note_error(notes, member, two_registries());
        return;
    }
    const core::FleetSeen seen = fleet_seen();
    const int64_t sent_us = wall_clock_us();
    const int64_t lowest = Max(core::tick_at(member.request.layout, sent_us), member.wanted);
    const core::Request ask = core::request_of(member.membership, seen, sent_us, lowest, member.request.length);
    const bool stored = !server_state->fleet.unstored || grant_file_store({nullptr, {}, seen, seen}, &error);
    if (stored && member_call(member, ask, found.other, &answer, &error)) {
        report_clocks(sent_us, answer.clock_us);
        take_answer(member, ask, answer.given, &error);
        if (answer.given.why == core::Refusal::ahead)
            membership_unwant(member);
    }
    if (error.at_us != 0)
        note_error(notes, member, error);
}

void ask_for_block(const AskedBlock &asked) {
    const BlockAnswer answer =
        found.is_alone ? block_call(asked.ask) : BlockAnswer{BlockState::asked, {}, two_registries()};
    last_block_us = monotonic_us();
    blocks_answer(asked, answer);
    if (answer.error.at_us != 0)
        report_error(answer.error);
}

// ---------------------------------------------------------------------------------------------------------
// The connection
// ---------------------------------------------------------------------------------------------------------

// Asks all hosts of the connection string.
void connect() {
    GrantError error;
    const bool connected = connection_inquire(new_request(fleet_seen()), &found, &error);
    last_inquiry_us = monotonic_us();
    if (connected)
        report_connected(found);
    else if (!ShutdownRequestPending)
        note_away(error);
}

// How long until the next attempt; at most 0: now. The pause is up to a quarter longer or shorter, so that the members
// of a fleet do not return at one moment.
int64_t attempt_in_us(bool wanted) {
    uint8_t random = 128;
    (void)pg_strong_random(&random, sizeof(random));
    return last_inquiry_us + (wanted ? pause_if_wanted_us : pause_us) * (192 + random / 2) / 256 - monotonic_us();
}

void read_settings() {
    ProcessConfigFile(PGC_SIGHUP);
    last_inquiry_us = 0; // if there is more than one registry, they are looked for again
    if (!connection_use(settings::registry))
        return;
    report_disconnected();
    found = {};
    // Every member asks at once, so that a wrong setting is found out while the grants last.
    for_each_member([](const Member &member) {
        RegistrarNotes *notes = notes_of(member);
        notes->renew_at = always_due;
        notes->not_before_us = 0;
        notes->refused = false;
    });
}

// ---------------------------------------------------------------------------------------------------------
// The process
// ---------------------------------------------------------------------------------------------------------

// One round: connects, asks for one block and one member, or sleeps. False: the process may end.
bool one_round() {
    if (ConfigReloadPending) {
        ConfigReloadPending = false;
        read_settings();
    }
    Agenda agenda = look_around();
    if (!agenda.any)
        return !worker_may_end(SingleWorker::registrar, [] { return look_around().any; });
    const bool is_newcomer = agenda.due && !agenda.member.membership.holds;
    const int64_t looked_ago_us = monotonic_us() - last_inquiry_us;
    if (connection_is_open() && ((is_newcomer && looked_ago_us > inquiry_counts_us) ||
                                 (found.registries > 1 && looked_ago_us > others_count_us))) {
        connect();
    } else if (!connection_is_open()) {
        const int64_t wait_us = attempt_in_us(agenda.wanted);
        if (wait_us > 0)
            connection_nap(wait_us);
        else
            connect();
    } else if (!agenda.block_due && !agenda.due) {
        connection_nap(agenda.next_us);
    } else {
        if (agenda.block_due)
            ask_for_block(agenda.block);
        if (agenda.due && connection_is_open())
            ask_for(agenda.member);
    }
    return true;
}

void serve() {
    MemoryContext context = AllocSetContextCreate(TopMemoryContext, "uidgen registrar", ALLOCSET_DEFAULT_SIZES);
    MemoryContextSwitchTo(context);
    while (!ShutdownRequestPending && one_round()) {
        if (!connection_is_open())
            report_lost();
        MemoryContextReset(context);
    }
    connection_close();
    report_disconnected();
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
    (void)connection_use(settings::registry);
    connection_limit_memory();
    serve();
    proc_exit(0);
}
}
