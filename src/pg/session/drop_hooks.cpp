#include "drop_hooks.hpp"

#include "tables/dropped_rows.hpp"
#include "base/faults.hpp"
#include "shared/blocks.hpp"
#include "shared/grants.hpp"
#include "shared/slots.hpp"

namespace uidgen::pg {
namespace {

object_access_hook_type next_object_access_hook = nullptr;

// A sequence with a slot, dropped by the open transaction. A savepoint may bring it back.
struct PendingDrop {
    Oid sequence;
    bool dropped; // according to the catalog just before the commit
};

// A sequence created by the open transaction, with the subtransaction that created it. When that commits, the sequence
// passes to its parent.
struct Created {
    Oid sequence;
    SubTransactionId by;
};

// All in TopTransactionContext, and empty between transactions. `created` is in order of creation, so the entries of an
// ending subtransaction are together at its end.
List *pending_drops = NIL;
List *created = NIL;
List *dropped_databases = NIL;

void note_drop(Oid sequence) {
    MemoryContext caller = MemoryContextSwitchTo(TopTransactionContext);
    auto *drop = static_cast<PendingDrop *>(palloc(sizeof(PendingDrop)));
    *drop = {sequence, false};
    pending_drops = lappend(pending_drops, drop);
    MemoryContextSwitchTo(caller);
}

void note_created(Oid sequence) {
    MemoryContext caller = MemoryContextSwitchTo(TopTransactionContext);
    auto *entry = static_cast<Created *>(palloc(sizeof(Created)));
    *entry = {sequence, GetCurrentSubTransactionId()};
    created = lappend(created, entry);
    MemoryContextSwitchTo(caller);
}

void note_database(Oid database) {
    MemoryContext caller = MemoryContextSwitchTo(TopTransactionContext);
    dropped_databases = lappend_oid(dropped_databases, database);
    MemoryContextSwitchTo(caller);
}

// The catalog does not show a new relation yet, but the session that creates it has it open.
bool is_new_sequence(Oid relation) {
    Relation rel = RelationIdGetRelation(relation);
    if (rel == nullptr)
        return false;
    const bool is_sequence = rel->rd_rel->relkind == RELKIND_SEQUENCE;
    RelationClose(rel);
    return is_sequence;
}

void relation_accessed(ObjectAccessType access, Oid relation) {
    if (access == OAT_POST_CREATE && is_new_sequence(relation))
        note_created(relation);
    if (access != OAT_DROP || get_rel_relkind(relation) != RELKIND_SEQUENCE)
        return;
    slot_note_drop({MyDatabaseId, relation});
    note_drop(relation); // even a sequence without a slot may have a row
}

void object_accessed(ObjectAccessType access, Oid class_id, Oid object, int sub_id, void *arg) {
    if (next_object_access_hook != nullptr)
        next_object_access_hook(access, class_id, object, sub_id, arg);
    if ((access != OAT_DROP && access != OAT_POST_CREATE) || sub_id != 0)
        return;
    // The hook runs before DROP DATABASE looks for other sessions. So the drop is only noted here.
    if (class_id == DatabaseRelationId && access == OAT_DROP)
        note_database(object);
    else if (class_id == RelationRelationId)
        relation_accessed(access, object);
}

// Database oids, relation oids and file numbers can all be reused when a database is dropped and created again. Then
// nothing would distinguish its old slots from new ones. At this point no session can connect to the database any more.
void purge_dropped_databases() {
    ListCell *cell;
    foreach (cell, dropped_databases)
        if (!fault_is(Fault::keep_slot)) {
            slots_free_database(lfirst_oid(cell));
            grants_forget_database(lfirst_oid(cell));
            blocks_forget_database(lfirst_oid(cell));
        }
}

void look_up_pending_drops() {
    ListCell *cell;
    foreach (cell, pending_drops) {
        auto *drop = static_cast<PendingDrop *>(lfirst(cell));
        drop->dropped = !SearchSysCacheExists1(RELOID, ObjectIdGetDatum(drop->sequence));
        if (drop->dropped)
            forget_dropped_sequence(drop->sequence);
    }
}

void free_lost(Oid sequence) {
    slot_free({MyDatabaseId, sequence}, Fate::lost);
    grants_forget({MyDatabaseId, sequence});
    blocks_forget({MyDatabaseId, sequence});
}

enum class Outcome { committed, aborted, prepared };

// After PREPARE a sequence that was created or dropped stays locked. A session that uses it later finds everything it
// needs on its page. Whether the generator is lost is not known yet, and it is safe to count it as lost.
void settle(Outcome outcome) {
    ListCell *cell;
    foreach (cell, pending_drops) {
        const auto *drop = static_cast<PendingDrop *>(lfirst(cell));
        if (outcome != Outcome::aborted && drop->dropped)
            free_lost(drop->sequence);
    }
    foreach (cell, created)
        if (outcome != Outcome::committed)
            free_lost(static_cast<Created *>(lfirst(cell))->sequence);
    pending_drops = created = dropped_databases = NIL; // the transaction's end frees their memory
}

} // namespace

void drops_transaction_event(XactEvent event) {
    switch (event) {
    case XACT_EVENT_PRE_COMMIT:
        look_up_pending_drops();
        purge_dropped_databases();
        break;
    case XACT_EVENT_PRE_PREPARE:
        look_up_pending_drops();
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

// A sequence that a subtransaction has created is freed when the subtransaction aborts, before the same transaction
// creates it again. No other session has seen it, and parallel workers have ended by now.
void drops_subtransaction_event(SubXactEvent event, SubTransactionId mine, SubTransactionId parent) {
    if (event != SUBXACT_EVENT_ABORT_SUB && event != SUBXACT_EVENT_COMMIT_SUB)
        return;
    int count = list_length(created);
    for (; count > 0; count--) {
        auto *last = static_cast<Created *>(list_nth(created, count - 1));
        if (last->by != mine)
            break;
        if (event == SUBXACT_EVENT_ABORT_SUB)
            free_lost(last->sequence);
        else
            last->by = parent;
    }
    if (event == SUBXACT_EVENT_ABORT_SUB)
        created = list_truncate(created, count);
}

void drop_hooks_install() {
    next_object_access_hook = object_access_hook;
    object_access_hook = object_accessed;
}

} // namespace uidgen::pg
