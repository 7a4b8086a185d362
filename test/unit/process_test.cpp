// Processes on one word in shared memory, some of which die or freeze in the middle of a call. They do so before or
// after a chosen atomic operation of the word, never while they hold the page's lock: PostgreSQL itself restarts when a
// process dies there. The other processes go on, and no value is seen twice.
#include "callers.hpp"
#include "ring.hpp"

#include <gtest/gtest.h>

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <new>
#include <random>

using namespace uidgen::test;
namespace core = uidgen::core;

namespace {

// What will happen to this process: this signal, after so many operations outside the lock. 0: nothing.
struct Mishap {
    uint64_t operations_left = 0;
    int signal = 0;
    bool holds_lock = false;
};
Mishap mishap;

void survive_or_not() {
    if (mishap.holds_lock || mishap.operations_left == 0 || --mishap.operations_left > 0)
        return;
    kill(getpid(), mishap.signal);
}

// An atomic at which its process may end.
template <typename T> class Fragile {
  public:
    T load(std::memory_order order) const {
        survive_or_not();
        return value_.load(order);
    }
    void store(T value, std::memory_order order) {
        survive_or_not();
        value_.store(value, order);
        survive_or_not();
    }
    bool compare_exchange_weak(T &expected, T desired, std::memory_order success, std::memory_order failure) {
        survive_or_not();
        const bool swapped = value_.compare_exchange_weak(expected, desired, success, failure);
        survive_or_not();
        return swapped;
    }
    bool compare_exchange_strong(T &expected, T desired, std::memory_order success, std::memory_order failure) {
        survive_or_not();
        const bool swapped = value_.compare_exchange_strong(expected, desired, success, failure);
        survive_or_not();
        return swapped;
    }

  private:
    std::atomic<T> value_;
};

class ProcessLock {
  public:
    ProcessLock() {
        pthread_rwlockattr_t attributes;
        pthread_rwlockattr_init(&attributes);
        pthread_rwlockattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
        pthread_rwlock_init(&lock_, &attributes);
        pthread_rwlockattr_destroy(&attributes);
    }
    void lock() {
        mishap.holds_lock = true;
        pthread_rwlock_wrlock(&lock_);
    }
    void lock_shared() {
        mishap.holds_lock = true;
        pthread_rwlock_rdlock(&lock_);
    }
    void unlock() {
        pthread_rwlock_unlock(&lock_);
        mishap.holds_lock = false;
    }
    void unlock_shared() { unlock(); }

  private:
    pthread_rwlock_t lock_;
};

constexpr unsigned survivors = 2;
constexpr unsigned victims = 4;
constexpr size_t draws = 3000;

// The values that a process drew, as far as it recorded them before its end.
struct Results {
    std::atomic<size_t> count{0};
    std::atomic<bool> sound{true};
    uint64_t values[draws];

