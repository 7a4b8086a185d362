// All that may happen to a fleet in miniature (fleet_state.hpp): what members do, and what servers of the registry and
// administrators do.
#pragma once

#include "fleet_members.hpp"

namespace uidgen::test {

class World : public MemberSteps {
  public:
    using MemberSteps::MemberSteps;

    State start() const {
        State s = {};
        for (int i = 0; i < most_members; i++) {
            s.members[i] = new_member(i);
            s.members[i].up = i < size_.members;
        }
        s.places = s.starts = s.largest_term = 1;
        Server &primary = s.servers[0];
        primary = {1, 1, 1, 1, static_cast<int8_t>(size_.registry_clocks[0]), {}};
        primary.db.fleet = primary.db.system = primary.db.timeline = primary.db.started = 1;
        primary.db.term = primary.db.fence = 1;
        primary.db.keeps = static_cast<int8_t>(size_.keeps);
        if (size_.budget[wrong_line] > 0) {
            s.servers[1] = primary;
            s.servers[1].system = s.servers[1].db.system = s.servers[1].db.fleet = 2;
            for (Member &m : s.members)
                m.fleet = 1;
        }
        s.standby = primary.db;
        s.standby_mark = -1;
        for (int i = 0; i < kinds; i++)
            s.budget[i] = static_cast<int8_t>(size_.budget[i]);
        return s;
    }

    // Every state that may come next.
    void expand(const State &s, const Emit &emit) const {
        if (s.now < size_.end && !former_has_ended(s))
            follow(s, emit, say("time"), [](State &next, Outcome &) { next.now++; });
        for (int i = 0; i < most_members; i++)
            if (s.members[i].up) {
                draw(s, emit, i);
                ask(s, emit, i);
                receive(s, emit, i);
                fail_member(s, emit, i);
            }
        carry_out(s, emit);
        copy_member(s, emit);
        fail_registry(s, emit);
        restore_registry(s, emit);
        administer(s, emit);
    }

  private:
    bool former_has_ended(const State &s) const {
        const Server &former = s.servers[1];
        return size_.former_ends && former.up && former.db.started == former.started && former.db.fence > 1 &&
               s.now >= former.db.lost_from + size_.length - 1;
    }

    static bool differ(const Registry &a, const Registry &b) { return memcmp(&a, &b, sizeof(a)) != 0; }

    // Calls under way end with their server.
    static void lose_calls(State &s) {
        for (Call &call : s.calls)
            if (call.valid && call.server == 0)
                call = {};
    }

    // nothing_was_lost() speaks of all since the last call.
    static void count_loss(State &s, bool loses) {
        const Server &at = s.servers[0];
        const bool is_uncalled =
            at.db.timeline != at.timeline || at.db.system != at.system || at.db.started != at.started;
        s.commits_lost = (is_uncalled && s.commits_lost) || loses;
    }

    static void become(State &s, const Registry &db, int offset, bool other_system) {
        const int8_t timeline = ++s.places;
        s.servers[0] = {
            1, other_system ? ++s.places : s.servers[0].system, timeline, ++s.starts, static_cast<int8_t>(offset), db};
    }

    // What an administrator does at a registry. `change` returns false if the statement is refused.
    template <typename Change>
    void administer_at(Server &at, int now, const char *function, int argument, const Change &change) const {
        const Server before = at;
        const bool is_refused = !change();
        if (on_statement != nullptr)
            on_statement(before, now, function, argument, is_refused, at);
    }

    void fence(Server &at, int now, int above) const {
        administer_at(at, now, "fence", above, [&] {
            registry_.fence(&at, now, above);
            return true;
        });
    }

