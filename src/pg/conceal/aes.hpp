// AES-256 by OpenSSL's libcrypto, which PostgreSQL links too. Without OpenSSL (make WITHOUT_OPENSSL=1, or a PostgreSQL
// built without it) the library has the same functions, and they fail.
//
// The expanded key is in OpenSSL's memory, and no memory context frees it. So each aes_open() needs an aes_close(),
// even after an error.
#pragma once

#include "core/ff1.hpp"
#include "base/postgres.hpp"

namespace uidgen::pg {

constexpr int aes_key_bytes = 32;

struct AesKey; // OpenSSL's

AesKey *aes_open(const uint8_t *secret);
void aes_close(AesKey *key); // overwrites the expanded key

core::Block aes_encrypt(AesKey *key, const core::Block &text);

} // namespace uidgen::pg
