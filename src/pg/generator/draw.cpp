#include "draw.hpp"

#include "base/errors.hpp"
#include "session/slot_life.hpp"
#include "node/worker_node.hpp"
#include "sequence/sequence.hpp"
#include "base/settings.hpp"
#include "base/time_source.hpp"
#include "memory/server_state.hpp"

namespace uidgen::pg {
namespace {

// A wall clock that is corrected while a call waits is noticed within this time.
constexpr int64_t longest_nap_us = 100 * us_per_ms;

// After this many tries a call begins to count the time. It fails when that exceeds uidgen.max_wait and the grace. A
// failed try is another session's success, so even the busiest server is far from this bound. On a stalled disk no
// call tries so often.
constexpr uint32_t many_tries = 1000;
constexpr int64_t grace_us = 1000 * us_per_ms;

// For messages.
const char *name_of(const DrawCall &call) { return get_rel_name(call.e->sequence); }
const char *instant(int64_t unix_us) { return pstrdup(timestamptz_to_str(to_timestamptz(unix_us))); }
double seconds(int64_t us) { return static_cast<double>(us) / 1e6; }
long long ms_of(int64_t us) { return static_cast<long long>(us / us_per_ms); }

// The number that the generator's own nodes follow from.
int64_t own_number(const DrawCall &call) {
    Slot *slot = call.e->slot;
    const std::atomic<int64_t> &number = generator_of(slot).number;
    if (unlikely(number.load(std::memory_order_acquire) == no_number))
        draw_number(slot, call.now_us);
    return number.load(std::memory_order_acquire);
}

void check_epoch(const DrawCall &call) {
    const int64_t epoch_us = generator_of(call.e->slot).config.layout.epoch_us;
    if (call.now_us >= epoch_us)
        return;
    ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                    errmsg("the clock is before the epoch of generator \"%s\"", name_of(call)),
                    errdetail("The clock shows %s, and the generator issues ids from %s on.", instant(call.now_us),
                              instant(epoch_us)),
                    errhint("If the clock is wrong, correct it. If it is right, create a generator with an earlier "
                            "epoch, and draw from it.")));
}

void wait_for_clock(DrawCall *call, int64_t missing_us) {
    Slot *slot = call->e->slot;
    int64_t waited_us = 0;
    const int64_t left_us = left_to_wait_us(call, Stat::clock_waits, &waited_us);
    if (left_us <= 0) {
        // Behind, or far ahead of a right clock because sessions draw faster than the layout allows.
        const bool is_behind = pg::is_behind(generator_of(slot).clock_changes.load(std::memory_order_relaxed));
        count(&slot->counters, is_behind ? Stat::refused_clock : Stat::refused_rate);
        check_epoch(*call);
        const char *soon = psprintf("Call again in %lld s, or increase uidgen.max_wait.",
                                    static_cast<long long>((missing_us + 999999) / 1000000));
        ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                        errmsg("generator \"%s\" is ahead of the clock by %.3f s more than allowed", name_of(*call),
                               seconds(missing_us)),
                        errdetail("The clock moved backwards, or sessions drew ids faster than the layout can hold. "
                                  "The call waited %lld ms and took no id.",
                                  ms_of(waited_us)),
                        errhint("%s", clock_hint(call->e, missing_us, soon))));
    }
    const int64_t began_us = monotonic_us();
    sleep_for(Min(Min(missing_us, left_us), longest_nap_us), wait_event("UidgenClock"));
    count_time(&slot->counters, Stat::clock_waits, began_us);
}

// A change of the setting is noticed within this time.
constexpr int64_t longest_wait_us = 1000 * us_per_ms;

