// What random histories of generators share: the words, the log of leases, and the parts of the caller's loop that do
// not depend on what is checked. The loop is that of src/pg/draw/draw_generator.cpp.
//
// Self has a type Call with a ClockState `view`, a Decision `decision` and the number of ids `want`, perform(call,
// decision), which returns whether the call has ended, and hand_out(call, run, backup). It is a friend of this class.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "clock_policy.hpp"

namespace uidgen::test {

template <typename Self> class HistoryCaller {
  public:
    void confirm() {
        const core::WrittenRange written = word_.written_range();
        durable_ = std::max(durable_, static_cast<size_t>(written.lsn));
        word_.confirm(core::Durability::local, written.until);
    }

  protected:
    explicit HistoryCaller(const core::ClockPolicy &policy) : p_(policy) {}

    uint64_t position(int64_t tick) const { return static_cast<uint64_t>(tick) << p_.sequence_bits; }
    int64_t tick_of(uint64_t pos) const { return static_cast<int64_t>(pos >> p_.sequence_bits); }

    core::ClockState read_state(int64_t now) const {
        core::ClockState view{};
        view.seen = seen_;
        view.last = word_.last();
        view.usable = word_.usable(core::Durability::local);
        view.written = word_.written_range().until;
        view.now = now;
        return view;
    }

    template <typename Call> bool take_backup(const Call &call, int64_t back) {
        core::ClockState view = call.view;
        view.last = backup_.last();
        const core::Decision d = core::decide_backup(p_, view, back);
        if (d.action == core::ClockAction::take) {
            const core::Run run = backup_.take(d.floor, d.limit, call.want);
            self().hand_out(call, run, true);
            return run.count > 0;
        }
        if (back == 0 && d.action == core::ClockAction::wait)
            return self().perform(call, core::decide(p_, call.view, true));
        return self().perform(call, d);
    }

    // Every confirmed record survives. Of the later ones, those up to some point survive.
    template <typename Random> void lose_what_is_not_durable(Random &random) {
        marks_.resize(durable_ + random() % (marks_.size() - durable_ + 1));
    }

    void restart() {
        durable_ = marks_.size();
        word_.reset(position(marks_.back()));
        backup_.reset(position(marks_.back()));
        seen_ = core::nothing_seen;
    }

    const core::ClockPolicy p_;
    core::PositionAllocator<> word_;
    core::BackupAllocator<> backup_;
    int64_t seen_ = core::nothing_seen;
    std::vector<int64_t> marks_{1}; // the first tick that is not leased, after each record
    size_t durable_ = 1;

  private:
    Self &self() { return static_cast<Self &>(*this); }
};

} // namespace uidgen::test
