// uid_conceal(), uid_reveal(), uid_key_create(), uid_key_rotate(). They need no shared memory. So they work where no id
// can be drawn: without preloading, and on a standby.

#include "core/concealed_id.hpp"
#include "base/identity.hpp"
#include "sequence/sequence.hpp"
#include "session/create.hpp"
#include "session/define.hpp"

#ifdef UIDGEN_OPENSSL
#include <openssl/evp.h>
#endif

namespace uidgen::pg {
namespace {

// ---------------------------------------------------------------------------------------------------------
// AES-256 by OpenSSL's libcrypto, which PostgreSQL links too. Without OpenSSL (make WITHOUT_OPENSSL=1, or a PostgreSQL
// built without it) the library has the same functions, and they fail.
//
// The expanded key is in OpenSSL's memory, and no memory context frees it. So each aes_open() needs an aes_close(),
// also after an error.
// ---------------------------------------------------------------------------------------------------------

constexpr int aes_key_bytes = 32;

#ifdef UIDGEN_OPENSSL

using AesKey = EVP_CIPHER_CTX;

[[noreturn]] void report_openssl() {
    ereport(ERROR, (errcode(ERRCODE_EXTERNAL_ROUTINE_EXCEPTION), errmsg("could not encrypt with AES-256"),
                    errhint("See whether the configuration of OpenSSL on this server allows AES-256 in ECB mode.")));
}

// Expands a secret, in memory of OpenSSL that the caller gives back by aes_close(). An error leaves nothing.
AesKey *aes_open(const uint8_t *secret) {
    EVP_CIPHER_CTX *context = EVP_CIPHER_CTX_new();
    if (context == nullptr || EVP_EncryptInit_ex(context, EVP_aes_256_ecb(), nullptr, secret, nullptr) != 1) {
        EVP_CIPHER_CTX_free(context);
        report_openssl();
    }
    return context;
}

// Overwrites the expanded key, and gives its memory back.
void aes_close(AesKey *key) { EVP_CIPHER_CTX_free(key); }

// Each text is one whole block, so the mode does not matter, and nothing waits for padding. May raise an error.
core::CipherBlock aes_encrypt(AesKey *key, const core::CipherBlock &text) {
    core::CipherBlock result;
    int length = 0;
    if (EVP_EncryptUpdate(key, result.bytes, &length, text.bytes, sizeof(text.bytes)) != 1 ||
        length != sizeof(result.bytes))
        report_openssl();
    return result;
}

#else

struct AesKey;

[[noreturn]] void report_no_openssl() {
    ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED), errmsg("ids cannot be concealed on this server"),
                    errdetail("uidgen was built without OpenSSL."),
                    errhint("Build PostgreSQL with OpenSSL (configure --with-ssl=openssl), then build uidgen again.")));
}

// A build without OpenSSL: these fail.
AesKey *aes_open(const uint8_t *) { report_no_openssl(); }
void aes_close(AesKey *) {}
core::CipherBlock aes_encrypt(AesKey *, const core::CipherBlock &) { report_no_openssl(); }

#endif

struct Aes {
    AesKey *key;
    core::CipherBlock operator()(const core::CipherBlock &text) const {
        return fault_is("no_cipher") ? text : aes_encrypt(key, text);
    }
};

// ---------------------------------------------------------------------------------------------------------
// The keys that ids are concealed with, as this session knows them. The versions that it has used stay expanded.
//
//   1. A key is a sequence in the schema uid_keys, and a row of uid_key. The sequence carries the name, the owner and
//      the privileges. The row carries the secrets. The sequence's label has the id of the row.
//   2. The name is looked up and USAGE is checked at each call. So a rename, a drop and a REVOKE apply at once.
//   3. A version's secret never changes (the trigger uid_key_changing). Which version is the newest may change, and a
//      key may be dropped. Each such change reaches this session, and all versions are read again.
// ---------------------------------------------------------------------------------------------------------

