// uid_look_up_segment(): what a segment of the fleet's registry is like, for segment_attach().

#include "draw/attached_segment.hpp"
#include "base/errors.hpp"
#include "tables/lease_sequence.hpp"
#include "tables/owner_rights.hpp"

namespace uidgen::pg {
namespace {

// Sessions that draw ask for blocks in the same cell, so they are excluded.
void lock_owned(Oid sequence) {
    if (get_rel_relkind(sequence) != RELKIND_SEQUENCE)
        report_not_a_sequence(sequence);
    if (!has_privs_of_role(GetUserId(), owner_of(sequence)))
        aclcheck_error(ACLCHECK_NOT_OWNER, OBJECT_SEQUENCE, get_rel_name(sequence));
    lock_sequence(sequence, ShareRowExclusiveLock);
}

FleetBlock look_up(SlotKey segment, const SegmentRow &row) {
    FleetBlock found = {};
    int64_t give_up_at_us = 0;
    blocks_forget(segment);
    do {
        if (!ask_registry(segment, row, 0, 0))
            report_cannot_ask(row, nullptr);
        wait_for_block(segment, row, &give_up_at_us, nullptr);
    } while (!blocks_take(segment, &found));
    return found;
}

} // namespace
} // namespace uidgen::pg

using namespace uidgen::pg;

extern "C" {

UIDGEN_SQL_FUNCTION(uid_look_up_segment);

// Its arguments are the sequence, and the names of the segment here and at the registry.
Datum uid_look_up_segment(PG_FUNCTION_ARGS) {
    TupleDesc desc;
    const Oid sequence = PG_GETARG_OID(0);
    const SegmentRow row = {0, 0, text_to_cstring(PG_GETARG_TEXT_PP(1)), text_to_cstring(PG_GETARG_TEXT_PP(2)), 0, 0};
    if (!slots_exist())
        report_not_preloaded();
    if (RecoveryInProgress())
        report_in_recovery();
    if (get_call_result_type(fcinfo, nullptr, &desc) != TYPEFUNC_COMPOSITE)
        elog(ERROR, "uid_look_up_segment must return a record");
    lock_owned(sequence);
    const FleetBlock found = look_up(slot_key(sequence), row);
    Datum values[] = {Int64GetDatum(static_cast<int64_t>(found.fleet)), Int64GetDatum(found.increment)};
    bool nulls[] = {false, false};
    return HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(desc), values, nulls));
}
}