    void fail_registry(const State &s, const Emit &emit) const {
        const Server &primary = s.servers[0];
        const bool has_standby = s.budget[failover] > 0 || s.budget[split] > 0 || s.budget[dies] > 0;
        if (has_standby && primary.up && differ(s.standby, primary.db))
            follow(s, emit, say("the registry's standby follows"),
                   [](State &next, Outcome &) { next.standby = next.servers[0].db; });
        for (const int offset : size_.registry_clocks) {
            const auto fail_over = [&](State &next) {
                lose_calls(next);
                count_loss(next, differ(next.standby, next.servers[0].db));
                become(next, next.standby, offset, false);
            };
            if (s.budget[failover] > 0 && primary.db.keeps < failovers)
                spend(failover, s, emit, say("the standby takes over as it is, with a clock off by ", offset),
                      [&](State &next, Outcome &) { fail_over(next); });
            if (s.budget[dies] > 0 && !s.servers[1].up && s.servers[1].timeline == 0 && primary.db.keeps < failovers)
                spend(dies, s, emit,
                      say("the primary ends for now, and the standby takes over, with a clock off by ", offset),
                      [&](State &next, Outcome &) {
                          next.servers[1] = next.servers[0];
                          next.servers[1].up = 0;
                          fail_over(next);
                      });
            if (s.budget[switchover] > 0)
                spend(switchover, s, emit, say("the standby takes over with all commits, with a clock off by ", offset),
                      [&](State &next, Outcome &) {
                          lose_calls(next);
                          count_loss(next, false);
                          become(next, next.servers[0].db, offset, false);
                      });
            if (s.budget[split] > 0 && !s.servers[1].up)
                spend(split, s, emit,
                      say("the standby is promoted while the primary continues, with a clock off by ", offset),
                      [&](State &next, Outcome &) {
                          for (Call &call : next.calls)
                              call.server = call.valid ? int8_t{1} : int8_t{0};
                          next.servers[1] = next.servers[0];
                          next.commits_lost = 1;
                          become(next, next.standby, offset, false);
                      });
            if (s.budget[registry_clock_step] > 0 && offset != primary.offset)
                spend(registry_clock_step, s, emit, say("the registry's clock is off by ", offset),
                      [&](State &next, Outcome &) { next.servers[0].offset = static_cast<int8_t>(offset); });
        }
        if (s.budget[returns] > 0 && !s.servers[1].up && s.servers[1].timeline != 0)
            spend(returns, s, emit, say("the former primary starts"), [](State &next, Outcome &) {
                next.servers[1].up = 1;
                next.servers[1].started = ++next.starts;
            });
        if (s.budget[stop] > 0 && (s.servers[1].up || s.budget[dies] + s.budget[returns] > 0))
            spend(stop, s, emit, say(primary.up ? "the registry stops" : "the registry starts"),
                  [](State &next, Outcome &) {
                      next.servers[0].up = !next.servers[0].up;
                      if (next.servers[0].up)
                          next.servers[0].started = ++next.starts;
                  });
    }

    void restore_registry(const State &s, const Emit &emit) const {
        const Server &primary = s.servers[0];
        const int backups =
            s.budget[restore] + s.budget[put_back] + s.budget[put_back_fenced] + s.budget[restore_running];
        if (backups > 0 && (!s.has_backup || differ(s.backup, primary.db)))
            follow(s, emit, say("the registry is backed up"), [](State &next, Outcome &) {
                next.backup = next.servers[0].db;
                next.has_backup = 1;
            });
        for (const int offset : size_.registry_clocks) {
            if (s.budget[restore] > 0 && s.has_backup)
                spend(restore, s, emit, say("the backup is restored elsewhere, with a clock off by ", offset),
                      [&](State &next, Outcome &) {
                          lose_calls(next);
                          count_loss(next, differ(next.backup, primary.db));
                          become(next, next.backup, offset, primary.db.keeps == failovers);
                      });
            if (s.budget[anew] > 0)
                spend(anew, s, emit, say("the registry is made anew, with a clock off by ", offset),
                      [&](State &next, Outcome &) {
                          lose_calls(next);
                          next.commits_lost = 1;
                          become(next, {}, offset, true);
                          Server &at = next.servers[0];
                          at.db = registry_.made_anew(at, clock(next, offset), primary.db.fleet, primary.db.keeps);
                      });
        }
        const auto put_it_back = [&](State &next) {
            lose_calls(next);
            count_loss(next, differ(next.backup, primary.db));
            next.servers[0].db = next.backup;
            next.servers[0].started = ++next.starts;
        };
        const auto fence_it = [&](State &next) { fence(next.servers[0], clock(next, primary.offset), 0); };
        if (s.budget[put_back] > 0 && s.has_backup)
            spend(put_back, s, emit, say("a snapshot of the registry's disk is put back"),
                  [&](State &next, Outcome &) { put_it_back(next); });
        if (s.budget[put_back_fenced] > 0 && s.has_backup)
            spend(put_back_fenced, s, emit, say("a snapshot of the registry's disk is put back, and fence()"),
                  [&](State &next, Outcome &) {
                      put_it_back(next);
                      next.commits_lost = 1;
                      fence_it(next);
                  });
        if (s.budget[restore_running] > 0 && s.has_backup)
            spend(restore_running, s, emit, say("rows are restored into the running registry, and fence()"),
                  [&](State &next, Outcome &) {
                      next.servers[0].db = next.backup;
                      next.commits_lost = 1;
                      fence_it(next);
                  });
    }

