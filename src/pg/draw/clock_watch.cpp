#include "clock_watch.hpp"

namespace uidgen::pg {
namespace {

void note_event(ClockEvents *clock) { clock->last_us.store(wall_clock_us(), std::memory_order_relaxed); }

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

void log_caught_up(const Names &names, uint64_t held) {
    ereport(LOG,
            (errmsg("clock has caught up with generator \"%s\" in database \"%s\"", names.generator, names.database),
             errdetail_plural("The generator made %llu id while the clock was behind.",
                              "The generator made %llu ids while the clock was behind.",
                              static_cast<unsigned long>(held), static_cast<unsigned long long>(held))));
}

// False: another session has made the change.
bool change(ClockEvents *clock, uint64_t changes) {
    if (!clock->changes.compare_exchange_strong(changes, changes + 1, std::memory_order_acq_rel))
        return false;
    note_event(clock);
    return true;
}

bool begin(ClockEvents *clock, uint64_t changes, uint64_t next) {
    if (clock->changes.load(std::memory_order_acquire) != changes)
        return false; // before it raises what another session counts from
    core::raise_to(clock->behind_from, next, std::memory_order_relaxed);
    return change(clock, changes);
}

bool end(GeneratorState *generator, uint64_t changes, uint64_t last, uint64_t *held) {
    *held = made_since_behind(*generator, generator->config, last); // before the next beginning can raise it
    if (!change(&generator->clock, changes))
        return false;
    generator->clock.held_ids.fetch_add(*held, std::memory_order_relaxed);
    return true;
}

} // namespace

void note_clock_change(const SessionEntry *e, uint64_t changes, const core::ClockState &view) {
    GeneratorState &generator = e->slot->generator;
    const GeneratorConfig &config = generator.config;
    core::ClockState again = view;
    again.now = core::tick_at(config.layout, wall_clock_us());
    const int64_t back = core::ticks_back(config.policy, again);
    if ((back > 0) == is_behind(changes))
        return;
    const Names names = names_of(e); // may fail, so it comes before the change
    uint64_t held = 0;
    if (back > 0) {
        if (begin(&generator.clock, changes, view.last + 1))
            log_behind(names, config, again.now, back);
        return;
    }
    const uint64_t from = generator.clock.behind_from.load(std::memory_order_relaxed);
    const bool is_new_term = term_of(config, view.last) != term_of(config, from); // note_new_term() writes the line
    if (end(&generator, changes, view.last, &held) && !is_new_term)
        log_caught_up(names, held);
}

void note_new_term(const SessionEntry *e, const core::ClockState &view, int64_t term) {
    GeneratorState &generator = e->slot->generator;
    const uint64_t changes = generator.clock.changes.load(std::memory_order_acquire);
    uint64_t held = 0;
    if (is_behind(changes))
        (void)end(&generator, changes, view.last, &held);
    const Names names = names_of(e);
    ereport(LOG, (errmsg("generator \"%s\" in database \"%s\" continues at the clock with another worker id",
                         names.generator, names.database),
                  errdetail("It has started term %lld.", static_cast<long long>(term))));
}

void count_clock_error(Slot *slot, Stat cause) {
    ClockEvents &clock = slot->generator.clock;
    count(&slot->counters, cause);
    clock.errors.fetch_add(1, std::memory_order_relaxed);
    note_event(&clock);
}

} // namespace uidgen::pg
