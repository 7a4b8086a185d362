// Worker ids and their rows in worker_node.
//
// A generator takes a worker id the first time it is used after a server start. disposable: the next value of
// worker_node's identity sequence, reserved like any range, modulo the worker ids of the layout; numbers that live
// generators of the same layout hold are skipped while there are others. sticky: the one in the generator's latest row
// from this host and port, if no live generator holds it. static: the number in the generator's row. With each policy the
// identity sequence gives the id of a row of its own.
//
// Uniqueness within a generator does not rest on the number (its lease does that), with one exception: the terms of
// when_back new_worker, whose numbers are the static one and those after it, one a term, and the term stands in the
// durable counter. So nothing waits for the row: the first transaction that can write and commits inserts it just before
// its commit, and if that transaction rolls back the next one does.
#pragma once

#include "slots.hpp"

namespace uidgen::pg {

// Gives the generator in a slot its worker id, unless another backend does at the same time. `function` is
// the SQL function that was called: it leads to the extension's tables.
void draw_worker_id(Slot *slot, Oid function);

// The generator in a slot has begun another term, so its worker id changed.
void draw_row_of_term(Slot *slot, Oid function);

// This transaction uses the generator: if its row is due, the transaction shall write it.
void worker_row_wanted(Slot *slot, Oid function);

// For the transaction callbacks: write the rows that are due; then what became of the transaction.
void worker_rows_before_commit();
void worker_rows_after_transaction(bool committed);

} // namespace uidgen::pg
