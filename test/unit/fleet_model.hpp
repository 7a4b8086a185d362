// A fleet in miniature, over the functions that ship: two servers of a registry and a few members. fleet_test.cpp
// explores it.
//
// A *member* is a generator in one data directory, with what is durable there: its membership, what its server has seen
// of the fleet, and its high-water mark. The registry has a primary with a durable state. The other server is its
// standby, whose state is any earlier one, because replication may stop at any time; or a second registry. The ground
// truth says which member drew each pair (node, tick).
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
    core::Judgement (*judge)(const core::Layout &, const core::RegistryView &, const core::Request &,
                             const core::NodeRow &) = core::judge;
    core::NodeRow (*extended)(const core::Layout &, const core::RegistryView &, const core::Request &,
                              const core::NodeRow &) = core::extended;
    bool (*is_free)(const core::Layout &, const core::RegistryView &, const core::Request &,
                    const core::NodeRow &) = core::is_free;
    core::NodeRow (*granted)(const core::Layout &, const core::RegistryView &, const core::Request &,
                             const core::NodeRow &) = core::granted;
    bool (*is_missed)(const core::Request &, const core::NodeRow &) = core::is_missed;
    core::NodeRow (*used_before)(const core::Layout &, const core::RegistryView &, const core::Request &, core::NodeRow,
                                 int64_t) = core::used_before;
    core::RegistryView (*succeeded)(core::RegistryView, const core::RandomParts &, core::Commits,
                                    const core::KnownGrants &) = core::succeeded;
    core::RegistryView (*told_of_other)(core::RegistryView, int64_t) = core::told_of_other;
    bool (*is_news)(const core::RegistryView &, const core::Term &) = core::is_news;
    bool (*is_claim)(const core::RegistryView &, const core::Term &) = core::is_claim;
    bool (*ends_wait)(const core::Layout &, const core::RegistryView &, const core::Request &,
                      int64_t) = core::ends_wait;
    int64_t (*answered_serial)(const core::RegistryView &) = core::answered_serial;
    core::RegistryView (*started)(core::RegistryView, int64_t, int64_t, bool) = core::started;
    core::RegistryView (*with_wait)(core::RegistryView) = core::with_wait;
    core::Commits after_cancel = core::Commits::may_be_lost; // of a handover
    core::Refusal (*judge_handover)(const core::RegistryView &, int64_t) = core::judge_handover;
    int64_t (*may_open_us)(const core::RegistryView &) = core::may_open_us;
    core::Commits (*commits_of_former)(const core::RegistryView &, bool) = core::commits_of_former;
    bool (*may_have_granted)(const core::Answer &, int64_t) = core::may_have_granted;
    core::FleetSeen (*seen_after_hello)(const core::FleetSeen &, const core::Answer &) = core::seen_after_hello;
    core::Request (*without_proof)(const core::Layout &, const core::RegistryView &, core::Request,
                                   bool) = core::without_proof;
    core::NodeRow (*revoked)(const core::Layout &, const core::RegistryView &, const core::NodeRow &,
                             int64_t) = core::revoked;
    bool (*accept)(core::Membership *, core::FleetSeen *, const core::Answer &) = core::accept;
    void (*restart)(core::Membership *, uint64_t) = core::begin_incarnation;
    void (*start_elsewhere)(core::Membership *, uint64_t) = core::begin_membership; // another directory, host, timeline
    void (*start_without_mark)(core::Membership *, uint64_t) = core::begin_membership;
    core::Best (*best_registry)(const core::Hello *, int, const core::FleetSeen &) = core::best_registry;
    bool answers_before_commit = false;
    bool answers_inside_batch = false; // each request, before the batch is durable
    bool reads_evidence_first = true;  // all that a batch shows, before the first request of it is judged
    bool flushes = true; // false: synchronous_commit off, so commits are lost and the registry cannot know
    bool compares_timeline = true;
    bool compares_directory = true;
    bool keeps_mark = true;
    bool stays_inside_grant = true;
    bool own_incarnation = true;   // false: a server has one for all its members
    bool shows_others = true;      // the largest term, to the other registries
    bool says_which_is_new = true; // of a registry made anew: that it follows the former one
    bool draws_nonces = true;
    bool hello_is_evidence = true; // of lost commits
    bool closes = true;            // a registry that is handed over
    bool always_waits = true;      // a registry that starts, even if its grants have ended
    bool asks_again = true;        // all registries, when its grant has ended
    bool looks = true;             // a member that is connected says hello to all registries in half the longest grant
    bool has_other_line = true;    // of a registry that is made anew with another key no line leads to the former one
    bool is_told_its_term = true;  // a registry that is made anew: the largest that members show
};

constexpr int most_members = 3;
constexpr int most_nodes = 2;
constexpr int most_model_former = 3;
constexpr int model_ticks = 32;
constexpr int servers = 2;

// The core's structs, as small as the model's numbers.
struct SmallTerm {
    int8_t number, nonce;
};

struct SmallGrant {
    int8_t node, from, until, membership;
    SmallTerm term;
    int8_t serial;
};

struct Asker {
    int8_t incarnation, former_count, former[most_model_former];
    int8_t holds;
    SmallGrant held;
    int8_t fleet; // what its server has seen
    SmallTerm term;
    int8_t serial;
};

enum class Life : int8_t { absent, before_fleet, alive, dead };

struct Member {
    Asker asker;
    Life life;
    int8_t superseded;
    int8_t mark;      // the highest tick that was leased
    int8_t offset;    // of its clock
    int8_t joins;     // until it holds a node it names the one that it used before
    int8_t connected; // to which server; 0: none, otherwise 1 + its number
    int8_t looks;     // since it last started it has connected
    int8_t cut;       // a bit for each server that it cannot reach
    int8_t left;      // a bit for each server that is not in its line
    int8_t met;       // it has reached the registry whose fence was cancelled (State::declared)
};

struct SmallRow {
    int8_t from, until, membership, incarnation;
    SmallTerm term;
    int8_t serial, revoked;
};

// What is durable, and replicated.
struct Registry {
    SmallTerm term, former, shown;
    int8_t former_serial, serial, base, covered, last;
    int8_t key;   // what it seals with: the nonces of its terms are even or odd
    int8_t first; // the first term that it can prove
    int8_t unproven_base;
    int8_t claimed;      // the largest number that was shown without a proof
    int8_t claimed_at;   // 1 + when one was shown last; 0: never
    int8_t closed_until; // 0: it is open
    int8_t started, serial_at_start, granted_at_start;
    int8_t noted_by; // which server has noted its start: 1 + its number
    SmallRow rows[most_nodes];
    int8_t copy_answered; // of two copies of one life, which was answered as the life that follows: 1 + member; 0: none
};

// How it differs from the server that answered last.
enum class Change : int8_t { none, promoted, moved, unclaimed, empty };

struct Server {
    Registry db;
    int8_t up;
    int8_t since;               // when it started
    int8_t started;             // the same, by its clock
    int8_t noted;               // in its tables
    int8_t heard;               // a member has ended the wait, by the model's own account
    int8_t granted;             // it has granted in its term
    int8_t alone;               // it waits for a synchronous standby
    int8_t claimed, claimed_at; // as in Registry, by the model's own account
    int8_t offset;              // of its clock
    int8_t is_copy;             // beside the one that it was made of
    Change change;
};

struct Message {
    int8_t member; // 1 + its number; 0: there is none
    int8_t server;
    Asker asker;
    int8_t clock, lowest, joins, told;
};

struct Response {
    int8_t member;
    int8_t server, why, incarnation, fleet;
    SmallGrant grant;
};

struct State {
    Server server[servers];
    int8_t primary;   // the one that the administrator takes for the registry
    int8_t is_former; // the other one is the former primary, as it was; otherwise it is a standby
    Member members[most_members];
    Message request;      // on its way to the registry, where it may arrive late
    Response response;    // on its way to the member, where it may arrive late
    int8_t now;           // ticks
    int8_t used_closing;  // the end of the handover by which a server has taken over
    int8_t declared;      // the term that began by the word of an administrator that nothing was lost; 0: none
    int8_t lost_silently; // commits were lost, and neither environment nor member has shown it
    int8_t last_incarnation;
    int8_t is_number_used; // a term was drawn that is in use, or whose number members may know
    int8_t last_number;    // the largest of a term
    // A life that was copied below the file system: 1 + member of both, and the membership that they share.
    int8_t copy, copied, copy_membership, copy_node, copy_incarnation, lost_since_copy;
    Registry backup;
    int8_t has_backup;
    uint64_t drawn[most_nodes][2]; // 4 bits a tick: drawer_of()
};

