// A fleet in miniature: two servers of a registry, up to three members, calls and answers under way, and what happens to
// all of them. The members run the core that ships (holding.hpp).
//
// A *member* is a generator in one data directory, with what is durable there. The second server is a former primary, or
// another fleet's registry. The third member is a copy of the first one, or a newcomer. The ground truth says which member
// drew each tick of a node.
#pragma once

#include <cstring>
#include <string>
#include <vector>

#include "registry_model.hpp"

namespace uidgen::test {

constexpr int most_members = 3, most_calls = 2, most_ticks = 24, stranger = most_members;

// What happens at most so often in a scenario, and how it is written there.
enum Kind {
    crash,
    copy_directory,
    promote_member,
    clone,
    recreate,
    newcomer,
    clock_step,
    registry_clock_step,
    repeat,
    waits,
    failover,
    switchover,
    dies,
    returns,
    split,
    stop,
    fail_back,
    take_back,
    restore,
    anew,
    put_back,
    put_back_fenced,
    restore_running,
    lift,
    false_lift,
    promise_failovers,
    promise_restarts,
    invent,
    invent_term,
    wrong_line,
    hello,
    kinds
};
constexpr const char *kind_names =
    "crash, copy_directory, promote_member, clone, recreate, newcomer, clock_step, registry_clock_step, repeat, waits, "
    "failover, switchover, dies, returns, split, stop, fail_back, take_back, restore, anew, put_back, put_back_fenced, "
    "restore_running, lift, false_lift, promise_failovers, promise_restarts, invent, invent_term, wrong_line, hello";

struct Size : RegistrySize {
    int members = 2;
    int ahead = 1; // ticks that a member draws ahead of its clock
    int end = 13;
    int keeps = restarts;
    int whole_calls = 0;  // a call is one step
    int partition = 0;    // a member may reach one of the registries
    int short_grants = 0; // that member B asks for
    int late_promise = 0; // the promise is weakened after the standby is off
    int former_ends = 0;  // a former primary that starts again is stopped before its fence is over
    std::vector<int> clocks = {0};
    std::vector<int> registry_clocks = {0};
    int budget[kinds] = {};
};

struct Member {
    int8_t up, offset, mark, layout;
    int8_t holds, node, since, until, token, new_token, earliest, must_join; // core::Holding
    int8_t fleet, seen;
    int8_t told; // that another holder has its node
};

struct Call {
    int8_t valid, live, server, has_begun;
    RegistryModel::Begun begun;
    Request request;
};

struct Delivery {
    int8_t valid;
    Reply reply;
};

struct State {
    int8_t now, starts, places;
    Member members[most_members];
    Call calls[most_calls];
    Delivery answers[most_members];
    Server servers[2]; // the registry, and another one
    Registry standby, backup;
    int8_t has_backup, has_had_third; // member
    // What the first member held when it was cloned; and the token of a call that was under way then, which both repeat.
    int8_t clone_node, clone_until, clone_token;
    int8_t standby_mark; // of the first member's standby
    int8_t commits_lost; // nothing_was_lost() would not be true
    int8_t largest_term; // that a registry has answered with
    int8_t drawn[most_nodes][most_ticks];
    int8_t budget[kinds];
};
static_assert(alignof(State) == 1, "no padding, for the hash");

struct Outcome {
    const char *broken = nullptr; // what must not happen
    uint32_t events = 0;
};

using Emit = std::function<void(const State &, const Outcome &, const std::string &text)>;

// How a state becomes another one.
class Steps {
  public:
    Steps(const Rules &rules, const Size &size) : rules_(rules), size_(size), registry_(rules, size) {}

    bool telling = false; // texts are made
    // Told of each whole call: the server before it, its clock, the request, the reply, and the server after it.
    std::function<void(const Server &, int, const Request &, const Reply &, const Server &)> on_call;
    // The same of a statement: its function, its argument, and whether it was refused.
    std::function<void(const Server &, int, const char *, int, bool, const Server &)> on_statement;

  protected:
    template <typename... Parts> std::string say(const Parts &...parts) const {
        std::string text;
        if (telling)
            (add(text, parts), ...);
        return text;
    }
    static void add(std::string &text, const char *part) { text += part; }
    static void add(std::string &text, char part) { text += part; }
    static void add(std::string &text, int part) { text += std::to_string(part); }
    static char letter(int member) { return static_cast<char>('A' + member); }

    template <typename Change>
    void follow(const State &s, const Emit &emit, const std::string &text, const Change &change) const {
        State next = s;
        Outcome out;
        change(next, out);
        renumber_tokens(next);
        emit(next, out, text);
    }

    // The same for what happens so often.
    template <typename Change>
    void spend(Kind kind, const State &s, const Emit &emit, const std::string &text, const Change &change) const {
        follow(s, emit, text, [&](State &next, Outcome &out) {
            next.budget[kind]--;
            change(next, out);
        });
    }

    template <typename See> static void for_each_token(State &s, const See &see) {
        for (Registry *db : {&s.servers[0].db, &s.servers[1].db, &s.standby, &s.backup})
            for (Row &row : db->rows)
                see(row.token);
        for (Member &m : s.members) {
            see(m.token);
            see(m.new_token);
        }
        see(s.clone_token);
        for (Call &call : s.calls) {
            see(call.request.token);
            see(call.request.new_token);
        }
    }

    int8_t fresh_token(const State &of) const {
        if (!rules_.has_own_token)
            return 1;
        State s = of;
        int largest = 0;
        for_each_token(s, [&](int8_t &token) { largest = std::max<int>(largest, token); });
        return static_cast<int8_t>(largest + 1);
    }

    void renumber_tokens(State &s) const {
        if (!rules_.has_own_token)
            return;
        int8_t renumbered[128] = {}, last = 0;
        for_each_token(s, [&](int8_t &token) {
            if (token == 0)
                return;
            int8_t &now = renumbered[static_cast<int>(token)];
            now = now == 0 ? ++last : now;
            token = now;
        });
    }

    static int clock(const State &s, int offset) { return std::max(0, s.now + offset); }

    Member new_member(int i) const {
        Member m = {};
        m.mark = -1;
        m.layout = static_cast<int8_t>(size_.layouts > 1 ? i % 2 : 0);
        return m;
    }

    int lowest_of(const State &s, const Member &m) const { return std::max(clock(s, m.offset), m.mark + 1); }

    const Rules rules_;
    const Size size_;
    const RegistryModel registry_;
};

} // namespace uidgen::test
