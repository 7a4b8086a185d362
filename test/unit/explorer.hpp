// Explores every interleaving of a few actors, one atomic operation at a time.
//
// Each actor is a fiber that yields before each operation on an atomic and before each attempt on a lock (weak_memory.hpp).
// A schedule is the list of actors in the order in which they were resumed. The scenario runs again from its start for
// each schedule, depth first, until none is left (explore_weakly()).
//
// One actor may be halted: after a given number of its operations it never goes on, like a process that was killed. The
// schedule then ends when the other actors are done.
#pragma once

#include <ucontext.h>

#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace uidgen::test {

class Explorer {
  public:
    using Body = std::function<void()>;

    static constexpr size_t nobody = SIZE_MAX;

    struct Bounds {
        size_t halted = nobody;    // the actor that never goes on
        uint64_t halted_after = 0; // its operations
        // Whether an earlier schedule has come to the present state. If so, the rest of this one brings nothing new.
        std::function<bool()> is_known = nullptr;
    };

    enum class End { done, deadlock, endless, known };

    explicit Explorer(Bounds bounds) : bounds_(bounds) {}

    // The exploration in progress, for the atomics; null while a world is made or checked.
    static inline Explorer *active = nullptr;

    // Runs the bodies under the next schedule, until they are done, block each other, or exceed most_steps.
    End run(const std::vector<Body> &bodies) {
        fibers_.resize(bodies.size());
        depth_ = steps_ = 0;
        known_ = false;
        schedule_.clear();
        active = this;
        for (size_t i = 0; i < bodies.size(); i++)
            start(i, bodies[i]);
        switch_to(choose());
        active = nullptr;
        if (known_)
            return End::known;
        return steps_ == most_steps ? End::endless : all_done() ? End::done : End::deadlock;
    }

    // Whether the actor to be halted was halted, in the schedule that just ran.
    bool halted() const { return bounds_.halted != nobody && !fibers_[bounds_.halted].done; }

    // Moves to the next schedule. False: all were run.
    bool advance() {
        while (!path_.empty() && path_.back().chosen + 1 == path_.back().options)
            path_.pop_back();
        if (path_.empty())
            return false;
        path_.back().chosen++;
        return true;
    }

    const std::string &schedule() const { return schedule_; }

    // Before an operation: resumes another actor first, in every possible way.
    void step() { switch_to(starting_ ? nobody : choose()); }

    // The same, but the actor is not resumed while `ready` returns false.
    void step_when(const std::function<bool()> &ready) {
        fibers_[running_].ready = &ready;
        step();
        fibers_[running_].ready = nullptr;
    }

    // Which of several results an operation has. Each comes in some schedule.
    size_t pick(size_t options) {
        if (depth_ == path_.size())
            path_.push_back({0, options});
        const size_t chosen = path_[depth_++].chosen;
        if (options > 1)
            schedule_ += std::to_string(chosen);
        return chosen;
    }

    // The actor that runs.
    size_t actor() const { return running_; }

    // How many operations the caller has made.
    uint64_t own_steps() const { return fibers_[running_].steps; }

  private:
    static constexpr size_t most_actors = 8;
    static constexpr size_t stack_bytes = 64 * 1024;
    static constexpr uint64_t most_steps = 300; // no scenario needs nearly as many

    struct Fiber {
        ucontext_t context;
        std::unique_ptr<char[]> stack{new char[stack_bytes]};
        const Body *body = nullptr;
        bool done = false;
        const std::function<bool()> *ready = nullptr;
        uint64_t steps = 0;
    };

    struct Choice {
        size_t chosen;
        size_t options;
    };

    // Runs an actor up to its first operation, so that all later choices are between operations.
    void start(size_t actor, const Body &body) {
        Fiber &fiber = fibers_[actor];
        fiber.body = &body;
        fiber.done = false;
        fiber.ready = nullptr;
        fiber.steps = 0;
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
        return !fiber.done && (actor != bounds_.halted || fiber.steps < bounds_.halted_after) &&
               (fiber.ready == nullptr || (*fiber.ready)());
    }

    // The actor to resume: from the path as far as it is known, and the first option beyond it.
    size_t choose() {
        if (steps_ == most_steps)
            return nobody;
        size_t options[most_actors];
        size_t count = 0;
        for (size_t i = 0; i < fibers_.size(); i++)
            if (enabled(i))
                options[count++] = i;
        if (count == 0)
            return nobody;
        if (depth_ == path_.size()) {
            known_ = bounds_.is_known != nullptr && bounds_.is_known();
            if (known_)
                return nobody;
            path_.push_back({0, count});
        }
        const size_t actor = options[path_[depth_++].chosen];
        record(actor);
        return actor;
    }

    void record(size_t actor) {
        schedule_ += static_cast<char>('a' + actor);
        steps_++;
        fibers_[actor].steps++;
    }

    bool all_done() const {
        for (size_t i = 0; i < fibers_.size(); i++)
            if (!fibers_[i].done && i != bounds_.halted)
                return false;
        return true;
    }

    const Bounds bounds_;
    std::vector<Fiber> fibers_;
    std::vector<Choice> path_;
    size_t depth_ = 0;
    bool known_ = false;
    bool starting_ = false;
    size_t running_ = nobody;
    uint64_t steps_ = 0;
    std::string schedule_;
    ucontext_t main_;
};

using Table = std::set<std::string>; // of outcomes

struct Explored {
    uint64_t schedules = 0;
    uint64_t halted = 0; // schedules in which the actor was halted before its end
    Table seen;
    std::string forbidden; // the outcome that ended the exploration, and its schedule
};

template <typename World> using Actors = std::vector<void (*)(World &)>;

} // namespace uidgen::test
