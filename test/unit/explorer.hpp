// Explores every interleaving of a few actors, one atomic operation at a time.
//
// Each actor is a fiber that gives way before each operation on a Stepped atomic and before each attempt on a
// SteppedLock. A schedule is the list of actors in the order in which they were let go on. explore() runs the
// scenario from its start again for each schedule, depth first, until none is left. The operations are
// sequentially consistent; what weaker orders allow is the business of the stress tests.
//
// Long scenarios have too many schedules. For them the preemptions may be bounded: how often an actor that
// could go on is stopped in favour of another. Most races need only one or two.
#pragma once

#include <ucontext.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <initializer_list>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace uidgen::test {

class Explorer {
  public:
    using Body = std::function<void()>;

    static constexpr size_t unbounded = SIZE_MAX;

    explicit Explorer(size_t max_preemptions) : max_preemptions_(max_preemptions) {}

    // The exploration in progress, for the atomics; null while a world is made or judged.
    static inline Explorer *active = nullptr;

    // Runs the bodies under the next schedule. False: they block each other.
    bool run(const std::vector<Body> &bodies) {
        fibers_.resize(bodies.size());
        depth_ = steps_ = preemptions_ = 0;
        schedule_.clear();
        active = this;
        for (size_t i = 0; i < bodies.size(); i++)
            start(i, bodies[i]);
        switch_to(choose());
        active = nullptr;
        return all_done();
    }

    // Moves to the next schedule; false when all were run.
    bool advance() {
        while (!path_.empty() && path_.back().chosen + 1 == path_.back().options)
            path_.pop_back();
        if (path_.empty())
            return false;
        path_.back().chosen++;
        return true;
    }

    const std::string &schedule() const { return schedule_; }

    // Before an operation: lets another actor go first, in every way there is.
    void step() { switch_to(starting_ ? nobody : choose()); }

    // The same, and the actor is not let go on while `ready` says no.
    void step_when(const std::function<bool()> &ready) {
        fibers_[running_].ready = &ready;
        step();
        fibers_[running_].ready = nullptr;
    }

    // For real-time order: the number of the last step, and that of the caller's first step after begin().
    void begin() { fibers_[running_].first_step = 0; }
    uint64_t first_step() const { return fibers_[running_].first_step; }
    uint64_t last_step() const { return steps_; }

  private:
    static constexpr size_t nobody = SIZE_MAX;
    static constexpr size_t most_actors = 8;
    static constexpr size_t stack_bytes = 64 * 1024;

    struct Fiber {
        ucontext_t context;
        std::unique_ptr<char[]> stack{new char[stack_bytes]};
        const Body *body = nullptr;
        bool done = false;
        const std::function<bool()> *ready = nullptr;
        uint64_t first_step = 0;
    };

    struct Choice {
        size_t chosen;
        size_t options;
    };

    // Brings an actor to its first operation, so that all that follows are choices between operations.
    void start(size_t actor, const Body &body) {
        Fiber &fiber = fibers_[actor];
        fiber.body = &body;
        fiber.done = false;
        fiber.ready = nullptr;
        getcontext(&fiber.context);
        fiber.context.uc_stack.ss_sp = fiber.stack.get();
        fiber.context.uc_stack.ss_size = stack_bytes;
        fiber.context.uc_link = nullptr;
        makecontext(&fiber.context, &Explorer::enter, 0);
        starting_ = true;
        switch_to(actor);
        starting_ = false;
    }

    static void enter() {
        Explorer &self = *active;
        Fiber &fiber = self.fibers_[self.running_];
        (*fiber.body)();
        fiber.done = true;
        self.step();
        abort(); // a finished actor is never chosen again
    }

    void switch_to(size_t actor) {
        const size_t from = running_;
        running_ = actor;
        if (actor != from)
            swapcontext(&context_of(from), &context_of(actor));
    }

    ucontext_t &context_of(size_t actor) { return actor == nobody ? main_ : fibers_[actor].context; }

    bool enabled(size_t actor) const {
        const Fiber &fiber = fibers_[actor];
        return !fiber.done && (fiber.ready == nullptr || (*fiber.ready)());
    }

