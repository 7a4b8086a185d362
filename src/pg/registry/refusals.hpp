// Why the registry refuses: the message and the way out for the member that asked. Any role that draws there reads it.
// So it names no other member, and no login: the view uid_fleet and the log do.
#pragma once

#include "newcomer.hpp"

namespace uidgen::pg {

// A call of a member.
struct Call {
    FleetRequest request;
    WorkerPolicy policy;
    FleetAnswer answer;
};

// Returns whether the call is refused: true.
bool refuse(FleetAnswer *answer, const char *name, const char *message, const char *hint);

const char *show_time(int64_t unix_us);

// Of a member that shows what this fleet's registry has not given. The log says it, too.
bool refuse_unproven(Call *call);

// By the judgement of core::judge_server() or core::judge(), or because what it used before it joined is too far ahead.
bool refuse_judged(const Registry &registry, Call *call, core::Refusal why);

// Of a registry that grants nothing to anyone.
bool refuse_everyone(const Registry &registry, Call *call);

bool refuse_in_other_fleet(FleetAnswer *answer);
bool refuse_none_free(const Registry &registry, int32_t pool, Call *call);
bool refuse_taken(Call *call, const NodeRecord &taken);
bool refuse_epoch(Call *call, int64_t epoch_us);
bool refuse_ended(Call *call);

// A layout that is not in use costs a row for good, so a login cannot make any number of them.
constexpr int64_t most_pools = 1000;
bool refuse_layout(Call *call, const char *login);

} // namespace uidgen::pg
