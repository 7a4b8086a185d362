// uid_reserve_block(): the trigger of rows from which nodes of other services take blocks of values, in tables
// t_sequence, whose trigger has an argument, and leaf_alloc.
//
// Every row version shows a block that was reserved for it alone. The block holds whatever a node may take, as long as
// all nodes of one row read it in one way:
//
//   1. t_sequence, current_val = c after an UPDATE: c - increment_val to c + 2 * increment_val. So a node may take the
//      increment_val values before c or after it, c among them or not, or may add the increment itself.
//   2. leaf_alloc, max_id = m after an UPDATE by n: m - n to m. Leaf takes those below m, the article those up to m.
//
// docs/design.md (P1 18) has the argument.

#include "segment/blocks.hpp"
#include "session/create.hpp"
#include "session/slot_life.hpp"

namespace uidgen::pg {
namespace {

constexpr int64_t largest_increment = INT64_C(1) << 40; // of a segment's definition

// A row before and after a statement, and what it shows.
struct BlockRow {
    Row before; // without a tuple if the statement is an INSERT
    Row after;
    const char *column;
    const char *name; // of the segment
    Oid sequence;

    bool was_null() const { return before.tuple == nullptr || is_null(before, column); }
    int64_t from() const { return DatumGetInt64(pg::column(before, column)); }
    int64_t to() const { return DatumGetInt64(pg::column(after, column)); }
    bool moves() const { return was_null() || from() != to(); }
    uint64_t length() const { return static_cast<uint64_t>(to()) - static_cast<uint64_t>(from()); }
    bool clears() const { return !was_null() && from() > 0 && to() == 0 && !is_null(after, column); }
};

int64_t saturating_add(int64_t value, int64_t length) {
    int64_t sum;
    return __builtin_add_overflow(value, length, &sum) ? (length < 0 ? PG_INT64_MIN : PG_INT64_MAX) : sum;
}

// A NULL before counts as 0 here.
[[noreturn]] void report_move(const BlockRow &row) {
    const char *to = is_null(row.after, row.column) ? "NULL" : psprintf(INT64_FORMAT, row.to());
    ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                    errmsg("cannot move \"%s\" of segment \"%s\" from %lld to %s", row.column, clipped(row.name),
                           static_cast<long long>(row.from()), to),
                    errhint("Add the length of a block to \"%s\" (in t_sequence at most increment_val), or set it "
                            "to 0.",
                            row.column)));
}

// Opens the segment's entry (open_entry()), under RowExclusiveLock. Checks the caller's privilege, too; error if the
// segment is attached, or counts otherwise than by 1. A commit that is lost would bring the former row back, and with
// it a block that a node took when it was told of the commit. So this transaction's commit is flushed, whatever
// synchronous_commit says.
SessionEntry *open_segment(const BlockRow &row) {
    SessionEntry *entry = open_entry(row.sequence, SlotKind::segment);
    check_not_attached(entry);
    const int64_t increment = sequence_rule(row.sequence).increment;
    if (increment != 1)
        ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                        errmsg("segment \"%s\" has an increment of %lld", clipped(row.name),
                               static_cast<long long>(increment)),
                        errdetail("Nodes that take blocks by \"%s\" count by 1.", row.column),
                        errhint("Reserve blocks with segment_reserve(), which returns the increment.")));
    if (!fault_is("async_block"))
        ForceSyncCommit();
    return entry;
}

// Error unless the role has UPDATE. The session holds RowExclusiveLock. By a statement (execute_as()), ALTER SEQUENCE,
// as the owner and under its lock, because it waits for transactions that draw, and is undone when this one is rolled
// back.
void restart_sequence(const BlockRow &row) {
    if (pg_class_aclcheck(row.sequence, GetUserId(), ACL_UPDATE) != ACLCHECK_OK)
        report_no_privilege(row.sequence, "UPDATE");
    const core::SequenceRule rule = sequence_rule(row.sequence);
    execute_as(owner_of(row.sequence), psprintf("ALTER SEQUENCE %s RESTART WITH %lld", qualified_name(row.sequence),
                                                static_cast<long long>(Min(Max(rule.min_value, 0), rule.max_value))));
}

struct ReservedBlock {
    core::PlannedRange values;
    bool starts_over;
};

