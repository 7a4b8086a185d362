// The words and the ring of src/core without PostgreSQL: what an id costs, alone and when threads fight for a line.

#include <benchmark/benchmark.h>

#include <memory>
#include <thread>

#include "baidu_ring.hpp"
#include "core/range.hpp"
#include "core/ring.hpp"
#include "core/position_allocator.hpp"
#include "refiller.hpp"

namespace {

using uidgen::bench::BaiduRing;
using uidgen::bench::Refiller;
using uidgen::core::cache_line;
using uidgen::core::Durability;
using uidgen::core::empty_cell;
using uidgen::core::PositionAllocator;
using uidgen::core::SegmentWord;
using uidgen::core::TakenRun;

constexpr uint64_t no_limit = UINT64_C(1) << 62;

// As many ids in stock in every ring, Baidu's default: 8192 a second, times 8. Below half of it the refiller is called.
constexpr uint64_t ids_a_second = 8192;
constexpr uint64_t stock = ids_a_second * 8;

// What all are measured against: the same line fought for with a fetch-add.
struct FetchAdd {
    alignas(cache_line) std::atomic<uint64_t> word{0};

    struct Taker {
        uint64_t next(FetchAdd &all) { return all.word.fetch_add(1, std::memory_order_relaxed); }
    };
};

struct Generator {
    PositionAllocator<> word;

    Generator() { word.reset(1); }

    struct Taker {
        uint64_t next(Generator &all) { return all.word.take(0, no_limit, 1).first; }
    };
};

struct Segment {
    SegmentWord<> word;

    Segment() {
        word.reset(0);
        word.publish(no_limit, 1, 1, 0);
        word.confirm(Durability::local, no_limit);
    }

    struct Taker {
        uint64_t next(Segment &all) { return all.word.take(no_limit, 1).first; }
    };
};

// Cached mode: a thread takes a run and hands out its positions itself. Who finds the ring empty tries again.
template <uint64_t run_length> struct CachedRing {
    static constexpr uint64_t count = stock / run_length;

    uidgen::core::RingHints<> hints;
    std::unique_ptr<std::atomic<uint64_t>[]> cells = std::make_unique<std::atomic<uint64_t>[]>(count);
    uidgen::core::Ring<> ring{&hints, cells.get(), count};
    PositionAllocator<> word;
    uint64_t in_hand = empty_cell; // the refiller's, when it was refused
    Refiller refiller;

    CachedRing() : refiller([this] { pad(); }) {
        hints.reset(0);
        ring.clear();
        word.reset(1);
        pad();
        refiller.start();
    }

    void pad() {
        for (;;) {
            if (in_hand == empty_cell)
                in_hand = word.take(0, no_limit, run_length).first;
            if (!ring.put(in_hand))
                return;
            in_hand = empty_cell;
        }
    }

    uint64_t take_run() {
        for (;;) {
            const TakenRun run = ring.take(0);
            if (ring.filled() < count / 2)
                refiller.call();
            if (run.first != empty_cell)
                return run.first;
            std::this_thread::yield();
        }
    }

    struct Taker {
        uint64_t at = 0, end = 0;

        uint64_t next(CachedRing &all) {
            if (at == end) {
                at = all.take_run();
                end = at + run_length;
            }
            return at++;
        }
    };
};

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
    measure<Generator>("generator");
    measure<Segment>("segment");
    measure<CachedRing<1>>("ring_runs_of_1");
    measure<CachedRing<64>>("ring_runs_of_64");
    measure<CachedRing<1024>>("ring_runs_of_1024");
    measure<Baidu>("baidu_ring");
    benchmark::Initialize(&argc, argv);
    benchmark::RunSpecifiedBenchmarks();
}
