// What a member calls on a registry (uidgen_registry.sql), and how it reads the answers.
#pragma once

#include "host.hpp"
#include "memory/memberships.hpp"
#include "core/answer_text.hpp"

namespace uidgen::pg {

constexpr int most_requests = 100; // of a call

// The statement of a hello, which is not sent here; its texts last as long as the memory context. It also sets what the
// calls of the connection need. `ends_calls`: it ends what this server has given up there. Reads the server's salt in
// shared memory.
Statement make_hello(const core::FleetSeen &seen, bool ends_calls);
// Parses the rows of a hello's answer. False: they are none.
bool read_hello(const PGresult *rows, core::Hello *hello);

// The statement of a call for all of them, which are prepared (see core::prepare_call()), by them,
// uidgen.registry_lease and this server's host and port. It is not sent here.
Statement make_grant_call(const core::FleetSeen &seen, const Member *const *members, int count);

// Parses the answer to the request of that index; false: there is none that can be read. Texts last as long as the
// rows.
bool read_grant_answer(const PGresult *rows, int index, int64_t fleet, core::GrantAnswer *answer);

// The statement of a call for one block, by the copy of what is asked. It is not sent here.
Statement make_block_call(const core::FleetSeen &seen, const AskedBlock &asked);

// Parses the answer to a call for a block. False: there is none that can be read.
bool read_block_reply(const PGresult *rows, int64_t fleet, core::BlockReply *reply);

// The nodes that a generator may have.
core::NodeRange node_range_of(const GrantRequest &request);

// A refusal of the registry as an error of now, which is returned and not raised.
GrantError refusal_error(core::Why why, const core::AnswerNotes &notes);

} // namespace uidgen::pg
