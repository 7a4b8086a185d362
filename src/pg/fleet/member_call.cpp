#include "member_call.hpp"

#include "base/settings.hpp"
#include "base/time_source.hpp"

namespace uidgen::pg {
namespace {

constexpr int64_t longest_retry_ms = INT64_C(24) * 3600 * 1000;

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
    const struct {
        const char *name;
        core::Refusal refusal;
    } all[] = {{"superseded", core::Refusal::superseded},
               {"ahead", core::Refusal::ahead},
               {"other_fleet", core::Refusal::other_fleet},
               {"unclaimed", core::Refusal::unclaimed}};
    if (name == nullptr)
        return core::Refusal::none;
    for (const auto &one : all)
        if (strcmp(name, one.name) == 0)
            return one.refusal;
    return core::Refusal::fenced;
}

// What no registry answers. A grant outside the layout would give ids that other generators have, too.
bool is_valid(const FleetAnswer &answer, const core::Layout &layout) {
    if (fault_is(Fault::any_answer) || answer.refusal != nullptr)
        return true;
    return answer.node >= 0 && answer.node <= core::largest(core::drawn_node_bits(layout)) && answer.from >= 0 &&
           answer.from < answer.until && answer.until <= core::largest(layout.time_bits) + 1 &&
           static_cast<int64_t>(answer.membership) > 0;
}

} // namespace

bool member_call(const Member &member, const core::Request &request, const GrantedLast &other, MemberReply *reply) {
    FleetAnswer a;
    *reply = {};
    if (!connection_call(request_for(member, request, other), &a, &reply->error))
        return false;
    if (!is_valid(a, member.request.layout)) {
        set_not_a_registry(&reply->error);
        return false;
    }
    reply->answer = {refusal_of(a.refusal),
                     request.incarnation,
                     a.fleet,
                     {a.node, a.from, a.until, a.membership, a.epoch, a.serial, a.held_seal},
                     a.seal};
    reply->registry_clock_us = a.clock_us;
    reply->another_may_answer = another_may_answer(a.refusal);
    if (a.refusal == nullptr)
        return true;
    set_refusal(&reply->error, a);
    reply->retry_after_us = Min(Max(a.retry_after_ms, 0), longest_retry_ms) * us_per_ms;
    return true;
}

GrantError reply_error(const MemberReply &reply, const core::FleetSeen &seen, int64_t lowest) {
    const core::Grant &grant = reply.answer.grant;
    GrantError error = reply.error;
    if (error.at_us != 0)
        return error;
    if (seen.fleet != 0 && reply.answer.fleet != seen.fleet)
        set_error(&error, "the registry belongs to another fleet",
                  "Correct uidgen.registry, or run SELECT uid_fleet_move() on this server to move it to that fleet.");
    else if (grant.epoch.number < seen.epoch.number || core::are_rivals(grant.epoch, seen.epoch))
        set_error(&error, "the registry has lost answers that this server has seen",
                  "Check that uidgen.registry names the current primary server of the registry.");
    else if (grant.until <= lowest)
        set_error(&error, "the registry granted only ticks that this server has passed",
                  "Compare the clocks of this server and of the registry. The view uid_registry_status shows by how "
                  "much they differ.");
    return error;
}

} // namespace uidgen::pg
