// segment_next(), segment_next_array(), segment_reserve(), segment_last(), segment_set(): the entry points of segments,
// by the name of a segment or sequence, or by regclass. And uid_look_up_segment(): what a segment of the fleet's
// registry is like, for segment_attach().

#include "array.hpp"
#include "session/names.hpp"
#include "segment/blocks.hpp"
#include "segment/ranges.hpp"
#include "config/label.hpp"

namespace uidgen::pg {
namespace {

// Keeps it for segment_last(), in the session's entry.
Datum return_value(SessionEntry *entry, int64_t value) {
    entry->last_value = value;
    return Int64GetDatum(value);
}

// The entry of the first argument: of a regclass, or of open_entry_named().
using OpenEntry = SessionEntry *(*)(FunctionCallInfo);
// Opens the entry, under RowExclusiveLock on the sequence.
SessionEntry *open_entry_of(FunctionCallInfo fcinfo) { return open_entry(PG_GETARG_OID(0), SlotKind::segment); }

// Opens the entry, and draws a value from its window, else by draw_segment(), which may reserve a range, flush or wait.
// Not inlined, so that the fast path has fewer registers to save. An entry that was opened again may still have its
// window. So transactions of one call each use it too.
template <OpenEntry open> [[gnu::noinline]] Datum open_and_draw(FunctionCallInfo fcinfo) {
    SessionEntry *entry = last_used.segment = open(fcinfo);
    int64_t value;
    if (!draw_next<SlotKind::segment>(entry, GetUserId(), &value))
        value = static_cast<int64_t>(draw_segment(entry, 1).first);
    entry->has_last = true;
    return return_value(entry, value);
}

// A DrawSome, from an open entry: by draw_segment(), which may reserve a range, flush or wait.
uint64_t draw_some_values(SessionEntry *entry, uint64_t want, int64_t *out) {
    const SegmentValues values = draw_segment(entry, want);
    for (uint64_t i = 0; i < values.count; i++)
        out[i] = static_cast<int64_t>(values.first + i * values.increment);
    return values.count;
}

// An array, drawn from an open entry by draw_segment(); the entry keeps the last value for segment_last().
Datum next_values(SessionEntry *entry, int64_t count) {
    ArrayType *values = draw_array(entry, count, draw_some_values, &entry->last_value);
    entry->has_last = entry->has_last || count > 0;
    return PointerGetDatum(values);
}

// The whole of segment_reserve(): opens the entry, and moves the counter, durably (reserve_block()). A caller that
// passes NULL would take a result of NULL for a block, so it is an error.
Datum reserve_as_row(FunctionCallInfo fcinfo, OpenEntry open) {
    if (PG_ARGISNULL(0) || PG_ARGISNULL(1))
        ereport(ERROR, (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED), errmsg("segment and count must not be null"),
                        errhint("Pass a segment or sequence, and the number of values to reserve.")));
    const int64 count = PG_GETARG_INT64(1);
    if (count < 1)
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                        errmsg("count of values to reserve must be positive: %lld", static_cast<long long>(count)),
                        errhint("Use a count of 1 or more.")));
    TupleDesc desc = row_type(fcinfo);
    const SessionEntry *entry = open(fcinfo);
    const core::PlannedRange block = reserve_block(entry, static_cast<uint64_t>(count));
    return make_row(desc, {Int64GetDatum(block.first), Int64GetDatum(block.last),
                           Int64GetDatum(sequence_rule(entry->sequence).increment)});
}

// Takes ShareRowExclusiveLock on a sequence of the caller's in uid_segments; error for another. Sessions that draw ask
// for blocks in the same place, so they are excluded. The server's login asks the registry, so it does so only for
// roles that may create segments.
void lock_owned(Oid sequence) {
    if (get_rel_relkind(sequence) != RELKIND_SEQUENCE)
        report_not_a_sequence(sequence);
    check_owner(sequence);
    if (get_rel_namespace(sequence) != get_namespace_oid("uid_segments", false))
        ereport(ERROR, (errcode(ERRCODE_WRONG_OBJECT_TYPE),
                        errmsg("sequence \"%s\" is not in schema \"uid_segments\"", get_rel_name(sequence)),
                        errhint("Run segment_attach(), which creates it there.")));
    lock_sequence(sequence, ShareRowExclusiveLock);
    check_owner(sequence); // it may have got another one meanwhile
}

} // namespace

// Fast path: one swap of the word in shared memory, without a lock; else open_and_draw(). Not STRICT: the function's
// own test of one argument costs less than the executor's loop over all.
UIDGEN_SQL_FUNCTION(segment_next_of) {
    const Oid role = GetUserId();
    int64_t value;
    if (unlikely(PG_ARGISNULL(0)))
        PG_RETURN_NULL();
    SessionEntry *entry = known_entry<SlotKind::segment>(PG_GETARG_OID(0));
    return likely(draw_next<SlotKind::segment>(entry, role, &value)) ? return_value(entry, value)
                                                                     : open_and_draw<open_entry_of>(fcinfo);
}

