#include "lease.hpp"

#include "errors.hpp"
#include "reserve.hpp"
#include "settings.hpp"
#include "time_source.hpp"
#include "waits.hpp"
#include "worker_node.hpp"

namespace uidgen::pg {
namespace {

// A wall clock that is mended while a call waits is noticed within this time.
constexpr int64_t longest_nap_us = 100 * us_per_ms;

// One call's wait for the clock: bounded by uidgen.max_wait on the clock that never steps.
struct ClockWait {
    int64_t started_ns; // 0: not waiting
};

// Writes a record for the lease up to `until_tick`, unless another backend has. Publishing under the page's
// exclusive lock makes this the only writer of the word's bounds.
void reserve_lease(Attached *a, int64_t until_tick, bool prefetch) {
    Slot *slot = a->slot;
    GeneratorState &generator = slot->generator;
    const core::Layout &layout = generator.config.layout;
    uint64_t lsn = InvalidXLogRecPtr;

    Relation rel = open_attached(a);
    SequencePage page = lock_page_for_writing(rel);
    const PageState state = read_page(page);
    if (!same_state(state, slot->expected))
        adopt_page(slot, rel, state);
    const uint64_t written = generator.ticks.written_range().until;
    const uint64_t until = static_cast<uint64_t>(until_tick) << layout.sequence_bits;
    if (written < until) {
        lsn = write_page(&page, until_tick - 1);
        slot->expected = read_page(page);
        generator.ticks.publish(written, until, lsn);
        slot->records.fetch_add(1, std::memory_order_relaxed);
    }
    unlock_page(&page);
    relation_close(rel, NoLock);
    if (prefetch)
        durable_soon(lsn);
}

void confirm_lease(Attached *a, core::Durability level) {
    core::TickWord<> &ticks = a->slot->generator.ticks;
    const core::WrittenRange written = ticks.written_range();
    durable(a->slot, written.lsn, level);
    ticks.confirm(level, written.until);
}

void wait_for_clock(Attached *a, ClockWait *wait, int64_t missing_us) {
    const int64_t now_ns = monotonic_ns();
    if (wait->started_ns == 0) {
        wait->started_ns = now_ns;
        a->slot->clock_waits.fetch_add(1, std::memory_order_relaxed);
    }
    const int64_t waited_us = (now_ns - wait->started_ns) / ns_per_us;
    const int64_t left_us = settings::max_wait_ms * us_per_ms - waited_us;
    if (left_us <= 0)
        report_clock_behind(a->sequence, missing_us, waited_us / us_per_ms);
    sleep_for_clock(Min(Min(missing_us, left_us), longest_nap_us));
}

void open_window(Attached *a, int64_t tick, const core::Decision &decision, core::Durability level) {
    const GeneratorState &generator = a->slot->generator;
    const core::Layout &layout = generator.config.layout;
    Window &window = a->window;
    window.from_ns = core::start_of(layout, tick) * ns_per_us;
    window.length_ns = static_cast<uint64_t>(layout.tick_us * ns_per_us);
    window.floor = decision.floor;
    window.limit = decision.limit;
    window.level = level;
    window.shape =
        core::shape_of(layout, settings::datacenter_id, generator.worker_id.load(std::memory_order_acquire));
}

void check_datacenter(const Attached *a) {
    const core::Layout &layout = a->slot->generator.config.layout;
    const int64_t most = core::largest(layout.datacenter_bits);
    if (settings::datacenter_id > most)
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                        errmsg("uidgen.datacenter_id %d does not fit the generator's layout", settings::datacenter_id),
                        errdetail("Its datacenter field is %d bits wide.", layout.datacenter_bits),
                        errhint("Set uidgen.datacenter_id to a number from 0 to %lld.", static_cast<long long>(most))));
}

} // namespace

core::Run draw(Attached *a, uint64_t want) {
    check_datacenter(a);
    GeneratorState &generator = a->slot->generator;
    const GeneratorConfig &config = generator.config;
    core::TickWord<> &ticks = generator.ticks;
    ClockWait wait = {0};

    for (;;) {
        const core::Durability level = wanted_durability();
        const int64_t now = core::tick_at(config.layout, wall_clock_ns() / ns_per_us);
        // In the order in which they grow, so that usable <= written as decide() expects.
        const uint64_t last = ticks.last();
        const uint64_t usable = ticks.usable(level);
        const uint64_t written = ticks.written_range().until;
        const core::Decision decision = core::decide(config.policy, now, last, usable, written);

        switch (decision.step) {
        case core::Step::take: {
            if (decision.reserve_until > 0)
                reserve_lease(a, decision.reserve_until, true);
            if (unlikely(generator.worker_id.load(std::memory_order_acquire) == no_worker))
                draw_worker_id(a->slot, a->function);
            const core::Run run = ticks.take(decision.floor, decision.limit, want);
            if (run.count > 0) {
                open_window(a, now, decision, level);
                return run;
            }
            break;
        }
        case core::Step::confirm:
            confirm_lease(a, level);
            break;
        case core::Step::reserve:
            reserve_lease(a, decision.reserve_until, false);
            break;
        case core::Step::wait:
            wait_for_clock(a, &wait, decision.wait_ticks * config.layout.tick_us);
            break;
        case core::Step::exhausted:
            report_end_of_time(a->sequence, config.layout);
        }
        CHECK_FOR_INTERRUPTS();
    }
}

} // namespace uidgen::pg
