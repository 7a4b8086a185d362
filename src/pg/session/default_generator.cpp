#include "default_generator.hpp"

#include "tables/config_table.hpp"
#include "base/errors.hpp"

namespace uidgen::pg {

namespace {

// The default generator as this session knows it. InvalidOid: it must be looked up.
Oid default_sequence = InvalidOid;
// Relcache changes of uid_generator (a new extension, another default) reset default_sequence.
Oid default_table = InvalidOid;
uint64_t default_invalidations = 0;
// Bounds the look-up where every round gets an invalidation (debug_discard_caches).
constexpr int most_rounds = 8;

void look_up_default(Oid function) {
    const Oid schema = schema_of_function(function);
    default_table = extension_table(schema, "uid_generator");
    Oid found = InvalidOid;
    uint64_t seen = 0;
    int rounds = 0;
    do { // an invalidation during the look-up may have come too late for it
        seen = default_invalidations;
        found = read_default_generator(schema);
    } while (seen != default_invalidations && ++rounds < most_rounds);
    default_sequence = found;
}

} // namespace

SessionEntry *open_default(Oid function) {
    check_may_draw();
    if (default_changed_in == transaction_number)
        report_default_changed_here();
    for (int round = 1;; round++) {
        if (default_sequence == InvalidOid)
            look_up_default(function);
        const Oid sequence = default_sequence;
        SessionEntry *e = open_entry(sequence, SlotKind::generator, function);
        // open_entry() may have waited for the lock of uid_default_set(), and has then processed its invalidation.
        if (sequence != default_sequence && round < most_rounds)
            continue;
        last_used.default_generator = sequence == default_sequence ? e : &empty_entry;
        return e;
    }
}

void default_relation_changed(Oid relation) {
    if (relation != default_table && OidIsValid(relation))
        return;
    default_invalidations++;
    default_sequence = InvalidOid;
    last_used.default_generator = &empty_entry;
}

} // namespace uidgen::pg
