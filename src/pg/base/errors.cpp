#include "errors.hpp"

#include "base.hpp"

namespace uidgen::pg {

const char *relation_name(Oid relation) {
    const char *name = get_rel_name(relation);
    return name != nullptr ? name : psprintf("%u", relation);
}

const char *instant_text(int64_t unix_us) { return pstrdup(timestamptz_to_str(to_timestamptz(unix_us))); }

const char *qualified_name(Oid relation) {
    const char *name = get_rel_name(relation);
    if (name == nullptr)
        return psprintf("%u", relation);
    return quote_qualified_identifier(get_namespace_name(get_rel_namespace(relation)), name);
}

const char *clipped(const char *value) {
    constexpr int longest = 100;
    const int length = static_cast<int>(strlen(value));
    return length <= longest ? value : psprintf("%.*s...", pg_mbcliplen(value, length, longest), value);
}

// The value that shared_preload_libraries needs, as far as the user may know the present one.
static const char *libraries_to_preload() {
    const bool may_know = has_privs_of_role(GetUserId(), ROLE_PG_READ_ALL_SETTINGS);
    const char *loaded = may_know ? GetConfigOption("shared_preload_libraries", true, false) : nullptr;
    return loaded != nullptr && loaded[0] != '\0' ? psprintf("%s, uidgen", loaded) : "uidgen";
}

void report_not_preloaded(const char *setting) {
    ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                    errmsg("uidgen must be loaded via shared_preload_libraries"),
                    setting != nullptr
                        ? errdetail("%s is set. Without the preload, a session may not see the value that the "
                                    "administrator has set.",
                                    setting)
                        : errdetail("Before PostgreSQL 17, shared memory for ids must be allocated at server start. "
                                    "In a fleet, settings must be known to all processes."),
                    errhint("%s shared_preload_libraries = '%s' in postgresql.conf and restart the server.",
                            setting != nullptr && !settings::is_set() ? "Reconnect. If that does not help, set" : "Set",
                            libraries_to_preload())));
}

void report_no_privilege(Oid sequence, const char *privilege) {
    ereport(ERROR, (errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
                    errmsg("permission denied for sequence %s", relation_name(sequence)),
                    errhint("The owner of the sequence can run: GRANT %s ON SEQUENCE %s TO %s;", privilege,
                            qualified_name(sequence), quote_identifier(GetUserNameFromId(GetUserId(), false)))));
}

void report_in_recovery() {
    ereport(ERROR, (errcode(ERRCODE_READ_ONLY_SQL_TRANSACTION), errmsg("cannot draw a value during recovery"),
                    errdetail("A standby cannot write a range to the write-ahead log."),
                    errhint("Draw on the primary, or promote this server.")));
}

void report_generator_field(const char *field, const char *value, const char *hint, const char *detail) {
    ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                    errmsg("invalid value for parameter \"%s\": \"%s\"", field, clipped(value)),
                    detail != nullptr ? errdetail("%s", detail) : 0, errhint("%s", hint)));
}

void report_other_call(const char *function, const char *trigger) {
    ereport(ERROR, (errcode(ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED),
                    errmsg("function \"%s\" must be called as a %s", function, trigger),
                    errhint("Use it only on the tables of uidgen.")));
}

void report_not_a_generator(Oid relation) {
    ereport(ERROR, (errcode(ERRCODE_WRONG_OBJECT_TYPE), errmsg("\"%s\" is not a generator", relation_name(relation)),
                    errhint("Create a generator with uid_generator_create(), or draw from a sequence with "
                            "segment_next().")));
}

const char *way_to_more_values(Oid sequence, const core::SequenceRule &rule) {
    const bool up = rule.increment > 0;
    const int64_t limit = up ? rule.max_value : rule.min_value;
    const char *name = up ? "MAXVALUE" : "MINVALUE";
    if (limit == (up ? PG_INT64_MAX : PG_INT64_MIN))
        return "use another sequence";
    if (limit == (up ? PG_INT32_MAX : PG_INT32_MIN) || limit == (up ? PG_INT16_MAX : PG_INT16_MIN))
        return psprintf("make columns of its values bigint and run ALTER SEQUENCE %s AS bigint NO %s",
                        qualified_name(sequence), name);
    return psprintf("change the limit of " INT64_FORMAT " with ALTER SEQUENCE %s %s", limit, qualified_name(sequence),
                    name);
}

void report_used_up(Oid sequence, const core::SequenceRule &rule) {
    const bool up = rule.increment > 0;
    ereport(ERROR, (errcode(ERRCODE_SEQUENCE_GENERATOR_LIMIT_EXCEEDED),
                    errmsg("segment_next: reached %s value of sequence \"%s\" (" INT64_FORMAT ")",
                           up ? "maximum" : "minimum", relation_name(sequence), up ? rule.max_value : rule.min_value),
                    errhint("To draw more values, %s.", way_to_more_values(sequence, rule))));
}

} // namespace uidgen::pg