    void administer(const State &s, const Emit &emit) const {
        const Server &primary = s.servers[0];
        const int now = clock(s, primary.offset);
        const bool has_fence = primary.db.timeline != primary.timeline || primary.db.lost_from > 0;
        for (const Kind kind : {lift, false_lift})
            if (s.budget[kind] > 0 && primary.up && has_fence && (kind == false_lift || !s.commits_lost))
                spend(kind, s, emit, say("nothing_was_lost()"), [&](State &next, Outcome &out) {
                    Server &at = next.servers[0];
                    administer_at(at, now, "nothing_was_lost", 0,
                                  [&] { return registry_.lift(&at, now, &out.events); });
                });
        for (const auto &[kind, keeps] :
             {std::pair(promise_failovers, failovers), std::pair(promise_restarts, restarts)})
            if (s.budget[kind] > 0 && primary.up && primary.db.keeps != keeps &&
                (keeps == failovers || primary.db.keeps == failovers))
                spend(kind, s, emit, say(keeps == failovers ? "promise('failovers')" : "promise('restarts')"),
                      [&](State &next, Outcome &out) {
                          Server &at = next.servers[0];
                          administer_at(at, now, "promise", keeps, [&, keeps = keeps] {
                              registry_.promise(&at, now, keeps, &out.events);
                              return true;
                          });
                          if (!size_.late_promise)
                              next.standby = next.servers[0].db;
                      });
        const bool has_former = s.servers[1].timeline != 0 && !s.servers[1].up;
        const auto go_back = [](State &next) {
            lose_calls(next);
            next.commits_lost = 1;
            next.servers[0] = next.servers[1];
            next.servers[0].up = 1;
            next.servers[1] = {};
        };
        int largest = 0;
        for (const Member &m : s.members)
            largest = std::max<int>(largest, m.seen);
        if (s.budget[fail_back] > 0 && has_former)
            spend(fail_back, s, emit, say("back to the former primary for good, and fence()"),
                  [&](State &next, Outcome &) {
                      go_back(next);
                      next.servers[0].started = ++next.starts;
                      fence(next.servers[0], clock(next, next.servers[0].offset), largest);
                  });
        if (s.budget[take_back] > 0 && has_former && largest > s.servers[1].db.term)
            spend(take_back, s, emit, say("the former primary has its lock back, and is shown the new one's term"),
                  [&](State &next, Outcome &out) {
                      go_back(next);
                      registry_.see_larger_term(&next.servers[0], clock(next, next.servers[0].offset), largest,
                                                &out.events);
                  });
        if (s.budget[invent_term] > 0 && primary.up)
            spend(invent_term, s, emit, say("a stranger invents a term"), [&](State &next, Outcome &out) {
                registry_.see_larger_term(&next.servers[0], now, 99, &out.events);
            });
        if (s.budget[invent] > 0 && primary.up)
            for (int8_t node = 0; node < size_.nodes; node++) {
                State next = s;
                next.budget[invent]--;
                const Request request = {0,
                                         0,
                                         0,
                                         node,
                                         0,
                                         most_ticks - 1,
                                         0,
                                         fresh_token(s),
                                         static_cast<int8_t>(now),
                                         static_cast<int8_t>(size_.length),
                                         stranger};
                process(next, 0, request, nullptr, [&](State &x, Outcome &out, const Reply &reply, bool) {
                    renumber_tokens(x);
                    emit(x, out, say("a stranger invents a grant of node ", node, words_of(reply).c_str()));
                });
            }
    }
};

} // namespace uidgen::test
