// What a member of a fleet asks of its registry for one generator, and what it does with the answers. The functions of
// the registry are SQL (uidgen_registry.sql). docs/design.md has the rules of both, and why no tick of a node has two
// holders.
//
// Times are microseconds since 1970, the ends of what the registry gave. ticks_of() turns them into ticks.
//
// Numbered invariants
//   1. A call names a fresh token, which the registry's row has after the answer. A repeat names the same one, and asks
//      for no earlier time (prepare_call()). The caller stores the holding before it sends the call, sends no other
//      call before it has the answer or gives the call up, and ignores the answer to a call that it gave up. After the
//      answer `ahead` a renewal may ask for an earlier time (forget_time()), because of (2).
//   2. A renewal keeps the beginning of its grant, because the registry extends a grant only up to ticks that are its
//      holder's. A newcomer begins at the time that it asked for, or where the answer says if that is later: the first
//      call, whose answer was lost, asked for no later time.
//   3. So that (2) holds for repeats, a renewal that was refused is never repeated as one: the caller joins again, with
//      another token. A clone of the member may know this one, and would get the same node. So after a start a call for
//      another node names another token, too (holding_at_start()).
//   4. Any refusal but `taken` leaves the grant as it is, to its end. After `taken` another holder has the node.
//   5. The caller stores the holding before it draws in the grant. A holding counts only where it was stored, and for a
//      generator that has a high-water mark. Elsewhere the caller begins with an empty one.
//   6. A member takes no answer of a smaller term than it has accepted, nor of another fleet. Only answers count for
//      the term, because the term that a hello names begins with the first call.
#pragma once

#include <algorithm>
#include <cstdint>

#include "layout.hpp"

