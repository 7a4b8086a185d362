#include "asks.hpp"

namespace uidgen::pg {
namespace {

// Between two asks for one member: after a grant; after a refusal, which is longer after each one.
constexpr int64_t granted_pause_us = 100 * us_per_ms;
constexpr int64_t refused_pause_us = us_per_second;
constexpr int64_t longest_refused_pause_us = 8 * us_per_second;

constexpr int64_t longest_nap_us = 10 * us_per_second; // the wall clock may be set meanwhile

// So long after a call for a block the registrar stays, so that the connection lasts from one block to the next.
constexpr int64_t idle_after_block_us = 60 * us_per_second;

int64_t last_block_us = 0; // the last call for a block, on the monotonic clock; 0: none yet

// ---------------------------------------------------------------------------------------------------------
// What is due.
// ---------------------------------------------------------------------------------------------------------

// Of those that came at one time the first one stays the first.
void add(Agenda *agenda, const Ask &ask) {
    Ask **end = agenda->asks + agenda->count;
    if (agenda->count == most_requests && end[-1]->since_us <= ask.since_us)
        return;
    if (agenda->count < most_requests) {
        *end = static_cast<Ask *>(palloc(sizeof(Ask)));
        agenda->count++;
    } else {
        end--;
    }
    Ask *added = *end;
    *added = ask;
    for (; end > agenda->asks && end[-1]->since_us > ask.since_us; end--)
        *end = end[-1];
    *end = added;
}

bool is_wanted(const Member &member) {
    const core::Membership &m = member.membership;
    return member.wanted > 0 && (!m.holds || member.wanted >= m.held.until);
}

// When `left` ticks of a grant are left at tick `now`: its half, or up to an eighth of it earlier, so that the servers
// of a fleet do not ask at one moment.
int64_t renewal(int64_t now, int64_t left) {
    const int64_t spread = static_cast<int64_t>(server_state->salt % static_cast<uint64_t>(left / 8 + 1));
    return now + left / 2 - spread;
}

// A renewal goes along with another ask up to an eighth of the grant before it is due, so that a server renews its
// grants in few calls. After a start the registry learns of the new incarnation at once, so that a copy that was made
// below the file system is found out early.
void add_member(Agenda *agenda, const Member &member) {
    const RegistrarNotes &notes = member.notes;
    const core::Layout &layout = member.request.layout;
    Ask ask = {};
    ask.member = member;
    if (is_wanted(member)) {
        agenda->wanted = true;
        ask.since_us = ask.along_us = Max(member.wanted_since_us, notes.not_before_us);
    } else {
        const int64_t renew_us = core::start_of(layout, notes.renew_at) - clock_offset_us();
        ask.since_us = Max(renew_us, notes.not_before_us);
        ask.along_us = Max(renew_us - length_of(member.request) / 8 * layout.tick_us, notes.not_before_us);
    }
    if (!member.membership.superseded && (is_wanted(member) || member.membership.holds))
        add(agenda, ask);
}

void add_block(Agenda *agenda, const AskedBlock &block) {
    Ask ask = {};
    ask.is_block = true;
    ask.block = block;
    ask.since_us = ask.along_us = block.not_before_us;
    agenda->any = true;
    agenda->wanted = true;
    add(agenda, ask);
}

// ---------------------------------------------------------------------------------------------------------
// What is asked.
// ---------------------------------------------------------------------------------------------------------

// A generator that joins names the node that it drew with so far.
FleetRequest request_for_member(const Member &member, const core::Request &generator) {
    const GrantRequest &asked = member.request;
    const bool joins = !generator.holds && asked.former_node >= 0;
    FleetRequest request = new_request(generator.seen);
    request.generator = core::with_proof(generator);
    if (!request.generator.holds)
        request.generator.held.node = no_node;
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

// A segment may be of another fleet than the one that the server has seen.
FleetRequest make_block_request(const AskedBlock &block, const core::FleetSeen &seen) {
    const BlockAsk &asked = block.ask;
    const bool is_of_fleet = asked.fleet == 0 || seen.fleet == asked.fleet;
    FleetRequest request = new_request(is_of_fleet ? seen : core::FleetSeen{asked.fleet, {}, 0, 0});
    request.database = asked.database;
    request.segment = block.registry_name;
    request.count = asked.count;
    request.shown = asked.shown;
    request.increment = asked.increment;
    last_block_us = monotonic_us();
    return request;
}

// Notes what the answer is judged by, or that a block is asked for now.
FleetRequest make_request(Ask *ask, const core::FleetSeen &seen, int64_t now_us) {
    const Member &member = ask->member;
    if (ask->is_block)
        return make_block_request(ask->block, seen);
    ask->lowest = Max(core::tick_at(member.request.layout, now_us), member.wanted);
    return request_for_member(
        member, core::request_of(member.membership, seen, Max(now_us, 0), ask->lowest, length_of(member.request)));
}

// ---------------------------------------------------------------------------------------------------------
// What is answered.
// ---------------------------------------------------------------------------------------------------------

// What no registry answers. A grant outside the layout would give ids that other generators have, too. One that ends
// below the ticks that were asked for is none.
bool is_valid(const core::Grant &grant, const core::Layout &layout, int64_t lowest) {
    if (fault_is("any_answer"))
        return true;
    return grant.node >= 0 && grant.node <= core::largest(core::drawn_node_bits(layout)) && grant.from >= 0 &&
           grant.from < grant.until && lowest < grant.until && grant.until <= core::largest(layout.time_bits) + 1 &&
           static_cast<int64_t>(grant.membership) > 0;
}

// Whether the values are those that were asked for. Others could be values that this server had before.
bool is_what_was_asked(const BlockAsk &ask, const FleetAnswer &a) {
    int64_t length = 0;
    int64_t last = 0;
    if (fault_is("any_answer"))
        return true;
    if (a.increment == 0 || (ask.fleet != 0 && a.given.fleet != ask.fleet) ||
        (ask.increment != 0 && a.increment != ask.increment))
        return false;
    if (ask.count == 0)
        return a.count == 0;
    return a.count > 0 && a.count <= ask.count && !__builtin_mul_overflow(a.count - 1, a.increment, &length) &&
           !__builtin_add_overflow(a.first, length, &last);
}

GrantError error_of(const Ask &ask, const FleetAnswer &a) {
    const BlockAsk &asked = ask.block.ask;
    if (a.given.why != core::Refusal::none)
        return refusal_error(a);
    if (ask.is_block ? !is_what_was_asked(asked, a) : !is_valid(a.given.grant, ask.member.request.layout, ask.lowest))
        return not_a_registry();
    if (ask.is_block && asked.count > 0 && !core::lies_beyond({asked.shown, true}, a.increment, a.first))
        return make_error("the registry gave values that this database had before",
                          "Check that uidgen.registry names the current primary server of the registry.");
    return {};
}

void take_answer(Ask *ask, const FleetAnswer &a) {
    ask->error = error_of(*ask, a);
    ask->given = a.given;
    ask->given.incarnation = ask->member.membership.incarnation;
    ask->block.answer.block = {a.given.fleet,   0, a.first, static_cast<uint64_t>(a.count), a.increment,
                               a.is_synchronous};
}

} // namespace

Agenda look_around() {
    Agenda agenda = {};
    if (settings::registry[0] == '\0')
        return agenda;
    const int64_t now_us = wall_clock_us();
    agenda.any = last_block_us != 0 && monotonic_us() - last_block_us < idle_after_block_us;
    for_each_asked_block([&agenda](const AskedBlock &block) { add_block(&agenda, block); });
    for_each_member([&agenda, now_us](const Member &member) {
        if (!is_in_use(member, now_us))
            return;
        agenda.any = true;
        add_member(&agenda, member);
    });
    return agenda;
}

int64_t next_due_us(const Agenda &agenda) {
    return agenda.count > 0 ? Min(agenda.asks[0]->since_us - monotonic_us(), longest_nap_us) : longest_nap_us;
}

int take_due(Agenda *agenda, int most) {
    const int64_t now_us = monotonic_us();
    int count = 0;
    if (next_due_us(*agenda) > 0)
        return 0;
    for (int i = 0; i < agenda->count && count < most; i++)
        if (agenda->asks[i]->along_us <= now_us)
            agenda->asks[count++] = agenda->asks[i];
    return count;
}

void note_refused(Member *member) {
    RegistrarNotes *notes = &member->notes;
    notes->pause_us = Min(Max(2 * notes->pause_us, refused_pause_us), longest_refused_pause_us);
    notes->not_before_us = monotonic_us() + notes->pause_us;
}

void note_granted(Ask *ask) {
    Member *member = &ask->member;
    const int64_t left = member->membership.held.until - ask->lowest;
    member->notes = {renewal(ask->lowest, left), monotonic_us() + granted_pause_us, 0};
    member->error = {};
    member->renewals++;
}

void ask_for_lasting_grant() {
    const int64_t now_us = wall_clock_us();
    Member latest = {};
    int64_t latest_us = now_us;
    for_each_member([&](const Member &member) {
        const core::Membership &m = member.membership;
        const int64_t until_us = m.holds ? core::start_of(member.request.layout, m.held.until) : 0;
        if (!is_in_use(member, now_us) || m.superseded || until_us <= latest_us)
            return;
        latest_us = until_us;
        latest = member;
    });
    if (latest_us == now_us)
        return;
    latest.notes.renew_at = 0;
    membership_publish(latest);
}

void ask_everything_again() {
    for_each_member([](Member member) {
        member.notes = {};
        membership_publish(member);
    });
}

core::FleetSeen fleet_known() {
    const core::FleetSeen seen = fleet_seen();
    return fault_is("go_back") ? core::FleetSeen{seen.fleet, {}, 0, 0} : seen;
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

int call_registry(Ask *const *asks, int count, const GrantedLast &other, int64_t *clock_us, GrantError *error) {
    auto *requests = static_cast<FleetRequest *>(palloc(sizeof(FleetRequest) * static_cast<Size>(count)));
    const core::FleetSeen seen = fleet_known();
    const int64_t sent_us = wall_clock_us();
    for (int i = 0; i < count; i++) {
        requests[i] = make_request(asks[i], seen, sent_us);
        requests[i].other = other;
    }
    const Answers answers = connection_call({requests, count}, error);
    const FleetAnswer *first = answers.answers;
    // A member never goes back (core/membership.hpp, 4).
    if (answers.count > 0 && core::is_past(seen, first->given.fleet, first->given.grant.term)) {
        connection_close();
        *error = pg::error_of(core::Refusal::outdated);
        return 0;
    }
    bool may_be_answered = false;
    for (int i = 0; i < answers.count; i++) {
        const FleetAnswer &answer = first[fault_is("mix_answers") ? answers.count - 1 - i : i];
        take_answer(asks[i], answer);
        may_be_answered = may_be_answered || core::may_be_answered_elsewhere(answer.given.why);
        *clock_us = answer.clock_us;
    }
    if (may_be_answered)
        connection_close();
    return answers.count;
}

} // namespace uidgen::pg
