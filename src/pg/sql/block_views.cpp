// What the views t_sequence and leaf_alloc are made of, the tables of services that take blocks of values by an UPDATE.
// draw/block_claims.hpp says why each block belongs to one node.

#include "draw/block_claims.hpp"
#include "base/errors.hpp"
#include "base/faults.hpp"
#include "base/settings.hpp"
#include "base/time_source.hpp"
#include "draw/reserve_block.hpp"
#include "tables/config_table.hpp"
#include "tables/lease_sequence.hpp"
#include "tables/owner_rights.hpp"

namespace uidgen::pg {
namespace {

// A segment's sequence, if the caller may see its counter; else null. These views show NULL instead of errors.
Relation open_visible(Oid sequence) {
    Relation rel = try_relation_open(sequence, AccessShareLock);
    if (rel == nullptr)
        return nullptr;
    if (rel->rd_rel->relkind == RELKIND_SEQUENCE && rel->rd_rel->relpersistence == RELPERSISTENCE_PERMANENT &&
        pg_class_aclcheck(sequence, GetUserId(), ACL_USAGE | ACL_SELECT | ACL_UPDATE) == ACLCHECK_OK)
        return rel;
    relation_close(rel, AccessShareLock);
    return nullptr;
}

// SELECT FOR UPDATE on a view locks rows of the tables below it. No other command of this extension takes this lock.
bool rows_are_locked(Oid schema) {
    Relation table = open_required_table(schema, "uid_segment");
    const bool locked = CheckRelationLockedByMe(table, RowShareLock, false);
    table_close(table, AccessShareLock);
    return locked;
}

bool may_claim(Oid sequence) {
    return sequence_rule(sequence).increment == 1 &&
           pg_class_aclcheck(sequence, GetUserId(), ACL_USAGE | ACL_UPDATE) == ACLCHECK_OK;
}

// Claims values for this transaction, and returns the first one. False: there are too few, or a client that looked at
// the row before would not take these. Then the UPDATE fails (advance()), unless it starts over.
bool claim_values(Oid sequence, Oid function, int64_t count, int64_t *value) {
    SessionEntry *e = open_entry(sequence, SlotKind::segment, function);
    // Leaf's steps grow. The next one is often as long as the last one of this session. A claim that is long enough
    // need not grow, which fails if another session reserves values meanwhile.
    const auto wanted = static_cast<uint64_t>(Max(Max(count, e->block_length), 1));
    const bool compare = (is_advancing() || IsolationUsesXactSnapshot()) && block_claim(sequence) == nullptr &&
                         first_look(sequence, value);
    Block block;
    if (try_reserve_block(e, wanted, compare ? value : nullptr, &block) != BlockFault::none)
        return compare;
    note_block_claim(sequence, block.first, block.last);
    *value = block.first;
    return true;
}

// The row of a view before and after an UPDATE. The arguments of the trigger name its columns: that of the segment's
// name, of the value, and of the length of a block. The last one is the number of blocks that an UPDATE takes: with 2,
// a node may take its block before the new value or after it.
struct ViewUpdate {
    const TriggerData *trigger;
    TupleDesc desc;
    Row before;
    Row after;
    const char *name; // of the segment
    const char *value_column;
    const char *length_column;
    Oid sequence;
    int64_t kept_after; // how many values from the new one on belong to the updater
};

void refuse_other_columns(const ViewUpdate &u) {
    const AttrNumber value = column_number(u.desc, u.value_column);
    for (int number = 1; number <= u.desc->natts; number++) {
        const Form_pg_attribute attribute = TupleDescAttr(u.desc, number - 1);
        bool was_null;
        bool is_null;
        const Datum was = heap_getattr(u.before.tuple, number, u.desc, &was_null);
        const Datum is = heap_getattr(u.after.tuple, number, u.desc, &is_null);
        if (number == value || (was_null && is_null) ||
            (!was_null && !is_null && datum_image_eq(was, is, attribute->attbyval, attribute->attlen)))
            continue;
        ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
                        errmsg("cannot change column \"%s\" of view \"%s\"", NameStr(attribute->attname),
                               RelationGetRelationName(u.trigger->tg_relation)),
                        errhint("Only \"%s\" can change. Change the step and the description of a segment with "
                                "segment_alter().",
                                u.value_column)));
    }
}

