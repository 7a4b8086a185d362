#include "sequence.hpp"

#include "memory/generator_state.hpp"
#include "memory/segment_state.hpp"

namespace uidgen::pg {

void report_no_sequence(Oid sequence) {
    ereport(ERROR, (errcode(ERRCODE_UNDEFINED_TABLE), errmsg("sequence with OID %u does not exist", sequence),
                    errhint("Use a sequence or generator that exists.")));
}

void report_not_a_sequence(Oid relation) {
    ereport(ERROR, (errcode(ERRCODE_WRONG_OBJECT_TYPE), errmsg("\"%s\" is not a sequence", get_rel_name(relation)),
                    errhint("Use a sequence, or create a segment with segment_create().")));
}

void check_is_sequence(Oid relation) {
    const char kind = get_rel_relkind(relation);
    if (kind == '\0')
        report_no_sequence(relation);
    if (kind != RELKIND_SEQUENCE)
        report_not_a_sequence(relation);
}

namespace {

// Reads pg_sequence by the syscache. False: there is no sequence of that oid.
bool find_rule(Oid sequence, core::SequenceRule *rule) {
    HeapTuple tuple = SearchSysCache1(SEQRELID, ObjectIdGetDatum(sequence));
    if (!HeapTupleIsValid(tuple))
        return false;
    const auto *definition = reinterpret_cast<Form_pg_sequence>(GETSTRUCT(tuple));
    *rule = {.increment = definition->seqincrement,
             .min_value = definition->seqmin,
             .max_value = definition->seqmax,
             .cycle = definition->seqcycle};
    ReleaseSysCache(tuple);
    return true;
}

} // namespace

core::SequenceRule sequence_rule(Oid sequence) {
    core::SequenceRule rule;
    if (!find_rule(sequence, &rule))
        elog(ERROR, "cache lookup failed for sequence %u", sequence);
    return rule;
}

bool is_lease_sequence(Oid relation) {
    core::SequenceRule rule;
    return find_rule(relation, &rule) && rule.increment == PG_INT64_MAX && rule.min_value == 1 &&
           rule.max_value == PG_INT64_MAX && !rule.cycle;
}

void check_lease_sequence(Oid sequence) {
    if (!is_lease_sequence(sequence))
        ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                        errmsg("sequence \"%s\" cannot hold the leases of a generator", get_rel_name(sequence)),
                        errdetail("A call of nextval() could move its counter."),
                        errhint("Run ALTER SEQUENCE %s INCREMENT 9223372036854775807 MINVALUE 1 NO MAXVALUE NO CYCLE.",
                                qualified_name(sequence))));
}

void report_lease_sequence(Oid sequence) {
    ereport(ERROR, (errcode(ERRCODE_WRONG_OBJECT_TYPE),
                    errmsg("sequence \"%s\" holds the leases of a generator", get_rel_name(sequence)),
                    errhint("Draw from it with uid_next(), or raise it with uid_generator_raise().")));
}

namespace {

// What the open transaction has done to a catalog row.
enum class RowHere { nothing, updated, inserted };

// What it has done to the relation's row in that catalog, by the syscache. Error if there is no row.
RowHere change_of_row_here(SysCacheIdentifier catalog, Oid relation) {
    HeapTuple tuple = SearchSysCache1(catalog, ObjectIdGetDatum(relation));
    if (!HeapTupleIsValid(tuple))
        elog(ERROR, "cache lookup failed for relation %u", relation);
    const bool is_ours = TransactionIdIsCurrentTransactionId(HeapTupleHeaderGetXmin(tuple->t_data));
    const bool is_updated = (tuple->t_data->t_infomask & HEAP_UPDATED) != 0;
    ReleaseSysCache(tuple);
    if (!is_ours)
        return RowHere::nothing;
    return is_updated ? RowHere::updated : RowHere::inserted;
}

// Whether the open transaction has written the relation's row of pg_class.
bool is_written_here(Oid relation) { return change_of_row_here(RELOID, relation) != RowHere::nothing; }

} // namespace

