// What a member asks, checked; the proof of what it shows; and the answer to one that gets nothing.
//
// A role that may call may pass anything, so each field is checked. What it shows has a seal, a keyed hash
// (HMAC-SHA-256, cut to 63 bits), by which the registry knows again what it has given (core/grant.hpp, 8). The key is
// in a table, so that a server that takes over, or a restored dump, accepts the seals of the former one.
//
// Any role that draws at the member reads a refusal (core/refusal.hpp). So it names no other member, and no login: the
// view uid_fleet and the log do. Nothing here writes to a table.
#pragma once

#include "registry.hpp"
#include "session/session.hpp"

namespace uidgen::pg {

// One request of a call, and its answer.
struct Call {
    FleetRequest request;
    WorkerPolicy policy;
    const char *login;         // the caller's role: nodes belong to it, whatever the request says. null: reserved
    Oid sequence;              // of the segment; InvalidOid: there is none of that name
    const SessionEntry *entry; // of the sequence; null: the caller's role may not use it
    int32_t pool;
    FleetAnswer answer;
};

inline bool is_hello(const FleetRequest &r) { return r.generator.incarnation == 0 && r.segment == nullptr; }
inline bool is_refused(const Call &call) { return call.answer.given.why != core::Refusal::none; }

struct Calls {
    Call *calls;
    int count;
};

// Takes the requests out of a message, and opens their segments. A request with fields that are not valid is refused
// already. Error if the message is none. Before the lock.
Calls take_calls(const Registry &registry, const bytea *message);

// The answers to the first requests, as a message. Writes what they come to into the registry's tables, closes or
// fences it if that is what they show, and logs it. Under the registry's lock, in the transaction of a procedure
// (registry.hpp).
const bytea *answer_calls(Registry *registry, const Calls &calls);

// Seals of the registry's answers: of a number of a term, which is a serial that it has answered with ("stamp") or
// the time when it granted last ("last"); and of a grant. Error if the registry has no key.
int64_t seal_of_number(const FleetState &state, const char *kind, const core::Term &term, int64_t number);
int64_t seal_of_grant(const FleetState &state, const core::Layout &layout, const core::Grant &grant);

// Whether the registry has given the stamp that the server of the member shows.
bool is_stamp_proven(const FleetState &state, const FleetRequest &r);

// Takes out of the request what a registry has given whose key is lost, and so cannot be proved: a grant of it counts
// while the fence lasts that this one began with, and the rest is forgotten. False: it also shows what a registry of
// this fleet would have a proof of.
bool keep_what_is_proven(const FleetState &state, Call *call);

// Puts the refusal into the answer. Where message or hint is null, they are those of the refusal's row. Needs no lock.
void refuse(Call *call, core::Refusal why, const char *message = nullptr, const char *hint = nullptr);

// The same with the words for a reason that a judgement has given. False: it is `none`, and nothing is refused.
bool refuse_if_judged(const Registry &registry, Call *call, core::Refusal why);

// Why the registry grants nothing to anyone; none: it may.
core::Refusal reason_for_all(const Registry &registry);

} // namespace uidgen::pg
