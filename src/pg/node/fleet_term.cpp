#include "fleet_term.hpp"

#include "config/rows.hpp"
#include "memory/memberships.hpp"
#include "sequence/sequence.hpp"

namespace uidgen::pg {

namespace {

int64_t number_in(const core::SequenceState &counter) { return counter.is_called ? counter.last_value : 0; }

} // namespace

// Its lock is released at once, because the number belongs to no transaction.
int64_t agree_on_fleet_term() {
    Relation rel = open_required_table(get_namespace_oid("uid_internal", false), "uid_fleet_term", RowExclusiveLock,
                                       RELKIND_SEQUENCE);
    int64_t known = number_in(page_state(rel).counter);
    if (fleet_raise_term(known) != known) {
        SequencePage page = lock_page_for_writing(rel);
        known = number_in(read_page(page).counter);
        const int64_t seen = fleet_raise_term(known);
        if (seen != known && seen > 0)
            write_page(&page, known = seen);
        unlock_page(&page);
    }
    relation_close(rel, RowExclusiveLock);
    return known;
}

} // namespace uidgen::pg
