// A fleet in miniature, over the functions that ship: one registry and a few members. fleet_test.cpp explores it.
//
// A *member* is a generator in one data directory, with what is durable there: its membership, what its server has seen
// of the fleet, and its high-water mark. The registry has a durable state and a standby whose state is any earlier one,
// because replication may stop at any time. The ground truth says which member drew each pair (node, tick).
//
// A state is a small value without pointers, so that a search can keep millions of them. A *step* changes it. What is
// counted (serials) is renumbered after each step, because only the order of serials matters.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "membership.hpp"

namespace uidgen::test {

// What a mutant replaces: the decisions of the core, and what their callers do with them.
struct Protocol {
    core::Judgement (*judge)(const core::Layout &, const core::RegistryView &, const core::Ask &,
                             const core::NodeRow *) = core::judge;
    core::NodeRow (*extended)(const core::Layout &, const core::RegistryView &, const core::Ask &,
                              const core::NodeRow *) = core::extended;
    bool (*is_free)(const core::Layout &, const core::RegistryView &, const core::Ask &,
                    const core::NodeRow &) = core::is_free;
    core::NodeRow (*granted)(const core::Layout &, const core::RegistryView &, const core::Ask &,
                             const core::NodeRow &) = core::granted;
    bool (*is_missed)(const core::Ask &, const core::NodeRow &) = core::is_missed;
    core::NodeRow (*used_before)(const core::Layout &, const core::RegistryView &, const core::Ask &, core::NodeRow,
                                 int64_t) = core::used_before;
    core::RegistryView (*fenced)(core::RegistryView, int64_t) = core::fenced;
    core::NodeRow (*revoked)(const core::Layout &, const core::RegistryView &, const core::NodeRow &,
                             int64_t) = core::revoked;
    core::Accepted (*accept)(core::Membership *, core::FleetSeen *, const core::Answer &) = core::accept;
    void (*restart)(core::Membership *, uint64_t) = core::begin_incarnation;
    void (*start_elsewhere)(core::Membership *, uint64_t) = core::begin_line; // another directory, host or timeline
    void (*start_without_mark)(core::Membership *, uint64_t) = core::begin_line;
    bool answers_before_commit = false;
    bool flushes = true; // false: synchronous_commit off, so commits are lost and the registry cannot know
    bool compares_environment = true;
    bool keeps_mark = true;
    bool stays_inside_grant = true;
    bool own_incarnation = true; // false: a server has one for all its members
    bool keeps_shown_term = true;
};

constexpr int most_members = 3;
constexpr int most_nodes = 2;
constexpr int most_model_former = 3;
constexpr int model_ticks = 32;

// The core's structs, as small as the model's numbers.
struct SmallGrant {
    int8_t node, from, until, line, term, serial;
};

struct Asker {
    int8_t incarnation, former_count, former[most_model_former];
    int8_t holds;
    SmallGrant held;
    int8_t fleet, term, serial; // what its server has seen
};

enum class Life : int8_t { absent, before_fleet, alive, dead };

struct Member {
    Asker asker;
    Life life;
    int8_t superseded;
    int8_t mark;   // the highest tick that was leased
    int8_t offset; // of its clock
    int8_t joins;  // until it holds a node it names the one that it used before
};

struct SmallRow {
    int8_t from, until, line, incarnation, term, serial, revoked;
};

struct Registry {
    int8_t term, serial, term_shown, base;
    SmallRow rows[most_nodes];
    int8_t copy_answered; // of two copies of one life, which was answered as the life that follows: 1 + member; 0: none
};

struct Request {
    int8_t member; // 1 + its number; 0: there is none
    Asker asker;
    int8_t clock, lowest, joins;
};

struct Response {
    int8_t member;
    int8_t why, incarnation, fleet;
    SmallGrant grant;
};

struct State {
    Registry registry, standby;
    Member members[most_members];
    Request request;   // on its way to the registry, where it may arrive late
    Response response; // on its way to the member, where it may arrive late
    int8_t now;        // ticks
    int8_t registry_offset;
    int8_t other_environment; // since the registry's last call
    int8_t lost_silently;     // commits were lost, and neither environment nor member has shown it
    int8_t last_incarnation;
    // A life that was copied below the file system: 1 + member of both, and the line that they share.
    int8_t copy, copied, copy_line, copy_node, copy_incarnation, lost_since_copy;
    int8_t padding[5];
    uint64_t drawn[most_nodes][2]; // 4 bits a tick: drawer_of()
};

// What happened in a step: what must not, and what the search must have met for its result to mean something.
enum Event : uint32_t {
    granted_newcomer = 1 << 0,
    extended_grant = 1 << 1,
    survived_fence = 1 << 2,
    newcomer_after_fence = 1 << 3,
    fence_by_environment = 1 << 4,
    fence_by_member = 1 << 5,
    fence_not_needed = 1 << 6,
    refused_fenced = 1 << 7,
    refused_superseded = 1 << 8,
    refused_stale = 1 << 9,
    refused_ahead = 1 << 10,
    refused_other_fleet = 1 << 11,
    answered_again = 1 << 12, // the second row of judge()
    late_answer_ignored = 1 << 13,
    late_ask = 1 << 14,
    other_fleet_ignored = 1 << 15,
    row_from_member = 1 << 16, // a lost row was restored from what the member showed
    drew_by_both_copies = 1 << 17,
    was_revoked = 1 << 18,
    joined = 1 << 19,
};

struct Outcome {
    const char *broken = nullptr; // what must not happen
    uint32_t events = 0;
};

enum class StepKind : uint8_t {
    advance,         // time, by `arg` ticks
    set_clock,       // of a member: its offset becomes `arg`
    set_registry,    // the same of the registry
    ask,             // and get the answer
    ask_unanswered,  // the answer is under way, and may never come
    ask_slowly,      // the request is under way
    arrive,          // the request arrives; its answer is under way
    deliver,         // the answer arrives
    draw,            // one tick
    draw_all,        // every tick of the grant above the mark, whatever the clock says
    restart,         // after a crash or not
    copy_file,       // member 2 begins from a copy of the member's whole disk
    copy_above,      // member 2 begins from a copied or restored directory, or is the promoted standby
    remake,          // the generator is dropped and made anew
    replicate,       // the standby has all commits
    fail_over,       // the standby becomes the registry
    lose_silently,   // the same, but nothing of the environment shows it
    fence_by_hand,   // uid_fleet_fence()
    revoke,          // node `arg`; the members that hold it are dead
    ask_other_fleet, // the member reaches the registry of another fleet
    join,            // a member that drew without a registry, further ahead by `arg`, gets one
};

struct Step {
    StepKind kind;
    int8_t member;
    int8_t arg;
};

struct Size {
    int64_t tick_us = 1;
    int64_t bound = 1;   // ticks
    int64_t longest = 4; // ticks
    int64_t length = 3;  // ticks that members ask for
    int8_t nodes = 2;
    int8_t end = 12;               // of time
    int8_t ahead = 99;             // how far above its clock a member draws
    int8_t registry_offset = 0;    // at the beginning
    bool never_superseded = false; // no life is copied, and no ask is late
    bool never_lost = false;       // no commit of the registry is lost
};

constexpr uint64_t this_fleet = 1;
constexpr uint64_t other_fleet = 2;

class World {
  public:
    World(const Protocol &protocol, const Size &size) : p_(protocol), size_(size) {}

