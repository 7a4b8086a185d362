#include "session.hpp"

#include "memory/segment_state.hpp"
#include "slot_life.hpp"
#include "node/worker_node.hpp"

namespace uidgen::pg {

uint64_t session_checks = 1;
SessionEntry empty_entry = {};
LastUsed last_used = {&empty_entry, &empty_entry, &empty_entry};
int64_t last_id = -1;

namespace {

struct EntryPlace {
    Oid sequence;
    SessionEntry *entry;
    char status; // simplehash's own
};

#define SH_PREFIX entry_table
#define SH_ELEMENT_TYPE EntryPlace
#define SH_KEY_TYPE Oid
#define SH_KEY sequence
#define SH_HASH_KEY(table, key) murmurhash32(key)
#define SH_EQUAL(table, a, b) ((a) == (b))
#define SH_SCOPE static inline
#define SH_DECLARE
#define SH_DEFINE
#include "lib/simplehash.h" // a template, made from the macros above

entry_table_hash *entries = nullptr;

uint64_t transaction_number = 1; // numbers this backend's transactions

uint64_t default_changed_in = 0; // the last transaction that has chosen a default generator
SubTransactionId default_changed_by = InvalidSubTransactionId; // where it did so first

// Changes with every invalidation of a sequence that has an entry, and of what its privileges depend on. It is none of
// the counters of config/extension.hpp, because a change of another relation would then have the first call of the next
// transaction look up the sequence and the privilege of each entry again. session_checks changes with every
// transaction.
uint64_t sequence_changes = 1;

uint64_t new_sequences_in = 0; // the last transaction that has drawn from a sequence that it had created

// Calls visit(entry) for each entry of this session.
template <typename Visit> void for_each_entry(Visit visit) {
    entry_table_iterator iterator;
    if (entries == nullptr)
        return;
    entry_table_start_iterate(entries, &iterator);
    while (EntryPlace *place = entry_table_iterate(entries, &iterator))
        visit(place->entry);
}

// Compares the slot's generation, an atomic, with the entry's. The entry need not be open.
bool slot_was_freed(const SessionEntry *entry) {
    return entry->slot == nullptr || entry->slot->generation.load(std::memory_order_acquire) != entry->generation;
}

// Whether the entry's slot is still its sequence's, and of that kind. The entry need not be open.
bool has_slot(const SessionEntry *entry, SlotKind kind) {
    return entry->kind == kind && entry->is_settled && !slot_was_freed(entry);
}

// Frees entries of this session whose sequences the catalogs do not have. Keeps sessions small that keep creating and
// dropping sequences.
void free_dropped_entries() {
    last_used = {&empty_entry, &empty_entry, &empty_entry};
    for_each_entry([](SessionEntry *entry) {
        if (is_relation(entry->sequence))
            return;
        entry_table_delete(entries, entry->sequence); // simplehash allows it for the current element
        pfree(entry);
    });
}

constexpr uint32 fewest_entries = 64;
uint32 entries_wanted = fewest_entries; // at this size dropped entries are searched for and freed

// An entry that was never opened, in the memory of the session.
SessionEntry *make_entry(Oid sequence) {
    bool found = false;
    if (entries == nullptr)
        entries = entry_table_create(TopMemoryContext, fewest_entries, nullptr);
    if (entries->members >= entries_wanted) {
        free_dropped_entries();
        entries_wanted = Max(2 * entries->members, fewest_entries);
    }
    auto *entry = static_cast<SessionEntry *>(MemoryContextAllocZero(TopMemoryContext, sizeof(SessionEntry)));
    entry->sequence = sequence;
    entry_table_insert(entries, sequence, &found)->entry = entry;
    return entry;
}

// Error if sessions cannot draw on this server, for lack of the preload. Attaches to the server's state.
void check_may_draw() {
    if (likely(settings::is_preloaded))
        return;
    const char *setting = settings::unreliable_setting();
    if (setting != nullptr)
        report_not_preloaded(setting);
    if (!attach_server_state())
        report_not_preloaded();
}

// Takes RowExclusiveLock on the sequence, once per transaction. The owner is TopTransactionResourceOwner, so that
// ROLLBACK TO does not release it.
void lock_for_transaction(SessionEntry *entry) EXCLUDES(page_lock, table_lock, slot_lock, state_lock) {
    if (entry->locked_in == transaction_number)
        return;
    ResourceOwner owner = CurrentResourceOwner;
    if (!fault_is("release_lock"))
        CurrentResourceOwner = TopTransactionResourceOwner;
    LockRelationOid(entry->sequence, RowExclusiveLock);
    CurrentResourceOwner = owner;
    entry->found_in = InvalidSubTransactionId; // that of an earlier transaction says nothing of this one
    entry->locked_in = transaction_number;
}

// Whether the entry was opened for this role, and nothing has changed since, nor the page (is_page_expected()). Under
// the sequence's lock, which has brought the invalidations that were sent before it.
bool is_unchanged(const SessionEntry *entry, SlotKind kind) EXCLUDES(page_lock, table_lock, slot_lock, state_lock) {
    return entry->known_as_of == sequence_changes && entry->role == GetUserId() && has_slot(entry, kind) &&
           is_page_expected(entry->slot, entry->page);
}

// Finds or makes the slot (find_or_make_slot()), under the sequence's lock. One of the entries that were used last may
// be this one, as of the other kind.
void enter_slot(SessionEntry *entry, Relation rel, SlotKind kind, bool is_new)
    EXCLUDES(page_lock, table_lock, slot_lock, state_lock) {
    last_used = {&empty_entry, &empty_entry, &empty_entry};
    entry->slot = find_or_make_slot(rel, kind);
    entry->generation = entry->slot->generation.load(std::memory_order_acquire);
    entry->is_settled =
        phase_of(entry->slot) == SlotPhase::ready; // after the generation, which a later alteration changes
    entry->kind = kind;
    entry->window = {};
    if (is_new)
        entry->found_in = GetCurrentSubTransactionId();
}

// Has the slot adopt the page (match_page()), or marks it (mark_stale()) and makes it again (enter_slot()), under the
// sequence's lock. Another page may be that of another sequence with the oid, because a session without the library has
// dropped the former one. So what the slot was made from is read again, before the page becomes the expected one: until
// then no session draws. If nextval has moved the sequence, nothing else has changed, and the slot stays as it is.
void adopt_other_page(SessionEntry *entry, Relation rel, SlotKind kind, bool is_new)
    EXCLUDES(page_lock, table_lock, slot_lock, state_lock) {
    const Oid sequence = RelationGetRelid(rel);
    if (fault_is("trust_oid")) {
    } else if (kind == SlotKind::generator) {
        check_lease_sequence(sequence);
        (void)read_generator_config(sequence, rel); // error if it is none
    } else if (is_lease_sequence(sequence) ||
               !slot_has_definition(entry->slot, segment_config_of(read_segment(sequence)))) {
        mark_stale(entry->slot, SlotPhase::altered);
        enter_slot(entry, rel, kind, is_new);
    }
    match_page(entry->slot, rel);
}

// Looks up the sequence, checks it and the privilege (open_to_draw()), finds or makes its slot (enter_slot()), and
// compares the page (find_expected_page()), which the slot may adopt (adopt_other_page()). Under the sequence's lock.
void open_afresh(SessionEntry *entry, SlotKind kind) EXCLUDES(page_lock, table_lock, slot_lock, state_lock) {
    const uint64_t changes = sequence_changes;
    entry->window.close(); // its values may be those of a commit that is not durable yet
    Relation rel = open_to_draw(entry->sequence, kind);
    const bool is_new = made_in_this_transaction(rel);
    // The lock keeps the slot. So an unchanged generation means that the slot is still this sequence's.
    if (!has_slot(entry, kind))
        enter_slot(entry, rel, kind, is_new);
    if (!find_expected_page(entry->slot, rel, &entry->page))
        adopt_other_page(entry, rel, kind, is_new);
    if (!is_new)
        entry->found_in = InvalidSubTransactionId;
    else
        new_sequences_in = transaction_number;
    const bool lasts = !is_new && !rewritten_in_this_transaction(rel) && !IsParallelWorker();
    relation_close(rel, NoLock);
    entry->known_as_of = lasts ? changes : 0;
    entry->role = GetUserId();
}

} // namespace

SessionEntry *open_entry(Oid sequence, SlotKind kind) {
    check_may_draw();
    if (RecoveryInProgress()) {
        server_state->refused_on_standby.fetch_add(1, std::memory_order_relaxed);
        report_in_recovery();
    }

    SessionEntry *entry = find_entry(sequence);
    if (entry == nullptr)
        entry = make_entry(sequence);
    if (is_open(entry, GetUserId()) && has_slot(entry, kind))
        return entry;
    entry->checked = 0;
    lock_for_transaction(entry);
    const uint64_t checks = session_checks; // an event after this point makes the next call open the entry again
    if (!is_unchanged(entry, kind))
        open_afresh(entry, kind);
    entry->checked = checks;
    return entry;
}

SessionEntry *find_entry(Oid sequence) {
    const EntryPlace *place = entries != nullptr ? entry_table_lookup(entries, sequence) : nullptr;
    return place != nullptr ? place->entry : nullptr;
}

SessionEntry *find_entry(Oid sequence, SlotKind kind) {
    SessionEntry *entry = find_entry(sequence);
    // Without a slot it has no kind yet.
    return entry != nullptr && entry->slot != nullptr && entry->kind == kind ? entry : &empty_entry;
}

bool coarse_clock_allows(const SessionEntry *entry) {
    return static_cast<uint64_t>(monotonic_coarse_us()) - entry->clock_begin < entry->clock_length;
}

void close_all_windows() {
    for_each_entry([](SessionEntry *entry) { entry->window.close(); });
    open_all_again();
}

core::Durability close_window(SessionEntry *entry) {
    const SyncState sync = sync_state();
    entry->window.close();
    entry->sync = sync;
    return wanted_durability(sync);
}

namespace {

// Changes the entry only.
void set_window(SessionEntry *entry, const core::Window<> &window, WindowClock clock, uint64_t begin, uint64_t length) {
    entry->window = window;
    entry->clock = clock;
    entry->clock_begin = begin;
    entry->clock_length = length;
}

} // namespace

void open_window(SessionEntry *entry, const core::Window<> &window) {
    set_window(entry, window, WindowClock::none, 0, 0);
    if (fault_is("no_swap")) {
        static std::atomic<uint64_t> own_word;
        own_word.store(window.expected, std::memory_order_relaxed);
        entry->window.word = &own_word;
    }
}

void open_window_in_tick(SessionEntry *entry, const core::Window<> &window, int64_t begin_us, int64_t end_us) {
    set_window(entry, window, WindowClock::wall, static_cast<uint64_t>(begin_us) * ns_per_us, // modulo 2^64
               static_cast<uint64_t>((end_us - begin_us) * ns_per_us));
}

// The coarse clock lags by up to coarse_lag_us. The window begins that much earlier, so that no reading is before it,
// and ends 10 to 20 ms early rather than late.
void open_window_for(SessionEntry *entry, const core::Window<> &window, int64_t since_us, int64_t us) {
    const int64_t length_us = Max(us, coarse_lag_us) - coarse_lag_us;
    set_window(entry, window, WindowClock::coarse, static_cast<uint64_t>(since_us - coarse_lag_us),
               static_cast<uint64_t>(length_us));
}

Relation open_sequence(const SessionEntry *entry) { return relation_open(entry->sequence, NoLock); }

void forget_last_values() {
    last_id = -1;
    for_each_entry([](SessionEntry *entry) { entry->has_last = false; });
    close_all_windows(); // the next call's slow path will set has_last again
}

void session_relation_changed(Oid relation) {
    if (OidIsValid(relation) && find_entry(relation) == nullptr)
        return;
    last_used.default_generator = &empty_entry;
    sequence_changes++;
    open_all_again();
}

// Of these the answer depends which privileges a role has, besides the sequence's row of pg_class.
void session_roles_changed() {
    sequence_changes++;
    open_all_again();
}

void note_default_changed() {
    if (!default_changed_here())
        default_changed_by = GetCurrentSubTransactionId();
    default_changed_in = transaction_number;
}

bool default_changed_here() { return default_changed_in == transaction_number; }

// A slot of a sequence that this transaction has created: the row that the slot was made from may be gone. No other
// session has used it. A parallel worker leaves it to the leader, which does not know what its workers have drawn from,
// to roll back.
void session_rolls_back(SubTransactionId mine) {
    if (default_changed_by >= mine)
        default_changed_in = 0;
    if (new_sequences_in == transaction_number)
        for_each_entry([mine](SessionEntry *entry) {
            if (entry->found_in < mine || entry->locked_in != transaction_number)
                return;
            note_dropped(entry->slot, slot_key(entry->sequence));
            if (!IsParallelWorker() && !slot_was_freed(entry))
                mark_stale(entry->slot);
        });
    open_all_again();
}

void session_transaction_ended() {
    transaction_number++; // releases the locks, so their checks are void too
    if (!fault_is("stay_open"))
        open_all_again();
}

} // namespace uidgen::pg
