// Arrays of values that one call draws.
#pragma once

#include "session/session.hpp"

namespace uidgen::pg {

// Draws 1 to `want` values, writes them to `out`, and returns how many.
using DrawSome = uint64_t (*)(SessionEntry *entry, uint64_t want, int64_t *out);

// An array of bigint with `count` values that draw() draws, with its locks and waits; and the last of them, unless
// there is none. Negative counts are refused. The entry is open, even for 0 values: that has checked the caller's
// privilege.
ArrayType *draw_array(SessionEntry *entry, int64_t count, DrawSome draw, int64_t *last);

} // namespace uidgen::pg