    // Without `joining` members, `members` of them are newcomers. The others join later or are places for copies.
    State start(int members, int joining = 0) const {
        State s;
        memset(&s, 0, sizeof(s));
        s.now = 2;
        s.registry.term = 1;
        s.registry_offset = size_.registry_offset;
        s.standby = s.registry;
        for (int i = 0; i < members + joining; i++) {
            s.members[i].life = i < members ? Life::alive : Life::before_fleet;
            s.members[i].mark = -1;
            s.members[i].asker.incarnation = i == 0 || p_.own_incarnation ? fresh(s) : s.last_incarnation;
        }
        return s;
    }

    // False: the step does not apply.
    bool apply(State &s, const Step &step, Outcome &out) const {
        const bool applied = take(s, step, out);
        if (applied)
            renumber_serials(s);
        return applied;
    }

  private:
    const Protocol &p_;
    const Size size_;
    const core::Layout layout_ = {0, size_.tick_us, 5, 0, 1, 0};

    static int8_t small(int64_t value) { return static_cast<int8_t>(std::clamp<int64_t>(value, -100, 100)); }
    static int8_t fresh(State &s) { return ++s.last_incarnation; }
    static uint64_t big(int8_t random) { return static_cast<uint64_t>(static_cast<uint8_t>(random)); }