void wait_for_grant(DrawCall *call, int64_t wanted_tick) {
    Slot *slot = call->e->slot;
    Counters *counters = &slot->counters;
    int64_t waited_us = 0;
    membership_want(slot, wanted_tick);
    const int64_t left_us = left_to_wait_us(call, Stat::registry_waits, &waited_us);
    if (left_us <= 0) {
        count(counters, Stat::refused_registry);
        Member member = {};
        (void)membership_copy(slot, &member);
        ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                        errmsg("generator \"%s\" has no node from the registry", name_of(*call)),
                        error_details(member.error, waited_us)));
    }
    const int64_t began_us = monotonic_us();
    membership_wait(slot, call->grant.view, Min(left_us, longest_wait_us));
    count_time(counters, Stat::registry_waits, began_us);
}

// A generator that joins while the clock is behind its ids needs no grant yet. But the registry must learn at once
// which node they have. It would refuse to reach further than a grant.
void join_while_behind(const DrawCall &call, int64_t behind_us) {
    if (!call.grant.in_fleet || call.grant.view.granted || behind_us > settings::registry_lease_ms * us_per_ms)
        return;
    const core::Layout &layout = generator_of(call.e->slot).config.layout;
    membership_want(call.e->slot, static_cast<int64_t>((call.view.last + 1) >> layout.sequence_bits));
}

// After position `last` was drawn: opens a window on the rest of its tick, for as long as the clock stays in its own
// tick.
void open_window_after(const DrawCall &call, uint64_t last, const core::Decision &decision) {
    SessionEntry *e = call.e;
    const core::Layout &layout = generator_of(e->slot).config.layout;
    const core::ClockPolicy &policy = generator_of(e->slot).config.policy;
    const uint64_t tick = last >> layout.sequence_bits;
    // If the policy must notice a clock that goes back, no window is opened on a tick ahead of the clock. The fast path
    // does not compare with the clock that other sessions have seen. In the clock's own tick a session that saw a later
    // tick has moved the word beyond the window; on a tick ahead it may not have.
    const bool notices = policy.when_back != core::WhenBack::hold || policy.tolerance != core::no_limit;
    if (notices && static_cast<int64_t>(tick) != call.view.now)
        return;
    const uint64_t limit = Min(decision.limit, (tick + 1) << layout.sequence_bits);
    const uint64_t step = UINT64_C(1) << core::sequence_shift(layout);
    // The word holds the last position, so a swap from n draws position n + 1.
    const uint64_t origin = static_cast<uint64_t>(core::encode(call.drawn.encoder, last)) - (last - 1) * step;
    open_window_in_tick(e, {generator_of(e->slot).ticks.word(), last, last, limit - 1, origin, step},
                        core::start_of(layout, call.view.now), core::start_of(layout, call.view.now + 1));
}

// ---------------------------------------------------------------------------------------------------------
// The wall clock is compared with the monotonic clock before a lease far above the last one, and before the end of time
// is reported. A clock that was really set shows the same time again a little later.
// ---------------------------------------------------------------------------------------------------------

constexpr int64_t agreement_us = INT64_C(1000) * us_per_ms;
constexpr int rereads = 3;
constexpr int64_t between_rereads_us = 5 * us_per_ms;

int64_t tried_for_us(DrawCall *call) {
    const int64_t now_us = monotonic_us();
    if (call->started_us == 0)
        call->started_us = now_us;
    return now_us - call->started_us;
}

// Rejects a reading of the clock. One rejected reading is no error, however short uidgen.max_wait is. An error is
// raised when no reading is plausible for that long.
void reject_reading(DrawCall *call) {
    const int64_t tried_us = tried_for_us(call);
    if (call->rejected && tried_us > settings::max_wait_ms * us_per_ms) {
        count(&call->e->slot->counters, Stat::refused_clock);
        ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                        errmsg("server clock is not steady; generator \"%s\" cannot issue ids", name_of(*call)),
                        errdetail("The clock showed %s, and a different time a moment later. "
                                  "The call retried for %lld ms and took no id.",
                                  instant(call->now_us), ms_of(tried_us)),
                        errhint("Correct the server's clock, or increase uidgen.max_wait.")));
    }
    call->rejected = true;
}