void refuse_increment(const ViewUpdate &u) {
    const int64_t increment = sequence_rule(u.sequence).increment;
    if (increment != 1)
        ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                        errmsg("segment \"%s\" has an increment of %lld", u.name, static_cast<long long>(increment)),
                        errdetail("Nodes that update view \"%s\" count by 1.",
                                  RelationGetRelationName(u.trigger->tg_relation)),
                        errhint("Reserve blocks with segment_reserve(), which returns the increment.")));
}

[[noreturn]] void report_too_few(const ViewUpdate &u) {
    ereport(ERROR, (errcode(ERRCODE_SEQUENCE_GENERATOR_LIMIT_EXCEEDED),
                    errmsg("segment \"%s\" has too few values left for this block", u.name),
                    errdetail("An UPDATE of view \"%s\" takes the values up to the new \"%s\", and %lld after it.",
                              RelationGetRelationName(u.trigger->tg_relation), u.value_column,
                              static_cast<long long>(u.kept_after)),
                    errhint("Start over with SET %s = 0, increase the MAXVALUE of sequence %s, or use a smaller step "
                            "with segment_alter().",
                            u.value_column, qualified_name(u.sequence))));
}

[[noreturn]] void report_moved(const ViewUpdate &u) {
    ereport(ERROR, (errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
                    errmsg("could not advance segment \"%s\" because its counter has moved", u.name),
                    errdetail("Values were reserved after this transaction read \"%s\".", u.value_column),
                    errhint("Retry the transaction. Read the row with SELECT FOR UPDATE, or only after the UPDATE.")));
}

[[noreturn]] void report_backward(const ViewUpdate &u, int64_t from, int64_t to) {
    ereport(ERROR,
            (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
             errmsg("cannot move \"%s\" of segment \"%s\" from %lld to %lld", u.value_column, u.name,
                    static_cast<long long>(from), static_cast<long long>(to)),
             errdetail("An UPDATE takes the values that lie between, so the new value must be larger."),
             errhint("Use SET %s = %s + %s, or SET %s = 0 to start over. Choose another next value with segment_set().",
                     u.value_column, u.value_column, u.length_column, u.value_column)));
}

// A view of one's own may have columns of any type.
void check_type(TupleDesc desc, const char *name, Oid type) {
    if (TupleDescAttr(desc, column_number(desc, name) - 1)->atttypid != type)
        ereport(ERROR, (errcode(ERRCODE_DATATYPE_MISMATCH),
                        errmsg("column \"%s\" must be of type %s", name, format_type_be(type)),
                        errhint("Use the view t_sequence, or a view of uid_leaf_alloc_create().")));
}

ViewUpdate view_update_of(FunctionCallInfo fcinfo) {
    const auto *trigger = reinterpret_cast<TriggerData *>(fcinfo->context);
    char **names = trigger->tg_trigger->tgargs;
    check_type(RelationGetDescr(trigger->tg_relation), names[0], TEXTOID);
    check_type(RelationGetDescr(trigger->tg_relation), names[1], INT8OID);
    check_type(RelationGetDescr(trigger->tg_relation), names[2], INT8OID);
    ViewUpdate u = {};
    u.trigger = trigger;
    u.desc = RelationGetDescr(trigger->tg_relation);
    u.before = {trigger->tg_trigtuple, u.desc};
    u.after = {trigger->tg_newtuple, u.desc};
    u.name = text_column(u.before, names[0]);
    u.value_column = names[1];
    u.length_column = names[2];
    u.sequence = read_segment_by_name(schema_of_function(fcinfo->flinfo->fn_oid), cstring_to_text(u.name));
    u.kept_after = (pg_strtoint32(names[3]) - 1) * DatumGetInt64(column(u.before, u.length_column));
    if (!OidIsValid(u.sequence))
        ereport(ERROR, (errcode(ERRCODE_UNDEFINED_OBJECT), errmsg("segment \"%s\" does not exist", u.name),
                        errhint("Run SELECT name FROM uid_segment to list the named segments.")));
    return u;
}

