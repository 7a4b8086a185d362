// DISCARD ALL and DISCARD SEQUENCES end uid_last() and segment_last() as they end currval() and lastval(): behind a
// pooler the next client of the session must not read the values of another one.
#pragma once

namespace uidgen::pg {

void discard_hook_install();

} // namespace uidgen::pg
