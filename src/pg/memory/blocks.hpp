// Blocks of a fleet's segments, in shared memory: what passes between the sessions that draw and the registrar, which
// asks the registry.
//
// A block is a range of a segment's values that the registry gave to this server. A slot has one place for it at most,
// made when a session first asks for one. So at most one block of a segment is ready after the range that sessions
// draw from (Leaf's double buffer).
//
// The slot's lock guards the place. It may be taken under the page's, so that a block leaves its place and becomes the
// slot's range at once (segment/draw.hpp). Places are on a list of their own, which the registrar walks.
#pragma once

#include "slots.hpp"

namespace uidgen::pg {

constexpr int longest_registry_name = 255; // bytes

// What the registry is asked.
struct BlockAsk {
    int64_t count; // 0: none, only what the segment is like
    int64_t shown; // the last value that this server was given
    uint64_t fleet;
    int64_t increment; // with the fleet: what they were when the segment was attached; 0: any
    char registry_name[longest_registry_name + 1]; // in UTF-8
    char database[NAMEDATALEN];
};

// `count` values: first, first + increment, ... With a count of 0 it says what the segment is like.
struct FleetBlock {
    uint64_t fleet;
    int64_t first;
    uint64_t count;
    int64_t increment;
    bool is_synchronous; // whether the registry has a synchronous standby
};

enum class BlockState : uint32_t {
    none,
    asked,   // the registrar asks for it, until it is there or is refused
    ready,   // a session may take it
    refused, // a session may ask again
};

// Why the registry refuses a block.
enum class BlockRefusal : uint32_t {
    other,
    used_up, // the segment has no value left
    changed, // the registry is of another fleet, or the increment has changed
};

struct BlockAnswer {
    BlockState state; // asked: the error passes by itself, so the registrar asks again
    FleetBlock block; // of ready
    BlockRefusal why; // of refused
    GrantError error; // at_us 0: none
};

// ---------------------------------------------------------------------------------------------------------
// For the sessions.
// ---------------------------------------------------------------------------------------------------------

// Asks for a block, unless one is asked for or ready, or was refused less than a second ago. Starts the registrar if
// none runs. Returns at once.
void blocks_ask(Slot *segment, const BlockAsk &ask);

[[gnu::visibility("hidden")]] extern const size_t block_place_bytes;

// The slot's place; null: no block was ever asked for. May raise an error, so it comes before the page's lock.
struct BlockPlace;
BlockPlace *block_place(const Slot *segment);

// The block that is ready leaves the slot's place. False: none is ready that was asked for by that name. Raises no
// error.
bool blocks_take(Slot *segment, BlockPlace *place, const char *registry_name, FleetBlock *block);

BlockAnswer blocks_look(const Slot *segment);

// Sleeps until no block is asked for any more, or the time is over. Honours cancel.
void blocks_wait(Slot *segment, int64_t timeout_us);

// What was asked for is of no use any more. The second form is for slots.cpp, under the slot's lock.
void blocks_forget(Slot *segment);
void blocks_discard(Slot *segment);

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
