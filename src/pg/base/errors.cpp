#include "errors.hpp"

#include "time_source.hpp"

namespace uidgen::pg {
namespace {

// For messages only: the name, or the oid of an object that has no name any more.
const char *name_of(Oid relation) {
    const char *name = get_rel_name(relation);
    return name != nullptr ? name : psprintf("%u", relation);
}

const char *show_instant(int64_t unix_us) {
    return pstrdup(timestamptz_to_str(to_timestamptz(unix_us)));
}

const char *layout_problem(core::LayoutFault fault) {
    switch (fault) {
    case core::LayoutFault::tick_length:
        return "A tick is 1 microsecond to 1 hour long.";
    case core::LayoutFault::epoch:
        return "The epoch is an instant from 1970 on.";
    case core::LayoutFault::time_width:
        return "The time field is 1 to 47 bits wide.";
    case core::LayoutFault::field_width:
        return "The datacenter, worker and sequence fields are 0 to 31 bits wide.";
    case core::LayoutFault::too_wide:
        return "The fields together are at most 63 bits wide.";
    case core::LayoutFault::no_backup_bit:
        return "A backup worker needs a worker field of at least 1 bit.";
    case core::LayoutFault::beyond_calendar:
        return "The last tick lies beyond what a timestamp can hold.";
    case core::LayoutFault::none:
        break;
    }
    return "The layout is valid.";
}

} // namespace

const char *qualified_name(Oid relation) {
    const char *name = get_rel_name(relation);
    if (name == nullptr)
        return psprintf("%u", relation);
    return quote_qualified_identifier(get_namespace_name(get_rel_namespace(relation)), name);
}

void report_not_preloaded() {
    const bool may_know = has_privs_of_role(GetUserId(), ROLE_PG_READ_ALL_SETTINGS);
    const char *loaded = may_know ? GetConfigOption("shared_preload_libraries", true, false) : nullptr;
    const bool others = loaded != nullptr && loaded[0] != '\0';
    ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                    errmsg("uidgen must be loaded when the server starts"),
                    errdetail("Ids and segments are handed out from shared memory, which only a library loaded at "
                              "server start can have."),
                    errhint("Set shared_preload_libraries = '%s%suidgen' in postgresql.conf and restart the server.",
                            others ? loaded : "", others ? ", " : "")));
}

void report_in_recovery() {
    ereport(ERROR, (errcode(ERRCODE_READ_ONLY_SQL_TRANSACTION),
                    errmsg("cannot draw a value while the server is in recovery"),
                    errdetail("A standby can't make a range durable in the write-ahead log."),
                    errhint("Draw on the primary. After a promotion this server draws by itself.")));
}

void report_layout(Oid generator, core::LayoutFault fault) {
    ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                    errmsg("the layout of generator \"%s\" is not valid", name_of(generator)),
                    errdetail("%s", layout_problem(fault)),
                    errhint("Give it other fields.")));
}

void report_generator_field(const char *field, const char *value, const char *allowed) {
    ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("%s can't be %s", field, value),
                    errhint("Use %s.", allowed)));
}

void report_altered_here(Oid generator) {
    ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                    errmsg("generator \"%s\" was altered in this transaction", name_of(generator)),
                    errdetail("Ids drawn now could come again if the transaction rolled back."),
                    errhint("Commit first, then draw.")));
}

void report_encode(const core::Layout &layout, const core::Parts &parts, core::EncodeFault fault) {
    const struct {
        const char *name;
        int64_t value;
        int32_t bits;
    } fields[] = {
        {"generated_at", parts.tick, layout.time_bits},
        {"datacenter_id", parts.datacenter, layout.datacenter_bits},
        {"worker_id", parts.worker, layout.worker_bits},
        {"sequence", parts.sequence, layout.sequence_bits},
    };
    const auto &field = fields[static_cast<int>(fault) - static_cast<int>(core::EncodeFault::tick)];
    if (fault == core::EncodeFault::tick)
        ereport(ERROR, (errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
                        errmsg("%s is outside of what the generator's layout can hold", field.name),
                        errdetail("It lies %s the layout's time.", parts.tick < 0 ? "before" : "after"),
                        errhint("Give a time from %s on and before %s.", show_instant(layout.epoch_us),
                                show_instant(core::start_of(layout, core::largest(layout.time_bits) + 1)))));
    ereport(ERROR, (errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
                    errmsg("%s %lld is outside of what the generator's layout can hold", field.name,
                           static_cast<long long>(field.value)),
                    errhint("Give a number from 0 to %lld.", static_cast<long long>(core::largest(field.bits)))));
}

void report_decode(const core::Layout &layout, int64_t id, core::DecodeFault fault) {
    const bool negative = fault == core::DecodeFault::negative;
    ereport(ERROR, (errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
                    errmsg("%lld is not an id of this generator", static_cast<long long>(id)),
                    negative ? errdetail("Ids are never negative.")
                             : errdetail("Ids of the generator's layout have at most %d bits.", core::id_bits(layout)),
                    errhint("Name the generator that made the id as the second argument.")));
}

