#include "asks.hpp"

#include <algorithm>

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

// Copies an ask into the agenda, in the order in which they are due; a full agenda loses its last one. Of those that
// came at one time the first one stays the first.
void add_ask(Agenda *agenda, const Ask &ask) {
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

// By the copy: whether a session waits for a grant that this member does not have.
bool is_wanted(const Member &member) {
    const GrantView view = grant_view_of(member);
    return member.wanted > 0 && (!view.granted || member.wanted >= view.until);
}

// When `left` ticks of a grant are left at tick `now`: its half, or up to an eighth of it earlier, so that the servers
// of a fleet do not ask at one moment.
int64_t renewal_tick(int64_t now, int64_t left) {
    const int64_t spread = static_cast<int64_t>(server_state->salt % static_cast<uint64_t>(left / 8 + 1));
    return now + left / 2 - spread;
}

// Adds the copy of a member to the agenda. A renewal goes along with another ask up to an eighth of the grant before
// it is due, so that a server renews its grants in few calls. After a start it is due at once, so that a copy that was
// made below the file system is found out early.
void add_member(Agenda *agenda, const Member &member, int64_t length_us) {
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
        ask.along_us = Max(renew_us - length_us / 8, notes.not_before_us);
    }
    if (is_wanted(member) || member.holding.holds)
        add_ask(agenda, ask);
}

// Adds the copy of a block that is asked for to the agenda.
void add_block(Agenda *agenda, const AskedBlock &block) {
    Ask ask = {};
    ask.is_block = true;
    ask.block = block;
    ask.since_us = ask.along_us = block.not_before_us;
    agenda->any = agenda->wanted = agenda->draws_blocks = true;
    add_ask(agenda, ask);
}

// ---------------------------------------------------------------------------------------------------------
// What is answered.
// ---------------------------------------------------------------------------------------------------------

// Why an answer gives the member nothing; at_us 0: it is granted, and valid.
GrantError error_of_grant(const Ask &ask, const core::GrantAnswer &given, const core::Hello &hello) {
    const Member &member = ask.member;
    const core::Why why = given.answer.why;
    if (why == core::Why::ahead && hello.longest < 2 * member.request.layout.tick_us)
        return refusal_error(core::Why::too_short, {});
    if (why != core::Why::granted)
        return refusal_error(why, given.notes);
    const bool is_valid = core::grant_is_valid(member.holding, node_range_of(member.request), given.answer.grant);
    return is_valid || fault_is("any_answer") ? GrantError{} : not_a_registry();
}

// The error of an answer of a smaller term. Nothing else in it counts.
GrantError outdated_error() { return refusal_error(core::Why::outdated, {}); }

// Whether an answer counts, by its fleet and term (core/holding.hpp).
bool counts_for(const core::FleetSeen &seen, const core::Answer &answer) {
    return fault_is("go_back") || core::answer_counts(seen, answer);
}

// Takes an answer into the copy of the member, and what it shows of the fleet into *taken. Stores and publishes
// nothing. A WARNING in the log says that the node is lost.
void accept_grant(Ask *ask, const core::GrantAnswer &given, const core::Hello &hello, Taken *taken) {
    const core::Answer &answer = given.answer;
    ask->error = error_of_grant(*ask, given, hello);
    if (!counts_for(taken->seen, answer)) {
        if (answer.why == core::Why::granted)
            ask->error = outdated_error();
        return;
    }
    if (answer.why == core::Why::granted && ask->error.at_us != 0)
        return;
    const int64_t node = ask->member.holding.grant.node;
    taken->seen = core::seen_after(taken->seen, answer, hello.longest);
    if (!core::accept_answer(&ask->member.holding, answer)) {
        if (ask->member.holding.must_join) // at once
            ask->is_over = false;
        return;
    }
    taken->changed = lappend(taken->changed, &ask->member);
    if (answer.why == core::Why::granted)
        note_granted(ask);
    else
        ereport(WARNING,
                (errmsg("generator \"%s\" in database \"%s\" loses node %lld, with which another server "
                        "continues",
                        ask->member.request.generator, ask->member.request.database, static_cast<long long>(node)),
                 errdetail("Until this moment both may have drawn equal ids."),
                 errhint("If this server or its volume was cloned, stop the clone.")));
}

