// uid_keep_local(): the trigger that keeps logical replication away from the extension's tables. Their rows describe
// sequences of this server, numbers that it drew, or grants of this registry. A FOR ALL TABLES publication includes
// these tables, because every database with the extension has them. The trigger is ENABLE ALWAYS, and acts only in an
// apply or tablesync worker. It does not check session_replication_role, because restores set that too.

#include "base/compat.hpp"
#include "base/errors.hpp"

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

} // namespace
} // namespace uidgen::pg

using namespace uidgen::pg;

extern "C" {

UIDGEN_SQL_FUNCTION(uid_keep_local);

Datum uid_keep_local(PG_FUNCTION_ARGS) {
    const auto *trigger = CALLED_AS_TRIGGER(fcinfo) ? reinterpret_cast<TriggerData *>(fcinfo->context) : nullptr;
    if (trigger == nullptr || !TRIGGER_FIRED_BEFORE(trigger->tg_event))
        report_other_call("uid_keep_local", "BEFORE trigger");
    if (TRIGGER_FIRED_BY_TRUNCATE(trigger->tg_event))
        refuse_truncate(trigger->tg_relation);
    if (IsLogicalWorker())
        return static_cast<Datum>(0); // leaves the change out
    return PointerGetDatum(TRIGGER_FIRED_BY_UPDATE(trigger->tg_event) ? trigger->tg_newtuple : trigger->tg_trigtuple);
}
}