    void add(const Draw &draw) {
        const size_t at = count.load(std::memory_order_relaxed);
        if (!draw.durable || (at > 0 && values[at - 1] >= draw.first))
            sound.store(false, std::memory_order_relaxed);
        values[at] = draw.first;
        count.store(at + 1, std::memory_order_release);
    }
};

template <typename Counter> struct Shared {
    Counter counter;
    Results results[survivors + victims];
};

template <typename Counter> class SharedMemory {
  public:
    SharedMemory() {
        void *memory =
            mmap(nullptr, sizeof(Shared<Counter>), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (memory == MAP_FAILED)
            abort();
        shared_ = new (memory) Shared<Counter>;
    }
    ~SharedMemory() { munmap(shared_, sizeof(Shared<Counter>)); }
    SharedMemory(const SharedMemory &) = delete;
    SharedMemory &operator=(const SharedMemory &) = delete;
    Shared<Counter> *operator->() { return shared_; }

  private:
    Shared<Counter> *shared_;
};

template <typename Counter> pid_t start_process(SharedMemory<Counter> &shared, unsigned self, Mishap fate) {
    const pid_t child = fork();
    if (child != 0)
        return child;
    mishap = fate;
    for (size_t i = 0; i < draws; i++)
        shared->results[self].add(shared->counter.draw(1));
    _exit(0);
}

// How a child ended or stopped. A stopped child is killed.
int end_of(pid_t child) {
    int status = 0;
    waitpid(child, &status, WUNTRACED);
    if (!WIFSTOPPED(status))
        return status;
    kill(child, SIGKILL);
    int killed = 0;
    waitpid(child, &killed, 0);
    return status;
}

// One round. Returns how many processes were killed or stopped as planned.
template <typename Counter> unsigned play(int signal, std::mt19937_64 &random) {
    SharedMemory<Counter> shared;
    std::vector<pid_t> children;
    for (unsigned i = 0; i < survivors + victims; i++) {
        const Mishap fate = {i < survivors ? 0 : 1 + random() % (draws * 4), signal, false};
        children.push_back(start_process(shared, i, fate));
    }

    unsigned met = 0;
    std::vector<uint64_t> all;
    for (unsigned i = 0; i < survivors + victims; i++) {
        // A frozen process stays frozen until the survivors, which come first, are done.
        const int status = end_of(children[i]);
        const Results &results = shared->results[i];
        const size_t count = results.count.load(std::memory_order_acquire);
        const bool finished = WIFEXITED(status) && WEXITSTATUS(status) == 0 && count == draws;
        EXPECT_TRUE(finished || i >= survivors) << "a survivor did not finish";
        EXPECT_TRUE(results.sound.load()) << "a value out of order, or not durable";
        met += (WIFSIGNALED(status) && WTERMSIG(status) == signal) || WIFSTOPPED(status) ? 1 : 0;
        all.insert(all.end(), results.values, results.values + count);
    }
    EXPECT_FALSE(has_duplicates(all)) << "a value twice";
    return met;
}

template <typename Counter> class Processes : public ::testing::Test {
  protected:
    // Enough rounds for a process to end at every operation of take(), before and after it.
    void play_rounds(int signal) {
        constexpr unsigned rounds = 100;
        std::mt19937_64 random(20260106);
        unsigned met = 0;
        for (unsigned i = 0; i < rounds && !this->HasFailure(); i++)
            met += play<Counter>(signal, random);
        EXPECT_GT(met, rounds * victims / 2) << "most victims outlived their rounds";
    }
};

using Counters = ::testing::Types<Generator<Fragile, ProcessLock>, Segment<Fragile, ProcessLock>>;
TYPED_TEST_SUITE(Processes, Counters);

TYPED_TEST(Processes, SurvivorsGoOnWhenOthersAreKilled) { this->play_rounds(SIGKILL); }
TYPED_TEST(Processes, SurvivorsGoOnWhenOthersFreeze) { this->play_rounds(SIGSTOP); }

// ---------------------------------------------------------------------------------------------------------
// A ring between processes: half of them draw positions from the word and put them, half take. One of each kind
// survives, and two are victims.

constexpr unsigned ring_processes = 6;
constexpr unsigned ring_survivors = 2; // they come first
constexpr size_t ring_draws = 1000;    // of a taker
constexpr uint64_t most_cells = 64;
constexpr uint64_t first_position = 1;

struct TakenPositions {
    std::atomic<size_t> count{0};
    uint64_t values[ring_draws];
};

struct SharedRing {
    core::RingHints<Fragile> hints;
    Fragile<uint64_t> cells[most_cells];
    core::PositionAllocator<Fragile> word;
    std::atomic<bool> enough{false};      // the takers have all they need
    TakenPositions known[ring_processes]; // the takers' positions; the one that a putter still held at its end

    core::Ring<Fragile> ring(uint64_t cell_count) { return {&hints, cells, cell_count}; }
};

void note(TakenPositions &known, uint64_t position) {
    const size_t at = known.count.load(std::memory_order_relaxed);
    known.values[at] = position;
    known.count.store(at + 1, std::memory_order_release);
}

void put_positions(SharedRing &shared, core::Ring<Fragile> ring, TakenPositions &known) {
    while (!shared.enough.load()) {
        const core::Run run = shared.word.take(0, UINT64_MAX, 1);
        while (!ring.put(run.first)) {
            if (shared.enough.load())
                return note(known, run.first);
            sched_yield();
        }
    }
}

void take_positions(core::Ring<Fragile> ring, TakenPositions &known) {
    while (known.count.load(std::memory_order_relaxed) < ring_draws) {
        const uint64_t position = ring.take(0).first;
        if (position == core::empty_cell)
            sched_yield();
        else
            note(known, position);
    }
}

bool is_putter(unsigned process) { return process % 2 == 1; }

// A process that does not end is a failure too; it ends by this alarm.
constexpr unsigned too_long_s = 60;

pid_t start_ring_process(SharedRing &shared, uint64_t cell_count, unsigned self, Mishap fate) {
    const pid_t child = fork();
    if (child != 0)
        return child;
    alarm(too_long_s);
    mishap = fate;
    if (is_putter(self))
        put_positions(shared, shared.ring(cell_count), shared.known[self]);
    else
        take_positions(shared.ring(cell_count), shared.known[self]);
    _exit(0);
}

struct Mapped {
    Mapped() {
        void *memory = mmap(nullptr, sizeof(SharedRing), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (memory == MAP_FAILED)
            abort();
        shared = new (memory) SharedRing;
    }
    ~Mapped() { munmap(shared, sizeof(SharedRing)); }
    Mapped(const Mapped &) = delete;
    Mapped &operator=(const Mapped &) = delete;
    SharedRing *shared;
};

// The content of every cell, wherever the cursor is.
std::vector<uint64_t> left_in(const SharedRing &shared, uint64_t cell_count) {
    std::vector<uint64_t> left;
    for (uint64_t i = 0; i < cell_count; i++) {
        const uint64_t position = shared.cells[i].load(std::memory_order_acquire);
        if (position != core::empty_cell)
            left.push_back(position);
    }
    return left;
}

// One round. Returns how many processes were killed or stopped as planned.
unsigned play_ring(int signal, std::mt19937_64 &random) {
    const uint64_t cell_count = UINT64_C(1) << random() % 7;
    Mapped mapped;
    SharedRing &shared = *mapped.shared;
    shared.hints.reset(UINT64_MAX - random() % 200);
    shared.ring(cell_count).clear();
    shared.word.reset(first_position);

    std::vector<pid_t> children;
    for (unsigned i = 0; i < ring_processes; i++) {
        const Mishap fate = {i < ring_survivors ? 0 : 1 + random() % (ring_draws * 4), signal, false};
        children.push_back(start_ring_process(shared, cell_count, i, fate));
    }

    // Takers first: they need a putter that goes on. A frozen process stays frozen until the surviving taker is done.
    unsigned met = 0;
    for (const unsigned i : {0u, 2u, 4u, 1u, 3u, 5u}) {
        shared.enough.store(is_putter(i));
        const int status = end_of(children[i]);
        const bool finished = WIFEXITED(status) && WEXITSTATUS(status) == 0;
        const bool mishap_met = (WIFSIGNALED(status) && WTERMSIG(status) == signal) || WIFSTOPPED(status);
        EXPECT_TRUE(finished || (mishap_met && i >= ring_survivors)) << "process " << i << " did not finish";
        met += mishap_met ? 1 : 0;
    }

    std::vector<uint64_t> all = left_in(shared, cell_count);
    for (const TakenPositions &known : shared.known)
        all.insert(all.end(), known.values, known.values + known.count.load());
    EXPECT_FALSE(has_duplicates(all)) << "a position twice";
    const uint64_t drawn = shared.word.last() + 1 - first_position;
    EXPECT_LE(all.size(), drawn);
    EXPECT_LE(drawn - all.size(), met) << "more than one run lost for a process that met its mishap";
    return met;
}

void play_ring_rounds(int signal) {
    constexpr unsigned rounds = 400;
    std::mt19937_64 random(20260107);
    unsigned met = 0;
    for (unsigned i = 0; i < rounds && !::testing::Test::HasFailure(); i++)
        met += play_ring(signal, random);
    EXPECT_GT(met, rounds * (ring_processes - ring_survivors) / 2) << "most victims outlived their rounds";
}

TEST(ProcessesOnARing, SurvivorsGoOnWhenOthersAreKilled) { play_ring_rounds(SIGKILL); }
TEST(ProcessesOnARing, SurvivorsGoOnWhenOthersFreeze) { play_ring_rounds(SIGSTOP); }

} // namespace
