// The node that the ids of one try carry: the generator's own, or in a fleet that of its grant. A try reads one grant,
// after the bounds of the generator's word and before the clock (docs/design.md, P1 16).
#pragma once

#include "memory/generator_state.hpp"
#include "session/session.hpp"

namespace uidgen::pg {

struct NodeGrant {
    bool in_fleet; // else `view` holds all ticks
    GrantView view;
};

// The grant to draw with. Joins the fleet or leaves it first, if the setting has changed.
NodeGrant join_or_leave_fleet(SessionEntry *e) EXCLUDES(page_lock, slot_lock, state_lock);

// A grant's node that the generator's row of worker_node does not show yet gets a row.
void show_node(SessionEntry *e, const GrantView &grant);

// The grant of a generator for a reader that has no entry; in a fleet none before the first draw there.
NodeGrant present_grant(const Slot *slot) REQUIRES_SHARED(slot_lock);

} // namespace uidgen::pg
