#include "discard.hpp"

#include "session.hpp"

namespace uidgen::pg {
namespace {

ProcessUtility_hook_type next_process_utility = nullptr;

bool ends_last_values(Node *statement) {
    if (!IsA(statement, DiscardStmt))
        return false;
    const DiscardMode target = castNode(DiscardStmt, statement)->target;
    return target == DISCARD_ALL || target == DISCARD_SEQUENCES;
}

// No other hook sees a DISCARD.
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

void discard_hook_install() {
    next_process_utility = ProcessUtility_hook;
    ProcessUtility_hook = process_utility;
}

} // namespace uidgen::pg
