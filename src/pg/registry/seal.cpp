#include "seal.hpp"

namespace uidgen::pg {
namespace {

int64_t hash(const FleetState &state, const char *text) {
    uint8 digest[PG_SHA256_DIGEST_LENGTH];
    uint64 bits = 0;
    if (state.key == nullptr)
        ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE), errmsg("the registry has no key for seals"),
                        errhint("Restore the row of uid_secrets.uid_fleet_key, or run "
                                "INSERT INTO uid_secrets.uid_fleet_key DEFAULT VALUES and SELECT uid_fleet_move() on "
                                "each member.")));
    pg_hmac_ctx *context = pg_hmac_create(PG_SHA256);
    const bool made = context != nullptr &&
                      pg_hmac_init(context, reinterpret_cast<const uint8 *>(state.key), strlen(state.key)) >= 0 &&
                      pg_hmac_update(context, reinterpret_cast<const uint8 *>(text), strlen(text)) >= 0 &&
                      pg_hmac_final(context, digest, sizeof(digest)) >= 0;
    pg_hmac_free(context);
    if (!made)
        elog(ERROR, "could not compute an HMAC");
    memcpy(&bits, digest, sizeof(bits));
    return static_cast<int64_t>(pg_ntoh64(bits) >> 1);
}

} // namespace

int64_t seal_of_stamp(const FleetState &state, const core::Epoch &epoch, int64_t serial) {
    return hash(state, psprintf("stamp " UINT64_FORMAT " " INT64_FORMAT " " INT64_FORMAT " " INT64_FORMAT,
                                state.view.fleet, epoch.number, epoch.nonce, serial));
}

int64_t seal_of_grant(const FleetState &state, const core::Layout &layout, const core::Grant &grant) {
    const char *of_layout = psprintf(INT64_FORMAT " " INT64_FORMAT " %d %d %d %d %d %d", layout.epoch_us,
                                     layout.tick_us, layout.time_bits, layout.datacenter_bits, layout.worker_bits,
                                     layout.sequence_bits, layout.sequence_first ? 1 : 0, layout.backup ? 1 : 0);
    return hash(state, psprintf("grant " UINT64_FORMAT " %s " INT64_FORMAT " " INT64_FORMAT " " INT64_FORMAT
                                " " UINT64_FORMAT " " INT64_FORMAT " " INT64_FORMAT " " INT64_FORMAT,
                                state.view.fleet, of_layout, grant.node, grant.from, grant.until, grant.membership,
                                grant.epoch.number, grant.epoch.nonce, grant.serial));
}

int64_t seal_of_last(const FleetState &state, const core::Epoch &epoch, int64_t granted_last_us) {
    return hash(state, psprintf("last " UINT64_FORMAT " " INT64_FORMAT " " INT64_FORMAT " " INT64_FORMAT,
                                state.view.fleet, epoch.number, epoch.nonce, granted_last_us));
}

} // namespace uidgen::pg
