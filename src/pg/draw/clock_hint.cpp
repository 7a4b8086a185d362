#include "clock_hint.hpp"

#include "base/time_source.hpp"
#include "memory/trusted_clock.hpp"
#include "tables/config_table.hpp"
#include "tables/similar_generator.hpp"

namespace uidgen::pg {

// A clock that agrees with the monotonic clock may still be wrong since before the start. Only a person knows. Before
// the epoch no generator of the layout can draw.
const char *clock_hint(const SessionEntry *e, int64_t ahead_us, const char *soon) {
    const int64_t now_us = wall_clock_us();
    if (ahead_us < core::longest_ahead_ms * us_per_ms || now_us < e->slot->generator.config.layout.epoch_us)
        return soon;
    const GeneratorConfig &config = e->slot->generator.config;
    const int64_t moved_us = clock_moved_us();
    const bool is_as_at_start = moved_us < core::suspicious_jump_us && moved_us > -core::suspicious_jump_us;
    const bool is_default = find_default_generator(schema_of_function(e->function)) == e->sequence;
    const int64_t most_us = ahead_us + config.policy.max_ahead * config.layout.tick_us;
    const SimilarGenerator other = similar_generator(e->sequence, config.layout, most_us);
    const char *unless_above = other.is_above ? "" : ", above => false";
    const char *use = is_default ? psprintf("SELECT uid_default_set(%s%s);", other.name, unless_above)
                                 : psprintf("Then draw with uid_next(%s).", other.name);
    return psprintf("%sIf the clock is right now, %s, use another generator: %s %s",
                    is_as_at_start ? "" : "If the clock is wrong, correct it. ",
                    timestamptz_to_str(to_timestamptz(now_us)), other.statements, use);
}

} // namespace uidgen::pg
