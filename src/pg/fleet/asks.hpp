// What the registrar is to ask for, when, and how: grants of generators, and blocks of segments that are attached to
// ones of the registry (memory/memberships.hpp). First come, first served: what has waited longest for the registry
// comes first, whether it is a newcomer, a renewal or a block. One that was refused waits longer each time, so that it
// holds up nothing else. One call has many asks.
#pragma once

#include "connection.hpp"
#include "memory/memberships.hpp"

namespace uidgen::pg {

// A generator or a segment that waits for the registry, and what came of it.
struct Ask {
    int64_t since_us; // since when it is due, on the monotonic clock, as the next one
    int64_t along_us; // from when on it goes along with one that is due
    bool is_block;
    Member member;    // unless it is a block
    AskedBlock block; // if it is one
    int64_t lowest;   // tick that the member needs
    core::Answer given;
    bool is_over;     // it was answered or has failed; else it is still due
    GrantError error; // at_us 0: none; a refusal is one
};

struct Agenda {
    bool any;                 // members are in use, or blocks were asked for of late
    bool wanted;              // a session waits for one
    Ask *asks[most_requests]; // those that are or become due first, in this order
    int count;
};

Agenda look_around(); // in the current memory context

// If one is due: it and those that go along come first in the agenda, at most so many. Returns how many.
int take_due(Agenda *agenda, int most);

// How long until one is due.
int64_t next_due_us(const Agenda &agenda);

// The copy of the member after a refusal, and after a grant (with which it draws from now on).
void note_refused(Member *member);
void note_granted(Ask *ask);

// The member whose grant ends last is due at once: a registry that has started admits newcomers when it is shown one.
void ask_for_lasting_grant();

// Every member is due at once.
void ask_everything_again();

// What this server has seen of its fleet, as it counts in calls.
core::FleetSeen fleet_known();

// A hello, and what every request says of this server.
FleetRequest new_request(const core::FleetSeen &seen);

// Asks for all of them. `other` is another registry that the server has found. Returns how many were answered, from the
// first one on; 0: *error says why. If another server of the registry could answer what this one has refused, the
// connection is closed. *clock_us: the registry's clock.
int call_registry(Ask *const *asks, int count, const GrantedLast &other, int64_t *clock_us, GrantError *error);

} // namespace uidgen::pg
