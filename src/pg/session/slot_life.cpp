#include "slot_life.hpp"

#include "memory/generator_state.hpp"
#include "session.hpp"

namespace uidgen::pg {

namespace {

constexpr int64_t warned_before_us = INT64_C(2) * 365 * 24 * 3600 * us_per_second;

// Slots need not go with their sequences, because one that outlives its sequence does no harm (docs/design.md, P1 5).
// They are looked at in turn when others are made, and freed, so they cannot become more than those. That of a
// generator stays for ten minutes after its last time, because it says how far the ids reached (P1 10).

// What a slot says at one moment.
struct SlotSummary {
    bool used;
    SlotKey key;
    core::Layout layout; // of a generator
    int64_t until_us;    // the latest time in its ids; 0: none
};

// A copy, read under the slot's lock, which may be out of date at once.
SlotSummary summarize_slot(Slot *slot) EXCLUDES(slot_lock, state_lock) {
    SlotSummary look = {};
    lock_slot_shared(slot);
    look.used = slot->phase != SlotPhase::free;
    look.key = slot->key;
    if (slot->kind == SlotKind::generator) {
        look.layout = generator_of(slot).config.layout;
        look.until_us = slot_last_time(*slot);
    }
    unlock_slot(slot);
    return look;
}

// Whether the transaction does not see the sequence, by catalogs. A relation of another kind may have its oid.
bool is_gone(SlotKind kind, Oid sequence) {
    return !is_relation(sequence) || is_lease_sequence(sequence) != (kind == SlotKind::generator);
}

constexpr int64_t kept_for_us = core::longest_ahead_ms * us_per_ms;

// Notes how far a generator's ids reach (note_dropped()), and marks the slot dropped (expire_slot()). Under a lock on
// the sequence that excludes its users.
void drop_slot(Slot *slot, const SlotKey &key) EXCLUDES(page_lock, table_lock, slot_lock, state_lock) {
    note_dropped(slot, key);
    expire_slot(slot, SlotPhase::dropped);
}

// Frees the slot (free_slot()) or marks it dropped (drop_slot()) if its sequence is gone. Under a lock on its users.
void sweep_locked_slot(Slot *slot, const SlotSummary &look) EXCLUDES(page_lock, table_lock, slot_lock, state_lock) {
    const bool is_elsewhere = look.key.database != MyDatabaseId;
    if (is_elsewhere && is_database(look.key.database))
        return;
    if (is_elsewhere || !is_of_this_database(look.key)) { // or the database has moved, or has the oid of a former one
        free_slot(look.key, slot->kind);
    } else if (is_gone(slot->kind, look.key.sequence)) {
        if (look.until_us + kept_for_us <= wall_clock_us())
            free_slot(look.key, slot->kind);
        else
            drop_slot(slot, look.key);
    }
}

// Looks at the slot, and frees it if need be (sweep_locked_slot()), under ExclusiveLock on its sequence, which may be
// of another database. It takes that for this only, and only if it is free.
void sweep_slot(Slot *slot) EXCLUDES(page_lock, table_lock, slot_lock, state_lock) {
    LOCKTAG tag;
    const SlotSummary look = summarize_slot(slot);
    if (!look.used)
        return;
    SET_LOCKTAG_RELATION(tag, look.key.database, look.key.sequence);
    if (holds_lock(tag, RowExclusiveLock) || LockAcquire(&tag, ExclusiveLock, false, true) == LOCKACQUIRE_NOT_AVAIL)
        return;
    const SlotSummary locked = summarize_slot(slot); // another session may have freed it meanwhile
    if (locked.used && same_key(locked.key, look.key))
        sweep_locked_slot(slot, locked);
    LockRelease(&tag, ExclusiveLock, false);
}

// At the making of a slot: looks at the next two of each kind (sweep_slot()). It leaves those whose sequence any
// transaction uses, this one included (RowExclusiveLock), and does nothing in parallel mode, because locks of parallel
// workers do not conflict.
void sweep_slots() EXCLUDES(page_lock, table_lock, slot_lock, state_lock) {
    if (IsInParallelMode())
        return;
    for (const SlotKind kind : {SlotKind::generator, SlotKind::generator, SlotKind::segment, SlotKind::segment})
        if (Slot *slot = take_next_look(kind); slot != nullptr)
            sweep_slot(slot);
}

// Calls visit(slot, look) for each generator of this database whose sequence the transaction does not see, without a
// lock, after summarize_slot().
template <typename Visit> void for_each_dropped(Visit visit) EXCLUDES(slot_lock, state_lock) {
    for (Slot *slot = first_slot(SlotKind::generator); slot != nullptr; slot = next_slot(slot)) {
        const SlotSummary look = summarize_slot(slot);
        if (look.used && look.key.database == MyDatabaseId && look.until_us != 0 &&
            is_gone(SlotKind::generator, look.key.sequence))
            visit(slot, look);
    }
}

} // namespace

// Only if there is such a time are the slots looked up.
int64_t find_tick_to_pass(Oid generator, const GeneratorConfig &config) {
    const core::Layout &layout = config.layout;
    const auto tick_of = [&](int64_t us) { return Min(core::tick_at(layout, us), config.policy.end - 1); };
    const int64_t furthest = core::tick_at(layout, wall_clock_us()) + config.policy.max_ahead;
    const int64_t until_us = fault_is("forget_lost") || !attach_area() ? 0 : dropped_until_us(layout);
    if (until_us == 0 || tick_of(until_us) <= furthest)
        return until_us == 0 ? -1 : tick_of(until_us);
    int64_t latest = -1;
    int64_t to_pass = -1;
    for_each_dropped([&](const Slot *, const SlotSummary &look) {
        if (!core::same_layout(look.layout, layout))
            return;
        const int64_t tick = tick_of(look.until_us);
        latest = Max(latest, tick);
        if (tick <= furthest)
            to_pass = Max(to_pass, tick);
    });
    if (latest > to_pass)
        ereport(WARNING,
                (errmsg("generator \"%s\" starts below ids that this database has drawn", get_rel_name(generator)),
                 errdetail("Ids of a generator that was dropped reach %s, which is further ahead than max_ahead_ms.",
                           instant_text(core::start_of(layout, latest))),
                 errhint("To stay above them, create another generator whose epoch is earlier by %lld s.",
                         static_cast<long long>((core::start_of(layout, latest + 1) - wall_clock_us()) / us_per_second +
                                                1))));
    return to_pass;
}

namespace {

// The mark up to which this incarnation has leased, as the slot says, under its lock, ready or stale. The sequence's
// page may be below: setval, a restore of data or REFRESH SEQUENCES of logical replication sets it to what another
// server has.
int64_t mark_in_memory(Oid generator) EXCLUDES(page_lock, table_lock, slot_lock, state_lock) {
    Slot *slot = find_slot(slot_key(generator), SlotKind::generator);
    if (slot == nullptr || fault_is("forget_mark"))
        return core::no_lease_yet;
    lock_slot_shared(slot);
    const GeneratorState &state = generator_of(slot);
    const auto until = static_cast<int64_t>(state.ticks.written_range().until >> state.config.layout.sequence_bits);
    const int64_t mark = has_leased(*slot) ? until - 1 : state.former_mark;
    unlock_slot(slot);
    return mark;
}

// What the slot of a generator is made of, for an open sequence: reads the label, other slots (find_tick_to_pass()) and
// this one (mark_in_memory()). A generator starts above the last ids of lost generators. So a generator or an extension
// that is made anew does not repeat ids: not even if it has a mark, which a restore may have brought, from before the
// loss.
void init_generator(Relation rel, SlotInit *init) EXCLUDES(page_lock, table_lock, slot_lock, state_lock) {
    const Oid generator = RelationGetRelid(rel);
    const int64_t mark = Max(init->expected.counter.last_value, mark_in_memory(generator));
    init->mark = mark;
    init->config = read_generator_config(generator, rel);
    const core::ClockPolicy &policy = init->config.policy;
    check_lease_sequence(generator);
    if (generator == builtin_generator())
        check_no_lost_definition(generator);
    warn_of_end(generator, init->config.layout); // once, unless two sessions make the slot
    init->first_position = core::position_above(policy, Max(mark, find_tick_to_pass(generator, init->config)));
    if (fault_is("resume_lease") && mark > policy.lease)
        init->first_position -= static_cast<uint64_t>(policy.lease) << policy.sequence_bits;
}

// What the slot of a segment is made of, for an open sequence, by its label. Error if it holds leases of a generator.
void init_segment(Relation rel, SlotInit *init) {
    const Oid sequence = RelationGetRelid(rel);
    if (is_lease_sequence(sequence))
        report_lease_sequence(sequence);
    init->first_position = 1;
    init->segment = segment_config_of(read_segment(sequence));
}

// Takes ShareUpdateExclusiveLock on a segment if it is free, which the caller releases: its label does not change. The
// caller holds RowExclusiveLock. Also accepts the invalidations of changes before, so that the label is read as it is.
// False: a transaction has altered it, or may have, that is still open.
bool hold_label(const SlotKey &key) EXCLUDES(page_lock, table_lock, slot_lock, state_lock) {
    LOCKTAG tag;
    SET_LOCKTAG_RELATION(tag, key.database, key.sequence);
    return !IsInParallelMode() && !holds_lock(tag, ShareUpdateExclusiveLock) &&
           ConditionalLockRelationOid(key.sequence, ShareUpdateExclusiveLock);
}

} // namespace

Slot *find_or_make_slot(Relation rel, SlotKind kind) {
    const SlotKey key = slot_key(RelationGetRelid(rel));
    Slot *slot = find_slot(key, kind);
    const SlotPhase phase = slot != nullptr ? phase_of(slot) : SlotPhase::free;
    if (phase == SlotPhase::ready)
        return slot;
    const bool holds = kind == SlotKind::segment && hold_label(key);
    const bool is_settled = kind == SlotKind::generator || holds;
    SlotInit init = {};
    init.kind = kind;
    init.file = file_of(rel);
    init.expected = page_state(rel);
    init.phase = is_settled ? SlotPhase::ready : SlotPhase::altered;
    if (kind == SlotKind::segment)
        init_segment(rel, &init);
    else
        init_generator(rel, &init);
    if (phase < SlotPhase::altered) // otherwise none is made
        sweep_slots();
    slot = make_slot(key, init);
    if (holds)
        UnlockRelationOid(key.sequence, ShareUpdateExclusiveLock);
    return slot;
}

void warn_of_end(Oid generator, const core::Layout &layout) {
    const int64_t end_us = core::start_of(layout, core::largest(layout.time_bits) + 1);
    const int64_t now_us = wall_clock_us();
    if (now_us < layout.epoch_us)
        ereport(WARNING, (errmsg("generator \"%s\" issues no ids before %s, its epoch", get_rel_name(generator),
                                 instant_text(layout.epoch_us)),
                          errhint("If the clock is right, create a generator with an earlier epoch.")));
    if (now_us >= end_us - warned_before_us)
        ereport(
            WARNING,
            (errmsg("the time bits of generator \"%s\" %s at %s", get_rel_name(generator),
                    now_us < end_us ? "end" : "ended", instant_text(end_us)),
             errhint("To issue ids after that, create a generator with more time bits or, if this one has issued no "
                     "ids, a later epoch.")));
}

namespace {

// The lowest tick whose ids are all above `id`.
int64_t tick_above(const core::Layout &layout, int64_t id) { return id < 0 ? 0 : (id >> core::time_shift(layout)) + 1; }

[[noreturn]] void report_cannot_start(Oid generator, const GeneratorConfig &config, int64_t id, const char *hint) {
    const core::Layout &layout = config.layout;
    const int64_t tick = tick_above(layout, id);
    const bool later = tick < config.policy.end;
    ereport(ERROR,
            (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
             errmsg("generator \"%s\" cannot start above %lld%s", get_rel_name(generator), static_cast<long long>(id),
                    later ? " yet" : ""),
             later ? errdetail("Its ids exceed that value from %s on.", instant_text(core::start_of(layout, tick)))
                   : errdetail("The layout of the generator has no id above that value."),
             errhint("%s", hint)));
}

} // namespace

void lock_generator(Oid generator) {
    lock_sequences({generator}, excludes_draws);
    if (get_rel_relkind(generator) != RELKIND_SEQUENCE)
        report_not_a_generator(generator);
}

void end_lease(Oid generator) {
    Slot *slot = find_slot(slot_key(generator), SlotKind::generator);
    if (slot != nullptr && !fault_is("keep_altered"))
        expire_slot(slot);
    open_all_again();
}

void lose_generator(Oid generator) {
    if (Slot *slot = find_slot(slot_key(generator), SlotKind::generator); slot != nullptr)
        drop_slot(slot, slot_key(generator));
    open_all_again();
}

// Where the server preloads the library, every session has noted what it dropped.
void note_all_lost() {
    if (!settings::is_preloaded)
        for_each_dropped([](Slot *slot, const SlotSummary &look) { note_dropped(slot, look.key); });
}

void forget_generator(Oid generator) {
    note_all_lost();
    free_slot(slot_key(generator), SlotKind::generator);
    open_all_again();
}

int64_t high_water_mark_of(Oid generator) {
    Relation rel = try_relation_open(generator, AccessShareLock);
    if (rel == nullptr)
        return core::no_lease_yet;
    const bool is_sequence = rel->rd_rel->relkind == RELKIND_SEQUENCE;
    const int64_t mark = is_sequence ? page_state(rel).counter.last_value : core::no_lease_yet;
    relation_close(rel, AccessShareLock);
    return Max(mark, mark_in_memory(generator));
}

bool may_start_above(const GeneratorConfig &config, int64_t id) {
    const int64_t tick = tick_above(config.layout, id);
    return tick <= core::tick_at(config.layout, wall_clock_us()) + config.policy.max_ahead && tick < config.policy.end;
}

void raise_above_id(Oid generator, const GeneratorConfig &config, int64_t id, const char *hint) {
    if (!may_start_above(config, id))
        report_cannot_start(generator, config, id, hint);
    Relation rel = relation_open(generator, NoLock);
    check_lease_sequence(generator);
    check_not_rewritten(rel);
    const int64_t mark = Max(tick_above(config.layout, id) - 1, 0);
    SequencePage page = lock_page_for_writing(rel);
    const bool higher = mark > read_page(page).counter.last_value;
    // Even a mark that is high enough may not be durable yet: the call that raised it may have been canceled.
    const uint64_t lsn = higher ? write_page(&page, mark) : read_page(page).lsn;
    unlock_page(&page);
    relation_close(rel, NoLock);
    Counters not_counted = {};
    make_durable(&not_counted, lsn, wanted_durability()); // a commit that wrote nothing else would not wait
    end_lease(generator);
}

} // namespace uidgen::pg
