// What to do about a generator that is ahead of the clock.
#pragma once

#include "session/session.hpp"

namespace uidgen::pg {

// A hint. `soon` is the one for a generator that is ahead by minutes, or has not reached its epoch. For all others
// another generator is the way out.
const char *clock_hint(const SessionEntry *e, int64_t ahead_us, const char *soon);

} // namespace uidgen::pg
