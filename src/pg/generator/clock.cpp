#include "clock.hpp"

#include "base/errors.hpp"
#include "base/settings.hpp"
#include "base/time_source.hpp"
#include "config/definition.hpp"
#include "memory/server_state.hpp"

namespace uidgen::pg {
namespace {

constexpr int64_t agreement_us = INT64_C(1000) * us_per_ms;
constexpr int rereads = 3;
constexpr int64_t between_rereads_us = 5 * us_per_ms;

const char *instant(int64_t unix_us) { return pstrdup(timestamptz_to_str(to_timestamptz(unix_us))); }
double seconds(int64_t us) { return static_cast<double>(us) / 1e6; }

// One rejected reading is no error, however short uidgen.max_wait is. An error is raised when no reading is plausible
// for that long.
void reject_reading(DrawCall *call, int64_t now_us) {
    const int64_t tried_us = waited_so_far_us(call);
    if (call->rejected && tried_us > settings::max_wait_ms * us_per_ms) {
        call->e->slot->counters.count(Stat::refused_clock);
        ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                        errmsg("server clock is not steady; generator \"%s\" cannot issue ids",
                               get_rel_name(call->e->sequence)),
                        errdetail("The clock showed %s, and a different time a moment later. "
                                  "The call retried for %lld ms and took no id.",
                                  instant(now_us), static_cast<long long>(tried_us / us_per_ms)),
                        errhint("Correct the server's clock, or increase uidgen.max_wait.")));
    }
    call->rejected = true;
}

// Whether the wall clock keeps showing the same offset above the monotonic clock. Sleeps between readings.
bool reread_clock(int64_t offset_us) {
    for (int i = 0; i < rereads; i++) {
        sleep_for(between_rereads_us, wait_event("UidgenClock"));
        const int64_t change_us = clock_offset_us() - offset_us;
        if (change_us > agreement_us || change_us < -agreement_us)
            return false;
    }
    return true;
}

[[noreturn]] void refuse_jump(const SessionEntry *e, const Reading &reading, int64_t moved_us) {
    e->slot->counters.count(Stat::refused_clock);
    ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                    errmsg("clock jumped forward by %.3f s, more than uidgen.max_clock_jump; generator \"%s\" "
                           "cannot issue ids",
                           seconds(moved_us), get_rel_name(e->sequence)),
                    errdetail("The clock shows %s, and ids would carry that time.", instant(reading.now_us)),
                    errhint("If the clock is wrong, correct it. If it is right, a superuser can accept it: SET "
                            "uidgen.max_clock_jump = 0; SELECT uid_next(%s); RESET uidgen.max_clock_jump;",
                            quote_literal_cstr(qualified_name(e->sequence)))));
}

void log_jump(const Reading &reading, int64_t moved_us) {
    server_state->clock.jumps.fetch_add(1, std::memory_order_relaxed);
    ereport(LOG,
            (errmsg("clock jumped forward by %.3f s", seconds(moved_us)),
             errdetail("It shows %s, and ids carry that time from now on. It was set, or the machine was suspended.",
                       instant(reading.now_us)),
             errhint("If the clock is wrong, correct it at once: generators stay above the ids that they issue "
                     "meanwhile (docs/runbooks/clock.md).")));
}

// Of sessions that have seen one jump, one logs it. Relaxed: the offset guards no other data.
bool accept_offset(const SessionEntry *e, const Reading &reading) {
    std::atomic<int64_t> &offset_us = server_state->clock.offset_us;
    int64_t trusted_us = offset_us.load(std::memory_order_relaxed);
    const int64_t moved_us = reading.offset_us - trusted_us;
    const bool too_far = settings::max_clock_jump_s > 0 && moved_us > settings::max_clock_jump_s * us_per_second;
    const bool jumped = moved_us > suspicious_jump_us;
    if ((too_far || jumped) && !reread_clock(reading.offset_us)) // one bad reading must not use up years
        return false;
    if (too_far)
        refuse_jump(e, reading, moved_us);
    if (offset_us.compare_exchange_strong(trusted_us, reading.offset_us, std::memory_order_relaxed) && jumped)
        log_jump(reading, moved_us);
    return true;
}

} // namespace

bool verify_clock(DrawCall *call, const Reading &reading, core::ClockAction action) {
    const bool is_back = action == core::ClockAction::clock_back;
    const bool reaches_far = action == core::ClockAction::reserve || action == core::ClockAction::ask ||
                             action == core::ClockAction::exhausted;
    if (likely(!is_back && (!reaches_far || fault_is(Fault::trust_clock))))
        return true;
    if (is_back ? reread_clock(reading.offset_us) : accept_offset(call->e, reading))
        return true;
    reject_reading(call, reading.now_us);
    return false;
}

