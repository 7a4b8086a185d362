#include "fleet_term.hpp"

#include "config/rows.hpp"
#include "memory/memberships.hpp"
#include "sequence/sequence.hpp"

namespace uidgen::pg {

// Its lock is released at once, because the number belongs to no transaction.
int64_t agree_on_fleet_term() {
    Relation rel = open_required_table(get_namespace_oid("uid_internal", false), "uid_fleet_term", RowExclusiveLock,
                                       RELKIND_SEQUENCE);
    SequencePage page = lock_page_for_writing(rel);
    const core::SequenceState counter = read_page(page).counter;
    const int64_t known = counter.is_called ? counter.last_value : 0;
    const int64_t seen = fleet_term_seen(known);
    if (seen != known && seen > 0)
        write_page(&page, seen);
    unlock_page(&page);
    relation_close(rel, RowExclusiveLock);
    return seen;
}

} // namespace uidgen::pg