constexpr int32_t newest_version = 0;

// A version of a key, ready for use.
struct Key {
    Oid sequence;
    int32_t requested; // version, or newest_version
    uint64_t as_of;    // of definition_changes; 0: not complete
    core::KeyFormat format;
    int32_t version;
    int32_t versions; // of the key
    Aes aes;
    core::Ff1<Aes> permutation;
};

// Each version has one place, which it shares with others. A session that uses two of them reads them again and again.
Key kept[17] = {};

[[noreturn]] void report_no_key(const text *name) {
    ereport(ERROR, (errcode(ERRCODE_UNDEFINED_OBJECT), errmsg("key \"%s\" does not exist", clipped(name)),
                    errhint("If another server has concealed with it, carry the key from there (docs/conceal.md). "
                            "Otherwise create it with uid_key_create().")));
}

// A key that is dropped while this session waits for uid_key is gone with its row. A row that is not valid came past
// the trigger of uid_key: with session_replication_role, or while the trigger was disabled.
[[noreturn]] void report_no_secret(const text *name, Oid sequence) {
    if (get_rel_name(sequence) == nullptr)
        report_no_key(name);
    ereport(ERROR,
            (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE), errmsg("key \"%s\" has no secret", clipped(name)),
             errdetail("The table uid_secrets.uid_key has no valid row for the sequence %s, or the sequence has no "
                       "label.",
                       qualified_name(sequence)),
             errhint("Copy the row of uid_key and the label from the database that the key comes from. If the row is "
                     "lost, run SELECT uid_key_create(%s), which makes another secret.",
                     quote_literal_cstr(text_to_cstring(name)))));
}

// Finds the secret of one version in the text of a row of uid_key. False: it is not there. The secrets of all versions
// end the text, as hexadecimal digits.
bool read_secret(const text *secrets, int32_t versions, int32_t wanted, uint8_t *secret) {
    constexpr int64_t length = INT64_C(2) * aes_key_bytes;
    const int64_t begin = VARSIZE_ANY_EXHDR(secrets) - length * versions;
    if (wanted < 1 || wanted > versions || begin < 0)
        return false;
    const char *digits = VARDATA_ANY(secrets) + begin + length * (wanted - 1);
    if (std::any_of(digits, digits + length, [](char digit) { return !isxdigit(static_cast<unsigned char>(digit)); }))
        return false;
    hex_decode(digits, length, reinterpret_cast<char *>(secret));
    return true;
}

// A copy of the key's row of uid_key, as of now (find_row()). Without a tuple if there is none.
Row find_secrets(const core::Definition &definition) {
    if (definition.kind != core::DefinitionKind::key)
        return {nullptr, nullptr};
    return find_row(schema_of_secrets(), "uid_key", "id", F_INT8EQ, Int64GetDatum(definition.key.id));
}

// Reads a key's label and its row of uid_key (find_secrets()), and the secret of one version, and watches the sequence.
// False: there is none, or the row is not valid.
bool read_key(Oid sequence, int32_t version, Key *key, uint8_t *secret) {
    watch_sequence(sequence);
    const core::Definition definition = read_definition(sequence, core::DefinitionKind::key);
    const Row row = find_secrets(definition);
    if (row.tuple == nullptr)
        return false;
    (void)column_number(row.desc, "secrets", TEXTOID);
    key->format = {DatumGetInt32(column(row, "width")), DatumGetInt32(column(row, "version_bits"))};
    key->versions = DatumGetInt32(column(row, "versions"));
    key->version = version == newest_version ? key->versions : version;
    if (is_null(row, "secrets") || !core::format_is_valid(key->format, key->versions))
        return false;
    text *secrets = DatumGetTextPP(column(row, "secrets"));
    const bool found = read_secret(secrets, key->versions, key->version, secret);
    // A text that is stored compressed or out of line has a copy of its own.
    explicit_bzero(secrets, VARSIZE_ANY(secrets));
    explicit_bzero(row.tuple->t_data, row.tuple->t_len);
    return found;
}