// Whether the wall clock keeps showing the same offset above the monotonic clock.
bool clock_shows_it_again(DrawCall *call) {
    for (int i = 0; i < rereads; i++) {
        sleep_for(between_rereads_us, wait_event("UidgenClock"));
        const int64_t change_us = clock_offset_us() - call->offset_us;
        if (change_us > agreement_us || change_us < -agreement_us) {
            reject_reading(call);
            return false;
        }
    }
    return true;
}

bool take(DrawCall *call, const core::Decision &decision) {
    SessionEntry *e = call->e;
    GeneratorState &generator = generator_of(e->slot);
    if (decision.reserve_until > 0)
        reserve_in_grant(call, decision.reserve_until, true);
    const core::IdEncoder encoder = encoder_for(*call, false);
    const uint64_t expected = e->slot->passed_over.expect(call->view.last + 1, decision.floor);
    const core::Run run = generator.ticks.take(decision.floor, decision.limit, call->want);
    e->slot->passed_over.settle(expected, run.passed_over);
    if (run.count == 0)
        return false;
    core::raise_to(generator.seen, call->view.now, std::memory_order_relaxed);
    call->drawn = {run, encoder};
    open_window_after(*call, run.first + run.count - 1, decision);
    return true;
}

[[noreturn]] void refuse_clock_back(const DrawCall &call, const core::Decision &decision) {
    const SessionEntry *e = call.e;
    const core::Layout &layout = generator_of(e->slot).config.layout;
    const int64_t back_us = decision.wait_ticks * layout.tick_us;
    const char *soon =
        "Call again then, or change when_back or tolerance_ms of the generator with uid_generator_alter().";
    count(&e->slot->counters, Stat::refused_clock);
    check_epoch(call);
    ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                    errmsg("clock moved backwards by %.3f s; generator \"%s\" cannot issue ids", seconds(back_us),
                           name_of(call)),
                    errdetail("The generator issues ids again when the server's clock reaches %s.",
                              instant(core::start_of(layout, decision.wanted))),
                    errhint("%s", clock_hint(e, back_us, soon))));
}

bool take_backup(DrawCall *call, const core::Decision &asked) {
    GeneratorState &generator = generator_of(call->e->slot);
    core::ClockState view = call->view;
    view.last = generator.backup.last();
    const core::Decision decision = core::decide_backup(generator.config.policy, view, asked);
    if (decision.action == core::ClockAction::take) {
        const core::IdEncoder encoder = encoder_for(*call, !fault_is(Fault::same_bit));
        const core::Run run = generator.backup.take(decision.floor, decision.limit, call->want);
        call->drawn = {run, encoder};
        generator.backup_ids.fetch_add(run.count, std::memory_order_relaxed);
        count(&call->e->slot->counters, Stat::ids, run.count);
        return run.count > 0;
    }
    return execute(call, decision);
}

} // namespace

// Writes the record unless another backend already has. Publishing under the page's exclusive lock makes this backend
// the only writer of the word's bounds. If the grant begins above what was leased before, both workers skip the gap.
// The number comes first, so that no crash keeps the lease and loses the number (core/other_nodes.hpp, 1).
void reserve_in_grant(DrawCall *call, int64_t until_tick, bool ahead) {
    Slot *slot = call->e->slot;
    GeneratorState &generator = generator_of(slot);
    const uint64_t from = core::granted_begin(generator.config.policy, call->view);
    const uint64_t until = static_cast<uint64_t>(until_tick) << generator.config.layout.sequence_bits;
    uint64_t lsn = InvalidXLogRecPtr;
    if (!call->grant.in_fleet)
        (void)own_number(*call);
    else if (from > 0)
        generator.backup.discard_below(from);

    Relation rel = open_sequence(call->e);
    SequencePage page = lock_page_of(slot, rel);
    const uint64_t written = generator.ticks.written_range().until;
    if (written < until) {
        lsn = write_page(&page, until_tick - 1, slot);
        const uint64_t expected = slot->passed_over.expect(generator.ticks.last() + 1, from > written ? from : 0);
        slot->passed_over.settle(expected, generator.ticks.publish(Max(from, written), until, lsn));
        count(&slot->counters, Stat::records);
    }
    unlock_page(&page);
    relation_close(rel, NoLock);
    if (ahead)
        durable_soon(lsn);
}

