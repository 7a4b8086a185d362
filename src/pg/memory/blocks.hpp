// Blocks of a fleet's segments, in shared memory: what passes between the sessions that draw and the registrar, which
// asks the registry.
//
// A block is a range of a segment's values that the registry gave to this server. A slot has one place for it. So at
// most one block of a segment is ready after the range that sessions draw from (Leaf's double buffer). The slot's lock
// guards the place. It may be taken under the page's, so that a block leaves its place and becomes the slot's range at
// once (segment/draw.hpp).
#pragma once

#include "slots.hpp"

namespace uidgen::pg {

// ---------------------------------------------------------------------------------------------------------
// For the sessions.
// ---------------------------------------------------------------------------------------------------------

// Asks for a block, unless one is asked for or ready, or was refused less than a second ago. Starts the registrar if
// none runs. Returns at once.
void blocks_ask(Slot *segment, const BlockAsk &ask);

// The block that is ready leaves the slot's place. False: none is ready that was asked for by that name. Raises no
// error.
bool blocks_take(Slot *segment, const char *registry_name, FleetBlock *block);

BlockAnswer blocks_look(const Slot *segment);

// Sleeps until no block is asked for any more, or the time is over. Honours cancel.
void blocks_wait(Slot *segment, int64_t timeout_us);

// What was asked for is of no use any more. The second form is under the slot's lock.
void blocks_forget(Slot *segment);
inline void blocks_discard(Slot *segment) {
    segment->segment.block.answer = {};
    ConditionVariableBroadcast(&segment->segment.block.changed);
}

// ---------------------------------------------------------------------------------------------------------
// For the registrar.
// ---------------------------------------------------------------------------------------------------------

struct AskedBlock {
    Slot *segment;
    uint64_t number; // of the ask
    BlockAsk ask;
};

// The ask that is due and has the lowest number. False: none is; then *next_us is how long until one is due, if that is
// less than it was.
bool blocks_next_asked(AskedBlock *asked, int64_t *next_us);

// Whether a block is asked for.
bool blocks_are_asked();

// Does nothing if the place has another ask by now; a block is then lost. Wakes the sessions that wait for it.
void blocks_answer(const AskedBlock &asked, const BlockAnswer &answer);

// The registry cannot be used: every session that waits learns why.
void blocks_note_away(const GrantError &error);

} // namespace uidgen::pg
