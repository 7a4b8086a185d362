#include "attach.hpp"

#include "errors.hpp"
#include "faults.hpp"
#include "new_slot.hpp"
#include "reserve.hpp"
#include "ring_memory.hpp"
#include "worker_node.hpp"

namespace uidgen::pg {

uint64_t transaction_number = 1;
int64_t last_id = -1;
uint64_t default_changed_in = 0;

GeneratorFront generator_front = {};
CachedFront cached_front = {};
SharedFront shared_front = {};
SegmentFront segment_front = {};

namespace {

Attached nobody = {}; // in the places that no entry has taken
Attached *no_places[] = {&nobody, &nobody};
uint32_t entry_count = 0;

} // namespace

EntryTable entries = {no_places, 1, 31};

namespace {

constexpr uint64_t never = 0;

bool rings_in_doubt = false; // one that is mapped may be of a generator that was dropped or altered

void clear_front() {
    generator_front.key = cached_front.key = shared_front.key = segment_front.key = 0;
    generator_front.default_role = cached_front.default_role = shared_front.default_role = InvalidOid;
}

// What was in hand goes with it.
void let_go_of_ring(Attached *a) {
    if (cached_front.entry == a)
        cached_front.entry = nullptr;
    if (a->ring_memory != DSM_HANDLE_INVALID)
        ring_memory_unmap(a->ring_memory);
    a->ring_memory = DSM_HANDLE_INVALID;
    a->chunk_first = a->chunk_end = 0;
}

bool slot_is_gone(const Attached *a) {
    return a->slot == nullptr || a->slot->tenancy.load(std::memory_order_acquire) != a->tenancy;
}

// The memory of a ring is given back when the last process lets go of it, so a session that goes on must.
void let_go_of_rings_that_are_gone() {
    rings_in_doubt = false;
    for (uint32_t place = 0; place <= entries.mask; place++) {
        Attached *a = entries.places[place];
        if (a->ring_memory != DSM_HANDLE_INVALID && slot_is_gone(a))
            let_go_of_ring(a);
    }
}

void end_checks(Attached *a) {
    a->checked_in = never;
    clear_front();
}

void relation_invalidated(Datum, Oid relation) {
    if (!OidIsValid(relation)) {
        attach_again();
        return;
    }
    Attached *a = find_attached(relation);
    if (a != nullptr) {
        end_checks(a);
        rings_in_doubt = rings_in_doubt || a->ring_memory != DSM_HANDLE_INVALID;
    }
}

void transaction_event(XactEvent event, void *) {
    if (event == XACT_EVENT_PRE_COMMIT || event == XACT_EVENT_PRE_PREPARE || event == XACT_EVENT_PARALLEL_PRE_COMMIT)
        return;
    transaction_number++; // locks go with the transaction, and with them what was checked
    clear_front();
    if (rings_in_doubt)
        let_go_of_rings_that_are_gone(); // after drop_hooks.cpp has freed what this transaction dropped
}

// An error that aborts a subtransaction only has taken the session's timers along, and with them the bound of how old an
// id of the fronts of cached mode may be.
void subtransaction_event(SubXactEvent event, SubTransactionId, SubTransactionId, void *) {
    if (event == SUBXACT_EVENT_ABORT_SUB)
        clear_front();
}

EntryTable empty_table(uint32_t bits) {
    auto **places = static_cast<Attached **>(MemoryContextAlloc(TopMemoryContext, sizeof(Attached *) << bits));
    const EntryTable table = {places, (UINT32_C(1) << bits) - 1, 32 - bits};
    for (uint32_t place = 0; place <= table.mask; place++)
        table.places[place] = &nobody;
    return table;
}

void enter(Attached *a) {
    uint32_t place = first_place(a->sequence);
    while (entries.places[place] != &nobody)
        place = (place + 1) & entries.mask;
    entries.places[place] = a;
}

// Past the caches, which would remember each oid that is not there.
bool is_in_catalog(Oid relation) {
    ScanKeyData key;
    ScanKeyInit(&key, Anum_pg_class_oid, BTEqualStrategyNumber, F_OIDEQ, ObjectIdGetDatum(relation));
    Relation catalog = table_open(RelationRelationId, AccessShareLock);
    SysScanDesc scan = systable_beginscan(catalog, ClassOidIndexId, true, nullptr, 1, &key);
    const bool found = HeapTupleIsValid(systable_getnext(scan));
    systable_endscan(scan);
    table_close(catalog, AccessShareLock);
    return found;
}

// Finds the entries of sequences that are not there any more; how many. A slot goes with its sequence, so while there is
// one no look-up is needed. A look-up may hear of invalidations, so the table does not change here.
uint32_t find_dropped() {
    uint32_t dropped = 0;
    for (uint32_t place = 0; place <= entries.mask; place++) {
        Attached *a = entries.places[place];
        if (a == &nobody)
            continue;
        a->dropped = slot_is_gone(a) && !is_in_catalog(a->sequence);
        dropped += a->dropped ? 1 : 0;
    }
    return dropped;
}

// What keeps a pointer beyond a call are the fronts. Their other fields stay: no_standby is of use to all entries.
void free_entry(Attached *a) {
    let_go_of_ring(a);
    if (generator_front.entry == a)
        generator_front.entry = nullptr;
    if (segment_front.entry == a)
        segment_front.entry = nullptr;
    pfree(a->memory);
}

// Room for another entry: that of dropped sequences, if it is half of all, so that sessions that go on creating and dropping
// sequences stay small; else in a table of twice the size.
void make_room() {
    const uint32_t dropped = find_dropped();
    const uint32_t bits = entries.places == no_places ? 6 : 32 - entries.shift;
    const EntryTable old = entries;
    entries = empty_table(dropped * 2 > entry_count || old.places == no_places ? bits : bits + 1);
    clear_front();
    for (uint32_t place = 0; place <= old.mask; place++) {
        Attached *a = old.places[place];
        if (a == &nobody)
            continue;
        if (a->dropped)
            free_entry(a);
        else
            enter(a);
    }
    entry_count -= dropped;
    if (old.places != no_places)
        pfree(old.places);
}

Attached *entry_of(Oid sequence) {
    Attached *a = find_attached(sequence);
    if (a != nullptr)
        return a;
    if (entry_count >= entries.mask / 4)
        make_room();
    void *memory = MemoryContextAllocZero(TopMemoryContext, sizeof(Attached) + alignof(Attached) - 1);
    a = reinterpret_cast<Attached *>(TYPEALIGN(alignof(Attached), memory));
    a->memory = memory;
    a->sequence = sequence;
    enter(a);
    entry_count++;
    return a;
}

void hold_lock(Attached *a) {
    if (a->locked_in == transaction_number)
        return;
    ResourceOwner owner = CurrentResourceOwner;
    if (!fault_is(Fault::release_lock))
        CurrentResourceOwner = TopTransactionResourceOwner;
    LockRelationOid(a->sequence, RowExclusiveLock);
    CurrentResourceOwner = owner;
    a->locked_in = transaction_number;
}

// The lock is held, so the relation stays; a look-up of its own, as try_relation_open() does, would tell nothing more.
Relation open_checked(Oid sequence) {
    Relation rel = RelationIdGetRelation(sequence);
    if (rel == nullptr)
        report_no_sequence(sequence);
    const char *name = RelationGetRelationName(rel);
    if (rel->rd_rel->relkind != RELKIND_SEQUENCE)
        report_not_a_sequence(sequence);
    if (pg_class_aclcheck(sequence, GetUserId(), ACL_USAGE | ACL_UPDATE) != ACLCHECK_OK)
        ereport(ERROR, (errcode(ERRCODE_INSUFFICIENT_PRIVILEGE), errmsg("permission denied for sequence %s", name),
                        errhint("GRANT USAGE ON SEQUENCE %s TO the role that shall draw.", qualified_name(sequence))));
    if (rel->rd_rel->relpersistence != RELPERSISTENCE_PERMANENT)
        ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
                        errmsg("sequence \"%s\" is %s", name,
                               rel->rd_rel->relpersistence == RELPERSISTENCE_TEMP ? "temporary" : "unlogged"),
                        errdetail("A crash would bring values of it back."),
                        errhint("Use a permanent sequence, or nextval().")));
    return rel;
}

