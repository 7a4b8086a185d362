#include "end_warnings.hpp"

#include "base/guarded_struct.hpp"

namespace uidgen::pg {
namespace {

constexpr char name[] = "uidgen end warnings";
constexpr uint32_t places = 64;

struct Warning {
    Oid database;
    Oid generator;
    int64_t end_us;
};

// Guarded by the lock.
struct Warnings {
    Warning latest[places]; // a circular buffer
    uint32_t next;
};
Warnings *warnings = nullptr;
LWLock *warnings_lock = nullptr;

} // namespace

void end_warnings_request_memory() { request_guarded_struct<Warnings>(name); }
void end_warnings_attach_memory() { warnings = attach_guarded_struct<Warnings>(name, &warnings_lock); }

bool is_first_end_warning(Oid generator, int64_t end_us) {
    bool known = false;
    LWLockAcquire(warnings_lock, LW_EXCLUSIVE);
    for (const Warning &warning : warnings->latest)
        known =
            known || (warning.database == MyDatabaseId && warning.generator == generator && warning.end_us == end_us);
    if (!known)
        warnings->latest[warnings->next++ % places] = {MyDatabaseId, generator, end_us};
    LWLockRelease(warnings_lock);
    return !known;
}

} // namespace uidgen::pg
