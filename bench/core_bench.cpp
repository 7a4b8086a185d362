// The words of src/core without PostgreSQL: what a take costs, alone and when threads fight for the line.

#include <benchmark/benchmark.h>

#include "core/range.hpp"
#include "core/tick_word.hpp"

namespace {

using uidgen::core::Durability;
using uidgen::core::SegmentWord;
using uidgen::core::TickWord;

constexpr uint64_t no_limit = UINT64_C(1) << 62;

// What both are measured against: the same line fought for with a fetch-add.
void fetch_add(benchmark::State &state) {
    alignas(uidgen::core::cache_line) static std::atomic<uint64_t> word;
    for (auto _ : state)
        benchmark::DoNotOptimize(word.fetch_add(1, std::memory_order_relaxed));
}

void tick_word_take(benchmark::State &state) {
    static TickWord<> word;
    if (state.thread_index() == 0)
        word.reset(1);
    for (auto _ : state)
        benchmark::DoNotOptimize(word.take(0, no_limit, 1));
}

void segment_word_take(benchmark::State &state) {
    static SegmentWord<> word;
    if (state.thread_index() == 0) {
        word.reset(0);
        word.publish(no_limit, 1, 1, 0);
        word.confirm(Durability::local, no_limit);
    }
    for (auto _ : state)
        benchmark::DoNotOptimize(word.take(no_limit, 1));
}

} // namespace

BENCHMARK(fetch_add)->ThreadRange(1, 4)->UseRealTime();
BENCHMARK(tick_word_take)->ThreadRange(1, 4)->UseRealTime();
BENCHMARK(segment_word_take)->ThreadRange(1, 4)->UseRealTime();
