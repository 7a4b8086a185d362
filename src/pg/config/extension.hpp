// The row of this database's extension in pg_extension, statements on its tables, and how a session learns that what it
// has read of a definition has changed.
#pragma once

#include <initializer_list>

#include "base/base.hpp"

namespace uidgen::pg {

struct Extension {
    Oid oid;    // InvalidOid: the database has no extension uidgen
    Oid schema; // of its tables
    Oid owner;
};
// Reads the row in pg_extension with a new snapshot, under AccessShareLock on that catalog.
Extension find_extension();
// The schema in the row of pg_extension; InvalidOid if the database has no extension uidgen.
inline Oid extension_schema() { return find_extension().schema; }

// The schema of the table uid_key, by the catalogs. Only superusers can rename it. InvalidOid if it does not exist.
Oid schema_of_secrets();

// ---------------------------------------------------------------------------------------------------------
// Statements that run with the rights of a table's owner, in a security-restricted operation. So a role that draws, or
// that owns a sequence, needs no right to write the extension's tables. The search_path is pg_catalog, so no name
// resolves to an object of the caller's.
//
// Statements name tables, and their owner is a superuser. The owner of the extension's schema may be none. If that role
// renames the schema at the right moment, and puts another one in its place, triggers of that role would run as the
// superuser. So hold_names() comes before every such statement.
// ---------------------------------------------------------------------------------------------------------

// The owner of a relation, by the catalogs. Error if there is no such relation.
Oid owner_of(Oid relation);

// An error if a function of SPI has failed. Most failures raise errors of their own. SPI reports the others by a
// negative result.
void check_spi(int result, const char *function, const char *statement);

// Until the end of the transaction the extension's schema keeps its name, and the extension its tables. By a statement
// as the bootstrap superuser (FOR KEY SHARE), it locks the rows of both in pg_namespace and pg_extension, and may wait
// for a rename or DROP EXTENSION, which wait for it. If only superusers can do either, it locks nothing. Error if the
// extension is not there any more: the tables of that schema are then those of its owner. So what a superuser's
// statement uses is looked up after this. Needs an active snapshot. Returns the schema.
Oid hold_names();
// Another session has dropped the extension.
[[noreturn]] void report_dropped();
// The schema's name for use in SQL, by the catalogs; error if it was dropped with the extension.
const char *quoted_schema(Oid schema);

struct Argument {
    Oid type;
    Datum value;
    bool is_null = false;
};
using Arguments = std::initializer_list<Argument>;

// Both run one statement as the current user, and return the number of rows that it wrote or returned. select_rows()
// leaves those in SPI_tuptable, and SPI connected, until finish_statement(). Needs an active snapshot.
uint64 run_statement(const char *statement, Arguments arguments = {});
uint64 select_rows(const char *statement, Arguments arguments = {});
// Ends the connection of SPI that select_rows() has begun.
void finish_statement();

// run_statement() as another role. After an error the end of the (sub)transaction restores the user.
uint64 execute_as(Oid owner, const char *statement, Arguments arguments = {});

// run_statement() as the owner of a table of the extension, after hold_names(), which may lock rows of catalogs to the
// end of the transaction. In the statement %1$s stands for the table.
uint64 write_as_owner(Oid table, const char *statement, Arguments arguments = {});

// Error unless the current user has the rights of the sequence's owner, by the catalogs. Takes no lock.
void check_owner(Oid sequence);

// check_owner() for a sequence that is to be defined. A WARNING if it belongs to another role whose rights the user
// has: it may have been made in order to own what the user creates.
void check_owner_of_new(Oid sequence);

// ---------------------------------------------------------------------------------------------------------
// What a session keeps of definitions is up to date as long as definition_changes stays the same, and what it keeps of
// names, as long as relation_changes does. These are two, because every CREATE, VACUUM or temporary table in the
// database changes relation_changes: with this one alone, each would have sessions read all definitions again.
// ---------------------------------------------------------------------------------------------------------

// Counts the changes of relations that reached this session, from 1; and those of watched sequences.
[[gnu::visibility("hidden")]] extern uint64_t relation_changes;
[[gnu::visibility("hidden")]] extern uint64_t definition_changes;

// From now on a change of the sequence, or of its definition, counts. Touches this session's own memory only.
void watch_sequence(Oid sequence);
// For the invalidation callback of relations: counts a change (InvalidOid: of any) in this session's own memory.
void note_change(Oid relation);
// Has this session read again all that it keeps of names and definitions. Reads nothing itself.
void forget_all_names();

// Calls read(), which reads catalogs and watches what it reads, and again if a change comes meanwhile. Returns what
// definition_changes is then; 0: changes came each time (debug_discard_caches).
template <typename Read> uint64_t read_unchanged(Read read) {
    constexpr int most_rounds = 8;
    for (int round = 0; round < most_rounds; round++) {
        const uint64_t before = relation_changes;
        read();
        if (before == relation_changes)
            return definition_changes;
    }
    return 0;
}

} // namespace uidgen::pg
