#include "memberships.hpp"

#include "segment_state.hpp"

namespace uidgen::pg {
namespace {

// What the server state has of the fleet: only an address.
MemberState &member_state() { return server_state->fleet; }

// Whether the request is for the membership that there is. What a file without a mark says is not the generator's own.
// A generator that has drawn outside the fleet with another node joins again, because it prefers that node.
bool is_for_present(const MembershipFields &present, const GrantRequest &request) REQUIRES_SHARED(slot_lock) {
    return present.number != 0 && core::same_layout(present.request.layout, request.layout) &&
           (present.requested || request.has_leased) && (!present.holding.holds || request.former_node < 0);
}

// A session that has drawn in the fleet already does not know the node that the generator had before. While there is no
// grant the request still must name it.
GrantRequest with_former(GrantRequest request, const MembershipFields &present) REQUIRES_SHARED(slot_lock) {
    const GrantRequest &before = present.request;
    if (!present.requested || present.holding.holds || before.former_node < 0 || request.former_node >= 0 ||
        !core::same_layout(before.layout, request.layout))
        return request;
    request.former_node = before.former_node;
    return request;
}

// Counts in an atomic of shared memory, without a lock. Relaxed: only the number itself counts.
uint64_t next_membership_number() { return member_state().members.fetch_add(1, std::memory_order_relaxed) + 1; }

// The slot's generator begins as a newcomer, without a grant.
void begin_membership(MembershipFields *fields) REQUIRES(slot_lock) {
    fields->number = next_membership_number();
    fields->holding = {};
    fields->error = {};
    fields->notes = {};
}

// Whether the slot has a membership. That of a dropped generator rests, because the DROP may be rolled back.
bool has_member(const Slot *slot) REQUIRES_SHARED(slot_lock) {
    return slot->phase > SlotPhase::dropped && membership_of(slot).fields.number != 0;
}

// Sleeps, and calls is_over() each time that the variable is broadcast, until it is true or the time is over.
template <typename Condition>
void wait_for_broadcast(ConditionVariable *changed, int64_t timeout_us, Condition is_over)
    EXCLUDES(page_lock, slot_lock, state_lock) {
    const int64_t until_us = monotonic_us() + timeout_us;
    ConditionVariablePrepareToSleep(changed);
    while (!is_over()) {
        const int64_t left_us = until_us - monotonic_us();
        if (left_us <= 0 || ConditionVariableTimedSleep(changed, left_us / us_per_ms + 1, wait_event("UidgenGrant")))
            break;
    }
    ConditionVariableCancelSleep();
}

bool is_block_asked_for(const Slot *segment) REQUIRES_SHARED(slot_lock) {
    return block_place_of(segment).fields.answer.state == BlockState::asked;
}

bool may_ask_for_block(const BlockFields &place, int64_t now_us) REQUIRES_SHARED(slot_lock) {
    const BlockState state = place.answer.state;
    return state == BlockState::none || (state == BlockState::refused && now_us >= place.not_before_us);
}

} // namespace

// ---------------------------------------------------------------------------------------------------------
// For the sessions that draw.
// ---------------------------------------------------------------------------------------------------------

// Acquire: a session that sees the fleet in force reads the high-water mark afterwards (node_grant.cpp).
bool is_in_fleet() { return member_state().is_in_fleet.load(std::memory_order_acquire); }

// The setting is first assigned before there is shared memory. A relaxed store would do: what a session concludes from
// it rests on the order of its own loads.
void set_in_fleet(bool in_fleet) {
    if (!IsUnderPostmaster && server_state != nullptr) // in the postmaster only a preloaded library has it
        member_state().is_in_fleet.store(in_fleet, std::memory_order_release);
}

// Relaxed: the slot's lock, which a reader takes afterwards, shows it the membership.
void membership_request(Slot *slot, const GrantRequest &request) {
    MembershipState &state = membership_of(slot);
    lock_slot(slot);
    if (!is_for_present(state.fields, request))
        begin_membership(&state.fields);
    state.fields.request = with_former(request, state.fields);
    state.fields.requested = true;
    state.fields.error = {};
    state.fields.notes = {.renew_at = state.fields.notes.renew_at, .not_before_us = 0, .pause_us = 0};
    state.is_requested.store(true, std::memory_order_relaxed);
    unlock_slot(slot);
    membership_note_use(slot, wall_clock_us());
    (void)wake_worker(SingleWorker::registrar); // a grant from the file must be renewed
}

GrantView grant_view_of(const MembershipFields &fields) {
    const core::Holding &holding = fields.holding;
    if (!holding.holds)
        return core::no_grant;
    const core::Ticks ticks = core::ticks_of(fields.request.layout, holding.grant);
    if (ticks.from >= ticks.until)
        return core::no_grant;
    return {.granted = true, .node = holding.grant.node, .from = ticks.from, .until = ticks.until};
}

GrantView membership_view(Slot *slot) {
    lock_slot_shared(slot);
    const GrantView view = grant_view_of(membership_of(slot).fields);
    unlock_slot(slot);
    return view;
}

void membership_want(Slot *slot, int64_t lowest) {
    MembershipState &state = membership_of(slot);
    if (state.wanted.exchange(Max(lowest, 1), std::memory_order_relaxed) == 0) // each value stands alone
        state.wanted_since_us.store(monotonic_us(), std::memory_order_relaxed);
    membership_note_use(slot, wall_clock_us());
    (void)wake_worker(SingleWorker::registrar);
}

void membership_wait(Slot *slot, const GrantView &seen, int64_t timeout_us) {
    wait_for_broadcast(&membership_of(slot).changed, timeout_us,
                       [&] { return !core::same_view(membership_view(slot), seen); });
}

// ---------------------------------------------------------------------------------------------------------
// For the registrar, the file of grants and the status view.
// ---------------------------------------------------------------------------------------------------------

bool membership_copy(Slot *slot, Member *copy) {
    const MembershipState &state = membership_of(slot);
    lock_slot_shared(slot);
    const bool is_member = has_member(slot);
    if (is_member) {
        *copy = {{state.fields}};
        copy->slot = slot;
        copy->key = slot->key;
        copy->wanted = state.wanted.load(std::memory_order_relaxed);
        copy->wanted_since_us = state.wanted_since_us.load(std::memory_order_relaxed);
        copy->used_at_us = state.used_at_us.load(std::memory_order_relaxed);
    }
    unlock_slot(slot);
    return is_member;
}

core::FleetSeen fleet_seen() {
    lock_state_shared();
    const core::FleetSeen seen = member_state().seen;
    unlock_state();
    return seen;
}

void fleet_set_seen(const core::FleetSeen &seen) {
    lock_state();
    member_state().seen = seen;
    unlock_state();
}

int64_t usual_length_us() {
    constexpr int64_t if_unknown_us = 600 * us_per_second;
    const int64_t longest_us = fleet_seen().longest;
    const int64_t asked_us = settings::registry_lease_ms * us_per_ms;
    const int64_t most_us = longest_us > 0 ? longest_us : if_unknown_us;
    return asked_us > 0 ? Min(asked_us, most_us) : most_us;
}

void membership_restore(const SlotKey &key, const core::Layout &layout, const core::Holding &holding) {
    Slot *slot = claim_slot(key, SlotKind::generator);
    MembershipFields &fields = membership_of(slot).fields;
    lock_slot(slot);
    fields.request.layout = layout;
    fields.number = next_membership_number();
    fields.holding = core::holding_at_start(holding);
    unlock_slot(slot);
}

// A want is over that the grant covers, or that was refused just now because no grant reaches so far.
void membership_publish(const Member &member) {
    MembershipState *state = &membership_of(member.slot);
    int64_t wanted = member.wanted;
    lock_slot(member.slot);
    MembershipFields *fields = &state->fields;
    if (has_member(member.slot) && (fields->number == member.number || fault_is("late_grant"))) {
        const bool is_ahead = member.error.why == core::Why::ahead && member.error.at_us != fields->error.at_us;
        fields->holding = member.holding;
        fields->renewals = member.renewals;
        fields->error = member.error;
        fields->notes = member.notes;
        if (is_ahead)
            (void)state->wanted.compare_exchange_strong(wanted, 0, std::memory_order_relaxed);
        else if (grant_view_of(member).until > state->wanted.load(std::memory_order_relaxed))
            state->wanted.store(0, std::memory_order_relaxed);
        ConditionVariableBroadcast(&state->changed);
    }
    unlock_slot(member.slot);
}

// Relaxed: a session that draws without a fleet, or with the membership, meanwhile finds it out at its next try.
void memberships_rest() {
    for (Slot *slot = first_slot(SlotKind::generator); slot != nullptr; slot = next_slot(slot))
        membership_of(slot).is_requested.store(false, std::memory_order_relaxed);
}

void memberships_begin_again() {
    for (Slot *slot = first_slot(SlotKind::generator); slot != nullptr; slot = next_slot(slot)) {
        MembershipState &state = membership_of(slot);
        lock_slot(slot);
        if (state.fields.number != 0)
            begin_membership(&state.fields);
        unlock_slot(slot);
        ConditionVariableBroadcast(&state.changed);
    }
    fleet_set_seen({});
    member_state().moves.fetch_add(1, std::memory_order_relaxed);
}

// ---------------------------------------------------------------------------------------------------------
// Blocks, for the sessions.
// ---------------------------------------------------------------------------------------------------------

BlockAnswer blocks_ask(Slot *segment, const SegmentConfig &config, int64_t count, int64_t shown, int64_t wait_us) {
    const int64_t now_us = monotonic_us();
    lock_slot(segment);
    BlockFields &place = block_place_of(segment).fields;
    if (may_ask_for_block(place, now_us)) {
        place.number++;
        place.not_before_us = now_us;
        place.ask = {.count = count, .shown = shown, .fleet = config.fleet, .increment = config.increment};
        place.answer = {};
        place.answer.state = BlockState::asked;
    }
    BlockAnswer answer = place.answer;
    unlock_slot(segment);
    if (answer.state != BlockState::asked)
        return answer;
    (void)wake_worker(SingleWorker::registrar);
    if (wait_us > 0)
        wait_for_broadcast(&block_place_of(segment).changed, wait_us,
                           [&] { return (answer = blocks_look(segment)).state != BlockState::asked; });
    return answer;
}

core::PlannedRange blocks_take(Slot *segment, const SegmentConfig &config, const core::SequenceState &counter) {
    lock_slot(segment);
    BlockFields &place = block_place_of(segment).fields;
    const bool is_ready = place.answer.state == BlockState::ready;
    const FleetBlock block = place.answer.block;
    if (is_ready)
        place.answer = {}; // for which no session waits
    unlock_slot(segment);
    // One of another fleet or increment was asked for before the segment was attached again.
    if (!is_ready || block.count == 0 || block.fleet != config.fleet || block.increment != config.increment ||
        !core::lies_beyond(counter, block.increment, block.first))
        return {};
    const auto length = static_cast<int64_t>(block.count - 1);
    return {.count = block.count, .first = block.first, .last = block.first + length * block.increment};
}

BlockAnswer blocks_look(const Slot *segment) {
    lock_slot_shared(segment);
    const BlockAnswer answer = block_place_of(segment).fields.answer;
    unlock_slot(segment);
    return answer;
}

void blocks_discard(Slot *segment) {
    block_place_of(segment).fields.answer = {};
    ConditionVariableBroadcast(&block_place_of(segment).changed);
}

void blocks_forget(Slot *segment) {
    lock_slot(segment);
    blocks_discard(segment);
    unlock_slot(segment);
}

// ---------------------------------------------------------------------------------------------------------
// Blocks, for the registrar.
// ---------------------------------------------------------------------------------------------------------

bool block_copy(Slot *segment, AskedBlock *asked) {
    lock_slot_shared(segment);
    const bool is_asked_for = is_block_asked_for(segment);
    if (is_asked_for) {
        *asked = {{block_place_of(segment).fields}};
        asked->segment = segment;
        strlcpy(asked->registry_name, segment_of(segment).config.registry_name, sizeof(asked->registry_name));
    }
    unlock_slot(segment);
    return is_asked_for;
}

void block_note(const AskedBlock &asked) {
    BlockPlace &place = block_place_of(asked.segment);
    lock_slot(asked.segment);
    if (is_block_asked_for(asked.segment) && (place.fields.number == asked.number || fault_is("late_block"))) {
        place.fields.answer = asked.answer;
        place.fields.not_before_us = asked.not_before_us;
        ConditionVariableBroadcast(&place.changed);
    }
    unlock_slot(asked.segment);
}

} // namespace uidgen::pg
