#include "area.hpp"

#include "base/identity.hpp"
#include "server_state.hpp"

namespace uidgen::pg {

dsa_area *area = nullptr;
dshash_table *slot_table = nullptr;

namespace {

void (*restore_area)() = nullptr;

bool is_attached = false;

bool birth_is_known = false;
uint64_t database_born = 0;

// Keeps in this process when its database was made, from the birth of a file, which it looks at once: the database's
// directory is made with the database, and this file in it. Some processes have no database.
void learn_birth() {
    if (likely(birth_is_known) || !OidIsValid(MyDatabaseId))
        return;
    const char *file = psprintf("%s/PG_VERSION", DatabasePath);
    if (!fault_is("keep_slot") && !birth_of(file, &database_born))
        ereport(ERROR, (errcode_for_file_access(), errmsg("could not stat file \"%s\": %m", file)));
    birth_is_known = true;
}

// How a process opens the table of slots. Reads of shared memory only what is set once.
dshash_parameters table_parameters() {
    dshash_parameters parameters = {};
    parameters.key_size = sizeof(SlotKey);
    parameters.entry_size = sizeof(SlotRow);
    parameters.compare_function = dshash_memcmp;
    parameters.hash_function = dshash_memhash;
    set_copy_function(&parameters);
    parameters.tranche_id = server_state->tranche;
    return parameters;
}

// At the end of a process: releases all its LWLocks, because the area, which has some of them, is unmapped before
// PostgreSQL does so in a process that ends outside of a transaction.
void leave_area(int, Datum) {
    LWLockReleaseAll();
    ConditionVariableCancelSleep();
}

// Joins the area of that handle, after learn_birth(), or without one makes it and restores memberships
// (grant_file_restore()): no other process uses it before its handle is there. If an error comes first, a new area goes
// with the mapping, and the next process forgets what was in it. To make it the caller holds area.making.
void join_area(dsa_handle handle) UNCHECKED {
    AreaState *state = &server_state->area;
    const dshash_parameters parameters = table_parameters();
    const bool is_new = handle == DSM_HANDLE_INVALID;
    ErrorContextCallback context;
    learn_birth();
    MemoryContext caller = MemoryContextSwitchTo(TopMemoryContext);
    begin_allocation(&context, of_slot_table);
    area = is_new ? dsa_create(server_state->tranche) : dsa_attach(handle);
    slot_table =
        is_new ? dshash_create(area, &parameters, nullptr) : dshash_attach(area, &parameters, state->table, nullptr);
    end_allocation(context);
    MemoryContextSwitchTo(caller);
    if (is_new) {
        memset(static_cast<void *>(state->slots), 0, sizeof(state->slots));
        restore_area();
        dsa_pin(area);
        state->table = dshash_get_hash_table_handle(slot_table);
        state->handle.store(dsa_get_handle(area), std::memory_order_release);
    }
    before_shmem_exit(leave_area, 0);
    dsa_pin_mapping(area);
    is_attached = true;
}

} // namespace

SlotKey slot_key(Oid sequence) {
    learn_birth();
    return {.database = MyDatabaseId, .sequence = sequence, .born = database_born};
}

bool attach_area() {
    if (likely(is_attached))
        return true;
    if (!attach_server_state())
        return false;
    const dsa_handle handle = server_state->area.handle.load(std::memory_order_acquire);
    if (handle == DSM_HANDLE_INVALID)
        return false;
    join_area(handle);
    return true;
}

void open_area() {
    if (attach_area())
        return;
    LWLockAcquire(&server_state->area.making, LW_EXCLUSIVE);
    if (!attach_area())
        join_area(DSM_HANDLE_INVALID);
    LWLockRelease(&server_state->area.making);
}

void area_restore_by(void (*restore)()) { restore_area = restore; }

namespace {

// An error context callback: adds a CONTEXT and a HINT to an error that is being raised.
void explain_allocation(void *what) {
    if (ERRCODE_TO_CATEGORY(geterrcode()) != ERRCODE_INSUFFICIENT_RESOURCES)
        return;
    errcontext("allocation of dynamic shared memory for %s", static_cast<const char *>(what));
    errhint("Make more room in /dev/shm (in a container: a larger shm size), or set min_dynamic_shared_memory.");
}

} // namespace

void begin_allocation(ErrorContextCallback *context, const char *what) {
    *context = {error_context_stack, explain_allocation, const_cast<char *>(what)};
    error_context_stack = context;
}

dsa_pointer allocate_in_area(Size bytes, const char *what) {
    ErrorContextCallback context;
    begin_allocation(&context, what);
    const dsa_pointer memory = dsa_allocate_extended(area, bytes, DSA_ALLOC_HUGE | DSA_ALLOC_ZERO);
    end_allocation(context);
    return memory;
}

} // namespace uidgen::pg