    bool take(State &s, const Step &step, Outcome &out) const {
        Member &m = s.members[step.member];
        const bool lives = m.life == Life::alive;
        const bool may_ask = lives && m.superseded == 0;
        switch (step.kind) {
        case StepKind::advance:
            s.now = small(s.now + step.arg);
            return s.now <= size_.end;
        case StepKind::set_clock:
            return lives && set(m.offset, step.arg);
        case StepKind::set_registry:
            return set(s.registry_offset, step.arg);
        case StepKind::ask: {
            if (!may_ask)
                return false;
            const Request request = request_of(s, step.member);
            Response response = {};
            const bool received = answer(s, request, response, out) && receive(s, response, out);
            if (received && response.why == static_cast<int8_t>(core::Refusal::superseded) && m.superseded == 0)
                out.broken = "a life that was refused as superseded goes on";
            return received;
        }
        case StepKind::ask_unanswered:
            return may_ask && answer(s, request_of(s, step.member), s.response, out);
        case StepKind::ask_slowly:
            if (!may_ask)
                return false;
            s.request = request_of(s, step.member);
            return true;
        case StepKind::arrive: {
            const Request request = s.request;
            s.request = {};
            out.events |= late_ask;
            return request.member != 0 && answer(s, request, s.response, out);
        }
        case StepKind::deliver: {
            const Response response = s.response;
            s.response = {};
            return response.member != 0 && receive(s, response, out);
        }
        case StepKind::draw:
            return lives && draw(s, step.member, false, out);
        case StepKind::draw_all:
            return lives && draw(s, step.member, true, out);
        case StepKind::restart:
            if (!lives || m.asker.former_count == most_model_former)
                return false;
            begin(s, step.member, p_.restart);
            if (!p_.keeps_mark)
                m.mark = -1;
            return true;
        case StepKind::copy_file:
        case StepKind::copy_above:
            return may_ask && m.asker.former_count < most_model_former && copy(s, step);
        case StepKind::remake:
            if (!lives || m.asker.former_count == most_model_former)
                return false;
            m.mark = -1;
            begin(s, step.member, p_.start_without_mark);
            return true;
        case StepKind::replicate:
            if (memcmp(&s.standby, &s.registry, sizeof(Registry)) == 0)
                return false;
            s.standby = s.registry;
            return true;
        case StepKind::fail_over:
        case StepKind::lose_silently:
            return lose(s, step.kind == StepKind::lose_silently);
        case StepKind::fence_by_hand: {
            core::RegistryView r = view(s);
            raise_fence(s, r);
            commit(s, r);
            s.other_environment = s.lost_silently = 0;
            return true;
        }
        case StepKind::revoke:
            return revoke(s, step.arg, out);
        case StepKind::ask_other_fleet:
            return may_ask && ask_other(s, step.member, out);
        case StepKind::join:
            if (m.life != Life::before_fleet)
                return false;
            m.life = Life::alive;
            m.mark = small(clock(s, step.member) + 1 + step.arg);
            m.joins = 1;
            return true;
        }
        return false;
    }

    template <typename T> static bool set(T &field, int8_t value) {
        const bool differs = field != value;
        field = value;
        return differs;
    }

    // -----------------------------------------------------------------------------------------------------
    // Clocks.

    int64_t clock(const State &s, int member) const { return std::max<int64_t>(s.now + s.members[member].offset, 0); }
    int64_t us(int64_t ticks) const { return ticks * size_.tick_us; }

    // -----------------------------------------------------------------------------------------------------
    // Between the model's structs and the core's.

    static core::Grant big(const SmallGrant &g) { return {g.node, g.from, g.until, big(g.line), g.term, g.serial}; }
    static SmallGrant small(const core::Grant &g) {
        return {small(g.node), small(g.from),  small(g.until), small(static_cast<int64_t>(g.line)),
                small(g.term), small(g.serial)};
    }

    core::NodeRow row(const State &s, int node) const {
        const SmallRow &r = s.registry.rows[node];
        return {node, r.from, r.until, big(r.line), big(r.incarnation), r.term, r.serial, big(r.revoked)};
    }

    core::Membership membership(const Member &m) const {
        core::Membership big_one = {};
        big_one.incarnation = big(m.asker.incarnation);
        big_one.former_count = static_cast<uint32_t>(m.asker.former_count);
        for (int i = 0; i < m.asker.former_count; i++)
            big_one.former[i] = big(m.asker.former[i]);
        big_one.holds = m.asker.holds != 0;
        big_one.superseded = m.superseded != 0;
        big_one.held = big(m.asker.held);
        return big_one;
    }

    static core::FleetSeen seen(const Member &m) { return {big(m.asker.fleet), m.asker.term, m.asker.serial}; }

