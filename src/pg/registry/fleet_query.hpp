// Statements on the registry's tables: each is planned once in a session.
#pragma once

#include "base/fields.hpp"

namespace uidgen::pg {

// A parameter of type timestamptz.
struct Time {
    int64_t unix_us;
};

// The parameters of a statement, in order.
struct Parameters {
    int count;
    Oid types[most_fields];
    Datum values[most_fields];
    char nulls[most_fields]; // as SPI wants them: 'n' or ' '
};

void add(Parameters *p, int64_t value);
void add(Parameters *p, int32_t value);
void add(Parameters *p, bool value);
void add(Parameters *p, const char *value); // null: NULL
void add(Parameters *p, Time value);
inline void add(Parameters *p, uint64_t value) { add(p, static_cast<int64_t>(value)); } // as bigint

template <typename... Values> Parameters parameters(Values... values) {
    Parameters p = {};
    (add(&p, values), ...);
    return p;
}

// The fields of a struct.
Parameters parameters_of(const Fields &fields, const void *from);

// The schema of the extension, which replaces '@' in statements.
void query_use_schema(Oid schema);

// Runs a statement: one of a limited number, because each is planned once. Returns the number of rows, which are in
// SPI_tuptable.
uint64 execute(const char *statement, const Parameters &parameters = {});

// The fields of the first row. `from` is what follows SELECT and the names of the columns. False: there is none.
bool select(const Fields &fields, void *into, const char *from, const Parameters &parameters);

// Inserts a row; if there is one with that key, it gets these values.
void upsert(const char *table, const char *key, const Fields &fields, const Parameters &parameters);

// "$1, $2, ..."
const char *placeholders(int count);

// A row that the last statement has returned.
void read_row(const Fields &fields, void *into, uint64 row = 0);

// The first column of the first row. NULL is 0.
int64_t first_number();

} // namespace uidgen::pg
