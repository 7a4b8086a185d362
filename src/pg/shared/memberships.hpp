// The memberships of this server's generators in a fleet, for the registrar, the file of grants and the status view.
// places.hpp says where they are kept, and has the locking contract.
#pragma once

#include "places.hpp"

namespace uidgen::pg {

struct Member {
    SlotKey key;
    bool ordered;     // false: only the file knows it; no session has used it since the server's start
    GrantOrder order; // if not ordered, only the layout
    core::Membership membership;
    int64_t wanted;     // the lowest tick that a session has asked for last; 0: none, or the grant covers it
    int64_t used_at_us; // when a session last read or wanted it, on the wall clock; 0: never
    int64_t renewals;   // grants accepted since the server's start
    GrantError error;
};

bool grants_copy(int place, Member *copy); // false: unused
core::FleetSeen grants_fleet_seen();

// In the postmaster, at the start: what the file of grants says. The grant counts at once; the next incarnation must
// have begun already (core::begin_incarnation()). False: there is no place left.
bool grants_restore(SlotKey key, const core::Layout &layout, const core::Membership &membership);
void grants_restore_fleet(const core::FleetSeen &seen);

// Publishes what accept() or begin_incarnation() made of the membership that grants_copy() gave, after the file was
// written. Wakes the sessions that wait for the place. False: the place belongs to another generator by now, or has
// begun another line, so nothing is published.
bool grants_publish(int place, SlotKey key, const core::Membership &membership, const core::FleetSeen &seen);

// No grant reaches that tick, so it is not asked for until a session wants it again.
void grants_unwant(int place, SlotKey key, int64_t wanted);

// Whether grants_publish() would take that for the place, which was copied.
bool grants_may_follow(const Member &present, SlotKey key, const core::Membership &next);

// uid_fleet_move(): every generator of this server begins anew, in whatever fleet the registry is of.
void grants_begin_lines();

} // namespace uidgen::pg
