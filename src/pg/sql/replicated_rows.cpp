// uid_keep_local(): the trigger that keeps logical replication away from uid_generator, uid_segment, uid_key and the
// tables of a fleet's registry.
//
// Their rows describe sequences of this server, or the grants of this registry. The changes of an apply or tablesync
// worker describe those of the publisher. A FOR ALL TABLES publication includes them, because every database with the
// extension has the tables. So the trigger is ENABLE ALWAYS, and drops the worker's changes. It does not check
// session_replication_role, because restores set that too.

#include "base/compat.hpp"

namespace uidgen::pg {
namespace {

// A worker can leave out rows, but not a TRUNCATE. So no session may send one.
[[noreturn]] void refuse_truncate(Relation table, bool of_fleet) {
    ereport(
        ERROR,
        (errcode(ERRCODE_FEATURE_NOT_SUPPORTED), errmsg("cannot truncate table \"%s\"", RelationGetRelationName(table)),
         errdetail("%s", of_fleet ? "Without its rows, nodes would be granted twice."
                                  : "The rows of the table describe sequences."),
         errhint("%s", of_fleet
                           ? "Take the node of a holder that does not run any more with uid_fleet_takeover()."
                           : "Drop generators with uid_generator_drop(), segments with segment_drop(), and keys with "
                             "uid_key_drop().")));
}

} // namespace
} // namespace uidgen::pg

using namespace uidgen::pg;

extern "C" {

UIDGEN_SQL_FUNCTION(uid_keep_local);

Datum uid_keep_local(PG_FUNCTION_ARGS) {
    const auto *trigger = CALLED_AS_TRIGGER(fcinfo) ? reinterpret_cast<TriggerData *>(fcinfo->context) : nullptr;
    if (trigger == nullptr || !TRIGGER_FIRED_BEFORE(trigger->tg_event))
        ereport(ERROR, (errcode(ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED),
                        errmsg("function \"uid_keep_local\" must be called as a BEFORE trigger"),
                        errhint("Use it only on the tables of uidgen.")));
    if (TRIGGER_FIRED_BY_TRUNCATE(trigger->tg_event))
        refuse_truncate(trigger->tg_relation, trigger->tg_trigger->tgnargs > 0);
    if (IsLogicalWorker())
        return static_cast<Datum>(0);
    PG_RETURN_POINTER(TRIGGER_FIRED_BY_UPDATE(trigger->tg_event) ? trigger->tg_newtuple : trigger->tg_trigtuple);
}
}
