// What members are answered, and why uid_fleet_call() refuses: the message and the way out for the member that asked.
// Any role that draws there reads it. So it names no other member, and no login: uid_fleet and the log do.
#pragma once

#include "newcomer.hpp"

namespace uidgen::pg {

struct Reply {
    MemberRefusal refusal; // name null: `row` is granted
    core::NodeRow row;
};

// The columns of an answer, in the order of the procedure's arguments.
struct Answer {
    int count;
    Datum values[15];
    bool nulls[15];
};

void add_number(Answer *answer, int64_t value, bool known = true); // otherwise NULL
void add_text(Answer *answer, const char *value);                  // null: NULL

// Commits, and returns the answer as the procedure's result. So what leaves the registry is committed, whatever the
// caller does afterwards, and no statement of the caller's runs under the registry's locks.
Datum commit_answer(Registry *registry, FunctionCallInfo fcinfo, Answer answer);

const char *show_time(int64_t unix_us);

MemberRefusal refuse_judged(const Registry *registry, const Call &call, core::Refusal why);
MemberRefusal refuse_in_other_fleet();
MemberRefusal refuse_none_free(const Registry *registry, int32_t pool, const Call &call);
MemberRefusal refuse_taken(const Registry *registry, const Call &call, const NodeRecord &taken);
MemberRefusal refuse_epoch(const Call &call, int64_t epoch_us);
MemberRefusal refuse_ended(const Call &call);

// A layout that is not in use costs a row for good, so a login cannot make any number of them.
constexpr int64_t most_pools = 1000;
MemberRefusal refuse_layout(const Call &call, const char *login);

} // namespace uidgen::pg
