#include "attached.hpp"

#include "base/errors.hpp"
#include "base/settings.hpp"
#include "base/time_source.hpp"
#include "memory/memberships.hpp"

namespace uidgen::pg {
namespace {

// A change of a setting, or of the row, is noticed that late.
constexpr int64_t longest_wait_us = us_per_second;

struct Failure {
    bool used_up;
    const char *message; // empty: there was no answer yet
    const char *hint;
    int64_t waited_us;
};

// A row without a fleet is not attached yet.
[[noreturn]] void report(const SegmentRow &row, const Failure &failure) {
    const char *hint =
        failure.hint[0] != '\0' ? failure.hint : "Check uidgen.registry and the view uid_registry_status.";
    ereport(ERROR,
            (errcode(failure.used_up ? ERRCODE_SEQUENCE_GENERATOR_LIMIT_EXCEEDED
                                     : ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
             row.fleet != 0 ? errmsg("segment \"%s\" has no values from the registry", shown(row.name))
                            : errmsg("could not attach segment \"%s\"", shown(row.name)),
             failure.message[0] != '\0' ? errdetail("The last request to the registry failed: %s", failure.message)
                                        : errdetail("The registry has not answered yet. The call waited %lld ms.",
                                                    static_cast<long long>(failure.waited_us / us_per_ms)),
             errhint("%s", hint)));
}

[[noreturn]] void report_answer(const SegmentRow &row, const BlockAnswer &answer, int64_t waited_us) {
    const bool refused = answer.state == BlockState::refused;
    const GrantError error = error_for_user(answer.error);
    const char *hint = error.hint;
    if (refused && answer.why == BlockRefusal::changed)
        hint = psprintf("Correct uidgen.registry or the segment there, or run SELECT segment_attach(%s, %s) to go on "
                        "with the segment as it is there now.",
                        quote_literal_cstr(row.name), quote_literal_cstr(row.registry_name));
    report(row, {refused && answer.why == BlockRefusal::used_up, error.message, hint, waited_us});
}

// Its bytes are bounded, and in UTF-8.
const char *name_at_registry(const SegmentRow &row) {
    const char *name = pg_server_to_any(row.registry_name, static_cast<int>(strlen(row.registry_name)), PG_UTF8);
    if (strlen(name) > longest_registry_name)
        ereport(ERROR,
                (errcode(ERRCODE_NAME_TOO_LONG), errmsg("segment name \"%s\" is too long", shown(row.registry_name)),
                 errhint("Use a name of at most %d bytes at the registry.", longest_registry_name)));
    return name;
}

} // namespace

void ask_registry(Slot *segment, const SegmentRow &row, int64_t values, int64_t shown, Counters *counters) {
    if (fleet_epoch() == 0) {
        count(counters, Stat::refused_registry);
        report(row, {false, "uidgen.registry is not set",
                     "Set uidgen.registry in postgresql.conf and reload the server.", 0});
    }
    BlockAsk ask = {};
    ask.count = values;
    ask.shown = shown;
    ask.fleet = row.fleet;
    ask.increment = row.increment;
    strlcpy(ask.registry_name, name_at_registry(row), sizeof(ask.registry_name));
    copy_clipped(ask.database, get_database_name(MyDatabaseId), sizeof(ask.database));
    blocks_ask(segment, ask);
}

void wait_for_block(Slot *segment, const SegmentRow &row, int64_t *give_up_at_us, Counters *counters) {
    const int64_t now_us = monotonic_us();
    const int64_t max_wait_us = settings::max_wait_ms * us_per_ms;
    const BlockAnswer answer = blocks_look(segment);
    if (*give_up_at_us == 0) {
        *give_up_at_us = now_us + max_wait_us;
        count(counters, Stat::registry_waits);
    }
    if (answer.state == BlockState::refused || (answer.state == BlockState::asked && now_us >= *give_up_at_us)) {
        const bool used_up = answer.state == BlockState::refused && answer.why == BlockRefusal::used_up;
        count(counters, used_up ? Stat::refused_used_up : Stat::refused_registry);
        report_answer(row, answer, now_us - (*give_up_at_us - max_wait_us));
    }
    if (answer.state == BlockState::asked) {
        blocks_wait(segment, Min(*give_up_at_us - now_us, longest_wait_us));
        count_time(counters, Stat::registry_waits, now_us);
    }
}

BlockSource block_source(const Slot *segment, const SegmentRow &row) {
    return {block_place(segment), name_at_registry(row)};
}

// A block of another fleet, segment or increment was asked for before the segment was attached again.
core::PlannedRange take_block(Slot *segment, const BlockSource &source, const SegmentRow &row,
                              const core::SequenceState &counter) {
    FleetBlock block;
    if (!blocks_take(segment, source.place, source.name, &block) || block.count == 0 || block.fleet != row.fleet ||
        block.increment != row.increment || !core::is_beyond(counter, block.increment, block.first))
        return {0, 0, 0};
    const auto length = static_cast<int64_t>(block.count - 1);
    return {block.count, block.first, block.first + length * block.increment};
}

void refuse_attached(Oid function, Oid sequence) {
    if (!read_segment_row(schema_of_function(function), sequence).is_attached())
        return;
    ereport(ERROR, (errcode(ERRCODE_WRONG_OBJECT_TYPE),
                    errmsg("segment of sequence \"%s\" is attached to a fleet's registry", get_rel_name(sequence)),
                    errdetail("Its values come from the registry, in blocks."),
                    errhint("Reserve or set values on the registry.")));
}

} // namespace uidgen::pg
