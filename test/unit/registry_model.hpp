// The registry of a fleet in miniature: what uidgen_registry.sql does, without the SQL. test/tap replays its calls through
// the script and compares (registry_calls.cpp).
//
// Times and tokens are small numbers, so that a search can keep millions of states. Tokens are renumbered after each step,
// because only their equality matters.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>

#include "holding.hpp"

namespace uidgen::test {

using core::Why;

// The rules, of which a mutant drops one. The numbers are those of docs/design.md.
struct Rules {
    // 1 Durable, then answered.
    bool commits_before_answer = true;
    bool reads_fence_again = true; // before a call ends that has waited
    // 2 `until` only grows, and a newcomer begins above it.
    bool until_grows = true;
    // 3 A lease lies inside the grant, and above the member's high-water mark.
    bool stays_inside_grant = true;
    bool keeps_mark = true;
    // 4 A token for each answer.
    bool compares_token = true;
    bool draws_fresh_token = true;
    bool has_own_token = true; // false: two generators of a server share one
    bool ignores_given_up = true;
    bool earliest_never_falls = true;
    bool forgets_time_when_ahead = true;
    bool begins_where_answer_says = true;
    bool stores_call = true;             // before it is sent
    bool joins_with_fresh_token = true;  // after a renewal that was refused
    bool starts_with_fresh_token = true; // if it joins
    bool taken_means_followed = true;
    bool stops_when_taken = true;
    // 5 The cap.
    bool caps_beginning = true;
    bool caps_shown = true;
    // 6 The fence.
    bool fences = true;
    bool fences_starts = true;
    bool fences_systems = true;
    bool fences_anew = true;
    bool fences_proofs = true;
    bool counts_what_is_known = true; // a lost grant that the present fence covers is no proof
    bool proves_fence_before = true;  // that nothing_was_lost() would go back to
    bool holds_newcomers = true;
    bool has_full_length = true;
    bool has_two_bounds = true;
    bool remembers_former = true; // fence, when nothing_was_lost() lifts the present one
    bool proof_forbids_lift = true;
    bool promise_compares = true;          // where it runs, before it changes the row
    bool statement_fences_by_clock = true; // also downwards
    // 7 Holders continue.
    bool lasts_beyond = true;
    bool judges_row_by_fence = true;
    bool later_grant_counts = true;
    // 8 The largest term.
    bool goes_to_largest = true;
    bool never_goes_back = true;
    bool hello_counts_not = true;
    bool term_above_row = true;
    bool term_above_seen = true;
    bool term_above_clock = true;
    bool larger_term_fences = true;
    bool fence_lasts_while_shown = true;
    bool smaller_value_counts = true; // an invented one hides none
    // 9 The file counts only where it was written.
    bool file_is_bound = true;
    bool grant_needs_mark = true;
    // 10 A pool is a layout.
    bool compares_layouts = true;
    // 11 A member asks of the fleet that it knows.
    bool compares_fleet = true;
};

constexpr int most_nodes = 2;

enum Keeps : int8_t { nothing, restarts, failovers };

// What nothing_was_lost() says of the present fence.
enum Standing : int8_t { may_lift, proved, lifted };

struct Row {
    int8_t until, token, fence;
    int8_t holder; // 1 + the member, by the model's own account
};

// What is durable, and replicated.
struct Registry {
    int8_t fleet, keeps, system, timeline, started, term, fence, standing, lost_from, former, shown, layouts;
    Row rows[most_nodes];
};

struct Server {
    int8_t up, system, timeline, started, offset;
    Registry db;
};

// A request, of one generator. Without a node it is a newcomer's.
struct Request {
    int8_t fleet, seen, layout, node, since, until, token, new_token, earliest, length;
    int8_t member; // by the model's own account
};

struct Reply {
    Why why;
    int8_t fleet, term, node, since, until;
};

struct RegistrySize {
    int nodes = 2, length = 3, bound = 1;
    int layouts = 1; // 2: node 0 of each, whose ids could be equal
};

// What a search must have met for its result to mean something.
constexpr uint32_t granted_newcomer = 1 << 0;
constexpr uint32_t extended_grant = 1 << 1;
constexpr uint32_t answered_repeat = 1 << 2;
constexpr uint32_t survived_fence = 1 << 3;
constexpr uint32_t newcomer_after_fence = 1 << 4;
constexpr uint32_t fence_by_place = 1 << 5;
constexpr uint32_t fence_by_proof = 1 << 6;
constexpr uint32_t fence_by_term = 1 << 7;
constexpr uint32_t late_answer_ignored = 1 << 8;
constexpr uint32_t smaller_term_ignored = 1 << 9;
constexpr uint32_t aborted_by_fence = 1 << 10;
constexpr uint32_t drew_after_fence = 1 << 11;
constexpr uint32_t refused(Why why) { return UINT32_C(1) << (16 + static_cast<int>(why)); }

class RegistryModel {
  public:
    RegistryModel(const Rules &rules, const RegistrySize &size) : rules_(rules), size_(size) {}

