// segment_next(): the entry points that draw from segments.

#include "attach.hpp"
#include "reserve.hpp"
#include "segment_names.hpp"
#include "segment_range.hpp"

namespace uidgen::pg {
namespace {

inline bool take_from_share(const Attached *a, int64_t *value) {
    const Share &share = a->share;
    uint64_t ordinal = 0;
    if (unlikely(!a->slot->segment.word.take(share.range.begin, share.limit, &ordinal)))
        return false;
    *value = share.range.value(ordinal);
    return true;
}

[[gnu::noinline]] Datum next_value(Attached *a) {
    int64_t value = 0;
    if (a->share.level != wanted_durability() || !take_from_share(a, &value))
        value = next_value_slowly(a);
    return Int64GetDatum(value);
}

} // namespace
} // namespace uidgen::pg

using namespace uidgen::pg;

extern "C" {

UIDGEN_SQL_FUNCTION(segment_next_of);
UIDGEN_SQL_FUNCTION(segment_next_named);

// The common case in few instructions: the caller's rights were checked in this transaction, and no standby is
// awaited, so a share of any durability will do. GetUserId() comes first: nothing else is live across it.
Datum segment_next_of(PG_FUNCTION_ARGS) {
    const Oid role = GetUserId();
    const Oid sequence = PG_GETARG_OID(0);
    auto *a = static_cast<Attached *>(fcinfo->flinfo->fn_extra); // of the previous call by this expression
    int64_t value;
    if (likely(a != nullptr && a->sequence == sequence) && attached(a, role) &&
        likely(surely_no_standby_is_awaited()) && likely(take_from_share(a, &value)))
        PG_RETURN_INT64(value);
    a = attach(sequence, SlotKind::segment, fcinfo->flinfo->fn_oid);
    fcinfo->flinfo->fn_extra = a;
    return next_value(a);
}

Datum segment_next_named(PG_FUNCTION_ARGS) { return next_value(attach_named(fcinfo, PG_GETARG_TEXT_PP(0))); }
}