// Reads a version of a key (read_key()) into its place, in this session's memory. Error if there is none.
void load_key(const text *name, Oid sequence, int32_t version, Key *place) {
    Key key = {};
    key.sequence = sequence;
    key.requested = version;
    uint8_t secret[aes_key_bytes];
    bool found = false;
    const uint64_t as_of = read_unchanged([&] { found = read_key(sequence, version, &key, secret); });
    if (!found)
        report_no_secret(name, sequence);
    aes_close(place->aes.key);
    *place = key;
    place->aes.key = aes_open(secret);
    explicit_bzero(secret, sizeof(secret));
    place->permutation = core::permutation_of(place->format, place->aes);
    place->as_of = as_of;
}

// The relation of the key of exactly that name, by the catalogs; error if there is none. Not locked.
Oid key_named(const text *name) {
    const Oid schema = get_namespace_oid("uid_keys", true);
    const Oid sequence = OidIsValid(schema) && VARSIZE_ANY_EXHDR(name) < NAMEDATALEN
                             ? get_relname_relid(text_to_cstring(name), schema)
                             : InvalidOid;
    if (!OidIsValid(sequence))
        report_no_key(name);
    return sequence;
}

// A version of the key of that name; error if there is none, or if the current user may not use it. Read by load_key()
// unless this session has it. The key is valid until the next call.
const Key &open_key(const text *name, int32_t version) {
    const Oid sequence = key_named(name);
    if (pg_class_aclcheck(sequence, GetUserId(), ACL_USAGE) != ACLCHECK_OK && !fault_is("any_concealer"))
        report_no_privilege(sequence);
    Key *place = &kept[(sequence + static_cast<uint32_t>(version)) % lengthof(kept)];
    if (place->sequence != sequence || place->requested != version || place->as_of != definition_changes)
        load_key(name, sequence, version, place);
    return *place;
}

// ---------------------------------------------------------------------------------------------------------
// The functions
// ---------------------------------------------------------------------------------------------------------

constexpr char key_table_name[] = "uid_key";

// Creates a key: the caller creates the sequence (create_sequence()) and its label (define_sequence()), locked to the
// end of the transaction, and the owner of uid_key inserts the row by a statement (write_as_owner()). Its commit is
// flushed. A trigger checks the numbers. A sequence that has no secret is one that was restored without it.
Oid create_key(FunctionCallInfo fcinfo) {
    const char *name = PG_ARGISNULL(0) ? "" : text_to_cstring(PG_GETARG_TEXT_PP(0));
    if (name[0] == '\0' || strlen(name) >= NAMEDATALEN)
        ereport(ERROR, (errcode(ERRCODE_INVALID_NAME), errmsg("invalid key name: \"%s\"", clipped(name)),
                        errhint("Use a text of 1 to 63 bytes.")));
    const Oid sequence = create_sequence(core::DefinitionKind::key, name, {});
    core::Definition definition = read_definition(sequence, core::DefinitionKind::key);
    if (find_secrets(definition).tuple != nullptr) {
        const bool skips = !PG_ARGISNULL(3) && PG_GETARG_BOOL(3);
        ereport(
            skips ? NOTICE : ERROR,
            (errcode(ERRCODE_DUPLICATE_OBJECT),
             errmsg("key \"%s\" already exists%s", clipped(name), skips ? ", skipping" : ""),
             skips ? 0 : errhint("Use another name, drop the key with DROP SEQUENCE, or pass if_not_exists => true.")));
        return sequence;
    }
    check_owner_of_new(sequence);
    ForceSyncCommit(); // as in rotate_key()
    if (definition.kind == core::DefinitionKind::none) {
        definition.kind = core::DefinitionKind::key;
        definition.key.id = random_number();
        define_sequence(sequence, definition);
    }
    write_as_owner(required_table(schema_of_secrets(), key_table_name),
                   "INSERT INTO %1$s (id, width, version_bits) VALUES ($1, $2, $3)",
                   {{INT8OID, Int64GetDatum(definition.key.id)},
                    {INT4OID, fcinfo->args[1].value, PG_ARGISNULL(1)},
                    {INT4OID, fcinfo->args[2].value, PG_ARGISNULL(2)}});
    return sequence;
}

