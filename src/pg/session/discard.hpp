// DISCARD ALL and DISCARD SEQUENCES reset uid_last() and segment_last() as they reset currval() and lastval(). Behind a
// pooler the next client of the session must not read the values of another client.
#pragma once

namespace uidgen::pg {

void discard_hook_install();

} // namespace uidgen::pg
