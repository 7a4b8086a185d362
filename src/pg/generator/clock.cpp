#include "clock.hpp"

#include "session/slot_life.hpp"

namespace uidgen::pg {
namespace {

constexpr int64_t agreement_us = INT64_C(1000) * us_per_ms;
constexpr int rereads = 3;
constexpr int64_t between_rereads_us = 5 * us_per_ms;

// Notes in the call that a reading was rejected. One rejected reading is no error, however short uidgen.max_wait is. An
// error is raised when no reading is plausible for that long; the slot counts it.
void reject_reading(DrawCall *call, int64_t now_us) {
    const int64_t tried_us = measure_wait_us(call);
    if (call->rejected && tried_us > settings::max_wait_ms * us_per_ms) {
        call->entry->slot->counters.count(Stat::refused_clock);
        ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                        errmsg("server clock is not steady; generator \"%s\" cannot issue ids",
                               get_rel_name(call->entry->sequence)),
                        errdetail("The clock showed %s, and a different time a moment later. "
                                  "The call retried for " INT64_FORMAT " ms and took no id.",
                                  instant_text(now_us), tried_us / us_per_ms),
                        errhint("Correct the server's clock, or increase uidgen.max_wait.")));
    }
    call->rejected = true;
}

// Whether the wall clock keeps showing the same offset above the monotonic clock. Sleeps between readings.
bool reread_clock(int64_t offset_us) EXCLUDES(page_lock, table_lock, slot_lock, state_lock) {
    for (int i = 0; i < rereads; i++) {
        sleep_for(between_rereads_us, wait_event("UidgenClock"));
        const int64_t change_us = clock_offset_us() - offset_us;
        if (change_us > agreement_us || change_us < -agreement_us)
            return false;
    }
    return true;
}

// Counts the refusal in the slot, and raises the error.
[[noreturn]] void refuse_jump(const SessionEntry *entry, const DrawReading &reading, int64_t moved_us) {
    entry->slot->counters.count(Stat::refused_clock);
    ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                    errmsg("clock jumped forward by %.3f s, more than uidgen.max_clock_jump; generator \"%s\" "
                           "cannot issue ids",
                           seconds(moved_us), get_rel_name(entry->sequence)),
                    errdetail("The clock shows %s, and ids would carry that time.", instant_text(reading.now_us)),
                    errhint("If the clock is wrong, correct it. If it is right, a superuser can accept it: SET "
                            "uidgen.max_clock_jump = 0; SELECT uid_next(%s); RESET uidgen.max_clock_jump;",
                            quote_literal_cstr(qualified_name(entry->sequence)))));
}

// Logs a jump, and counts it in an atomic of the server's state.
void log_jump(const DrawReading &reading, int64_t moved_us) {
    server_state->clock.jumps.fetch_add(1, std::memory_order_relaxed);
    ereport(LOG,
            (errmsg("clock jumped forward by %.3f s", seconds(moved_us)),
             errdetail("It shows %s, and ids carry that time from now on. It was set, or the machine was suspended.",
                       instant_text(reading.now_us)),
             errhint("If the clock is wrong, correct it at once: generators stay above the ids that they issue "
                     "meanwhile (docs/runbooks/clock.md).")));
}

// Makes the reading's offset that of the server's state, an atomic. If it has moved far, rereads the clock first
// (reread_clock()), and returns false or raises an error. Of sessions that have seen one jump, one logs it. Relaxed: it
// guards no data.
bool accept_offset(const SessionEntry *entry, const DrawReading &reading)
    EXCLUDES(page_lock, table_lock, slot_lock, state_lock) {
    std::atomic<int64_t> &offset_us = server_state->clock.offset_us;
    int64_t trusted_us = offset_us.load(std::memory_order_relaxed);
    const int64_t moved_us = reading.offset_us - trusted_us;
    const bool too_far = settings::max_clock_jump_s > 0 && moved_us > settings::max_clock_jump_s * us_per_second;
    const bool jumped = moved_us > suspicious_jump_us;
    if ((too_far || jumped) && !reread_clock(reading.offset_us)) // one bad reading must not use up years
        return false;
    if (too_far)
        refuse_jump(entry, reading, moved_us);
    if (offset_us.compare_exchange_strong(trusted_us, reading.offset_us, std::memory_order_relaxed) && jumped)
        log_jump(reading, moved_us);
    return true;
}

} // namespace

bool verify_clock(DrawCall *call, const DrawReading &reading, core::ClockAction action) {
    const bool is_back = action == core::ClockAction::clock_back;
    const bool reaches_far = action == core::ClockAction::reserve || action == core::ClockAction::ask ||
                             action == core::ClockAction::exhausted;
    if (likely(!is_back && (!reaches_far || fault_is("trust_clock"))))
        return true;
    if (is_back ? reread_clock(reading.offset_us) : accept_offset(call->entry, reading))
        return true;
    reject_reading(call, reading.now_us);
    return false;
}