    void store(Member &m, const core::Membership &big_one, const core::FleetSeen &seen) const {
        m.asker.incarnation = small(static_cast<int64_t>(big_one.incarnation));
        m.asker.former_count = small(big_one.former_count);
        for (int i = 0; i < most_model_former; i++)
            m.asker.former[i] = i < m.asker.former_count ? small(static_cast<int64_t>(big_one.former[i])) : int8_t{0};
        m.asker.holds = big_one.holds ? 1 : 0;
        m.asker.held = big_one.holds ? small(big_one.held) : SmallGrant{};
        m.joins = big_one.holds ? int8_t{0} : m.joins;
        m.superseded = big_one.superseded ? 1 : 0;
        m.asker.fleet = small(static_cast<int64_t>(seen.fleet));
        m.asker.term = small(seen.term);
        m.asker.serial = small(seen.serial);
    }

    Request request_of(const State &s, int member) const {
        const Member &m = s.members[member];
        const int64_t now = clock(s, member);
        return {static_cast<int8_t>(1 + member), m.asker, small(now), small(std::max<int64_t>(now, m.mark + 1)),
                m.joins};
    }

    core::Ask ask_of(const Request &request) const {
        Member m = {};
        m.asker = request.asker;
        const core::Membership big_one = membership(m);
        return core::ask_of(big_one, seen(m), us(request.clock), request.lowest, size_.length);
    }

    core::RegistryView view(const State &s) const {
        const Registry &r = s.registry;
        core::RegistryView v = {};
        v.fleet = this_fleet;
        v.term = r.term;
        v.serial = r.serial;
        v.own_serial = r.serial + 1;
        v.term_shown = r.term_shown;
        v.fence_base_us = r.base;
        v.longest_us = us(size_.longest);
        v.bound_us = us(size_.bound);
        v.now_us = std::max<int64_t>(us(s.now + s.registry_offset), 1);
        return v;
    }

    static void commit(State &s, const core::RegistryView &r) {
        s.registry.term = small(r.term);
        s.registry.serial = small(r.own_serial);
        s.registry.term_shown = small(r.term_shown);
        s.registry.base = small(r.fence_base_us);
    }

    static void commit(State &s, const core::NodeRow &row) {
        s.registry.rows[row.node] = {small(row.from),
                                     small(row.until),
                                     small(static_cast<int64_t>(row.line)),
                                     small(static_cast<int64_t>(row.incarnation)),
                                     small(row.term),
                                     small(row.serial),
                                     small(static_cast<int64_t>(row.revoked))};
    }

    // -----------------------------------------------------------------------------------------------------
    // The registry's call.

    void raise_fence(State &s, core::RegistryView &r) const {
        int64_t newest = 0;
        for (int node = 0; node < size_.nodes; node++)
            if (row(s, node).line != 0)
                newest = std::max(newest, core::latest_end_us(layout_, r, row(s, node)));
        r = p_.fenced(r, newest);
        if (s.lost_since_copy != 0)
            s.registry.copy_answered = 0; // what the registry lost cannot count
    }

    // The row of the latest answer that the asker missed; -1: there is none.
    int missed_node(const State &s, const core::Ask &a) const {
        int found = -1;
        for (int node = 0; node < size_.nodes; node++) {
            const core::NodeRow candidate = row(s, node);
            if (p_.is_missed(a, candidate) &&
                (found < 0 || core::is_later(candidate, {0, 0, 0, 0, row(s, found).term, row(s, found).serial})))
                found = node;
        }
        return found;
    }

    int free_node(const State &s, const core::RegistryView &r, const core::Ask &a) const {
        int found = -1;
        for (int node = 0; node < size_.nodes; node++)
            if (p_.is_free(layout_, r, a, row(s, node)) &&
                (found < 0 || core::comes_before(row(s, node), row(s, found))))
                found = node;
        return found;
    }

    struct Decision {
        core::Judgement judgement;
        core::Ask ask; // as it was judged
        int node;      // of the row that it was judged against; -1: none
    };

    Decision judge_against(const State &s, const core::RegistryView &r, const core::Ask &a, int node) const {
        core::NodeRow known = {};
        if (node >= 0)
            known = row(s, node);
        const bool exists = node >= 0 && known.until != 0;
        return {p_.judge(layout_, r, a, exists ? &known : nullptr), a, node};
    }

    Decision decide(const State &s, const core::RegistryView &r, const core::Ask &a) const {
        Decision d = judge_against(s, r, a, a.holds ? static_cast<int>(a.held.node) : missed_node(s, a));
        const int missed = a.holds ? missed_node(s, a) : -1;
        if (d.judgement.verdict == core::Verdict::newcomer && missed >= 0)
            d = judge_against(s, r, core::without_held(a), missed);
        return d;
    }

