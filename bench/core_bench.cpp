// The word of src/core without PostgreSQL, beside Baidu's ring: what an id costs, alone and when threads fight for a line.

#include <benchmark/benchmark.h>

#include <memory>
#include <thread>

#include "baidu_ring.hpp"
#include "core/position_allocator.hpp"
#include "core/window.hpp"
#include "refiller.hpp"

namespace {

using uidgen::bench::BaiduRing;
using uidgen::bench::Refiller;
using uidgen::core::cache_line;
using uidgen::core::PositionAllocator;
using uidgen::core::Window;

constexpr uint64_t no_limit = UINT64_C(1) << 62;

// As many ids in stock, Baidu's default: 8192 a second, times 8. Below half of it the refiller is called.
constexpr uint64_t ids_a_second = 8192;
constexpr uint64_t stock = ids_a_second * 8;

// What all are measured against: the same line fought for with a fetch-add.
struct FetchAdd {
    alignas(cache_line) std::atomic<uint64_t> word{0};

    struct Taker {
        uint64_t next(FetchAdd &all) { return all.word.fetch_add(1, std::memory_order_relaxed); }
    };
};

// The slow path of generators and segments: the word, asked for one position at a time.
struct Allocator {
    PositionAllocator<> word;

    Allocator() { word.reset(1); }

    struct Taker {
        uint64_t next(Allocator &all) { return all.word.take(0, no_limit, 1).first; }
    };
};

// The fast path of both: each thread draws from a window of its own on the same word.
struct Windows {
    alignas(cache_line) std::atomic<uint64_t> word{0};

    struct Taker {
        Window<> window = {};

        uint64_t next(Windows &all) {
            if (window.word == nullptr)
                window = {&all.word, 0, 0, no_limit, 0, 1};
            int64_t value = 0;
            (void)window.take(&value);
            return static_cast<uint64_t>(value);
        }
    };
};

// The original's ring. A thread that finds it empty tries again.
struct Baidu {
    BaiduRing ring{stock};
    uint64_t second = 0; // the refiller's
    Refiller refiller;

    Baidu() : refiller([this] { pad(); }) {
        pad();
        refiller.start();
    }

    // Whole seconds: what has no room of the last one is dropped.
    void pad() {
        for (bool room = true; room;) {
            second++;
            for (uint64_t i = 0; i < ids_a_second && room; i++)
                room = ring.put(second * ids_a_second + i);
        }
    }

    struct Taker {
        uint64_t next(Baidu &all) {
            for (;;) {
                uint64_t id = 0;
                const BaiduRing::Taken taken = all.ring.take(&id);
                if (taken.filled < static_cast<int64_t>(stock / 2))
                    all.refiller.call();
                if (taken.ok)
                    return id;
                std::this_thread::yield();
            }
        }
    };
};

// An id an iteration, by threads that share the source; its refiller runs beside them.
template <typename Source> void ids(benchmark::State &state) {
    static std::unique_ptr<Source> source; // made before the threads pass the gate of the loop
    if (state.thread_index() == 0)
        source = std::make_unique<Source>();
    typename Source::Taker taker;
    for (auto _ : state)
        benchmark::DoNotOptimize(taker.next(*source));
    state.SetItemsProcessed(state.iterations());
    if (state.thread_index() == 0)
        source.reset();
}

template <typename Source> void measure(const char *name) {
    benchmark::RegisterBenchmark(name, ids<Source>)
        ->ThreadRange(1, 2 * static_cast<int>(std::thread::hardware_concurrency()))
        ->UseRealTime();
}

} // namespace

int main(int argc, char **argv) {
    measure<FetchAdd>("fetch_add");
    measure<Allocator>("allocator");
    measure<Windows>("windows");
    measure<Baidu>("baidu_ring");
    benchmark::Initialize(&argc, argv);
    benchmark::RunSpecifiedBenchmarks();
}
