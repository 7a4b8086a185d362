// Worker ids: how a generator gets one.
//
// A generator takes a worker id the first time it is used after a server start. disposable: the next value of
// worker_node's sequence, reserved like any range, modulo the worker ids of the layout; numbers that live generators of
// the same layout hold are skipped while there are others. sticky: the one in the generator's latest row from this host
// and port, if no live generator holds it. static: the number in the generator's row. With each policy the sequence gives
// the id of a row of its own, which node_writer.cpp writes.
//
// Uniqueness within a generator does not rest on the number (its lease does that), with one exception: the terms of
// when_back new_worker, whose numbers are the static one and those after it, one a term, and the term stands in the
// durable counter. So nothing waits for the row.
#pragma once

#include "shared/slots.hpp"

namespace uidgen::pg {

constexpr char node_table_name[] = "worker_node";

// Gives the generator in a slot its worker id, unless another backend does at the same time. `function` is
// the SQL function that was called: it leads to the extension's tables.
void draw_worker_id(Slot *slot, Oid function);

// The generator in a slot has begun another term, so its worker id changed.
void draw_row_of_term(Slot *slot, Oid function);

// The next value of worker_node's sequence.
int64_t draw_node_id(Oid schema);

// What worker_node says of the server.
struct ServerAddress {
    char host[NI_MAXHOST];
    const char *port;
};
ServerAddress address_of_server();

} // namespace uidgen::pg