    // False: the step is outside what is promised.
    bool answer(State &s, const Request &request, Response &response, Outcome &out) const {
        core::Ask a = ask_of(request);
        core::RegistryView r = view(s);
        const State before = s;
        if (s.other_environment != 0 && p_.compares_environment) {
            raise_fence(s, r);
            s.other_environment = s.lost_silently = 0;
            out.events |= fence_by_environment;
        }
        // Until a member shows what was lost, the registry cannot know, and nothing is promised.
        if (s.lost_silently != 0) {
            if (p_.flushes && !shows_loss(s, r, a))
                return false;
            if (p_.flushes)
                s.lost_silently = 2;
        }
        if (p_.keeps_shown_term && a.fleet == r.fleet)
            r.term_shown = std::max(r.term_shown, a.term);
        if (request.joins != 0 && core::claims_too_much(layout_, r, a, s.members[request.member - 1].mark + 1)) {
            response = {
                request.member, static_cast<int8_t>(core::Refusal::ahead), request.asker.incarnation, this_fleet, {}};
            response.grant.term = small(r.term);
            response.grant.serial = small(r.own_serial);
            if (a.lowest < core::beginning(layout_, r, a) + core::grant_ticks(layout_, r, a))
                out.broken = "a joining member that could have a grant was refused";
            out.events |= refused_ahead;
            r.own_serial = s.registry.serial;
            commit(s, r);
            return true;
        }
        if (request.joins != 0)
            use_before(s, r, a, request.member - 1, out);
        Decision d = decide(s, r, a);
        if (d.judgement.verdict == core::Verdict::fence) {
            out.events |= s.lost_silently == 0 ? fence_by_member | fence_not_needed : fence_by_member;
            if (size_.never_lost)
                out.broken = "a false alarm";
            raise_fence(s, r);
            d = decide(s, r, a);
            if (d.judgement.verdict == core::Verdict::fence)
                out.broken = "a fence does not end the doubt";
        }
        if (s.lost_silently == 2)
            s.lost_silently = 0;
        response = {request.member, 0, request.asker.incarnation, this_fleet, {}};
        core::Refusal why = d.judgement.why;
        core::NodeRow after = {};
        bool has_row = false;
        switch (d.judgement.verdict) {
        case core::Verdict::extend: {
            core::NodeRow known = d.node >= 0 ? row(s, d.node) : core::NodeRow{};
            const bool exists = d.node >= 0 && known.until != 0;
            after = p_.extended(layout_, r, d.ask, exists ? &known : nullptr);
            has_row = true;
            note_extension(before, r, request, d, after, out);
            break;
        }
        case core::Verdict::newcomer: {
            const int node = free_node(s, r, a);
            why = node < 0 ? core::Refusal::fenced : core::Refusal::none;
            if (node >= 0) {
                after = p_.granted(layout_, r, a, row(s, node));
                has_row = true;
                note_newcomer(s, r, a, node, out);
            }
            break;
        }
        default:
            note_refusal(why, out);
            if (why == core::Refusal::superseded && size_.never_superseded)
                out.broken = "the latest life was refused";
        }
        check_survivor(before, r, request, d, out);
        response.why = static_cast<int8_t>(why);
        response.grant.term = small(r.term);
        response.grant.serial = small(r.own_serial);
        if (has_row) {
            response.grant = {small(after.node),  small(after.from),
                              small(after.until), small(static_cast<int64_t>(after.line)),
                              small(r.term),      small(r.own_serial)};
            if (after.until < row(s, static_cast<int>(after.node)).until)
                out.broken = "a node's until went back";
            if (a.fleet != 0 && a.fleet != r.fleet)
                out.broken = "a member of another fleet got a node";
            note_copies(s, request, d.judgement.verdict, after, out);
            if (!p_.answers_before_commit)
                commit(s, after);
        }
        // The serial of a refusal is drawn, but a crash may take it back.
        if (!has_row)
            r.own_serial = s.registry.serial;
        if (!p_.answers_before_commit)
            commit(s, r);
        return true;
    }

    // By the model's own account, so that a mutant cannot widen the exception.
    bool shows_loss(const State &s, const core::RegistryView &r, const core::Ask &a) const {
        if (a.term > r.term || r.term_shown > r.term || (a.term == r.term && a.serial > r.serial))
            return true;
        if (!a.holds || a.held.term != r.term)
            return false;
        const core::NodeRow known = row(s, static_cast<int>(a.held.node));
        return known.term < r.term || a.held.serial > known.serial;
    }

