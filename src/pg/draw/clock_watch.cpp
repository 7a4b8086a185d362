#include "clock_watch.hpp"

namespace uidgen::pg {
namespace {

// A generator's name is unique in its database only.
struct Names {
    const char *generator;
    const char *database;
};
Names names_of(const SessionEntry *e) { return {get_rel_name(e->sequence), get_database_name(MyDatabaseId)}; }

void log_behind(const Names &names, const GeneratorConfig &config, int64_t tick, int64_t back) {
    const core::Layout &layout = config.layout;
    const char *until = timestamptz_to_str(to_timestamptz(core::start_of(layout, tick + back)));
    ereport(LOG, (errmsg("clock is %.3f s behind generator \"%s\" in database \"%s\"",
                         static_cast<double>(back * layout.tick_us) / 1e6, names.generator, names.database),
                  config.cached.on ? errdetail("The clock catches up when it shows %s.", until)
                                   : errdetail("The policy when_back applies until the clock shows %s.", until)));
}

} // namespace

void note_clock_jump(int64_t now_us, int64_t moved_us) {
    server_state->clock.jumps.fetch_add(1, std::memory_order_relaxed);
    ereport(LOG,
            (errmsg("clock jumped forward by %.3f s", static_cast<double>(moved_us) / 1e6),
             errdetail("It shows %s, and ids carry that time from now on. It was set, or the machine was suspended.",
                       timestamptz_to_str(to_timestamptz(now_us))),
             errhint("If the clock is wrong, correct it at once: generators stay above the ids that they issue "
                     "meanwhile (docs/runbooks/clock.md).")));
}

void note_clock_change(const SessionEntry *e, uint64_t changes, const core::ClockState &view) {
    GeneratorState &generator = e->slot->generator;
    const GeneratorConfig &config = generator.config;
    core::ClockState again = view;
    again.now = core::tick_at(config.layout, wall_clock_us());
    const int64_t back = core::ticks_back(config.policy, again);
    if ((back > 0) == is_behind(changes))
        return;
    const Names names = names_of(e); // may fail, so it comes before the change
    if (!generator.clock.changes.compare_exchange_strong(changes, changes + 1, std::memory_order_acq_rel))
        return; // another session has made the change
    if (back > 0)
        log_behind(names, config, again.now, back);
    else
        ereport(LOG, (errmsg("clock has caught up with generator \"%s\" in database \"%s\"", names.generator,
                             names.database)));
}

} // namespace uidgen::pg
