// A call of one of the registry's procedures, as the registrar sends it and reads its answer.
#pragma once

#include "connection.hpp"

namespace uidgen::pg {

// The values of the call's parameters, in order. Null: SQL's NULL.
struct CallParameters {
    const char *values[40];
    int count;
};

void put(CallParameters *p, const char *value);
void put(CallParameters *p, int64_t value);
void put(CallParameters *p, uint64_t value); // positive as bigint
void put(CallParameters *p, int32_t value);
void put(CallParameters *p, bool value);
void put_if(CallParameters *p, bool known, int64_t value);

// A name for people. It is in the encoding of a database that this process knows nothing of.
void put_name(CallParameters *p, const char *name);

// This server's host and port.
void put_address(CallParameters *p);

// Calls a procedure of uidgen over the open connection, as connection_query() does.
PGresult *call_registry(const char *procedure, const CallParameters &p, GrantError *error);

// A column of the answer's first row, by its name, so that a later registry may add some. Null: SQL's NULL, or there is
// no such column.
const char *answer_text(const PGresult *result, const char *column);
bool answer_number(const PGresult *result, const char *column, int64_t *number); // false: not a number

// The error of an answer that refuses. Without a message it is the refusal's name.
void set_refusal(GrantError *error, const PGresult *result, const char *refusal);

// The error of an answer that lacks a column.
void set_incomplete(GrantError *error);

} // namespace uidgen::pg