bool used_in_this_transaction(Oid sequence) {
    const Attached *a = find_attached(sequence);
    return a != nullptr && a->locked_in == transaction_number;
}

// Of another slot than before, or of another life of it.
void map_ring(Attached *a, Slot *slot) {
    if (!slot->generator.config.cached.on)
        return;
    RingState &ring = slot->generator.ring;
    a->ring = ring_memory_map(ring.memory, &ring.hints, slot->generator.config.cached.cells);
    if (a->ring.cells() == 0)
        ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE), errmsg("the ring of a generator is gone"),
                        errhint("Try again.")));
    a->ring_memory = ring.memory;
    rings_in_doubt = true; // the transaction may roll back what it has made
}

// Any of this may fail: the entry has no slot until it has all that belongs to it.
void find_slot(Attached *a, Relation rel, SlotKind kind) {
    let_go_of_ring(a);
    a->slot = nullptr;
    Slot *slot = slot_find({MyDatabaseId, a->sequence});
    if (slot == nullptr) {
        slot = kind == SlotKind::generator
                   ? new_generator_slot(rel, a->function, used_in_this_transaction)
                   : new_segment_slot(rel, a->function, used_in_this_transaction);
    }
    a->window = {};
    a->share = {};
    if (slot->kind == SlotKind::generator)
        map_ring(a, slot);
    a->tenancy = slot->tenancy.load(std::memory_order_acquire);
    a->slot = slot;
}

bool page_is_expected(const Slot *slot, Relation rel, const PageState &state) {
    return slot->file == file_of(rel) && same_state(slot->expected, state);
}

