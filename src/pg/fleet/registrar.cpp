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

#include "agenda.hpp"
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

// After an inquiry its result counts for so long, for newcomers, and while there is more than one registry.
constexpr int64_t inquiry_counts_us = us_per_second;
constexpr int64_t others_count_us = 60 * us_per_second;

Found found = {};
int64_t last_inquiry_us = 0; // on the monotonic clock; 0: the next one is due
int at_once = most_requests; // asks in a call. After a call that failed it is one, because an ask may have been why

// A generator without a grant that lasts.
bool is_newcomer(const Ask &ask) {
    const core::Membership &m = ask.member.membership;
    return !ask.is_block && (!m.holds || core::start_of(ask.member.request.layout, m.held.until) <= wall_clock_us());
}

// Whether all hosts are asked first (core/membership.hpp, 5).
bool asks_all(const Ask &ask) { return is_newcomer(ask) || (!ask.is_block && was_refused(ask.member)); }

// Each server looks for other registries at least once in half the longest grant, so a bit earlier.
int64_t look_after_us() {
    const int64_t half_us = Max(found.longest_us / 2 - found.longest_us / 16, 100 * us_per_ms);
    return found.registries > 1 ? Min(half_us, others_count_us) : half_us;
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

// The log names the first of several errors of a generator, and the first of several generators that one call has
// refused for the same reason.
void note_errors(const Ask *asks, int count) {
    const Ask *logged = nullptr;
    int others = 0;
    for (const Ask *ask = asks; ask < asks + count; ask++) {
        if (ask->is_block || ask->error.at_us == 0)
            continue;
        const bool is_news = note_refused(ask->member);
        membership_note_error(ask->member, ask->error);
        report_error(ask->error);
        if (ask->given.why == core::Refusal::ahead)
            membership_unwant(ask->member);
        if (is_news && logged != nullptr && strcmp(logged->error.message, ask->error.message) == 0) {
            others++;
        } else if (is_news) {
            logged = ask;
            ereport(LOG, (errmsg("generator \"%s\" in database \"%s\" gets no grant from the registry: %s",
                                 ask->member.request.generator, ask->member.request.database, ask->error.message),
                          ask->error.hint[0] != '\0' ? errhint("%s", ask->error.hint) : 0));
        }
    }
    if (others > 0)
        ereport(LOG, (errmsg("%d other generators get no grant for the same reason", others)));
}

void note_error(Ask *asks, int count, const GrantError &error) {
    for (Ask *ask = asks; ask < asks + count; ask++)
        ask->error = error;
    note_errors(asks, count);
}

// What accept() made of the answers goes to the file, and then to the sessions, unless there is no grant among them and
// nothing new of the fleet. No registry gives a grant that accept() does not take, since it refuses a server that has
// seen another fleet, or a later answer than its own.
void take_answers(Ask *asks, int count) {
    auto *changes = static_cast<MembershipChange *>(palloc(sizeof(MembershipChange) * static_cast<Size>(count)));
    const core::FleetSeen before = fleet_known();
    FleetChange change = {before, before, changes, 0};
    bool is_news = false;
    for (Ask *ask = asks; ask < asks + count; ask++) {
        if (ask->is_block && ask->error.at_us == 0 && change.seen.fleet == ask->given.fleet) {
            change.seen = core::seen_after(change.seen, ask->given);
            ask->block_given.term = ask->given.grant.term.number;
        }
        if (ask->is_block || (ask->error.at_us != 0 && ask->given.why == core::Refusal::none))
            continue;
        const bool is_granted = core::accept(&ask->member.membership, &change.seen, ask->given);
        changes[change.count++] = {ask->member.slot, ask->member.membership};
        is_news = is_news || is_granted || ask->member.membership.superseded;
        if (!is_granted && ask->given.why == core::Refusal::none)
            set_not_a_registry(&ask->error);
    }
    GrantError error = {};
    is_news = is_news || change.seen.term != before.term;
    if (!is_news)
        memberships_publish(change); // what was seen proves commits that the registry may lose
    const bool is_stored = !is_news || grant_file_store(change, &error);
    for (Ask *ask = asks; ask < asks + count; ask++) {
        if (!is_stored)
            ask->error = error;
        else if (!ask->is_block && ask->error.at_us == 0)
            note_granted(ask->member, ask->lowest);
    }
    note_errors(asks, count);
}

// Of two registries that cannot be told apart, none is asked for a node or a block.
GrantError two_registries() {
    GrantError error = {};
    set_error(&error, psprintf("there is more than one registry: %s and %s", found.host, found.others), stop_others);
    error.names_host = true;
    error.refusal = core::Refusal::rival;
    return error;
}

// Whether an answer may come to the same request later. An error of the connection has closed it.
bool may_pass(const GrantError &error) {
    const core::Scope scope = core::row_of(error.refusal).scope;
    return error.refusal == core::Refusal::none ? !connection_is_open()
                                                : scope == core::Scope::moment || scope == core::Scope::registry;
}

void answer_blocks(const Ask *asks, int count) {
    for (const Ask *ask = asks; ask < asks + count; ask++) {
        if (!ask->is_block)
            continue;
        const BlockState failed = may_pass(ask->error) ? BlockState::asked : BlockState::refused;
        blocks_answer(ask->block, {ask->error.at_us == 0 ? BlockState::ready : failed, ask->block_given, ask->error});
        note_block_asked();
        if (ask->error.at_us != 0)
            report_error(ask->error);
    }
}

// Those that may not be asked now come to the end.
int put_off(Ask *asks, int count, bool (*is_put_off)(const Ask &)) {
    int rest = 0;
    for (int i = 0; i < count; i++)
        if (!is_put_off(asks[i])) {
            const Ask kept = asks[i];
            asks[i] = asks[rest];
            asks[rest++] = kept;
        }
    return rest;
}

void ask(Ask *asks, int count) {
    GrantError error = {};
    int asked = count;
    if (!found.is_alone) {
        asked = put_off(asks, count, [](const Ask &ask) { return ask.is_block || is_newcomer(ask); });
        note_error(asks + asked, count - asked, two_registries());
    }
    const core::FleetSeen seen = fleet_known();
    if (server_state->fleet.unstored && !grant_file_store({seen, seen, nullptr, 0}, &error)) {
        const int blocks = put_off(asks, asked, [](const Ask &ask) { return !ask.is_block; });
        note_error(asks + blocks, asked - blocks, error);
        asked = blocks;
    }
    const int64_t sent_us = wall_clock_us();
    int64_t clock_us = 0;
    const int answered = asked > 0 ? call_registry(asks, asked, found.other, &clock_us, &error) : 0;
    if (answered > 0) {
        at_once = Min(2 * at_once, most_requests);
        report_clocks(sent_us, clock_us);
        take_answers(asks, answered);
    } else if (asked > 0) {
        at_once = 1;
        note_error(asks, asked, error);
    }
    answer_blocks(asks, answered > 0 ? answered : asked);
    answer_blocks(asks + asked, count - asked);
}

// ---------------------------------------------------------------------------------------------------------
// The connection
// ---------------------------------------------------------------------------------------------------------

// Asks all hosts of the connection string.
void connect() {
    GrantError error;
    const core::FleetSeen seen = fleet_known();
    const bool connected = connection_inquire(new_request(seen), seen, &found, &error);
    last_inquiry_us = monotonic_us();
    if (connected && found.awaits_member)
        ask_for_lasting_grant();
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
    ask_everything_again(); // so that a wrong setting is found out while the grants last
}

// ---------------------------------------------------------------------------------------------------------
// The process
// ---------------------------------------------------------------------------------------------------------

// One round: connects, asks for what waits, or sleeps. False: the process may end.
bool one_round() {
    if (ConfigReloadPending) {
        ConfigReloadPending = false;
        read_settings();
    }
    Agenda agenda = look_around();
    if (!agenda.any)
        return !worker_may_end(SingleWorker::registrar, [] { return look_around().any; });
    int count = 0;
    Ask *asks = agenda.due ? next_asks(agenda, at_once, &count) : nullptr;
    bool is_for_all = false;
    for (int i = 0; i < count; i++)
        is_for_all = is_for_all || asks_all(asks[i]);
    const int64_t looked_ago_us = monotonic_us() - last_inquiry_us;
    if (connection_is_open() &&
        ((is_for_all && looked_ago_us > inquiry_counts_us) || looked_ago_us > look_after_us())) {
        connect();
    } else if (!connection_is_open()) {
        const int64_t wait_us = attempt_in_us(agenda.wanted);
        if (wait_us > 0)
            connection_nap(wait_us);
        else
            connect();
    } else if (count == 0) {
        connection_nap(Min(agenda.next_us, look_after_us() - looked_ago_us));
    } else {
        ask(asks, count);
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