void report_no_sequence(Oid sequence) {
    ereport(ERROR, (errcode(ERRCODE_UNDEFINED_TABLE), errmsg("sequence with OID %u does not exist", sequence),
                    errhint("It was dropped; name one that exists.")));
}

void report_not_a_sequence(Oid relation) {
    ereport(ERROR, (errcode(ERRCODE_WRONG_OBJECT_TYPE), errmsg("\"%s\" is not a sequence", name_of(relation)),
                    errhint("Name a sequence, or a segment made with segment_create().")));
}

void report_not_a_generator(Oid relation) {
    ereport(ERROR, (errcode(ERRCODE_WRONG_OBJECT_TYPE), errmsg("\"%s\" is not a generator", name_of(relation)),
                    errhint("Make one with uid_generator_create(), or draw from a sequence with segment_next().")));
}

void report_no_slot(int slots) {
    ereport(ERROR, (errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED), errmsg("all %d slots of uidgen are in use", slots),
                    errdetail("Each generator and each segment that an open transaction uses holds one, and so does "
                              "each database that draws ids; a parallel query takes none from others, and segments leave an eighth "
                              "to generators."),
                    errhint("Set uidgen.max_slots in postgresql.conf to a higher number and restart the server.")));
}

void report_end_of_time(Oid generator, const core::Layout &layout) {
    ereport(ERROR,
            (errcode(ERRCODE_SEQUENCE_GENERATOR_LIMIT_EXCEEDED),
             errmsg("the time bits of generator \"%s\" are used up", name_of(generator)),
             errdetail("Its layout ends at %s.",
                       show_instant(core::start_of(layout, core::largest(layout.time_bits) + 1))),
             errhint("Make a generator with a later epoch or more time bits, and draw from that.")));
}

void report_default_changed_here() {
    ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                    errmsg("the default generator was changed in this transaction"),
                    errdetail("Ids drawn now could be above those drawn after a rollback."),
                    errhint("Commit first, then draw.")));
}

void report_clock_back(Oid generator, int64_t back_us) {
    const int64_t resumes_us = wall_clock_us() + back_us;
    ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                    errmsg("the clock went back by %.3f s, and generator \"%s\" does not draw then",
                           static_cast<double>(back_us) / 1e6, name_of(generator)),
                    errdetail("It draws again when the server's clock shows %s.", show_instant(resumes_us)),
                    errhint("Set the server's clock right, or change the generator's when_back or tolerance_ms with "
                            "uid_generator_alter().")));
}

void report_no_worker_left(Oid generator, int64_t terms) {
    ereport(ERROR, (errcode(ERRCODE_SEQUENCE_GENERATOR_LIMIT_EXCEEDED),
                    errmsg("generator \"%s\" has no worker id left that it never used", name_of(generator)),
                    errdetail("The clock went back too far %lld times, and each time took a worker id.",
                              static_cast<long long>(terms)),
                    errhint("Set the server's clock right, or make another generator with uid_generator_create().")));
}

void report_ring_empty(Oid generator, int64_t waited_ms) {
    ereport(ERROR,
            (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
             errmsg("the ring of generator \"%s\" is empty", name_of(generator)),
             errdetail("Ids are drawn faster than they are made, or the refiller is not running. The call waited %lld ms and took no id.",
                       static_cast<long long>(waited_ms)),
             errhint("Call again; or let callers pad the ring: uid_generator_alter(..., when_ring_empty => 'pad').")));
}

void report_clock_behind(Oid generator, int64_t behind_us, int64_t waited_ms) {
    ereport(ERROR,
            (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
             errmsg("generator \"%s\" is ahead of the clock by %.3f s more than it may be", name_of(generator),
                    static_cast<double>(behind_us) / 1e6),
             errdetail("The clock went back, or ids were drawn faster than the layout can hold. The call waited "
                       "%lld ms and took no id.",
                       static_cast<long long>(waited_ms)),
             errhint("Set the server's clock right, or call again in %lld s. uidgen.max_wait bounds the wait.",
                     static_cast<long long>((behind_us + 999999) / 1000000))));
}

void report_clock_unsteady(Oid generator, int64_t shown_us, int64_t tried_ms) {
    ereport(ERROR,
            (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
             errmsg("the server's clock is not steady, so generator \"%s\" cannot issue ids", name_of(generator)),
             errdetail("The clock showed %s, and another time a moment later. The call read it again for %lld ms and took no id.",
                       show_instant(shown_us), static_cast<long long>(tried_ms)),
             errhint("Set the server's clock right, or raise uidgen.max_wait.")));
}

void report_no_id_found(Oid generator, int64_t tried_ms) {
    ereport(ERROR,
            (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
             errmsg("could not draw an id from generator \"%s\" within %lld ms", name_of(generator),
                    static_cast<long long>(tried_ms)),
             errdetail("Other sessions took the ids that this call was about to take, or the server's clock runs too fast."),
             errhint("Call again, or raise uidgen.max_wait.")));
}

} // namespace uidgen::pg