    void use_before(State &s, const core::RegistryView &r, const core::Ask &a, int member, Outcome &out) const {
        Member &m = s.members[member];
        const core::NodeRow known = row(s, 0);
        const core::NodeRow after = p_.used_before(layout_, r, a, known, m.mark + 1);
        if (known.until <= core::beginning(layout_, r, a))
            for (int64_t tick = known.until; tick <= m.mark; tick++)
                if (drawn(s, 0, tick) == 0 && !is_held(s, 0, tick))
                    set_drawn(s, 0, tick, 1 + member);
        commit(s, after);
        out.events |= joined;
    }

    static void note_refusal(core::Refusal why, Outcome &out) {
        switch (why) {
        case core::Refusal::other_fleet:
            out.events |= refused_other_fleet;
            break;
        case core::Refusal::stale_registry:
            out.events |= refused_stale;
            break;
        case core::Refusal::superseded:
            out.events |= refused_superseded;
            break;
        case core::Refusal::fenced:
            out.events |= refused_fenced;
            break;
        case core::Refusal::ahead:
            out.events |= refused_ahead;
            break;
        default:
            break;
        }
    }

    void note_newcomer(const State &s, const core::RegistryView &r, const core::Ask &a, int node, Outcome &out) const {
        out.events |= r.fence_base_us != 0 ? granted_newcomer | newcomer_after_fence : granted_newcomer;
        // The row of an answer in the registry's present term that the asker missed: it should have got that one.
        for (int other = 0; other < size_.nodes; other++)
            if (other != node && row(s, other).term == r.term && core::is_missed(a, row(s, other)))
                out.broken = "a repeated ask took a second node";
    }

    void note_extension(const State &before, const core::RegistryView &r, const Request &request, const Decision &d,
                        const core::NodeRow &after, Outcome &out) const {
        out.events |= extended_grant;
        const core::NodeRow known = row(before, static_cast<int>(after.node));
        if (known.term != 0 && known.term < r.term)
            out.events |= survived_fence;
        if (d.ask.holds && known.line != d.ask.held.line)
            out.events |= row_from_member;
        if (request.asker.holds != 0 && !d.ask.holds)
            out.events |= answered_again;
        // Incarnations of one member grow.
        const bool same_directory = before.copy == 0 && known.line == after.line;
        const bool was_dead = before.members[request.member - 1].life == Life::dead;
        if (was_dead && known.line != after.line && core::is_later(known, big(request.asker.held)))
            out.broken = "a dead line got its node back";
        if (same_directory && p_.own_incarnation && known.incarnation > after.incarnation)
            out.broken = "a life got a node after a later one had it";
    }

    // A holder whose grant reaches above every lost grant's beginning keeps its node, if it drew it last.
    void check_survivor(const State &before, const core::RegistryView &r, const Request &request, const Decision &d,
                        Outcome &out) const {
        const Asker &asker = request.asker;
        if (asker.holds == 0 || d.judgement.verdict != core::Verdict::newcomer || d.ask.holds == false)
            return;
        const core::NodeRow known = row(before, asker.held.node);
        const core::Grant held = big(asker.held);
        const bool is_latest = known.line == held.line || (held.until > known.until && !core::is_later(known, held));
        if (known.term < r.term && is_latest && held.until > core::last_lost_beginning(layout_, r))
            out.broken = "a live holder did not survive the fence";
    }

    // Of two copies of one life, the one that is answered first is the life that follows. The other one is refused.
    static void note_copies(State &s, const Request &request, core::Verdict verdict, const core::NodeRow &after,
                            Outcome &out) {
        const bool is_one = s.copy != 0 && (request.member == s.copy || request.member == s.copied);
        if (!is_one || after.line != big(s.copy_line) || s.copy_node != after.node)
            return;
        const int8_t answered = s.registry.copy_answered;
        if (verdict == core::Verdict::extend && answered != 0 && answered != request.member)
            out.broken = "both copies of a life were answered";
        if (request.asker.incarnation > s.copy_incarnation || request.member == s.copy)
            s.registry.copy_answered = request.member;
    }

    bool lose(State &s, bool silently) const {
        const bool lost = memcmp(&s.standby, &s.registry, sizeof(Registry)) != 0;
        if (!lost && silently)
            return false;
        if (lost && s.copy != 0)
            s.lost_since_copy = 1;
        s.registry = s.standby;
        if (silently)
            s.lost_silently = 1;
        else
            s.other_environment = 1;
        return true;
    }