// The relcache of a parallel worker does not know what the leader has created. The row of pg_sequence says it, which
// GRANT and OWNER TO leave alone, unlike that of pg_class.
bool made_in_this_transaction(Relation sequence) {
    return sequence->rd_createSubid != InvalidSubTransactionId ||
           (IsParallelWorker() && change_of_row_here(SEQRELID, RelationGetRelid(sequence)) == RowHere::inserted);
}

namespace {

// In a parallel worker: whether its leader holds a lock that excludes draws of others. GRANT takes none. Asks the lock
// manager, and takes no lock.
bool leader_excludes_draws(Oid sequence) {
    LOCKTAG tag;
    int holders = 0;
    SET_LOCKTAG_RELATION(tag, MyDatabaseId, sequence);
    (void)GetLockConflicts(&tag, RowExclusiveLock, &holders);
    return holders > 0;
}

// Whether the transaction has given the sequence a new file, by catalogs and, in a parallel worker, the lock manager
// and the slot. A parallel worker's relcache does not say so; with wal_level=minimal it says so of a sequence that the
// leader has created, too. But four facts say it: this transaction wrote the catalog row, the file is not the
// sequence's first, whose number is the sequence's oid, no other session draws, and no generator draws from that file,
// as one may after RENAME or OWNER TO. (A slot's file is read without a lock: it changes with the sequence's. The
// lock on that keeps other sessions from it, and the leader's own draws are refused.)
bool is_rewritten(Relation rel) EXCLUDES(page_lock, table_lock, slot_lock, state_lock) UNCHECKED {
    const Oid sequence = RelationGetRelid(rel);
    if (!IsParallelWorker())
        return rewritten_in_this_transaction(rel);
    if (file_of(rel) == sequence || !is_written_here(sequence) || !leader_excludes_draws(sequence))
        return false;
    const Slot *slot = find_slot(slot_key(sequence), SlotKind::generator);
    return slot == nullptr || phase_of(slot) != SlotPhase::ready || slot->file != file_of(rel);
}

// Whether a rollback, or a crash that loses the commit, would take the page away: the transaction has created the
// sequence, or has given it a new file. In a parallel worker it may have changed the rows only, but no other session
// draws meanwhile. By catalogs and is_rewritten(), not by the page.
bool has_uncommitted_page(Relation rel) EXCLUDES(page_lock, table_lock, slot_lock, state_lock) {
    return (IsParallelWorker() ? change_of_row_here(SEQRELID, RelationGetRelid(rel)) != RowHere::nothing
                               : made_in_this_transaction(rel)) ||
           is_rewritten(rel);
}

} // namespace

void report_altered_here(Oid sequence) {
    ereport(ERROR,
            (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
             errmsg("cannot use sequence \"%s\" because it was altered in this transaction", get_rel_name(sequence)),
             errdetail("If the transaction rolled back, values drawn now could be drawn again."),
             errhint("Commit the transaction before you draw.")));
}

void check_not_rewritten(Relation rel) {
    if (is_rewritten(rel) && !fault_is("draw_altered"))
        report_altered_here(RelationGetRelid(rel));
}

const char *roles_that_lack(Oid granted, Oid lacking, AclMode privileges) {
    HeapTuple tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(granted));
    if (!HeapTupleIsValid(tuple))
        report_no_sequence(granted);
    bool none = true;
    const Datum list = SysCacheGetAttr(RELOID, tuple, Anum_pg_class_relacl, &none);
    const Acl *acl = none ? acldefault(OBJECT_SEQUENCE, reinterpret_cast<Form_pg_class>(GETSTRUCT(tuple))->relowner)
                          : DatumGetAclPCopy(list);
    ReleaseSysCache(tuple);
    const char *roles = nullptr;
    List *seen = NIL; // a role may have grants of several grantors
    for (int i = 0; i < ACL_NUM(acl); i++) {
        const AclItem &item = ACL_DAT(acl)[i];
        const bool is_public = item.ai_grantee == ACL_ID_PUBLIC;
        const char *role = is_public ? "PUBLIC" : GetUserNameFromId(item.ai_grantee, true);
        if ((item.ai_privs & privileges) == 0 || role == nullptr || list_member_oid(seen, item.ai_grantee) ||
            pg_class_aclcheck(lacking, item.ai_grantee, privileges) == ACLCHECK_OK)
            continue;
        seen = lappend_oid(seen, item.ai_grantee);
        const char *quoted = is_public ? role : quote_identifier(role);
        roles = roles == nullptr ? quoted : psprintf("%s, %s", roles, quoted);
    }
    return roles;
}

