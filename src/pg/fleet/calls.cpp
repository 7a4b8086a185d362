#include "calls.hpp"

#include "base/identity.hpp"
#include "base/settings.hpp"
#include "base/time_source.hpp"

namespace uidgen::pg {
namespace {

// ---------------------------------------------------------------------------------------------------------
// For a generator.
// ---------------------------------------------------------------------------------------------------------

// A generator that joins names the node that it drew with so far.
FleetRequest request_for(const Member &member, const core::Request &generator) {
    const GrantRequest &asked = member.request;
    const bool joins = !generator.holds && asked.former_node >= 0;
    FleetRequest request = new_request(generator.seen);
    request.generator = generator;
    request.generator.seen = core::with_proof(generator.seen);
    if (!generator.holds)
        request.generator.held.node = no_node;
    request.generator.clock_us = Max(generator.clock_us, 0);
    request.database = asked.database;
    request.name = asked.generator;
    request.preset = asked.preset;
    request.layout = asked.layout;
    request.own_pool = asked.own_pool;
    request.policy = worker_policy_names[static_cast<uint32_t>(asked.policy)];
    request.worker_number = asked.policy == WorkerPolicy::fixed ? asked.worker_number : no_worker;
    request.datacenter_id = asked.datacenter_id;
    request.former_node = joins ? asked.former_node : no_node;
    request.former_until = joins ? asked.former_until : -1;
    return request;
}

// What no registry answers. A grant outside the layout would give ids that other generators have, too. One that ends
// below the ticks that were asked for is none.
bool is_valid(const core::Grant &grant, const core::Layout &layout, int64_t lowest) {
    if (fault_is(Fault::any_answer))
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
    const core::FleetSeen seen = fleet_known();
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

// Of an earlier term than this server has seen: a member never goes back (core/membership.hpp, 4).
bool is_past(const core::FleetSeen &seen, const FleetAnswer &answer) {
    return core::is_past(seen, answer.given.fleet, answer.given.grant.term);
}

void take_grant(Ask *ask, const FleetAnswer &answer) {
    ask->given = answer.given;
    ask->given.why = answer.refusal;
    ask->given.incarnation = ask->member.membership.incarnation;
    if (ask->given.why == core::Refusal::none && !is_valid(answer.given.grant, ask->member.request.layout, ask->lowest))
        set_not_a_registry(&ask->error);
}

void take_block(Ask *ask, const FleetAnswer &a) {
    const BlockAsk &asked = ask->block.ask;
    ask->given = a.given;
    ask->block_given = {a.given.fleet, 0, a.first, static_cast<uint64_t>(a.count), a.increment, a.is_synchronous};
    if (ask->error.at_us != 0)
        return;
    if (!is_what_was_asked(asked, a))
        set_not_a_registry(&ask->error);
    else if (asked.count > 0 && !core::is_beyond({asked.shown, true}, a.increment, a.first))
        set_error(&ask->error, "the registry gave values that this database had before",
                  "Check that uidgen.registry names the current primary server of the registry.");
}

} // namespace

core::FleetSeen fleet_known() {
    const core::FleetSeen seen = fleet_seen();
    return fault_is(Fault::go_back) ? core::FleetSeen{seen.fleet, {}, 0, 0} : seen;
}

FleetRequest new_request(const core::FleetSeen &seen) {
    static char host[256];
    FleetRequest request = {};
    (void)read_host_name(host, sizeof(host));
    clear_fields(request_fields, &request);
    request.protocol = fleet_protocol;
    request.generator.seen = core::with_proof(seen);
    request.host = host;
    request.port = psprintf("%d", PostPortNumber);
    request.version = UIDGEN_VERSION;
    return request;
}

int call_registry(Ask *asks, int count, const GrantedLast &other, int64_t *clock_us, GrantError *error) {
    auto *requests = static_cast<FleetRequest *>(palloc(sizeof(FleetRequest) * static_cast<Size>(count)));
    const core::FleetSeen seen = fleet_known();
    const int64_t sent_us = wall_clock_us();
    for (int i = 0; i < count; i++) {
        Ask *ask = &asks[i];
        const GrantRequest &of_member = ask->member.request;
        if (!ask->is_block)
            ask->lowest = Max(core::tick_at(of_member.layout, sent_us), ask->member.wanted);
        requests[i] = ask->is_block ? request_for(ask->block.ask)
                                    : request_for(ask->member, core::request_of(ask->member.membership, seen, sent_us,
                                                                                ask->lowest, of_member.length));
        requests[i].other = other;
    }
    const Answers answers = connection_call({requests, count}, error);
    if (answers.count > 0 && is_past(seen, answers.answers[0])) {
        connection_close();
        set_outdated(error);
        return 0;
    }
    bool may_be_answered = false;
    for (int i = 0; i < answers.count; i++) {
        const FleetAnswer &answer = answers.answers[fault_is(Fault::mix_answers) ? answers.count - 1 - i : i];
        asks[i].error = refusal_error(answer);
        may_be_answered = may_be_answered || core::may_be_answered_elsewhere(answer.refusal);
        if (asks[i].is_block)
            take_block(&asks[i], answer);
        else
            take_grant(&asks[i], answer);
        *clock_us = answer.clock_us;
    }
    if (may_be_answered)
        connection_close();
    return answers.count;
}

} // namespace uidgen::pg