void compare_with_page(Attached *a, Relation rel) {
    Slot *slot = a->slot;
    SequencePage page = lock_page_for_reading(rel, a->buffer);
    a->buffer = page.buffer;
    const bool expected = page_is_expected(slot, rel, read_page(page));
    const bool new_file = slot->file != file_of(rel);
    unlock_page(&page);
    if (slot->kind == SlotKind::generator && (new_file || rewritten_in_this_transaction(rel))) {
        refuse_rewritten(rel);
        check_lease_sequence(rel);
    }
    if (likely(expected))
        return;
    page = lock_page_for_writing(rel);
    const PageState state = read_page(page);
    if (!page_is_expected(slot, rel, state)) // another backend may have adopted it meanwhile
        adopt_page(slot, rel, state);
    unlock_page(&page);
}

} // namespace

Attached *attach(Oid sequence, SlotKind kind, Oid function) {
    if (!slots_exist())
        report_not_preloaded();
    if (RecoveryInProgress())
        report_in_recovery();

    Attached *a = entry_of(sequence);
    if (attached(a, front_key(GetUserId(), sequence)) && a->slot->kind == kind)
        return a; // checked already; another sequence was used in between
    end_checks(a);
    a->function = function;
    hold_lock(a);
    Relation rel = open_checked(sequence);
    // Under the lock that keeps the slot, so a tenancy that is still the same is ours.
    if (slot_is_gone(a))
        find_slot(a, rel, kind);
    if (a->slot->kind != kind) {
        if (kind == SlotKind::generator)
            report_not_a_generator(sequence);
        report_lease_sequence(sequence);
    }
    compare_with_page(a, rel);
    relation_close(rel, NoLock);
    a->slot->used_at.store(GetCurrentTransactionStartTimestamp(), std::memory_order_relaxed);
    if (kind == SlotKind::generator)
        worker_row_wanted(a->slot, function);

    a->key = GetUserId() != role_of_signs ? front_key(GetUserId(), sequence) : 0;
    a->checked_in = transaction_number;
    return a;
}

Attached *find_attached(Oid sequence) {
    for (uint32_t place = first_place(sequence);; place = (place + 1) & entries.mask) {
        Attached *a = entries.places[place];
        if (a == &nobody)
            return nullptr;
        if (a->sequence == sequence)
            return a;
    }
}

Relation open_attached(const Attached *a) { return relation_open(a->sequence, NoLock); }

void attach_again() {
    for (uint32_t place = 0; place <= entries.mask; place++) {
        Attached *a = entries.places[place];
        end_checks(a);
        rings_in_doubt = rings_in_doubt || a->ring_memory != DSM_HANDLE_INVALID;
        a->window.length_ns = 0;
    }
}

// An invalidation while drawing may have ended what was checked.
uint64_t front_key_of(const Attached *a) {
    return attached(a, front_key(GetUserId(), a->sequence)) ? a->key : 0;
}

uint64_t front_key_of(const Attached *a, StandbyMark mark) {
    return surely_no_standby_is_awaited(mark) ? front_key_of(a) : 0;
}

void bring_to_front(Attached *a) {
    generator_front = {front_key_of(a), InvalidOid, standby_mark(), &a->slot->generator.ticks, a->window, a};
}

void bring_to_front(Attached *a, uint64_t next) {
    if (segment_front.entry != nullptr) {
        segment_front.entry->last_value = segment_front.last_value();
        segment_front.entry->keeps_last_value = true;
    }
    const StandbyMark mark = standby_mark();
    const uint64_t key = next < a->share.limit ? front_key_of(a, mark) : 0;
    segment_front = {key, mark, &a->slot->segment.word, a->share, next, a};
    a->keeps_last_value = false;
}

void forget_last_values() {
    last_id = -1;
    segment_front.key = 0;
    segment_front.entry = nullptr;
    for (uint32_t place = 0; place <= entries.mask; place++)
        entries.places[place]->keeps_last_value = false;
}

void attach_register_callbacks() {
    CacheRegisterRelcacheCallback(relation_invalidated, 0);
    RegisterXactCallback(transaction_event, nullptr);
    RegisterSubXactCallback(subtransaction_event, nullptr);
}

void adopt_page(Slot *slot, Relation sequence, const PageState &state) {
    if (slot->kind == SlotKind::generator) {
        core::TickWord<> &ticks = slot->generator.ticks;
        const uint64_t above_page = position_above(slot->generator.config, state.counter.last_value);
        // A counter moved downward doesn't take the generator back: it goes on above its own memory.
        const uint64_t above_memory = ticks.written_range().until;
        ticks.give_up(Max(above_page, above_memory));
        slot->generator.backup.give_up(Max(above_page, above_memory));
        core::raise_to(slot->generator.ring.given_up_below, Max(above_page, above_memory), std::memory_order_relaxed);
    } else {
        // What is lost is what makes the next range smaller; a counter that moved while nothing was in hand costs
        // nothing.
        SegmentState &segment = slot->segment;
        const uint64_t next = segment.word.next();
        if (next < segment.word.end()) {
            segment.step = core::disturbed_step(segment.step.size);
            segment.reserved_at += segment.word.end() - next;
        }
        segment.disturbed = true;
        segment.word.give_up();
    }
    slot->expected = state;
    slot->file = file_of(sequence);
}

} // namespace uidgen::pg
