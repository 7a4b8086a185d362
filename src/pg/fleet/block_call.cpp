#include "block_call.hpp"

#include "connection.hpp"
#include "memory/memberships.hpp"
#include "base/settings.hpp"
#include "base/time_source.hpp"

namespace uidgen::pg {
namespace {

constexpr int64_t longest_idle_us = 60 * us_per_second;

int64_t last_call_us = 0; // on the monotonic clock; 0: none yet
GrantError last_error = {};

// A segment may be of another fleet than the one that the server has seen.
FleetRequest request_for(const BlockAsk &ask) {
    const core::FleetSeen seen = fleet_seen();
    const bool is_of_fleet = ask.fleet == 0 || seen.fleet == ask.fleet;
    FleetRequest request = new_request(is_of_fleet ? seen : core::FleetSeen{ask.fleet, {}, 0, 0});
    request.database = ask.database;
    request.segment = ask.registry_name;
    request.count = ask.count;
    request.shown = ask.shown;
    request.increment = ask.increment;
    return request;
}

BlockAnswer refusal_of(const FleetAnswer &a) {
    const auto is = [&a](const char *name) { return strcmp(a.refusal, name) == 0; };
    const bool passes =
        is("handing_over") || is("unclaimed") || is("no_standby") || is("stale_registry") || is("rival");
    BlockAnswer answer = {passes ? BlockState::asked : BlockState::refused, {}, BlockRefusal::other, {}};
    if (is("used_up"))
        answer.why = BlockRefusal::used_up;
    else if (is("other_fleet") || is("increment_differs"))
        answer.why = BlockRefusal::changed;
    set_refusal(&answer.error, a);
    return answer;
}

// Whether the values are those that were asked for. Others could be values that this server had before.
bool is_what_was_asked(const BlockAsk &ask, const FleetAnswer &a) {
    int64_t length = 0;
    int64_t computed = 0;
    if (fault_is(Fault::any_answer))
        return true;
    if (a.increment == 0 || (ask.fleet != 0 && a.fleet != ask.fleet) ||
        (ask.increment != 0 && a.increment != ask.increment))
        return false;
    if (ask.count == 0)
        return a.count == 0;
    return a.count > 0 && a.count <= ask.count && !__builtin_mul_overflow(a.count - 1, a.increment, &length) &&
           !__builtin_add_overflow(a.first, length, &computed) && computed == a.last;
}

// An error of the connection passes by itself.
BlockAnswer call(const BlockAsk &ask) {
    FleetAnswer a;
    BlockAnswer answer = {BlockState::refused, {}, BlockRefusal::other, {}};
    if (!connection_call(request_for(ask), &a, &answer.error)) {
        answer.state = connection_is_open() ? BlockState::refused : BlockState::asked;
        return answer;
    }
    if (another_may_answer(a.refusal))
        connection_close();
    if (a.refusal != nullptr)
        return refusal_of(a);
    if (!is_what_was_asked(ask, a))
        set_not_a_registry(&answer.error);
    else if (ask.count > 0 && !core::is_beyond({ask.shown, true}, a.increment, a.first))
        set_error(&answer.error, "the registry gave values that this database had before",
                  "Check that uidgen.registry names the current primary server of the registry.");
    else
        answer = {BlockState::ready,
                  {a.fleet, a.first, static_cast<uint64_t>(a.count), a.increment, a.is_synchronous},
                  BlockRefusal::other,
                  {}};
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
