#include "new_rows.hpp"

#include "shared/slots.hpp"

namespace uidgen::pg {
namespace {

struct NewRow {
    Oid generator;
    TransactionId by; // the (sub)transaction that added it; invalid: it was rolled back
};

List *new_rows = NIL; // in TopTransactionContext, empty between transactions

// A (sub)transaction that is being rolled back is not current any more, and neither are its committed subtransactions.
void free_slots_of_lost_rows() {
    ListCell *cell;
    foreach (cell, new_rows) {
        auto *row = static_cast<NewRow *>(lfirst(cell));
        if (!TransactionIdIsValid(row->by) || TransactionIdIsCurrentTransactionId(row->by))
            continue;
        slot_free({MyDatabaseId, row->generator}, Fate::lost);
        row->by = InvalidTransactionId;
    }
}

} // namespace

// A prepared transaction keeps its lock on a sequence that existed before, so no session makes a slot for it. Slots of
// new sequences are freed at PREPARE (drop_hooks.cpp).
void new_rows_transaction_ended(bool aborted) {
    if (aborted)
        free_slots_of_lost_rows();
    new_rows = NIL; // the transaction's end frees its memory
}

void new_rows_subtransaction_aborted() { free_slots_of_lost_rows(); }

void note_new_row(Oid generator) {
    if (!slots_exist())
        return;
    MemoryContext caller = MemoryContextSwitchTo(TopTransactionContext);
    auto *row = static_cast<NewRow *>(palloc(sizeof(NewRow)));
    *row = {generator, GetCurrentTransactionId()};
    new_rows = lappend(new_rows, row);
    MemoryContextSwitchTo(caller);
}

} // namespace uidgen::pg
