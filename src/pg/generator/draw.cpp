#include "draw.hpp"

#include "clock.hpp"
#include "node/worker_node.hpp"

namespace uidgen::pg {
namespace {

// A wall clock that is corrected while a call waits is noticed within this time.
constexpr int64_t longest_nap_us = 100 * us_per_ms;
// A change of the setting is noticed within this time.
constexpr int64_t longest_wait_us = 1000 * us_per_ms;

// After this many tries a call begins to count the time. It fails when that exceeds uidgen.max_wait and the grace. A
// failed try is another session's success, so even the busiest server is far from this bound. On a stalled disk no
// call tries so often.
constexpr uint32_t many_tries = 1000;
constexpr int64_t grace_us = 1000 * us_per_ms;

// A generator that joins while the clock is behind its ids needs no grant yet. But the registry must learn at once
// which node they have. It would refuse to reach further than a grant. So this asks the registrar (membership_want()),
// and does not wait. Takes the state's lock for the moment (usual_length_us()).
void join_while_behind(Slot *slot, const DrawReading &reading, int64_t behind_ticks) EXCLUDES(state_lock) {
    const core::Layout &layout = generator_of(slot).config.layout;
    if (reading.grant.in_fleet && !reading.grant.view.granted && behind_ticks * layout.tick_us <= usual_length_us())
        membership_want(slot, static_cast<int64_t>((reading.state.last + 1) >> layout.sequence_bits));
}

// Sleeps once, for as long as the clock lacks, but not for long. The slot counts the wait.
Outcome wait_for_clock(DrawCall *call, int64_t missing_us) EXCLUDES(page_lock, table_lock, slot_lock, state_lock) {
    const bool may_wait = wait_once(call, Stat::clock_waits, [missing_us](int64_t left_us) {
        sleep_for(Min(Min(missing_us, left_us), longest_nap_us), wait_event("UidgenClock"));
    });
    return may_wait ? Outcome::again : Outcome::ahead;
}

// Asks the registrar for a grant that reaches above the tick, by atomics of the slot (membership_want()), and sleeps
// once for the view to change (membership_wait()).
Outcome wait_for_grant(DrawCall *call, const GrantView &seen, int64_t wanted_tick)
    EXCLUDES(page_lock, table_lock, slot_lock, state_lock) {
    Slot *slot = call->entry->slot;
    membership_want(slot, wanted_tick);
    const bool may_wait = wait_once(call, Stat::registry_waits, [slot, &seen](int64_t left_us) {
        membership_wait(slot, seen, Min(left_us, longest_wait_us));
    });
    return may_wait ? Outcome::again : Outcome::no_grant;
}

// After position `last` was drawn: opens a window on the rest of its tick, for as long as the clock stays in its own
// tick. In cached mode the window lasts until the clock must be read again. Changes the entry only.
void open_window_after(SessionEntry *entry, const DrawReading &reading, uint64_t end_of_lease, const Drawn &drawn) {
    GeneratorState &generator = generator_of(entry->slot);
    const core::Layout &layout = generator.config.layout;
    const core::ClockPolicy &policy = generator.config.policy;
    const uint64_t last = drawn.run.first + drawn.run.count - 1;
    const uint64_t tick = last >> layout.sequence_bits;
    // If the policy must notice a clock that goes back, no window is opened on a tick ahead of the clock. The fast path
    // does not compare with the clock that other sessions have seen. In the clock's own tick a session that saw a later
    // tick has moved the word beyond the window; on a tick ahead it may not have.
    const int64_t now = reading.state.now;
    const bool notices = policy.when_back != core::WhenBack::hold || policy.tolerance != core::no_limit;
    if (notices && static_cast<int64_t>(tick) != now)
        return;
    const uint64_t limit = Min(end_of_lease, (tick + 1) << layout.sequence_bits);
    const uint64_t step = UINT64_C(1) << core::sequence_shift(layout);
    // The word holds the last position, so a swap from n draws position n + 1.
    const uint64_t origin = static_cast<uint64_t>(core::encode(drawn.encoder, last)) - (last - 1) * step;
    const core::Window<> window = {.word = generator.ticks.word(),
                                   .expected = last,
                                   .first = last,
                                   .limit = limit - 1,
                                   .origin = origin,
                                   .step = step};
    if (generator.config.cached.on)
        open_window_for(entry, window, reading.now_us - reading.offset_us, generator.config.cached.fresh_us);
    else
        open_window_in_tick(entry, window, core::start_of(layout, now), core::start_of(layout, now + 1));
}

// Takes positions from the word, notes the clock's tick, and counts old ones in the ring: atomics of the slot. Opens a
// window on those that follow. Writes the next lease if it is due (write_lease()).
Outcome take_positions(const DrawCall &call, const DrawReading &reading, const core::Decision &decision, Drawn *drawn)
    EXCLUDES(page_lock, table_lock, slot_lock, state_lock) {
    Slot *slot = call.entry->slot;
    GeneratorState &generator = generator_of(slot);
    if (decision.reserve_until > 0)
        write_lease(call, reading, decision.reserve_until, Needed::later);
    const uint64_t expected = slot->passed_over.expect(reading.state.last + 1, decision.floor);
    drawn->run = generator.ticks.take(decision.floor, decision.limit, call.want);
    slot->passed_over.settle(expected, drawn->run.passed_over);
    if (drawn->run.count == 0)
        return Outcome::again;
    if (generator.config.cached.on)
        note_passed_over(&generator, drawn->run);
    core::raise_to(generator.seen, reading.state.now, std::memory_order_relaxed);
    open_window_after(call.entry, reading, decision.limit, *drawn);
    return Outcome::done;
}

// Takes positions from the backup worker's word, and counts them: atomics of the slot.
Outcome take_of_backup(GeneratorState *generator, const core::Decision &decision, uint64_t want, Drawn *drawn) {
    drawn->run = generator->backup.take(decision.floor, decision.limit, want);
    generator->backup_ids.fetch_add(drawn->run.count, std::memory_order_relaxed);
    return drawn->run.count > 0 ? Outcome::done : Outcome::again;
}

// Whether the node must be fixed before the action. By the arguments only.
bool needs_node(const DrawReading &reading, core::ClockAction action) {
    return action == core::ClockAction::take || (action == core::ClockAction::reserve && !reading.grant.in_fleet);
}

// The decision of core for the primary worker, or for the backup worker if that is to draw, whose word
// it reads. Changes nothing.
WorkerDecision decide_try(const GeneratorState &generator, const core::ClockState &state) {
    const core::ClockPolicy &policy = generator.config.policy;
    const core::Decision decision = core::decide(policy, state);
    if (likely(decision.action != core::ClockAction::backup))
        return {decision};
    core::ClockState of_backup = state;
    of_backup.last = generator.backup.last();
    return {core::decide_backup(policy, of_backup, decision), true};
}

} // namespace

// In the order of their growth, so that usable <= written as decide() expects. The clock is read last. If it were read
// before the slot's state, other sessions could have seen and leased later ticks meanwhile, and the clock would seem to
// have gone back.
DrawReading begin_try(DrawCall *call) {
    const GeneratorState &generator = generator_of(call->entry->slot);
    DrawReading reading = {};
    core::ClockState &state = reading.state;
    reading.level = close_window(call->entry);
    const uint64_t changes = generator.clock_changes.load(std::memory_order_acquire); // first: clock.hpp
    state.seen = generator.seen.load(std::memory_order_acquire);
    state.last = generator.ticks.last();
    state.usable = generator.ticks.usable(reading.level);
    state.written = generator.ticks.written_range().until;
    reading.grant = join_or_leave_fleet(call->entry);
    const GrantView &view = reading.grant.view;
    state.granted_from = view.from;
    state.granted_until = fault_is("outlive_grant") && view.granted ? core::no_limit : view.until;
    reading.now_us = wall_clock_us();
    reading.offset_us = reading.now_us - monotonic_us();
    state.now = core::tick_at(generator.config.layout, reading.now_us);
    if (unlikely((core::ticks_back(generator.config.policy, state) > 0) != is_behind(changes)))
        note_clock_change(call->entry, changes, state);
    if (unlikely(reading.grant.in_fleet))
        membership_note_use(call->entry->slot, reading.now_us);
    return reading;
}

core::IdEncoder fix_node(SessionEntry *entry, const DrawReading &reading, bool by_backup) {
    const GeneratorConfig &config = generator_of(entry->slot).config;
    const bool has_bit = by_backup && !fault_is("same_bit");
    if (unlikely(reading.grant.in_fleet)) {
        show_node(entry, reading.grant.view);
        return core::encoder_of(config.layout, reading.grant.view.node, has_bit);
    }
    NodeDraw *drawn = own_node_for(entry->slot, reading.now_us);
    warn_of_datacenter_id(entry->slot, drawn->node);
    note_node_in_use(drawn);
    return core::encoder_of(config.layout, drawn->node.value, has_bit);
}

Outcome execute_decision(DrawCall *call, const DrawReading &reading, const WorkerDecision &decision, Drawn *drawn) {
    GeneratorState &generator = generator_of(call->entry->slot);
    switch (decision.action) {
    case core::ClockAction::take:
        return decision.by_backup ? take_of_backup(&generator, decision, call->want, drawn)
                                  : take_positions(*call, reading, decision, drawn);
    case core::ClockAction::reserve:
        write_lease(*call, reading, decision.reserve_until, Needed::now);
        return Outcome::again;
    case core::ClockAction::confirm:
        confirm_lease(call, reading.level);
        return Outcome::again;
    case core::ClockAction::ask:
        return wait_for_grant(call, reading.grant.view, decision.wanted);
    case core::ClockAction::wait:
    case core::ClockAction::clock_back:
        join_while_behind(call->entry->slot, reading, decision.wait_ticks);
        return decision.action == core::ClockAction::clock_back
                   ? Outcome::clock_back
                   : wait_for_clock(call, decision.wait_ticks * generator.config.layout.tick_us);
    case core::ClockAction::exhausted:
    case core::ClockAction::backup:
        break;
    }
    return Outcome::used_up;
}

// Publishing under the page's exclusive lock makes this session the only writer of the word's bounds. If the grant
// begins above what was leased before, both workers skip the gap. The registrar may have ended, by a signal or because
// nothing was drawn for long. It must not stay away until the grant ends, because then an outage of the registry would
// end the draws at once.
void write_lease(const DrawCall &call, const DrawReading &reading, int64_t until_tick, Needed needed) {
    Slot *slot = call.entry->slot;
    GeneratorState &generator = generator_of(slot);
    const uint64_t from = core::granted_begin(generator.config.policy, reading.state);
    const uint64_t until = static_cast<uint64_t>(until_tick) << generator.config.layout.sequence_bits;
    if (reading.grant.in_fleet && from > 0)
        generator.backup.discard_below(from);
    const uint64_t lsn = with_locked_page(call.entry, [&](SequencePage *page) REQUIRES(page_lock) -> uint64_t {
        const uint64_t written = generator.ticks.written_range().until;
        if (written >= until) // another session has
            return InvalidXLogRecPtr;
        const uint64_t end_of_record = write_page(page, until_tick - 1, slot);
        const uint64_t expected = slot->passed_over.expect(generator.ticks.last() + 1, from > written ? from : 0);
        slot->passed_over.settle(expected, generator.ticks.publish(Max(from, written), until, end_of_record));
        return end_of_record;
    });
    if (needed == Needed::later)
        make_durable_soon(lsn);
    if (reading.grant.in_fleet)
        start_worker_if_gone(SingleWorker::registrar);
}

void confirm_lease(DrawCall *call, core::Durability level) {
    Slot *slot = call->entry->slot;
    core::PositionAllocator<> &ticks = generator_of(slot).ticks;
    const core::WrittenRange written = ticks.written_range();
    const int64_t began_us = monotonic_us();
    ticks.confirm(make_durable(&slot->counters, written.lsn, level), written.until);
    if (call->started_us != 0)
        call->started_us += monotonic_us() - began_us;
}

void before_next_try(DrawCall *call) {
    CHECK_FOR_INTERRUPTS();
    if (++call->tries < many_tries)
        return;
    const int64_t tried_us = measure_wait_us(call);
    if (tried_us <= settings::max_wait_ms * us_per_ms + grace_us)
        return;
    ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                    errmsg("could not draw an id from generator \"%s\" within " INT64_FORMAT " ms",
                           get_rel_name(call->entry->sequence), tried_us / us_per_ms),
                    errdetail("Other sessions took the ids that this call tried to take, "
                              "or the server's clock runs too fast."),
                    errhint("Call again, or increase uidgen.max_wait.")));
}

Drawn draw_ids(SessionEntry *entry, uint64_t want) {
    DrawCall call = {};
    call.entry = entry;
    call.want = want;
    for (;; before_next_try(&call)) {
        Drawn drawn = {};
        const DrawReading reading = begin_try(&call);
        WorkerDecision decision = decide_try(generator_of(entry->slot), reading.state);
        if (!verify_clock(&call, reading, decision.action))
            continue;
        if (generator_of(entry->slot).config.cached.on && !limit_to_ring(&call, reading.state, &decision))
            continue;
        if (needs_node(reading, decision.action))
            drawn.encoder = fix_node(entry, reading, decision.by_backup);
        const Outcome outcome = execute_decision(&call, reading, decision, &drawn);
        if (conclude_try(&call, reading, decision, outcome))
            return drawn;
    }
}

} // namespace uidgen::pg
