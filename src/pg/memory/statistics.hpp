// What slots have counted, for the views uid_stat and uid_stat_server.
#pragma once

#include "slots.hpp"

namespace uidgen::pg {

// Ids that are known without being counted.
uint64_t ids_by_words(const Slot &slot);

// What a slot has counted since its sequence has it. Under the slot's lock.
Stats slot_counted(Slot *slot);

// What all slots of the server have counted since its start, also those that were freed.
Stats slots_counted();

} // namespace uidgen::pg