// Fast path: one swap of the word in shared memory, without a lock; else open_and_draw().
UIDGEN_SQL_FUNCTION(segment_next_named) {
    const Oid role = GetUserId();
    int64_t value;
    if (unlikely(PG_ARGISNULL(0)))
        PG_RETURN_NULL();
    SessionEntry *entry = known_entry<SlotKind::segment>(remembered_sequence(fcinfo, role));
    return likely(draw_next<SlotKind::segment>(entry, role, &value)) ? return_value(entry, value)
                                                                     : open_and_draw<open_entry_named>(fcinfo);
}

// Both open the entry, under RowExclusiveLock, and draw by draw_segment().
UIDGEN_SQL_FUNCTION(segment_next_array_of) { return next_values(open_entry_of(fcinfo), PG_GETARG_INT64(1)); }
UIDGEN_SQL_FUNCTION(segment_next_array_named) { return next_values(open_entry_named(fcinfo), PG_GETARG_INT64(1)); }

// Both open the entry, under RowExclusiveLock, and move the counter, durably (reserve_block()).
UIDGEN_SQL_FUNCTION(segment_reserve_of) { return reserve_as_row(fcinfo, open_entry_of); }
UIDGEN_SQL_FUNCTION(segment_reserve_named) { return reserve_as_row(fcinfo, open_entry_named); }

// By the session's entry, which need not be open, of sequence_named(). Like currval: this session's last value of a
// sequence, whatever other sessions have drawn since.
UIDGEN_SQL_FUNCTION(segment_last) {
    const Oid sequence = sequence_named(PG_GETARG_TEXT_PP(0));
    check_is_sequence(sequence);
    const SessionEntry *entry = find_entry(sequence);
    if (entry == nullptr || !entry->has_last)
        ereport(ERROR,
                (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                 errmsg("segment_last of sequence \"%s\" is not yet defined in this session", get_rel_name(sequence)),
                 errhint("Draw a value with segment_next() first.")));
    if (pg_class_aclcheck(sequence, GetUserId(), ACL_USAGE | ACL_SELECT) != ACLCHECK_OK)
        report_no_privilege(sequence);
    PG_RETURN_INT64(entry->last_value);
}

// Moves the counter of sequence_named() under RowExclusiveLock, by setval, which does the other checks. Every session
// compares its page at its next transaction's first call; this session at its next call.
UIDGEN_SQL_FUNCTION(segment_set) {
    const Oid sequence = sequence_named(PG_GETARG_TEXT_PP(0));
    check_is_sequence(sequence);
    if (is_lease_sequence(sequence))
        report_lease_sequence(sequence);
    if (read_segment(sequence).registry_name != nullptr)
        report_attached(sequence);
    if (pg_class_aclcheck(sequence, GetUserId(), ACL_UPDATE) != ACLCHECK_OK)
        report_no_privilege(sequence, "UPDATE");
    lock_sequence(sequence, RowExclusiveLock); // as setval does, which expects that the sequence exists
    OidFunctionCall3(F_SETVAL_REGCLASS_INT8_BOOL, ObjectIdGetDatum(sequence), PG_GETARG_DATUM(1), BoolGetDatum(false));
    open_all_again();
    return PG_GETARG_DATUM(1);
}

// Has the registrar ask the registry for one value of a segment, through its slot, and waits (ask_for_block()). Its
// arguments are the sequence, and the names of the segment here and at the registry. It takes lock_owned() and opens
// the entry, so no session draws meanwhile, and the slot may have the definition to be looked up (mark_stale(),
// make_slot(), blocks_forget()) until it is opened next, which reads its own again. The label of a new segment discards
// the value.
UIDGEN_SQL_FUNCTION(uid_look_up_segment) {
    TupleDesc desc = row_type(fcinfo);
    const Oid sequence = PG_GETARG_OID(0);
    core::SegmentDefinition definition = {};
    definition.name = text_to_cstring(PG_GETARG_TEXT_PP(1));
    definition.registry_name = text_to_cstring(PG_GETARG_TEXT_PP(2));
    SlotInit init = {};
    init.kind = SlotKind::segment;
    init.phase = SlotPhase::altered;
    init.segment = segment_config_of(definition);
    lock_owned(sequence);
    const SessionEntry *entry = open_entry(sequence, SlotKind::segment);
    Counters not_counted = {};
    BlockWait wait = {.counters = &not_counted};
    BlockAnswer answer;
    mark_stale(entry->slot, SlotPhase::altered);
    (void)make_slot(slot_key(sequence), init);
    blocks_forget(entry->slot); // a block that was asked for before is of another segment, or of another time
    do
        answer = ask_for_block(entry->slot, init.segment, 1, -1, &wait);
    while (answer.state != BlockState::ready);
    const FleetBlock &found = answer.block;
    return make_row(desc, {Int64GetDatum(static_cast<int64_t>(found.fleet)), Int64GetDatum(found.increment)});
}

} // namespace uidgen::pg
