// How a generator gets the number that its nodes follow from (core/node.hpp).
//
// A generator takes a number when it is first used after a server start, and for each other datacenter id with which a
// session uses it (memory/node_draws.hpp), according to its worker policy:
//   disposable  the next value of worker_node's sequence, reserved like any range. Numbers that lead to the node of a
//               live generator of the same layout are skipped while there are others.
//   sticky      the one that leads to the node, or to the worker id, in the generator's latest row from this host and
//               port, if no live generator holds that node.
//   static      the number in the generator's definition.
// With each policy the sequence also gives the id of a new row of worker_node, which node_writer.cpp writes.
//
// Uniqueness within a generator depends on its lease, not on this number. So no call waits for the row.
#pragma once

#include "core/node.hpp"
#include "memory/node_draws.hpp"

namespace uidgen::pg {

constexpr char node_table_name[] = "worker_node";

// The generator's own node for this session. If no session has drawn it yet, it is drawn now from worker_node's
// sequence (draw_node()), put into the slot and logged. Before the first lease, with the reading of the clock that the
// lease is for. The caller holds RowExclusiveLock on the generator.
NodeDraw *own_node_for(Slot *slot, int64_t now_us) EXCLUDES(page_lock, table_lock, slot_lock, state_lock);

// The generator's own node for this session, if it was drawn; else another one that was; else null. Reads the slot,
// by atomics, and draws nothing. For a session that uses the slot, or a view under the slot's lock.
NodeDraw *own_node_so_far(Slot *slot);

// The registry has granted another node than the one `shown` to the generator in a slot: draws the id of a new row of
// worker_node (draw_node_id()), claims a place (claim_node_place()), and unless another session was first, puts the row
// there (show_granted_node()) and logs the node. The caller holds RowExclusiveLock on the generator.
void draw_row_of_grant(Slot *slot, int64_t shown, int64_t node) EXCLUDES(page_lock, table_lock, slot_lock, state_lock);

// The generator draws without the registry again. If it has drawn with a grant, notes that (show_own_node()); if it has
// also drawn without, draws the id of a new row of worker_node before (draw_node_id()), and logs that node. The caller
// holds RowExclusiveLock on the generator.
void draw_own_row_again(Slot *slot) EXCLUDES(page_lock, table_lock, slot_lock, state_lock);

// The node in the generator's latest row from this host and port; negative if there is none. Rows may be late or lost.
// Those of other databases of the server do not count, nor those from before it was moved or copied, if the protection
// is automatic: the original would have the same node.
//
// A row is the generator's if it has its oid, whatever the generator's name was. If none of those has a node, one is
// that has its name, where its oid is of another database or server, as after a restore, or of nothing any more. Reads
// the table under AccessShareLock for the moment. The process has attached.
int64_t former_node(Oid schema, Oid generator, const core::Layout &layout, core::Protection protection)
    EXCLUDES(page_lock, table_lock, slot_lock, state_lock);

// The next value of worker_node's sequence: moves that counter, under RowExclusiveLock for the moment.
int64_t draw_node_id(Oid schema) EXCLUDES(page_lock, table_lock, slot_lock, state_lock);

// The qualified name in the catalogs, as worker_node and the registry have it: the same whatever quote_all_identifiers
// says here.
const char *stored_name(Oid generator);

// How worker_node shows a layout: the same text for the same layout, whatever the settings of the server are. Touches
// its argument only.
const char *layout_text(const core::Layout &layout);

// What the generator's nodes follow from besides the number in its slot (core/node.hpp). The datacenter id is that of
// the generator, or the one that this session sees in uidgen.datacenter_id. Reads settings, and of shared memory only
// what is set once. `config` is a copy, or of a slot that the session uses, or under the slot's lock.
core::NodeSource node_source(const GeneratorConfig &config);

// The node that a number gives, by node_source(): all ids without a grant get it here.
core::Node own_node(const GeneratorConfig &config, int64_t number);

const char *protection_name(core::Protection protection);

// A WARNING, once in the life of a slot's contents (an atomic there), if a datacenter id is given that the layout
// cannot hold, so that the node is automatic. The caller holds RowExclusiveLock on the generator.
void warn_of_datacenter_id(Slot *slot, const core::Node &node);

// The datacenter id that a node from the registry must have, by `config` and the setting only. -1: none is given, or
// the layout cannot hold it.
int32_t datacenter_id_to_ask_for(const GeneratorConfig &config);

// At the creation of a generator: a NOTICE, with its name from the catalogs, if the datacenter id is the whole node, or
// would be the worker id without a registry (is_in_fleet()).
void notify_of_datacenter_id(Oid generator, const GeneratorConfig &config);

// ---------------------------------------------------------------------------------------------------------
// The node writer: a background process that writes rows of worker_node. A server has at most one.
//
// Its transactions cannot affect one that draws (docs/design.md, P7). A transaction that has used a node whose row
// is due says so in the generator's slot and wakes the process at its end, when its changes are visible, even if it is
// rolled back or read-only. What slots owe is written even if the process fails, because the postmaster starts it
// again. If it finds no free place, a later transaction starts it.
// ---------------------------------------------------------------------------------------------------------

// Notes in this process that the transaction draws with the node, if its row is due; node_writer_transaction_ended()
// tells the node writer. Reads atomics of the slot, without a lock.
void note_node_in_use(NodeDraw *draw);

// For module.cpp, at the end of a transaction: by atomics, slots owe the rows that it has noted. Wakes the node writer,
// which writes them. Takes no lock, and raises no error.
void node_writer_transaction_ended();

} // namespace uidgen::pg
