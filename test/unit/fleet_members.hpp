// What the members of a fleet in miniature do (fleet_state.hpp): they draw, call, crash, and are copied. And how the
// registry carries their calls out.
#pragma once

#include "fleet_state.hpp"

namespace uidgen::test {

class MemberSteps : public Steps {
  protected:
    using Steps::Steps;

    static core::Holding holding_of(const Member &m) {
        return {m.holds != 0, m.must_join != 0, {m.node, m.since, m.until, m.token}, m.new_token, m.earliest};
    }

    static void store(Member *m, const core::Holding &h) {
        m->holds = h.holds;
        m->node = static_cast<int8_t>(h.grant.node);
        m->since = static_cast<int8_t>(h.grant.since);
        m->until = static_cast<int8_t>(h.grant.until);
        m->token = static_cast<int8_t>(h.grant.token);
        m->new_token = static_cast<int8_t>(h.new_token);
        m->earliest = static_cast<int8_t>(h.earliest);
        m->must_join = h.must_join;
    }

    void draw(const State &s, const Emit &emit, int i) const {
        const Member &m = s.members[i];
        const int now = clock(s, m.offset);
        const int tick = std::max<int>(rules_.keeps_mark ? lowest_of(s, m) : now, m.since);
        if (!m.holds || (tick >= m.until && rules_.stays_inside_grant) || tick > now + size_.ahead ||
            tick >= most_ticks)
            return;
        follow(s, emit, say(letter(i), " draws (node ", m.node, ", tick ", tick, ")"), [&](State &next, Outcome &out) {
            next.members[i].mark = std::max<int8_t>(m.mark, static_cast<int8_t>(tick));
            int8_t &drawn = next.drawn[size_.layouts > 1 ? 0 : m.node][tick];
            // A clone and its original share what the original held, until one of them is told.
            const bool is_kin = m.node == s.clone_node && tick < s.clone_until && i != 1 && drawn != 2 && !m.told;
            out.broken = drawn != 0 && !(is_kin && drawn != i + 1) ? "a tick was drawn twice" : nullptr;
            out.events |= s.servers[0].db.lost_from > 0 ? drew_after_fence : 0;
            drawn = static_cast<int8_t>(i + 1);
        });
    }

    void ask(const State &s, const Emit &emit, int i) const {
        const Member &m = s.members[i];
        int free = -1;
        for (int k = 0; k < most_calls; k++)
            if (!s.calls[k].valid)
                free = k;
            else if (s.calls[k].request.member == i && s.calls[k].live)
                return; // one at a time
        if (free < 0 || s.answers[i].valid || (m.holds && m.until - lowest_of(s, m) >= size_.length))
            return;
        const int best = best_server(s, i);
        if (s.budget[hello] > 0 && best >= 0) // whose call is lost
            spend(hello, s, emit, say(letter(i), " says hello"), [&](State &next, Outcome &) { greet(next, i, best); });
        for (int k = 0; k < 2; k++) {
            const bool is_wrong = k == 1 && size_.budget[wrong_line] > 0;
            const bool may_ask = k == best || size_.partition || (!rules_.goes_to_largest && s.servers[0].up);
            if (!s.servers[k].up || (is_wrong ? s.budget[wrong_line] == 0 : !may_ask))
                continue;
            send(s, emit, i, k, free, !core::calls_as_newcomer(holding_of(m)));
        }
    }

    // The servers are the hosts of the member's line, but for another fleet's registry.
    int best_server(const State &s, int i) const {
        core::Hello hellos[2] = {};
        for (int k = 0; k < (size_.budget[wrong_line] > 0 ? 1 : 2); k++) {
            const Server &server = s.servers[k];
            const int now = clock(s, server.offset);
            hellos[k] = {server.up != 0, server.db.fleet, registry_.term_at(server, now, s.members[i].seen), 0, now};
        }
        return core::best_registry(hellos, 2, {s.members[i].fleet, s.members[i].seen, 0});
    }

    void greet(State &next, int i, int server) const {
        const Server &to = next.servers[server];
        if (!rules_.hello_counts_not)
            next.members[i].seen =
                static_cast<int8_t>(registry_.term_at(to, clock(next, to.offset), next.members[i].seen));
    }

