// What passes between the sessions that draw and the registrar, which asks the registry of the fleet: memberships of
// generators, with the grants that sessions draw with, and blocks of segments. A membership is in the slot of its
// generator, and outlives alterations of it. It ends with the slot.
//
// Locking contract
//   1. The slot's lock guards all but the atomics. No I/O and no wait happens under it.
//   2. The registrar is the only process that changes a membership, except for membership_request(), which may begin
//      another one, and memberships_begin_again() (under the lock), which does. membership_publish() therefore refuses
//      a membership with another number than that of the slot. (If a request is changed while the registrar asks, the
//      refusal that it then publishes is of the former one, and lasts for its pause.)
//
// Why a grant of a membership that has ended does no harm:
//   1. Its ticks stay its own. The registry grants the node to another membership from the end of the grant on.
//   2. An answer that is under way for it is not published, by (2) of the contract.
//   3. The file of grants may still have it, until it is written again. A start then continues it. That is right,
//      because no later membership of the generator has drawn: it would be in the file instead.
#pragma once

#include "base/identity.hpp"
#include "core/holding.hpp"
#include "slots.hpp"

namespace uidgen::pg {

// What the registrar needs to ask for a generator. Set by the first session that draws after a start, an alteration, or
// draws without a registry.
struct GrantRequest {
    core::Layout layout;
    int64_t least_length; // ticks: 2 x (max_ahead + lease)
    WorkerPolicy policy;
    int32_t worker_number; // of WorkerPolicy::fixed
    int32_t datacenter_id; // the generator's own or the setting; -1: none that fits
    int64_t former_node;   // the node that the generator drew with before it had a registry; -1: none
    bool has_leased;       // it has a high-water mark
    bool own_pool;         // it may have ids that generators of another epoch or split have
    char preset[NAMEDATALEN];
    char generator[2 * NAMEDATALEN + 8]; // qualified name, shortened if need be
    char database[NAMEDATALEN];
};

// The usual length of this server's grants: by the setting, and by the longest that the registry gives (fleet_seen()).
int64_t usual_length_us() EXCLUDES(state_lock);

// What the registrar keeps about a member, as long as it is the same.
struct RegistrarNotes {
    int64_t renew_at;      // tick; 0: at once
    int64_t not_before_us; // when it may be asked for (again), on the monotonic clock
    int64_t pause_us;      // after a refusal, which the log has; 0: it was not refused
};

// What the slot's lock guards of a membership.
struct MembershipFields {
    bool requested;       // false: only the file knows it; no session has used it since the server's start
    GrantRequest request; // if not requested, only the layout
    uint64_t number;      // of all memberships since the server's start; 0: there is none
    core::Holding holding;
    int64_t renewals; // grants accepted since the server's start
    GrantError error;
    RegistrarNotes notes;
};

// A generator's membership in the fleet.
struct MembershipState {
    MembershipFields fields GUARDED_BY(slot_lock);
    std::atomic<bool> is_requested;       // false after an alteration, and after a draw without a registry
    std::atomic<int64_t> wanted;          // the lowest tick that a session has asked for last; 0: the grant covers it
    std::atomic<int64_t> wanted_since_us; // since when it is not 0, on the monotonic clock
    std::atomic<int64_t> used_at_us;      // when a session last read or wanted it, on the wall clock; 0: never
    ConditionVariable changed;            // initialised once
};

struct MemberSlot {
    Slot slot;
    MembershipState membership;
};

// The membership in a generator's slot: an address, so no lock is needed.
inline MembershipState &membership_of(Slot *slot) { return reinterpret_cast<MemberSlot *>(slot)->membership; }
inline const MembershipState &membership_of(const Slot *slot) { return membership_of(const_cast<Slot *>(slot)); }

// What a session may draw with: read once before a draw, and used for all of it, so that the node of an id is fixed
// before the word is swapped.
using core::GrantView;

// ---------------------------------------------------------------------------------------------------------
// For the sessions that draw.
// ---------------------------------------------------------------------------------------------------------

// Whether uidgen.registry is set, by an atomic of shared memory. It is the postmaster's setting that counts, because
// sessions read theirs late, some in mid-query.
bool is_in_fleet();

// The setting changes: sets an atomic of shared memory for is_in_fleet(). Does nothing but in the postmaster.
void set_in_fleet(bool in_fleet);

// Says in the slot what is asked of the registry, and wakes the registrar, which asks at once if there is no grant: a
// refusal was of another request. A grant in hand is used until it is renewed. A new membership begins if the layout
// differs, or if the generator never leased and the membership comes from the file: the grant there is not its own.
void membership_request(Slot *slot, const GrantRequest &request) EXCLUDES(slot_lock, state_lock);

// What the slot's membership, read under the slot's lock, lets a session draw with now.
GrantView membership_view(Slot *slot) EXCLUDES(slot_lock, state_lock);
// What these let a session draw with. Touches its argument only: a copy, or a slot's fields under its lock.
GrantView grant_view_of(const MembershipFields &fields);

// The slot is freed. Neither the registry nor the file of grants is told.
inline void membership_forget(Slot *slot) REQUIRES(slot_lock) {
    membership_of(slot).fields = {};
    membership_of(slot).wanted.store(0, std::memory_order_relaxed);
    membership_of(slot).used_at_us.store(0, std::memory_order_relaxed);
}

// Notes in an atomic of the slot that a session draws from the generator, by a reading of the wall clock.
inline void membership_note_use(Slot *slot, int64_t now_us) {
    membership_of(slot).used_at_us.store(now_us, std::memory_order_relaxed);
}

// Asks the registrar for a grant that reaches above `lowest` (ticks), by atomics of the slot, without a lock. Wakes the
// registrar. Returns at once.
void membership_want(Slot *slot, int64_t lowest);

// Sleeps, under no LWLock, until membership_view() changes, or the time is over. Honours cancel.
void membership_wait(Slot *slot, const GrantView &seen, int64_t timeout_us) EXCLUDES(slot_lock, state_lock);

// ---------------------------------------------------------------------------------------------------------
// For the registrar, the file of grants and the status view.
// ---------------------------------------------------------------------------------------------------------

struct Member : MembershipFields {
    Slot *slot;
    SlotKey key;
    int64_t wanted;
    int64_t wanted_since_us;
    int64_t used_at_us;
};

// After so many usual lengths of a grant without a draw a member is not renewed any more.
constexpr int64_t idle_lengths = 10;
inline bool is_in_use(const Member &member, int64_t now_us, int64_t length_us) {
    return member.requested && member.used_at_us != 0 && now_us - member.used_at_us < idle_lengths * length_us;
}

// Copies the slot's membership, under the slot's lock. False: the slot's generator is not a member.
bool membership_copy(Slot *slot, Member *copy) EXCLUDES(slot_lock, state_lock);

// Calls visit(member) for each member of the server, without a lock, after copying each under its slot's.
template <typename Visit> void for_each_member(Visit visit) EXCLUDES(slot_lock, state_lock) {
    Member member;
    for (Slot *slot = first_slot(SlotKind::generator); slot != nullptr; slot = next_slot(slot))
        if (membership_copy(slot, &member))
            visit(member);
}

// What the registry's answers have shown, as the server state has it.
core::FleetSeen fleet_seen() EXCLUDES(state_lock);
// Sets what the registry's answers have shown, in the server state only.
void fleet_set_seen(const core::FleetSeen &seen) EXCLUDES(state_lock);

// Puts what the file of grants says into the generator's slot, which it makes (claim_slot()). Under area.making.
void membership_restore(const SlotKey &key, const core::Layout &layout, const core::Holding &holding)
    EXCLUDES(table_lock, slot_lock, state_lock);

// Publishes what the registrar has made of its copy: the membership, after the file was written; the error, which
// sessions say if they have waited too long; and the notes. Does nothing if the slot has another membership by now.
// Wakes the sessions that wait.
void membership_publish(const Member &member) EXCLUDES(slot_lock, state_lock);

// The server has left its fleet: sets an atomic of each generator's slot, without a lock. In a fleet again, the first
// draw of each generator asks, and starts a registrar.
void memberships_rest();

// uid_fleet_move(): every generator of this server begins again, in whatever fleet the registry is of. Changes slots
// and server state, each under its lock; under lock_grant_file() the caller writes the file afterwards.
void memberships_begin_again() REQUIRES(grant_file_lock) EXCLUDES(slot_lock, state_lock);

// ---------------------------------------------------------------------------------------------------------
// Blocks of segments: ranges of values that the registry gave to this server. A slot has one place for a block. So at
// most one block of a segment is ready after the range that sessions draw from (Leaf's double buffer). The slot's lock
// guards the place. It may be taken under the page's, so that a block leaves its place and becomes the slot's range at
// once (segment/ranges.hpp). First what sessions call.
// ---------------------------------------------------------------------------------------------------------

// What the registry is asked of the segment there that the slot's config names.
struct BlockAsk {
    int64_t count;
    int64_t shown;     // the last value that this server was given
    uint64_t fleet;    // that the segment was attached in; 0: any
    int64_t increment; // with the fleet: what it was then; 0: any
};

// `count` values: first, first + increment, ...
struct FleetBlock {
    uint64_t fleet;
    int64_t first;
    uint64_t count;
    int64_t increment;
};

enum class BlockState : uint32_t {
    none,
    asked,   // the registrar asks for it, until it is there or is refused
    ready,   // a session may take it
    refused, // a session may ask again
};

struct BlockAnswer {
    BlockState state; // asked: the error passes by itself, so the registrar asks again
    FleetBlock block; // of ready
    GrantError error; // at_us 0: none
};

// What the slot's lock guards of a place.
struct BlockFields {
    uint64_t number;       // of the request, in this place
    int64_t not_before_us; // when it may be asked (again), on the monotonic clock
    BlockAsk ask;          // of asked, ready and refused
    BlockAnswer answer;    // the state; the error also while the block is asked for
};

// The one place for a block of the registry that a segment's slot has.
struct BlockPlace {
    BlockFields fields GUARDED_BY(slot_lock);
    ConditionVariable changed;
};

struct BlockSlot {
    Slot slot;
    BlockPlace block;
};

// The place for a block in a segment's slot: an address, so no lock is needed.
inline BlockPlace &block_place_of(Slot *segment) { return reinterpret_cast<BlockSlot *>(segment)->block; }
inline const BlockPlace &block_place_of(const Slot *segment) { return block_place_of(const_cast<Slot *>(segment)); }

// Asks for a block of `count` values in the slot, unless one is asked for or ready, or was refused less than a second
// ago. Wakes the registrar. Then sleeps until no block is asked for any more, or the time is over. Honours cancel.
// `config` is the slot's.
BlockAnswer blocks_ask(Slot *segment, const SegmentConfig &config, int64_t count, int64_t shown, int64_t wait_us)
    EXCLUDES(page_lock, slot_lock, state_lock);

// The block that is ready leaves the slot's place, even if it is then lost: a count of 0 says that none is ready that
// was asked for by that definition and follows the counter. Raises no error.
core::PlannedRange blocks_take(Slot *segment, const SegmentConfig &config, const core::SequenceState &counter)
    REQUIRES(page_lock) EXCLUDES(slot_lock, state_lock);

// A copy of the answer in the slot's place for a block.
BlockAnswer blocks_look(const Slot *segment) EXCLUDES(slot_lock, state_lock);

// What was asked for is of no use any more: empties the slot's place for a block, and wakes the sessions that wait.
void blocks_forget(Slot *segment) EXCLUDES(slot_lock, state_lock);
// Empties the slot's place for a block, and wakes the sessions that wait.
void blocks_discard(Slot *segment) REQUIRES(slot_lock);

// ---------------------------------------------------------------------------------------------------------
// For the registrar.
// ---------------------------------------------------------------------------------------------------------

struct AskedBlock : BlockFields {
    Slot *segment;
    char registry_name[longest_registry_name + 1]; // in UTF-8
};

// Copies what the slot's segment asks the registry for. False: it asks for no block.
bool block_copy(Slot *segment, AskedBlock *asked) EXCLUDES(slot_lock, state_lock);

// Calls visit(asked) for each block that is asked for, without a lock, after copying each under its slot's.
template <typename Visit> void for_each_asked_block(Visit visit) EXCLUDES(slot_lock, state_lock) {
    AskedBlock asked;
    for (Slot *slot = first_slot(SlotKind::segment); slot != nullptr; slot = next_slot(slot))
        if (block_copy(slot, &asked))
            visit(asked);
}

// Puts the answer into the slot's place, and says when the registrar asks again. Does nothing if the place has another
// ask by now; a block is then lost. Wakes the sessions that wait for it.
void block_note(const AskedBlock &asked) EXCLUDES(slot_lock, state_lock);

} // namespace uidgen::pg
