// What a database keeps of the fleet: the number of the term that its ids were drawn in last.
//
// A server knows its fleet from the file of grants. pg_upgrade and base backups leave that out, so after them the
// databases say which registries are earlier ones (core/membership.hpp, 4). The number is in a sequence, as the
// high-water marks are, and logged before the first lease in a grant of that term, and before a block of it is drawn
// from. So each history of the database that has these has the number.
#pragma once

#include <cstdint>

namespace uidgen::pg {

// Raises the database's number to what the server has seen, or the server's to the database's. Returns the database's.
// (After uid_fleet_move() it may fall.) Error if by the server's clock it does not exist.
int64_t agree_on_fleet_term();

} // namespace uidgen::pg