    void send(const State &s, const Emit &emit, int i, int server, int free, bool renews) const {
        State next = s;
        Member &m = next.members[i];
        core::Holding h = holding_of(m);
        if (!rules_.earliest_never_falls)
            h.earliest = 0;
        core::prepare_call(&h, !rules_.draws_fresh_token && m.token != 0 ? m.token : fresh_token(next),
                           lowest_of(s, m));
        store(&m, h);
        next.budget[wrong_line] =
            static_cast<int8_t>(next.budget[wrong_line] - (server == 1 && size_.budget[wrong_line] > 0 ? 1 : 0));
        Request request = {m.fleet,
                           m.seen,
                           m.layout,
                           -1,
                           0,
                           0,
                           0,
                           m.new_token,
                           m.earliest,
                           static_cast<int8_t>(size_.length - (size_.short_grants && i == 1 ? 1 : 0)),
                           static_cast<int8_t>(i)};
        if (renews) {
            request.node = m.node;
            request.since = m.since;
            request.until = m.until;
            request.token = m.token;
        }
        const std::string text =
            say(letter(i), " asks", server == 1 ? " the other registry" : "", renews ? " to extend" : "");
        next.calls[free] = {1, 1, static_cast<int8_t>(server), 0, {}, request};
        if (!size_.whole_calls) {
            renumber_tokens(next);
            emit(next, {}, text);
            return;
        }
        next.calls[free] = {};
        process(next, server, request, nullptr, [&](State &x, Outcome &out, const Reply &reply, bool) {
            State lost = x;
            renumber_tokens(lost);
            accept(x, i, reply, &out);
            renumber_tokens(x);
            emit(x, out, say(text.c_str(), words_of(reply).c_str()));
            emit(lost, out, say(text.c_str(), words_of(reply).c_str(), ", but the answer is lost"));
        });
    }

    std::string words_of(const Reply &reply) const {
        static const char *const words[] = {"gets",  "ahead", "fenced",   "none free",   "no renewal",
                                            "taken", "range", "outdated", "other fleet", "other layout"};
        const char *word = words[static_cast<int>(reply.why)];
        return reply.why == Why::granted ? say(": gets node ", reply.node, " until ", reply.until) : say(": ", word);
    }

    void accept(State &s, int i, const Reply &reply, Outcome *out) const {
        Member &m = s.members[i];
        core::Answer answer = {reply.why, reply.fleet, reply.term, {reply.node, reply.since, reply.until, 0}};
        const core::FleetSeen seen = {m.fleet, m.seen, 0};
        const core::FleetSeen blind = {rules_.compares_fleet ? m.fleet : 0, rules_.never_goes_back ? m.seen : 0, 0};
        if (!core::answer_counts(blind, answer)) {
            out->events |= smaller_term_ignored;
            return;
        }
        if (core::answer_counts(seen, answer)) {
            const core::FleetSeen after = core::seen_after(seen, answer, 0);
            m.fleet = static_cast<int8_t>(after.fleet);
            m.seen = static_cast<int8_t>(after.term);
        }
        if (answer.why == Why::taken) {
            m.told = 1;
            answer.why = rules_.stops_when_taken ? Why::taken : Why::lost;
        }
        if (answer.why == Why::granted && m.new_token == s.clone_token && s.clone_token != 0) {
            s.clone_node = s.clone_until == 0 ? reply.node : s.clone_node;
            s.clone_until = reply.node == s.clone_node ? std::max(s.clone_until, reply.until) : s.clone_until;
        }
        core::Holding h = holding_of(m);
        const core::NodeRange range = {size_.layouts > 1 ? m.layout : 0,
                                       size_.layouts > 1 ? m.layout : size_.nodes - 1};
        if (answer.why == Why::granted && !core::grant_is_valid(h, range, answer.grant)) {
            out->broken = "a member takes a grant for one that no registry gives";
            return;
        }
        core::accept_answer(&h, answer);
        if ((!rules_.forgets_time_when_ahead && answer.why == Why::ahead) ||
            (!rules_.joins_with_fresh_token && core::calls_as_newcomer(h) && h.new_token == 0)) {
            h.new_token = m.new_token;
            h.earliest = m.earliest;
        }
        store(&m, h);
        if (!rules_.begins_where_answer_says)
            m.since = 0;
    }

    void receive(const State &s, const Emit &emit, int i) const {
        if (!s.answers[i].valid)
            return;
        const Reply reply = s.answers[i].reply;
        follow(s, emit, say(letter(i), " has its answer", words_of(reply).c_str()), [&](State &next, Outcome &out) {
            next.answers[i] = {};
            accept(next, i, reply, &out);
        });
        follow(s, emit, say("the answer to ", letter(i), " is lost"),
               [&](State &next, Outcome &) { next.answers[i] = {}; });
    }