void note_clock_change(const SessionEntry *entry, uint64_t changes, const core::ClockState &view) {
    GeneratorState &generator = generator_of(entry->slot);
    const GeneratorConfig &config = generator.config;
    core::ClockState again = view;
    again.now = core::tick_at(config.layout, wall_clock_us());
    const int64_t back = core::ticks_back(config.policy, again);
    if ((back > 0) == is_behind(changes))
        return;
    // They may fail, so they come before the change. A generator's name is unique in its database only.
    const char *name = get_rel_name(entry->sequence);
    const char *database = get_database_name(MyDatabaseId);
    if (!generator.clock_changes.compare_exchange_strong(changes, changes + 1, std::memory_order_acq_rel))
        return; // another session has made the change
    if (back > 0)
        ereport(LOG, (errmsg("clock is %.3f s behind generator \"%s\" in database \"%s\"",
                             seconds(back * config.layout.tick_us), name, database),
                      errdetail("The clock catches up when it shows %s.",
                                instant_text(core::start_of(config.layout, again.now + back)))));
    else
        ereport(LOG, (errmsg("clock has caught up with generator \"%s\" in database \"%s\"", name, database)));
}

namespace {

// The way out of ids that are far ahead of the clock: another generator like this one, whose epoch is earlier by as
// much. So its ids of the present time are above them. In a fleet all members need one epoch, because only ids of one
// layout are kept apart. The text of a hint: reads labels, and by high_water_mark_of() the slot and the page.
const char *draw_from_another(const SessionEntry *entry) EXCLUDES(page_lock, table_lock, slot_lock, state_lock) {
    const GeneratorConfig &config = generator_of(entry->slot).config;
    const core::Layout &layout = config.layout;
    const bool in_fleet = is_in_fleet();
    const int64_t mark = high_water_mark_of(entry->sequence);
    const int64_t ahead_us = core::start_of(layout, core::tick_of_mark(config.policy, mark) + 1) - wall_clock_us();
    const int64_t epoch_us = layout.epoch_us - (Max(ahead_us, 0) / us_per_second + 1) * us_per_second;
    const Oid generators = get_namespace_oid("uid_generators", true);
    const char *schema = get_namespace_name(extension_schema());
    schema = schema == nullptr ? "uidgen" : quote_identifier(schema); // null: another session has just dropped it
    const char *name = ChooseRelationName(relation_name(entry->sequence), nullptr, "next", generators, false);
    const char *create = psprintf("%s.uid_generator_create(%s, template => %s, epoch => '%s'%s)", schema,
                                  quote_literal_cstr(name), quote_literal_cstr(qualified_name(entry->sequence)),
                                  instant_text(epoch_us), in_fleet ? ", own_pool => true" : "");
    const char *where = in_fleet ? "on each member of the fleet, with the earliest of their epochs, " : "";
    if (epoch_us < 0) // no layout may begin before 1970
        return psprintf("create a generator with shorter ticks or more bits above %lld, and draw from it.",
                        static_cast<long long>(core::largest_leased_id(layout, config.policy, mark)));
    if (find_default_generator() == entry->sequence)
        return psprintf("run %sSELECT %s.uid_default_set(%s);", where, schema, create);
    return psprintf("run %sSELECT %s; and draw with %s.uid_next(%s).", where, create, schema,
                    quote_literal_cstr(quote_qualified_identifier("uid_generators", name)));
}

// The text of a hint: `soon`, or draw_from_another() if ids are too far ahead. A clock that agrees with the monotonic
// clock may still be wrong since before the start. Only a person knows.
const char *clock_hint(const SessionEntry *entry, int64_t ahead_us, const char *soon)
    EXCLUDES(page_lock, table_lock, slot_lock, state_lock) {
    if (ahead_us < core::longest_ahead_ms * us_per_ms)
        return soon;
    const int64_t moved_us = clock_moved_us();
    const bool is_as_at_start = moved_us < suspicious_jump_us && moved_us > -suspicious_jump_us;
    return psprintf("%sIf the clock is right now, %s, %s", is_as_at_start ? "" : "If the clock is wrong, correct it. ",
                    instant_text(wall_clock_us()), draw_from_another(entry));
}

// By the arguments, and what the slot says of the layout.
void check_not_before_epoch(const DrawCall &call, int64_t now_us) {
    const int64_t epoch_us = generator_of(call.entry->slot).config.layout.epoch_us;
    if (now_us >= epoch_us)
        return;
    ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                    errmsg("the clock is before the epoch of generator \"%s\"", get_rel_name(call.entry->sequence)),
                    errdetail("The clock shows %s, and the generator issues ids from %s on.", instant_text(now_us),
                              instant_text(epoch_us)),
                    errhint("If the clock is wrong, correct it. If it is right, create a generator with an earlier "
                            "epoch, and draw from it.")));
}

