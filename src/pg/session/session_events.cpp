#include "session_events.hpp"

#include "default_generator.hpp"
#include "drop_hooks.hpp"
#include "keys.hpp"
#include "tables/new_rows.hpp"
#include "tables/node_writer.hpp"
#include "segment_names.hpp"
#include "session.hpp"

namespace uidgen::pg {
namespace {

void relation_changed(Datum, Oid relation) {
    session_relation_changed(relation);
    default_relation_changed(relation);
    names_relation_changed(relation);
    keys_relation_changed(relation);
}

bool ends(XactEvent event) {
    return event != XACT_EVENT_PRE_COMMIT && event != XACT_EVENT_PRE_PREPARE && event != XACT_EVENT_PARALLEL_PRE_COMMIT;
}

void transaction_event(XactEvent event, void *) {
    if (ends(event))
        session_transaction_ends();
    drops_transaction_event(event); // frees slots; the others then find them freed
    if (!ends(event))
        return;
    new_rows_transaction_ended(event == XACT_EVENT_ABORT);
    node_writer_transaction_ended();
    session_transaction_ended();
}

void subtransaction_event(SubXactEvent event, SubTransactionId mine, SubTransactionId parent, void *) {
    drops_subtransaction_event(event, mine, parent);
    if (event != SUBXACT_EVENT_ABORT_SUB)
        return;
    new_rows_subtransaction_aborted();
    open_all_again(); // slots of what was created in it are freed
}

} // namespace

void session_events_register() {
    CacheRegisterRelcacheCallback(relation_changed, 0);
    RegisterXactCallback(transaction_event, nullptr);
    RegisterSubXactCallback(subtransaction_event, nullptr);
}

} // namespace uidgen::pg
