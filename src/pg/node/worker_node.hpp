// How a generator gets the number that its nodes follow from (core/node.hpp).
//
// A generator takes a number when it is first used after a server start, according to its worker policy:
//   disposable  the next value of worker_node's sequence, reserved like any range. Numbers that lead to the node of a
//               live generator of the same layout are skipped while there are others.
//   sticky      the one that leads to the node, or to the worker id, in the generator's latest row from this host and
//               port, if no live generator holds that node.
//   static      the number in the generator's row.
// With each policy the sequence also gives the id of a new row of worker_node, which node_writer.cpp writes.
//
// Uniqueness within a generator depends on its lease, not on this number. So no call waits for the row.
#pragma once

#include "core/node.hpp"
#include "core/other_nodes.hpp"
#include "memory/slots.hpp"

namespace uidgen::pg {

constexpr char node_table_name[] = "worker_node";

// Gives the generator in a slot its number, unless another backend does so at the same time, and logs its node.
// Before the first lease, with the reading of the clock that the lease is for (core/other_nodes.hpp, 1 and 2).
void draw_number(Slot *slot, int64_t now_us);

// The generator in a slot draws with its own node again, or with another one of the registry. Draws the id of a new
// row, and logs the node.
void draw_row_of_own_node(Slot *slot);
void draw_row_of_node(Slot *slot, const core::Node &node);

// The node in the generator's latest row from this host and port; negative if there is none. Rows may be late or lost.
// Those of other databases of the server do not count.
int64_t former_node(Oid schema, Oid generator, const core::Layout &layout);

// The next value of worker_node's sequence, and the last one.
int64_t draw_node_id(Oid schema);
int64_t last_node_id(Oid schema);

// What worker_node says of the nodes that a generator drew in this database. Rows may be late or lost.
struct NodeHistory {
    const core::DrawnNode *rows;
    int32_t count;
    bool rows_of_another; // there are rows of another database or server
};
NodeHistory node_history(Oid schema, Oid generator, const core::Layout &layout);

// How worker_node shows a layout: the same text for the same layout, whatever the settings of the server are.
const char *layout_text(const core::Layout &layout);

// How worker_node identifies the server.
struct ServerAddress {
    char host[NI_MAXHOST];
    const char *port;
};
ServerAddress address_of_server();

// The nodes of the current database's generators (core/node.hpp).

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

// ---------------------------------------------------------------------------------------------------------
// The node writer: a short-lived background process that writes rows of worker_node.
//
// A row is written in its own transaction, so no failure affects a transaction that draws: no lock on the table,
// failing trigger, serialization conflict or wait for a standby. A transaction that has used a generator whose row is
// due starts the process at its end, when its changes are visible. A transaction that is rolled back or read-only does
// so too. No session waits for the process. It may be killed, or find no free place among max_worker_processes. Then a
// later transaction starts another.
// ---------------------------------------------------------------------------------------------------------

// Notes that this transaction uses the generator. If its row is due, and no other session has claimed it, the writer is
// started at the transaction's end.
void note_generator_in_use(Slot *slot);

// For module.cpp.
void node_writer_transaction_ended();

} // namespace uidgen::pg
