#include "incarnation.hpp"

namespace uidgen::pg {
namespace {

constexpr char name[] = "uidgen incarnation";

const uint64_t *salt = nullptr;

} // namespace

void incarnation_request_memory() { RequestAddinShmemSpace(sizeof(*salt)); }

void incarnation_attach_memory() {
    bool found = false;
    LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
    auto *shared = static_cast<uint64_t *>(ShmemInitStruct(name, sizeof(*salt), &found));
    if (!found && !pg_strong_random(shared, sizeof(*shared)))
        ereport(FATAL, (errcode(ERRCODE_INTERNAL_ERROR), errmsg("could not generate a random salt for uidgen")));
    salt = shared;
    LWLockRelease(AddinShmemInitLock);
}

uint64_t incarnation_salt() { return *salt; }

} // namespace uidgen::pg
