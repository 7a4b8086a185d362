#include "draw.hpp"

#include "base/time_source.hpp"
#include "memory/server_state.hpp"
#include "config/definition.hpp"
#include "base/errors.hpp"

namespace uidgen::pg {

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
                                 : psprintf("Then draw with uid_next(%s).", other.name);
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
