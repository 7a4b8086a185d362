#include "session_events.hpp"

#include "default_generator.hpp"
#include "drop_hooks.hpp"
#include "segment_names.hpp"
#include "session.hpp"

namespace uidgen::pg {
namespace {

void relation_changed(Datum, Oid relation) {
    session_relation_changed(relation);
    default_relation_changed(relation);
    names_relation_changed(relation);
}

bool ends(XactEvent event) {
    return event != XACT_EVENT_PRE_COMMIT && event != XACT_EVENT_PRE_PREPARE && event != XACT_EVENT_PARALLEL_PRE_COMMIT;
}

void transaction_event(XactEvent event, void *) {
    drops_transaction_event(event); // frees slots, which the session then finds gone
    if (ends(event))
        session_transaction_ended();
}

void subtransaction_event(SubXactEvent event, SubTransactionId, SubTransactionId, void *) {
    if (event != SUBXACT_EVENT_ABORT_SUB)
        return;
    drops_subtransaction_aborted();
    open_all_again(); // the error has taken the session's timers along, and with them the bound of how old an id may be
}

} // namespace

void session_events_register() {
    CacheRegisterRelcacheCallback(relation_changed, 0);
    RegisterXactCallback(transaction_event, nullptr);
    RegisterSubXactCallback(subtransaction_event, nullptr);
}

} // namespace uidgen::pg
