// The registrar: a background process that asks the registry of the fleet for grants, and for blocks of segments, ahead
// of use.
//
// The first draw that needs it starts it, and so does each lease in a grant while none runs. It ends when no generator
// of the server has drawn for ten grants' length and no block was asked for of late, or when uidgen.registry is empty.
// It has no database connection, so it blocks no other command. It can be killed at any moment:
//   1. An incarnation that follows another one is in the file of grants before it asks (grant_file_restore()), so that
//      the registry can tell which of two lives is the later one, even if the answer is lost.
//   2. A grant is in the file before sessions see it.
// A server has one of it (memory/workers.hpp).

#include <algorithm>

#include "asks.hpp"
#include "grant_file.hpp"
#include "report.hpp"

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
uint64_t moves = 0;          // of the server, as of the beginning of this round
bool is_block_lost = false;  // one came that could not be used, because the file of grants could not be written
int at_once = most_requests; // asks in a call. After a call that failed it is one, because an ask may have been why

// A generator without a grant that lasts.
bool is_newcomer(const Ask &ask) {
    const core::Membership &m = ask.member.membership;
    return !ask.is_block && (!m.holds || core::start_of(ask.member.request.layout, m.held.until) <= wall_clock_us());
}

// Whether all hosts are asked first (core/membership.hpp, 5).
bool asks_all(const Ask *ask) { return is_newcomer(*ask) || (!ask->is_block && ask->member.notes.pause_us != 0); }

// Each server looks for other registries at least once in half the longest grant, so a bit earlier.
int64_t look_after_us() {
    const int64_t half_us = Max(found.longest_us / 2 - found.longest_us / 16, 100 * us_per_ms);
    return found.registries > 1 ? Min(half_us, others_count_us) : half_us;
}

// ---------------------------------------------------------------------------------------------------------
// Asking
// ---------------------------------------------------------------------------------------------------------

// Of two registries that cannot be told apart, none is asked for a node or a block.
GrantError two_registries() {
    GrantError error = make_error(psprintf("there is more than one registry: %s and %s", found.host, found.others),
                                  stop_others, core::Refusal::rival);
    error.names_host = true;
    return error;
}

void fail(Ask *ask, const GrantError &error) {
    ask->is_over = true;
    ask->error = error;
}

// False: it can be sent.
bool fail_if_unsendable(Ask *ask, const GrantError &unstored) {
    if (!found.is_alone && (ask->is_block || is_newcomer(*ask)))
        fail(ask, two_registries());
    else if (unstored.at_us != 0 && (is_block_lost || !ask->is_block))
        fail(ask, unstored);
    return ask->is_over;
}

// Whether the answer changes the membership. No registry gives a grant that accept() does not take, since it refuses a
// server that has seen another fleet, or a later answer than its own.
bool take_answer(Ask *ask, core::FleetSeen *seen) {
    FleetBlock *block = &ask->block.answer.block;
    if (ask->is_block && ask->error.at_us == 0 && block->count > 0) {
        *seen = core::seen_after_block(*seen, ask->given);
        block->term = seen->term.number;
    }
    if (ask->is_block || (ask->error.at_us != 0 && ask->given.why == core::Refusal::none))
        return false;
    const bool is_granted = core::accept(&ask->member.membership, seen, ask->given);
    if (is_granted)
        note_granted(ask);
    else if (ask->given.why == core::Refusal::none)
        ask->error = not_a_registry();
    return is_granted || ask->member.membership.superseded;
}

// What the answers change goes to the file, and then to the sessions.
void publish(const List *changed) {
    const ListCell *cell = nullptr;
    foreach (cell, changed)
        membership_publish(*static_cast<const Member *>(lfirst(cell)));
}

struct Kept {
    bool counts;
    GrantError error; // at_us 0: nothing, or it was stored
};

// Keeps what answers have shown and changed. They do not count if they could not be stored, if a database knows of a
// later term by now, or after uid_fleet_move(), which waits for the file's lock. That of a membership which has ended
// otherwise changes nothing (memberships.hpp, 2). Under that lock.
Kept keep(const core::FleetSeen &before, const core::FleetSeen &seen, const List *changed) {
    const bool is_moved = server_state->fleet.moves.load(std::memory_order_relaxed) != moves;
    const bool is_past = is_moved || core::is_past(before, seen.fleet, seen.term);
    const bool is_news = !is_past && (changed != NIL || seen.term != before.term);
    const GrantError error = is_news ? grant_file_store(seen, changed) : GrantError{};
    const bool is_stored = error.at_us == 0;
    const bool counts = !is_past && is_stored && fleet_note_seen(seen);
    if (counts)
        publish(changed);
    else if (is_news && is_stored) // a database has shown a later term meanwhile: the file must not have these answers
        (void)grant_file_store(fleet_seen(), NIL);
    return {counts, error};
}

