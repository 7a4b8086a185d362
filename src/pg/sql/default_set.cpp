// uid_default_set(): chooses the generator behind uid_next().
//
// A new default starts above every id that the former one can have issued, and that one has started above those of its
// own predecessor. So the ids of uid_next() rise, whichever generators make them.

#include "session/define.hpp"
#include "session/slot_life.hpp"
#include "sequence/sequence.hpp"

namespace uidgen::pg {
namespace {

// By the owners in the catalogs, for the current user.
void check_may_choose_default() {
    if (!has_privs_of_role(GetUserId(), find_extension().owner) &&
        !has_privs_of_role(GetUserId(), ROLE_PG_DATABASE_OWNER))
        ereport(ERROR,
                (errcode(ERRCODE_INSUFFICIENT_PRIVILEGE), errmsg("permission denied to choose the default generator"),
                 errdetail("Only the owner of the database or of the extension may choose it.")));
}

// The largest id that a generator can have issued; -1: none. By its page and its slot (high_water_mark_of()), under
// lock_generator(), or it may rise at once.
int64_t largest_id_of(Oid generator) {
    const int64_t mark = high_water_mark_of(generator);
    if (mark <= core::no_lease_yet)
        return -1;
    const GeneratorConfig config = read_generator_config(generator);
    return core::largest_leased_id(config.layout, config.policy, mark);
}

// The largest id of lost generators that lies ahead of the clock; -1: none. A default that was dropped is among them.
// Read from the slots, each under its lock (find_tick_to_pass()), after note_all_lost(). Needs no lock on the
// generator. The first draw passes those ids, too, but a mark outlives a restart.
int64_t largest_lost_id(Oid generator, const GeneratorConfig &config) {
    note_all_lost();
    const int64_t tick = find_tick_to_pass(generator, config);
    return tick >= core::tick_at(config.layout, wall_clock_us()) ? core::first_id_of(config.layout, tick + 1) - 1 : -1;
}

// Raises the generator's high-water mark above the former default's ids and those of lost generators. Under
// lock_generator(). Writes the page, durably (raise_above_id()).
void start_above(Oid generator, int64_t former_id) {
    const GeneratorConfig config = read_generator_config(generator);
    const int64_t highest = Max(former_id, largest_lost_id(generator, config));
    if (highest >= 0 && !fault_is("below_former"))
        raise_above_id(generator, config, highest,
                       "Use a layout with more bits, an earlier epoch or shorter ticks, because a default starts above "
                       "every id of the former one. To draw from this generator in some tables only, pass it to "
                       "uid_adopt().");
}

// Locks both to the end of the transaction (lock_sequences(), lock_generator()), and raises the generator's high-water
// mark above the former default's ids (start_above()). Under lock_choice_of_default(). Returns the former default,
// which is `chosen` unless another session has dropped it meanwhile.
Oid lock_and_raise(Oid generator, Oid chosen) {
    // Both at once: no session that draws from the former one waits for a transaction that draws from the new one.
    if (OidIsValid(chosen))
        lock_sequences({generator, chosen}, excludes_draws);
    lock_generator(generator);
    const bool is_there = read_definition(chosen, core::DefinitionKind::generator).generator.is_default != 0;
    start_above(generator, is_there ? largest_id_of(chosen) : -1);
    return is_there ? chosen : InvalidOid;
}

// Raises a WARNING if roles that may draw from the former default may not draw from this one: by the catalogs.
void warn_of_roles(Oid former, Oid generator) {
    const char *roles = OidIsValid(former) ? roles_that_lack(former, generator, draw_privileges) : nullptr;
    if (roles != nullptr)
        ereport(WARNING, (errcode(ERRCODE_WARNING_PRIVILEGE_NOT_GRANTED),
                          errmsg("roles that could draw from the former default generator cannot draw from \"%s\"",
                                 get_rel_name(generator)),
                          errhint("The owner of the sequence can run GRANT USAGE ON SEQUENCE %s TO %s.",
                                  qualified_name(generator), roles)));
}

} // namespace

// Locks the choice, then both generators; raises the next one's high-water mark above the ids of the former one and of
// lost generators (lock_and_raise()), stores both labels (move_default(), set_is_default()), and may warn
// (warn_of_roles()).
UIDGEN_SQL_FUNCTION(uid_default_set) {
    const Oid generator = PG_GETARG_OID(0);
    check_may_choose_default();
    read_generator_config(generator); // raises an error if it is no generator
    if (RecoveryInProgress())
        report_in_recovery();
    lock_choice_of_default(LockWaitBlock);       // one choice at a time
    const Oid chosen = find_default_generator(); // none if it was dropped
    if (chosen == generator)
        PG_RETURN_VOID();
    const Oid former = lock_and_raise(generator, chosen);
    move_default(former);
    set_is_default(generator, true);
    warn_of_roles(former, generator);
    PG_RETURN_VOID();
}

} // namespace uidgen::pg
