#include "drop_hooks.hpp"

#include "faults.hpp"
#include "slots.hpp"
#include "worker_node.hpp"

namespace uidgen::pg {
namespace {

object_access_hook_type next_object_access_hook = nullptr;

struct Suspect {
    Oid relation;
    bool made_here; // by the open transaction
    bool gone;      // as the catalog says just before the commit
};

// Both in TopTransactionContext, empty between transactions.
List *suspects = NIL;
List *dropped_databases = NIL;

void note_suspect(Oid relation, bool made_here) {
    MemoryContext caller = MemoryContextSwitchTo(TopTransactionContext);
    auto *suspect = static_cast<Suspect *>(palloc(sizeof(Suspect)));
    *suspect = {relation, made_here, false};
    suspects = lappend(suspects, suspect);
    MemoryContextSwitchTo(caller);
}

void note_database(Oid database) {
    MemoryContext caller = MemoryContextSwitchTo(TopTransactionContext);
    dropped_databases = lappend_oid(dropped_databases, database);
    MemoryContextSwitchTo(caller);
}

void object_accessed(ObjectAccessType access, Oid class_id, Oid object, int sub_id, void *arg) {
    if (next_object_access_hook != nullptr)
        next_object_access_hook(access, class_id, object, sub_id, arg);
    if (access != OAT_DROP || sub_id != 0)
        return;
    // The hook runs before DROP DATABASE looks for other sessions, so this is a note, not yet a drop.
    if (class_id == DatabaseRelationId)
        note_database(object);
    else if (class_id == RelationRelationId && slot_note_drop({MyDatabaseId, object}))
        note_suspect(object, false);
}

// Database oids, relation oids and file numbers all come again when a database is dropped and made anew, so
// nothing could tell its slots from the new one's. Nobody can connect to it any more at this point.
void purge_dropped_databases() {
    ListCell *cell;
    foreach (cell, dropped_databases)
        if (!fault_is(Fault::keep_slot))
            slots_free_database(lfirst_oid(cell));
}

void look_up_suspects() {
    ListCell *cell;
    foreach (cell, suspects) {
        auto *suspect = static_cast<Suspect *>(lfirst(cell));
        suspect->gone = !SearchSysCacheExists1(RELOID, ObjectIdGetDatum(suspect->relation));
    }
}

enum class Outcome { committed, aborted, prepared };

void settle(Outcome outcome) {
    ListCell *cell;
    worker_rows_after_transaction(outcome == Outcome::committed); // while the slots are still theirs
    foreach (cell, suspects) {
        const auto *suspect = static_cast<Suspect *>(lfirst(cell));
        // After PREPARE the sequence stays locked; whoever uses it later finds all there is to know on its page.
        const bool ends = outcome == Outcome::aborted    ? suspect->made_here
                          : outcome == Outcome::prepared ? suspect->gone || suspect->made_here
                                                         : suspect->gone;
        if (ends)
            slot_free({MyDatabaseId, suspect->relation});
    }
    suspects = NIL; // their memory goes with the transaction
    dropped_databases = NIL;
}

} // namespace

void drops_transaction_event(XactEvent event) {
    switch (event) {
    case XACT_EVENT_PRE_COMMIT:
        worker_rows_before_commit();
        look_up_suspects();
        purge_dropped_databases();
        break;
    case XACT_EVENT_PRE_PREPARE:
        look_up_suspects();
        break;
    case XACT_EVENT_COMMIT:
    case XACT_EVENT_PARALLEL_COMMIT:
        settle(Outcome::committed);
        break;
    case XACT_EVENT_ABORT:
    case XACT_EVENT_PARALLEL_ABORT:
        settle(Outcome::aborted);
        break;
    case XACT_EVENT_PREPARE:
        settle(Outcome::prepared);
        break;
    case XACT_EVENT_PARALLEL_PRE_COMMIT:
        break;
    }
}

// A generator whose creation is rolled back to a savepoint is gone for whoever makes it anew in the same transaction.
void drops_subtransaction_aborted() {
    ListCell *cell;
    foreach (cell, suspects) {
        const auto *suspect = static_cast<Suspect *>(lfirst(cell));
        if (suspect->made_here)
            slot_note_drop({MyDatabaseId, suspect->relation});
    }
}

void drop_hooks_install() {
    next_object_access_hook = object_access_hook;
    object_access_hook = object_accessed;
}

void note_slot_of_new_relation(Relation rel) {
    if (rel->rd_createSubid != InvalidSubTransactionId)
        note_suspect(RelationGetRelid(rel), true);
}

} // namespace uidgen::pg