// Of what could not be stored the copies of the members become again what they were, but that a superseded one ends.
// Should a start forget it, the registry says it again.
void take_answers(Ask *const *asks, int count) {
    auto *unchanged = static_cast<Member *>(palloc(sizeof(Member) * static_cast<Size>(count)));
    List *changed = NIL;
    lock_grant_file();
    const core::FleetSeen before = fleet_known();
    core::FleetSeen seen = before;
    for (int i = 0; i < count; i++) {
        unchanged[i] = asks[i]->member;
        if (take_answer(asks[i], &seen))
            changed = lappend(changed, &asks[i]->member);
    }
    const Kept kept = keep(before, seen, changed);
    const bool is_stored = kept.error.at_us == 0;
    is_block_lost = !is_stored && seen.term != before.term;
    unlock_grant_file();
    for (int i = 0; i < count; i++) {
        asks[i]->is_over = kept.counts || !is_stored;
        if (is_stored)
            continue;
        const bool is_superseded = asks[i]->member.membership.superseded;
        asks[i]->member = unchanged[i];
        asks[i]->member.membership.superseded = is_superseded;
        if (!is_superseded)
            asks[i]->error = kept.error;
    }
}

// Whether an answer may come to the same request later. An error of the connection has closed it.
bool may_pass(const GrantError &error) {
    const core::Scope scope = core::row_of(error.refusal).scope;
    return error.refusal == core::Refusal::none ? !connection_is_open()
                                                : scope == core::Scope::moment || scope == core::Scope::registry;
}

// After a refusal sessions fail at once for a second. After an error that passes by itself the registrar waits so long.
void end_block(Ask *ask) {
    BlockAnswer *answer = &ask->block.answer;
    const BlockState failed = may_pass(ask->error) ? BlockState::asked : BlockState::refused;
    answer->state = ask->error.at_us == 0 ? BlockState::ready : failed;
    answer->error = ask->error;
    ask->block.not_before_us = monotonic_us() + us_per_second;
    block_note(ask->block);
}

// False: it was granted, or refused before, so the log needs no line.
bool end_member(Ask *ask) {
    const bool is_news = ask->member.notes.pause_us == 0;
    if (ask->error.at_us == 0)
        return false;
    note_refused(&ask->member);
    ask->member.error = ask->error;
    membership_publish(ask->member);
    return is_news;
}

// Publishes what came of those that are over. The log names the first of several errors of a generator, and the first
// of several generators that one call has refused for the same reason.
void end_asks(Ask *const *asks, int count) {
    const Ask *logged = nullptr;
    int others = 0;
    for (int i = 0; i < count; i++) {
        Ask *ask = asks[i];
        if (!ask->is_over)
            continue;
        if (ask->error.at_us != 0)
            note_error(ask->error);
        if (ask->is_block)
            end_block(ask);
        else if (!end_member(ask))
            continue;
        else if (logged != nullptr && strcmp(logged->error.message, ask->error.message) == 0)
            others++;
        else {
            logged = ask;
            ereport(LOG, (errmsg("generator \"%s\" in database \"%s\" gets no grant from the registry: %s",
                                 ask->member.request.generator, ask->member.request.database, ask->error.message),
                          ask->error.hint[0] != '\0' ? errhint("%s", ask->error.hint) : 0));
        }
    }
    if (others > 0)
        ereport(LOG, (errmsg("%d other generators get no grant for the same reason", others)));
}

// Stores the incarnations of this start, unless the file has them. After a write that failed, nothing is asked for
// generators until one succeeds.
GrantError store_incarnations() {
    if (!server_state->fleet.unstored)
        return {};
    lock_grant_file();
    const GrantError error = grant_file_store(fleet_seen(), NIL);
    unlock_grant_file();
    return error;
}

// Asks in one call for what can be sent, and publishes what came of it.
void ask(Ask *const *asks, int count) {
    Ask *sent[most_requests];
    int sent_count = 0;
    int64_t clock_us = 0;
    GrantError error = store_incarnations();
    for (int i = 0; i < count; i++)
        if (!fail_if_unsendable(asks[i], error))
            sent[sent_count++] = asks[i];
    const int64_t sent_us = wall_clock_us();
    const int answered = sent_count > 0 ? call_registry(sent, sent_count, found.other, &clock_us, &error) : 0;
    if (answered > 0) {
        at_once = Min(2 * at_once, most_requests);
        note_clocks(sent_us, clock_us);
        take_answers(sent, answered);
    } else if (sent_count > 0) {
        at_once = 1;
        std::for_each_n(sent, sent_count, [&error](Ask *ask) { fail(ask, error); });
    }
    end_asks(asks, count);
}