// Whether the values are those that were asked for. Others could be values that this server had before.
GrantError error_of_block(const BlockAsk &ask, const core::BlockReply &reply) {
    int64_t length = 0;
    int64_t last = 0;
    if (reply.answer.why != core::Why::granted)
        return refusal_error(reply.answer.why, reply.notes);
    if (fault_is("any_answer"))
        return {};
    if (reply.increment <= 0 || reply.count > ask.count ||
        __builtin_mul_overflow(reply.count - 1, reply.increment, &length) ||
        __builtin_add_overflow(reply.first, length, &last))
        return not_a_registry();
    if (ask.increment != 0 && reply.increment != ask.increment)
        return make_error("the segment of the registry has another increment now", "", core::Why::other_fleet);
    if (ask.shown >= 0 && reply.first <= ask.shown)
        return make_error("the registry gave values that this database had before",
                          "Check that uidgen.registry names the current primary server of the registry.");
    return {};
}

} // namespace

Agenda make_agenda() {
    Agenda agenda = {};
    if (settings::registry[0] == '\0')
        return agenda;
    const int64_t now_us = wall_clock_us();
    const int64_t length_us = usual_length_us();
    agenda.any = agenda.draws_blocks = last_block_us != 0 && monotonic_us() - last_block_us < idle_after_block_us;
    for_each_asked_block([&agenda](const AskedBlock &block) { add_block(&agenda, block); });
    for_each_member([&agenda, now_us, length_us](const Member &member) {
        if (!is_in_use(member, now_us, length_us))
            return;
        agenda.any = true;
        add_member(&agenda, member, length_us);
    });
    return agenda;
}

int64_t next_due_us(const Agenda &agenda) {
    return agenda.count > 0 ? Min(agenda.asks[0]->since_us - monotonic_us(), longest_nap_us) : longest_nap_us;
}

int take_due_asks(Agenda *agenda, int most) {
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
    const int64_t left = Max(core::ticks_of(member->request.layout, member->holding.grant).until - ask->lowest, 0);
    member->notes = {.renew_at = renewal_tick(ask->lowest, left), .not_before_us = monotonic_us() + granted_pause_us};
    member->error = {};
    member->renewals++;
}

void ask_everything_again() {
    for_each_member([](Member member) {
        member.notes = {};
        membership_publish(member);
    });
}

void prepare_ask(Ask *ask) {
    Member *member = &ask->member;
    const core::Layout &layout = member->request.layout;
    ask->lowest = Max(core::tick_at(layout, wall_clock_us()), member->wanted);
    core::prepare_call(&member->holding, random_number(), core::earliest_of(layout, ask->lowest));
}

const PGresult *call_for_grants(const core::FleetSeen &seen, Ask *const *asks, int count, GrantError *error) {
    const Member *members[most_requests];
    std::transform(asks, asks + count, members, [](const Ask *ask) { return &ask->member; });
    return connection_run(make_grant_call(seen, members, count), error);
}

void accept_grants(Ask *const *asks, int count, const PGresult *rows, const core::Hello &hello, Taken *taken) {
    for (int i = 0; i < count; i++) {
        core::GrantAnswer given;
        asks[i]->is_over = true;
        if (read_grant_answer(rows, i, hello.fleet, &given))
            accept_grant(asks[i], given, hello, taken);
        else
            asks[i]->error = not_a_registry();
    }
}

void call_for_block(Ask *ask, const core::Hello &hello, Taken *taken) {
    core::BlockReply reply;
    last_block_us = monotonic_us();
    ask->is_over = true;
    const PGresult *rows = connection_run(make_block_call(taken->seen, ask->block), &ask->error);
    if (rows == nullptr)
        return;
    if (!read_block_reply(rows, hello.fleet, &reply)) {
        ask->error = not_a_registry();
        return;
    }
    ask->error = error_of_block(ask->block.ask, reply);
    if (!counts_for(taken->seen, reply.answer)) {
        if (ask->error.at_us == 0)
            ask->error = outdated_error();
        return;
    }
    taken->seen = core::seen_after(taken->seen, reply.answer, hello.longest);
    ask->block.answer.block = {.fleet = static_cast<uint64_t>(reply.answer.fleet),
                               .first = reply.first,
                               .count = static_cast<uint64_t>(reply.count),
                               .increment = reply.increment};
}

} // namespace uidgen::pg
