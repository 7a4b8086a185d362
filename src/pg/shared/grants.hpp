// The grants that this server's sessions draw with. places.hpp says where they are kept, and has the locking contract.
#pragma once

#include "places.hpp"

namespace uidgen::pg {

// What a session may draw with: read once before a draw, and used for all of it, so that the node of an id is fixed
// before the word is swapped. A view that has become old is still right: its ticks belong to its node for ever.
using core::GrantView;

// Whether uidgen.registry is set, and whether it has changed since: 0, or a number that changes with the setting. It is
// the postmaster's setting that counts, because sessions read theirs late, some in mid-query.
uint32_t grants_epoch();

// The setting changes. Does nothing but in the postmaster.
void grants_set_fleet(bool in_fleet);

// The place of a generator, made if there is none; the caller has the generator's slot. `order` replaces the one that
// the place has. A new line begins without `has_mark`, if the place comes from the file (the generator never leased, so
// the grant in the file is not its own), and if the layout differs.
int grants_place(SlotKey generator, const GrantOrder &order, bool has_mark);

GrantView grants_view(int place);

// Notes that a session draws from the generator, by a reading of the wall clock.
void grants_note_use(int place, int64_t now_us);

// Asks the registrar for a grant that reaches above `lowest` (ticks). Starts the registrar if none runs. Returns at
// once.
void grants_want(int place, int64_t lowest);

// Sleeps until the view of the place changes, the last error changes, or the time is over. Honours cancel.
void grants_wait(int place, const GrantView &seen, int64_t timeout_us);

// Why there is no grant.
GrantError grants_last_error(int place);

// The generator was dropped.
void grants_forget(SlotKey generator);

} // namespace uidgen::pg
