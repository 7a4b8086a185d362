// segment_next(): the entry points that draw from segments.

#include "attach.hpp"
#include "reserve.hpp"
#include "segment_names.hpp"
#include "segment_range.hpp"

namespace uidgen::pg {
namespace {

inline int64_t next_value(Attached *a) {
    const Share &share = a->share;
    uint64_t ordinal = 0;
    if (likely(share.level == wanted_durability()) &&
        likely(a->slot->segment.word.take(share.range.begin, share.limit, &ordinal)))
        return share.range.value(ordinal);
    return next_value_slowly(a);
}

} // namespace
} // namespace uidgen::pg

using namespace uidgen::pg;

extern "C" {

UIDGEN_SQL_FUNCTION(segment_next_of);
UIDGEN_SQL_FUNCTION(segment_next_named);

Datum segment_next_of(PG_FUNCTION_ARGS) {
    const Oid sequence = PG_GETARG_OID(0);
    auto *a = static_cast<Attached *>(fcinfo->flinfo->fn_extra);
    if (unlikely(a == nullptr || a->sequence != sequence || !attached(a))) {
        a = attach(sequence, SlotKind::segment, fcinfo->flinfo->fn_oid);
        fcinfo->flinfo->fn_extra = a;
    }
    PG_RETURN_INT64(next_value(a));
}

Datum segment_next_named(PG_FUNCTION_ARGS) { PG_RETURN_INT64(next_value(attach_named(fcinfo, PG_GETARG_TEXT_PP(0)))); }
}
