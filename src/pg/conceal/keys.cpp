#include "keys.hpp"

#include "base/errors.hpp"
#include "base/relation_events.hpp"
#include "config/rows.hpp"
#include "config/extension.hpp"

namespace uidgen::pg {
namespace {

struct VersionOfKey {
    Oid sequence;
    int32_t requested; // or newest_version
};

struct KeptKey {
    VersionOfKey of;  // must come first: the key of the backend's table
    uint64_t read_at; // valid as long as there was no invalidation since; 0: not complete
    Key key;
};

HTAB *kept = nullptr;
uint64_t invalidations = 1;
Oid key_table = InvalidOid; // uid_key

// Bounds the memory of a session that uses many keys.
constexpr long most_kept = 256;
// Bounds the look-up where every round gets an invalidation (debug_discard_caches).
constexpr int most_rounds = 8;

void forget_all() {
    if (kept == nullptr)
        return;
    HASH_SEQ_STATUS scan;
    hash_seq_init(&scan, kept);
    while (auto *entry = static_cast<KeptKey *>(hash_seq_search(&scan)))
        if (entry->key.aes != nullptr)
            aes_close(entry->key.aes);
    hash_destroy(kept);
    kept = nullptr;
}

// An entry without a key, for one that was not found or is not valid any more.
KeptKey *entry_for(const VersionOfKey &of) {
    if (kept != nullptr && hash_get_num_entries(kept) >= most_kept)
        forget_all();
    if (kept == nullptr) {
        HASHCTL control = {};
        control.keysize = sizeof(VersionOfKey);
        control.entrysize = sizeof(KeptKey);
        control.hcxt = TopMemoryContext;
        kept = hash_create("uidgen keys", 16, &control, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
    }
    bool found = false;
    auto *entry = static_cast<KeptKey *>(hash_search(kept, &of, HASH_ENTER, &found));
    if (found && entry->key.aes != nullptr)
        aes_close(entry->key.aes);
    entry->read_at = 0;
    entry->key.aes = nullptr;
    return entry;
}

[[noreturn]] void report_no_key(const text *name) {
    ereport(ERROR, (errcode(ERRCODE_UNDEFINED_OBJECT), errmsg("key \"%s\" does not exist", shown(name)),
                    errhint("Create it with uid_key_create(), or run SELECT name FROM uid_key_config to list the "
                            "keys.")));
}

// A key that is dropped while this session waits for uid_key is gone with its row.
[[noreturn]] void report_no_secret(const text *name, Oid sequence) {
    if (get_rel_name(sequence) == nullptr)
        report_no_key(name);
    ereport(ERROR,
            (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE), errmsg("key \"%s\" has no secret", shown(name)),
             errdetail("The table uid_secrets.uid_key has no row for the sequence %s.", qualified_name(sequence)),
             errhint("Copy the row of uid_key from the database that the key comes from. While a dump is restored, "
                     "restore the data of uid_key first.")));
}

// A row can come past the trigger of uid_key: with session_replication_role, or while the trigger is disabled.
[[noreturn]] void report_invalid_row(const text *name) {
    ereport(
        ERROR,
        (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
         errmsg("the row of key \"%s\" in uid_key is not valid", shown(name)),
         errdetail("It lacks secrets, or has a width, version_bits or versions that no key can have."),
         errhint(
             "Copy the row of uid_key from the database that the key comes from, or drop the sequence of the key.")));
}

void check_may_use(const text *name, Oid sequence) {
    if (pg_class_aclcheck(sequence, GetUserId(), ACL_USAGE) != ACLCHECK_OK)
        ereport(ERROR,
                (errcode(ERRCODE_INSUFFICIENT_PRIVILEGE), errmsg("permission denied for key \"%s\"", shown(name)),
                 errhint("Run GRANT USAGE ON SEQUENCE %s TO %s as the owner of the key.", qualified_name(sequence),
                         quote_identifier(GetUserNameFromId(GetUserId(), false)))));
}

// A key's row, with the secret of one version; all 0 without one. Error if it is not valid.
struct KeyRow {
    core::KeyFormat format;
    int32_t versions;
    int32_t version; // 0: the key has no such version, or its row is not valid
    uint8_t secret[aes_key_bytes];
};

// The secrets of all versions end the text, as hexadecimal digits.
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

KeyRow read_key_row(Oid sequence, int32_t version) {
    const Row row = find_row(schema_of_keys(), "uid_key", "sequence", F_OIDEQ, ObjectIdGetDatum(sequence));
    if (row.tuple == nullptr)
        return {};
    KeyRow key = {};
    key.format = {DatumGetInt32(column(row, "width")), DatumGetInt32(column(row, "version_bits"))};
    key.versions = DatumGetInt32(column(row, "versions"));
    check_column_type(row.desc, "secrets", TEXTOID);
    if (is_null(row, "secrets") || !core::is_valid(key.format) || key.versions > core::most_versions(key.format))
        return key;
    text *secrets = DatumGetTextPP(column(row, "secrets"));
    const int32_t wanted = version == 0 ? key.versions : version;
    if (read_secret(secrets, key.versions, wanted, key.secret))
        key.version = wanted;
    // A text that is stored compressed or out of line has a copy of its own.
    explicit_bzero(secrets, VARSIZE_ANY(secrets));
    explicit_bzero(row.tuple->t_data, row.tuple->t_len);
    return key;
}

void relation_changed(Oid relation) {
    if (relation != key_table && OidIsValid(relation))
        return;
    invalidations++;
    forget_all();
}

void receive_changes() {
    static bool receives = false;
    if (!receives)
        on_relation_changed(relation_changed);
    receives = true;
}

KeyRow read_row(const VersionOfKey &of, uint64_t *read_at) {
    receive_changes();
    key_table = required_table(schema_of_keys(), "uid_key");
    for (int round = 1;; round++) {
        *read_at = invalidations;
        const KeyRow row = read_key_row(of.sequence, of.requested);
        if (*read_at == invalidations || round == most_rounds)
            return row;
    }
}

const Key &load(const text *name, const VersionOfKey &of) {
    uint64_t read_at = 0;
    KeyRow row = read_row(of, &read_at);
    if (row.versions == 0)
        report_no_secret(name, of.sequence);
    if (row.version == 0)
        report_invalid_row(name);
    KeptKey *entry = entry_for(of);
    AesKey *aes = aes_open(row.secret);
    entry->key.aes = aes;
    explicit_bzero(row.secret, sizeof(row.secret));
    const auto cipher = [aes](const core::Block &text) { return aes_encrypt(aes, text); };
    entry->key = {row.format, row.version, row.versions, core::permutation_of(row.format, cipher), aes};
    entry->read_at = read_at;
    return entry->key;
}

} // namespace

int32_t versions_of_key(const text *name, Oid sequence) {
    const int32_t versions = read_key_row(sequence, newest_version).versions;
    if (versions == 0)
        report_no_secret(name, sequence);
    return versions;
}

Oid key_named(const text *name) {
    const Oid schema = get_namespace_oid("uid_keys", true);
    const Oid sequence = OidIsValid(schema) && VARSIZE_ANY_EXHDR(name) < NAMEDATALEN
                             ? get_relname_relid(text_to_cstring(name), schema)
                             : InvalidOid;
    if (!OidIsValid(sequence))
        report_no_key(name);
    return sequence;
}

const Key &open_key(const text *name, int32_t version) {
    const VersionOfKey of = {key_named(name), version};
    check_may_use(name, of.sequence);
    const auto *entry =
        kept == nullptr ? nullptr : static_cast<const KeptKey *>(hash_search(kept, &of, HASH_FIND, nullptr));
    if (entry != nullptr && entry->read_at == invalidations)
        return entry->key;
    return load(name, of);
}

} // namespace uidgen::pg
