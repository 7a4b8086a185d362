#include "session_events.hpp"

#include "default_generator.hpp"
#include "keys.hpp"
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

void transaction_event(XactEvent event, void *) {
    if (event == XACT_EVENT_PRE_COMMIT || event == XACT_EVENT_PRE_PREPARE || event == XACT_EVENT_PARALLEL_PRE_COMMIT)
        return;
    session_transaction_ends(event == XACT_EVENT_ABORT);
    node_writer_transaction_ended();
    session_transaction_ended();
}

void subtransaction_event(SubXactEvent event, SubTransactionId mine, SubTransactionId, void *) {
    if (event == SUBXACT_EVENT_ABORT_SUB)
        session_rolls_back(mine);
}

} // namespace

void session_events_register() {
    CacheRegisterRelcacheCallback(relation_changed, 0);
    RegisterXactCallback(transaction_event, nullptr);
    RegisterSubXactCallback(subtransaction_event, nullptr);
}

} // namespace uidgen::pg
