// segment_next(), segment_next_batch(), segment_next_array(), segment_last(), segment_set(): the entry points of
// segments. Each has two forms, by name and by regclass.

#include "attach.hpp"
#include "batch.hpp"
#include "errors.hpp"
#include "new_slot.hpp"
#include "reserve.hpp"
#include "segment_names.hpp"
#include "segment_range.hpp"

namespace uidgen::pg {
namespace {

// The common case, in few instructions: the caller's rights were checked in this transaction, no standby is awaited,
// so a share of any durability will do, and nobody else has drawn since. What tells that a standby is awaited comes after
// the swap, and costs the value then.
inline bool next_at_front(Datum *value) {
    SegmentFront &front = segment_front;
    uint64_t ordinal = front.next;
    const uint64_t after = ordinal + 1;
    if (unlikely(!front.word->take_from(&ordinal, after)) || unlikely(!surely_no_standby_is_awaited(front.no_standby)))
        return false;
    front.follow(after);
    *value = UInt64GetDatum(front.share.value(ordinal));
    return true;
}

// The same when others have drawn since.
bool next_behind_others(Datum *value) {
    SegmentFront &front = segment_front;
    if (!surely_no_standby_is_awaited(front.no_standby))
        return false;
    const core::Run run = front.word->take(front.share.limit, 1);
    if (run.count == 0)
        return false;
    front.follow(run.first + 1);
    *value = UInt64GetDatum(front.share.value(run.first));
    return true;
}

// One value in so many brings its segment to the front: a segment that many are drawn from soon is there, and segments
// in turn seldom pay for a change.
constexpr uint64_t front_interval = 64;

[[gnu::noinline]] Datum hand_out_at_front(Attached *a, uint64_t ordinal) {
    bring_to_front(a, ordinal + 1);
    return UInt64GetDatum(a->share.value(ordinal));
}

// The same for a segment that is not at the front, if it is attached. Where an entry keeps a last value, the front has
// been in use, and knows the mark. A generator's entry has no share.
inline bool next_behind_front(uint64_t key, Datum *value) {
    Attached *a = probably_attached(key);
    if (unlikely(a == nullptr) || unlikely(!a->keeps_last_value) ||
        unlikely(!surely_no_standby_is_awaited(segment_front.no_standby)))
        return false;
    const core::Run run = a->slot->segment.word.take(a->share.limit, 1);
    if (unlikely(run.count == 0))
        return false;
    if (unlikely(run.first % front_interval == 0)) {
        *value = hand_out_at_front(a, run.first);
    } else {
        a->last_value = static_cast<int64_t>(a->share.value(run.first));
        *value = Int64GetDatum(a->last_value);
    }
    return true;
}

Datum next_value(Attached *a) {
    core::Run run = {0, 0};
    if (a->share_level == wanted_durability())
        run = a->slot->segment.word.take(a->share.limit, 1);
    if (run.count == 0)
        run = draw_ordinals(a, 1);
    return hand_out_at_front(a, run.first);
}

// These are not inlined, so that the common case has fewer registers to save.
[[gnu::noinline]] Datum next_value_of(FunctionCallInfo fcinfo) {
    return next_value(attach(PG_GETARG_OID(0), SlotKind::segment, fcinfo->flinfo->fn_oid));
}
[[gnu::noinline]] Datum next_value_of_another(FunctionCallInfo fcinfo, uint64_t key) {
    Datum value;
    return likely(next_behind_front(key, &value)) ? value : next_value_of(fcinfo);
}
[[gnu::noinline]] Datum next_value_behind_others(FunctionCallInfo fcinfo) {
    Datum value;
    return likely(next_behind_others(&value)) ? value : next_value_of(fcinfo);
}
[[gnu::noinline]] Datum next_value_named(FunctionCallInfo fcinfo, uint64_t key) {
    Datum value;
    if (key != 0 && (key == segment_front.key ? next_behind_others(&value) : next_behind_front(key, &value)))
        return value;
    return next_value(attach_named(fcinfo, PG_GETARG_TEXT_PP(0)));
}

void draw_batch(Attached *a, Batch *batch, uint64_t count) {
    while (count > 0) {
        const core::Run run = draw_ordinals(a, count);
        batch_add(batch, {a->share.value(run.first), a->share.increment, run.count, false, {}});
        count -= run.count;
        if (count == 0)
            bring_to_front(a, run.first + run.count);
    }
}

// A set-returning function keeps its state in fn_extra, so a batch attaches anew, without attach_named()'s memory
// of the last name.
Attached *attach_by_name(FunctionCallInfo fcinfo) {
    return attach(sequence_named(fcinfo->flinfo->fn_oid, PG_GETARG_TEXT_PP(0)), SlotKind::segment,
                  fcinfo->flinfo->fn_oid);
}

void draw_batch_named(FunctionCallInfo fcinfo, Batch *batch, uint64_t count) {
    draw_batch(attach_by_name(fcinfo), batch, count);
}

void draw_batch_of(FunctionCallInfo fcinfo, Batch *batch, uint64_t count) {
    draw_batch(attach(PG_GETARG_OID(0), SlotKind::segment, fcinfo->flinfo->fn_oid), batch, count);
}

void check_is_sequence(Oid relation) {
    const char kind = get_rel_relkind(relation);
    if (kind == '\0')
        report_no_sequence(relation);
    if (kind != RELKIND_SEQUENCE)
        report_not_a_sequence(relation);
}

// As currval: this session's last value, whoever drew since.
Datum last_of(Oid sequence) {
    check_is_sequence(sequence);
    const Attached *a = find_attached(sequence);
    const bool at_front = a != nullptr && a == segment_front.entry;
    if (a == nullptr || (!at_front && !a->keeps_last_value))
        ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                        errmsg("segment_last of \"%s\" is not yet defined in this session", get_rel_name(sequence)),
                        errhint("Draw a value with segment_next() first.")));
    if (pg_class_aclcheck(sequence, GetUserId(), ACL_USAGE | ACL_SELECT) != ACLCHECK_OK)
        ereport(ERROR, (errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
                        errmsg("permission denied for sequence %s", get_rel_name(sequence)),
                        errhint("GRANT USAGE ON SEQUENCE %s TO the role that shall read it.", qualified_name(sequence))));
    PG_RETURN_INT64(at_front ? segment_front.last_value() : a->last_value);
}

