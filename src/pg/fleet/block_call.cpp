#include "block_call.hpp"

#include "registry_call.hpp"
#include "memory/memberships.hpp"
#include "base/faults.hpp"
#include "base/time_source.hpp"

namespace uidgen::pg {
namespace {

constexpr int block_protocol = 1;
constexpr int64_t longest_idle_us = 60 * us_per_second;

int64_t last_call_us = 0; // on the monotonic clock; 0: none yet
GrantError last_error = {};

void put_ask(CallParameters *p, const BlockAsk &ask) {
    const core::FleetSeen seen = fleet_seen();
    put(p, block_protocol);
    put(p, ask.fleet);
    const bool is_of_fleet = ask.fleet != 0 && seen.fleet == ask.fleet;
    put(p, is_of_fleet ? seen.term : INT64_C(0));
    put(p, is_of_fleet ? seen.serial : INT64_C(0));
    put(p, is_of_fleet ? seen.seal : INT64_C(0));
    put(p, static_cast<const char *>(ask.registry_name));
    put(p, ask.count);
    put(p, ask.shown);
    put(p, ask.increment);
    put_address(p);
    put_name(p, ask.database);
    put(p, UIDGEN_VERSION);
}

BlockAnswer read_refusal(const PGresult *result, const char *refusal) {
    const bool changed = strcmp(refusal, "other_fleet") == 0 || strcmp(refusal, "increment_differs") == 0;
    const bool used_up = strcmp(refusal, "used_up") == 0;
    const bool passes = strcmp(refusal, "handing_over") == 0;
    BlockAnswer answer = {passes ? BlockState::asked : BlockState::refused, {}, BlockRefusal::other, {}};
    if (used_up || changed)
        answer.why = used_up ? BlockRefusal::used_up : BlockRefusal::changed;
    set_refusal(&answer.error, result, refusal);
    return answer;
}

// Whether the values are those that were asked for. Others could be values that this server had before.
bool is_what_was_asked(const BlockAsk &ask, const FleetBlock &block, int64_t last) {
    int64_t length = 0;
    int64_t computed = 0;
    if (fault_is(Fault::any_answer))
        return true;
    if (block.increment == 0 || static_cast<int64_t>(block.fleet) <= 0 ||
        (ask.fleet != 0 && block.fleet != ask.fleet) || (ask.increment != 0 && block.increment != ask.increment))
        return false;
    if (ask.count == 0)
        return block.count == 0;
    return block.count > 0 && block.count <= static_cast<uint64_t>(ask.count) &&
           !__builtin_mul_overflow(static_cast<int64_t>(block.count - 1), block.increment, &length) &&
           !__builtin_add_overflow(block.first, length, &computed) && computed == last;
}

BlockAnswer read_answer(const PGresult *result, const BlockAsk &ask) {
    int64_t fleet = 0;
    int64_t first = 0;
    int64_t last = 0;
    int64_t count = 0;
    int64_t increment = 0;
    BlockAnswer refused = {BlockState::refused, {}, BlockRefusal::other, {}};
    set_incomplete(&refused.error);
    if (PQntuples(result) != 1)
        return refused;
    const char *refusal = answer_text(result, "refusal");
    if (refusal != nullptr)
        return read_refusal(result, refusal);
    if (!answer_number(result, "fleet", &fleet) || !answer_number(result, "increment", &increment) ||
        !answer_number(result, "count", &count) ||
        (count > 0 && (!answer_number(result, "first", &first) || !answer_number(result, "last", &last))))
        return refused;
    const FleetBlock block = {static_cast<uint64_t>(fleet), first, static_cast<uint64_t>(count), increment};
    if (!is_what_was_asked(ask, block, last)) {
        set_not_a_registry(&refused.error);
        return refused;
    }
    if (ask.count > 0 && !core::is_beyond({ask.shown, true}, increment, first)) {
        set_error(&refused.error, "the registry gave values that this database had before",
                  "Check that uidgen.registry names the current primary server of the registry.");
        return refused;
    }
    return {BlockState::ready, block, BlockRefusal::other, {}};
}

// An error of the connection passes by itself.
BlockAnswer call(const BlockAsk &ask) {
    CallParameters p = {};
    GrantError error = {};
    put_ask(&p, ask);
    PGresult *result = call_registry("uid_fleet_block", p, &error);
    if (result == nullptr)
        return {connection_is_open() ? BlockState::refused : BlockState::asked, {}, BlockRefusal::other, error};
    const BlockAnswer answer = read_answer(result, ask);
    PQclear(result);
    return answer;
}

} // namespace

bool block_call_next(int64_t *next_us) {
    AskedBlock asked;
    if (!blocks_next_asked(&asked, next_us))
        return false;
    const BlockAnswer answer = call(asked.ask);
    last_call_us = monotonic_us();
    last_error = answer.error;
    blocks_answer(asked, answer);
    return true;
}

bool block_was_called_lately() { return last_call_us != 0 && monotonic_us() - last_call_us < longest_idle_us; }

const GrantError &block_call_error() { return last_error; }

} // namespace uidgen::pg
