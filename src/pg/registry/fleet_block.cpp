// uid_fleet_block(): what members call on the registry for values of a segment. One call reserves a block, or is
// refused.
//
//   1. A block is durable before it is answered, and no other call gets its values (draw/reserve_block.hpp). The
//      transaction is the call's own, as uid_fleet_call()'s.
//   2. The member shows the last value that it was given. So a registry that has lost commits does not give the values
//      up to that one again.
//   3. The member's role needs USAGE on the segment's sequence, as every role that draws from it.

#include "base/errors.hpp"
#include "draw/reserve_block.hpp"
#include "fleet_query.hpp"
#include "registry.hpp"
#include "tables/config_table.hpp"
#include "tables/lease_sequence.hpp"
#include "tables/sequence_page.hpp"

namespace uidgen::pg {
namespace {

constexpr int32_t protocol_version = 1;

// In the order of the function's arguments.
enum Argument {
    arg_protocol,
    arg_fleet,
    arg_term,
    arg_segment,
    arg_count,
    arg_shown,
    arg_increment,
    arg_host,
    arg_port,
    arg_database,
    arg_version,
    arguments
};

struct BlockCall {
    Oid function;
    uint64_t fleet;
    int64_t term;
    const text *segment;
    int64_t count; // 0: none, only what the segment is like
    int64_t shown;
    int64_t increment; // 0: any
    const char *host;
    const char *port;
    const char *database;
    const char *version;
    MemberRefusal refusal; // name null: the block was given
    core::PlannedRange block;
    int64_t block_increment;
};

bool refuse(BlockCall *call, const char *name, const char *message, const char *hint) {
    call->refusal = {name, message, hint, false};
    return true;
}

// Returns whether the call was refused.
bool refuse_segment(BlockCall *call, Oid schema, Oid sequence, const char *name) {
    const Oid role = GetOuterUserId();
    if (pg_class_aclcheck(sequence, role, ACL_USAGE | ACL_UPDATE) != ACLCHECK_OK)
        return refuse(call, "no_privilege",
                      psprintf("role \"%s\" may not use segment \"%s\"", GetUserNameFromId(role, false), name),
                      psprintf("Run GRANT USAGE ON SEQUENCE %s TO %s on the registry.", qualified_name(sequence),
                               quote_identifier(GetUserNameFromId(role, false))));
    if (read_segment_row(schema, sequence).is_attached())
        return refuse(call, "attached", psprintf("segment \"%s\" at the registry is itself attached", name),
                      "Attach to the segment that its values come from.");
    const core::SequenceRule rule = sequence_rule(sequence);
    call->block_increment = rule.increment;
    if (rule.cycle)
        return refuse(call, "cycles", psprintf("segment \"%s\" starts over at its end", name),
                      psprintf("Run ALTER SEQUENCE %s NO CYCLE on the registry.", qualified_name(sequence)));
    if (rule.increment > 0 ? rule.min_value < 0 : rule.max_value > 0)
        return refuse(call, "mixed_signs", psprintf("segment \"%s\" can have positive and negative values", name),
                      psprintf("Run ALTER SEQUENCE %s %s 0 on the registry.", qualified_name(sequence),
                               rule.increment > 0 ? "MINVALUE" : "MAXVALUE"));
    if (call->increment != 0 && call->increment != rule.increment)
        return refuse(call, "increment_differs",
                      psprintf("the increment of segment \"%s\" is %lld at the registry, and was %lld", name,
                               static_cast<long long>(rule.increment), static_cast<long long>(call->increment)),
                      nullptr);
    return false;
}

// The block before this one must have reached the synchronous standby. So if the standby is away, calls that are given
// up use up one block, and not one each.
void wait_for_last_block(const SessionEntry *e) {
    Relation rel = open_sequence(e);
    const PageState state = page_state(rel);
    relation_close(rel, NoLock);
    durable(state.lsn, wanted_durability());
}

Query note_member = {"INSERT INTO %1$s.uid_fleet_segment AS s VALUES ($1, $2, $3, $4, $5, $6, $7, $8) "
                     "ON CONFLICT (segment, host, port, database) DO UPDATE SET first_value = EXCLUDED.first_value, "
                     "last_value = EXCLUDED.last_value, given_at = EXCLUDED.given_at, version = EXCLUDED.version",
                     nullptr, 0};

void note_block(const Registry *registry, const BlockCall &call, const char *name) {
    Parameters p = {};
    add_text(&p, name);
    add_text(&p, call.host);
    add_text(&p, call.port);
    add_text(&p, call.database);
    add_bigint(&p, call.block.first);
    add_bigint(&p, call.block.last);
    add_time(&p, registry->state.view.now_us);
    add_text(&p, call.version);
    execute(&note_member, p);
}

bool give_block(Registry *registry, void *arg) {
    auto *call = static_cast<BlockCall *>(arg);
    const char *name = text_to_cstring(call->segment);
    if (!refuse_member(registry, call->fleet, call->term, &call->refusal))
        return false;
    if (call->refusal.name != nullptr)
        return true;
    const Oid sequence = read_segment_by_name(registry->schema, call->segment);
    if (!OidIsValid(sequence))
        return refuse(call, "no_segment", psprintf("segment \"%s\" does not exist at the registry", name),
                      psprintf("Run SELECT segment_create(%s) on the registry.", quote_literal_cstr(name)));
    const SessionEntry *e = open_entry(sequence, SlotKind::segment, call->function);
    if (refuse_segment(call, registry->schema, sequence, name) || call->count == 0)
        return true;
    wait_for_last_block(e);
    call->block = reserve_for_member(e, call->count, call->shown);
    if (call->block.count == 0)
        return refuse(
            call, "used_up", psprintf("segment \"%s\" has no value left at the registry", name),
            psprintf("Run ALTER SEQUENCE %s %s on the registry.", qualified_name(sequence),
                     call->block_increment > 0 ? "MAXVALUE with a larger number" : "MINVALUE with a smaller number"));
    note_block(registry, *call, name);
    return true;
}

// ---------------------------------------------------------------------------------------------------------
// Arguments and result
// ---------------------------------------------------------------------------------------------------------

const char *text_argument(FunctionCallInfo fcinfo, int number) { return text_to_cstring(PG_GETARG_TEXT_PP(number)); }

BlockCall read_block_call(FunctionCallInfo fcinfo) {
    for (int i = 0; i < arguments; i++)
        if (PG_ARGISNULL(i))
            ereport(ERROR, (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
                            errmsg("arguments of %s must not be null", "uid_fleet_block")));
    check_protocol_version(PG_GETARG_INT32(arg_protocol), protocol_version);
    BlockCall call = {};
    call.function = fcinfo->flinfo->fn_oid;
    call.fleet = static_cast<uint64_t>(PG_GETARG_INT64(arg_fleet));
    call.term = PG_GETARG_INT64(arg_term);
    call.segment = PG_GETARG_TEXT_PP(arg_segment);
    call.count = PG_GETARG_INT64(arg_count);
    call.shown = PG_GETARG_INT64(arg_shown);
    call.increment = PG_GETARG_INT64(arg_increment);
    call.host = text_argument(fcinfo, arg_host);
    call.port = text_argument(fcinfo, arg_port);
    call.database = text_argument(fcinfo, arg_database);
    call.version = text_argument(fcinfo, arg_version);
    if (call.count < 0 || call.term < 0 || call.term > core::largest_term)
        ereport(ERROR,
                (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("invalid arguments of %s", "uid_fleet_block")));
    return call;
}

Datum result_of(FunctionCallInfo fcinfo, const Registry &registry, const BlockCall &call) {
    TupleDesc desc;
    if (get_call_result_type(fcinfo, nullptr, &desc) != TYPEFUNC_COMPOSITE)
        elog(ERROR, "uid_fleet_block must return a record");
    const auto text_datum = [](const char *value) {
        return value == nullptr ? static_cast<Datum>(0) : CStringGetTextDatum(value);
    };
    const MemberRefusal &refusal = call.refusal;
    const bool gives = refusal.name == nullptr;
    const bool has_values = gives && call.block.count > 0;
    Datum values[] = {text_datum(refusal.name),
                      text_datum(refusal.message),
                      text_datum(refusal.hint),
                      Int64GetDatum(static_cast<int64_t>(registry.state.view.fleet)),
                      Int64GetDatum(registry.state.view.term),
                      Int64GetDatum(call.block.first),
                      Int64GetDatum(call.block.last),
                      Int64GetDatum(static_cast<int64_t>(call.block.count)),
                      Int64GetDatum(call.block_increment)};
    bool nulls[] = {
        gives, refusal.message == nullptr, refusal.hint == nullptr, false, false, !has_values, !has_values, !gives,
        !gives};
    return HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(desc), values, nulls));
}

} // namespace
} // namespace uidgen::pg

using namespace uidgen::pg;

extern "C" {

UIDGEN_SQL_FUNCTION(uid_fleet_block);

Datum uid_fleet_block(PG_FUNCTION_ARGS) {
    BlockCall call = read_block_call(fcinfo);
    Registry registry;
    open_registry(&registry, fcinfo->flinfo->fn_oid);
    run_in_registry(&registry, give_block, &call);
    MemoryContext working = MemoryContextSwitchTo(registry.caller);
    const Datum row = result_of(fcinfo, registry, call);
    MemoryContextSwitchTo(working);
    close_registry(&registry);
    return row;
}
}
