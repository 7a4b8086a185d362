// The answer to a member that gets nothing (core/refusal.hpp). Any role that draws there reads it. So it names no other
// member, and no login: the view uid_fleet and the log do.
//
// Nothing here writes to a table. The caller holds the registry's lock, unless it says otherwise.
#pragma once

#include "fleet_request.hpp"

namespace uidgen::pg {

// Puts the refusal into the answer. Where message or hint is null, they are those of the refusal's row. Needs no lock.
void refuse(Call *call, core::Refusal why, const char *message = nullptr, const char *hint = nullptr);

// The same with the words for a reason that a judgement has given: of reason_for_all(), core::judge_server() or
// core::judge(). False: the reason is `none`, and nothing is refused.
bool refuse_if_judged(const Registry &registry, Call *call, core::Refusal why);

// Why the registry grants nothing to anyone; none: it may.
core::Refusal reason_for_all(const Registry &registry);

// Also writes to the log, because the member may be an intruder.
void refuse_unproven(Call *call);

void refuse_none_free(Call *call);
void refuse_taken(Call *call, const NodeRecord &taken);
void refuse_equal_ids(Call *call, const core::Layout &of_pool);

const char *show_time(int64_t unix_us);

} // namespace uidgen::pg
