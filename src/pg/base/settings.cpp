#include "settings.hpp"

#include "core/layout.hpp"
#include "faults.hpp"
#include "postgres.hpp"

namespace uidgen::pg {

#ifdef UIDGEN_FAULTS
int active_fault = 0;
bool bad_samples = false;
#endif

namespace settings {

int max_slots = 1024;
int datacenter_id = 0;
int max_wait_ms = 5000;
bool use_counter = true;
int segment_step = 1000;
int segment_max_step = 10000000;

namespace {

void (*datacenter_id_changed)() = nullptr;

void datacenter_id_assigned(int, void *) { datacenter_id_changed(); }

#ifdef UIDGEN_FAULTS
const config_enum_entry fault_names[] = {
    {"none", static_cast<int>(Fault::none), false},
    {"no_flush", static_cast<int>(Fault::no_flush), false},
    {"delta_record", static_cast<int>(Fault::delta_record), false},
    {"stale_log_cnt", static_cast<int>(Fault::stale_log_cnt), false},
    {"resume_lease", static_cast<int>(Fault::resume_lease), false},
    {"keep_slot", static_cast<int>(Fault::keep_slot), false},
    {"release_lock", static_cast<int>(Fault::release_lock), false},
    {"trust_clock", static_cast<int>(Fault::trust_clock), false},
    {"trust_ranges", static_cast<int>(Fault::trust_ranges), false},
    {nullptr, 0, false},
};
#endif

} // namespace

void define(bool preloading, void (*changed)()) {
    datacenter_id_changed = changed;
    if (preloading)
        DefineCustomIntVariable(
            "uidgen.max_slots", "Number of generators and segments that can be in use at the same time.",
            "Each takes less than 1 kB of shared memory.", &max_slots,
            1024, 4, 1000000, PGC_POSTMASTER, 0, nullptr, nullptr, nullptr);
    DefineCustomIntVariable(
        "uidgen.datacenter_id", "The datacenter id in the ids of this server, or of this database.",
        "Databases whose ids must not meet need different numbers: "
        "ALTER DATABASE name SET uidgen.datacenter_id = 1.",
        &datacenter_id, 0, 0, static_cast<int>(core::largest(core::max_field_bits)), PGC_SUSET, 0, nullptr,
        datacenter_id_assigned, nullptr);
    DefineCustomIntVariable(
        "uidgen.max_wait", "How long a call waits for the clock before it gives up with an error.",
        "A generator waits when its ids would run ahead of the clock by more than its max_ahead.", &max_wait_ms,
        5000, 0, INT_MAX, PGC_USERSET, GUC_UNIT_MS, nullptr, nullptr, nullptr);
    DefineCustomIntVariable(
        "uidgen.segment_max_step", "How far the step of a segment without a bound of its own may grow.",
        "A range that was used up within 15 minutes doubles the step.", &segment_max_step, 10000000, 1, INT_MAX,
        PGC_SUSET, 0, nullptr, nullptr, nullptr);
    DefineCustomIntVariable(
        "uidgen.segment_step", "How many values a segment without a step of its own reserves at first.",
        "Takes effect for sequences first used after the change since the server started.", &segment_step, 1000, 1,
        INT_MAX, PGC_SUSET, 0, nullptr, nullptr, nullptr);
    DefineCustomBoolVariable(
        "uidgen.use_counter", "Uses the processor's time-stamp counter between two readings of the clock.",
        "Where the counter can be trusted. A step of the clock is then noticed at most 4 ms later.", &use_counter, true,
        PGC_SUSET, 0, nullptr, nullptr, nullptr);
#ifdef UIDGEN_FAULTS
    DefineCustomEnumVariable("uidgen.fault", "The guarantee that this test build breaks.", nullptr, &active_fault, 0,
                             fault_names, PGC_SIGHUP, 0, nullptr, nullptr, nullptr);
    DefineCustomBoolVariable("uidgen.bad_samples", "Shows this test build a wall clock that is a year ahead now and then.",
                             nullptr, &bad_samples, false, PGC_SUSET, 0, nullptr, nullptr, nullptr);
#endif
    MarkGUCPrefixReserved("uidgen");
}

} // namespace settings
} // namespace uidgen::pg
