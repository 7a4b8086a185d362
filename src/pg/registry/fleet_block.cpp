// uid_fleet_block(): what members call on the registry for values of a segment. One call reserves a block, or is
// refused.
//
//   1. A block is durable before it is answered, and no other call gets its values (segment/blocks.hpp). The
//      transaction is the call's own, as uid_fleet_call()'s.
//   2. The member shows the last value that it was given. So a registry that has lost commits does not give the values
//      up to that one again. A claim that uses up more values than a failover loses is refused, and logged.
//   3. The member's role needs USAGE on the segment's sequence, as every role that draws from it.

#include "base/errors.hpp"
#include "segment/blocks.hpp"
#include "fleet_arguments.hpp"
#include "fleet_query.hpp"
#include "fleet_reply.hpp"
#include "session/slot_life.hpp"
#include "config/rows.hpp"
#include "sequence/sequence.hpp"

namespace uidgen::pg {
namespace {

constexpr int32_t protocol_version = 1;

struct BlockCall {
    Oid function;
    Caller caller;
    const char *segment;
    int64_t count; // 0: none, only what the segment is like
    int64_t shown;
    int64_t increment; // 0: any
    const char *version;
    MemberRefusal refusal; // name null: the block was given
    core::PlannedRange block;
    int64_t block_increment;
};

bool refuse(BlockCall *call, const char *name, const char *message, const char *hint) {
    call->refusal = {name, message, hint};
    return true;
}

// Returns whether the call was refused.
bool refuse_segment(const Registry *registry, BlockCall *call, Oid sequence) {
    const char *name = call->segment;
    if (pg_class_aclcheck(sequence, registry->role, ACL_USAGE | ACL_UPDATE) != ACLCHECK_OK)
        return refuse(call, "no_privilege", psprintf("this server's login may not use segment \"%s\"", name),
                      psprintf("Run GRANT USAGE ON SEQUENCE %s on the registry, to the role that uidgen.registry "
                               "names.",
                               qualified_name(sequence)));
    if (read_segment_row(registry->schema, sequence).is_attached())
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
// up use up one block, and not one each. Returns the counter.
core::SequenceState wait_for_last_block(const SessionEntry *e) {
    Relation rel = open_sequence(e);
    const PageState state = page_state(rel);
    relation_close(rel, NoLock);
    durable(state.lsn, wanted_durability());
    return state.counter;
}

bool is_credible(const core::SequenceState &counter, const core::SequenceRule &rule, const core::StepBounds &bounds,
                 int64_t shown) {
    const int64_t known = rule.increment > 0 ? Min(shown, rule.max_value) : Max(shown, rule.min_value);
    return !core::is_beyond(counter, rule.increment, known) ||
           core::is_credible_loss(core::values_up_to(counter, rule, known), bounds);
}

bool refuse_unknown(BlockCall *call, const char *name) {
    const char *message = psprintf("value %lld of segment \"%s\" lies too far beyond all that the registry has given",
                                   static_cast<long long>(call->shown), name);
    ereport(LOG, (errmsg("%s", message),
                  errdetail("Database \"%s\" on %s:%s, version %s, shows it as the last value that it was given.",
                            call->caller.database, call->caller.host, call->caller.port, call->version)));
    return refuse(
        call, "unknown_value", message,
        psprintf("If the member had that value, run SELECT segment_set(%s, value) on the registry, with a value "
                 "above all that members had.",
                 quote_literal_cstr(name)));
}

bool give_block(Registry *registry, void *arg) {
    auto *call = static_cast<BlockCall *>(arg);
    const char *name = call->segment;
    if (!refuse_member(registry, call->caller, &call->refusal))
        return false;
    if (call->refusal.name != nullptr)
        return true;
    const Oid sequence = read_segment_by_name(registry->schema, cstring_to_text(name));
    if (!OidIsValid(sequence))
        return refuse(call, "no_segment", psprintf("segment \"%s\" does not exist at the registry", name),
                      psprintf("Run SELECT segment_create(%s) on the registry.", quote_literal_cstr(name)));
    const SessionEntry *e = open_entry(sequence, SlotKind::segment, call->function);
    if (refuse_segment(registry, call, sequence) || call->count == 0)
        return true;
    const core::SequenceRule rule = sequence_rule(sequence);
    const core::StepBounds bounds = step_bounds(read_segment_row(registry->schema, sequence), rule);
    if (!is_credible(wait_for_last_block(e), rule, bounds, call->shown))
        return refuse_unknown(call, name);
    call->block = reserve_for_member(e, Min(call->count, bounds.most), call->shown);
    if (call->block.count == 0)
        return refuse(
            call, "used_up", psprintf("segment \"%s\" has no value left at the registry", name),
            psprintf("Run ALTER SEQUENCE %s %s on the registry.", qualified_name(sequence),
                     call->block_increment > 0 ? "MAXVALUE with a larger number" : "MINVALUE with a smaller number"));
    return true;
}

// ---------------------------------------------------------------------------------------------------------
// Arguments and answer
// ---------------------------------------------------------------------------------------------------------

BlockCall read_block_call(FunctionCallInfo fcinfo) {
    Arguments a = {fcinfo, 0};
    BlockCall call = {};
    call.function = fcinfo->flinfo->fn_oid;
    check_protocol(&a, protocol_version);
    call.caller.fleet = static_cast<uint64_t>(next_bigint(&a, PG_INT64_MIN, PG_INT64_MAX));
    call.caller.term = next_bigint(&a, 0, core::largest_term);
    call.caller.serial = next_bigint(&a, PG_INT64_MIN, PG_INT64_MAX);
    call.caller.seal = next_bigint(&a, PG_INT64_MIN, PG_INT64_MAX);
    call.segment = next_text(&a);
    call.count = next_bigint(&a, 0, PG_INT64_MAX);
    call.shown = next_bigint(&a, PG_INT64_MIN, PG_INT64_MAX);
    call.increment = next_bigint(&a, PG_INT64_MIN, PG_INT64_MAX);
    call.caller.host = next_text(&a);
    call.caller.port = next_text(&a);
    call.caller.database = next_text(&a);
    call.version = next_text(&a);
    return call;
}

Answer answer_of(const Registry &registry, const BlockCall &call) {
    const MemberRefusal &refusal = call.refusal;
    const bool gives = refusal.name == nullptr;
    const bool has_values = gives && call.block.count > 0;
    Answer answer = {};
    add_number(&answer, static_cast<int64_t>(registry.state.view.fleet));
    add_number(&answer, registry.state.view.term);
    add_number(&answer, static_cast<int64_t>(call.block.count), gives);
    add_number(&answer, call.block_increment, gives);
    add_text(&answer, refusal.name);
    add_text(&answer, refusal.message);
    add_text(&answer, refusal.hint);
    add_number(&answer, call.block.first, has_values);
    add_number(&answer, call.block.last, has_values);
    return answer;
}

} // namespace
} // namespace uidgen::pg

using namespace uidgen::pg;

extern "C" {

UIDGEN_SQL_FUNCTION(uid_fleet_block);

Datum uid_fleet_block(PG_FUNCTION_ARGS) {
    BlockCall call = read_block_call(fcinfo);
    Registry registry;
    open_registry(&registry, fcinfo);
    run_in_registry(&registry, give_block, &call);
    return commit_answer(&registry, fcinfo, answer_of(registry, call));
}
}
