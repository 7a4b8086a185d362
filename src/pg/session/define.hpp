// How a definition takes effect: the security label of a sequence is set or removed, by a statement or by a function
// of the extension. Callers of the functions have checked the caller's rights, and look at the owner again under the
// lock; SECURITY LABEL checks the owner itself.
//
//   1. A statement sets a first definition, as a restore does, or the one that is there. A change needs a function of
//      the extension. So a restore that continues after "already exists" changes nothing.
//   2. A first definition excludes all sessions that draw from the sequence, and so does a change of a generator.
//   3. The layout of a generator may change until the first lease. max_ahead may become shorter only as far as the
//      clock covers what is leased. A change ends the lease, and the transaction that made it cannot draw
//      (config/label.cpp), because a rollback would bring the former definition back, and ids of the new one stay.
//   4. The sequence depends on the extension from then on. So no label outlives it.
//   5. To move the default, a session locks the choice first, then the former default and the next one. A statement has
//      locked its sequence already, so it does not wait for the choice.
#pragma once

#include "config/label.hpp"

namespace uidgen::pg {

// The hook of the label provider, which makes a label take effect that PostgreSQL is about to store. null: it is to be
// removed. Under the lock of SECURITY LABEL on the object, ShareUpdateExclusiveLock. Excludes draws, and changes its
// dependency and its slot (begin_definition(), end_definition()).
void accept_label(const ObjectAddress *object, const char *label)
    EXCLUDES(page_lock, table_lock, slot_lock, state_lock);

// Defines what a sequence is that has no label yet (begin_definition()), and stores the label. Excludes draws, and
// locks the extension; frees the slot or marks it stale. Reads the page and the slot of one that becomes a generator's
// (check_counter()). Error unless the caller owns it.
void define_sequence(Oid sequence, const core::Definition &definition)
    EXCLUDES(page_lock, table_lock, slot_lock, state_lock);

// Locks a sequence, to the end of the transaction, and reads its definition for redefine_sequence(): a generator by
// lock_generator(), others with ShareUpdateExclusiveLock. Its kind is none if it is not of that kind.
core::Definition lock_definition(Oid sequence, core::DefinitionKind kind)
    EXCLUDES(page_lock, table_lock, slot_lock, state_lock);
// Changes the definition that lock_definition() has returned, under its lock, and stores the label. A generator's lease
// ends (end_lease()), after a wait for the clock if need be (wait_for_change()), and a segment's slot is marked altered
// (mark_stale()). The table of slots forgets a default that changes (note_default()).
void redefine_sequence(Oid sequence, const core::Definition &former, const core::Definition &wanted)
    EXCLUDES(page_lock, table_lock, slot_lock, state_lock);

// Calls lock_definition() and redefine_sequence(), so the lock stays: change(&definition) says what becomes of it.
// False if it is not of that kind.
template <typename Change>
bool change_definition(Oid sequence, core::DefinitionKind kind, Change change)
    EXCLUDES(page_lock, table_lock, slot_lock, state_lock) {
    const core::Definition former = lock_definition(sequence, kind);
    core::Definition wanted = former;
    if (former.kind == core::DefinitionKind::none)
        return false;
    change(&wanted);
    redefine_sequence(sequence, former, wanted);
    return true;
}

// By change_definition(), which locks the generator: whether it is the default. Under lock_choice_of_default().
void set_is_default(Oid generator, bool is_default) EXCLUDES(page_lock, table_lock, slot_lock, state_lock);

// Begins a move of the default, under lock_choice_of_default(): the label of the former one, which it locks
// (InvalidOid: there is none), says that it is not it any more (set_is_default()). The caller writes which one is.
void move_default(Oid former) EXCLUDES(page_lock, table_lock, slot_lock, state_lock);

// Takes the heavyweight lock of the choice of the default generator, to the end of the transaction. A caller that has
// locked a sequence already passes LockWaitSkip. False: another session has the lock.
bool lock_choice_of_default(LockWaitPolicy policy) EXCLUDES(page_lock, table_lock, slot_lock, state_lock);

// For module.cpp: a relation is about to be dropped, under its lock. By its label: notes that a generator is lost, in
// its slot (lose_generator()) and, if it was the default, in the table of slots, and deletes the row of a key by a
// statement (write_as_owner()). Only a session that has loaded the library comes here.
void forget_dropped(Oid relation) EXCLUDES(page_lock, table_lock, slot_lock, state_lock);

} // namespace uidgen::pg
