// What the registrar is to ask for, when, and how: grants of generators, and blocks of segments that are attached to
// ones of the registry (memory/memberships.hpp). First come, first served: what has waited longest for the registry
// comes first, whether it is a newcomer, a renewal or a block. One that was refused waits longer each time, so that it
// holds up nothing else. One call has many asks of generators; renewals go first, in a call of their own.
#pragma once

#include "connection.hpp"
#include "message.hpp"

namespace uidgen::pg {

// A generator or a segment that waits for the registry, and what came of it.
struct Ask {
    int64_t since_us; // since when it is due, on the monotonic clock, as the next one
    int64_t along_us; // from when on it goes along with one that is due
    bool is_block;
    Member member;    // unless it is a block
    AskedBlock block; // if it is one
    int64_t lowest;   // tick that the member needs
    bool is_over;     // it was answered or has failed; else it is still due
    GrantError error; // at_us 0: none; a refusal is one
};

struct Agenda {
    bool any;                 // members are in use, or blocks were asked for of late
    bool wanted;              // a session waits for one
    bool draws_blocks;        // blocks were asked for of late
    Ask *asks[most_requests]; // those that are or become due first, in this order
    int count;
};

// Copies what is asked for from all slots, each under its lock, after a look at the server state (usual_length_us()).
// In the current memory context.
Agenda make_agenda() EXCLUDES(slot_lock, state_lock);

// By the monotonic clock. If an ask is due: it and those that go along come first, at most so many. Returns how many.
int take_due_asks(Agenda *agenda, int most);

// How long until an ask of the agenda is due, by the monotonic clock.
int64_t next_due_us(const Agenda &agenda);

// Sets in a copy of the member when to ask again: after a refusal, and after a grant, with which it draws from now on.
void note_refused(Member *member);
void note_granted(Ask *ask);

// Every member is due at once: publishes so in the slots, each under its lock (membership_publish()).
void ask_everything_again() EXCLUDES(slot_lock, state_lock);

// Before a call, in the copy of the member: what it says of the generator, with a fresh token (core::prepare_call()).
void prepare_ask(Ask *ask);

// What an answer changes in the copies of the asks that were sent.
struct Taken {
    core::FleetSeen seen; // what the server has seen then
    List *changed;        // of the members; those that must be stored
};

// Asks the registry, on the open connection, for grants for all of them, which are prepared and stored. Waits for the
// answer (connection_run()). Null: *error says why.
const PGresult *call_for_grants(const core::FleetSeen &seen, Ask *const *asks, int count, GrantError *error)
    EXCLUDES(grant_file_lock, slot_lock, state_lock);
// Takes the rows of call_for_grants() into the copies of the members and *taken. Under lock_grant_file(), because the
// caller then stores and publishes them. Logs lost nodes.
void accept_grants(Ask *const *asks, int count, const PGresult *rows, const core::Hello &hello, Taken *taken);

// Asks the registry, on the open connection, for a block, and waits (connection_run()). *ask and *taken have the
// answer.
void call_for_block(Ask *ask, const core::Hello &hello, Taken *taken) EXCLUDES(grant_file_lock, slot_lock, state_lock);

} // namespace uidgen::pg
