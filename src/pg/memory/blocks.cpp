#include "blocks.hpp"

#include "base/time_source.hpp"

namespace uidgen::pg {

// All but the condition variable is guarded by the slot's lock.
struct BlockPlace {
    dsa_pointer next;      // of all places; never changes
    dsa_pointer slot;      // never changes
    uint64_t number;       // of the ask
    int64_t not_before_us; // when it may be asked (again), on the monotonic clock
    BlockAsk ask;          // of asked, ready and refused
    BlockAnswer answer;    // the state; the error also while the block is asked for
    ConditionVariable changed;
};

const size_t block_place_bytes = sizeof(BlockPlace);

BlockPlace *block_place(const Slot *segment) {
    const dsa_pointer place = segment->segment.blocks.load(std::memory_order_acquire);
    return DsaPointerIsValid(place) ? in_area<BlockPlace>(place) : nullptr;
}

namespace {

// After a refusal sessions fail at once for so long. After an error that passes by itself the registrar waits so long.
constexpr int64_t pause_us = us_per_second;

void publish_place(dsa_pointer pointer, BlockPlace *place, Slot *segment) {
    std::atomic<dsa_pointer> &newest = server_state->area.newest_block;
    segment->segment.blocks.store(pointer, std::memory_order_release);
    lock_state(LW_EXCLUSIVE);
    place->next = newest.load(std::memory_order_relaxed);
    newest.store(pointer, std::memory_order_release); // pairs with first_place()
    unlock_state();
}

BlockPlace *find_or_make_place(Slot *segment) {
    if (BlockPlace *place = block_place(segment))
        return place;
    const dsa_pointer pointer = allocate_in_area(sizeof(BlockPlace), "blocks of a segment of the registry");
    BlockPlace *fresh = in_area<BlockPlace>(pointer);
    ConditionVariableInit(&fresh->changed);
    fresh->slot = segment->self;
    LWLockAcquire(&segment->lock, LW_EXCLUSIVE);
    const bool is_first = block_place(segment) == nullptr;
    if (is_first)
        publish_place(pointer, fresh, segment);
    LWLockRelease(&segment->lock);
    if (!is_first)
        free_in_area(pointer);
    return block_place(segment);
}

BlockPlace *first_place() {
    if (!attach_area())
        return nullptr;
    const dsa_pointer newest = server_state->area.newest_block.load(std::memory_order_acquire);
    return DsaPointerIsValid(newest) ? in_area<BlockPlace>(newest) : nullptr;
}

// Calls visit(slot, place) for each place under its slot's lock.
template <typename Visit> void for_each_place(LWLockMode mode, Visit visit) {
    for (BlockPlace *place = first_place(); place != nullptr;
         place = DsaPointerIsValid(place->next) ? in_area<BlockPlace>(place->next) : nullptr) {
        Slot *segment = in_area<Slot>(place->slot);
        LWLockAcquire(&segment->lock, mode);
        visit(segment, place);
        LWLockRelease(&segment->lock);
    }
}

// Under the slot's lock.
void discard(BlockPlace *place) {
    place->answer = {};
    ConditionVariableBroadcast(&place->changed);
}

bool may_ask(const BlockPlace &place, int64_t now_us) {
    const BlockState state = place.answer.state;
    return state == BlockState::none || (state == BlockState::refused && now_us >= place.not_before_us);
}

uint64_t next_number() {
    lock_state(LW_EXCLUSIVE);
    const uint64_t number = ++server_state->fleet.asked_blocks;
    unlock_state();
    return number;
}

} // namespace

// ---------------------------------------------------------------------------------------------------------
// For the sessions.
// ---------------------------------------------------------------------------------------------------------

void blocks_ask(Slot *segment, const BlockAsk &ask) {
    const int64_t now_us = monotonic_us();
    GrantError error = {};
    BlockPlace *place = find_or_make_place(segment);
    LWLockAcquire(&segment->lock, LW_EXCLUSIVE);
    if (may_ask(*place, now_us)) {
        place->number = next_number();
        place->not_before_us = 0;
        place->ask = ask;
        place->answer = {BlockState::asked, {}, BlockRefusal::other, {}};
    }
    const bool is_asked = place->answer.state == BlockState::asked;
    LWLockRelease(&segment->lock);
    if (is_asked && !wake_registrar(&error))
        blocks_note_away(error);
}

bool blocks_take(Slot *segment, BlockPlace *place, const char *registry_name, FleetBlock *block) {
    if (place == nullptr)
        return false;
    LWLockAcquire(&segment->lock, LW_EXCLUSIVE);
    const bool is_ready = place->answer.state == BlockState::ready;
    const bool is_its = is_ready && strcmp(place->ask.registry_name, registry_name) == 0;
    *block = place->answer.block;
    if (is_ready)
        discard(place);
    LWLockRelease(&segment->lock);
    return is_its;
}

BlockAnswer blocks_look(const Slot *segment) {
    BlockAnswer answer = {};
    BlockPlace *place = block_place(segment);
    if (place == nullptr)
        return answer;
    auto *lock = const_cast<LWLock *>(&segment->lock);
    LWLockAcquire(lock, LW_SHARED);
    answer = place->answer;
    LWLockRelease(lock);
    return answer;
}

void blocks_wait(Slot *segment, int64_t timeout_us) {
    const int64_t until_us = monotonic_us() + timeout_us;
    BlockPlace *place = block_place(segment);
    if (place == nullptr)
        return;
    ConditionVariablePrepareToSleep(&place->changed);
    while (blocks_look(segment).state == BlockState::asked) {
        const int64_t left_us = until_us - monotonic_us();
        if (left_us <= 0 || sleep_for_grant(&place->changed, left_us))
            break;
    }
    ConditionVariableCancelSleep();
}

void blocks_forget(Slot *segment) {
    LWLockAcquire(&segment->lock, LW_EXCLUSIVE);
    blocks_discard(segment);
    LWLockRelease(&segment->lock);
}

void blocks_discard(Slot *segment) {
    if (BlockPlace *place = block_place(segment))
        discard(place);
}

// ---------------------------------------------------------------------------------------------------------
// For the registrar.
// ---------------------------------------------------------------------------------------------------------

bool blocks_next_asked(AskedBlock *asked, int64_t *next_us) {
    const int64_t now_us = monotonic_us();
    bool found = false;
    for_each_place(LW_SHARED, [&](Slot *segment, const BlockPlace *place) {
        if (place->answer.state != BlockState::asked)
            return;
        if (place->not_before_us > now_us) {
            *next_us = Min(*next_us, place->not_before_us - now_us);
        } else if (!found || place->number < asked->number) {
            *asked = {segment, place->number, place->ask};
            found = true;
        }
    });
    return found;
}

bool blocks_are_asked() {
    bool asked = false;
    for_each_place(LW_SHARED, [&asked](Slot *, const BlockPlace *place) {
        asked = asked || place->answer.state == BlockState::asked;
    });
    return asked;
}

void blocks_answer(const AskedBlock &asked, const BlockAnswer &answer) {
    BlockPlace *place = block_place(asked.segment);
    LWLockAcquire(&asked.segment->lock, LW_EXCLUSIVE);
    if (place->answer.state == BlockState::asked && place->number == asked.number) {
        place->answer = answer;
        place->not_before_us = monotonic_us() + pause_us;
        ConditionVariableBroadcast(&place->changed);
    }
    LWLockRelease(&asked.segment->lock);
}

void blocks_note_away(const GrantError &error) {
    for_each_place(LW_EXCLUSIVE, [&error](Slot *, BlockPlace *place) {
        if (place->answer.state == BlockState::asked)
            place->answer.error = error;
    });
}

} // namespace uidgen::pg
