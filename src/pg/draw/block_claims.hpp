// What this transaction was shown of the counters of segments, by views that stand for the table of another service.
//
// A node of such a service advances a row by an UPDATE, and takes a block of values from what the row shows it before
// the UPDATE or after it. Four rules make the block its own:
//
//   1. A transaction that locks rows (SELECT FOR UPDATE) or updates them is shown the first value of a *claim*: values
//      that were reserved for this transaction when it was first shown them. It is shown that value until it moves
//      it, whatever other sessions do to the counter meanwhile.
//   2. An UPDATE moves the value inside the claim. A claim that is too short grows where it ends, or else fails.
//   3. A transaction that only looks is shown the counter. If it updates the row afterwards, its claim must begin at
//      the first value that it was shown.
//
// A claim lasts to the end of the transaction. What is not used becomes a gap. A rolled back savepoint takes back what
// the transaction was shown in it, but not what was reserved.
#pragma once

#include "base/postgres.hpp"

namespace uidgen::pg {

struct BlockClaim {
    BlockClaim *older;
    Oid sequence;
    int level;     // the nesting level of the subtransaction that made it
    bool is_empty; // the counter was restarted, and nothing was claimed since
    int64_t value; // what the transaction is shown
    int64_t last;  // reserved up to here
};

// The latest claim on a sequence; null if there is none.
const BlockClaim *block_claim(Oid sequence);
void note_block_claim(Oid sequence, int64_t value, int64_t last);
void note_restart(Oid sequence);

// The first value that the transaction was shown of a sequence without a claim. False: it was not shown any.
bool first_look(Oid sequence, int64_t *value);
void note_look(Oid sequence, int64_t value);

// The length of a block that this transaction was shown first: `length`, if it was not shown any.
int64_t block_length_shown(Oid sequence, int64_t length);

// Whether a statement that updates such a view is running.
bool is_advancing();
void set_advancing(bool now);

// For session_events.cpp.
void block_claims_transaction_ended();
void block_claims_subtransaction_ended(bool aborted);

} // namespace uidgen::pg
