// Core's results as PostgreSQL errors: SQLSTATE, message, detail, hint. The report functions do not return.
#pragma once

#include "core/range.hpp"
#include "postgres.hpp"

namespace uidgen::pg {

// A relation's name for use in SQL, with its schema, by the catalogs; its oid if it has no name any more.
const char *qualified_name(Oid relation);

// For messages: the relation's name alone, by the catalogs; likewise its oid.
const char *relation_name(Oid relation);

// For messages: a value that the caller has passed, which is cut short if it is long.
const char *clipped(const char *value);
inline const char *clipped(const text *value) { return clipped(text_to_cstring(value)); }
// For messages: a time, in the session's time zone.
const char *instant_text(int64_t unix_us);
inline double seconds(int64_t us) { return static_cast<double>(us) / 1e6; }

// The current user lacks that privilege on a sequence.
[[noreturn]] void report_no_privilege(Oid sequence, const char *privilege = "USAGE");

// The library was not loaded at server start, but must be: always, or because that setting is set.
[[noreturn]] void report_not_preloaded(const char *setting = nullptr);

// The server is a standby, or still recovering.
[[noreturn]] void report_in_recovery();

// A field of a definition, or an argument of that name; hint and detail are whole sentences.
[[noreturn]] void report_generator_field(const char *field, const char *value, const char *hint,
                                         const char *detail = nullptr);

// The call of a trigger function, by its arguments; null if it was not called as a trigger.
inline const TriggerData *trigger_of(FunctionCallInfo fcinfo) {
    return CALLED_AS_TRIGGER(fcinfo) ? reinterpret_cast<TriggerData *>(fcinfo->context) : nullptr;
}
// A trigger function was called in another way than as that kind of trigger.
[[noreturn]] void report_other_call(const char *function, const char *trigger);

[[noreturn]] void report_not_a_generator(Oid relation);

// For hints: what to do if a sequence of that rule has too few values left, as a clause; by the catalogs.
const char *way_to_more_values(Oid sequence, const core::SequenceRule &rule);

// A segment's sequence has no value left.
[[noreturn]] void report_used_up(Oid sequence, const core::SequenceRule &rule);

} // namespace uidgen::pg
