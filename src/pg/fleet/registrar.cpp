// The registrar: a background process that asks the registry of the fleet for grants, and for blocks of segments, ahead
// of use.
//
// The first draw that needs it starts it, and so does each lease in a grant while none runs. It ends when no generator
// of the server has drawn for ten grants' length and no block was asked for of late, or when uidgen.registry is empty.
// It has no database connection, so it blocks no other command. It can be killed at any moment:
//   1. The token that a call names is in the file of grants before the call is sent (core/holding.hpp, 1).
//   2. A grant is in the file before sessions see it.
// A server has one of it (memory/workers.hpp).

#include <algorithm>

#include "asks.hpp"
#include "grant_file.hpp"
#include "report.hpp"

namespace uidgen::pg {
namespace {

// Between two attempts, after one that failed, and between two if a session waits for a grant.
constexpr int64_t pause_us = 5 * us_per_second;
constexpr int64_t pause_if_wanted_us = 500 * us_per_ms;

// A connection is used for so long after the hello to all hosts. Unless a segment needs blocks, it ends at once.
constexpr int64_t hello_counts_us = 5 * us_per_second;

Found found = {};            // while the connection is open
int64_t connected_at_us = 0; // the time of its hello on the monotonic clock
int64_t failed_at_us = 0;    // the last attempt, on the monotonic clock; 0: it has succeeded
uint64_t moves = 0;          // of the server, as of the beginning of this round
int at_once = most_requests; // asks in a call. After a call that failed it is one, because an ask may have been why

// ---------------------------------------------------------------------------------------------------------
// Asking
// ---------------------------------------------------------------------------------------------------------

// Sets the error in the asks. Publishes and logs nothing.
void fail_asks(Ask *const *asks, int count, const GrantError &error) {
    std::for_each_n(asks, count, [&error](Ask *ask) {
        ask->is_over = true;
        ask->error = error;
    });
}

// Publishes the copies of members, which are stored, in their slots, each under its lock (membership_publish()).
void publish_members(Ask *const *asks, int count) REQUIRES(grant_file_lock) EXCLUDES(slot_lock, state_lock) {
    std::for_each_n(asks, count, [](const Ask *ask) { membership_publish(ask->member); });
}

// After uid_fleet_move(), which waits for the file's lock, nothing counts that was asked for before. Reads
// an atomic; under lock_grant_file(), so that it stays so.
bool is_moved() { return server_state->fleet.moves.load(std::memory_order_relaxed) != moves; }

// Writes what the calls will say, and what the server has seen (fleet_seen()), to the file of grants, under its lock,
// and publishes it in the slots (publish_members()). False: the server has moved, or it could not be written: then the
// asks end with that error (fail_asks()).
bool prepare_and_store(Ask *const *asks, int count) EXCLUDES(grant_file_lock, slot_lock, state_lock) {
    List *members = NIL;
    GrantError error = {};
    lock_grant_file();
    const bool counts = !is_moved();
    if (counts) {
        std::for_each_n(asks, count, [&members](Ask *ask) {
            prepare_ask(ask);
            members = lappend(members, &ask->member);
        });
        error = grant_file_store(fleet_seen(), members);
        if (error.at_us == 0)
            publish_members(asks, count);
    }
    unlock_grant_file();
    if (error.at_us != 0)
        fail_asks(asks, count, error);
    return counts && error.at_us == 0;
}

// Stores in the file of grants what answers have shown and changed (grant_file_store()), and sets in the server state
// what the server has seen of its fleet.
GrantError store_answers(const core::FleetSeen &known, const Taken &taken) REQUIRES(grant_file_lock)
    EXCLUDES(slot_lock, state_lock) {
    const bool is_news = taken.changed != NIL || memcmp(&known, &taken.seen, sizeof(known)) != 0;
    const GrantError error = is_news ? grant_file_store(taken.seen, taken.changed) : GrantError{};
    if (error.at_us == 0) {
        fleet_set_seen(taken.seen);
        note_fleet(known, taken.seen);
    }
    return error;
}

// Stores (store_answers()) and publishes in the slots (publish_members()) what answers have shown and changed, under
// the file's lock. A grant does not count if it could not be stored; the repeat of the call gets it again. A node that
// was taken is dropped at once.
void take_answers(Ask *const *asks, int count, const PGresult *rows) EXCLUDES(grant_file_lock, slot_lock, state_lock) {
    auto *before = static_cast<Member *>(palloc(sizeof(Member) * static_cast<Size>(count)));
    std::transform(asks, asks + count, before, [](const Ask *ask) { return ask->member; });
    lock_grant_file();
    if (!is_moved()) {
        const core::FleetSeen known = fleet_seen();
        Taken taken = {known, NIL};
        accept_grants(asks, count, rows, found.hello, &taken);
        const GrantError error = store_answers(known, taken);
        for (int i = 0; i < count && error.at_us != 0; i++) {
            if (asks[i]->error.at_us != 0 || !asks[i]->is_over)
                continue;
            asks[i]->member = before[i];
            asks[i]->error = error;
        }
        publish_members(asks, count);
    }
    unlock_grant_file();
}

// Only a former registry, or that of another fleet, has answered.
bool is_away(const GrantError &error) {
    return error.why == core::Why::outdated || error.why == core::Why::other_fleet;
}

// Closes the connection, and notes, in the log and the status (note_away()), that the next attempt is after a pause.
void give_up_registry(const GrantError &error) EXCLUDES(state_lock) {
    failed_at_us = monotonic_us();
    note_away(error);
    connection_close();
}

// Asks the registry in one call (call_for_grants()), waits, and stores and publishes the answers (take_answers()). May
// find the registry away (give_up_registry()). Without an open connection the asks stay due.
void fetch_grants(Ask *const *asks, int count) EXCLUDES(grant_file_lock, slot_lock, state_lock) {
    GrantError error = {};
    if (count == 0 || !connection_is_open())
        return;
    const PGresult *rows = call_for_grants(fleet_seen(), asks, count, &error);
    if (rows == nullptr) {
        at_once = 1;
        fail_asks(asks, count, error);
        give_up_registry(error);
        return;
    }
    at_once = Min(2 * at_once, most_requests);
    take_answers(asks, count, rows);
    if (is_away(asks[0]->error))
        give_up_registry(asks[0]->error);
}

// Asks the registry for a block (call_for_block()), and waits. May find it away (give_up_registry()). What a server has
// seen by a block must last over a restart, too, before a value of it is drawn: that goes to the file of grants, under
// its lock (store_answers()).
void fetch_block(Ask *ask) EXCLUDES(grant_file_lock, slot_lock, state_lock) {
    if (!connection_is_open())
        return;
    const core::FleetSeen known = fleet_seen();
    Taken taken = {known, NIL};
    call_for_block(ask, found.hello, &taken);
    lock_grant_file();
    if (is_moved())
        ask->is_over = false;
    else if (ask->error.at_us == 0)
        ask->error = store_answers(known, taken);
    unlock_grant_file();
    if (is_away(ask->error))
        give_up_registry(ask->error);
}

// Whether an answer may come to the same request later. An error of the connection has closed it.
bool may_pass(const GrantError &error) { return error.why == core::Why::granted || is_away(error); }

// Answers in the place of the block, under the slot's lock (block_note()). After a refusal sessions fail at once for a
// second. After an error that passes by itself the registrar waits so long.
void end_block(Ask *ask) EXCLUDES(slot_lock, state_lock) {
    BlockAnswer *answer = &ask->block.answer;
    const BlockState failed = may_pass(ask->error) ? BlockState::asked : BlockState::refused;
    answer->state = ask->error.at_us == 0 ? BlockState::ready : failed;
    answer->error = ask->error;
    ask->block.not_before_us = monotonic_us() + us_per_second;
    block_note(ask->block);
}

// Publishes in the member's slot, under its lock, why it got no grant, and when it is asked for again (note_refused(),
// membership_publish()). False: it was granted, or refused before, so the log needs no line.
bool end_member(Ask *ask) EXCLUDES(slot_lock, state_lock) {
    const bool is_news = ask->member.notes.pause_us == 0;
    if (ask->error.at_us == 0)
        return false;
    note_refused(&ask->member);
    ask->member.error = ask->error;
    membership_publish(ask->member);
    return is_news;
}

// Publishes what came of those that are over, in their slots (end_block(), end_member()) and in the status
// (note_error()). The log names the first of several errors of a generator, and the first of several generators that
// one call has refused for the same reason.
void end_asks(Ask *const *asks, int count) EXCLUDES(slot_lock, state_lock) {
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

// Asks the registry for what is due: renewals, then newcomers (prepare_and_store(), fetch_grants()), then blocks
// (fetch_block()). Stores and publishes what comes of it (end_asks()).
void ask_registry(Ask **asks, int count) EXCLUDES(grant_file_lock, slot_lock, state_lock) {
    Ask **const end = asks + count;
    Ask **const blocks = std::partition(asks, end, [](const Ask *ask) { return !ask->is_block; });
    Ask **const newcomers =
        std::partition(asks, blocks, [](const Ask *ask) { return !core::calls_as_newcomer(ask->member.holding); });
    if (blocks == asks || prepare_and_store(asks, static_cast<int>(blocks - asks))) {
        fetch_grants(asks, static_cast<int>(newcomers - asks));
        fetch_grants(newcomers, static_cast<int>(blocks - newcomers));
    }
    std::for_each(blocks, end, fetch_block);
    end_asks(asks, count);
}

// ---------------------------------------------------------------------------------------------------------
// The connection
// ---------------------------------------------------------------------------------------------------------

// The registry cannot be used: every member that has been asked for, and every session that waits for a block, learns
// why by its slot (membership_publish(), block_note()). Then give_up_registry().
void publish_error(const GrantError &error) EXCLUDES(slot_lock, state_lock) {
    for_each_member([&error](Member member) {
        member.error = error;
        if (member.requested)
            membership_publish(member);
    });
    for_each_asked_block([&error](AskedBlock asked) {
        asked.answer.error = error;
        block_note(asked);
    });
    give_up_registry(error);
}

// Asks all hosts of the connection string, and waits (connection_inquire()). Sets the status (note_connected(),
// note_clocks()), or has all know the error (publish_error()).
void connect_to_registry() EXCLUDES(grant_file_lock, slot_lock, state_lock) {
    GrantError error;
    if (connection_inquire(fleet_seen(), &found, &error)) {
        connected_at_us = monotonic_us();
        note_clocks(found.sent_us, found.hello.clock);
        note_connected(found);
    } else if (!ShutdownRequestPending) {
        publish_error(error);
    }
}

// Whether the open connection may still be used without another hello to all hosts.
bool connection_counts() { return connection_is_open() && monotonic_us() - connected_at_us < hello_counts_us; }

// How long until the next attempt; at most 0: now. The pause is up to a quarter longer or shorter, so that the members
// of a fleet do not return at one moment.
int64_t attempt_in_us(bool wanted) {
    uint8_t random = 128;
    if (failed_at_us == 0)
        return 0;
    (void)pg_strong_random(&random, sizeof(random));
    return failed_at_us + (wanted ? pause_if_wanted_us : pause_us) * (192 + random / 2) / 256 - monotonic_us();
}

// After SIGHUP or uid_fleet_move(): reads the configuration file. Another connection string closes the connection, ends
// the pause after a failure, sets the status, and makes all due, in the slots (ask_everything_again()).
void reload_settings() EXCLUDES(slot_lock, state_lock) {
    ProcessConfigFile(PGC_SIGHUP);
    if (!connection_use(settings::registry))
        return;
    failed_at_us = 0;
    note_disconnected();
    ask_everything_again(); // so that a wrong setting is found out while the grants last
}

// ---------------------------------------------------------------------------------------------------------
// The process
// ---------------------------------------------------------------------------------------------------------

// Makes an attempt for what is due (connect_to_registry(), ask_registry(), note_back()), or disconnects and sleeps
// (connection_nap()).
void attempt_or_sleep(Agenda *agenda) EXCLUDES(grant_file_lock, slot_lock, state_lock) {
    const int64_t pause = attempt_in_us(agenda->wanted);
    const int count = pause <= 0 ? take_due_asks(agenda, at_once) : 0;
    if (count == 0) {
        if (!agenda->draws_blocks || !connection_counts())
            connection_close();
        const int64_t left_us = Max(next_due_us(*agenda), pause);
        connection_nap(connection_is_open() ? Min(left_us, hello_counts_us) : left_us);
        return;
    }
    if (!connection_counts()) {
        connection_close();
        connect_to_registry();
    }
    if (!connection_is_open())
        return;
    failed_at_us = 0;
    ask_registry(agenda->asks, count);
    if (failed_at_us == 0)
        note_back();
}

// One round: reads changed settings (reload_settings()), looks at all slots (make_agenda()), asks or sleeps
// (attempt_or_sleep()). Out of the fleet, it sets atomics of slots (memberships_rest()). False: the process has
// resigned (worker_resigns()), and may end.
bool registrar_round() EXCLUDES(grant_file_lock, slot_lock, state_lock) {
    const uint64_t moved = server_state->fleet.moves.load(std::memory_order_relaxed);
    if (ConfigReloadPending || moved != moves) { // the line may have been changed just before
        moves = moved;
        ConfigReloadPending = false;
        reload_settings();
    }
    Agenda agenda = make_agenda();
    if (settings::registry[0] == '\0')
        memberships_rest();
    if (!agenda.any)
        return !worker_resigns(SingleWorker::registrar, [] { return make_agenda().any; });
    attempt_or_sleep(&agenda);
    return true;
}

// The registrar's loop of registrar_round(), in a memory context of its own, until it may end or is asked to. Then
// closes the connection, and sets the status (note_disconnected()).
void serve_members() EXCLUDES(grant_file_lock, slot_lock, state_lock) {
    MemoryContext context = AllocSetContextCreate(TopMemoryContext, "uidgen registrar", ALLOCSET_DEFAULT_SIZES);
    MemoryContextSwitchTo(context);
    while (!ShutdownRequestPending && registrar_round())
        MemoryContextReset(context);
    connection_close();
    note_disconnected();
}

} // namespace

// The process of the registrar, without a database: begin_as_worker(), connection_limit_memory(), serve_members().
UIDGEN_WORKER_MAIN(uidgen_registrar_main) {
    pqsignal(SIGTERM, SignalHandlerForShutdownRequest);
    pqsignal(SIGHUP, SignalHandlerForConfigReload);
    begin_as_worker(SingleWorker::registrar);
    (void)connection_use(settings::registry);
    connection_limit_memory();
    serve_members();
    proc_exit(0);
}

} // namespace uidgen::pg