namespace uidgen::core {

// The right to draw with a node from `since` up to `until`.
struct Grant {
    int64_t node;
    int64_t since;
    int64_t until;
    int64_t token; // what the registry's row has
};

struct Holding {
    bool holds;
    bool must_join; // a renewal was refused: the next call asks for another node, and the grant lasts to its end
    Grant grant;
    int64_t new_token; // of the call that has no answer; 0: there is none
    int64_t earliest;  // that this call asks for
};

// Why a registry grants nothing. The first ones are its own words (why_of()).
enum class Why : uint8_t {
    granted,
    ahead,          // the generator needs a later time than a grant may reach
    fenced,         // newcomers wait until `until`
    none_free,      // each node is held
    lost,           // the registry lacks the grant that was shown, or it ended before a fence
    taken,          // another holder has the node
    range,          // the node is outside the generator's range
    outdated,       // the member has seen a larger term
    other_fleet,    // the member is of another fleet
    layout_differs, // a layout of equal widths is known, whose ids could equal this one's
    malformed,      // the request
    not_kept,       // of a segment, as the next ones: the registry may lose commits
    no_segment,
    values_lost, // the member shows a value far beyond all that was given
    used_up,
    unknown,   // a word that a later version of the registry says
    shortened, // the member's own, as the next one: the fleet had longer grants
    too_short, // the longest grant has no two ticks of the layout
};

constexpr const char *why_names[] = {"granted",   "ahead",     "fenced",     "none_free",   "lost",
                                     "taken",     "range",     "outdated",   "other_fleet", "layout_differs",
                                     "malformed", "not_kept",  "no_segment", "values_lost", "used_up",
                                     "unknown",   "shortened", "too_short"};
static_assert(sizeof(why_names) / sizeof(why_names[0]) == static_cast<size_t>(Why::too_short) + 1);

constexpr const char *why_name(Why why) noexcept { return why_names[static_cast<uint8_t>(why)]; }

struct Answer {
    Why why;
    int64_t fleet;
    int64_t term;
    Grant grant; // without its token
};

// What a server knows of its fleet; zeros: nothing.
struct FleetSeen {
    int64_t fleet;
    int64_t term;    // the largest of the answers that it has accepted
    int64_t longest; // the longest grant
};

// Which nodes a generator may have.
struct NodeRange {
    int64_t lowest;
    int64_t highest;
};

// Negative numbers: none was given. A worker id that is given is one of datacenter 0, unless that is given, too.
constexpr NodeRange node_range(const Layout &layout, int64_t datacenter_id, int64_t worker_id) noexcept {
    const int64_t datacenter = std::max(datacenter_id, INT64_C(0));
    if (worker_id >= 0) {
        const int64_t node = node_of_fields(layout, {datacenter, worker_id});
        return {node, node};
    }
    if (datacenter_id < 0)
        return {0, largest(drawn_node_bits(layout))};
    return {node_of_fields(layout, {datacenter, 0}),
            node_of_fields(layout, {datacenter, largest(drawn_worker_bits(layout))})};
}

// ---------------------------------------------------------------------------------------------------------
// A call.
// ---------------------------------------------------------------------------------------------------------

// Whether the next call is a newcomer's. Otherwise it is the renewal of the grant.
constexpr bool calls_as_newcomer(const Holding &holding) noexcept { return !holding.holds || holding.must_join; }

// The call was answered, or is never repeated.
constexpr void forget_call(Holding *holding) noexcept { holding->new_token = holding->earliest = 0; }

// The registry gave nothing, because the call asked for a time that no grant reaches. A clock that was ahead may have
// been corrected, so the next call need not ask for that time: the renewal repeats its token, because it keeps the
// beginning of its grant whatever it asks for, and a newcomer names another one.
constexpr void forget_time(Holding *holding) noexcept {
    holding->earliest = 0;
    if (calls_as_newcomer(*holding))
        forget_call(holding);
}

// What a start finds stored (3). A renewal repeats its token, so that it finds its node.
constexpr Holding holding_at_start(Holding stored) noexcept {
    if (calls_as_newcomer(stored))
        forget_call(&stored);
    return stored;
}

// Before a call, or its repeat. `fresh` was never used as a token.
constexpr void prepare_call(Holding *holding, int64_t fresh, int64_t earliest) noexcept {
    holding->earliest = holding->new_token == 0 ? earliest : std::max(holding->earliest, earliest);
    holding->new_token = holding->new_token == 0 ? fresh : holding->new_token;
}

// Whether an answer counts (6).
constexpr bool answer_counts(const FleetSeen &seen, const Answer &answer) noexcept {
    return answer.term >= seen.term && (seen.fleet == 0 || seen.fleet == answer.fleet) && answer.why != Why::outdated &&
           answer.why != Why::other_fleet;
}

// What a server has seen after an answer that counts. A server joins a fleet by its first grant or block.
constexpr FleetSeen seen_after(const FleetSeen &seen, const Answer &answer, int64_t longest) noexcept {
    if (seen.fleet == 0 && answer.why != Why::granted)
        return seen;
    return {.fleet = answer.fleet, .term = answer.term, .longest = std::max(seen.longest, longest)};
}

// Whether the registry can have given that: a renewal's node is the one that was shown.
constexpr bool grant_is_valid(const Holding &holding, const NodeRange &range, const Grant &given) noexcept {
    return given.node >= range.lowest && given.node <= range.highest &&
           (calls_as_newcomer(holding) || given.node == holding.grant.node) && given.since >= 0 &&
           given.since < given.until && given.until > holding.earliest;
}

// The answer to the call that prepare_call() began. It counts, and what it grants is valid. True: the holding has
// changed so that it must be stored, and the sessions must know of it.
constexpr bool accept_answer(Holding *holding, const Answer &answer) noexcept {
    if (answer.why == Why::granted) {
        Grant grant = answer.grant;
        grant.since = calls_as_newcomer(*holding) ? std::max(grant.since, holding->earliest) : holding->grant.since;
        grant.token = holding->new_token;
        *holding = {};
        holding->holds = true;
        holding->grant = grant;
        return true;
    }
    if (answer.why == Why::taken) {
        *holding = {};
    } else if (answer.why == Why::lost || answer.why == Why::range) {
        holding->must_join = true;
        forget_call(holding);
    } else if (answer.why == Why::ahead) {
        forget_time(holding);
    }
    return answer.why == Why::taken;
}

// ---------------------------------------------------------------------------------------------------------
// Ticks.
// ---------------------------------------------------------------------------------------------------------

struct Ticks {
    int64_t from;
    int64_t until; // the first one beyond
};

// The whole ticks of a grant that the layout has. There may be none.
constexpr Ticks ticks_of(const Layout &layout, const Grant &grant) noexcept {
    const int64_t end = largest(layout.time_bits) + 1;
    return {std::clamp(tick_at(layout, grant.since - 1) + 1, INT64_C(0), end),
            std::clamp(tick_at(layout, grant.until), INT64_C(0), end)};
}

// The time from which a grant covers the tick, which may be before the epoch or behind the layout's end.
constexpr int64_t earliest_of(const Layout &layout, int64_t tick) noexcept {
    return std::max(start_of(layout, std::clamp(tick, INT64_C(0), largest(layout.time_bits))), INT64_C(1));
}

// ---------------------------------------------------------------------------------------------------------
// Which registry.
// ---------------------------------------------------------------------------------------------------------

// What a host of the connection string answers.
struct Hello {
    bool answers; // false: it is no registry, and the rest does not count
    int64_t fleet;
    int64_t term;
    int64_t longest;
    int64_t clock;
};

// The index of the registry to call: that of this server's fleet with the largest term. It is called even if the server
// has seen a larger one, so that it learns of that and refuses. -1: there is none.
constexpr int best_registry(const Hello *hellos, int count, const FleetSeen &seen) noexcept {
    int best = -1;
    for (int i = 0; i < count; i++) {
        const Hello &hello = hellos[i];
        const bool is_of_fleet = hello.answers && (seen.fleet == 0 || hello.fleet == seen.fleet);
        if (is_of_fleet && (best < 0 || hello.term > hellos[best].term))
            best = i;
    }
    return best;
}

// Whether a registry that replaces a lost one gives shorter grants: its fence would not outlast those of the lost one.
constexpr bool is_shortened(const FleetSeen &seen, const Hello &hello) noexcept {
    return seen.fleet == hello.fleet && hello.longest < seen.longest;
}

} // namespace uidgen::core
