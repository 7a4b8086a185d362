// segment_next(text): from any text to a sequence, looked up once.
//
// A named segment wins over a sequence of that name. What was found stays good while nothing was renamed,
// created or dropped (any change of pg_class or pg_namespace, or of uid_segment, starts afresh), and for a
// plain sequence while the search_path is the one it was found under.
#pragma once

#include "attach.hpp"

namespace uidgen::pg {

// The sequence of the segment of that name, or of that name itself; error if there is none. `function` is the SQL
// function that was called.
Oid sequence_named(Oid function, const text *name);

// The same, attached. The expression remembers its last name in fn_extra.
Attached *attach_named(FunctionCallInfo fcinfo, const text *name);

// The entry that attach_named() found for this expression's last call, if the name still means it; else null.
// Whether it is attached is for the caller to see.
Attached *remembered_entry(FunctionCallInfo fcinfo, const text *name);

} // namespace uidgen::pg