// Counts the refusal in the slot, and raises the error with clock_hint(), which reads the page.
[[noreturn]] void refuse_ahead(DrawCall *call, int64_t now_us, int64_t missing_us)
    EXCLUDES(page_lock, table_lock, slot_lock, state_lock) {
    // Ahead because the clock went back, or of a right clock because sessions draw faster than the layout allows.
    const bool is_back = is_behind(generator_of(call->entry->slot).clock_changes.load(std::memory_order_relaxed));
    const int64_t waited_ms = measure_wait_us(call) / us_per_ms;
    call->entry->slot->counters.count(is_back ? Stat::refused_clock : Stat::refused_rate);
    check_not_before_epoch(*call, now_us);
    const char *soon = psprintf("Call again in " INT64_FORMAT " s, or increase uidgen.max_wait.",
                                (missing_us + us_per_second - 1) / us_per_second);
    ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                    errmsg("generator \"%s\" is ahead of the clock by %.3f s more than allowed",
                           get_rel_name(call->entry->sequence), seconds(missing_us)),
                    errdetail("The clock moved backwards, or sessions drew ids faster than the layout can hold. "
                              "The call waited " INT64_FORMAT " ms and took no id.",
                              waited_ms),
                    errhint("%s", clock_hint(call->entry, missing_us, soon))));
}

// Counts the refusal in the slot, and raises the error with clock_hint(), which reads the page.
[[noreturn]] void refuse_clock_back(const DrawCall &call, int64_t now_us, int64_t back_us, int64_t resumes_us)
    EXCLUDES(page_lock, table_lock, slot_lock, state_lock) {
    const char *soon =
        "Call again then, or change when_back or tolerance_ms of the generator with uid_generator_alter().";
    call.entry->slot->counters.count(Stat::refused_clock);
    check_not_before_epoch(call, now_us);
    ereport(ERROR,
            (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
             errmsg("clock moved backwards by %.3f s; generator \"%s\" cannot issue ids", seconds(back_us),
                    get_rel_name(call.entry->sequence)),
             errdetail("The generator issues ids again when the server's clock reaches %s.", instant_text(resumes_us)),
             errhint("%s", clock_hint(call.entry, back_us, soon))));
}

// Counts the refusal in the slot, and raises the error with what the slot's membership says of the registry.
[[noreturn]] void refuse_no_grant(DrawCall *call) EXCLUDES(slot_lock, state_lock) {
    Member member = {};
    call->entry->slot->counters.count(Stat::refused_registry);
    (void)membership_copy(call->entry->slot, &member);
    ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                    errmsg("generator \"%s\" has no node from the registry", get_rel_name(call->entry->sequence)),
                    error_details(member.error, measure_wait_us(call))));
}

// Counts the refusal in the slot, and raises the error.
[[noreturn]] void refuse_used_up(const DrawCall &call) {
    const core::Layout &layout = generator_of(call.entry->slot).config.layout;
    call.entry->slot->counters.count(Stat::refused_used_up);
    ereport(
        ERROR,
        (errcode(ERRCODE_SEQUENCE_GENERATOR_LIMIT_EXCEEDED),
         errmsg("the time bits of generator \"%s\" are used up", get_rel_name(call.entry->sequence)),
         errdetail("Its layout ends at %s.", instant_text(core::start_of(layout, core::largest(layout.time_bits) + 1))),
         errhint("Draw from a generator with more time bits or, if this one has issued no ids, a later epoch.")));
}

} // namespace

bool conclude_try(DrawCall *call, const DrawReading &reading, const core::Decision &decision, Outcome outcome) {
    if (likely(outcome == Outcome::done || outcome == Outcome::again))
        return outcome == Outcome::done;
    const core::Layout &layout = generator_of(call->entry->slot).config.layout;
    const int64_t ticks_us = decision.wait_ticks * layout.tick_us;
    switch (outcome) {
    case Outcome::ahead:
        refuse_ahead(call, reading.now_us, ticks_us);
    case Outcome::clock_back:
        refuse_clock_back(*call, reading.now_us, ticks_us, core::start_of(layout, decision.wanted));
    case Outcome::no_grant:
        refuse_no_grant(call);
    default:
        refuse_used_up(*call);
    }
}

} // namespace uidgen::pg