// setval checks everything that is to be checked, and its page is what every session compares with at its next
// transaction's first call; this one at its next call.
Datum set_next(Oid sequence, int64_t value) {
    check_is_sequence(sequence);
    if (is_lease_sequence(sequence))
        report_lease_sequence(sequence);
    OidFunctionCall3(F_SETVAL_REGCLASS_INT8_BOOL, ObjectIdGetDatum(sequence), Int64GetDatum(value),
                     BoolGetDatum(false));
    attach_again();
    PG_RETURN_INT64(value);
}

} // namespace
} // namespace uidgen::pg

using namespace uidgen::pg;

extern "C" {

UIDGEN_SQL_FUNCTION(segment_next_of);
UIDGEN_SQL_FUNCTION(segment_next_named);
UIDGEN_SQL_FUNCTION(segment_next_batch_of);
UIDGEN_SQL_FUNCTION(segment_next_batch_named);
UIDGEN_SQL_FUNCTION(segment_next_array_of);
UIDGEN_SQL_FUNCTION(segment_next_array_named);
UIDGEN_SQL_FUNCTION(segment_last_of);
UIDGEN_SQL_FUNCTION(segment_last_named);
UIDGEN_SQL_FUNCTION(segment_set_of);
UIDGEN_SQL_FUNCTION(segment_set_named);

// GetUserId() comes first: nothing else is live across it. Not STRICT: the function's own test of one argument costs
// less than the executor's loop over all.
Datum segment_next_of(PG_FUNCTION_ARGS) {
    const Oid role = GetUserId();
    Datum value;
    if (unlikely(PG_ARGISNULL(0)))
        PG_RETURN_NULL();
    const uint64_t key = front_key(role, PG_GETARG_DATUM(0));
    if (unlikely(segment_front.key != key))
        return next_value_of_another(fcinfo, key);
    return likely(next_at_front(&value)) ? value : next_value_behind_others(fcinfo);
}

Datum segment_next_named(PG_FUNCTION_ARGS) {
    const Oid role = GetUserId();
    if (unlikely(PG_ARGISNULL(0)))
        PG_RETURN_NULL();
    const uint64_t key = remembered_key(fcinfo, role);
    Datum value;
    if (likely(key != 0) && likely(segment_front.key == key) && likely(next_at_front(&value)))
        return value;
    return next_value_named(fcinfo, key);
}

Datum segment_next_batch_of(PG_FUNCTION_ARGS) { return return_rows(fcinfo, 1, draw_batch_of); }
Datum segment_next_batch_named(PG_FUNCTION_ARGS) { return return_rows(fcinfo, 1, draw_batch_named); }
Datum segment_next_array_of(PG_FUNCTION_ARGS) { return return_array(fcinfo, 1, draw_batch_of); }
Datum segment_next_array_named(PG_FUNCTION_ARGS) { return return_array(fcinfo, 1, draw_batch_named); }

Datum segment_last_of(PG_FUNCTION_ARGS) { return last_of(PG_GETARG_OID(0)); }
Datum segment_last_named(PG_FUNCTION_ARGS) {
    return last_of(sequence_named(fcinfo->flinfo->fn_oid, PG_GETARG_TEXT_PP(0)));
}

Datum segment_set_of(PG_FUNCTION_ARGS) { return set_next(PG_GETARG_OID(0), PG_GETARG_INT64(1)); }
Datum segment_set_named(PG_FUNCTION_ARGS) {
    return set_next(sequence_named(fcinfo->flinfo->fn_oid, PG_GETARG_TEXT_PP(0)), PG_GETARG_INT64(1));
}
}
