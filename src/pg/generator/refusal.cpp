#include "refusal.hpp"

#include "base/errors.hpp"
#include "base/settings.hpp"
#include "base/time_source.hpp"
#include "clock.hpp"
#include "memory/registry_status.hpp"

namespace uidgen::pg {
namespace {

const char *name_of(const DrawCall &call) { return get_rel_name(call.e->sequence); }
const char *instant(int64_t unix_us) { return pstrdup(timestamptz_to_str(to_timestamptz(unix_us))); }
double seconds(int64_t us) { return static_cast<double>(us) / 1e6; }
long long ms_of(int64_t us) { return static_cast<long long>(us / us_per_ms); }

// A generator is ahead because the clock went back, or of a right clock because sessions draw faster than the layout
// allows.
Stat stat_of(const GeneratorState &generator, Outcome outcome) {
    switch (outcome) {
    case Outcome::ahead:
        return is_behind(generator.clock_changes.load(std::memory_order_relaxed)) ? Stat::refused_clock
                                                                                  : Stat::refused_rate;
    case Outcome::no_grant:
        return Stat::refused_registry;
    case Outcome::used_up:
        return Stat::refused_used_up;
    default:
        return Stat::refused_clock;
    }
}

void refuse_before_epoch(const DrawCall &call, int64_t now_us) {
    const int64_t epoch_us = generator_of(call.e->slot).config.layout.epoch_us;
    if (now_us >= epoch_us)
        return;
    ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                    errmsg("the clock is before the epoch of generator \"%s\"", name_of(call)),
                    errdetail("The clock shows %s, and the generator issues ids from %s on.", instant(now_us),
                              instant(epoch_us)),
                    errhint("If the clock is wrong, correct it. If it is right, create a generator with an earlier "
                            "epoch, and draw from it.")));
}

[[noreturn]] void refuse_ahead(DrawCall *call, int64_t now_us, int64_t missing_us) {
    const int64_t waited_us = waited_so_far_us(call);
    refuse_before_epoch(*call, now_us);
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

[[noreturn]] void refuse_clock_back(const DrawCall &call, int64_t now_us, int64_t back_us, int64_t resumes_us) {
    const char *soon =
        "Call again then, or change when_back or tolerance_ms of the generator with uid_generator_alter().";
    refuse_before_epoch(call, now_us);
    ereport(
        ERROR,
        (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
         errmsg("clock moved backwards by %.3f s; generator \"%s\" cannot issue ids", seconds(back_us), name_of(call)),
         errdetail("The generator issues ids again when the server's clock reaches %s.", instant(resumes_us)),
         errhint("%s", clock_hint(call.e, back_us, soon))));
}

[[noreturn]] void refuse_no_grant(DrawCall *call) {
    Member member = {};
    (void)membership_copy(call->e->slot, &member);
    ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                    errmsg("generator \"%s\" has no node from the registry", name_of(*call)),
                    error_details(member.error, waited_so_far_us(call))));
}

[[noreturn]] void refuse_used_up(const DrawCall &call) {
    const core::Layout &layout = generator_of(call.e->slot).config.layout;
    ereport(ERROR,
            (errcode(ERRCODE_SEQUENCE_GENERATOR_LIMIT_EXCEEDED),
             errmsg("the time bits of generator \"%s\" are used up", name_of(call)),
             errdetail("Its layout ends at %s.", instant(core::start_of(layout, core::largest(layout.time_bits) + 1))),
             errhint("Create a generator with a later epoch or more time bits, and draw from it.")));
}

} // namespace

bool conclude(DrawCall *call, const Reading &reading, const core::Decision &decision, Outcome outcome) {
    if (likely(outcome == Outcome::done || outcome == Outcome::again))
        return outcome == Outcome::done;
    const GeneratorState &generator = generator_of(call->e->slot);
    const core::Layout &layout = generator.config.layout;
    const int64_t ticks_us = decision.wait_ticks * layout.tick_us;
    call->e->slot->counters.count(stat_of(generator, outcome));
    switch (outcome) {
    case Outcome::ahead:
        refuse_ahead(call, reading.now_us, ticks_us);
    case Outcome::clock_back:
        refuse_clock_back(*call, reading.now_us, ticks_us, core::start_of(layout, decision.wanted));
    case Outcome::no_grant:
        refuse_no_grant(call);
    default:
        refuse_used_up(*call);
    }
}

} // namespace uidgen::pg
