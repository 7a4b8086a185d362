#include "events.hpp"

#include "names.hpp"
#include "base/relation_events.hpp"
#include "node/node_writer.hpp"
#include "session.hpp"

namespace uidgen::pg {
namespace {

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

ProcessUtility_hook_type next_process_utility = nullptr;

bool ends_last_values(Node *statement) {
    if (!IsA(statement, DiscardStmt))
        return false;
    const DiscardMode target = castNode(DiscardStmt, statement)->target;
    return target == DISCARD_ALL || target == DISCARD_SEQUENCES;
}

// DISCARD ALL and DISCARD SEQUENCES reset uid_last() and segment_last() as they reset currval() and lastval(). Behind a
// pooler the next client of the session must not read the values of another client. No other hook sees a DISCARD.
void process_utility(PlannedStmt *planned, const char *query, bool read_only_tree, ProcessUtilityContext context,
                     ParamListInfo params, QueryEnvironment *environment, DestReceiver *receiver,
                     QueryCompletion *completion) {
    const bool ends = ends_last_values(planned->utilityStmt); // the tree may be freed afterwards
    const auto next = next_process_utility != nullptr ? next_process_utility : standard_ProcessUtility;
    next(planned, query, read_only_tree, context, params, environment, receiver, completion);
    if (unlikely(ends))
        forget_last_values();
}

} // namespace

void session_events_register() {
    static bool registered = false; // by a load that failed afterwards
    if (registered)
        return;
    registered = true;
    on_relation_changed(session_relation_changed);
    on_relation_changed(default_relation_changed);
    on_relation_changed(names_relation_changed);
    RegisterXactCallback(transaction_event, nullptr);
    RegisterSubXactCallback(subtransaction_event, nullptr);
    next_process_utility = ProcessUtility_hook;
    ProcessUtility_hook = process_utility;
}

} // namespace uidgen::pg
