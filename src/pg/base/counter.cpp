#include "counter.hpp"

#include "postgres.hpp"
#include "settings.hpp"
#include "time_source.hpp"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace uidgen::pg {
namespace {

// Long enough to measure the rate to some millionths.
constexpr int64_t shortest_base_us = 100 * us_per_ms;

struct Reading {
    uint64_t count;
    int64_t us;           // on the monotonic clock; 0: not read yet
    int64_t suspended_us; // how long the machine has been suspended: the counter may have gone on, stopped or begun again
};

Reading base = {0, 0, 0};
uint64_t counts_per_ms = 0; // 0: not measured yet
bool unusable = false;

bool runs_at_one_rate() {
#if defined(__x86_64__)
    constexpr unsigned invariant_tsc = 1U << 8;
    unsigned a = 0;
    unsigned b = 0;
    unsigned c = 0;
    unsigned d = 0;
    return __get_cpuid(0x80000007, &a, &b, &c, &d) != 0 && (d & invariant_tsc) != 0;
#elif defined(__aarch64__)
    return true;
#else
    return false;
#endif
}

Reading read_clocks() {
    const int64_t us = monotonic_us();
    return {read_counter(), us, since_boot_us() - us};
}

// A thousandth less than measured, so that a window never outlasts its tick.
void measure_rate() {
    const Reading now = read_clocks();
    const bool suspended = now.suspended_us - base.suspended_us > us_per_ms;
    if (base.us == 0)
        unusable = !runs_at_one_rate();
    if (base.us == 0 || suspended || now.count < base.count) {
        base = now;
        return;
    }
    const int64_t passed_us = now.us - base.us;
    if (passed_us >= shortest_base_us)
        counts_per_ms = static_cast<uint64_t>(static_cast<double>(now.count - base.count) / static_cast<double>(passed_us) * 999.0);
}

} // namespace

uint64_t counter_distance(int64_t us) {
    if (unusable || !settings::use_counter || us <= 0)
        return 0;
    if (counts_per_ms == 0)
        measure_rate();
    return counts_per_ms * static_cast<uint64_t>(us) / 1000;
}

} // namespace uidgen::pg
