// The arguments of the calls that members make. A role that may call may pass anything, so each one is checked.
#pragma once

#include "newcomer.hpp"

namespace uidgen::pg {

// A call's arguments, read one after the other. Each function returns the next one, or raises an error if it is not
// valid.
struct Arguments {
    FunctionCallInfo fcinfo;
    int next;
};

// Error if the member speaks another version of the call's protocol.
void check_protocol(Arguments *a, int32_t spoken);

int64_t next_bigint(Arguments *a, int64_t least, int64_t most);
int64_t next_bigint_or_zero(Arguments *a, int64_t most); // NULL: 0
const char *next_text(Arguments *a);

// The arguments of uid_fleet_call(). The offset of the asker's clock is not known yet.
Call read_call(FunctionCallInfo fcinfo);

} // namespace uidgen::pg
