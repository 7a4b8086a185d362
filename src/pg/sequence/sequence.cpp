#include "sequence.hpp"

#include "base/errors.hpp"
#include "base/settings.hpp"
#include "base/time_source.hpp"

namespace uidgen::pg {

void check_is_sequence(Oid relation) {
    const char kind = get_rel_relkind(relation);
    if (kind == '\0')
        report_no_sequence(relation);
    if (kind != RELKIND_SEQUENCE)
        report_not_a_sequence(relation);
}

void lock_sequence(Oid sequence, LOCKMODE mode) {
    LockRelationOid(sequence, mode);
    if (get_rel_relkind(sequence) == '\0')
        report_no_sequence(sequence);
}

core::SequenceRule sequence_rule(Oid sequence) {
    HeapTuple tuple = SearchSysCache1(SEQRELID, ObjectIdGetDatum(sequence));
    if (!HeapTupleIsValid(tuple))
        elog(ERROR, "cache lookup failed for sequence %u", sequence);
    const auto *definition = reinterpret_cast<Form_pg_sequence>(GETSTRUCT(tuple));
    const core::SequenceRule rule = {definition->seqincrement, definition->seqmin, definition->seqmax,
                                     definition->seqcycle};
    ReleaseSysCache(tuple);
    return rule;
}

bool is_lease_sequence(Oid sequence) {
    const core::SequenceRule rule = sequence_rule(sequence);
    return rule.increment == PG_INT64_MAX && rule.min_value == 1 && rule.max_value == PG_INT64_MAX && !rule.cycle;
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

// The magic number that sequence.c writes at the end of a sequence's page.
constexpr uint32 sequence_magic = 0x1717;

Form_pg_sequence_data counter_on(Page page) {
    ItemId item = PageGetItemId(page, FirstOffsetNumber);
    HeapTupleHeader tuple = reinterpret_cast<HeapTupleHeader>(PageGetItem(page, item));
    return reinterpret_cast<Form_pg_sequence_data>(reinterpret_cast<char *>(tuple) + tuple->t_hoff);
}

SequencePage lock_page(Relation sequence, Buffer recent, GenericXLogState *record, BufferLockMode mode) {
    const bool pinned = BufferIsValid(recent) && pin_if_still_there(sequence, recent);
    const SequencePage page = {sequence, pinned ? recent : ReadBuffer(sequence, 0), record};
    LockBuffer(page.buffer, mode);
    const auto *magic = reinterpret_cast<const uint32 *>(PageGetSpecialPointer(BufferGetPage(page.buffer)));
    if (*magic != sequence_magic)
        ereport(ERROR, (errcode(ERRCODE_DATA_CORRUPTED), errmsg("bad magic number in sequence \"%s\": %08X",
                                                                RelationGetRelationName(sequence), *magic)));
    return page;
}

int standby_mode(core::Durability level) {
    return level == core::Durability::remote_written ? SYNC_REP_WAIT_WRITE : SYNC_REP_WAIT_FLUSH;
}

bool standby_has(uint64_t lsn, core::Durability level) {
    LWLockAcquire(SyncRepLock, LW_SHARED);
    const XLogRecPtr reached = WalSndCtl->lsn[standby_mode(level)];
    LWLockRelease(SyncRepLock);
    return reached >= lsn;
}

bool standby_lags(uint64_t lsn, core::Durability level) { return !standby_has(lsn, level) && standbys_are_awaited(); }

// Like CHECK_FOR_INTERRUPTS, but the error of a cancelled query says what it waited for.
void check_for_interrupts_of_wait() {
    if (QueryCancelPending && !ProcDiePending && INTERRUPTS_CAN_BE_PROCESSED()) {
        QueryCancelPending = false;
        (void)get_timeout_indicator(STATEMENT_TIMEOUT, true); // else a later cancel would be reported as the timeout's
        ereport(ERROR, (errcode(ERRCODE_QUERY_CANCELED), errmsg("canceling wait for a synchronous standby"),
                        errdetail("The record of the range has not reached the standby. No value was handed out."),
                        errhint("Bring the standby back, or remove it from synchronous_standby_names.")));
    }
    CHECK_FOR_INTERRUPTS();
}

// The standby's answer does not wake this wait. The wait checks again after an eighth of the time that it has taken so
// far. So it adds little to a short wait, and a long wait costs a few checks a second.
constexpr int64_t shortest_nap_us = us_per_ms;
constexpr int64_t longest_nap_us = 100 * us_per_ms;

void wait_for_standby(uint64_t lsn, core::Durability level, Counters *counters) {
    const int64_t began_us = monotonic_us();
    do {
        const int64_t nap_began_us = monotonic_us();
        const int64_t nap_us = (nap_began_us - began_us) / 8;
        sleep_for_standby(Min(Max(nap_us, shortest_nap_us), longest_nap_us));
        count_time(counters, Stat::standby_waits, nap_began_us);
        check_for_interrupts_of_wait();
    } while (standby_lags(lsn, level));
}

} // namespace

SequencePage lock_page_for_reading(Relation sequence, Buffer recent) {
    return lock_page(sequence, recent, nullptr, BUFFER_LOCK_SHARE);
}

SequencePage lock_page_for_writing(Relation sequence) {
    return lock_page(sequence, InvalidBuffer, GenericXLogStart(sequence), BUFFER_LOCK_EXCLUSIVE);
}

PageState read_page(const SequencePage &page) {
    Page contents = BufferGetPage(page.buffer);
    const FormData_pg_sequence_data *counter = counter_on(contents);
    return {{counter->last_value, counter->is_called}, PageGetLSN(contents)};
}

uint64_t write_page(SequencePage *page, int64_t last_value) {
    const int flags = fault_is(Fault::delta_record) ? 0 : GENERIC_XLOG_FULL_IMAGE;
    Form_pg_sequence_data counter = counter_on(GenericXLogRegisterBuffer(page->record, page->buffer, flags));
    counter->last_value = last_value;
    counter->is_called = true;
    if (!fault_is(Fault::stale_log_cnt))
        counter->log_cnt = 0;
    const XLogRecPtr lsn = GenericXLogFinish(page->record);
    page->record = nullptr;
    return lsn;
}

void unlock_page(SequencePage *page) {
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

core::Durability durable(Counters *counters, uint64_t lsn, core::Durability level) {
    if (lsn == InvalidXLogRecPtr)
        return level;
    if (XLogNeedsFlush(lsn) && !fault_is(Fault::no_flush)) {
        const int64_t began_us = monotonic_us();
        count(counters, Stat::flush_waits);
        XLogFlush(lsn);
        count_time(counters, Stat::flush_waits, began_us);
    }
    if (level == core::Durability::local || fault_is(Fault::no_standby))
        return level;
    if (standby_lags(lsn, level)) {
        count(counters, Stat::standby_waits);
        wait_for_standby(lsn, level, counters);
    }
    return standby_has(lsn, level) ? level : core::Durability::local;
}

bool is_durable(uint64_t lsn, core::Durability level) {
    return level == core::Durability::local || fault_is(Fault::no_standby) || !standby_lags(lsn, level);
}

void durable_soon(uint64_t lsn) {
    if (lsn != InvalidXLogRecPtr && !fault_is(Fault::no_flush))
        XLogSetAsyncXactLSN(lsn);
}

} // namespace uidgen::pg