// What happened in a step: what must not, and what the search must have met for its result to mean something.
enum Event : uint64_t {
    granted_newcomer = 1 << 0,
    extended_grant = 1 << 1,
    survived_fence = 1 << 2,
    newcomer_after_fence = 1 << 3,
    fence_by_environment = 1 << 4,
    fence_by_member = 1 << 5,
    fence_not_needed = 1 << 6,
    answered_again = 1 << 7, // the second row of decide()
    late_answer_ignored = 1 << 8,
    late_ask = 1 << 9,
    other_fleet_ignored = 1 << 10,
    row_from_member = 1 << 11, // a lost row was restored from what the member showed
    drew_by_both_copies = 1 << 12,
    was_revoked = 1 << 13,
    joined = 1 << 14,
    closed_other = 1 << 15,
    fence_by_other = 1 << 16,     // because another registry granted later
    not_alone = 1 << 17,          // two registries that cannot be told apart
    granted_together = 1 << 18,   // two in one call
    fence_by_later_one = 1 << 19, // a request of a call has shown what an earlier one could not
    fence_by_hello = 1 << 20,
    kept_hello = 1 << 21,
    handed_over = 1 << 22,
    invented = 1 << 23,
};

// The event of a refusal; none for Refusal::none.
constexpr uint64_t refused(core::Refusal why) {
    return UINT64_C(1) << (24 + static_cast<int>(why)) & ~(UINT64_C(1) << 24);
}

struct Outcome {
    const char *broken = nullptr; // what must not happen
    uint64_t events = 0;
};

enum class StepKind : uint8_t {
    advance,         // time, by `arg` ticks
    clock,           // of a member: its offset becomes `arg`
    registry_clock,  // the same of the primary
    ask,             // and get the answer
    ask_unanswered,  // the answer is under way, and may never come
    ask_slowly,      // the request is under way
    ask_together,    // with the next member, in one call; `arg`: 1 a crash inside it, 2 the answers get lost
    arrive,          // the request arrives; its answer is under way
    deliver,         // the answer arrives
    draw,            // one tick
    draw_all,        // every tick of the grant above the mark, whatever the clock says
    restart,         // after a crash or not
    copy_disk,       // member C begins from a copy of the member's whole disk
    copy_directory,  // member C begins from a copied or restored directory, or is the promoted standby
    remake,          // the generator is dropped and made anew
    replicate,       // the standby has all commits
    fail_over,       // the primary ends, and the standby becomes the primary
    split,           // the same, but the former primary goes on
    come_back,       // the former primary starts again
    clone,           // of the primary's whole disk, as a second registry
    move,            // the other server goes on with all commits; the administrator says so
    put_back,        // the standby's state is put back into the primary's directory
    restore_copy,    // the standby is a restored copy that a member is pointed at by mistake
    make_anew,       // the registry's database is dropped and made anew
    claim,           // the administrator says that this one follows the former one
    lose,            // the primary has the standby's state, and nothing of the environment shows it
    fence,           // uid_fleet_fence()
    revoke,          // node `arg`; the members that hold it are dead
    ask_other_fleet, // the member reaches the registry of another fleet
    join,            // a member that drew without a registry, further ahead by `arg`, gets one
    cut,             // the member cannot reach the servers in `arg`
    lose_registry, // the primary is down for now, and a registry is made anew on the other server: with the key, if `arg`
    stop,          // the primary
    start,         // it again
    back_up,       // the primary's state is kept
    show_claim,    // somebody shows the primary a number that is larger by `arg`, without a proof
    promote_copy, // the primary ends, and a standby of that state becomes the primary; if `arg`, a restored backup
    hello,        // to all registries that the member reaches, and nothing else
    cancel,       // uid_fleet_fence(cancel => true), if the administrator is right; `arg`: it is rolled back
    hand_over,    // uid_fleet_handover() on the primary
    open,         // uid_fleet_handover(cancel => true)
    turn_back,    // the primary is down for good, and the former one, which has started again, is the registry
    lack_standby, // which the primary waits for, if `arg`
    invent,       // somebody shows the primary a grant of node `arg`, without a proof
};

// Their names, in the same order.
constexpr const char *step_names =
    "advance clock registry_clock ask ask_unanswered ask_slowly ask_together arrive deliver draw draw_all restart "
    "copy_disk copy_directory remake replicate fail_over split come_back clone move put_back restore_copy make_anew claim lose "
    "fence revoke ask_other_fleet join cut lose_registry stop start back_up show_claim promote_copy "
    "hello cancel hand_over open turn_back lack_standby invent";

struct Step {
    StepKind kind;
    int8_t member;
    int8_t arg;
    std::string text;
};

struct Size {
    int64_t bound = 1;   // ticks
    int64_t longest = 4; // ticks
    int64_t length = 3;  // ticks that members ask for
    int64_t nodes = 2;
    int64_t end = 12;             // of time
    int64_t ahead = 99;           // how far above its clock a member draws
    int64_t registry_offset = 0;  // at the beginning
    int64_t cut = 0;              // what member B cannot reach at the beginning
    int64_t never_superseded = 0; // 1: no life is copied, and no request is late
    int64_t never_lost = 0;       // 1: no commit of the registry is lost
    int64_t members = 2;          // newcomers
    int64_t clocks_are_right = 0; // 1: those of the registry's servers, so a later term has a larger number
    int64_t joining = 0;          // those that join later; the others are places for copies
    int64_t closing = 4;          // how long a handover is in force
    int64_t synchronous = 0;      // 1: the standby has each commit
};

constexpr uint64_t this_fleet = 1;
constexpr uint64_t other_fleet = 2;

class World {
  public:
    World(const Protocol &protocol, const Size &size) : p_(protocol), size_(size) {}

    State start() const {
        State s;
        memset(&s, 0, sizeof(s));
        s.now = 2;
        s.server[0].db.term = {1, 1};
        s.server[0].db.serial = s.server[0].db.noted_by = s.server[0].noted = 1;
        s.last_number = 1;
        s.server[0].up = s.server[0].heard = 1;
        s.server[0].offset = small(size_.registry_offset);
        s.server[1].db = s.server[0].db;
        s.server[1].offset = s.server[0].offset;
        for (int i = 0; i < size_.members + size_.joining; i++) {
            s.members[i].life = i < size_.members ? Life::alive : Life::before_fleet;
            s.members[i].mark = -1;
            s.members[i].cut = i == 1 ? small(size_.cut) : int8_t{0};
            s.members[i].asker.incarnation = i == 0 || p_.own_incarnation ? fresh(s) : s.last_incarnation;
        }
        return s;
    }

    // False: the step does not apply.
    bool apply(State &s, const Step &step, Outcome &out) const {
        const bool applied = take(s, step, out);
        if (applied && s.is_number_used != 0)
            out.broken = "a term was drawn that is in use";
        if (applied && size_.synchronous != 0 && other(s).up == 0 && s.is_former == 0)
            replicate(s);
        if (applied)
            renumber_serials(s);
        return applied;
    }

  private:
    const Protocol &p_;
    const Size size_;
    const core::Layout layout_ = {0, 1, 5, 0, 1, 0}; // a tick is a microsecond

    static int8_t small(int64_t value) { return static_cast<int8_t>(std::clamp<int64_t>(value, -100, 100)); }
    static int8_t fresh(State &s) { return ++s.last_incarnation; }
    static uint64_t big(int8_t random) { return static_cast<uint64_t>(static_cast<uint8_t>(random)); }

    static Server &primary(State &s) { return s.server[s.primary]; }
    static Server &other(State &s) { return s.server[1 - s.primary]; }

