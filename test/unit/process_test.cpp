// Processes on one word in shared memory, some of which die or freeze in the middle of a call. They do so
// before or after a chosen atomic operation of the word, never with the page's lock in hand: PostgreSQL itself
// restarts when a process dies there. The others go on, and no value is seen twice.
#include "callers.hpp"

#include <gtest/gtest.h>

#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <new>
#include <random>

using namespace uidgen::test;

namespace {

// What will happen to this process: after so many operations outside the lock, this signal. 0: nothing.
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

// What a process drew, as far as it came to write it down.
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

// How a child ended or stopped; a child that stopped is put away.
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

// One round; returns how many processes met their mishap.
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
    // Enough rounds that the mishaps fall on every operation of take(), before and after.
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

} // namespace
