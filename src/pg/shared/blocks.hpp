// Blocks of a fleet's segments, in shared memory: what passes between the sessions that draw and the registrar, which
// asks the registry.
//
// A block is a range of a segment's values that the registry gave to this server. A segment has one cell at most, from
// the time that a session asks for a block until a session has taken it. So at most one block per segment is ready
// beside the range that sessions draw from (Leaf's double buffer).
//
// One LWLock guards all cells. No I/O and no wait happens under it, and no other lock is taken under it. It may be
// taken under a page's lock, so that a block leaves its cell and becomes the slot's range at once
// (attached_segment.hpp).
#pragma once

#include "registry_error.hpp"
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
};

enum class BlockState : uint32_t {
    none,    // there is no cell
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

void blocks_request_memory(); // from shmem_request_hook
void blocks_attach_memory();  // from shmem_startup_hook

// ---------------------------------------------------------------------------------------------------------
// For the sessions.
// ---------------------------------------------------------------------------------------------------------

// Asks for a block, unless one is asked for or ready, or was refused less than a second ago. Starts the registrar if
// none runs. Returns at once. False: no cell is left.
bool blocks_ask(SlotKey segment, const BlockAsk &ask);

// The block that is ready leaves its cell. False: none is ready. Raises no error.
bool blocks_take(SlotKey segment, FleetBlock *block);

BlockAnswer blocks_look(SlotKey segment);

// Sleeps until the segment's cell is not asked for any more, or the time is over. Honours cancel.
void blocks_wait(SlotKey segment, int64_t timeout_us);

// The segment was dropped, or begins anew.
void blocks_forget(SlotKey segment);

// ---------------------------------------------------------------------------------------------------------
// For the registrar.
// ---------------------------------------------------------------------------------------------------------

struct AskedBlock {
    int32_t cell;
    uint64_t number; // of the ask
    SlotKey segment;
    BlockAsk ask;
};

// The next ask that is due, after that cell. False: none is; then *next_us is how long until one is due, if that is
// less than it was.
bool blocks_next_asked(int32_t after, AskedBlock *asked, int64_t *next_us);

// Whether a block is asked for.
bool blocks_are_asked();

// Does nothing if the cell has another ask by now; a block is then lost. Wakes the sessions that wait for it.
void blocks_answer(const AskedBlock &asked, const BlockAnswer &answer);

// The registry cannot be used: every session that waits learns why.
void blocks_note_away(const GrantError &error);

} // namespace uidgen::pg
