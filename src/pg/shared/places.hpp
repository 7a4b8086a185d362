// The places of grants: one for each generator that draws while uidgen.registry is set. A place holds the generator's
// membership in the fleet, what is asked of the registry for it, and the grant that its sessions draw with.
//
// grants.hpp is for the sessions that draw, memberships.hpp for the registrar and the status view. What is declared
// here below GrantOrder is for their files.
//
// There are as many places as slots. A place outlives its generator's slot, because a grant lasts longer than a slot
// that is reclaimed. It is given up when the generator is dropped, or for another generator when all are in use: then
// the one that was unused longest, of those whose generator has no slot. Its generator asks as a newcomer when it draws
// again, and gets another node.
//
// Locking contract
//   1. One LWLock, the places lock, guards keys, orders and memberships. No I/O and no wait happens under it. The
//      directory lock of the slots may be taken under it, never the reverse. It is never held together with a page
//      lock.
//   2. What sessions read to draw, the view of a grant, is published by a sequence lock (core/grant_view.hpp): one
//      writer at a time (under the exclusive places lock), readers without a lock.
//   3. The registrar is the only process that changes a membership, except for grants_begin_lines() and grants_place()
//      (under the lock). memberships_publish() therefore refuses a membership that follows from another one than the
//      place has. Incarnations are random numbers, so a place that another generator had meanwhile, or the same one in
//      another line, is told from the former one.
//   4. Another LWLock serializes the writers of the file of grants. The places lock may be taken under it.
//   5. A session may keep the number of a place as long as it may use the generator's slot. So a place is given up only
//      under a lock that excludes all users of the generator, or while the generator has no slot. A session that makes
//      the slot afterwards waits for the places lock before it learns of a place.
//
// Why a grant of a place that was given up harms nobody:
//   1. Its ticks stay the former line's. The registry grants the node to another line from the end of the grant on.
//   2. An answer that is under way for the line is not published, by (3) of the contract.
//   3. The file of grants may still have the line, until it is written again. A start then goes on with the line. That
//      is right, because no later line of the generator has drawn: its incarnation would be in the file instead.
#pragma once

#include <atomic>

#include "base/compat.hpp"
#include "core/grant_view.hpp"
#include "core/membership.hpp"
#include "registry_error.hpp"
#include "slots.hpp"

namespace uidgen::pg {

// What the registrar needs to ask for a generator. Set by the first session that draws after a start, an alteration, or
// a change of uidgen.registry.
struct GrantOrder {
    core::Layout layout;
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

// All but the atomics, the view and the condition variable is guarded by the places lock.
struct Place {
    bool used;
    bool ordered;  // else it comes from the file, and no session has used it yet
    bool has_slot; // set and read by the session that looks for a place to give up
    SlotKey key;
    GrantOrder order;
    core::Membership membership;
    int64_t renewals;
    GrantError error;
    core::SharedGrantView<> view;
    std::atomic<int64_t> wanted;
    std::atomic<int64_t> used_at_us;
    std::atomic<uint64_t> errors; // counts the errors that were noted
    ConditionVariable changed;
};

// Stands before the places. Guarded by the lock, but for the atomics.
struct PlacesHeader {
    core::FleetSeen seen;        // what is known of the fleet
    std::atomic<uint32_t> epoch; // grants_epoch(); written by the postmaster
    uint32_t changes;            // of the setting; the postmaster's
};

constexpr int no_place = -1;

void places_request_memory(); // from shmem_request_hook
void places_attach_memory();  // from shmem_startup_hook; afterwards the file of grants is read

PlacesHeader *places_header(); // null: there is no shared memory yet
int grants_places();           // the number of places ever used; no other is in use

Place *place_at(int index);
int index_of(const Place *place);

void lock_places(LWLockMode mode);
void unlock_places();

void lock_grant_file();
void unlock_grant_file();

// Wakes the sessions that wait for the place, if it still belongs to that generator.
void grants_note_error(int place, SlotKey key, const GrantError &error);

// A random number that was never used: the name of an incarnation. Positive, never 0.
uint64_t fresh_incarnation();
bool try_fresh_incarnation(uint64_t *fresh); // raises no error

// All of the following under the places lock; what changes a place under the exclusive one.

// Null: the generator has none.
Place *find_place(const SlotKey &key);

// Null unless the place still belongs to that generator.
Place *place_of(int index, const SlotKey &key);

// A place that no generator has. Null: there is none.
Place *take_unused_place(const SlotKey &key);

// The same; if there is none, another generator's place is given up. The caller's generator has a slot, and no place.
Place *take_place(const SlotKey &key);

void give_up_place(Place *place);

// Has the membership begin as a newcomer's, without a grant. `fresh` is a random number that was never used.
void begin_line_at(Place *place, uint64_t fresh);

core::GrantView view_of(const core::Membership &membership);

} // namespace uidgen::pg