void before_next_try(DrawCall *call) {
    CHECK_FOR_INTERRUPTS();
    if (++call->tries < many_tries)
        return;
    const int64_t tried_us = tried_for_us(call);
    if (tried_us <= settings::max_wait_ms * us_per_ms + grace_us)
        return;
    ereport(ERROR,
            (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
             errmsg("could not draw an id from generator \"%s\" within %lld ms", name_of(*call), ms_of(tried_us)),
             errdetail("Other sessions took the ids that this call tried to take, "
                       "or the server's clock runs too fast."),
             errhint("Call again, or increase uidgen.max_wait.")));
}

bool clock_is_plausible(DrawCall *call) {
    if (fault_is(Fault::trust_clock))
        return true;
    // Relaxed: the offset guards no other data.
    std::atomic<int64_t> &offset_us = server_state->clock.offset_us;
    int64_t trusted_us = offset_us.load(std::memory_order_relaxed);
    const int64_t moved_us = call->offset_us - trusted_us;
    const bool too_far = settings::max_clock_jump_s > 0 && moved_us > settings::max_clock_jump_s * us_per_second;
    const bool jumped = moved_us > suspicious_jump_us;
    if ((too_far || jumped) && !clock_shows_it_again(call)) // one bad reading must not use up years
        return false;
    if (too_far) {
        count(&call->e->slot->counters, Stat::refused_clock);
        ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                        errmsg("clock jumped forward by %.3f s, more than uidgen.max_clock_jump; generator \"%s\" "
                               "cannot issue ids",
                               seconds(moved_us), name_of(*call)),
                        errdetail("The clock shows %s, and ids would carry that time.", instant(call->now_us)),
                        errhint("If the clock is wrong, correct it. If it is right, a superuser can accept it: SET "
                                "uidgen.max_clock_jump = 0; SELECT uid_next(%s); RESET uidgen.max_clock_jump;",
                                quote_literal_cstr(qualified_name(call->e->sequence)))));
    }
    if (!offset_us.compare_exchange_strong(trusted_us, call->offset_us, std::memory_order_relaxed) || !jumped)
        return true; // of sessions that have seen one jump, one logs it
    server_state->clock.jumps.fetch_add(1, std::memory_order_relaxed);
    ereport(LOG,
            (errmsg("clock jumped forward by %.3f s", seconds(moved_us)),
             errdetail("It shows %s, and ids carry that time from now on. It was set, or the machine was suspended.",
                       instant(call->now_us)),
             errhint("If the clock is wrong, correct it at once: generators stay above the ids that they issue "
                     "meanwhile (docs/runbooks/clock.md).")));
    return true;
}

void read_state(DrawCall *call) {
    const GeneratorState &generator = generator_of(call->e->slot);
    call->level = close_window(call->e);
    const uint64_t changes = generator.clock_changes.load(std::memory_order_acquire); // first: draw.hpp
    call->view.seen = generator.seen.load(std::memory_order_acquire);
    // In the order of their growth, so that usable <= written as decide() expects.
    call->view.last = generator.ticks.last();
    call->view.usable = generator.ticks.usable(call->level);
    call->view.written = generator.ticks.written_range().until;
    call->grant = read_node_grant(call->e); // after all of these
    call->view.granted_from = call->grant.view.from;
    call->view.granted_until = call->grant.view.until;
    if (fault_is(Fault::outlive_grant) && call->grant.view.granted)
        call->view.granted_until = core::no_limit;
    // The clock is read last. If it were read before the slot's state, other sessions could have seen and leased later
    // ticks meanwhile, and the clock would seem to have gone back.
    call->now_us = wall_clock_us();
    call->offset_us = call->now_us - monotonic_us();
    call->view.now = core::tick_at(generator.config.layout, call->now_us);
    if (unlikely((core::ticks_back(generator.config.policy, call->view) > 0) != is_behind(changes)))
        note_clock_change(call->e, changes, call->view);
    if (unlikely(call->grant.in_fleet))
        membership_note_use(call->e->slot, call->now_us);
}