    bool revoke(State &s, int node, Outcome &out) const {
        const core::NodeRow known = row(s, node);
        if (known.line == 0 || s.other_environment != 0 || s.lost_silently != 0)
            return false;
        core::RegistryView r = view(s);
        for (int i = 0; i < most_members; i++) {
            Member &m = s.members[i];
            const bool is_holder =
                m.asker.holds != 0 && m.asker.held.node == node && big(m.asker.held.line) == known.line;
            if (m.life == Life::alive && (is_holder || core::is_same_life(ask_of(request_of(s, i)), known)))
                m.life = Life::dead;
        }
        commit(s, p_.revoked(layout_, r, known, size_.ahead));
        commit(s, r);
        out.events |= was_revoked;
        return true;
    }

    // The registry of another fleet is new: it would give node 0 to anyone.
    bool ask_other(State &s, int member, Outcome &out) const {
        const core::Ask a = ask_of(request_of(s, member));
        core::RegistryView r = view(s);
        r.fleet = other_fleet;
        r.term = 1;
        r.serial = 0;
        r.own_serial = 1;
        r.term_shown = 0;
        r.fence_base_us = 0;
        const core::Judgement judgement = p_.judge(layout_, r, a, nullptr);
        s.response = {static_cast<int8_t>(1 + member),
                      static_cast<int8_t>(judgement.why),
                      s.members[member].asker.incarnation,
                      static_cast<int8_t>(other_fleet),
                      {}};
        s.response.grant.term = 1;
        s.response.grant.serial = 1;
        if (judgement.verdict == core::Verdict::newcomer) {
            const core::NodeRow after = core::granted(layout_, r, a, {});
            s.response.grant = {0, small(after.from), small(after.until), small(static_cast<int64_t>(after.line)), 1,
                                1};
            if (a.fleet != 0)
                out.broken = "a member of another fleet got a node";
        }
        note_refusal(judgement.why, out);
        return true;
    }

    // -----------------------------------------------------------------------------------------------------
    // The members.

    bool receive(State &s, const Response &response, Outcome &out) const {
        Member &m = s.members[response.member - 1];
        if (m.life != Life::alive)
            return false;
        core::Membership big_one = membership(m);
        core::FleetSeen fleet = seen(m);
        const core::Membership before = big_one;
        const core::Answer answer = {static_cast<core::Refusal>(response.why), big(response.incarnation),
                                     big(response.fleet), big(response.grant)};
        switch (p_.accept(&big_one, &fleet, answer)) {
        case core::Accepted::ignored:
            out.events |= late_answer_ignored;
            break;
        case core::Accepted::other_fleet:
            out.events |= other_fleet_ignored;
            break;
        default:
            if (before.superseded && !big_one.superseded)
                out.broken = "a superseded life went on";
            if (before.holds && (big_one.held.term < before.held.term ||
                                 (big_one.held.term == before.held.term && big_one.held.serial < before.held.serial)))
                out.broken = "a member went back to an older answer";
            if (m.asker.fleet != 0 && big(m.asker.fleet) != fleet.fleet)
                out.broken = "a member went to another fleet";
        }
        store(m, big_one, fleet);
        return true;
    }

    void begin(State &s, int member, void (*begins)(core::Membership *, uint64_t)) const {
        Member &m = s.members[member];
        core::Membership big_one = membership(m);
        begins(&big_one, big(fresh(s)));
        store(m, big_one, seen(m));
        if (!p_.own_incarnation)
            share_incarnation(s, member);
    }

    // The mutant without an incarnation for each member: both have that of the server.
    static void share_incarnation(State &s, int member) {
        for (Member &other : s.members)
            if (other.life == Life::alive)
                other.asker.incarnation = s.members[member].asker.incarnation;
    }

    bool copy(State &s, const Step &step) const {
        constexpr int place = most_members - 1;
        Member &copy = s.members[place];
        if (step.member == place || copy.life != Life::absent)
            return false;
        copy = s.members[step.member];
        if (step.kind == StepKind::copy_above || copy.asker.holds == 0) {
            begin(s, place, step.kind == StepKind::copy_above ? p_.start_elsewhere : p_.restart);
            return true;
        }
        s.copy = 1 + place;
        s.copied = static_cast<int8_t>(1 + step.member);
        s.copy_line = copy.asker.held.line;
        s.copy_node = copy.asker.held.node;
        s.copy_incarnation = copy.asker.incarnation;
        begin(s, place, p_.restart);
        return true;
    }

    // The lowest tick that the member may lease, or all of its grant.
    bool draw(State &s, int member, bool all, Outcome &out) const {
        Member &m = s.members[member];
        if (m.asker.holds == 0 || m.superseded != 0)
            return false;
        const SmallGrant &held = m.asker.held;
        const int64_t end = std::min<int64_t>(held.until, clock(s, member) + size_.ahead + 1);
        const int64_t above = std::max<int64_t>(held.from, m.mark + 1);
        const int64_t first = all ? above : std::max(above, clock(s, member));
        const int64_t last = all ? end - 1 : first;
        if (first > last || (p_.stays_inside_grant && last >= end) || last >= model_ticks)
            return false;
        for (int64_t tick = first; tick <= last; tick++)
            record(s, held.node, tick, member, out);
        m.mark = small(last);
        return true;
    }

