#include "blocks.hpp"

#include "base/time_source.hpp"

namespace uidgen::pg {
namespace {

// After a refusal sessions fail at once for so long. After an error that passes by itself the registrar waits so long.
constexpr int64_t pause_us = us_per_second;

bool is_asked(const Slot *segment) { return segment->segment.block.answer.state == BlockState::asked; }

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
    BlockPlace &place = segment->segment.block;
    LWLockAcquire(&segment->lock, LW_EXCLUSIVE);
    if (may_ask(place, now_us)) {
        place.number = next_number();
        place.not_before_us = 0;
        place.ask = ask;
        place.answer = {BlockState::asked, {}, BlockRefusal::other, {}};
    }
    const bool asked = is_asked(segment);
    LWLockRelease(&segment->lock);
    if (asked && !wake_registrar(&error))
        blocks_note_away(error);
}

bool blocks_take(Slot *segment, const char *registry_name, FleetBlock *block) {
    const BlockPlace &place = segment->segment.block;
    LWLockAcquire(&segment->lock, LW_EXCLUSIVE);
    const bool is_ready = place.answer.state == BlockState::ready;
    const bool is_its = is_ready && strcmp(place.ask.registry_name, registry_name) == 0;
    *block = place.answer.block;
    if (is_ready)
        blocks_discard(segment);
    LWLockRelease(&segment->lock);
    return is_its;
}

BlockAnswer blocks_look(const Slot *segment) {
    auto *lock = const_cast<LWLock *>(&segment->lock);
    LWLockAcquire(lock, LW_SHARED);
    const BlockAnswer answer = segment->segment.block.answer;
    LWLockRelease(lock);
    return answer;
}

void blocks_wait(Slot *segment, int64_t timeout_us) {
    const int64_t until_us = monotonic_us() + timeout_us;
    ConditionVariable *changed = &segment->segment.block.changed;
    ConditionVariablePrepareToSleep(changed);
    while (blocks_look(segment).state == BlockState::asked) {
        const int64_t left_us = until_us - monotonic_us();
        if (left_us <= 0 || sleep_for_grant(changed, left_us))
            break;
    }
    ConditionVariableCancelSleep();
}

void blocks_forget(Slot *segment) {
    LWLockAcquire(&segment->lock, LW_EXCLUSIVE);
    blocks_discard(segment);
    LWLockRelease(&segment->lock);
}

// ---------------------------------------------------------------------------------------------------------
// For the registrar.
// ---------------------------------------------------------------------------------------------------------

bool blocks_next_asked(AskedBlock *asked, int64_t *next_us) {
    const int64_t now_us = monotonic_us();
    bool found = false;
    for_each_slot(SlotKind::segment, [&](Slot *segment) {
        const BlockPlace &place = segment->segment.block;
        if (!is_asked(segment))
            return;
        if (place.not_before_us > now_us) {
            *next_us = Min(*next_us, place.not_before_us - now_us);
        } else if (!found || place.number < asked->number) {
            *asked = {segment, place.number, place.ask};
            found = true;
        }
    });
    return found;
}

bool blocks_are_asked() {
    bool asked = false;
    for_each_slot(SlotKind::segment, [&asked](const Slot *segment) { asked = asked || is_asked(segment); });
    return asked;
}

void blocks_answer(const AskedBlock &asked, const BlockAnswer &answer) {
    BlockPlace &place = asked.segment->segment.block;
    LWLockAcquire(&asked.segment->lock, LW_EXCLUSIVE);
    if (is_asked(asked.segment) && place.number == asked.number) {
        place.answer = answer;
        place.not_before_us = monotonic_us() + pause_us;
        ConditionVariableBroadcast(&place.changed);
    }
    LWLockRelease(&asked.segment->lock);
}

void blocks_note_away(const GrantError &error) {
    const auto note = [&error](Slot *segment) {
        if (is_asked(segment))
            segment->segment.block.answer.error = error;
    };
    for_each_slot(SlotKind::segment, note, LW_EXCLUSIVE);
}

} // namespace uidgen::pg
