// What a server has one of, in one struct of its shared memory. What it has many of, its slots, is in an area that
// grows (area.hpp), which the struct leads to.
//
// If the library is preloaded, the struct is in the main shared memory. If not, on PostgreSQL 17 and later, it is
// memory with a name that the first process which needs it makes. After an upgrade of the package without a restart,
// processes of two builds may meet there. So name, size and header never change, the header is compared before any lock
// is taken, and a build that lays out shared memory in another way refuses to continue.
//
// Locking contract of src/pg
//   1. Heavyweight locks come first: a sequence's lock lasts to the end of the transaction.
//   2. A sequence's buffer page: its counter, and what its slot knows of it (sequence/sequence.hpp). No wait, no
//      allocation and no error happens under it.
//   3. area.making while the area is made, and fleet.file_lock while the file of grants is written.
//   4. The locks of the table of slots: which slot a sequence has.
//   5. A slot's own lock: what is neither atomic nor guarded by the page (slots.hpp).
//   6. The state's lock: everything here that is neither atomic nor said to be set once; and what a generator has drawn
//      for its node (node_draws.hpp).
//   clang checks what declarations say of these, but for (1) and area.making (base/locks.hpp).
//   They are taken in this order, those of (3) and (4) never together with a page. No background process holds one of
//   them while it waits for anything else, but for file_lock, which waits for the disk.
#pragma once

#include <atomic>

#include "area.hpp"
#include "core/holding.hpp"
#include "counters.hpp"
#include "registry_status.hpp"
#include "workers.hpp"

namespace uidgen::pg {

// Slots of one kind (slots.hpp).
struct SlotLists {
    std::atomic<dsa_pointer> newest; // of all that were ever made; they follow one another by Slot::next
    std::atomic<dsa_pointer> next_look;
    dsa_pointer first_free GUARDED_BY(state_lock); // by Slot::next_free
};
struct AreaState {
    LWLock making; // held while the area is made
    std::atomic<dsa_handle> handle;
    dshash_table_handle table;
    SlotLists slots[slot_kinds];
};

// The last plausible reading of the wall clock, as its offset from the monotonic clock. One figure for the whole
// server; a lease far ahead is written only after a comparison with it (generator/clock.hpp).
struct ServerClock {
    std::atomic<int64_t> offset_us;
    int64_t at_start_us; // set once
    std::atomic<uint64_t> jumps;
};

// Times of lost generators (slots.hpp). Which one depends on the database and the layout.
constexpr uint32_t dropped_times = 512;

struct MemberState {
    core::FleetSeen seen GUARDED_BY(state_lock);
    std::atomic<bool> is_in_fleet; // is_in_fleet(); written by the postmaster
    LWLock file_lock;              // held while memberships are changed, stored and published; before a slot's lock
    int64_t file_length GUARDED_BY(grant_file_lock); // of the file of grants; 0: it must be written whole
    int64_t file_limit GUARDED_BY(grant_file_lock);  // the length beyond which it is written whole again
    std::atomic<uint64_t> moves;                     // calls of uid_fleet_move(); changed under file_lock
    std::atomic<uint64_t> members;                   // memberships that have begun since the server's start
    RegistrarStatus registrar GUARDED_BY(state_lock);
};

// Its place and fields never change.
struct SharedHeader {
    uint64_t magic;
    uint64_t layout; // shared_layout() of the build that made the memory
};

struct ServerState {
    SharedHeader header;
    LWLock lock;
    uint64_t salt;  // 64 random bits that no other server knows; set once
    uint64_t life;  // 64 other ones, because nodes show some of them; set once
    uint64_t place; // place_of_server(); set once, so that nodes do not change while the server runs
    int tranche;    // of all locks; set once
    AreaState area;
    ServerClock clock;
    WorkerState workers[single_workers];
    Oid writer_connects_to; // the node writer's: the database, until it is connected
    MemberState fleet;
    Stats freed GUARDED_BY(state_lock);       // what slots have counted that were freed
    Counters shown;                           // the most of all slots that a reader of the statistics was told
    std::atomic<uint64_t> refused_on_standby; // calls
    std::atomic<int64_t> dropped_until_us[dropped_times];
};

// From shmem_request_hook: asks for room in the main shared memory.
void server_state_request_memory();
// From shmem_startup_hook: finds the struct there, or makes and fills it (place_of_server()), under AddinShmemInitLock.
void server_state_preload();

// Null until this process has attached.
[[gnu::visibility("hidden")]] extern ServerState *server_state;

// Attaches this process, and makes and fills the memory if there is none (place_of_server()). False: the library must
// be preloaded for that. Error if another build has made it, before any of its locks is taken.
bool attach_server_state();

inline void lock_state() ACQUIRE(state_lock) UNCHECKED { LWLockAcquire(&server_state->lock, LW_EXCLUSIVE); }
inline void lock_state_shared() ACQUIRE_SHARED(state_lock) UNCHECKED { LWLockAcquire(&server_state->lock, LW_SHARED); }
inline void unlock_state() RELEASE(state_lock) UNCHECKED { LWLockRelease(&server_state->lock); }

// By how much the wall clock was set since the server's start; all steps together, so 0 if it was set back. Reads the
// clocks, and of shared memory only what is set once.
int64_t clock_moved_us();

} // namespace uidgen::pg
