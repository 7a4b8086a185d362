// uid_look_up_segment(): what a segment of the fleet's registry is like, for segment_attach().

#include "segment/draw.hpp"
#include "session/session.hpp"
#include "base/errors.hpp"
#include "sequence/sequence.hpp"
#include "config/extension.hpp"

namespace uidgen::pg {
namespace {

// Sessions that draw ask for blocks in the same place, so they are excluded. The server's login asks the registry, so
// it does so only for roles that may create segments.
void lock_owned(Oid sequence) {
    if (get_rel_relkind(sequence) != RELKIND_SEQUENCE)
        report_not_a_sequence(sequence);
    if (!has_privs_of_role(GetUserId(), owner_of(sequence)))
        aclcheck_error(ACLCHECK_NOT_OWNER, OBJECT_SEQUENCE, get_rel_name(sequence));
    if (get_rel_namespace(sequence) != get_namespace_oid("uid_segments", false))
        ereport(ERROR, (errcode(ERRCODE_WRONG_OBJECT_TYPE),
                        errmsg("sequence \"%s\" is not in schema \"uid_segments\"", get_rel_name(sequence)),
                        errhint("Run segment_attach(), which creates it there.")));
    lock_sequence(sequence, ShareRowExclusiveLock);
}

// A block that was asked for before is of another segment, or of another time.
FleetBlock look_up(Slot *segment, const SegmentRow &row) {
    FleetBlock found = {};
    int64_t give_up_at_us = 0;
    blocks_forget(segment);
    for (;;) {
        ask_registry(segment, row, 0, 0, nullptr);
        wait_for_block(segment, row, &give_up_at_us, nullptr);
        if (blocks_take(segment, name_at_registry(row), &found))
            return found;
    }
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
    if (get_call_result_type(fcinfo, nullptr, &desc) != TYPEFUNC_COMPOSITE)
        elog(ERROR, "uid_look_up_segment must return a record");
    lock_owned(sequence);
    const SessionEntry *e = open_entry(sequence, SlotKind::segment);
    const FleetBlock found = look_up(e->slot, row);
    if (!read_segment_row(extension_schema(), sequence).is_attached())
        expire_slot(e->slot); // it was made without the row that is to come
    Datum values[] = {Int64GetDatum(static_cast<int64_t>(found.fleet)), Int64GetDatum(found.increment),
                      BoolGetDatum(found.is_synchronous)};
    bool nulls[lengthof(values)] = {};
    return HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(desc), values, nulls));
}
}
