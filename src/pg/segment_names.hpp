// segment_next(text): from any text to a sequence, looked up once.
//
// A named segment wins over a sequence of that name. What was found stays good while nothing was renamed,
// created or dropped (any change of pg_class or pg_namespace, or of uid_segment, starts afresh), and for a
// plain sequence while the search_path is the one it was found under.
#pragma once

#include "attach.hpp"

namespace uidgen::pg {

// The attached entry of the segment or sequence of that name; error if there is none. `extra` is the
// caller's fn_extra, where the last name of this expression is remembered.
Attached *attach_named(FunctionCallInfo fcinfo, text *name);

} // namespace uidgen::pg
