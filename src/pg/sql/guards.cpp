// What keeps definitions and tables true in drops, in restores and in logical replication; and what functions in
// PL/pgSQL lock.

#include "session/define.hpp"
#include "session/session.hpp"
#include "session/slot_life.hpp"

namespace uidgen::pg {

// The quoted name of the extension's schema, locked to the end of the transaction (hold_names()).
UIDGEN_SQL_FUNCTION(uid_home) { PG_RETURN_TEXT_P(cstring_to_text(quoted_schema(hold_names()))); }

// Takes AccessExclusiveLock (lock_first()) for the owner of a table or of a sequence, who could do the same by LOCK
// TABLE or ALTER SEQUENCE. Others get no lock, and an error from the caller. A sequence is locked as a plan that
// renames or drops it does.
UIDGEN_SQL_FUNCTION(uid_lock_first) {
    const Oid relation = PG_GETARG_OID(0);
    if (is_relation(relation) && has_privs_of_role(GetUserId(), owner_of(relation)))
        lock_first(relation, AccessExclusiveLock);
    open_all_again(); // this session may have drawn from it, and the plan moves its counter
    PG_RETURN_VOID();
}

// Does nothing. The library is loaded when the function is called, and registers the provider of labels.
UIDGEN_SQL_FUNCTION(uid_load) {
    if (!CALLED_AS_EVENT_TRIGGER(fcinfo))
        report_other_call("uid_load", "trigger of DDL");
    PG_RETURN_VOID();
}

// Keeps logical replication away from worker_node, whose rows describe sequences of this server and numbers that it
// drew. A FOR ALL TABLES publication includes the table, because every database with the extension has it. The trigger
// is ENABLE ALWAYS, and acts only in an apply or tablesync worker. It does not check session_replication_role, because
// restores set that too.
UIDGEN_SQL_FUNCTION(uid_keep_local) {
    const TriggerData *trigger = trigger_of(fcinfo);
    if (trigger == nullptr || !TRIGGER_FIRED_BEFORE(trigger->tg_event) || !TRIGGER_FIRED_FOR_ROW(trigger->tg_event))
        report_other_call("uid_keep_local", "BEFORE trigger for each row");
    if (IsLogicalWorker() && !fault_is("bring_rows"))
        return static_cast<Datum>(0); // leaves the change out
    return PointerGetDatum(TRIGGER_FIRED_BY_UPDATE(trigger->tg_event) ? trigger->tg_newtuple : trigger->tg_trigtuple);
}

} // namespace uidgen::pg