// The values between the two, and those kept after the new one, become this transaction's, unless they are already. A
// value of 0 may stay: so a node that starts over where another one just has does no harm.
void advance(const ViewUpdate &u, SessionEntry *e, int64_t from, int64_t to) {
    int64_t length;
    int64_t last;
    if (__builtin_sub_overflow(to, from, &length) || length < 0 || (length == 0 && to != 0))
        report_backward(u, from, to);
    if (__builtin_add_overflow(to, u.kept_after - 1, &last))
        report_too_few(u);
    // Also if this UPDATE fails, so that it succeeds when it is retried. A jump is not repeated.
    if (length <= settings::segment_max_step)
        e->block_length = length + u.kept_after;
    const BlockClaim *claim = block_claim(u.sequence);
    const bool claimed = claim != nullptr && !claim->is_empty && claim->value == from;
    if (claimed ? last > claim->last : last >= from) {
        const int64_t first = claimed ? claim->last + 1 : from;
        Block block;
        const BlockFault fault = try_reserve_block(e, static_cast<uint64_t>(last) - static_cast<uint64_t>(first) + 1,
                                                   fault_is(Fault::loose_claim) ? nullptr : &first, &block);
        if (fault == BlockFault::too_few)
            report_too_few(u);
        if (fault == BlockFault::moved)
            report_moved(u);
    }
    note_block_claim(u.sequence, to, claimed ? Max(last, claim->last) : last);
}

// Starts over at 0, or at the smallest value. By ALTER SEQUENCE, because it is undone when the transaction is rolled
// back. The values kept after the new one belong to the updater, as after an advance.
int64_t start_over(const ViewUpdate &u, Oid function) {
    if (pg_class_aclcheck(u.sequence, GetUserId(), ACL_UPDATE) != ACLCHECK_OK)
        aclcheck_error(ACLCHECK_NO_PRIV, OBJECT_SEQUENCE, get_rel_name(u.sequence));
    const core::SequenceRule rule = sequence_rule(u.sequence);
    const int64_t first = Min(Max(rule.min_value, 0), rule.max_value);
    execute_as_owner(
        u.sequence,
        psprintf("ALTER SEQUENCE %s RESTART WITH %lld", qualified_name(u.sequence), static_cast<long long>(first)), 0,
        nullptr, nullptr);
    note_restart(u.sequence);
    if (u.kept_after == 0)
        return first;
    const SessionEntry *e = open_entry(u.sequence, SlotKind::segment, function);
    Block block;
    if (try_reserve_block(e, static_cast<uint64_t>(u.kept_after), &first, &block) != BlockFault::none)
        report_too_few(u);
    note_block_claim(u.sequence, block.first, block.last);
    return first;
}

Datum updated_row(FunctionCallInfo fcinfo) {
    const ViewUpdate u = view_update_of(fcinfo);
    const Oid function = fcinfo->flinfo->fn_oid;
    refuse_other_columns(u);
    SessionEntry *e = open_entry(u.sequence, SlotKind::segment, function); // checks the caller's privilege
    if (is_null(u.after, u.value_column) && !is_null(u.before, u.value_column))
        ereport(ERROR, (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
                        errmsg("\"%s\" of segment \"%s\" must not be null", u.value_column, u.name),
                        errhint("Use SET %s = %s + %s.", u.value_column, u.value_column, u.length_column)));
    refuse_increment(u);
    if (is_null(u.after, u.value_column))
        report_too_few(u); // NULL + n: no value is left
    const bool is_used_up = is_null(u.before, u.value_column);
    const int64_t from = DatumGetInt64(column(u.before, u.value_column));
    const int64_t to = DatumGetInt64(column(u.after, u.value_column));
    if (to == 0 && (is_used_up || from > 0)) {
        Datum first = Int64GetDatum(start_over(u, function));
        int number = column_number(u.desc, u.value_column);
        bool null = false;
        return PointerGetDatum(heap_modify_tuple_by_cols(u.after.tuple, u.desc, 1, &number, &first, &null));
    }
    if (is_used_up)
        report_too_few(u);
    advance(u, e, from, to);
    return PointerGetDatum(u.after.tuple);
}

} // namespace
} // namespace uidgen::pg

using namespace uidgen::pg;

