#include "sequence.hpp"

#include "base/errors.hpp"

namespace uidgen::pg {

void check_is_sequence(Oid relation) {
    const char kind = get_rel_relkind(relation);
    if (kind == '\0')
        report_no_sequence(relation);
    if (kind != RELKIND_SEQUENCE)
        report_not_a_sequence(relation);
}

void lock_sequence(Oid sequence, LOCKMODE mode) {
    LockRelationOid(sequence, mode);
    if (get_rel_relkind(sequence) == '\0')
        report_no_sequence(sequence);
}

core::SequenceRule sequence_rule(Oid sequence) {
    HeapTuple tuple = SearchSysCache1(SEQRELID, ObjectIdGetDatum(sequence));
    if (!HeapTupleIsValid(tuple))
        elog(ERROR, "cache lookup failed for sequence %u", sequence);
    const auto *definition = reinterpret_cast<Form_pg_sequence>(GETSTRUCT(tuple));
    const core::SequenceRule rule = {definition->seqincrement, definition->seqmin, definition->seqmax,
                                     definition->seqcycle};
    ReleaseSysCache(tuple);
    return rule;
}

bool is_lease_sequence(Oid sequence) {
    const core::SequenceRule rule = sequence_rule(sequence);
    return rule.increment == PG_INT64_MAX && rule.min_value == 1 && rule.max_value == PG_INT64_MAX && !rule.cycle;
}

void check_lease_sequence(Oid sequence) {
    if (!is_lease_sequence(sequence))
        ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                        errmsg("sequence \"%s\" cannot hold the leases of a generator", get_rel_name(sequence)),
                        errdetail("A call of nextval() could move its counter."),
                        errhint("Run ALTER SEQUENCE %s INCREMENT 9223372036854775807 MINVALUE 1 NO MAXVALUE NO CYCLE.",
                                qualified_name(sequence))));
}

void report_lease_sequence(Oid sequence) {
    ereport(ERROR, (errcode(ERRCODE_WRONG_OBJECT_TYPE),
                    errmsg("sequence \"%s\" holds the leases of a generator", get_rel_name(sequence)),
                    errhint("Draw from it with uid_next(), or raise it with uid_generator_raise().")));
}

} // namespace uidgen::pg
