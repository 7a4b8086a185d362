// Statements on the registry's tables: each is planned once in a session.
#pragma once

#include "base/postgres.hpp"

namespace uidgen::pg {

// A parameter or a column of type timestamptz.
struct Time {
    int64_t unix_us;
};

// The parameters of a statement, in order.
constexpr int most_parameters = 32;
struct Parameters {
    int count;
    Oid types[most_parameters];
    Datum values[most_parameters];
    char nulls[most_parameters]; // as SPI wants them: 'n' or ' '
};

void add(Parameters *p, int64_t value);
void add(Parameters *p, int32_t value);
void add(Parameters *p, bool value);
void add(Parameters *p, const char *value); // null: NULL
void add(Parameters *p, Time value);
inline void add(Parameters *p, uint64_t value) { add(p, static_cast<int64_t>(value)); } // as bigint
inline void add(Parameters *p, Oid value) { add(p, static_cast<int64_t>(value)); }

template <typename... Values> Parameters parameters(Values... values) {
    Parameters p = {};
    (add(&p, values), ...);
    return p;
}

// A statement with %1$s for the schema of the extension. It lives as long as the library.
struct Query {
    const char *text;
    SPIPlanPtr plan = nullptr; // planned by the first execution
    uint64 planned_for = 0;    // the schema that it was planned for
};

// The schema that all statements are about. Statements planned for another schema, or name of it, are planned again.
void query_use_schema(Oid schema);

// Returns the number of rows. The rows are in SPI_tuptable.
uint64 execute(Query *query, const Parameters &parameters = {});

// A column of the first row, counted from 1. NULL is 0, false, or a null pointer.
int64_t bigint_of(int column);
int32_t integer_of(int column);
bool boolean_of(int column);
bool is_null_of(int column);
const char *text_of(int column); // in the current memory context
int64_t time_of(int column);     // microseconds since 1970-01-01; NULL is 0

} // namespace uidgen::pg
