#include <algorithm>

#include "sequence.hpp"
#include "memory/generator_state.hpp"

namespace uidgen::pg {

void lock_sequence(Oid sequence, LOCKMODE mode) {
    LockRelationOid(sequence, mode);
    if (get_rel_relkind(sequence) == '\0')
        report_no_sequence(sequence);
}

// Attempts are many, so log_lock_waits would tell of each.
void lock_first(Oid relation, LOCKMODE mode) {
    constexpr int look_after_ms = 50; // half of the shortest attempt
    const int nest_level = NewGUCNestLevel();
    const auto set = [](const char *name, const char *value) {
        set_config_option(name, value, PGC_SUSET, PGC_S_SESSION, GUC_ACTION_SAVE, true, 0, false);
    };
    set("deadlock_timeout", psprintf("%d", Min(DeadlockTimeout, look_after_ms)));
    if (LockTimeout > 0)
        set("log_lock_waits", "off");
    LockRelationOid(relation, mode);
    AtEOXact_GUC(true, nest_level);
}

namespace {

// Takes the heavyweight locks of all or none, without a wait. Returns the first one that is not free, or null. It
// begins with another one at each turn, so that each is waited for first at some time, even if others are never free.
const Oid *lock_at_once(std::initializer_list<Oid> sequences, LOCKMODE mode, size_t turn)
    EXCLUDES(page_lock, table_lock, slot_lock, state_lock) {
    const auto in_turn = [&](size_t i) { return sequences.begin() + (turn + i) % sequences.size(); };
    for (size_t busy = 0; busy < sequences.size(); busy++)
        if (!ConditionalLockRelationOid(*in_turn(busy), mode)) {
            for (size_t locked = 0; locked < busy; locked++)
                UnlockRelationOid(*in_turn(locked), mode);
            return in_turn(busy);
        }
    return nullptr;
}

// Waits `ms` for the heavyweight locks of all, `first` before the others. False: the attempt ended without them.
// In a subtransaction, whose end restores lock_timeout and, after an error, releases the locks. The error is raised
// again unless the attempt may be repeated. It is shorter than deadlock_timeout, so that it ends before a session in a
// deadlock with it fails.
bool lock_within(Oid first, std::initializer_list<Oid> sequences, LOCKMODE mode, int64_t ms, bool may_repeat)
    EXCLUDES(page_lock, table_lock, slot_lock, state_lock) {
    MemoryContext context = CurrentMemoryContext;
    ResourceOwner owner = CurrentResourceOwner;
    volatile bool holds_first = false;
    volatile bool locked = false;
    BeginInternalSubTransaction(nullptr);
    PG_TRY();
    {
        set_config_option("lock_timeout", psprintf("%lld", static_cast<long long>(ms)), PGC_USERSET, PGC_S_SESSION,
                          GUC_ACTION_SAVE, true, 0, false);
        lock_first(first, mode);
        holds_first = true;
        for (const Oid sequence : sequences)
            LockRelationOid(sequence, mode);
        ReleaseCurrentSubTransaction();
        locked = true;
    }
    PG_CATCH();
    {
        MemoryContextSwitchTo(context);
        ErrorData *error = CopyErrorData();
        FlushErrorState();
        RollbackAndReleaseCurrentSubTransaction();
        const bool has_ended = error->sqlerrcode == ERRCODE_LOCK_NOT_AVAILABLE ||
                               (error->sqlerrcode == ERRCODE_T_R_DEADLOCK_DETECTED && holds_first);
        if (!may_repeat || !has_ended)
            ReThrowError(error);
    }
    PG_END_TRY();
    MemoryContextSwitchTo(context);
    CurrentResourceOwner = owner;
    return locked;
}

// Whether draws from it wait for the clock or for a grant. They hold their locks meanwhile, one after the other, so no
// short attempt ever succeeds. A longer one delays nobody who could draw. Reads atomics of the slot, found in the table
// of slots.
bool draws_wait(Oid sequence) EXCLUDES(page_lock, table_lock, slot_lock, state_lock) {
    const Slot *slot = find_slot(slot_key(sequence), SlotKind::generator);
    return slot != nullptr && ((generator_of(slot).clock_changes.load(std::memory_order_relaxed) & 1) != 0 ||
                               membership_of(slot).wanted.load(std::memory_order_relaxed) != 0);
}

} // namespace

void lock_sequences(std::initializer_list<Oid> sequences, LOCKMODE mode) {
    constexpr int64_t longest_ms = 500;
    constexpr int64_t grace_ms = 1000;
    const int64_t patience_ms = LockTimeout > 0 ? LockTimeout : PG_INT64_MAX;
    const int64_t begun_us = monotonic_us();
    int64_t ms = 0;
    for (size_t turn = 0; const Oid *busy = lock_at_once(sequences, mode, turn); turn++) {
        const int64_t left_ms = patience_ms - (monotonic_us() - begun_us) / us_per_ms;
        const bool all_wait = std::any_of(sequences.begin(), sequences.end(), draws_wait);
        ms = Max(Min(all_wait ? settings::max_wait_ms + grace_ms : Min(ms + 100, longest_ms), left_ms), 1);
        if (lock_within(*busy, sequences, mode, ms, left_ms > 3 * ms))
            break;
        // At random, so that two sessions in a deadlock do not miss each other's attempts each time.
        sleep_for(static_cast<int64_t>((1 + 2 * pg_prng_double(&pg_global_prng_state)) * ms * us_per_ms),
                  wait_event("UidgenLock"));
    }
    if (get_rel_relkind(*sequences.begin()) == '\0')
        report_no_sequence(*sequences.begin());
}

} // namespace uidgen::pg
