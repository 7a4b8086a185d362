#include "agenda.hpp"

#include "base/settings.hpp"
#include "base/time_source.hpp"
#include "memory/server_state.hpp"

namespace uidgen::pg {
namespace {

// Between two asks for one member: after a grant; after a refusal, which is longer after each one.
constexpr int64_t granted_pause_us = 100 * us_per_ms;
constexpr int64_t refused_pause_us = us_per_second;
constexpr int64_t longest_refused_pause_us = 8 * us_per_second;

constexpr int64_t longest_nap_us = 10 * us_per_second; // the wall clock may be set meanwhile

// So long after a call for a block the registrar stays, so that the connection lasts from one block to the next.
constexpr int64_t idle_after_block_us = 60 * us_per_second;

constexpr int64_t always_due = -1;           // a tick
constexpr int64_t goes_along = PG_INT64_MAX; // Waiting::since_us

int64_t last_block_us = 0; // the last call for a block, on the monotonic clock; 0: none yet

// Of those that came at one time the first one stays the first.
void add(Agenda *agenda, int64_t since_us, Slot *slot, bool is_block) {
    Waiting *end = agenda->waiting + agenda->count;
    agenda->due = agenda->due || since_us != goes_along;
    if (agenda->count < most_requests)
        agenda->count++;
    else if ((--end)->since_us <= since_us)
        return;
    for (; end > agenda->waiting && end[-1].since_us > since_us; end--)
        *end = end[-1];
    *end = {since_us, slot, is_block};
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

// Only this process uses the notes.
RegistrarNotes *notes_of(const Member &member) {
    RegistrarNotes *notes = &membership_of(member.slot).notes;
    if (notes->incarnation != member.membership.incarnation)
        *notes = {member.membership.incarnation, 0, 0, 0, 0};
    if (notes->renew_at == 0 && member.membership.holds)
        notes->renew_at = renewal(member.membership.held.until - member.request.length, member.request.length);
    return notes;
}

// Adds a member that is due, or is due within an eighth of its grant: such renewals go along with the first one, so
// that a server renews its grants in few calls. After a start the registry learns of the new incarnation at once, so
// that a copy that was made below the file system is found out early.
void add_member(Agenda *agenda, const Member &member, int64_t now_us, int64_t now_monotonic_us) {
    RegistrarNotes *notes = notes_of(member);
    const core::Layout &layout = member.request.layout;
    if (member.membership.superseded)
        return;
    int64_t since_us = notes->not_before_us;
    bool is_soon = false;
    if (is_wanted(member)) {
        if (notes->wanted_since_us == 0)
            notes->wanted_since_us = now_monotonic_us;
        since_us = Max(since_us, notes->wanted_since_us);
        agenda->wanted = true;
    } else {
        notes->wanted_since_us = 0;
        if (!member.membership.holds)
            return;
        const int64_t wait_us = core::start_of(layout, notes->renew_at) - now_us;
        if (member.membership.former.count == 0)
            since_us = Max(since_us, now_monotonic_us + wait_us);
        is_soon = wait_us < member.request.length / 8 * layout.tick_us && notes->not_before_us <= now_monotonic_us;
    }
    if (since_us <= now_monotonic_us)
        add(agenda, since_us, member.slot, false);
    else
        agenda->next_us = Min(agenda->next_us, since_us - now_monotonic_us);
    if (since_us > now_monotonic_us && is_soon)
        add(agenda, goes_along, member.slot, false);
}

// After a start only the file knows of it.
void explain_superseded(const Member &member) {
    const core::RefusalRow &why = core::row_of(core::Refusal::superseded);
    GrantError error = {};
    if (member.error.at_us != 0)
        return;
    set_error(&error, why.message, why.hint);
    membership_note_error(member, error);
}

void add_block(Agenda *agenda, Slot *segment, int64_t now_monotonic_us) {
    AskedBlock asked;
    if (!block_copy(segment, &asked))
        return;
    agenda->any = true;
    agenda->wanted = true;
    if (asked.due_us <= now_monotonic_us)
        add(agenda, asked.due_us, segment, true);
    else
        agenda->next_us = Min(agenda->next_us, asked.due_us - now_monotonic_us);
}

} // namespace

Agenda look_around() {
    Agenda agenda = {};
    if (settings::registry[0] == '\0')
        return agenda;
    const int64_t now_us = wall_clock_us();
    const int64_t now_monotonic_us = monotonic_us();
    agenda.any = last_block_us != 0 && now_monotonic_us - last_block_us < idle_after_block_us;
    agenda.next_us = longest_nap_us;
    for (Slot *segment = first_slot(SlotKind::segment); segment != nullptr; segment = next_slot(segment))
        add_block(&agenda, segment, now_monotonic_us);
    for_each_member([&](const Member &member) {
        if (!is_in_use(member, now_us))
            return;
        agenda.any = true;
        if (member.membership.superseded)
            explain_superseded(member);
        add_member(&agenda, member, now_us, now_monotonic_us);
    });
    return agenda;
}

Ask *next_asks(const Agenda &agenda, int at_once, int *count) {
    auto *asks = static_cast<Ask *>(palloc0(sizeof(Ask) * static_cast<Size>(at_once)));
    *count = 0;
    for (int i = 0; i < agenda.count && *count < at_once; i++) {
        Ask *ask = &asks[*count];
        ask->is_block = agenda.waiting[i].is_block;
        *count += (ask->is_block ? block_copy(agenda.waiting[i].slot, &ask->block)
                                 : membership_copy(agenda.waiting[i].slot, &ask->member))
                      ? 1
                      : 0;
    }
    return asks;
}

bool note_refused(const Member &member) {
    RegistrarNotes *notes = notes_of(member);
    const bool is_first = notes->pause_us == 0;
    notes->pause_us = Min(Max(2 * notes->pause_us, refused_pause_us), longest_refused_pause_us);
    notes->not_before_us = monotonic_us() + notes->pause_us;
    return is_first;
}

void note_granted(const Member &member, int64_t lowest) {
    const core::Membership &now = member.membership;
    *notes_of(member) = {now.incarnation, renewal(lowest, now.held.until - lowest), 0,
                         monotonic_us() + granted_pause_us, 0};
}

void note_block_asked() { last_block_us = monotonic_us(); }

bool was_refused(const Member &member) { return notes_of(member)->pause_us != 0; }

void ask_for_lasting_grant() {
    const int64_t now_us = wall_clock_us();
    RegistrarNotes *latest = nullptr;
    int64_t latest_us = now_us;
    for_each_member([&](const Member &member) {
        const core::Membership &m = member.membership;
        const int64_t until_us = m.holds ? core::start_of(member.request.layout, m.held.until) : 0;
        if (!is_in_use(member, now_us) || m.superseded || until_us <= latest_us)
            return;
        latest_us = until_us;
        latest = notes_of(member);
    });
    if (latest != nullptr)
        latest->renew_at = always_due;
}

void ask_everything_again() {
    for_each_member([](const Member &member) {
        *notes_of(member) = {member.membership.incarnation, always_due, 0, 0, 0};
    });
}

} // namespace uidgen::pg