// ---------------------------------------------------------------------------------------------------------
// The connection
// ---------------------------------------------------------------------------------------------------------

// The registry cannot be used: every member, and every session that waits for a block, learns why.
void publish_error(const GrantError &error) {
    for_each_member([&error](Member member) {
        member.error = error;
        if (member.requested)
            membership_publish(member);
    });
    for_each_asked_block([&error](AskedBlock asked) {
        asked.answer.error = error;
        block_note(asked);
    });
    note_away(error, found);
}

// An error: a later term could not be stored.
GrantError take_hello(const core::Answer &hello) {
    lock_grant_file();
    const core::FleetSeen before = fleet_known();
    const Kept kept = keep(before, core::seen_after_hello(before, hello), NIL);
    unlock_grant_file();
    return kept.error;
}

// Asks all hosts of the connection string. A registry whose term cannot be stored is not used: nothing that it gives
// would count, and the next attempt stores it.
void connect() {
    GrantError error;
    const core::FleetSeen seen = fleet_known();
    bool connected = connection_inquire(new_request(seen), seen, &found, &error);
    const GrantError unstored = take_hello(found.hello);
    last_inquiry_us = monotonic_us();
    if (connected && unstored.at_us != 0) {
        connection_close();
        connected = false;
        error = unstored;
    }
    if (connected && found.awaits_member)
        ask_for_lasting_grant();
    if (connected)
        note_connected(found);
    else if (!ShutdownRequestPending)
        publish_error(error);
}

// How long until the next attempt; at most 0: now. The pause is up to a quarter longer or shorter, so that the members
// of a fleet do not return at one moment.
int64_t attempt_in_us(bool wanted) {
    uint8_t random = 128;
    (void)pg_strong_random(&random, sizeof(random));
    return last_inquiry_us + (wanted ? pause_if_wanted_us : pause_us) * (192 + random / 2) / 256 - monotonic_us();
}

void reload_settings() {
    ProcessConfigFile(PGC_SIGHUP);
    last_inquiry_us = 0; // if there is more than one registry, they are looked for again
    if (!connection_use(settings::registry))
        return;
    note_disconnected();
    found = {};
    ask_everything_again(); // so that a wrong setting is found out while the grants last
}

// ---------------------------------------------------------------------------------------------------------
// The process
// ---------------------------------------------------------------------------------------------------------

// One round: connects, asks for what waits, or sleeps. False: the process may end.
bool one_round() {
    const uint64_t moved = server_state->fleet.moves.load(std::memory_order_relaxed);
    if (ConfigReloadPending || moved != moves) { // the line may have been changed just before
        moves = moved;
        ConfigReloadPending = false;
        reload_settings();
    }
    Agenda agenda = look_around();
    if (settings::registry[0] == '\0')
        memberships_rest();
    if (!agenda.any)
        return !worker_resigns(SingleWorker::registrar, [] { return look_around().any; });
    const int count = take_due(&agenda, at_once);
    const bool is_for_all = std::any_of(agenda.asks, agenda.asks + count, asks_all);
    const int64_t looked_ago_us = monotonic_us() - last_inquiry_us;
    const bool is_open = connection_is_open();
    const bool must_look = is_open && is_for_all && looked_ago_us > inquiry_counts_us;
    const int64_t look_in_us = is_open ? look_after_us() - looked_ago_us : attempt_in_us(agenda.wanted);
    if (must_look || look_in_us <= 0)
        connect();
    else if (is_open && count > 0)
        ask(agenda.asks, count);
    else
        connection_nap(is_open ? Min(next_due_us(agenda), look_in_us) : look_in_us);
    return true;
}

void serve() {
    MemoryContext context = AllocSetContextCreate(TopMemoryContext, "uidgen registrar", ALLOCSET_DEFAULT_SIZES);
    MemoryContextSwitchTo(context);
    while (!ShutdownRequestPending && one_round()) {
        if (!connection_is_open())
            note_connection_lost();
        MemoryContextReset(context);
    }
    connection_close();
    note_disconnected();
}

} // namespace

UIDGEN_WORKER_MAIN(uidgen_registrar_main) {
    pqsignal(SIGTERM, SignalHandlerForShutdownRequest);
    pqsignal(SIGHUP, SignalHandlerForConfigReload);
    begin_as_worker(SingleWorker::registrar);
    (void)connection_use(settings::registry);
    connection_limit_memory();
    serve();
    proc_exit(0);
}

} // namespace uidgen::pg