bool execute(DrawCall *call, const core::Decision &decision) {
    SessionEntry *e = call->e;
    const int64_t tick_us = generator_of(e->slot).config.layout.tick_us;
    switch (decision.action) {
    case core::ClockAction::take:
        return take(call, decision);
    case core::ClockAction::confirm:
        confirm_lease(call, call->level);
        break;
    case core::ClockAction::reserve:
        if (clock_is_plausible(call))
            reserve_in_grant(call, decision.reserve_until, false);
        break;
    case core::ClockAction::wait:
        join_while_behind(*call, decision.wait_ticks * tick_us);
        wait_for_clock(call, decision.wait_ticks * tick_us);
        break;
    case core::ClockAction::backup:
        return take_backup(call, decision);
    case core::ClockAction::ask:
        if (clock_is_plausible(call)) // a wrong clock would want a grant far ahead
            wait_for_grant(call, decision.wanted);
        break;
    case core::ClockAction::clock_back:
        if (clock_shows_it_again(call)) {
            join_while_behind(*call, decision.wait_ticks * tick_us);
            refuse_clock_back(*call, decision);
        }
        break;
    case core::ClockAction::exhausted:
        if (clock_is_plausible(call)) {
            count(&e->slot->counters, Stat::refused_used_up);
            const core::Layout &layout = generator_of(e->slot).config.layout;
            ereport(ERROR, (errcode(ERRCODE_SEQUENCE_GENERATOR_LIMIT_EXCEEDED),
                            errmsg("the time bits of generator \"%s\" are used up", name_of(*call)),
                            errdetail("Its layout ends at %s.",
                                      instant(core::start_of(layout, core::largest(layout.time_bits) + 1))),
                            errhint("Create a generator with a later epoch or more time bits, and draw from it.")));
        }
        break;
    }
    return false;
}

void confirm_lease(DrawCall *call, core::Durability level) {
    Slot *slot = call->e->slot;
    core::PositionAllocator<> &ticks = generator_of(slot).ticks;
    const core::WrittenRange written = ticks.written_range();
    const int64_t began_us = monotonic_us();
    ticks.confirm(durable(&slot->counters, written.lsn, level), written.until);
    if (call->started_us != 0)
        call->started_us += monotonic_us() - began_us;
}

core::IdEncoder encoder_for(const DrawCall &call, bool backup) {
    SessionEntry *e = call.e;
    if (unlikely(call.grant.in_fleet)) {
        show_node(e, call.grant.view);
        return core::encoder_of(generator_of(e->slot).config.layout, call.grant.view.node, backup);
    }
    GeneratorState &generator = generator_of(e->slot);
    const int64_t number = own_number(call);
    warn_of_datacenter_id(e->slot);
    return core::encoder_of(generator.config.layout, own_node(generator.config, number).value, backup);
}

int64_t left_to_wait_us(DrawCall *call, Stat waits, int64_t *waited_us) {
    const uint64_t bit = UINT64_C(1) << index(waits);
    if ((call->waits & bit) == 0)
        count(&call->e->slot->counters, waits);
    call->waits |= bit;
    *waited_us = tried_for_us(call);
    return Max(settings::max_wait_ms * us_per_ms - *waited_us, 0);
}

Drawn draw(SessionEntry *e, uint64_t want) {
    DrawCall call = {};
    call.e = e;
    call.want = want;
    for (;; before_next_try(&call)) {
        read_state(&call);
        if (execute(&call, core::decide(generator_of(e->slot).config.policy, call.view)))
            return call.drawn;
    }
}

} // namespace uidgen::pg