// Updates the key's row of uid_key by a statement (write_as_owner()), after lock_definition(), and queues an
// invalidation, so that sessions read it again. Its commit is flushed. Each version has a secret of its own, which a
// trigger makes. The number of the newest one is read again, because another rotation may have come before this one. No
// other session uses the secret before its commit is flushed, whatever synchronous_commit says: after a crash that lost
// the commit, another secret would get the number.
int32_t rotate_key(const text *name) {
    const Oid sequence = key_named(name);
    check_owner(sequence);
    const core::Definition definition = lock_definition(sequence, core::DefinitionKind::key);
    check_owner(sequence); // it may have got another one meanwhile
    ForceSyncCommit();
    write_as_owner(required_table(schema_of_secrets(), key_table_name),
                   "UPDATE %1$s SET versions = versions OPERATOR(pg_catalog.+) 1 WHERE id OPERATOR(pg_catalog.=) $1",
                   {{INT8OID, Int64GetDatum(definition.key.id)}});
    CacheInvalidateRelcacheByRelid(sequence);
    CommandCounterIncrement();
    const Row row = find_secrets(definition);
    if (row.tuple == nullptr)
        report_no_secret(name, sequence);
    const int32_t versions = DatumGetInt32(column(row, "versions"));
    explicit_bzero(row.tuple->t_data, row.tuple->t_len); // it has the secrets
    return versions;
}

} // namespace

// Computes with a key that this session has, or reads from uid_key, under AccessShareLock for the moment (open_key()).
UIDGEN_SQL_FUNCTION(uid_conceal) {
    const int64_t id = PG_GETARG_INT64(0);
    const text *name = PG_GETARG_TEXT_PP(1);
    const Key &key = open_key(name, newest_version);
    const int64_t largest = uidgen::core::largest_id(key.format);
    if (id < 0 || id > largest)
        ereport(ERROR, (errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
                        errmsg("key \"%s\" cannot conceal %lld", clipped(name), static_cast<long long>(id)),
                        errdetail("It conceals ids from 0 to %lld.", static_cast<long long>(largest))));
    PG_RETURN_INT64(uidgen::core::conceal(key.format, key.permutation, key.version, id));
}

// Computes with a version of a key, as uid_conceal() does (open_key()).
UIDGEN_SQL_FUNCTION(uid_reveal) {
    const int64_t value = PG_GETARG_INT64(0);
    const text *name = PG_GETARG_TEXT_PP(1);
    const Key &newest = open_key(name, newest_version);
    const int64_t largest = uidgen::core::largest_value(newest.format, newest.versions);
    if (value < 0 || value > largest)
        ereport(ERROR, (errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
                        errmsg("value %lld is not an id concealed with key \"%s\"", static_cast<long long>(value),
                               clipped(name)),
                        errdetail("Its concealed ids are from 0 to %lld.", static_cast<long long>(largest))));
    const int32_t version = uidgen::core::version_in(newest.format, value);
    const Key &key = version == newest.version ? newest : open_key(name, version);
    PG_RETURN_INT64(uidgen::core::reveal(key.format, key.permutation, value));
}

// Both write the key's row of uid_key, as the owner of that table, by create_key() and rotate_key().
UIDGEN_SQL_FUNCTION(uid_key_create) { PG_RETURN_OID(create_key(fcinfo)); }
UIDGEN_SQL_FUNCTION(uid_key_rotate) { PG_RETURN_INT32(rotate_key(PG_GETARG_TEXT_PP(0))); }

} // namespace uidgen::pg
