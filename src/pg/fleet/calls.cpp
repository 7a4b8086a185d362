#include "calls.hpp"

#include <initializer_list>

#include "base/identity.hpp"
#include "base/settings.hpp"
#include "base/time_source.hpp"

namespace uidgen::pg {
namespace {

bool is_one_of(const char *refusal, std::initializer_list<const char *> names) {
    for (const char *name : names)
        if (refusal != nullptr && strcmp(refusal, name) == 0)
            return true;
    return false;
}

bool call(const FleetRequest &request, FleetAnswer *answer, GrantError *error) {
    if (!connection_call(request, answer, error))
        return false;
    if (is_one_of(answer->refusal,
                  {"other_fleet", "stale_registry", "rival", "unclaimed", "handing_over", "no_standby"}))
        connection_close(); // another server of the registry may answer
    return true;
}

// ---------------------------------------------------------------------------------------------------------
// For a generator.
// ---------------------------------------------------------------------------------------------------------

// A generator that joins names the node that it drew with so far.
FleetRequest request_for(const Member &member, const core::Request &generator, const GrantedLast &other) {
    const GrantRequest &asked = member.request;
    const bool joins = !generator.holds && asked.former_node >= 0;
    FleetRequest request = new_request(generator.seen);
    request.generator = generator;
    if (!generator.holds)
        request.generator.held.node = no_node;
    request.generator.clock_us = Max(generator.clock_us, 0);
    request.other = other;
    request.database = asked.database;
    request.name = asked.generator;
    request.preset = asked.preset;
    request.layout = asked.layout;
    request.policy = worker_policy_names[static_cast<uint32_t>(asked.policy)];
    request.worker_number = asked.policy == WorkerPolicy::fixed ? asked.worker_number : no_worker;
    request.datacenter_id = asked.datacenter_id;
    request.former_node = joins ? asked.former_node : no_node;
    request.former_until = joins ? asked.former_until : -1;
    return request;
}

// What the member does is the same for all refusals that are not named here.
core::Refusal refusal_of(const char *name) {
    if (name == nullptr)
        return core::Refusal::none;
    if (is_one_of(name, {"superseded"}))
        return core::Refusal::superseded;
    if (is_one_of(name, {"ahead"}))
        return core::Refusal::ahead;
    return is_one_of(name, {"unclaimed"}) ? core::Refusal::unclaimed : core::Refusal::fenced;
}

// What no registry answers. A grant outside the layout would give ids that other generators have, too. One that ends
// below the ticks that were asked for is none.
bool is_valid(const FleetAnswer &answer, const core::Layout &layout, int64_t lowest) {
    const core::Grant &grant = answer.given.grant;
    if (fault_is(Fault::any_answer) || answer.refusal != nullptr)
        return true;
    return grant.node >= 0 && grant.node <= core::largest(core::drawn_node_bits(layout)) && grant.from >= 0 &&
           grant.from < grant.until && lowest < grant.until && grant.until <= core::largest(layout.time_bits) + 1 &&
           static_cast<int64_t>(grant.membership) > 0;
}

// ---------------------------------------------------------------------------------------------------------
// For a segment.
// ---------------------------------------------------------------------------------------------------------

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

// Whether the values are those that were asked for. Others could be values that this server had before.
bool is_what_was_asked(const BlockAsk &ask, const FleetAnswer &a) {
    int64_t length = 0;
    int64_t last = 0;
    if (fault_is(Fault::any_answer))
        return true;
    if (a.increment == 0 || (ask.fleet != 0 && a.given.fleet != ask.fleet) ||
        (ask.increment != 0 && a.increment != ask.increment))
        return false;
    if (ask.count == 0)
        return a.count == 0;
    return a.count > 0 && a.count <= ask.count && !__builtin_mul_overflow(a.count - 1, a.increment, &length) &&
           !__builtin_add_overflow(a.first, length, &last);
}

} // namespace

FleetRequest new_request(const core::FleetSeen &seen) {
    static char host[256];
    FleetRequest request = {};
    (void)read_host_name(host, sizeof(host));
    clear_fields(request_fields, &request);
    request.protocol = fleet_protocol;
    request.generator.seen = seen;
    request.host = host;
    request.port = psprintf("%d", PostPortNumber);
    request.version = UIDGEN_VERSION;
    return request;
}

bool member_call(const Member &member, const core::Request &request, const GrantedLast &other, FleetAnswer *answer,
                 GrantError *error) {
    const FleetRequest message = request_for(member, request, other);
    if (!call(message, answer, error))
        return false;
    answer->given.why = refusal_of(answer->refusal);
    answer->given.incarnation = request.incarnation;
    if (is_valid(*answer, member.request.layout, request.lowest))
        return true;
    set_not_a_registry(error);
    return false;
}

// An error that has closed the connection passes by itself, unless the segment must be attached again.
BlockAnswer block_call(const BlockAsk &ask) {
    FleetAnswer a;
    GrantError error;
    if (!call(request_for(ask), &a, &error) || a.refusal != nullptr) {
        const bool passes = !connection_is_open() && !is_one_of(error.refusal, {"other_fleet"});
        return {passes ? BlockState::asked : BlockState::refused, {}, error};
    }
    if (!is_what_was_asked(ask, a))
        set_not_a_registry(&error);
    else if (ask.count > 0 && !core::is_beyond({ask.shown, true}, a.increment, a.first))
        set_error(&error, "the registry gave values that this database had before",
                  "Check that uidgen.registry names the current primary server of the registry.");
    else
        return {BlockState::ready,
                {a.given.fleet, a.first, static_cast<uint64_t>(a.count), a.increment, a.is_synchronous},
                {}};
    return {BlockState::refused, {}, error};
}

} // namespace uidgen::pg
