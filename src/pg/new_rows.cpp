#include "new_rows.hpp"

#include "slots.hpp"

namespace uidgen::pg {
namespace {

struct NewRow {
    Oid generator;
    TransactionId by; // the transaction or subtransaction that added it; invalid: that was rolled back
};

List *new_rows = NIL; // in TopTransactionContext, empty between transactions

// What is being rolled back is not current any more, and neither is what had become part of it.
void free_slots_of_lost_rows() {
    ListCell *cell;
    foreach (cell, new_rows) {
        auto *row = static_cast<NewRow *>(lfirst(cell));
        if (!TransactionIdIsValid(row->by) || TransactionIdIsCurrentTransactionId(row->by))
            continue;
        slot_free({MyDatabaseId, row->generator}, Fate::lives_on);
        row->by = InvalidTransactionId;
    }
}

void transaction_event(XactEvent event, void *) {
    if (event == XACT_EVENT_ABORT)
        free_slots_of_lost_rows();
    // A prepared transaction keeps its lock on a sequence that was there before, so nobody makes a slot; those of new
    // sequences end at PREPARE (drop_hooks.cpp).
    if (event == XACT_EVENT_ABORT || event == XACT_EVENT_COMMIT || event == XACT_EVENT_PREPARE)
        new_rows = NIL;
}

void subtransaction_event(SubXactEvent event, SubTransactionId, SubTransactionId, void *) {
    if (event == SUBXACT_EVENT_ABORT_SUB)
        free_slots_of_lost_rows();
}

void register_callbacks() {
    static bool registered = false;
    if (registered)
        return;
    RegisterXactCallback(transaction_event, nullptr);
    RegisterSubXactCallback(subtransaction_event, nullptr);
    registered = true;
}

} // namespace

void note_new_row(Oid generator) {
    if (!slots_exist())
        return;
    register_callbacks();
    MemoryContext caller = MemoryContextSwitchTo(TopTransactionContext);
    auto *row = static_cast<NewRow *>(palloc(sizeof(NewRow)));
    *row = {generator, GetCurrentTransactionId()};
    new_rows = lappend(new_rows, row);
    MemoryContextSwitchTo(caller);
}

} // namespace uidgen::pg
