#include "attach.hpp"

#include "config_table.hpp"
#include "drop_hooks.hpp"
#include "errors.hpp"
#include "faults.hpp"
#include "reserve.hpp"
#include "settings.hpp"
#include "worker_node.hpp"

namespace uidgen::pg {

uint64_t transaction_number = 1;

namespace {

constexpr uint64_t never = 0;

// Ordinals are 64 bits wide and never wrap: 2^24 ranges of this size would be needed.
constexpr int64_t largest_step = INT64_C(1) << 40;

HTAB *entries = nullptr; // Oid -> Attached, in TopMemoryContext

void relation_invalidated(Datum, Oid relation) {
    if (entries == nullptr)
        return;
    if (!OidIsValid(relation)) {
        attach_again();
        return;
    }
    auto *a = static_cast<Attached *>(hash_search(entries, &relation, HASH_FIND, nullptr));
    if (a != nullptr)
        a->checked_in = never;
}

void transaction_event(XactEvent event, void *) {
    if (event != XACT_EVENT_PRE_COMMIT && event != XACT_EVENT_PRE_PREPARE && event != XACT_EVENT_PARALLEL_PRE_COMMIT)
        transaction_number++; // locks go with the transaction, and with them what was checked
}

Attached *entry_of(Oid sequence) {
    if (entries == nullptr) {
        HASHCTL control = {};
        control.keysize = sizeof(Oid);
        control.entrysize = sizeof(Attached);
        entries = hash_create("uidgen attached sequences", 16, &control, HASH_ELEM | HASH_BLOBS);
    }
    bool found = false;
    auto *a = static_cast<Attached *>(hash_search(entries, &sequence, HASH_ENTER, &found));
    if (!found) {
        *a = {};
        a->sequence = sequence;
    }
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

Relation open_checked(Oid sequence) {
    Relation rel = try_relation_open(sequence, NoLock);
    if (rel == nullptr)
        ereport(ERROR, (errcode(ERRCODE_UNDEFINED_TABLE), errmsg("sequence with OID %u does not exist", sequence),
                        errhint("It was dropped; name one that exists.")));
    const char *name = RelationGetRelationName(rel);
    if (rel->rd_rel->relkind != RELKIND_SEQUENCE)
        ereport(ERROR, (errcode(ERRCODE_WRONG_OBJECT_TYPE), errmsg("\"%s\" is not a sequence", name),
                        errhint("Name a sequence, or a segment made with segment_create().")));
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

Form_pg_sequence definition_of(Oid sequence, HeapTuple *tuple) {
    *tuple = SearchSysCache1(SEQRELID, ObjectIdGetDatum(sequence));
    if (!HeapTupleIsValid(*tuple))
        elog(ERROR, "cache lookup failed for sequence %u", sequence);
    return reinterpret_cast<Form_pg_sequence>(GETSTRUCT(*tuple));
}

// Whether nextval can't move it: one step leads beyond the last value.
bool is_lease_sequence(Oid sequence) {
    HeapTuple tuple;
    const FormData_pg_sequence *definition = definition_of(sequence, &tuple);
    const bool is_lease = definition->seqincrement == PG_INT64_MAX && definition->seqmin == 1 &&
                          definition->seqmax == PG_INT64_MAX && !definition->seqcycle;
    ReleaseSysCache(tuple);
    return is_lease;
}

// What a parallel worker can know of a new file, as its relcache doesn't say what the leader did: the catalog row was
// written by this transaction, and the file is not the sequence's first, which has the sequence's oid as its number.
bool rewritten_by_leader(Relation rel) {
    if (file_of(rel) == RelationGetRelid(rel))
        return false;
    HeapTuple tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(RelationGetRelid(rel)));
    if (!HeapTupleIsValid(tuple))
        return true;
    const bool ours = TransactionIdIsCurrentTransactionId(HeapTupleHeaderGetXmin(tuple->t_data));
    ReleaseSysCache(tuple);
    return ours;
}

// A transaction that gave the sequence a new file and rolls back brings the old page back, below what was
// leased on the new one. So a generator takes no lease in that transaction. (A segment behaves as nextval.)
void refuse_rewritten(Relation rel) {
    if (rewritten_in_this_transaction(rel) || (IsParallelWorker() && rewritten_by_leader(rel)))
        ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                        errmsg("generator \"%s\" was altered in this transaction", RelationGetRelationName(rel)),
                        errdetail("Ids drawn now could come again if the transaction rolled back."),
                        errhint("Commit first, then draw.")));
}

void check_lease_sequence(Relation rel) {
    if (!is_lease_sequence(RelationGetRelid(rel)))
        ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                        errmsg("sequence \"%s\" can't keep a generator's leases", RelationGetRelationName(rel)),
                        errdetail("nextval could move it."),
                        errhint("ALTER SEQUENCE %s INCREMENT 9223372036854775807 MINVALUE 1 NO MAXVALUE NO CYCLE.",
                                qualified_name(RelationGetRelid(rel)))));
}

core::SequenceState state_on_page(Relation rel) {
    SequencePage page = lock_page_for_reading(rel);
    const core::SequenceState state = read_page(page);
    unlock_page(&page);
    return state;
}

// The first position above everything that the page says was ever leased.
uint64_t position_above(const core::ClockPolicy &policy, int64_t last_value) {
    const int64_t last = Max(last_value, 0);
    const int64_t tick = last < policy.end ? last + 1 : policy.end;
    return static_cast<uint64_t>(tick) << policy.sequence_bits;
}

