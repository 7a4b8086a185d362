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

struct {
    uint64_t count;
    int64_t us; // on the monotonic clock; 0: the counter can't be used
} start = {0, 0};

uint64_t counts_per_ms = 0; // 0: not measured yet

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

// A thousandth less than measured, so that a window never outlasts its tick.
void measure_rate() {
    const int64_t passed_us = monotonic_us() - start.us;
    if (passed_us < shortest_base_us)
        return;
    const double rate = static_cast<double>(read_counter() - start.count) / static_cast<double>(passed_us);
    counts_per_ms = static_cast<uint64_t>(rate * 999.0);
}

} // namespace

void counter_start() {
    if (!runs_at_one_rate())
        return;
    start.count = read_counter();
    start.us = monotonic_us();
}

uint64_t counter_distance(int64_t us) {
    if (start.us == 0 || !settings::use_counter)
        return 0;
    if (counts_per_ms == 0)
        measure_rate();
    return counts_per_ms * static_cast<uint64_t>(Max(Min(us, longest_us), 0)) / 1000;
}

} // namespace uidgen::pg