// The lock is held, so the relation stays. A look-up as in try_relation_open() would add nothing.
Relation open_to_draw(Oid sequence, SlotKind kind) {
    Relation rel = RelationIdGetRelation(sequence);
    if (rel == nullptr)
        report_no_sequence(sequence);
    const char *name = RelationGetRelationName(rel);
    if (rel->rd_rel->relkind != RELKIND_SEQUENCE)
        report_not_a_sequence(sequence);
    if (pg_class_aclcheck(sequence, GetUserId(), draw_privileges) != ACLCHECK_OK)
        report_no_privilege(sequence);
    const bool is_temporary = rel->rd_rel->relpersistence == RELPERSISTENCE_TEMP;
    if (rel->rd_rel->relpersistence != RELPERSISTENCE_PERMANENT)
        ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
                        errmsg("cannot draw from %s sequence \"%s\"", is_temporary ? "temporary" : "unlogged", name),
                        errdetail("After a crash, such a sequence could return values again."),
                        is_temporary ? errhint("Use a permanent sequence, or draw with nextval().")
                                     : errhint("The owner of the sequence can run: ALTER SEQUENCE %s SET LOGGED;",
                                               qualified_name(sequence))));
    if (kind == SlotKind::generator)
        check_not_rewritten(rel);
    return rel;
}

namespace {

// The magic number that sequence.c writes at the end of a sequence's page.
constexpr uint32 sequence_magic = 0x1717;

// The counter in the only tuple of a sequence's page.
Form_pg_sequence_data counter_on(Page page) REQUIRES_SHARED(page_lock) {
    ItemId item = PageGetItemId(page, FirstOffsetNumber);
    HeapTupleHeader tuple = reinterpret_cast<HeapTupleHeader>(PageGetItem(page, item));
    return reinterpret_cast<Form_pg_sequence_data>(reinterpret_cast<char *>(tuple) + tuple->t_hoff);
}

// Reads, pins and locks the only page of an open sequence, until unlock_page(). Error if it is damaged.
SequencePage lock_page(Relation sequence, GenericXLogState *record, BufferLockMode mode)
    EXCLUDES(page_lock, table_lock, slot_lock, state_lock) {
    const SequencePage page = {.relation = sequence, .buffer = ReadBuffer(sequence, 0), .record = record};
    LockBuffer(page.buffer, mode);
    const auto *magic = reinterpret_cast<const uint32 *>(PageGetSpecialPointer(BufferGetPage(page.buffer)));
    if (*magic != sequence_magic)
        ereport(ERROR, (errcode(ERRCODE_DATA_CORRUPTED), errmsg("bad magic number in sequence \"%s\": %08X",
                                                                RelationGetRelationName(sequence), *magic)));
    return page;
}

// What a sequence's page says: the counter, and the end of the last record of it.
PageState state_on(Page page) REQUIRES_SHARED(page_lock) {
    const FormData_pg_sequence_data *counter = counter_on(page);
    return {{counter->last_value, counter->is_called}, PageGetLSN(page)};
}

constexpr XLogRecPtr lsn_of_no_page = PG_UINT64_MAX;

// Has the slot expect that page, which is of its file.
void expect_page(Slot *slot, const PageState &state) REQUIRES(page_lock) {
    slot->expected = state;
    slot->uncommitted_lsn = state.lsn;
    if (slot->uncommitted_in != 0 && !fault_is("trust_commit"))
        slot->expected.lsn = lsn_of_no_page;
}

// Whether the page is what a transaction wrote that had not committed then. It may be this one.
bool is_uncommitted_page(const Slot *slot, RelationFile file, const PageState &state) REQUIRES_SHARED(page_lock) {
    return slot->uncommitted_in != 0 && slot->file == file &&
           same_state({slot->expected.counter, slot->uncommitted_lsn}, state);
}

// The open transaction, also in its parallel workers; 0: it has written nothing.
uint64_t this_transaction() { return U64FromFullTransactionId(GetTopFullTransactionIdIfAny()); }

// Whether the slot expects that of its page, in this transaction.
bool is_expected(const Slot *slot, RelationFile file, const PageState &state) REQUIRES_SHARED(page_lock) {
    if (likely(slot->file == file && same_state(slot->expected, state)))
        return true;
    return is_uncommitted_page(slot, file, state) && slot->uncommitted_in == this_transaction();
}

// Whether the synchronous standbys have flushed it, by PostgreSQL's shared memory. Takes SyncRepLock for a moment.
bool standby_has(uint64_t lsn) {
    LWLockAcquire(SyncRepLock, LW_SHARED);
    const XLogRecPtr reached = WalSndCtl->lsn[SYNC_REP_WAIT_FLUSH];
    LWLockRelease(SyncRepLock);
    return reached >= lsn;
}

// Whether a standby is awaited that has not. Takes SyncRepLock, too.
bool standby_lags(uint64_t lsn) { return !standby_has(lsn) && standbys_are_awaited(); }

// The standby's answer does not wake this wait. The wait checks again after an eighth of the time that it has taken so
// far. So it adds little to a short wait, and a long wait costs a few checks a second.
constexpr int64_t shortest_nap_us = us_per_ms;
constexpr int64_t longest_nap_us = 100 * us_per_ms;

} // namespace

