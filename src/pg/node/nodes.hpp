// The nodes of the current database's generators (core/node.hpp).
#pragma once

#include "core/node.hpp"
#include "memory/slots.hpp"

namespace uidgen::pg {

// What the generator's nodes follow from besides the number in its slot. The datacenter id is that of the generator, or
// the one that this session sees in uidgen.datacenter_id.
core::NodeSource node_source(const GeneratorConfig &config);

// The generator's own node, from the number in its slot. All ids without a grant get their node here.
core::Node own_node(const GeneratorConfig &config, int64_t number);

const char *protection_name(core::Protection protection);

// Whether a datacenter id is given that the layout cannot hold, so that it is not used.
bool datacenter_id_is_unused(const GeneratorConfig &config);

// Issues a WARNING in that case. The caller sees to it that it comes once.
void warn_of_datacenter_id(Oid generator, const GeneratorConfig &config);

// The datacenter id that a node from the registry must have. -1: none is given, or the layout cannot hold it.
int32_t datacenter_id_to_ask_for(const GeneratorConfig &config);

// At the creation of a generator: the same WARNING, or a NOTICE if the datacenter id is the whole node.
void note_datacenter_id(Oid generator, const GeneratorConfig &config);

// The draw of a node: the id of its row of worker_node, and what goes into the row.
struct NodeDraw {
    int64_t id;
    int64_t at_us;
    int64_t node;
};

// Sets the number that the nodes of a generator's slot follow from, unless it has one already. Without `insist`, a node
// that another slot with the same layout has is refused. False: refused, so the caller must draw another one.
// *others is how many slots have that layout and a number.
bool slot_set_number(Slot *slot, int64_t number, const NodeDraw &draw, bool insist, int64_t *others);

// The generator draws with another node from now on.
void slot_set_node(Slot *slot, const NodeDraw &draw);

} // namespace uidgen::pg