// Moves the sequence's counter, durably (reserve_beyond()), for an entry of open_segment(). Values beyond all that were
// reserved, and beyond the former row, which may be ahead of its sequence after a restore. If too few are left and the
// row is set to 0, it starts over (restart_sequence(), open_entry()), with `again` values.
ReservedBlock reserve_or_start_over(const BlockRow &row, const SessionEntry *entry, const BlockLength &length,
                                    int64_t shown, uint64_t again) {
    ReservedBlock block = {reserve_beyond(entry, length, fault_is("stale_row") ? PG_INT64_MIN : shown), false};
    if (block.values.count == 0 && row.clears()) {
        restart_sequence(row);
        entry = open_entry(row.sequence, SlotKind::segment);
        block = {reserve_beyond(entry, exactly(again), PG_INT64_MIN), true};
    }
    if (block.values.count == 0)
        report_too_few(row.sequence, length.most,
                       psprintf(", or start over with SET %s = 0 if it is larger", row.column));
    return block;
}

// In the row in memory, which the trigger returns.
void set_column(BlockRow *row, const char *name, Datum value) {
    int number = column_number(row->after.desc, name);
    bool null = false;
    row->after.tuple = heap_modify_tuple_by_cols(row->after.tuple, row->after.desc, 1, &number, &value, &null);
}

// A copy of the row that shows the value.
Datum with_value(BlockRow row, int64_t value) {
    set_column(&row, row.column,
               Int64GetDatum(fault_is("unwritten") && !is_null(row.after, row.column) ? row.to() : value));
    return PointerGetDatum(row.after.tuple);
}

int64_t increment_val(Row row) { return DatumGetInt64(column(row, "increment_val")); }

// Whether this transaction has created the sequence and drawn nothing, by the page.
bool is_unused(const SessionEntry *entry) EXCLUDES(page_lock) {
    Relation rel = open_sequence(entry);
    const bool is_new = rel->rd_createSubid != InvalidSubTransactionId;
    const bool unused = is_new && !page_state(rel).counter.is_called;
    relation_close(rel, NoLock);
    return unused;
}

// Opens the segment's entry (open_segment()), moves its counter beyond the next block, durably
// (reserve_or_start_over()), and returns the row that shows that.
//
// An INSERT says where to begin, and so does another name, which is that of another segment. The values before the one
// that it shows are reserved, too, unless the segment is new. That, and a row that starts over, show the first value.
//
// Near 2^63 a block takes all values that are left, and the row shows the last of them, to which no increment can be
// added. So a node finds that it must start over, as with a table, before draws in the database have used up what it
// would take next.
Datum reserve_for_t_sequence(const BlockRow &row) {
    const bool is_new = row.was_null();
    const bool places = is_new && !is_null(row.after, row.column);
    // What a node saw before its UPDATE has so many values after it, and no more.
    if (!is_new && !row.clears() &&
        (row.to() < row.from() || row.length() > static_cast<uint64_t>(increment_val(row.before))))
        report_move(row);
    const SessionEntry *entry = open_segment(row);
    const bool begins = places && is_unused(entry);
    const int64_t increment = increment_val(row.after);
    int64_t shown = PG_INT64_MIN;
    if (!is_new)
        shown = saturating_add(row.from(), 2 * increment_val(row.before));
    else if (places)
        shown = saturating_add(row.to(), begins ? -1 : -1 - increment);
    const auto count = 3 * static_cast<uint64_t>(increment) + 1;
    BlockLength length = exactly(count);
    if (!row.clears() && sequence_rule(row.sequence).max_value == PG_INT64_MAX)
        length = {
            .least = begins ? 1 : static_cast<uint64_t>(increment) + 1, .most = count, .rest = largest_increment + 1};
    const ReservedBlock block = reserve_or_start_over(row, entry, length, shown, count);
    if (block.values.last == PG_INT64_MAX)
        return with_value(row, PG_INT64_MAX);
    return with_value(row, block.values.first + (begins || block.starts_over ? 0 : increment));
}

// Opens the segment's entry (open_segment()), moves its counter beyond the next block, durably
// (reserve_or_start_over()), and returns the row. A node reads max_id after its UPDATE. An INSERT reserves the value
// that it shows.
Datum reserve_for_leaf_alloc(const BlockRow &row) {
    const bool is_new = row.before.tuple == nullptr;
    uint64_t count = is_new ? 1 : row.length() + 1;
    if (row.clears())
        count = static_cast<uint64_t>(Max(DatumGetInt32(column(row.after, "step")), 0)) + 1;
    else if (!is_new && (row.to() < row.from() || count == 0)) // 0: all 2^64
        report_move(row);
    const int64_t shown = is_new ? saturating_add(row.to(), -1) : row.from();
    return with_value(row, reserve_or_start_over(row, open_segment(row), exactly(count), shown, 1).values.last);
}