    // Who goes on: along the path as far as it is known, and by the first option beyond it.
    size_t choose() {
        const bool could_go_on = running_ != nobody && enabled(running_);
        size_t options[most_actors];
        size_t count = 0;
        for (size_t i = 0; i < fibers_.size(); i++)
            if (enabled(i) && (i == running_ || !could_go_on || preemptions_ < max_preemptions_))
                options[count++] = i;
        if (count == 0)
            return nobody;
        if (depth_ == path_.size())
            path_.push_back({0, count});
        const size_t actor = options[path_[depth_++].chosen];
        preemptions_ += could_go_on && actor != running_ ? 1 : 0;
        record(actor);
        return actor;
    }

    void record(size_t actor) {
        schedule_ += static_cast<char>('a' + actor);
        steps_++;
        if (fibers_[actor].first_step == 0)
            fibers_[actor].first_step = steps_;
    }

    bool all_done() const {
        for (const Fiber &fiber : fibers_)
            if (!fiber.done)
                return false;
        return true;
    }

    const size_t max_preemptions_;
    std::vector<Fiber> fibers_;
    std::vector<Choice> path_;
    size_t depth_ = 0;
    size_t preemptions_ = 0;
    bool starting_ = false;
    size_t running_ = nobody;
    uint64_t steps_ = 0;
    std::string schedule_;
    ucontext_t main_;
};

// Outside an exploration, while a world is made or judged, nobody is there to give way to.
inline void step() {
    if (Explorer::active != nullptr)
        Explorer::active->step();
}

// Stands in for std::atomic. It has the operations that the core uses.
template <typename T> class Stepped {
  public:
    T load(std::memory_order) const {
        step();
        return value_;
    }
    void store(T value, std::memory_order) {
        step();
        value_ = value;
    }
    bool compare_exchange_weak(T &expected, T desired, std::memory_order, std::memory_order) {
        step();
        if (value_ != expected) {
            expected = value_;
            return false;
        }
        value_ = desired;
        return true;
    }

  protected:
    T value_{};
};

// Stands in for a page's lock. The actor that holds it may be interrupted; others then wait.
class SteppedLock {
  public:
    void lock() {
        acquire([this] { return !exclusive_ && shared_ == 0; });
        exclusive_ = true;
    }
    void unlock() { exclusive_ = false; }
    void lock_shared() {
        acquire([this] { return !exclusive_; });
        shared_++;
    }
    void unlock_shared() { shared_--; }

  private:
    static void acquire(const std::function<bool()> &free) {
        if (Explorer::active != nullptr)
            Explorer::active->step_when(free);
    }

    bool exclusive_ = false;
    int shared_ = 0;
};

using Table = std::set<std::string>; // of outcomes

struct Explored {
    uint64_t schedules = 0;
    Table seen;
    std::string forbidden; // the outcome that ended the exploration, and how it came about
};

// A world as the exploration sees it: how to make it anew, what its actors do, what came out.
struct Scenario {
    std::function<void()> make;
    std::vector<Explorer::Body> actors;
    std::function<std::string()> outcome;
};

// Runs the schedules of a scenario: all of them, or up to the first outcome that is not acceptable.
inline Explored explore(const Table &acceptable, const Scenario &scenario, size_t max_preemptions) {
    Explorer explorer(max_preemptions);
    Explored result;
    do {
        scenario.make();
        const std::string outcome = explorer.run(scenario.actors) ? scenario.outcome() : "DEADLOCK";
        result.schedules++;
        result.seen.insert(outcome);
        if (acceptable.count(outcome) == 0) {
            result.forbidden = outcome + ", by schedule " + explorer.schedule();
            break;
        }
    } while (explorer.advance());
    return result;
}

template <typename World>
Explored explore(const Table &acceptable, std::initializer_list<void (*)(World &)> actors,
                 size_t max_preemptions = Explorer::unbounded) {
    std::unique_ptr<World> world;
    Scenario scenario = {[&world] { world = std::make_unique<World>(); }, {}, [&world] { return world->outcome(); }};
    for (const auto actor : actors)
        scenario.actors.push_back([&world, actor] { actor(*world); });
    return explore(acceptable, scenario, max_preemptions);
}

} // namespace uidgen::test
