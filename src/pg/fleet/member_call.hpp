// The call of the registry for a generator, as the registrar sends it and reads its answer.
#pragma once

#include "connection.hpp"
#include "memory/memberships.hpp"

namespace uidgen::pg {

struct MemberReply {
    core::Answer answer;
    GrantError error;          // of a refusal
    int64_t retry_after_us;    // of a refusal; 0: it does not say
    int64_t registry_clock_us; // when it answered
    bool another_may_answer;   // another server of the registry
};

// Asks for a member, over the open connection. `other` is another registry that the server has found. False: there is
// no answer, and reply->error says why.
bool member_call(const Member &member, const core::Request &request, const GrantedLast &other, MemberReply *reply);

// Of a refusal, or of an answer that is of no use to a server that has seen that much and needs ticks from `lowest` on;
// at_us 0: of none of them.
GrantError reply_error(const MemberReply &reply, const core::FleetSeen &seen, int64_t lowest);

} // namespace uidgen::pg