// Sets row->sequence, found by its slot or label, without a lock on it (find_segment()). A row that comes, or that gets
// another name, creates the segment of that name, unless it exists (hold_names(), create_segment()).
void find_segment_of(BlockRow *row, bool creates) {
    const text *name = cstring_to_text(row->name);
    row->sequence = find_segment(name);
    if (OidIsValid(row->sequence))
        return;
    if (!creates)
        report_no_segment(name, "Create it with segment_create().");
    hold_names();
    const int64_t start = row->to();
    row->sequence = create_segment(new_segment(row->name), {.start = start, .min_value = Min(start, 0)}, false);
}

// By the two rows alone: whether the row was that of another name, and so showed values of another segment.
bool is_renamed(const BlockRow &row, const char *name_column) {
    return row.before.tuple != nullptr && strcmp(text_column(row.before, name_column), row.name) != 0;
}

// The row of leaf_alloc as the trigger leaves it: finds or creates the segment (find_segment_of()), and reserves a
// block (reserve_for_leaf_alloc()), if the row moves.
Datum change_leaf_alloc(BlockRow row) {
    row.column = "max_id";
    row.name = text_column(row.after, "biz_tag");
    // The table is the service's, so its owner may have altered the types.
    (void)column_number(row.after.desc, row.column, INT8OID);
    (void)column_number(row.after.desc, "step", INT4OID);
    if (row.before.tuple != nullptr) { // Leaf's table has it set by each UPDATE
        (void)column_number(row.after.desc, "update_time", TIMESTAMPTZOID);
        set_column(&row, "update_time", TimestampTzGetDatum(GetCurrentTransactionStartTimestamp()));
    }
    if (is_null(row.after, row.column)) // which the table refuses
        return PointerGetDatum(row.after.tuple);
    const bool creates = row.before.tuple == nullptr || is_renamed(row, "biz_tag");
    const bool moves = row.moves();
    if (creates || moves)
        find_segment_of(&row, creates);
    return moves ? reserve_for_leaf_alloc(row) : PointerGetDatum(row.after.tuple);
}

// The row of t_sequence as the trigger leaves it: finds or creates the segment (find_segment_of()), and reserves a
// block (reserve_for_t_sequence()). `columns` are those that the UPDATE sets.
Datum change_t_sequence(BlockRow row, const Bitmapset *columns) {
    const auto is_set = [&](const char *name) {
        return bms_is_member(column_number(row.after.desc, name, INT8OID) - FirstLowInvalidHeapAttributeNumber,
                             columns);
    };
    row.column = "current_val";
    row.name = text_column(row.after, "pk_seq_name");
    const bool sets_length = is_set("increment_val"); // the type of which is checked in any case
    const bool sets_value = is_set(row.column);
    const int64_t length = increment_val(row.after);
    if (is_null(row.after, row.column) || length < 1 || length > largest_increment) // which the table refuses
        return PointerGetDatum(row.after.tuple);
    if (is_renamed(row, "pk_seq_name"))
        row.before.tuple = nullptr;
    // Another trigger may have changed what the UPDATE does not name.
    if (!sets_value && !sets_length && !row.moves() && increment_val(row.before) == length)
        return PointerGetDatum(row.after.tuple);
    find_segment_of(&row, row.before.tuple == nullptr);
    return reserve_for_t_sequence(row);
}

} // namespace

// Reserves a block on the segment's sequence, and puts it into the row (change_t_sequence(), change_leaf_alloc()). Any
// role may use it as a trigger on its own tables, with columns of any type. What logical replication brings is the
// publisher's to reserve, and the row stays as it is. The next UPDATE here begins beyond what that shows.
UIDGEN_SQL_FUNCTION(uid_reserve_block) {
    const TriggerData *trigger = trigger_of(fcinfo);
    if (trigger == nullptr || !TRIGGER_FIRED_FOR_ROW(trigger->tg_event) || !TRIGGER_FIRED_BEFORE(trigger->tg_event) ||
        TRIGGER_FIRED_BY_DELETE(trigger->tg_event))
        report_other_call("uid_reserve_block", "BEFORE ROW trigger for INSERT or UPDATE");
    const TupleDesc desc = RelationGetDescr(trigger->tg_relation);
    const bool is_update = TRIGGER_FIRED_BY_UPDATE(trigger->tg_event);
    BlockRow row = {};
    row.before = {is_update ? trigger->tg_trigtuple : nullptr, desc};
    row.after = {is_update ? trigger->tg_newtuple : trigger->tg_trigtuple, desc};
    if (IsLogicalWorker() || fault_is("idle_trigger"))
        return PointerGetDatum(row.after.tuple);
    return trigger->tg_trigger->tgnargs > 0 ? change_t_sequence(row, trigger->tg_updatedcols) : change_leaf_alloc(row);
}

} // namespace uidgen::pg