SequencePage lock_page_for_reading(Relation sequence) UNCHECKED {
    return lock_page(sequence, nullptr, BUFFER_LOCK_SHARE);
}

SequencePage lock_page_for_writing(Relation sequence) UNCHECKED {
    return lock_page(sequence, GenericXLogStart(sequence), BUFFER_LOCK_EXCLUSIVE);
}

// A counter that was moved down does not take a generator back. It continues above its own memory.
void adopt_page(Slot *slot, RelationFile file, const PageState &state) {
    core::PositionAllocator<> &word = word_of(slot);
    uint64_t end = word.written_range().until;
    if (slot->kind == SlotKind::generator) {
        GeneratorState &generator = generator_of(slot);
        end = Max(end, core::position_above(generator.config.policy, state.counter.last_value));
        generator.backup.discard_below(end);
    }
    const uint64_t expected = slot->passed_over.expect(word.last() + 1, end);
    const uint64_t passed_over = word.discard_below(end);
    slot->passed_over.settle(expected, passed_over);
    if (slot->kind == SlotKind::segment)
        change_ranges(slot, [passed_over](SegmentRanges *reserved) { reserved->steps.disturb(passed_over); });
    slot->file = file;
    slot->uncommitted_in = 0;
    expect_page(slot, state);
}

namespace {

// Logs the page as it is: the transaction that has reserved on it has committed, because this one sees the page. What
// it has reserved stays in the slot, except for the backup worker, and is durable when a record is that follows the
// commit's.
void log_after_commit(Slot *slot, SequencePage *page) REQUIRES(page_lock) {
    core::PositionAllocator<> &word = word_of(slot);
    slot->uncommitted_in = 0;
    word.require(write_page(page, slot->expected.counter.last_value, slot));
    if (slot->kind == SlotKind::generator)
        generator_of(slot).backup.discard_below(word.last() + 1); // what is usable below is not durable
}

} // namespace

SequencePage lock_matched_page(Slot *slot, Relation sequence) {
    if (fault_is("take_xid"))
        (void)GetTopTransactionId();
    const bool is_uncommitted = has_uncommitted_page(sequence);
    const RelationFile file = file_of(sequence);
    SequencePage page = lock_page_for_writing(sequence);
    if (!is_expected(slot, file, read_page(page)) && is_uncommitted_page(slot, file, read_page(page))) {
        log_after_commit(slot, &page);
        unlock_page(&page);
        page = lock_page_for_writing(sequence);
    }
    if (!is_expected(slot, file, read_page(page)) && !fault_is("blind_reserve"))
        adopt_page(slot, file, read_page(page));
    const bool was_uncommitted = slot->uncommitted_in != 0;
    slot->uncommitted_in = is_uncommitted ? this_transaction() : 0;
    if (was_uncommitted && !is_uncommitted) // a worker has taken for a new file what is none
        expect_page(slot, read_page(page));
    return page;
}

