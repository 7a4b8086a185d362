// The memberships of this server's generators in a fleet, in shared memory, and what passes between the sessions that
// draw and the registrar, which asks the registry.
//
// There is one table with a place for each generator that draws while uidgen.registry is set (as many as there are
// slots). A place outlives its generator's slot, because a grant lasts longer than a slot that is reclaimed. It ends
// when the generator is dropped.
//
// Locking contract
//   1. One LWLock, the grants lock, guards keys, orders and memberships. No I/O and no wait happens under it. It is
//      never held together with the directory lock or a page lock, except that it may be taken after the directory
//      lock.
//   2. What sessions read to draw, the view of a grant, is published by a sequence lock (core/grant_view.hpp): one
//      writer at a time (under the exclusive grants lock), readers without a lock.
//   3. The registrar is the only process that changes a membership, except for grants_begin_lines() and a place's first
//      grants_place() (under the lock). grants_publish() therefore refuses a membership that follows from another one
//      than the place has.
//   4. Another LWLock serializes the writers of the file of grants. The grants lock may be taken under it.
//   5. A session may keep the number of a place as long as it may use the generator's slot: a place is given up only
//      under a lock that excludes all users of the generator.
#pragma once

#include "base/compat.hpp"
#include "core/grant_view.hpp"
#include "core/membership.hpp"
#include "slots.hpp"

namespace uidgen::pg {

// What a session may draw with: read once before a draw, and used for all of it, so that the node of an id is fixed
// before the word is swapped. A view that has become old is still right: its ticks belong to its node for ever.
using core::GrantView;

// What the registrar needs to ask for a generator. Set by the first session that draws after a start, an alteration, or
// a change of uidgen.registry.
struct GrantOrder {
    core::Layout layout;
    int64_t term;   // that the generator draws in; a line is for one term, because its ids have no other node
    int64_t length; // ticks: max(uidgen.registry_lease, 2 x (max_ahead + lease))
    WorkerPolicy policy;
    int32_t worker_number; // of WorkerPolicy::fixed
    int32_t datacenter_id; // the generator's own or the setting; -1: none that fits
    int64_t former_node;   // the node that the generator drew with before it had a registry; -1: none
    int64_t former_until;  // the first tick above the high-water mark that it had then
    char preset[NAMEDATALEN];
    char generator[2 * NAMEDATALEN + 8]; // qualified name, shortened if need be
    char database[NAMEDATALEN];
};

constexpr int no_place = -1;

void grants_request_memory(); // from shmem_request_hook
void grants_attach_memory();  // from shmem_startup_hook; afterwards the file of grants is read (grants_restore())

// Whether uidgen.registry is set, and whether it has changed since: 0, or a number that changes with the setting. It is
// the postmaster's setting that counts, because sessions read theirs late, some in mid-query.
uint32_t grants_epoch();

// The setting changes. Does nothing but in the postmaster.
void grants_set_fleet(bool in_fleet);

// ---------------------------------------------------------------------------------------------------------
// For the sessions.
// ---------------------------------------------------------------------------------------------------------

// The place of a generator, made if there is none; no_place: all are in use. `order` replaces the one that it has. A
// new line begins without `has_mark`, if the place comes from the file (the generator never leased, so the grant in the
// file is not its own), and if the layout or the term differs.
int grants_place(SlotKey generator, const GrantOrder &order, bool has_mark);

GrantView grants_view(int place);

// Notes that a session draws from the generator, by a reading of the wall clock.
void grants_note_use(int place, int64_t now_us);

// Asks the registrar for a grant that reaches above `lowest` (ticks). Starts the registrar if none runs. Returns at
// once.
void grants_want(int place, int64_t lowest);

// Sleeps until the view of the place changes, the last error changes, or the time is over. Honours cancel.
void grants_wait(int place, const GrantView &seen, int64_t timeout_us);

// Why there is no grant: the registry's message or libpq's, without a password. Empty: no answer yet.
struct GrantError {
    char message[512];
    char hint[256];
    int64_t at_us; // 0: none
};
GrantError grants_last_error(int place);

// The generator was dropped.
void grants_forget(SlotKey generator);
void grants_forget_database(Oid database);

// uid_fleet_move(): every generator of this server begins anew, in whatever fleet the registry is of.
void grants_begin_lines();

// ---------------------------------------------------------------------------------------------------------
// For the registrar and the status view.
// ---------------------------------------------------------------------------------------------------------

struct Member {
    SlotKey key;
    bool ordered;     // false: only the file knows it; no session has used it since the server's start
    GrantOrder order; // if not ordered, only the layout and the term
    core::Membership membership;
    int64_t wanted;     // the lowest tick that a session has asked for last; 0: none, or the grant covers it
    int64_t used_at_us; // when a session last read or wanted it, on the wall clock; 0: never
    int64_t renewals;   // grants accepted since the server's start
    GrantError error;
};

int grants_places();                       // the number of places ever used
bool grants_copy(int place, Member *copy); // false: unused
core::FleetSeen grants_fleet_seen();

// In the postmaster, at the start: what the file of grants says. The grant counts at once; the next incarnation must
// have begun already (core::begin_incarnation()). False: there is no place left.
bool grants_restore(SlotKey key, const core::Layout &layout, int64_t term, const core::Membership &membership);
void grants_restore_fleet(const core::FleetSeen &seen);

// Publishes what accept() or begin_incarnation() made of the membership that grants_copy() gave, after the file was
// written. Wakes the sessions that wait for the place. False: the place belongs to another generator by now, or has
// begun another line, so nothing is published.
bool grants_publish(int place, SlotKey key, const core::Membership &membership, const core::FleetSeen &seen);
void grants_note_error(int place, SlotKey key, const GrantError &error);

// No grant reaches that tick, so it is not asked for until a session wants it again.
void grants_unwant(int place, SlotKey key, int64_t wanted);

// Whether grants_publish() would take that for the place, which was copied.
bool grants_may_follow(const Member &present, SlotKey key, const core::Membership &next);

// Held while the file of grants is written or removed; an LWLock of its own.
void grants_lock_file();
void grants_unlock_file();

// A random number that was never used: the name of an incarnation. Positive, never 0.
uint64_t fresh_incarnation();
bool try_fresh_incarnation(uint64_t *fresh); // raises no error

} // namespace uidgen::pg