// A generator that has no history starts above every lease of those that the database has lost since the server
// started, so that a generator or an extension made anew does not repeat ids.
uint64_t first_position(const GeneratorConfig &config, core::SequenceState state, const Slot *database) {
    const uint64_t above_page = position_above(config.policy, state.last_value);
    const auto leased_us = static_cast<int64_t>(database->database.leased_until_us.load(std::memory_order_relaxed));
    if (state.last_value > 1 || leased_us == 0)
        return above_page;
    const uint64_t above_all = position_above(config.policy, core::tick_at(config.layout, leased_us));
    return Max(above_page, above_all);
}

SlotInit generator_init(Relation rel, Oid function, const Slot *database) {
    SlotInit init = {};
    init.kind = SlotKind::generator;
    if (!read_generator_config(schema_of_function(function), RelationGetRelid(rel), &init.config))
        report_not_a_generator(RelationGetRelid(rel));
    refuse_rewritten(rel);
    check_lease_sequence(rel);
    init.file = file_of(rel);
    init.expected = state_on_page(rel);
    init.first_position = first_position(init.config, init.expected, database);
    if (fault_is(Fault::resume_lease) && init.expected.last_value > init.config.policy.lease)
        init.first_position -= static_cast<uint64_t>(init.config.policy.lease) << init.config.policy.sequence_bits;
    return init;
}

SlotInit segment_init(Relation rel, Oid function) {
    if (is_lease_sequence(RelationGetRelid(rel)))
        ereport(ERROR, (errcode(ERRCODE_WRONG_OBJECT_TYPE),
                        errmsg("sequence \"%s\" keeps a generator's leases", RelationGetRelationName(rel)),
                        errhint("Draw from it with uid_next().")));
    SlotInit init = {};
    init.kind = SlotKind::segment;
    init.file = file_of(rel);
    init.expected = state_on_page(rel);
    const int64_t step = read_segment_step(schema_of_function(function), RelationGetRelid(rel));
    init.step = Min(step > 0 ? step : settings::segment_step, largest_step);
    return init;
}

void find_slot(Attached *a, Relation rel, SlotKind kind) {
    const SlotKey key = {MyDatabaseId, a->sequence};
    if (kind == SlotKind::generator && a->database == nullptr) {
        SlotInit init = {};
        init.kind = SlotKind::database;
        a->database = slot_find_or_make({MyDatabaseId, InvalidOid}, init);
    }
    Slot *slot = slot_find(key);
    if (slot == nullptr) {
        const SlotInit init =
            kind == SlotKind::generator ? generator_init(rel, a->function, a->database) : segment_init(rel, a->function);
        note_slot_of_new_relation(rel);
        slot = slot_find_or_make(key, init);
        if (fault_is(Fault::resume_lease) && kind == SlotKind::generator)
            slot->generator.ticks.publish(init.first_position,
                                          position_above(init.config.policy, init.expected.last_value), 0);
    }
    a->slot = slot;
    a->tenancy = slot->tenancy.load(std::memory_order_acquire);
    a->window = {};
    a->share = {};
}

bool page_is_expected(const Slot *slot, Relation rel, core::SequenceState state) {
    return slot->file == file_of(rel) && slot->expected.last_value == state.last_value &&
           slot->expected.is_called == state.is_called;
}

void compare_with_page(Slot *slot, Relation rel) {
    SequencePage page = lock_page_for_reading(rel);
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
    const core::SequenceState state = read_page(page);
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
    if (attached(a, GetUserId()) && a->slot->kind == kind)
        return a; // checked already, through another expression
    a->checked_in = never;
    a->function = function;
    hold_lock(a);
    Relation rel = open_checked(sequence);
    // Under the lock that keeps the slot, so a tenancy that is still the same is ours.
    if (a->slot == nullptr || a->slot->tenancy.load(std::memory_order_acquire) != a->tenancy)
        find_slot(a, rel, kind);
    if (a->slot->kind != kind) {
        if (kind == SlotKind::generator)
            report_not_a_generator(sequence);
        segment_init(rel, function); // names the reason
    }
    compare_with_page(a->slot, rel);
    relation_close(rel, NoLock);
    if (kind == SlotKind::generator)
        worker_row_wanted(a->slot, function);

    a->role = GetUserId();
    a->checked_in = transaction_number;
    return a;
}

Relation open_attached(const Attached *a) { return relation_open(a->sequence, NoLock); }

void attach_again() {
    if (entries == nullptr)
        return;
    HASH_SEQ_STATUS scan;
    hash_seq_init(&scan, entries);
    while (auto *a = static_cast<Attached *>(hash_seq_search(&scan))) {
        a->checked_in = never;
        a->window.length_ns = 0;
    }
}

void attach_register_callbacks() {
    CacheRegisterRelcacheCallback(relation_invalidated, 0);
    RegisterXactCallback(transaction_event, nullptr);
}

void adopt_page(Slot *slot, Relation sequence, core::SequenceState state) {
    if (slot->kind == SlotKind::generator) {
        core::TickWord<> &ticks = slot->generator.ticks;
        const uint64_t above_page = position_above(slot->generator.config.policy, state.last_value);
        // A counter moved downward doesn't take the generator back: it goes on above its own memory.
        const uint64_t above_memory = ticks.written_range().until;
        ticks.give_up(Max(above_page, above_memory));
    } else {
        slot->segment.word.give_up();
    }
    slot->expected = state;
    slot->file = file_of(sequence);
}

} // namespace uidgen::pg