    bool take(State &s, const Step &step, Outcome &out) const {
        Member &m = s.members[step.member];
        const bool lives = m.life == Life::alive;
        const bool may_ask = lives && m.superseded == 0;
        switch (step.kind) {
        case StepKind::advance:
            for (int tick = 0; tick < step.arg; tick++) {
                s.now = small(s.now + 1);
                if (s.now % std::max<int64_t>(size_.longest / 2, 1) == 0)
                    look(s, out);
            }
            return s.now <= size_.end;
        case StepKind::clock:
            return lives && set(m.offset, step.arg);
        case StepKind::registry_clock:
            return set(primary(s).offset, step.arg);
        case StepKind::ask: {
            Message request = {};
            Response response = {};
            if (!may_ask || !address(s, step.member, request, out))
                return false;
            if (request.member == 0)
                return true;
            const bool received = answer(s, request, response, out) && receive(s, response, out);
            if (received && response.why == static_cast<int8_t>(core::Refusal::superseded) && m.superseded == 0)
                out.broken = "a life that was refused as superseded goes on";
            return received;
        }
        case StepKind::ask_unanswered: {
            Message request = {};
            return may_ask && address(s, step.member, request, out) && request.member != 0 &&
                   answer(s, request, s.response, out);
        }
        case StepKind::ask_together:
            return ask_together(s, step, out);
        case StepKind::ask_slowly:
            return may_ask && address(s, step.member, s.request, out);
        case StepKind::arrive: {
            Message request = s.request;
            s.request = {};
            out.events |= late_ask;
            if (s.server[request.server].up == 0)
                request.server = s.primary; // which has its address
            return request.member != 0 && answer(s, request, s.response, out);
        }
        case StepKind::deliver: {
            const Response response = s.response;
            s.response = {};
            return response.member != 0 && receive(s, response, out);
        }
        case StepKind::draw:
        case StepKind::draw_all:
            m.looks = lives ? int8_t{1} : m.looks;
            return lives && draw(s, step.member, step.kind == StepKind::draw_all, out);
        case StepKind::restart:
            if (!lives || m.asker.former_count == most_model_former)
                return false;
            m.connected = m.looks = 0;
            begin(s, step.member, p_.restart);
            if (!p_.keeps_mark)
                m.mark = -1;
            return true;
        case StepKind::copy_disk:
        case StepKind::copy_directory:
            return may_ask && m.asker.former_count < most_model_former && copy(s, step);
        case StepKind::remake:
            if (!lives || m.asker.former_count == most_model_former)
                return false;
            m.mark = -1;
            begin(s, step.member, p_.start_without_mark);
            return true;
        case StepKind::replicate:
            if (other(s).up != 0 || primary(s).up == 0 ||
                (memcmp(&other(s).db, &primary(s).db, sizeof(Registry)) == 0 && s.is_former == 0))
                return false;
            replicate(s);
            s.is_former = 0;
            return true;
        case StepKind::fail_over:
        case StepKind::split:
            return promote(s, step.kind == StepKind::split);
        case StepKind::come_back:
            if (s.is_former == 0 || other(s).up != 0)
                return false;
            start_server(s, other(s));
            return true;
        case StepKind::clone:
            if (other(s).up != 0 || primary(s).up == 0)
                return false;
            other(s).db = primary(s).db;
            other(s).change = primary(s).change;
            start_server(s, other(s));
            return true;
        case StepKind::move:
            if (other(s).up != 0 || primary(s).change != Change::none)
                return false;
            other(s).db = primary(s).db;
            (void)promote(s, false);
            primary(s).change = Change::moved;
            return true;
        case StepKind::put_back:
            if (other(s).up != 0 || s.is_former != 0 || primary(s).up == 0)
                return false;
            primary(s).db = other(s).db;
            start_server(s, primary(s));
            primary(s).change = Change::unclaimed;
            return true;
        case StepKind::restore_copy:
            if (other(s).up != 0)
                return false;
            start_server(s, other(s));
            other(s).change = Change::unclaimed;
            other(s).is_copy = 1;
            return true;
        case StepKind::make_anew:
            if (primary(s).up == 0)
                return false;
            primary(s).db = {};
            start_server(s, primary(s));
            primary(s).change = Change::empty;
            return true;
        case StepKind::claim:
            return claim(s);
        case StepKind::lose:
            return lose_silently(s);
        case StepKind::fence: {
            if (primary(s).up == 0)
                return false;
            core::RegistryView r = view(s, s.primary);
            (void)settle(s, s.primary, r, out);
            if (core::is_closed(r) && r.now_us < p_.may_open_us(r))
                return false;
            succeed(s, s.primary, r, core::Commits::may_be_lost);
            commit(s, s.primary, r);
            s.lost_silently = 0;
            return true;
        }
        case StepKind::hello:
            if (!lives)
                return false;
            m.connected = static_cast<int8_t>(1 + inquire(s, step.member, out).index);
            m.looks = 1;
            return true;
        case StepKind::cancel:
            return cancel(s, step.arg != 0, out);
        case StepKind::hand_over:
        case StepKind::open:
            return hand_over(s, step.kind == StepKind::open, out);
        case StepKind::turn_back:
            if (primary(s).up != 0 || s.is_former == 0 || other(s).up == 0)
                return false;
            s.primary = static_cast<int8_t>(1 - s.primary);
            for (Member &each : s.members)
                each.left = each.left != 0 ? static_cast<int8_t>(1 << (1 - s.primary)) : int8_t{0};
            return true;
        case StepKind::lack_standby:
            return primary(s).up != 0 && set(primary(s).alone, step.arg);
        case StepKind::invent:
            return invent(s, step.arg, out);
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
        case StepKind::cut:
            m.connected = (step.arg >> (m.connected - 1) & 1) != 0 ? int8_t{0} : m.connected;
            return lives && set(m.cut, step.arg);
        case StepKind::lose_registry:
            return lose_registry(s, step.arg != 0);
        case StepKind::stop:
            if (primary(s).up == 0 || primary(s).change != Change::none)
                return false;
            stop_server(s, primary(s));
            return true;
        case StepKind::start:
            if (primary(s).up != 0)
                return false;
            start_server(s, primary(s));
            return true;
        case StepKind::back_up:
            if (primary(s).up == 0 || (s.has_backup != 0 && memcmp(&s.backup, &primary(s).db, sizeof(Registry)) == 0))
                return false;
            s.backup = primary(s).db;
            s.has_backup = 1;
            return true;
        case StepKind::show_claim: {
            if (primary(s).up == 0 || primary(s).change != Change::none)
                return false;
            const int64_t number = primary(s).db.term.number + step.arg;
            (void)hello(s, s.primary, showing(this_fleet, {number, 2 - primary(s).db.key}), out);
            primary(s).claimed_at = small(1 + view(s, s.primary).now_us);
            primary(s).claimed = small(number);
            return true;
        }
        case StepKind::promote_copy:
            if (s.has_backup == 0 || other(s).up != 0)
                return false;
            stop_server(s, primary(s));
            s.primary = static_cast<int8_t>(1 - s.primary);
            s.is_former = 1;
            primary(s).db = s.backup;
            start_server(s, primary(s));
            primary(s).change = step.arg != 0 ? Change::unclaimed : Change::promoted;
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

    // -----------------------------------------------------------------------------------------------------
    // Between the model's structs and the core's.

    static core::Term big(const SmallTerm &e) { return {e.number, e.nonce}; }
    static SmallTerm small(const core::Term &e) { return {small(e.number), small(e.nonce)}; }

    static core::Grant big(const SmallGrant &g) {
        return {g.node, g.from, g.until, big(g.membership), big(g.term), g.serial};
    }
    static SmallGrant small(const core::Grant &g) {
        return {small(g.node), small(g.from),  small(g.until), small(static_cast<int64_t>(g.membership)),
                small(g.term), small(g.serial)};
    }

    static core::NodeRow row(const State &s, int server, int node) {
        const SmallRow &r = s.server[server].db.rows[node];
        return {node, r.from, r.until, big(r.membership), big(r.incarnation), big(r.term), r.serial, big(r.revoked)};
    }

    core::Membership membership(const Member &m) const {
        core::Membership big_one = {};
        big_one.incarnation = big(m.asker.incarnation);
        big_one.former.count = static_cast<uint32_t>(m.asker.former_count);
        for (int i = 0; i < m.asker.former_count; i++)
            big_one.former.incarnations[i] = big(m.asker.former[i]);
        big_one.holds = m.asker.holds != 0;
        big_one.superseded = m.superseded != 0;
        big_one.held = big(m.asker.held);
        return big_one;
    }

    static core::FleetSeen seen(const Asker &a) { return {big(a.fleet), big(a.term), a.serial}; }

    void store(Member &m, const core::Membership &big_one, const core::FleetSeen &seen) const {
        m.asker.incarnation = small(static_cast<int64_t>(big_one.incarnation));
        m.asker.former_count = small(big_one.former.count);
        for (int i = 0; i < most_model_former; i++)
            m.asker.former[i] =
                i < m.asker.former_count ? small(static_cast<int64_t>(big_one.former.incarnations[i])) : int8_t{0};
        m.asker.holds = big_one.holds ? 1 : 0;
        m.asker.held = big_one.holds ? small(big_one.held) : SmallGrant{};
        m.joins = big_one.holds ? int8_t{0} : m.joins;
        m.superseded = big_one.superseded ? 1 : 0;
        m.asker.fleet = small(static_cast<int64_t>(seen.fleet));
        m.asker.term = small(seen.term);
        m.asker.serial = small(seen.serial);
    }

    core::Request request_of(const Message &message) const {
        Member m = {};
        m.asker = message.asker;
        return core::request_of(membership(m), seen(m.asker), message.clock, message.lowest, size_.length);
    }

    int64_t latest_end(const State &s, int server, const core::RegistryView *r) const {
        int64_t latest_us = 0;
        for (int node = 0; node < size_.nodes; node++)
            if (row(s, server, node).membership != 0)
                latest_us =
                    std::max(latest_us, r != nullptr ? core::latest_end_us(layout_, *r, row(s, server, node).until)
                                                     : core::start_of(layout_, row(s, server, node).until));
        return latest_us;
    }

    core::RegistryView view(const State &s, int server) const {
        const Server &at = s.server[server];
        const Registry &r = at.db;
        core::RegistryView v = {};
        v.fleet = this_fleet;
        v.term = big(r.term);
        v.former = big(r.former);
        v.former_serial = r.former_serial;
        v.shown = big(r.shown);
        v.own_serial = r.serial + 1;
        v.first = r.first;
        v.unproven_base_us = r.unproven_base;
        v.fence_base_us = r.base;
        v.covered_us = r.covered;
        v.longest_us = size_.longest;
        v.bound_us = size_.bound;
        v.now_us = std::max<int64_t>((s.now + at.offset), 1);
        v.claimed = r.claimed_at != 0 && v.now_us - (r.claimed_at - 1) < core::claim_us(v) ? r.claimed : 0;
        v.closed_until_us = p_.closes || at.up == 0 || at.change == Change::promoted ? r.closed_until : 0;
        v.up_us = s.now - at.since;
        v.started_us = r.started;
        v.serial_at_start = r.serial_at_start;
        v.granted_at_start_us = r.granted_at_start;
        return p_.with_wait(v);
    }

    // Two servers may start in one tick.
    static int64_t started_us(const State &s, int server, const core::RegistryView &r) {
        const Server &at = s.server[server];
        return at.noted != 0 && at.db.noted_by == 1 + server && r.started_us == at.started ? at.started : -1;
    }

    static void note_start(State &s, int server, core::RegistryView &r) {
        r.started_us = s.server[server].started;
        s.server[server].noted = 1;
        s.server[server].db.noted_by = static_cast<int8_t>(1 + server);
    }

    // What each call begins with. False: it grants nothing.
    bool enter(State &s, int server, core::RegistryView &r, Outcome &out) const {
        const Server &at = s.server[server];
        const bool counts = settle(s, server, r, out);
        const bool waits = p_.always_waits || latest_end(s, server, nullptr) > at.started;
        if (at.change != Change::empty && r.started_us != started_us(s, server, r) && !core::is_closed(r)) {
            r = p_.started(r, at.started, waits ? at.db.last : 0, size_.synchronous != 0);
            note_start(s, server, r);
        }
        if (r.granted_at_start_us != 0 && (!waits || !core::is_in_wait(r)))
            r.granted_at_start_us = 0;
        r = p_.with_wait(r);
        return counts;
    }

    static void commit(State &s, int server, const core::RegistryView &r) {
        Registry &db = s.server[server].db;
        db.term = small(r.term);
        db.former = small(r.former);
        db.former_serial = small(r.former_serial);
        db.shown = small(r.shown);
        db.serial = small(r.own_serial);
        db.first = small(r.first);
        db.unproven_base = small(r.unproven_base_us);
        db.base = small(r.fence_base_us);
        db.covered = small(r.covered_us);
        db.closed_until = small(r.closed_until_us);
        db.started = small(r.started_us);
        db.serial_at_start = small(r.serial_at_start);
        db.granted_at_start = small(r.granted_at_start_us);
    }

    static void commit(State &s, int server, const core::NodeRow &row, int64_t now_us) {
        Registry &db = s.server[server].db;
        db.rows[row.node] = {small(row.from),
                             small(row.until),
                             small(static_cast<int64_t>(row.membership)),
                             small(static_cast<int64_t>(row.incarnation)),
                             small(row.term),
                             small(row.serial),
                             small(static_cast<int64_t>(row.revoked))};
        db.last = std::max(db.last, small(now_us));
        s.server[server].granted = now_us != 0 ? int8_t{1} : s.server[server].granted;
    }

    // -----------------------------------------------------------------------------------------------------
    // The servers of the registry.

    static void start_server(State &s, Server &server) {
        server.up = 1;
        server.since = s.now;
        server.started = std::max<int8_t>(static_cast<int8_t>(s.now + server.offset), 1);
        server.noted = server.heard = server.granted = server.is_copy = server.alone = 0;
        for (Member &m : s.members)
            if (m.connected == 1 + (&server - s.server))
                m.connected = 0;
    }

    static void replicate(State &s) {
        other(s).db = primary(s).db;
        other(s).claimed = primary(s).claimed;
        other(s).claimed_at = primary(s).claimed_at;
    }

    static void stop_server(State &s, Server &server) {
        start_server(s, server);
        server.up = 0;
    }

    bool promote(State &s, bool both) const {
        if (other(s).up != 0 || s.is_former != 0)
            return false;
        // After a server that has taken over by a handover is lost, another one must not (docs/design.md).
        const core::RegistryView taken = view(s, 1 - s.primary);
        if (core::is_handed_over(taken) && taken.closed_until_us == s.used_closing)
            return false;
        s.used_closing = core::is_closed(taken) ? small(taken.closed_until_us) : s.used_closing;
        if (s.copy != 0 && memcmp(&other(s).db, &primary(s).db, sizeof(Registry)) != 0)
            s.lost_since_copy = 1;
        if (!both)
            stop_server(s, primary(s));
        s.primary = static_cast<int8_t>(1 - s.primary);
        s.is_former = 1;
        start_server(s, primary(s));
        primary(s).change = Change::promoted;
        return true;
    }

    // The administrator made it anew. Either it has the former one's key, or all lines lead to the new one alone.
    bool lose_registry(State &s, bool keeps_key) const {
        if (other(s).up != 0 || s.is_former != 0)
            return false;
        const int8_t key = primary(s).db.key;
        stop_server(s, primary(s));
        s.primary = static_cast<int8_t>(1 - s.primary);
        s.is_former = 1;
        primary(s).db = {};
        primary(s).db.key = keeps_key ? key : int8_t{1};
        start_server(s, primary(s));
        primary(s).change = Change::empty;
        for (Member &m : s.members)
            m.left = keeps_key || !p_.has_other_line ? int8_t{0} : static_cast<int8_t>(1 << (1 - s.primary));
        return true;
    }

    bool lose_silently(State &s) const {
        if (primary(s).up == 0 || other(s).up != 0 || s.is_former != 0 ||
            memcmp(&other(s).db, &primary(s).db, sizeof(Registry)) == 0)
            return false;
        if (s.copy != 0)
            s.lost_since_copy = 1;
        primary(s).db = other(s).db;
        s.lost_silently = 1;
        return true;
    }

    // Calls f(term, serial) for all that anybody knows, in whatever pairs.
    template <typename S, typename F> static void for_each_stamp(S &s, F f) {
        for (auto &at : s.server) {
            f(at.db.term, at.db.serial);
            f(at.db.former, at.db.former_serial);
            f(at.db.shown, at.db.serial_at_start);
            for (auto &row : at.db.rows)
                f(row.term, row.serial);
        }
        for (auto &m : s.members) {
            f(m.asker.term, m.asker.serial);
            f(m.asker.held.term, m.asker.held.serial);
        }
        f(s.request.asker.term, s.request.asker.serial);
        f(s.request.asker.held.term, s.request.asker.held.serial);
        f(s.response.grant.term, s.response.grant.serial);
    }

    // The smallest nonce that no term of that number has, of those that stand for the key.
    static int64_t fresh_nonce(const State &s, int64_t number, int key) {
        uint32_t used = 1;
        for_each_stamp(s, [&](const SmallTerm &e, int8_t) { used |= e.number == number ? 1U << e.nonce : 0; });
        int64_t nonce = 1 + key;
        while ((used >> nonce & 1) != 0)
            nonce += 2;
        return nonce;
    }

    static bool is_sealed(const State &s, int server, const core::Term &term) {
        return term.number == 0 || term.nonce % 2 != s.server[server].db.key;
    }

    void succeed(State &s, int server, core::RegistryView &r, core::Commits commits) const {
        const core::KnownGrants known = {latest_end(s, server, &r), s.server[server].db.last};
        const core::RegistryView numbered = p_.succeeded(r, {1, 1}, commits, known);
        const int64_t number = numbered.term.number;
        const int key = s.server[server].db.key;
        r = p_.succeeded(r, {p_.draws_nonces ? fresh_nonce(s, number, key) : 1, 1}, commits, known);
        note_start(s, server, r);
        for_each_stamp(s, [&](const SmallTerm &e, int8_t) {
            if (big(e) == r.term)
                s.is_number_used = 1;
        });
        if (number <= s.last_number && s.last_number < s.now && size_.clocks_are_right != 0)
            s.is_number_used = 1;
        s.last_number = std::max(s.last_number, small(number));
        s.server[server].heard = 2;
        s.server[server].granted = 0;
        s.declared = commits == core::Commits::are_declared ? small(number) : s.declared;
        s.server[server].db.claimed_at = s.server[server].db.claimed = 0;
        if (s.lost_since_copy != 0)
            s.server[server].db.copy_answered = 0; // what the registry lost cannot count
    }

    bool claim(State &s) const {
        Server &at = primary(s);
        if (at.change != Change::unclaimed && at.change != Change::empty)
            return false;
        core::RegistryView r = view(s, s.primary);
        if (at.change == Change::empty) {
            for (const Member &m : s.members) // which the administrator has asked
                r.term.number = p_.is_told_its_term ? std::max<int64_t>(r.term.number, m.asker.term.number) : 0;
            r.first = p_.succeeded(r, {1, 1}, core::Commits::may_be_lost, {0, 0}).term.number;
        }
        const bool follows = at.change == Change::unclaimed || p_.says_which_is_new;
        succeed(s, s.primary, r, follows ? core::Commits::may_be_lost : core::Commits::are_known);
        if (at.change == Change::empty)
            r.unproven_base_us = r.fence_base_us;
        commit(s, s.primary, r);
        at.change = Change::none;
        s.lost_silently = 0;
        return true;
    }

    // At each call, first. False: it grants nothing.
    bool settle(State &s, int server, core::RegistryView &r, Outcome &out) const {
        Server &at = s.server[server];
        const core::Term before = r.term;
        const bool was_changed = at.change != Change::none;
        if (at.change == Change::promoted && p_.compares_timeline) {
            const core::Commits known = p_.commits_of_former(r, size_.synchronous != 0);
            succeed(s, server, r, known);
            out.events |= known == core::Commits::are_known ? handed_over : fence_by_environment;
            s.lost_silently = 0;
        } else if (at.change == Change::moved) {
            succeed(s, server, r, core::Commits::are_known);
        }
        if (at.change == Change::promoted || at.change == Change::moved ||
            (at.change == Change::unclaimed && !p_.compares_directory))
            at.change = Change::none;
        if ((at.change != Change::none) != was_changed && before == r.term)
            out.broken = "a server took over without a new term";
        return at.change == Change::none;
    }

    // What the registry learns from what a caller shows. False: it cannot prove it.
    bool learn(State &s, int server, core::RegistryView &r, core::Request &a) const {
        Server &at = s.server[server];
        const bool is_sealed_whole =
            is_sealed(s, server, a.seen.term) && (!a.holds || is_sealed(s, server, a.held.term));
        if (a.seen.fleet != r.fleet)
            return true;
        if (!is_sealed(s, server, a.seen.term) && p_.is_claim(r, a.seen.term)) {
            at.db.claimed = small(std::max(a.seen.term.number, r.claimed));
            at.db.claimed_at = small(1 + r.now_us);
            r.claimed = at.db.claimed;
        }
        if (!is_sealed_whole) {
            a = p_.without_proof(layout_, r, a, is_sealed(s, server, a.held.term));
            if (!is_sealed(s, server, a.seen.term) || (a.holds && a.held.term.number >= r.first))
                return false;
        }
        if (p_.is_news(r, a.seen.term))
            r.shown = a.seen.term;
        if (!is_sealed_whole)
            return true;
        if (r.serial_at_start == 0)
            return true;
        at.heard = std::max<int8_t>(at.heard, core::ends_wait(layout_, r, a, r.serial_at_start) ? 1 : 0);
        if (p_.ends_wait(layout_, r, a, r.serial_at_start)) {
            r.serial_at_start = 0;
            r = p_.with_wait(r);
        }
        return true;
    }

    core::Hello hello(State &s, int server, core::Request a, Outcome &out) const {
        core::RegistryView r = view(s, server);
        bool open = enter(s, server, r, out);
        if (!open && s.server[server].change == Change::empty)
            return {};
        const bool is_known = open && learn(s, server, r, a);
        open = open && r.shown.number <= r.term.number && !core::is_closed(r) && s.server[server].alone == 0;
        if (open && is_known && core::shows_lost_answer(r, a.seen)) {
            s.lost_silently = 0; // from now on it knows
            if (p_.hello_is_evidence)
                succeed(s, server, r, core::Commits::may_be_lost);
            out.events |= fence_by_hello;
            if (size_.never_lost)
                out.broken = "a false alarm";
        }
        r.own_serial--;
        commit(s, server, r);
        return {true, open, static_cast<uint64_t>(1 + server), r.fleet, r.term, s.server[server].db.last};
    }

    // -----------------------------------------------------------------------------------------------------
    // Where a member asks.

    static bool is_newcomer(const Member &m) { return m.asker.holds == 0; }

    // By the model's own account, which a mutant does not change.
    bool must_refuse_newcomers(const State &s, int server) const {
        const Server &at = s.server[server];
        const core::RegistryView r = view(s, server);
        return at.is_copy != 0 || core::are_rivals(big(at.db.shown), r.term) || (at.heard == 0 && core::is_in_wait(r));
    }

    bool must_refuse_unless_live(const State &s, int server) const {
        const Server &at = s.server[server];
        const core::RegistryView r = view(s, server);
        return core::are_rivals(big(at.db.shown), r.term) ||
               (at.claimed > r.term.number && r.now_us - (at.claimed_at - 1) < core::claim_us(r));
    }

    // The request has no member if it does not know where to ask. False: nobody answers.
    bool address(State &s, int member, Message &request, Outcome &out) const {
        Member &m = s.members[member];
        int64_t told = 0;
        const bool connected = m.connected != 0 && s.server[m.connected - 1].up != 0;
        core::Best best = {m.connected - 1, true};
        const bool is_alike = is_newcomer(m) || (p_.asks_again && m.asker.held.until <= clock(s, member));
        const bool inquires = is_alike || !connected;
        if (inquires)
            best = inquire(s, member, out, &told);
        if (best.index == core::no_registry)
            return false;
        if (inquires && m.asker.fleet == static_cast<int8_t>(this_fleet) &&
            s.server[best.index].db.term.number < m.asker.term.number)
            out.broken = "a member went back to an earlier registry";
        m.connected = static_cast<int8_t>(1 + best.index);
        m.looks = 1;
        if (!best.is_alone && is_alike) {
            out.events |= not_alone;
            return true;
        }
        request = message_of(s, member, m.connected - 1, told);
        return true;
    }

    Message message_of(const State &s, int member, int server, int64_t told) const {
        const Member &m = s.members[member];
        const int64_t now = clock(s, member);
        return {small(1 + member), small(server), m.asker, small(now), small(std::max<int64_t>(now, m.mark + 1)),
                m.joins,           small(told)};
    }

    // Time has passed. What was shown and told by now counts.
    void look(State &s, Outcome &out) const {
        for (int i = 0; p_.looks && i < most_members; i++) {
            Member &m = s.members[i];
            if (m.life == Life::alive && m.looks != 0)
                m.connected = static_cast<int8_t>(1 + inquire(s, i, out).index);
        }
    }

    bool reaches(const State &s, const Member &m, int server) const {
        return s.server[server].up != 0 && ((m.cut | m.left) >> server & 1) == 0;
    }

    // A later term counts from the hello on. One that no member keeps needs no serial, because only the order of those
    // counts that are known.
    void keep_hello(State &s, int member, int server, const core::Hello &hello, Outcome &out) const {
        Member &m = s.members[member];
        Server &at = s.server[server];
        m.met = s.declared != 0 && hello.term.number >= s.declared ? int8_t{1} : m.met;
        const core::Refusal why = at.change != Change::none ? core::Refusal::unclaimed
                                  : at.db.closed_until != 0 ? core::Refusal::handing_over
                                  : at.alone != 0           ? core::Refusal::no_standby
                                  : hello.open              ? core::Refusal::none
                                                            : core::Refusal::stale_registry;
        const core::Answer answer = {
            why, 0, hello.fleet, {0, 0, 0, 0, hello.term, p_.answered_serial(view(s, server))}};
        const core::FleetSeen before = seen(m.asker);
        const core::FleetSeen after = p_.seen_after_hello(before, answer);
        if (!p_.may_have_granted(answer, hello.granted_last_us) ||
            (after.term == before.term && after.serial == before.serial))
            return;
        at.db.serial = std::max(at.db.serial, small(after.serial));
        store(m, membership(m), after);
        out.events |= kept_hello;
        // Of a copy that grants nothing the fleet need not know.
        const bool may_be_copy = why == core::Refusal::unclaimed || why == core::Refusal::no_standby;
        if (may_be_copy && at.granted == 0 && at.db.last < hello.term.number)
            out.broken = "a member has kept the term of a registry that grants nothing";
    }

    core::Best inquire(State &s, int member, Outcome &out, int64_t *told = nullptr) const {
        const Member &m = s.members[member];
        core::Hello hellos[servers] = {};
        const core::Request own = request_of(message_of(s, member, 0, 0));
        for (int i = 0; i < servers; i++)
            if (reaches(s, m, i))
                hellos[i] = hello(s, i, own, out);
        const core::Best best = p_.best_registry(hellos, servers, own.seen);
        if (best.index == core::no_registry)
            return best;
        const int other = 1 - best.index;
        const core::Hello &chosen = hellos[best.index];
        keep_hello(s, member, best.index, chosen, out);
        if (hellos[other].answers && hellos[other].term != chosen.term && p_.shows_others) {
            if (hellos[other].open)
                out.events |= closed_other;
            hellos[other] = hello(s, other, showing(chosen.fleet, chosen.term), out);
            if (core::are_rivals(hellos[other].term, chosen.term))
                (void)hello(s, best.index, showing(chosen.fleet, hellos[other].term), out);
        }
        const int last = core::last_of_others(hellos, servers, best.index);
        const SmallTerm &shown = s.server[other].db.shown;
        if (hellos[other].answers && s.server[other].change == Change::none && best.index != other &&
            is_sealed(s, other, chosen.term) && hellos[other].term.number < chosen.term.number &&
            shown.number < chosen.term.number)
            out.broken = "a member met a former registry and did not close it";
        // The proof of that.
        const bool counts = last != core::no_registry && is_sealed(s, best.index, hellos[last].term);
        if (told != nullptr)
            *told = counts ? hellos[last].granted_last_us : 0;
        return best;
    }

    static core::Request showing(uint64_t fleet, const core::Term &term) {
        core::Request a = {};
        a.seen = {fleet, term};
        return a;
    }

    // Whether a server that the member cannot reach may grant. Then nothing is promised, unless the one that it reaches
    // must refuse it.
    bool is_blind(const State &s, const Message &request) const {
        const Member &m = s.members[request.member - 1];
        const int other = 1 - request.server;
        return s.server[other].up != 0 && !reaches(s, m, other) && (m.left >> other & 1) == 0 &&
               s.server[other].change != Change::unclaimed;
    }

    // -----------------------------------------------------------------------------------------------------
    // The registry's call.

    // The row of the latest answer that the member missed; -1: there is none.
    int missed_node(const State &s, int server, const core::Request &a) const {
        int found = -1;
        for (int node = 0; node < size_.nodes; node++) {
            const core::NodeRow candidate = row(s, server, node);
            if (p_.is_missed(a, candidate) &&
                (found < 0 ||
                 core::is_later(candidate, {0, 0, 0, 0, row(s, server, found).term, row(s, server, found).serial})))
                found = node;
        }
        return found;
    }

    int free_node(const State &s, int server, const core::RegistryView &r, const core::Request &a) const {
        int found = -1;
        for (int node = 0; node < size_.nodes; node++)
            if (p_.is_free(layout_, r, a, row(s, server, node)) &&
                (found < 0 || row(s, server, node).until < row(s, server, found).until))
                found = node;
        return found;
    }

    struct Case {
        core::Judgement judgement;
        core::Request request; // as it was judged
        int node;              // of the row that it was judged against; -1: none
    };

    // As core::decide(), with the mutant's judgement.
    Case decide(const State &s, int server, const core::RegistryView &r, const core::Request &a) const {
        const int missed = missed_node(s, server, a);
        const auto against = [&](const core::Request &asked, int node) -> Case {
            return {p_.judge(layout_, r, asked, node >= 0 ? row(s, server, node) : core::NodeRow{}), asked, node};
        };
        const Case first = against(a, a.holds ? static_cast<int>(a.held.node) : missed);
        if (!a.holds || first.judgement.verdict != core::Verdict::newcomer || missed < 0)
            return first;
        return against(core::without_held(a), missed);
    }

    // A call has one request of each of some members. They are judged one after another, but what all of them show counts
    // before. What is committed is durable before it is answered.
    struct Batch {
        int count;
        Message requests[most_members];
        core::Request asked[most_members];
        bool is_known[most_members];
        Response responses[most_members];
    };

    // What a request shows, and whether it shows that commits were lost.
    void read_evidence(State &s, Batch &batch, int i, core::RegistryView &r, Outcome &out) const {
        const Message &request = batch.requests[i];
        batch.asked[i] = request_of(request);
        batch.is_known[i] = learn(s, request.server, r, batch.asked[i]);
        if (!batch.is_known[i])
            return;
        if (request.told > r.covered_us)
            out.events |= fence_by_other;
        r = p_.told_of_other(r, request.told);
    }

    void read_losses(State &s, const Batch &batch, int i, core::RegistryView &r, Outcome &out) const {
        const int server = batch.requests[i].server;
        if (!batch.is_known[i] || core::is_closed(r) || s.server[server].alone != 0 ||
            decide(s, server, r, batch.asked[i]).judgement.verdict != core::Verdict::fence)
            return;
        out.events |= s.lost_silently == 0 ? fence_by_member | fence_not_needed : fence_by_member;
        if (size_.never_lost)
            out.broken = "a false alarm";
        succeed(s, server, r, core::Commits::may_be_lost);
    }

    // False: the step is outside what is promised.
    bool answer_all(State &s, Batch &batch, Outcome &out) const {
        const int server = batch.requests[0].server;
        core::RegistryView r = view(s, server);
        if (!enter(s, server, r, out)) {
            out.events |= refused(core::Refusal::unclaimed);
            for (int i = 0; i < batch.count; i++)
                batch.responses[i] = reply(batch.requests[i], core::Refusal::unclaimed, r);
            return s.server[server].change != Change::empty;
        }
        // Until a member shows what was lost, the registry cannot know, and nothing is promised.
        int shows = 0;
        while (s.lost_silently != 0 && shows < batch.count && !shows_loss(s, r, request_of(batch.requests[shows])))
            shows++;
        if (s.lost_silently != 0 && p_.flushes) {
            if (shows == batch.count)
                return false;
            out.events |= shows > 0 ? fence_by_later_one : uint64_t{0};
            s.lost_silently = 2;
        }
        // After the word of an administrator a member that does not know of it must not call another registry.
        for (int i = 0; i < batch.count; i++)
            if (r.term.number < s.declared && batch.requests[i].asker.holds != 0 &&
                s.members[batch.requests[i].member - 1].met == 0)
                return false;
        const bool must_refuse = must_refuse_newcomers(s, server);
        for (int i = 0; i < batch.count && p_.reads_evidence_first; i++)
            read_evidence(s, batch, i, r, out);
        for (int i = 0; i < batch.count && p_.reads_evidence_first; i++)
            read_losses(s, batch, i, r, out);
        for (int i = 0; i < batch.count; i++) {
            if (!p_.reads_evidence_first) {
                read_evidence(s, batch, i, r, out);
                read_losses(s, batch, i, r, out);
            }
            r.own_serial += i > 0 ? 1 : 0;
            if (core::is_closed(r) || s.server[server].alone != 0) {
                const core::Refusal why = core::is_closed(r) ? core::Refusal::handing_over : core::Refusal::no_standby;
                batch.responses[i] = reply(batch.requests[i], why, r);
                out.events |= refused(why);
                continue;
            }
            if (batch.is_known[i] &&
                !answer_one(s, batch.requests[i], batch.asked[i], r, must_refuse, batch.responses[i], out))
                return false;
            if (batch.is_known[i])
                continue;
            out.events |= refused(core::Refusal::other_fleet);
            s.members[batch.requests[i].member - 1].connected = 0;
        }
        s.lost_silently = s.lost_silently == 2 ? int8_t{0} : s.lost_silently;
        if (!p_.answers_before_commit)
            commit(s, server, r);
        return true;
    }

    bool answer(State &s, const Message &request, Response &response, Outcome &out) const {
        Batch one = {1, {request}, {}, {}, {response}};
        const bool is_promised = answer_all(s, one, out);
        response = one.responses[0];
        return is_promised;
    }

    bool answer_one(State &s, const Message &request, const core::Request &a, const core::RegistryView &r,
                    bool must_refuse, Response &response, Outcome &out) const {
        const int server = request.server;
        const State before = s;
        if (request.joins != 0 && core::claims_too_much(layout_, r, a, s.members[request.member - 1].mark + 1)) {
            response = reply(request, core::Refusal::ahead, r);
            if (a.lowest < core::beginning(layout_, r, a) + core::grant_ticks(layout_, r, a))
                out.broken = "a joining member that could have a grant was refused";
            out.events |= refused(core::Refusal::ahead);
            return true;
        }
        if (request.joins != 0)
            use_before(s, server, r, a, request.member - 1, out);
        const Case d = decide(s, server, r, a);
        core::Refusal why = d.judgement.why;
        core::NodeRow after = {};
        bool has_row = false;
        switch (d.judgement.verdict) {
        case core::Verdict::fence:
            out.broken = "a fence does not end the doubt";
            return true;
        case core::Verdict::extend: {
            after = p_.extended(layout_, r, d.request, row(s, server, d.node));
            has_row = true;
            note_extension(before, r, request, d, after, out);
            break;
        }
        case core::Verdict::newcomer: {
            const int node = free_node(s, server, r, a);
            why = node < 0 ? core::Refusal::fenced : core::Refusal::none;
            if (node >= 0) {
                after = p_.granted(layout_, r, a, row(s, server, node));
                has_row = true;
                note_newcomer(s, server, r, a, node, out);
            }
            break;
        }
        case core::Verdict::refuse:
            out.events |= refused(why);
            if (why == core::Refusal::superseded && size_.never_superseded)
                out.broken = "the latest life was refused";
        }
        check_survivor(before, r, request, d, out);
        check_known_holder(before, r, request, d, out);
        // An answer that was missed is given again.
        const bool extends = d.judgement.verdict == core::Verdict::extend;
        const bool is_live = (request.asker.holds != 0 && request.asker.held.until > r.now_us) ||
                             (extends && row(before, server, static_cast<int>(after.node)).until > r.now_us);
        if (has_row && !is_live && must_refuse_unless_live(s, server))
            out.broken = "a registry that may have a successor granted a node";
        if (has_row && is_blind(s, request) && !(must_refuse && d.judgement.verdict == core::Verdict::newcomer))
            return false;
        response = reply(request, why, r);
        if (has_row) {
            response.grant = grant_of(after, r);
            if (after.until < row(s, server, static_cast<int>(after.node)).until)
                out.broken = "a node's until went back";
            if (a.seen.fleet != 0 && a.seen.fleet != r.fleet)
                out.broken = "a member of another fleet got a node";
            note_copies(s, request, d.judgement.verdict, after, out);
            if (!p_.answers_before_commit)
                commit(s, server, after, r.now_us);
        }
        return true;
    }

    // The step's member and the next one that lives ask in one call. A crash inside it leaves nothing of it.
    bool ask_together(State &s, const Step &step, Outcome &out) const {
        Batch batch = {};
        for (int i = 0; i < most_members && batch.count < 2; i++) {
            const int member = (step.member + i) % most_members;
            Message &request = batch.requests[batch.count];
            if (s.members[member].life != Life::alive || s.members[member].superseded != 0)
                continue;
            if (!address(s, member, request, out))
                return false;
            batch.count += request.member != 0 ? 1 : 0;
            if (request.member != 0 && request.server != batch.requests[0].server)
                return false;
        }
        const State before = s;
        if (batch.count < 2 || !answer_all(s, batch, out))
            return false;
        const bool crashes = step.arg == 1;
        int answered = step.arg == 0 ? batch.count : 0;
        if (crashes) {
            s = before;
            start_server(s, s.server[batch.requests[0].server]);
            answered = p_.answers_inside_batch ? batch.count - 1 : 0;
        } else if (batch.responses[0].grant.until != 0 && batch.responses[1].grant.until != 0) {
            out.events |= granted_together;
        }
        for (int i = 0; i < answered; i++)
            if (!receive(s, batch.responses[i], out))
                return false;
        return true;
    }

    static SmallGrant grant_of(const core::NodeRow &row, const core::RegistryView &r) {
        return small(core::Grant{row.node, row.from, row.until, row.membership, r.term, r.own_serial});
    }

    Response reply(const Message &request, core::Refusal why, const core::RegistryView &r) const {
        return {request.member,
                request.server,
                static_cast<int8_t>(why),
                request.asker.incarnation,
                static_cast<int8_t>(r.fleet),
                {0, 0, 0, 0, small(r.term), small(p_.answered_serial(r))}};
    }

    // By the model's own account, so that a mutant cannot widen the exception.
    bool shows_loss(const State &s, const core::RegistryView &r, const core::Request &a) const {
        if (a.seen.term.number > r.term.number || r.shown.number > r.term.number ||
            (a.seen.term == r.term && a.seen.serial >= r.own_serial) ||
            (r.former.number != 0 && a.seen.term == r.former && a.seen.serial > r.former_serial))
            return true;
        if (!a.holds || a.held.term != r.term)
            return false;
        const core::NodeRow known = row(s, s.primary, static_cast<int>(a.held.node));
        return known.term != r.term || a.held.serial > known.serial;
    }

    void use_before(State &s, int server, const core::RegistryView &r, const core::Request &a, int member,
                    Outcome &out) const {
        Member &m = s.members[member];
        const core::NodeRow known = row(s, server, 0);
        const core::NodeRow after = p_.used_before(layout_, r, a, known, m.mark + 1);
        if (known.until <= core::beginning(layout_, r, a))
            for (int64_t tick = known.until; tick <= m.mark; tick++)
                if (drawn(s, 0, tick) == 0 && !is_held(s, 0, tick))
                    set_drawn(s, 0, tick, 1 + member);
        commit(s, server, after, 0);
        out.events |= joined;
    }

    void note_newcomer(const State &s, int server, const core::RegistryView &r, const core::Request &a, int node,
                       Outcome &out) const {
        out.events |= r.fence_base_us != 0 ? granted_newcomer | newcomer_after_fence : granted_newcomer;
        // The row of an answer in the registry's present term that the member missed: it should have got that one.
        for (int other = 0; other < size_.nodes; other++)
            if (other != node && row(s, server, other).term == r.term && core::is_missed(a, row(s, server, other)))
                out.broken = "a repeated request took a second node";
    }

    void note_extension(const State &before, const core::RegistryView &r, const Message &request, const Case &d,
                        const core::NodeRow &after, Outcome &out) const {
        out.events |= extended_grant;
        const core::NodeRow known = row(before, request.server, static_cast<int>(after.node));
        if (known.term.number != 0 && known.term.number < r.term.number)
            out.events |= survived_fence;
        if (d.request.holds && known.membership != d.request.held.membership)
            out.events |= row_from_member;
        if (request.asker.holds != 0 && !d.request.holds)
            out.events |= answered_again;
        // Incarnations of one member grow.
        const bool same_directory = before.copy == 0 && known.membership == after.membership;
        const bool was_dead = before.members[request.member - 1].life == Life::dead;
        if (was_dead && known.membership != after.membership && core::is_later(known, big(request.asker.held)))
            out.broken = "a dead membership got its node back";
        if (same_directory && p_.own_incarnation && known.incarnation > after.incarnation)
            out.broken = "a life got a node after a later one had it";
    }

    // A holder whose grant reaches above every lost grant's beginning keeps its node, if it drew it last.
    void check_survivor(const State &before, const core::RegistryView &r, const Message &request, const Case &d,
                        Outcome &out) const {
        const Asker &asker = request.asker;
        if (asker.holds == 0 || d.judgement.verdict != core::Verdict::newcomer || !d.request.holds)
            return;
        const core::NodeRow known = row(before, request.server, asker.held.node);
        const core::Grant held = big(asker.held);
        const bool is_latest =
            known.membership == held.membership || (held.until > known.until && !core::is_later(known, held));
        if (known.term != r.term && is_latest && held.until > core::last_lost_beginning(layout_, r))
            out.broken = "a live holder did not survive the fence";
    }

    // While no clock is wrong, neither a claim nor an invented grant stops a member whose grant lasts and that the
    // registry knows.
    void check_known_holder(const State &before, const core::RegistryView &r, const Message &request, const Case &d,
                            Outcome &out) const {
        const Asker &asker = request.asker;
        if (asker.holds == 0 || !is_sealed(before, request.server, big(asker.held.term)) || asker.fleet == 0)
            return;
        const core::NodeRow known = row(before, request.server, asker.held.node);
        const int64_t until = std::max<int64_t>(asker.held.until, known.until);
        const core::Refusal why = d.judgement.why;
        const bool is_stopped = d.judgement.verdict == core::Verdict::newcomer || why == core::Refusal::claimed ||
                                why == core::Refusal::fenced || why == core::Refusal::starting;
        if (is_stopped && known.membership == big(asker.held.membership) && until > r.now_us &&
            until > core::last_lost_beginning(layout_, r))
            out.broken = "a member whose grant lasts was stopped";
    }

    // Of two copies of one life, the one that is answered first is the life that follows. The other one is refused.
    static void note_copies(State &s, const Message &request, core::Verdict verdict, const core::NodeRow &after,
                            Outcome &out) {
        const bool is_one = s.copy != 0 && (request.member == s.copy || request.member == s.copied);
        if (!is_one || after.membership != big(s.copy_membership) || s.copy_node != after.node)
            return;
        int8_t &answered = s.server[request.server].db.copy_answered;
        if (verdict == core::Verdict::extend && answered != 0 && answered != request.member)
            out.broken = "both copies of a life were answered";
        if (request.asker.incarnation > s.copy_incarnation || request.member == s.copy)
            answered = request.member;
    }

    // -----------------------------------------------------------------------------------------------------
    // What an administrator says, and what somebody else invents.

    // Whether nothing was lost, as far as it matters: the primary knows of each grant of a member.
    bool knows_all(const State &s) const {
        const auto is_known = [&](const SmallGrant &g) {
            const core::NodeRow known = row(s, s.primary, g.node);
            return known.from >= g.until || (known.membership == big(g.membership) && known.until >= g.until);
        };
        for (const Member &m : s.members)
            if (m.life != Life::absent && m.asker.holds != 0 && !is_known(m.asker.held))
                return false;
        return s.response.member == 0 || s.response.grant.until == 0 || is_known(s.response.grant);
    }

    // uid_fleet_fence(cancel => true).
    bool cancel(State &s, bool is_rolled_back, Outcome &out) const {
        Server &at = primary(s);
        if (at.up == 0 || other(s).up != 0 || at.change == Change::empty || at.change == Change::unclaimed ||
            !knows_all(s))
            return false;
        const State before = s;
        core::RegistryView r = view(s, s.primary);
        (void)enter(s, s.primary, r, out);
        if (core::is_closed(r) && r.now_us < p_.may_open_us(r))
            return false;
        if (is_rolled_back) {
            s = before;
            primary(s).db.serial++;
            return true;
        }
        succeed(s, s.primary, r, core::Commits::are_declared);
        commit(s, s.primary, r);
        for (Member &m : s.members)
            m.met = 0;
        s.lost_silently = 0;
        return true;
    }

    bool hand_over(State &s, bool is_canceled, Outcome &out) const {
        if (primary(s).up == 0)
            return false;
        core::RegistryView r = view(s, s.primary);
        const bool counts = enter(s, s.primary, r, out);
        const int64_t started = started_us(s, s.primary, r);
        if (is_canceled) {
            if (!core::is_closed(r) || r.now_us < p_.may_open_us(r) || !counts ||
                core::judge_server(r, {}) != core::Refusal::none)
                return false;
            succeed(s, s.primary, r, p_.after_cancel);
        } else {
            if (!counts || p_.judge_handover(r, started) != core::Refusal::none)
                return false;
            r.closed_until_us = std::max(r.closed_until_us, r.now_us + size_.closing);
        }
        commit(s, s.primary, r);
        return true;
    }

    // Its incarnation and membership are random, so no member has them.
    bool invent(State &s, int node, Outcome &out) const {
        core::RegistryView r = view(s, s.primary);
        if (primary(s).up == 0 || !enter(s, s.primary, r, out) || core::is_closed(r) || r.first < 2)
            return false;
        const core::Term term = {r.first - 1, 2 - primary(s).db.key};
        const uint64_t life = big(fresh(s));
        core::Request a = {life,     {},       true,         {node, 0, model_ticks - 1, life, term, 1},
                           r.now_us, r.now_us, size_.length, {this_fleet, term, 1}};
        const core::NodeRow known = row(s, s.primary, node);
        if (!learn(s, s.primary, r, a))
            return false;
        const Case d = decide(s, s.primary, r, a);
        if (d.judgement.verdict != core::Verdict::extend)
            return false;
        const core::NodeRow after = p_.extended(layout_, r, d.request, known);
        const int64_t end = std::max(core::fence_tick(layout_, r), core::beginning(layout_, r, a) + size_.longest);
        if (after.until > std::max(end, known.until))
            out.broken = "an invented grant outlives the fence";
        for (const Member &m : s.members)
            if (m.life == Life::alive && m.asker.holds != 0 && m.asker.held.node == node &&
                big(m.asker.held.membership) == known.membership && m.asker.held.until > r.now_us)
                out.broken = "an invented grant took the node of a member that had called";
        commit(s, s.primary, after, r.now_us);
        commit(s, s.primary, r);
        out.events |= invented;
        return true;
    }

    bool revoke(State &s, int node, Outcome &out) const {
        const core::NodeRow known = row(s, s.primary, node);
        if (known.membership == 0 || primary(s).change != Change::none || s.lost_silently != 0)
            return false;
        core::RegistryView r = view(s, s.primary);
        for (int i = 0; i < most_members; i++) {
            Member &m = s.members[i];
            const bool is_holder =
                m.asker.holds != 0 && m.asker.held.node == node && big(m.asker.held.membership) == known.membership;
            const Message asks = {static_cast<int8_t>(1 + i), s.primary, m.asker, 0, 0, 0, 0};
            if (m.life == Life::alive && (is_holder || core::is_same_life(request_of(asks), known)))
                m.life = Life::dead;
        }
        commit(s, s.primary, p_.revoked(layout_, r, known, size_.ahead), 0);
        commit(s, s.primary, r);
        out.events |= was_revoked;
        return true;
    }

    // The registry of another fleet is new: it would give node 0 to anyone.
    bool ask_other(State &s, int member, Outcome &out) const {
        const Message request = message_of(s, member, 0, 0);
        const core::Request a = request_of(request);
        core::RegistryView r = view(s, s.primary);
        r.fleet = other_fleet;
        r.term = {1, 1};
        r.first = 1;
        r.former = r.shown = {};
        r.own_serial = 1;
        r.fence_base_us = 0;
        const core::Judgement judgement = p_.judge(layout_, r, a, core::NodeRow{});
        s.response = reply(request, judgement.why, r);
        if (judgement.verdict == core::Verdict::newcomer) {
            s.response.grant = grant_of(core::granted(layout_, r, a, {}), r);
            if (a.seen.fleet != 0)
                out.broken = "a member of another fleet got a node";
        }
        out.events |= refused(judgement.why);
        return true;
    }

    // -----------------------------------------------------------------------------------------------------
    // The members.

    bool receive(State &s, const Response &response, Outcome &out) const {
        if (response.member == 0) // the member is told nothing that counts
            return true;
        Member &m = s.members[response.member - 1];
        if (m.life != Life::alive)
            return false;
        core::Membership big_one = membership(m);
        core::FleetSeen fleet = seen(m.asker);
        const core::Membership before = big_one;
        const core::Answer answer = {static_cast<core::Refusal>(response.why), big(response.incarnation),
                                     big(response.fleet), big(response.grant)};
        if (!p_.accept(&big_one, &fleet, answer) && m.asker.fleet != 0 && big(m.asker.fleet) != answer.fleet)
            out.events |= other_fleet_ignored;
        else if (answer.why == core::Refusal::none && big_one.held.serial != answer.grant.serial)
            out.events |= late_answer_ignored;
        if (before.superseded && !big_one.superseded)
            out.broken = "a superseded life went on";
        if (before.holds && (big_one.held.term.number < before.held.term.number ||
                             (big_one.held.term == before.held.term && big_one.held.serial < before.held.serial)))
            out.broken = "a member went back to an older answer";
        if (m.asker.fleet != 0 && big(m.asker.fleet) != fleet.fleet)
            out.broken = "a member went to another fleet";
        store(m, big_one, fleet);
        // A refusal that another server could heal.
        if (answer.why == core::Refusal::stale_registry)
            m.connected = 0;
        return true;
    }

    void begin(State &s, int member, void (*begins)(core::Membership *, uint64_t)) const {
        Member &m = s.members[member];
        core::Membership big_one = membership(m);
        begins(&big_one, big(fresh(s)));
        store(m, big_one, seen(m.asker));
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
        if (step.kind == StepKind::copy_directory || copy.asker.holds == 0) {
            begin(s, place, step.kind == StepKind::copy_directory ? p_.start_elsewhere : p_.restart);
            return true;
        }
        s.copy = 1 + place;
        s.copied = static_cast<int8_t>(1 + step.member);
        s.copy_membership = copy.asker.held.membership;
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

    static constexpr int of_copied_membership = 8;

    // 1 + member, and whether it drew as one of two copies.
    static int drawer_of(const State &s, int member) {
        const Asker &asker = s.members[member].asker;
        const bool is_copy = s.copy == 1 + member || s.copied == 1 + member;
        const bool of_membership = asker.held.membership == s.copy_membership && asker.held.node == s.copy_node;
        return 1 + member + (is_copy && of_membership ? of_copied_membership : 0);
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

    // What two copies of one life draw inside the membership's grants, before the second one asks, is not promised.
    static void record(State &s, int node, int64_t tick, int member, Outcome &out) {
        if (s.members[member].asker.fleet == static_cast<int8_t>(other_fleet))
            return;
        const int before = drawn(s, node, tick);
        const int drawer = drawer_of(s, member);
        if (before == 0)
            set_drawn(s, node, tick, drawer);
        else if (before != drawer && (before & drawer & of_copied_membership) != 0)
            out.events |= drew_by_both_copies;
        else
            out.broken = "(node, tick) was drawn twice";
    }

    // -----------------------------------------------------------------------------------------------------

    static void renumber_serials(State &s) {
        bool used[128] = {};
        for_each_stamp(s, [&](const SmallTerm &, int8_t serial) { used[std::max<int8_t>(serial, 0)] = true; });
        int8_t rank[128] = {};
        for (int value = 1, next = 1; value < 128; value++)
            if (used[value])
                rank[value] = static_cast<int8_t>(next++);
        for_each_stamp(s, [&](const SmallTerm &, int8_t &serial) { serial = serial > 0 ? rank[serial] : serial; });
    }
};

} // namespace uidgen::test