    // The term that a caller who has seen that one finds there.
    int term_at(const Server &server, int now, int seen) const {
        const Registry &db = server.db;
        if (db.system == server.system && db.timeline == server.timeline)
            return db.term;
        return std::max({rules_.term_above_row ? db.term + 1 : 1, rules_.term_above_seen ? seen + 1 : 1,
                         rules_.term_above_clock ? now : 1});
    }

    // What the first call of a server does; or the end of a grant that was shown and is not there (0: none). `keeps` is the
    // promise to judge by.
    void arrive(Server *server, int now, int seen, int keeps, int lost_until, uint32_t *events) const {
        Registry &db = server->db;
        const bool is_proof = lost_until > (rules_.counts_what_is_known ? newcomers_from(db.lost_from) : 0);
        const bool proves_before = lost_until > newcomers_from(std::min(db.former, db.lost_from));
        const bool is_elsewhere = (db.system != server->system && rules_.fences_systems) ||
                                  (db.timeline != server->timeline && keeps < failovers &&
                                   (rules_.fences_systems || db.system == server->system)) ||
                                  (db.started != server->started && keeps < restarts && rules_.fences_starts);
        if (is_proof || is_elsewhere || !is_at(db, *server)) {
            db.term = static_cast<int8_t>(term_at(*server, now, seen));
            move_to(&db, *server);
        }
        if ((is_proof || is_elsewhere) && rules_.fences) {
            raise(&db, now, false, is_proof ? proved : may_lift);
            *events |= is_proof ? fence_by_proof : fence_by_place;
        } else if (proves_before && rules_.proves_fence_before)
            db.standing = proved;
    }

    // A registry that is shown a larger term than its own: another one has granted. It extends the fence for the value that is
    // shown last.
    void see_larger_term(Server *server, int now, int seen, uint32_t *events) const {
        Registry &db = server->db;
        if (!rules_.larger_term_fences || (seen < db.shown && !rules_.smaller_value_counts))
            return;
        if (seen == db.shown) {
            if (rules_.fence_lasts_while_shown)
                db.lost_from = std::max(db.lost_from, static_cast<int8_t>(now + 2 * size_.bound));
            return;
        }
        db.shown = static_cast<int8_t>(seen);
        raise(&db, now, false, proved);
        *events |= fence_by_term;
    }

    // fence(above)
    void fence(Server *server, int now, int above) const {
        Registry &db = server->db;
        db.term = static_cast<int8_t>(std::max({db.term + 1, above + 1, now}));
        move_to(&db, *server);
        db.shown = 0;
        raise(&db, now, rules_.statement_fences_by_clock, may_lift);
    }

    // nothing_was_lost(). False: it is refused.
    bool lift(Server *server, int now, uint32_t *events) const {
        Server after = *server;
        Registry &db = after.db;
        arrive(&after, now, 0, db.keeps, 0, events);
        if (db.standing == proved && rules_.proof_forbids_lift)
            return false;
        db.standing = lifted;
        db.lost_from = rules_.remembers_former ? std::min(db.former, db.lost_from) : int8_t{0};
        *server = after;
        return true;
    }

