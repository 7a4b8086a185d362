// The call of the registry's procedure uid_fleet_call(), as the registrar sends it and reads its answer.
#pragma once

#include "memory/memberships.hpp"

namespace uidgen::pg {

constexpr int fleet_protocol = 1;

struct FleetReply {
    core::Answer answer;
    GrantError error;          // of a refusal
    int64_t retry_after_us;    // of a refusal; 0: it does not say
    int64_t registry_clock_us; // when it answered
};

// Asks for a member, over the open connection. False: there is no answer, and reply->error says why.
bool member_call(const Member &member, const core::Ask &ask, FleetReply *reply);

// Of a refusal, or of an answer that is of no use to a server that has seen that much and needs ticks from `lowest` on;
// at_us 0: of none of them.
GrantError reply_error(const FleetReply &reply, const core::FleetSeen &seen, int64_t lowest);

} // namespace uidgen::pg
