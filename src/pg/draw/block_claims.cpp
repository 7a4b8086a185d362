#include "block_claims.hpp"

namespace uidgen::pg {
namespace {

// Newest first, in TopTransactionContext. The levels do not increase along the list.
BlockClaim *claims = nullptr;

struct Look {
    Oid sequence; // must come first: the key
    bool has_value;
    int64_t value;
    int64_t length; // 0: none was shown
};

// In TopTransactionContext; null: empty. Savepoints do not matter: a client remembers what it was shown.
HTAB *looks = nullptr;

bool advancing = false;

Look *look_at(Oid sequence) {
    bool found = false;
    if (looks == nullptr) {
        HASHCTL control = {};
        control.keysize = sizeof(Oid);
        control.entrysize = sizeof(Look);
        control.hcxt = TopTransactionContext;
        looks = hash_create("uidgen looks at segments", 64, &control, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
    }
    auto *look = static_cast<Look *>(hash_search(looks, &sequence, HASH_ENTER, &found));
    if (!found)
        *look = {sequence, false, 0, 0};
    return look;
}

void add(Oid sequence, bool is_empty, int64_t value, int64_t last) {
    auto *claim = static_cast<BlockClaim *>(MemoryContextAlloc(TopTransactionContext, sizeof(BlockClaim)));
    *claim = {claims, sequence, GetCurrentTransactionNestLevel(), is_empty, value, last};
    claims = claim;
}

} // namespace

const BlockClaim *block_claim(Oid sequence) {
    const BlockClaim *claim = claims;
    while (claim != nullptr && claim->sequence != sequence)
        claim = claim->older;
    return claim;
}

void note_block_claim(Oid sequence, int64_t value, int64_t last) { add(sequence, false, value, last); }

void note_restart(Oid sequence) { add(sequence, true, 0, 0); }

bool first_look(Oid sequence, int64_t *value) {
    const auto *look =
        looks != nullptr ? static_cast<const Look *>(hash_search(looks, &sequence, HASH_FIND, nullptr)) : nullptr;
    if (look == nullptr || !look->has_value)
        return false;
    *value = look->value;
    return true;
}

void note_look(Oid sequence, int64_t value) {
    Look *look = look_at(sequence);
    if (look->has_value)
        return;
    look->has_value = true;
    look->value = value;
}

int64_t block_length_shown(Oid sequence, int64_t length) {
    Look *look = look_at(sequence);
    if (look->length == 0)
        look->length = length;
    return look->length;
}

bool is_advancing() { return advancing; }

void set_advancing(bool now) { advancing = now; }

void block_claims_transaction_ended() {
    claims = nullptr;
    looks = nullptr;
    advancing = false;
}

void block_claims_subtransaction_ended(bool aborted) {
    const int level = GetCurrentTransactionNestLevel();
    if (aborted) {
        advancing = false;
        while (claims != nullptr && claims->level >= level)
            claims = claims->older; // freed with its context
        return;
    }
    for (BlockClaim *claim = claims; claim != nullptr && claim->level >= level; claim = claim->older)
        claim->level = level - 1;
}

} // namespace uidgen::pg
