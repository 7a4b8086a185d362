// Mistakes with locks, which test the check of locks itself (test/rules, src/pg/base/locks.hpp). clang must say of them
// what the comments expect, and nothing else. Nothing of this is ever run.

#include "fleet/grant_file.hpp"
#include "memory/generator_state.hpp"
#include "memory/segment_state.hpp"
#include "sequence/sequence.hpp"

namespace uidgen::pg {

// 1. A field of a slot is read without the slot's lock.
bool is_ready(const Slot *slot) {
    // expected-warning@+1 {{'phase' requires holding lock 'slot_lock'}}
    return slot->phase == SlotPhase::ready;
}

// 2. A field is written under a shared lock.
void forget_error(Slot *slot) {
    lock_slot_shared(slot);
    // expected-warning@+1 {{'fields' requires holding lock 'slot_lock' exclusively}}
    membership_of(slot).fields.error = {};
    unlock_slot(slot);
}

// 3. A function returns with the lock held.
int64_t wanted_node(Slot *slot) {
    // expected-note@+1 {{mutex acquired here}}
    lock_slot(slot);
    if (slot->phase != SlotPhase::ready)
        return -1;
    const int64_t node = membership_of(slot).fields.holding.grant.node;
    unlock_slot(slot);
    // expected-warning@+2 {{mutex 'slot_lock' is not held on every path through here}}
    return node;
}

// 4. Two locks are taken in the wrong order.
void add_to_freed(Slot *slot) {
    lock_state();
    // expected-warning@+1 {{call function 'lock_slot_shared' while lock 'state_lock' is held}}
    lock_slot_shared(slot);
    add_stats(&server_state->freed, slot_counted(slot));
    unlock_slot(slot);
    unlock_state();
}

// 5. An error is raised under a page.
void check_step(const Slot *slot, Relation rel) {
    SequencePage page = lock_page_for_reading(rel);
    if (segment_of(slot).reserved.steps.step <= 0)
        // expected-warning@+1 {{call function 'errstart_cold' while lock 'page_lock' is held}}
        ereport(ERROR, (errmsg("step is out of range")));
    unlock_page(&page);
}

// 6. A session waits for the disk under a page.
void move_counter(Relation rel, int64_t value) {
    SequencePage page = lock_page_for_writing(rel);
    // expected-warning@+1 {{call function 'XLogFlush' while lock 'page_lock' is held}}
    XLogFlush(write_page(&page, value));
    unlock_page(&page);
}

// 7. A session waits for a heavyweight lock under a slot's lock.
RelationFile file_of_slot(Slot *slot) {
    lock_slot_shared(slot);
    // expected-warning@+1 {{call function 'relation_open' while lock 'slot_lock' is held}}
    Relation rel = relation_open(slot->key.sequence, AccessShareLock);
    const RelationFile file = file_of(rel);
    unlock_slot(slot);
    return file;
}

// 8. What the page guards is read and changed without it, or under a shared lock.
void adopt(Slot *slot, Relation rel) {
    // expected-warning@+1 {{'reserved' requires holding lock 'page_lock' exclusively}}
    segment_of(slot).reserved.steps.disturbed = true;
    SequencePage page = lock_page_for_reading(rel);
    // expected-warning@+1 {{'adopt_page' requires holding lock 'page_lock' exclusively}}
    adopt_page(slot, slot->file, slot->expected);
    unlock_page(&page);
}

// 9. Two slots are locked at once.
void copy_answer(Slot *to, const Slot *from) {
    // expected-note@+1 {{lock acquired here}}
    lock_slot(to);
    // expected-warning@+1 {{acquiring lock 'slot_lock' that is already held}}
    lock_slot_shared(from);
    block_place_of(to).fields.answer = block_place_of(from).fields.answer;
    // expected-note@+1 {{lock released here}}
    unlock_slot(from);
    // expected-warning@+1 {{releasing lock 'slot_lock' that was not held}}
    unlock_slot(to);
}

// 10. A lock is released that was not taken.
int64_t registrar_away_since() {
    // expected-warning@+1 {{'registrar' requires holding lock 'state_lock'}}
    const int64_t since_us = server_state->fleet.registrar.away_since_us;
    // expected-warning@+1 {{releasing lock 'state_lock' that was not held}}
    unlock_state();
    return since_us;
}

// 11. The table of slots is searched under a slot's lock.
bool has_other(Slot *slot) {
    lock_slot_shared(slot);
    // expected-warning@+1 {{call function 'find_slot' while lock 'slot_lock' is held}}
    const bool has = find_slot(slot->key, SlotKind::segment) != nullptr;
    unlock_slot(slot);
    return has;
}

// 12. A visitor needs a lock that its caller does not know of.
int members() {
    int count = 0;
    for_each_slot(SlotKind::generator, [&count](const Slot *slot) {
        // expected-warning@+1 {{'fields' requires holding lock 'slot_lock'}}
        count += membership_of(slot).fields.requested ? 1 : 0;
    });
    return count;
}

// 13. The file of grants is written by a process that does not hold its lock.
GrantError store_seen(const core::FleetSeen &seen) {
    // expected-warning@+1 {{'grant_file_store' requires holding lock 'grant_file_lock' exclusively}}
    return grant_file_store(seen, NIL);
}

// Not found, because all locks of a kind are one: the field of a slot is read under the lock of another slot.
uint64_t fleet_under_other(const Slot *slot, const Slot *other) {
    lock_slot_shared(other);
    const uint64_t fleet = segment_of(slot).config.fleet;
    unlock_slot(other);
    return fleet;
}

// Not found, because clang looks at one function at a time: a function that does not say what it does raises an error.
void raise_elsewhere() { ereport(ERROR, (errmsg("no"))); }
void call_under_page(Relation rel) {
    SequencePage page = lock_page_for_reading(rel);
    raise_elsewhere();
    unlock_page(&page);
}

} // namespace uidgen::pg