    // promise(keeps)
    void promise(Server *server, int now, int keeps, uint32_t *events) const {
        if (rules_.promise_compares)
            arrive(server, now, 0, std::min<int>(keeps, server->db.keeps), 0, events);
        server->db.keeps = static_cast<int8_t>(keeps);
    }

    // A registry made anew of a fleet that is known.
    Registry made_anew(const Server &server, int now, int fleet, int keeps) const {
        Registry db = {};
        db.fleet = static_cast<int8_t>(fleet);
        db.keeps = static_cast<int8_t>(keeps);
        db.term = static_cast<int8_t>(now);
        move_to(&db, server);
        if (rules_.fences && rules_.fences_anew)
            raise(&db, now, false, proved);
        return db;
    }

    // What a call reads first, and by which it judges.
    struct Begun {
        int8_t now, fence, lost_from;
    };

    // The first half of a call: false if it is refused.
    bool begin(Server *server, int now, const Request &request, Begun *begun, Reply *reply, uint32_t *events) const {
        Registry &db = server->db;
        *reply = {Why::other_fleet, db.fleet, db.term, -1, 0, 0};
        reply->term = static_cast<int8_t>(term_at(*server, now, request.seen));
        if (request.fleet != 0 && request.fleet != db.fleet && rules_.compares_fleet)
            return false;
        reply->why = Why::outdated;
        if (request.seen > reply->term && rules_.never_goes_back) {
            see_larger_term(server, now, request.seen, events);
            return false;
        }
        arrive(server, now, request.seen, db.keeps, rules_.fences_proofs ? lost_until(db, request) : 0, events);
        *begun = {static_cast<int8_t>(now), db.fence, db.lost_from};
        *reply = {Why::granted, db.fleet, db.term, -1, 0, 0};
        return true;
    }

    // The second half. `pick`: which of the free nodes a newcomer gets; *more: whether there are others. False: it aborts.
    bool finish(Server *server, const Begun &begun, const Request &request, int pick, bool *more, Reply *reply,
                uint32_t *events) const {
        Registry &db = server->db;
        const Registry before = db;
        *more = false;
        judge(&db, begun, request, pick, more, reply, events);
        if (begun.fence == db.fence || !rules_.reads_fence_again)
            return true;
        db = before;
        *events |= aborted_by_fence;
        return false;
    }

    int cap_of_shown(int now) const { return rules_.caps_shown ? now + 2 * size_.bound + size_.length : 99; }

  private:
    static bool is_at(const Registry &db, const Server &server) {
        return db.system == server.system && db.timeline == server.timeline && db.started == server.started;
    }

    static void move_to(Registry *db, const Server &server) {
        db->system = server.system;
        db->timeline = server.timeline;
        db->started = server.started;
    }

    void raise(Registry *db, int now, bool may_lower, Standing standing) const {
        const int lost_from = now + (rules_.has_two_bounds ? 2 : 1) * size_.bound;
        db->former = db->lost_from;
        db->lost_from = static_cast<int8_t>(may_lower ? lost_from : std::max<int>(db->lost_from, lost_from));
        db->fence++;
        db->standing = standing;
    }

    // The time from which newcomers draw after a fence.
    int newcomers_from(int lost_from) const { return lost_from > 0 ? lost_from + size_.length : 0; }

    static int lost_until(const Registry &db, const Request &request) {
        return request.node >= 0 && request.until > db.rows[request.node].until ? request.until : 0;
    }

    // Nodes of the request's layout.
    bool is_in_range(const Request &request, int node) const {
        return size_.layouts == 1 ? node < size_.nodes : node == request.layout;
    }

    // The row that has the fresh token already, otherwise that of the node that is shown; -1: neither.
    int row_of(const Registry &db, const Request &request) const {
        int found = -1;
        for (int node = 0; node < most_nodes; node++)
            if (is_in_range(request, node) && db.rows[node].token == request.new_token &&
                (found < 0 || node == request.node))
                found = node;
        return found < 0 ? request.node : found;
    }