    static void forget_calls(State &s, int i) {
        s.answers[i] = {};
        for (Call &call : s.calls)
            if (call.valid && call.request.member == i)
                call.live = 0;
    }

    static void forget_grant(Member *m) {
        const Member old = *m;
        *m = {};
        m->up = old.up;
        m->offset = old.offset;
        m->mark = old.mark;
        m->layout = old.layout;
        m->fleet = old.fleet;
        m->seen = old.seen;
    }

    // A start, with a file that was written here or not.
    void start_member(State &s, int i, bool is_own_file) const {
        Member &m = s.members[i];
        forget_calls(s, i);
        if (!rules_.stores_call)
            m.new_token = m.earliest = 0;
        else if (rules_.starts_with_fresh_token)
            store(&m, core::holding_at_start(holding_of(m)));
        if (!rules_.keeps_mark)
            m.mark = -1;
        if (!is_own_file && rules_.file_is_bound)
            forget_grant(&m);
    }

    void fail_member(const State &s, const Emit &emit, int i) const {
        const Member &m = s.members[i];
        if (s.budget[crash] > 0) {
            spend(crash, s, emit, say(letter(i), " crashes and starts"),
                  [&](State &next, Outcome &) { start_member(next, i, true); });
            spend(crash, s, emit, say(letter(i), " ends for good"), [&](State &next, Outcome &) {
                forget_calls(next, i);
                next.members[i] = new_member(i);
            });
        }
        if (s.budget[recreate] > 0 && m.mark >= 0)
            spend(recreate, s, emit, say(letter(i), " makes its generator anew"), [&](State &next, Outcome &) {
                forget_calls(next, i);
                next.members[i].mark = -1;
                if (rules_.grant_needs_mark)
                    forget_grant(&next.members[i]);
            });
        for (const int offset : size_.clocks)
            if (s.budget[clock_step] > 0 && offset != m.offset)
                spend(clock_step, s, emit, say("the clock of ", letter(i), " is off by ", offset),
                      [&](State &next, Outcome &) { next.members[i].offset = static_cast<int8_t>(offset); });
    }

    void copy_member(const State &s, const Emit &emit) const {
        const Member &first = s.members[0];
        if (s.budget[promote_member] > 0 && s.standby_mark != first.mark)
            follow(s, emit, say("A's standby follows"),
                   [](State &next, Outcome &) { next.standby_mark = next.members[0].mark; });
        if (s.has_had_third || !first.up)
            return;
        const auto copy = [&](State &next, bool is_own_file) {
            next.has_had_third = 1;
            next.members[0].told = 0;
            next.members[2] = next.members[0];
            start_member(next, 2, is_own_file);
        };
        if (s.budget[copy_directory] > 0)
            spend(copy_directory, s, emit, say("C is a copy of A's directory"),
                  [&](State &next, Outcome &) { copy(next, false); });
        if (s.budget[promote_member] > 0)
            spend(promote_member, s, emit, say("C is A's standby, promoted"), [&](State &next, Outcome &) {
                copy(next, false);
                next.members[2].mark = next.standby_mark;
            });
        if (s.budget[clone] > 0 && (first.holds || first.new_token != 0))
            spend(clone, s, emit, say("C is a clone of A below the file system"), [&](State &next, Outcome &) {
                copy(next, true);
                next.clone_node = first.node;
                next.clone_until = first.until;
                next.clone_token = core::calls_as_newcomer(holding_of(first)) ? int8_t{0} : first.new_token;
            });
        if (s.budget[newcomer] > 0)
            spend(newcomer, s, emit, say("C is a new member"), [&](State &next, Outcome &) {
                next.has_had_third = 1;
                next.members[2] = new_member(2);
                next.members[2].up = 1;
            });
    }