    // -----------------------------------------------------------------------------------------------------
    // The ground truth.

    static constexpr int of_copied_line = 8;

    // 1 + member, and whether it drew as one of two copies.
    static int drawer_of(const State &s, int member) {
        const Asker &asker = s.members[member].asker;
        const bool is_copy = s.copy == 1 + member || s.copied == 1 + member;
        const bool of_line = asker.held.line == s.copy_line && asker.held.node == s.copy_node;
        return 1 + member + (is_copy && of_line ? of_copied_line : 0);
    }

    static int drawn(const State &s, int node, int64_t tick) {
        return tick < 0 || tick >= model_ticks ? 0
                                               : static_cast<int>(s.drawn[node][tick / 16] >> (4 * (tick % 16)) & 15);
    }

    static void set_drawn(State &s, int node, int64_t tick, int drawer) {
        if (tick >= 0 && tick < model_ticks)
            s.drawn[node][tick / 16] |= static_cast<uint64_t>(drawer) << (4 * (tick % 16));
    }

    // What a joining member used while another one had the node is not promised.
    static bool is_held(const State &s, int node, int64_t tick) {
        const auto in = [&](const SmallGrant &g) { return g.node == node && tick < g.until; };
        for (const Member &m : s.members)
            if (m.asker.holds != 0 && in(m.asker.held))
                return true;
        return s.response.member != 0 && in(s.response.grant);
    }

    // What two copies of one life draw inside the line's grants, before the second one asks, is not promised.
    static void record(State &s, int node, int64_t tick, int member, Outcome &out) {
        if (s.members[member].asker.fleet == static_cast<int8_t>(other_fleet))
            return;
        const int before = drawn(s, node, tick);
        const int drawer = drawer_of(s, member);
        if (before == 0)
            set_drawn(s, node, tick, drawer);
        else if (before != drawer && (before & drawer & of_copied_line) != 0)
            out.events |= drew_by_both_copies;
        else
            out.broken = "(node, tick) was drawn twice";
    }

    // -----------------------------------------------------------------------------------------------------

    void renumber_serials(State &s) const {
        int8_t *all[32];
        int count = 0;
        const auto add = [&](int8_t &serial) { all[count++] = &serial; };
        for (Registry *r : {&s.registry, &s.standby}) {
            add(r->serial);
            for (SmallRow &row : r->rows)
                add(row.serial);
        }
        for (Member &m : s.members) {
            add(m.asker.serial);
            add(m.asker.held.serial);
        }
        add(s.request.asker.serial);
        add(s.request.asker.held.serial);
        add(s.response.grant.serial);
        bool used[128] = {};
        for (int i = 0; i < count; i++)
            used[*all[i]] = true;
        int8_t rank[128] = {};
        for (int value = 1, next = 1; value < 128; value++)
            if (used[value])
                rank[value] = static_cast<int8_t>(next++);
        for (int i = 0; i < count; i++)
            *all[i] = rank[*all[i]];
    }
};

inline std::string name_of(const Step &step) {
    static const char *const names[] = {"advance",
                                        "clock of",
                                        "registry's clock",
                                        "ask",
                                        "ask, no answer yet",
                                        "ask slowly",
                                        "slow ask arrives",
                                        "answer arrives",
                                        "draw",
                                        "draw all",
                                        "restart",
                                        "copy disk of",
                                        "copy directory of",
                                        "remake",
                                        "replicate",
                                        "fail over",
                                        "lose commits",
                                        "fence",
                                        "revoke node",
                                        "ask other fleet",
                                        "join"};
    std::string name = names[static_cast<size_t>(step.kind)];
    switch (step.kind) {
    case StepKind::advance:
    case StepKind::set_registry:
    case StepKind::revoke:
        return name + " " + std::to_string(step.arg);
    case StepKind::set_clock:
        return name + " " + static_cast<char>('A' + step.member) + " " + std::to_string(step.arg);
    case StepKind::arrive:
    case StepKind::deliver:
    case StepKind::replicate:
    case StepKind::fail_over:
    case StepKind::lose_silently:
    case StepKind::fence_by_hand:
        return name;
    default:
        return name + " " + static_cast<char>('A' + step.member);
    }
}

} // namespace uidgen::test