void note_clock_change(const SessionEntry *e, uint64_t changes, const core::ClockState &view) {
    GeneratorState &generator = generator_of(e->slot);
    const GeneratorConfig &config = generator.config;
    core::ClockState again = view;
    again.now = core::tick_at(config.layout, wall_clock_us());
    const int64_t back = core::ticks_back(config.policy, again);
    if ((back > 0) == is_behind(changes))
        return;
    // They may fail, so they come before the change. A generator's name is unique in its database only.
    const char *name = get_rel_name(e->sequence);
    const char *database = get_database_name(MyDatabaseId);
    if (!generator.clock_changes.compare_exchange_strong(changes, changes + 1, std::memory_order_acq_rel))
        return; // another session has made the change
    if (back > 0)
        ereport(LOG, (errmsg("clock is %.3f s behind generator \"%s\" in database \"%s\"",
                             static_cast<double>(back * config.layout.tick_us) / 1e6, name, database),
                      errdetail("The clock catches up when it shows %s.",
                                timestamptz_to_str(to_timestamptz(core::start_of(config.layout, again.now + back))))));
    else
        ereport(LOG, (errmsg("clock has caught up with generator \"%s\" in database \"%s\"", name, database)));
}

// A clock that agrees with the monotonic clock may still be wrong since before the start. Only a person knows.
const char *clock_hint(const SessionEntry *e, int64_t ahead_us, const char *soon) {
    const int64_t now_us = wall_clock_us();
    if (ahead_us < core::longest_ahead_ms * us_per_ms)
        return soon;
    const GeneratorConfig &config = generator_of(e->slot).config;
    const int64_t moved_us = clock_moved_us();
    const bool is_as_at_start = moved_us < suspicious_jump_us && moved_us > -suspicious_jump_us;
    const bool is_default = find_default_generator() == e->sequence;
    const int64_t most_us = ahead_us + config.policy.max_ahead * config.layout.tick_us;
    const SimilarGenerator other = similar_generator(e->sequence, config.layout, most_us);
    const char *unless_above = other.is_above ? "" : ", above => false";
    const char *use = is_default ? psprintf("SELECT uid_default_set(%s%s);", other.name, unless_above)
                                 : psprintf("then draw with uid_next(%s).", other.name);
    return psprintf("%sIf the clock is right now, %s, use another generator: %s %s",
                    is_as_at_start ? "" : "If the clock is wrong, correct it. ",
                    timestamptz_to_str(to_timestamptz(now_us)), other.statements, use);
}

namespace {

// GRANT for the roles that may draw from a generator, besides its owner.
const char *similar_grant(Oid generator, const char *qualified) {
    StringInfoData grant;
    initStringInfo(&grant);
    bool none = true;
    HeapTuple tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(generator));
    const Datum list = HeapTupleIsValid(tuple) ? SysCacheGetAttr(RELOID, tuple, Anum_pg_class_relacl, &none) : 0;
    const Acl *acl = none ? nullptr : DatumGetAclPCopy(list);
    const Oid owner =
        HeapTupleIsValid(tuple) ? reinterpret_cast<Form_pg_class>(GETSTRUCT(tuple))->relowner : InvalidOid;
    if (HeapTupleIsValid(tuple))
        ReleaseSysCache(tuple);
    for (int i = 0; acl != nullptr && i < ACL_NUM(acl); i++) {
        const AclItem &item = ACL_DAT(acl)[i];
        const char *role = item.ai_grantee == ACL_ID_PUBLIC ? "PUBLIC" : GetUserNameFromId(item.ai_grantee, true);
        if ((item.ai_privs & ACL_USAGE) == 0 || item.ai_grantee == owner || role == nullptr)
            continue;
        if (grant.len == 0)
            appendStringInfo(&grant, " GRANT USAGE ON SEQUENCE %s TO ", qualified);
        else
            appendStringInfoString(&grant, ", ");
        appendStringInfoString(&grant, item.ai_grantee == ACL_ID_PUBLIC ? role : quote_identifier(role));
    }
    if (grant.len > 0)
        appendStringInfoChar(&grant, ';');
    return grant.data;
}

} // namespace

SimilarGenerator similar_generator(Oid generator, const core::Layout &layout, int64_t ahead_us) {
    const Oid schema = get_namespace_oid("uid_generators", true);
    const char *name = ChooseRelationName(get_rel_name(generator), nullptr, "next", schema, false);
    const char *qualified = quote_qualified_identifier("uid_generators", name);
    const bool is_above = core::drawn_node_bits(layout) == 0;
    const int64_t earlier_s = is_above ? Max(ahead_us, 0) / us_per_second + 1 : 0;
    const char *shift = is_above ? psprintf(" - interval '%lld s'", static_cast<long long>(earlier_s)) : "";
    const char *create =
        psprintf("SELECT uid_generator_create(%s, preset, epoch => epoch%s, tick_us => tick_us, "
                 "time_bits => time_bits, datacenter_bits => datacenter_bits, worker_bits => worker_bits, "
                 "sequence_bits => sequence_bits, sequence_first => sequence_first, "
                 "backup_worker => backup_worker) FROM uid_generator_config WHERE generator = %s::regclass;",
                 quote_literal_cstr(name), shift, quote_literal_cstr(qualified_name(generator)));
    return {quote_literal_cstr(qualified), psprintf("%s%s", create, similar_grant(generator, qualified)), is_above};
}

} // namespace uidgen::pg
