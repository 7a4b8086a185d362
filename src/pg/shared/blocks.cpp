#include "blocks.hpp"

#include "base/settings.hpp"
#include "base/time_source.hpp"
#include "base/waits.hpp"

namespace uidgen::pg {
namespace {

constexpr char cells_name[] = "uidgen blocks";

// After a refusal sessions fail at once for so long. After an error that passes by itself the registrar waits so long.
constexpr int64_t pause_us = us_per_second;

// All but the condition variable is guarded by the lock.
struct Cell {
    BlockState state; // none: unused
    SlotKey key;
    uint64_t number;       // of the ask
    int64_t not_before_us; // when it may be asked (again), on the monotonic clock
    BlockAsk ask;          // of asked and refused
    BlockAnswer answer;    // its error also while the state is asked
    ConditionVariable changed;
};

// Stands before the cells. Guarded by the lock.
struct Header {
    uint64_t asks; // numbers the asks
};

Directory directory;
LWLock *lock = nullptr;
Header *header = nullptr;
Cell *cells = nullptr;

Size cells_bytes() {
    return add_size(mul_size(static_cast<Size>(settings::max_slots), sizeof(Cell)), MAXALIGN(sizeof(Header)));
}

Cell *find(const SlotKey &key) {
    const int32_t index = directory.find(key);
    return index != no_cell ? &cells[index] : nullptr;
}

// Null: there is none.
Cell *find_or_make(const SlotKey &key) {
    Cell *cell = find(key);
    if (cell != nullptr)
        return cell;
    const Directory::Taken taken = directory.take(key);
    if (taken.cell == no_cell)
        return nullptr;
    cell = &cells[taken.cell];
    if (taken.is_fresh)
        ConditionVariableInit(&cell->changed);
    cell->key = key;
    cell->state = BlockState::none;
    return cell;
}

// Whoever waits for the cell finds it gone, and looks again.
void give_up(Cell *cell) {
    directory.give_up(cell->key);
    cell->state = BlockState::none;
    ConditionVariableBroadcast(&cell->changed);
}

bool is_refused_for_now(const Cell &cell, int64_t now_us) {
    return cell.state == BlockState::refused && now_us < cell.not_before_us;
}

} // namespace

void blocks_request_memory() {
    Directory::request_memory();
    RequestAddinShmemSpace(cells_bytes());
    RequestNamedLWLockTranche(cells_name, 1);
}

void blocks_attach_memory() {
    bool found = false;
    LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
    lock = &GetNamedLWLockTranche(cells_name)->lock;
    directory.attach(cells_name);
    char *memory = static_cast<char *>(ShmemInitStruct(cells_name, cells_bytes(), &found));
    header = reinterpret_cast<Header *>(memory);
    cells = reinterpret_cast<Cell *>(memory + MAXALIGN(sizeof(Header)));
    if (!found)
        header->asks = 0;
    LWLockRelease(AddinShmemInitLock);
}

// ---------------------------------------------------------------------------------------------------------
// For the sessions.
// ---------------------------------------------------------------------------------------------------------

bool blocks_ask(SlotKey segment, const BlockAsk &ask) {
    const int64_t now_us = monotonic_us();
    GrantError error = {};
    LWLockAcquire(lock, LW_EXCLUSIVE);
    Cell *cell = find_or_make(segment);
    const bool has_cell = cell != nullptr;
    const bool is_new = has_cell && (cell->state == BlockState::none || cell->state == BlockState::refused) &&
                        !is_refused_for_now(*cell, now_us);
    if (is_new) {
        cell->state = BlockState::asked;
        cell->number = ++header->asks;
        cell->not_before_us = 0;
        cell->ask = ask;
        cell->answer = {BlockState::asked, {}, BlockRefusal::other, {}};
    }
    const bool is_asked = has_cell && cell->state == BlockState::asked;
    LWLockRelease(lock);
    if (is_asked && !wake_registrar(&error))
        blocks_note_away(error);
    return has_cell;
}

bool blocks_take(SlotKey segment, FleetBlock *block) {
    LWLockAcquire(lock, LW_EXCLUSIVE);
    Cell *cell = find(segment);
    const bool is_ready = cell != nullptr && cell->state == BlockState::ready;
    if (is_ready) {
        *block = cell->answer.block;
        give_up(cell);
    }
    LWLockRelease(lock);
    return is_ready;
}

BlockAnswer blocks_look(SlotKey segment) {
    BlockAnswer answer = {};
    LWLockAcquire(lock, LW_SHARED);
    const Cell *cell = find(segment);
    if (cell != nullptr)
        answer = cell->answer;
    LWLockRelease(lock);
    return answer;
}

void blocks_wait(SlotKey segment, int64_t timeout_us) {
    const int64_t until_us = monotonic_us() + timeout_us;
    LWLockAcquire(lock, LW_SHARED);
    Cell *cell = find(segment);
    LWLockRelease(lock);
    if (cell == nullptr)
        return;
    ConditionVariablePrepareToSleep(&cell->changed);
    while (blocks_look(segment).state == BlockState::asked) {
        const int64_t left_us = until_us - monotonic_us();
        if (left_us <= 0 || sleep_for_grant(&cell->changed, left_us))
            break;
    }
    ConditionVariableCancelSleep();
}

void blocks_forget(SlotKey segment) {
    if (directory.ever_used() == 0)
        return;
    LWLockAcquire(lock, LW_EXCLUSIVE);
    Cell *cell = find(segment);
    if (cell != nullptr)
        give_up(cell);
    LWLockRelease(lock);
}

// ---------------------------------------------------------------------------------------------------------
// For the registrar.
// ---------------------------------------------------------------------------------------------------------

bool blocks_next_asked(int32_t after, AskedBlock *asked, int64_t *next_us) {
    const int64_t now_us = monotonic_us();
    bool found = false;
    LWLockAcquire(lock, LW_SHARED);
    for (int32_t i = 0; i < directory.ever_used() && !found; i++) {
        const int32_t index = (after + 1 + i) % directory.ever_used();
        const Cell &cell = cells[index];
        if (cell.state != BlockState::asked)
            continue;
        found = cell.not_before_us <= now_us;
        if (found)
            *asked = {index, cell.number, cell.key, cell.ask};
        else
            *next_us = Min(*next_us, cell.not_before_us - now_us);
    }
    LWLockRelease(lock);
    return found;
}

bool blocks_are_asked() {
    bool asked = false;
    LWLockAcquire(lock, LW_SHARED);
    for (int32_t i = 0; i < directory.ever_used(); i++)
        asked = asked || cells[i].state == BlockState::asked;
    LWLockRelease(lock);
    return asked;
}

void blocks_answer(const AskedBlock &asked, const BlockAnswer &answer) {
    LWLockAcquire(lock, LW_EXCLUSIVE);
    Cell *cell = &cells[asked.cell];
    if (cell->state == BlockState::asked && cell->number == asked.number) {
        cell->state = answer.state;
        cell->answer = answer;
        cell->not_before_us = monotonic_us() + pause_us;
        ConditionVariableBroadcast(&cell->changed);
    }
    LWLockRelease(lock);
}

void blocks_note_away(const GrantError &error) {
    LWLockAcquire(lock, LW_EXCLUSIVE);
    for (int32_t i = 0; i < directory.ever_used(); i++)
        if (cells[i].state == BlockState::asked)
            cells[i].answer.error = error;
    LWLockRelease(lock);
}

} // namespace uidgen::pg
