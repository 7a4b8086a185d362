// The keys that ids are concealed with, as this session knows them. The versions that it has used stay expanded until
// uid_key changes.
//
//   1. A key is a sequence in the schema uid_keys, and a row of uid_key. The sequence carries the name, the owner and
//      the privileges. The row carries the secrets.
//   2. The name is looked up and USAGE is checked at each call. So a rename, a drop and a REVOKE apply at once.
//   3. A version's secret never changes (the trigger uid_key_changing). Which version is the newest may change, and a
//      key may be dropped. Each such change of uid_key invalidates all versions here.
#pragma once

#include "aes.hpp"
#include "core/concealed_id.hpp"

namespace uidgen::pg {

// A version of a key, ready for use.
struct Key {
    core::KeyFormat format;
    int32_t version;
    int32_t versions; // of the key
    core::Ff1 permutation;
    AesKey *aes;

    core::Block operator()(const core::Block &text) const { return aes_encrypt(aes, text); }
};

constexpr int32_t newest_version = 0;

// A version of the key of that name; error if there is none, or if the current user may not use it. The key is
// valid until an invalidation is received.
const Key &open_key(const text *name, int32_t version);

// The sequence of the key of exactly that name; error if there is none.
Oid key_named(const text *name);

// How many versions the key has; error if it has no row.
int32_t versions_of_key(const text *name, Oid sequence);

} // namespace uidgen::pg