    void judge(Registry *db, const Begun &begun, const Request &request, int pick, bool *more, Reply *reply,
               uint32_t *events) const {
        const int now = begun.now;
        if (rules_.compares_layouts && (db->layouts & ~(1 << request.layout)) != 0) {
            reply->why = Why::layout_differs;
            return;
        }
        db->layouts = static_cast<int8_t>(db->layouts | 1 << request.layout);
        const int cap = rules_.caps_beginning ? now + size_.bound : 99;
        const int begins = std::min<int>(request.earliest, cap);
        const int ends = begins + std::min<int>(request.length, size_.length);
        if (ends <= request.earliest) {
            reply->why = Why::ahead;
            return;
        }
        const int node = row_of(*db, request);
        if (node >= 0 && extend(db, begun, request, node, begins, ends, reply, events))
            return;
        if (request.node >= 0) {
            refuse_renewal(db->rows[request.node], request, node == request.node, reply);
            return;
        }
        if (rules_.holds_newcomers && begun.lost_from > 0 && begins < begun.lost_from + fence_length()) {
            reply->why = Why::fenced;
            return;
        }
        join(db, begun, request, pick, more, begins, ends, reply, events);
    }

    int fence_length() const { return rules_.has_full_length ? size_.length : 0; }

    bool extend(Registry *db, const Begun &begun, const Request &request, int node, int begins, int ends, Reply *reply,
                uint32_t *events) const {
        Row &row = db->rows[node];
        const bool is_shown = node == request.node;
        const int shown = is_shown ? std::min<int>(request.until, cap_of_shown(begun.now)) : 0;
        const bool has_old = is_shown && request.token != 0 && row.token == request.token;
        const bool is_repeat = row.token == request.new_token;
        const bool mine = has_old || is_repeat || !rules_.compares_token;
        const bool is_later = shown > row.until || !rules_.later_grant_counts;
        const bool outlasts = std::max<int>(row.until, shown) > begun.lost_from || !rules_.lasts_beyond;
        const bool is_of_fence = row.fence == begun.fence || !rules_.judges_row_by_fence;
        if (!(is_of_fence ? mine : outlasts && (mine || is_later)))
            return false;
        *events |= extended_grant | (is_repeat && !has_old ? answered_repeat : 0) | (is_of_fence ? 0 : survived_fence);
        reply->since = static_cast<int8_t>(is_shown ? request.since : begins);
        reply->until = static_cast<int8_t>(std::max({ends, shown, static_cast<int>(row.until)}));
        reply->node = static_cast<int8_t>(node);
        row = {reply->until, request.new_token, begun.fence, static_cast<int8_t>(1 + request.member)};
        return true;
    }

    void refuse_renewal(const Row &row, const Request &request, bool is_shown, Reply *reply) const {
        const bool mine = row.token == request.token || row.token == request.new_token;
        const bool is_followed = is_shown && row.token != 0 && !mine && row.until >= request.until;
        reply->why = is_followed || !rules_.taken_means_followed ? Why::taken : Why::lost;
    }

    void join(Registry *db, const Begun &begun, const Request &request, int pick, bool *more, int begins, int ends,
              Reply *reply, uint32_t *events) const {
        reply->why = Why::none_free;
        int free = 0;
        for (int node = 0; node < most_nodes; node++) {
            Row &row = db->rows[node];
            if (!is_in_range(request, node) || (row.until > begins && rules_.until_grows))
                continue;
            if (free++ != pick) {
                *more = *more || free > pick;
                continue;
            }
            row = {static_cast<int8_t>(ends), request.new_token, begun.fence, static_cast<int8_t>(1 + request.member)};
            reply->why = Why::granted;
            reply->node = static_cast<int8_t>(node);
            reply->since = static_cast<int8_t>(begins);
            reply->until = row.until;
            *events |= granted_newcomer | (db->lost_from > 0 ? newcomer_after_fence : 0);
        }
    }

    const Rules rules_;
    const RegistrySize size_;
};

} // namespace uidgen::test
