#include "drop_hooks.hpp"

#include "tables/dropped_rows.hpp"
#include "base/faults.hpp"
#include "shared/slots.hpp"

namespace uidgen::pg {
namespace {

object_access_hook_type next_object_access_hook = nullptr;

// A sequence with a slot that the open transaction drops, unless a savepoint brings it back.
struct PendingDrop {
    Oid sequence;
    bool dropped; // as the catalog says just before the commit
};

// A sequence that the open transaction has created, and the subtransaction that did: one that ends well leaves it to its
// parent.
struct Created {
    Oid sequence;
    SubTransactionId by;
};

// All in TopTransactionContext, empty between transactions. The newest of `created` is the last one, so those of one
// subtransaction stand together at the end when it ends.
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

// The catalog does not show a new relation yet, but its creator has it open.
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
    note_drop(relation); // one without a slot may have a row
}

void object_accessed(ObjectAccessType access, Oid class_id, Oid object, int sub_id, void *arg) {
    if (next_object_access_hook != nullptr)
        next_object_access_hook(access, class_id, object, sub_id, arg);
    if ((access != OAT_DROP && access != OAT_POST_CREATE) || sub_id != 0)
        return;
    // The hook runs before DROP DATABASE looks for other sessions, so this is a note, not yet a drop.
    if (class_id == DatabaseRelationId && access == OAT_DROP)
        note_database(object);
    else if (class_id == RelationRelationId)
        relation_accessed(access, object);
}

// Database oids, relation oids and file numbers all come again when a database is dropped and made anew, so
// nothing could tell its slots from the new one's. Nobody can connect to it any more at this point.
void purge_dropped_databases() {
    ListCell *cell;
    foreach (cell, dropped_databases)
        if (!fault_is(Fault::keep_slot))
            slots_free_database(lfirst_oid(cell));
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

void free_lost(Oid sequence) { slot_free({MyDatabaseId, sequence}, Fate::lost); }

enum class Outcome { committed, aborted, prepared };

// After PREPARE a sequence that was created or dropped stays locked. Whoever uses it later finds all there is to know on its
// page. Whether it is lost is not known by then, and to take it for lost is the safe side.
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
    pending_drops = created = dropped_databases = NIL; // their memory goes with the transaction
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

// What a subtransaction has created goes with it, before the same transaction creates it again. Nobody else has seen it, and
// parallel workers are dropped by now.
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
