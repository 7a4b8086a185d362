#include "settings.hpp"

#include "base.hpp"
#include "core/layout.hpp"

namespace uidgen::pg {

#ifdef UIDGEN_FAULTS
char *active_fault = nullptr;
#endif

namespace settings {

bool is_preloaded = false;
int64_t preloaded_us = 0;
int datacenter_id = -1;
int max_wait_ms = 5000;
int max_clock_jump_s = 0;
int segment_step = 1000;
int segment_max_step = 1000000;
char *registry = nullptr;
int registry_lease_ms = 0;

namespace {

constexpr char registry_name[] = "uidgen.registry";
constexpr char datacenter_id_name[] = "uidgen.datacenter_id";

// Had a value that may hide another one when the library was loaded without preload.
const char *hidden = nullptr;

void (*datacenter_id_changed)() = nullptr;

// Assigns uidgen.datacenter_id: calls what define() was given, close_all_windows() in this session.
void datacenter_id_assigned(int, void *) { datacenter_id_changed(); }

void (*fleet_changed)(bool in_fleet) = nullptr;

// Assigns uidgen.registry: calls what define() was given, set_in_fleet() and close_all_windows(). A reload assigns
// every setting, changed or not.
void registry_assigned(const char *value, void *) {
    if (registry == nullptr || strcmp(value, registry) != 0)
        fleet_changed(value[0] != '\0');
}

// Defines the settings of a fleet, as a part of define(), which assigns them (registry_assigned()).
void define_fleet() {
    DefineCustomStringVariable(registry_name, "Sets the connection string of the registry of this server's fleet.",
                               "It is a libpq connection string. If it is empty, this server belongs to no fleet.",
                               &registry, "", PGC_SIGHUP, GUC_SUPERUSER_ONLY | GUC_NOT_IN_SAMPLE, nullptr,
                               registry_assigned, nullptr);
    DefineCustomIntVariable("uidgen.registry_lease", "Sets the length of the grants that this server asks for.",
                            "While the registry cannot be reached, ids can be drawn until the grant ends. "
                            "0 means the longest grant of the fleet.",
                            &registry_lease_ms, 0, 0, INT_MAX, PGC_SIGHUP, GUC_UNIT_MS, nullptr, nullptr, nullptr);
}

} // namespace

bool is_set() { return registry[0] != '\0' || datacenter_id >= 0; }

const char *unreliable_setting() {
    if (is_preloaded || hidden != nullptr)
        return hidden;
    if (registry[0] != '\0')
        return registry_name;
    return datacenter_id >= 0 ? datacenter_id_name : nullptr;
}

void define(void (*changed)(), void (*registry_changed)(bool in_fleet)) {
    datacenter_id_changed = changed;
    fleet_changed = registry_changed;
    is_preloaded = process_shared_preload_libraries_in_progress;
    preloaded_us = monotonic_us();
    for (const char *name : {registry_name, datacenter_id_name})
        if (!is_preloaded && parameter_may_hide_another(name))
            hidden = name;
    DefineCustomIntVariable(datacenter_id_name, "Sets the datacenter id in the ids of this server or database.",
                            "Databases whose ids must not collide need different datacenter ids: "
                            "ALTER DATABASE name SET uidgen.datacenter_id = 1. -1 means unset: random "
                            "nodes make a collision unlikely.",
                            &datacenter_id, -1, -1, static_cast<int>(core::largest(core::max_field_bits)), PGC_SUSET, 0,
                            nullptr, datacenter_id_assigned, nullptr);
    DefineCustomIntVariable(
        "uidgen.max_clock_jump", "Sets the maximum forward jump of the clock that generators accept.",
        "If the clock jumps further, compared with the monotonic clock, draws fail until it is back or the jump is "
        "accepted with a higher limit. 0 means no limit.",
        &max_clock_jump_s, 0, 0, INT_MAX, PGC_SUSET, GUC_UNIT_S, nullptr, nullptr, nullptr);
    DefineCustomIntVariable(
        "uidgen.max_wait", "Sets the maximum time that a call waits for the clock or the registry before it fails.",
        "A call waits when its id would be ahead of the clock by more than the generator's max_ahead_ms.", &max_wait_ms,
        5000, 0, INT_MAX, PGC_USERSET, GUC_UNIT_MS, nullptr, nullptr, nullptr);
    DefineCustomIntVariable("uidgen.segment_max_step",
                            "Sets the maximum step of a segment without a max_step of its own.",
                            "The step doubles when a range is used up within 15 minutes.", &segment_max_step, 1000000,
                            1, INT_MAX, PGC_SUSET, 0, nullptr, nullptr, nullptr);
    DefineCustomIntVariable("uidgen.segment_step", "Sets the initial step of a segment without a step of its own.",
                            "The step is the number of values that a segment reserves at a time. "
                            "A change takes effect when the next range is reserved.",
                            &segment_step, 1000, 1, INT_MAX, PGC_SUSET, 0, nullptr, nullptr, nullptr);
    define_fleet();
#ifdef UIDGEN_FAULTS
    DefineCustomStringVariable("uidgen.fault", "Selects the guarantee that this test build breaks.", nullptr,
                               &active_fault, "", PGC_SIGHUP, 0, nullptr, nullptr, nullptr);
#endif
    MarkGUCPrefixReserved("uidgen");
}

} // namespace settings
} // namespace uidgen::pg
