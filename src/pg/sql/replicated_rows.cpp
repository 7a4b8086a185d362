// The triggers for what logical replication brings. A FOR ALL TABLES publication includes the extension's tables,
// because every database with the extension has them. The triggers are ENABLE ALWAYS, and act only in an apply or
// tablesync worker. They do not check session_replication_role, because restores set that too.
//
// uid_keep_local() keeps replication away from uid_generator, uid_segment, uid_key and the tables of a fleet's
// registry. Their rows describe sequences of this server, or the grants of this registry.
//
// uid_keep_node() lets rows of worker_node come, except those that would replace another row. If a row is written while
// a worker looks for its key, the worker fails, and begins again unless its subscription has disable_on_error.

#include "base/compat.hpp"
#include "base/errors.hpp"
#include "tables/worker_node.hpp"

namespace uidgen::pg {
namespace {

// A worker can leave out rows, but not a TRUNCATE. So no session may send one.
[[noreturn]] void refuse_truncate(Relation table) {
    ereport(ERROR,
            (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
             errmsg("cannot truncate table \"%s\"", RelationGetRelationName(table)),
             errdetail("Its rows describe sequences, or keep nodes from being granted twice."),
             errhint("Drop generators with uid_generator_drop(), segments with segment_drop(), and keys with DROP "
                     "SEQUENCE. Free a node whose holder does not run any more with uid_fleet_takeover().")));
}

// Null: another call of the function.
const TriggerData *before_trigger(FunctionCallInfo fcinfo) {
    const auto *trigger = CALLED_AS_TRIGGER(fcinfo) ? reinterpret_cast<TriggerData *>(fcinfo->context) : nullptr;
    return trigger != nullptr && TRIGGER_FIRED_BEFORE(trigger->tg_event) ? trigger : nullptr;
}

// What a BEFORE trigger for each row returns: the row, or nothing to leave out the change.
Datum result_of(const TriggerData *trigger, bool is_left_out) {
    if (is_left_out)
        return static_cast<Datum>(0);
    return PointerGetDatum(TRIGGER_FIRED_BY_UPDATE(trigger->tg_event) ? trigger->tg_newtuple : trigger->tg_trigtuple);
}

} // namespace
} // namespace uidgen::pg

using namespace uidgen::pg;

extern "C" {

UIDGEN_SQL_FUNCTION(uid_keep_local);
UIDGEN_SQL_FUNCTION(uid_keep_node);

Datum uid_keep_local(PG_FUNCTION_ARGS) {
    const TriggerData *trigger = before_trigger(fcinfo);
    if (trigger == nullptr)
        report_other_call("uid_keep_local", "BEFORE trigger");
    if (TRIGGER_FIRED_BY_TRUNCATE(trigger->tg_event))
        refuse_truncate(trigger->tg_relation);
    return result_of(trigger, IsLogicalWorker());
}

Datum uid_keep_node(PG_FUNCTION_ARGS) {
    const TriggerData *trigger = before_trigger(fcinfo);
    if (trigger == nullptr || !TRIGGER_FIRED_FOR_ROW(trigger->tg_event))
        report_other_call("uid_keep_node", "BEFORE trigger for each row");
    return result_of(trigger, IsLogicalWorker() && is_for_other_row(*trigger));
}
}