bool find_expected_page(const Slot *slot, Relation sequence, PagePlace *place) {
    SequencePage page = lock_page_for_reading(sequence);
    *place = {relation_place(sequence), page.buffer};
    const bool expected = is_expected(slot, file_of(sequence), read_page(page));
    unlock_page(&page);
    return expected || fault_is("ignore_setval");
}

void match_page(Slot *slot, Relation sequence) {
    SequencePage page = lock_matched_page(slot, sequence);
    unlock_page(&page);
}

// The page was a sequence's when the place was noted, so its magic number is not compared again. The pin ends before
// anything can fail. The owner of a portal or transaction would allocate memory for its first pin, and free it at its
// end; the one used here keeps its memory.
bool is_page_expected(const Slot *slot, const PagePlace &place) UNCHECKED {
    static ResourceOwner owner_of_pin = ResourceOwnerCreate(nullptr, "uidgen");
    ResourceOwner owner = CurrentResourceOwner;
    CurrentResourceOwner = owner_of_pin;
    bool expected = BufferIsValid(place.buffer) && ReadRecentBuffer(place.relation, MAIN_FORKNUM, 0, place.buffer);
    if (likely(expected)) {
        LockBuffer(place.buffer, BUFFER_LOCK_SHARE);
        expected = is_expected(slot, file_of(place.relation), state_on(BufferGetPage(place.buffer)));
        UnlockReleaseBuffer(place.buffer);
    }
    CurrentResourceOwner = owner;
    return expected || fault_is("ignore_setval");
}

PageState read_page(const SequencePage &page) { return state_on(BufferGetPage(page.buffer)); }

uint64_t write_page(SequencePage *page, int64_t last_value, Slot *slot) {
    const int flags = fault_is("delta_record") ? 0 : GENERIC_XLOG_FULL_IMAGE;
    Form_pg_sequence_data counter = counter_on(GenericXLogRegisterBuffer(page->record, page->buffer, flags));
    counter->last_value = last_value;
    counter->is_called = true;
    if (!fault_is("stale_log_cnt"))
        counter->log_cnt = 0;
    const XLogRecPtr lsn = GenericXLogFinish(page->record);
    page->record = nullptr;
    if (slot != nullptr) {
        expect_page(slot, read_page(*page));
        slot->counters.count(Stat::records);
    }
    return lsn;
}

void unlock_page(SequencePage *page) UNCHECKED {
    UnlockReleaseBuffer(page->buffer);
    if (page->record != nullptr)
        GenericXLogAbort(page->record);
}

PageState page_state(Relation sequence) {
    SequencePage page = lock_page_for_reading(sequence);
    const PageState state = read_page(page);
    unlock_page(&page);
    return state;
}

core::Durability make_durable(Counters *counters, uint64_t lsn, core::Durability level) {
    if (lsn == InvalidXLogRecPtr)
        return level;
    if (XLogNeedsFlush(lsn) && !fault_is("no_flush")) {
        const int64_t began_us = monotonic_us();
        counters->count(Stat::flush_waits);
        XLogFlush(lsn);
        counters->count_time(Stat::flush_waits, began_us);
    }
    if (level == core::Durability::local || fault_is("no_standby"))
        return level;
    if (standby_lags(lsn)) {
        counters->count(Stat::standby_waits);
        const int64_t began_us = monotonic_us();
        do {
            const int64_t nap_began_us = monotonic_us();
            const int64_t nap_us = (nap_began_us - began_us) / 8;
            sleep_for(Min(Max(nap_us, shortest_nap_us), longest_nap_us), WAIT_EVENT_SYNC_REP);
            counters->count_time(Stat::standby_waits, nap_began_us);
        } while (standby_lags(lsn));
    }
    return standby_has(lsn) ? level : core::Durability::local;
}

bool is_durable(uint64_t lsn, core::Durability level) {
    return level == core::Durability::local || fault_is("no_standby") || !standby_lags(lsn);
}

void make_durable_soon(uint64_t lsn) {
    if (lsn != InvalidXLogRecPtr && !fault_is("no_flush"))
        XLogSetAsyncXactLSN(lsn);
}

} // namespace uidgen::pg