    // Calls then(state, outcome, reply, is_answered) for each way in which the registry may carry the call out.
    template <typename Then>
    void process(const State &s, int server, const Request &request, const RegistryModel::Begun *begun,
                 const Then &then) const {
        bool more = true;
        for (int pick = 0; more; pick++) {
            State next = s;
            Outcome out;
            Server &at = next.servers[server];
            const Server before = at;
            const int now = clock(s, at.offset);
            Reply reply = {Why::granted, at.db.fleet, at.db.term, -1, 0, 0};
            RegistryModel::Begun start = {};
            if (begun != nullptr)
                start = *begun;
            bool is_answered = true;
            more = false;
            if (begun != nullptr || registry_.begin(&at, now, request, &start, &reply, &out.events))
                is_answered = registry_.finish(&at, start, request, pick, &more, &reply, &out.events);
            if (on_call != nullptr && begun == nullptr && pick == 0)
                on_call(before, now, request, reply, at);
            out.events |= reply.why == Why::granted ? 0 : refused(reply.why);
            out.broken = broken_by(s, before, at.db.fence, now, request, reply);
            if (reply.why != Why::outdated && reply.why != Why::other_fleet)
                next.largest_term = std::max(next.largest_term, at.db.term);
            if (!rules_.commits_before_answer) {
                State aborted = next;
                aborted.servers[server].db = before.db;
                then(aborted, out, reply, is_answered);
            }
            then(next, out, reply, is_answered);
        }
    }

    const char *broken_by(const State &s, const Server &before, int fence, int now, const Request &request,
                          const Reply &reply) const {
        if (reply.why == Why::outdated && request.seen > s.largest_term && s.servers[1].db.term < request.seen)
            return "a member is refused for a term of which there is no registry";
        if (reply.why == Why::taken && s.servers[1].timeline == 0) {
            // In a fence the row may be of before the member's own latest call, which was lost.
            const Row &row = before.db.rows[request.node];
            const bool is_named = row.token == request.token || row.token == request.new_token;
            if (row.holder == request.member + 1 && (is_named || row.fence == fence))
                return "a member is told that another one has its node, which has none";
        }
        if (reply.why == Why::granted && reply.node >= 0) {
            const int until = before.db.rows[reply.node].until;
            if (reply.until > std::max(until, now + 2 * size_.bound + size_.length))
                return "a node is taken for longer than a grant";
            if (reply.until < until)
                return "until falls";
        }
        return nullptr;
    }

    void carry_out(const State &s, const Emit &emit) const {
        for (int k = 0; k < most_calls; k++) {
            const Call &call = s.calls[k];
            if (!call.valid)
                continue;
            const int i = call.request.member;
            if (s.servers[call.server].up) {
                State rest = s;
                rest.calls[k] = {};
                process(rest, call.server, call.request, call.has_begun ? &call.begun : nullptr,
                        [&](State &next, Outcome &out, const Reply &reply, bool is_answered) {
                            arrive(next, emit, out, call, k, reply, is_answered);
                        });
                wait_for_row(s, emit, k);
            }
            follow(s, emit, say("the request of ", letter(i), " is lost"),
                   [&](State &next, Outcome &) { next.calls[k] = {}; });
            if (call.live && !s.answers[i].valid)
                follow(s, emit, say(letter(i), " gives up its call"),
                       [&](State &next, Outcome &) { next.calls[k].live = 0; });
        }
    }

    void arrive(State &next, const Emit &emit, Outcome &out, const Call &call, int k, const Reply &reply,
                bool is_answered) const {
        const int i = call.request.member;
        if (!call.live) {
            out.events |= late_answer_ignored;
            out.broken = nullptr; // nobody is told
        }
        if (is_answered && (call.live || !rules_.ignores_given_up) && next.members[i].up)
            next.answers[i] = {1, reply};
        const std::string text =
            say("the registry answers ", letter(i), is_answered ? words_of(reply).c_str() : ": aborted");
        State again = next;
        renumber_tokens(next);
        emit(next, out, text);
        if (again.budget[repeat] > 0) {
            again.budget[repeat]--;
            again.calls[k] = call;
            again.calls[k].live = again.calls[k].has_begun = 0;
            renumber_tokens(again);
            emit(again, out, say(text.c_str(), ", and the call comes again"));
        }
    }

    // A call that has read the registry's row, and waits for another one.
    void wait_for_row(const State &s, const Emit &emit, int k) const {
        const Call &call = s.calls[k];
        State next = s;
        Server &at = next.servers[call.server];
        Reply reply;
        uint32_t events = 0;
        if (s.budget[waits] == 0 || call.has_begun ||
            !registry_.begin(&at, clock(s, at.offset), call.request, &next.calls[k].begun, &reply, &events) ||
            memcmp(&at.db, &s.servers[call.server].db, sizeof(Registry)) != 0)
            return;
        next.calls[k].has_begun = 1;
        next.budget[waits]--;
        emit(next, {}, say("the call of ", letter(call.request.member), " waits"));
    }
};

} // namespace uidgen::test
