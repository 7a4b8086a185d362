#include "message.hpp"

namespace uidgen::pg {
namespace {

#define ASK(member, name, none) UIDGEN_FIELD(FleetRequest, member, name, none)
constexpr Field of_request[] = {ASK(protocol, "protocol", required),
                                ASK(generator.seen.fleet, "fleet", 0),
                                ASK(generator.seen.term.number, "term", 0),
                                ASK(generator.seen.term.nonce, "term_nonce", 0),
                                ASK(generator.seen.serial, "serial", 0),
                                ASK(generator.seen.seal, "seal", 0),
                                ASK(other.granted_us, "other_granted_us", 0),
                                ASK(other.term.number, "other_term", 0),
                                ASK(other.term.nonce, "other_term_nonce", 0),
                                ASK(other.seal, "other_seal", 0),
                                ASK(host, "host", required),
                                ASK(port, "port", required),
                                ASK(database, "database", 0),
                                ASK(version, "version", required),
                                ASK(generator.incarnation, "incarnation", 0),
                                ASK(generator.former, "former", 0),
                                ASK(generator.held.node, "held_node", no_node),
                                ASK(generator.held.from, "held_from", -1),
                                ASK(generator.held.until, "held_until", -1),
                                ASK(generator.held.membership, "held_membership", 0),
                                ASK(generator.held.term.number, "held_term", 0),
                                ASK(generator.held.term.nonce, "held_term_nonce", 0),
                                ASK(generator.held.serial, "held_serial", 0),
                                ASK(generator.held.seal, "held_seal", 0),
                                ASK(generator.clock_us, "clock_us", -1),
                                ASK(generator.lowest, "lowest", -1),
                                ASK(generator.length, "length", 0),
                                ASK(name, "generator", 0),
                                ASK(preset, "preset", 0),
                                ASK(layout.epoch_us, "layout_epoch_us", -1),
                                ASK(layout.tick_us, "tick_us", 0),
                                ASK(layout.time_bits, "time_bits", -1),
                                ASK(layout.datacenter_bits, "datacenter_bits", -1),
                                ASK(layout.worker_bits, "worker_bits", -1),
                                ASK(layout.sequence_bits, "sequence_bits", -1),
                                ASK(layout.sequence_first, "sequence_first", 0),
                                ASK(layout.backup, "backup_worker", 0),
                                ASK(own_pool, "own_pool", 0),
                                ASK(policy, "policy", 0),
                                ASK(worker_number, "worker_number", no_worker),
                                ASK(datacenter_id, "datacenter_id", any_datacenter),
                                ASK(former_node, "former_node", no_node),
                                ASK(former_until, "former_until", -1),
                                ASK(segment, "segment", 0),
                                ASK(count, "count", 0),
                                ASK(shown, "shown", 0),
                                ASK(increment, "increment", 0)};

#define ANSWER(member, name, none) UIDGEN_FIELD(FleetAnswer, member, name, none)
constexpr Field of_answer[] = {ANSWER(given.fleet, "fleet", required),
                               ANSWER(given.grant.term.number, "term", required),
                               ANSWER(given.grant.term.nonce, "term_nonce", required),
                               ANSWER(given.grant.serial, "serial", required),
                               ANSWER(given.seal, "seal", required),
                               ANSWER(given.why, "refusal", 0),
                               ANSWER(message, "message", 0),
                               ANSWER(hint, "hint", 0),
                               ANSWER(clock_us, "clock_us", required),
                               ANSWER(server, "server", required),
                               ANSWER(is_open, "is_open", required),
                               ANSWER(awaits_member, "awaits_member", required),
                               ANSWER(longest_us, "longest_us", required),
                               ANSWER(granted_last.granted_us, "granted_last_us", 0),
                               ANSWER(granted_last.seal, "granted_last_seal", 0),
                               ANSWER(given.grant.node, "node", no_node),
                               ANSWER(given.grant.from, "granted_from", -1),
                               ANSWER(given.grant.until, "granted_until", -1),
                               ANSWER(given.grant.membership, "membership", 0),
                               ANSWER(given.grant.seal, "held_seal", 0),
                               ANSWER(first, "first", no_value),
                               ANSWER(count, "count", no_block),
                               ANSWER(increment, "increment", 0),
                               ANSWER(is_synchronous, "is_synchronous", 0)};

} // namespace

const Fields request_fields = fields_in(of_request);
const Fields answer_fields = fields_in(of_answer);

} // namespace uidgen::pg
