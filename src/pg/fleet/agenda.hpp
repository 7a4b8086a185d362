// What the registrar is to ask for, and when. First come, first served: what has waited longest for the registry comes
// first, whether it is a newcomer, a renewal or a block of a segment. One that was refused waits longer each time, so
// that it holds up nothing else.
#pragma once

#include "calls.hpp"

namespace uidgen::pg {

// A generator or a segment that waits.
struct Waiting {
    int64_t since_us; // since when it can be asked for, on the monotonic clock
    Slot *slot;
    bool is_block;
};

struct Agenda {
    bool any;                       // there are members that are in use
    bool wanted;                    // a session waits for one
    bool due;                       // something is to be asked for now
    int64_t next_us;                // how long until something is due
    Waiting waiting[most_requests]; // those that have waited longest, in this order
    int count;
};

Agenda look_around();

// What to ask for in the next call, at most so much.
Ask *next_asks(const Agenda &agenda, int at_once, int *count);

// What came of it. Of a refusal: whether it is the first one since the last grant.
bool note_refused(const Member &member);
void note_granted(const Member &member, int64_t lowest); // with its new grant
void note_block_asked();

// Whether the last answer was a refusal.
bool was_refused(const Member &member);

// The member whose grant ends last is due at once: a registry that has started admits newcomers when it is shown one.
void ask_for_lasting_grant();

// Every member is due at once.
void ask_everything_again();

} // namespace uidgen::pg