extern "C" {

UIDGEN_SQL_FUNCTION(uid_block_first);
UIDGEN_SQL_FUNCTION(uid_block_length);
UIDGEN_SQL_FUNCTION(uid_block_claim);
UIDGEN_SQL_FUNCTION(uid_block_time);
UIDGEN_SQL_FUNCTION(uid_block_advance);

Datum uid_block_first(PG_FUNCTION_ARGS) {
    if (PG_ARGISNULL(0))
        PG_RETURN_NULL();
    const Oid sequence = PG_GETARG_OID(0);
    const Oid function = fcinfo->flinfo->fn_oid;
    Relation rel = open_visible(sequence);
    if (rel == nullptr)
        PG_RETURN_NULL();
    const uidgen::core::PlannedRange next =
        uidgen::core::plan_range(page_state(rel).counter, sequence_rule(sequence), 1);
    relation_close(rel, AccessShareLock);
    const BlockClaim *claim = block_claim(sequence);
    if (claim != nullptr && !claim->is_empty)
        PG_RETURN_INT64(claim->value);
    int64_t value;
    if (!PG_ARGISNULL(1) && (is_advancing() || rows_are_locked(schema_of_function(function))) && may_claim(sequence) &&
        claim_values(sequence, function, PG_GETARG_INT64(1), &value))
        PG_RETURN_INT64(value);
    if (next.count == 0)
        PG_RETURN_NULL();
    note_look(sequence, next.first);
    PG_RETURN_INT64(next.first);
}

Datum uid_block_length(PG_FUNCTION_ARGS) { PG_RETURN_INT64(block_length_shown(PG_GETARG_OID(0), PG_GETARG_INT64(1))); }

Datum uid_block_claim(PG_FUNCTION_ARGS) {
    const Oid sequence = PG_GETARG_OID(0);
    const int64_t first = PG_GETARG_INT64(1);
    const int64 count = PG_GETARG_INT64(2);
    const SessionEntry *e = open_entry(sequence, SlotKind::segment, fcinfo->flinfo->fn_oid);
    uidgen::pg::Block block;
    if (count < 1 || try_reserve_block(e, static_cast<uint64_t>(count), &first, &block) != BlockFault::none)
        ereport(ERROR, (errcode(ERRCODE_SEQUENCE_GENERATOR_LIMIT_EXCEEDED),
                        errmsg("sequence \"%s\" cannot reserve %lld values from %lld on", get_rel_name(sequence),
                               static_cast<long long>(count), static_cast<long long>(first)),
                        errhint("Use fewer values, or those that come next.")));
    note_block_claim(sequence, first, block.last);
    PG_RETURN_VOID();
}

Datum uid_block_time(PG_FUNCTION_ARGS) {
    const Oid sequence = PG_GETARG_OID(0);
    Relation rel = slots_exist() ? open_visible(sequence) : nullptr;
    if (rel == nullptr)
        PG_RETURN_NULL();
    int64_t reserved_at_us = 0;
    SlotCopy copy;
    if (slot_copy({MyDatabaseId, sequence}, &copy) && copy.kind == SlotKind::segment) {
        SequencePage page = lock_page_for_reading(rel);
        reserved_at_us = copy.slot->segment.refilled_at_us;
        unlock_page(&page);
        // If the generation has changed, the slot may have been freed while it was read.
        if (copy.slot->generation.load(std::memory_order_acquire) != copy.generation)
            reserved_at_us = 0;
    }
    relation_close(rel, AccessShareLock);
    if (reserved_at_us == 0)
        PG_RETURN_NULL();
    PG_RETURN_TIMESTAMPTZ(to_timestamptz(reserved_at_us));
}

Datum uid_block_advance(PG_FUNCTION_ARGS) {
    const auto *trigger = CALLED_AS_TRIGGER(fcinfo) ? reinterpret_cast<TriggerData *>(fcinfo->context) : nullptr;
    if (trigger == nullptr || !TRIGGER_FIRED_BY_UPDATE(trigger->tg_event) ||
        (TRIGGER_FIRED_FOR_ROW(trigger->tg_event) &&
         (!TRIGGER_FIRED_INSTEAD(trigger->tg_event) || trigger->tg_trigger->tgnargs != 4)))
        ereport(ERROR, (errcode(ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED),
                        errmsg("function \"uid_block_advance\" must be called as a trigger for UPDATE"),
                        errhint("Use it only on the view t_sequence and on views of uid_leaf_alloc_create().")));
    if (TRIGGER_FIRED_FOR_ROW(trigger->tg_event))
        return updated_row(fcinfo);
    set_advancing(TRIGGER_FIRED_BEFORE(trigger->tg_event));
    return static_cast<Datum>(0);
}
}
