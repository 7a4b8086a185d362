#include "fleet_block.hpp"

#include "segment/blocks.hpp"
#include "segment/draw.hpp"
#include "config/definition.hpp"

namespace uidgen::pg {
namespace {

// Answers with the segment's increment, unless it is refused that members are given its values.
void describe_segment(Call *call, const core::SequenceRule &rule) {
    const FleetRequest &request = call->request;
    const char *name = request.segment;
    const char *sequence = qualified_name(call->sequence);
    if (segment_config(call->entry->slot).is_attached())
        return refuse(call, core::Refusal::attached,
                      psprintf("segment \"%s\" at the registry is itself attached", name));
    if (rule.cycle || (rule.increment > 0 ? rule.min_value < 0 : rule.max_value > 0))
        return refuse(call, core::Refusal::not_shareable,
                      psprintf("segment \"%s\" starts over at its end, or has positive and negative values", name),
                      psprintf("Run ALTER SEQUENCE %s NO CYCLE %s 0 on the registry.", sequence,
                               rule.increment > 0 ? "MINVALUE" : "MAXVALUE"));
    call->answer.increment = rule.increment;
    if (request.increment != 0 && request.increment != rule.increment)
        refuse(call, core::Refusal::increment_differs,
               psprintf("the increment of segment \"%s\" is " INT64_FORMAT " at the registry, and was " INT64_FORMAT,
                        name, rule.increment, request.increment));
}

// Error if the standby lacks a block for over a second, so that calls that are given up do not use up one each.
core::SequenceState read_counter(const SessionEntry *e) {
    Relation rel = open_sequence(e);
    SequencePage page = lock_page_for_reading(rel);
    const PageState state = read_page(page);
    const int64_t block_at_us = segment_of(e->slot).block_at_us;
    unlock_page(&page);
    relation_close(rel, NoLock);
    if (!is_durable(state.lsn, wanted_durability()) && monotonic_us() - block_at_us > us_per_second)
        report_not_durable();
    return state.counter;
}

void refuse_unknown(Call *call) {
    const FleetRequest &r = call->request;
    const char *message =
        psprintf("value " INT64_FORMAT " of segment \"%s\" lies too far beyond all that the registry has given",
                 r.shown, r.segment);
    ereport(LOG, (errmsg("%s", message),
                  errdetail("Database \"%s\" on %s:%s, version %s, shows it as the last value that it was given.",
                            r.database, r.host, r.port, r.version)));
    refuse(call, core::Refusal::unknown_value, message,
           psprintf("If the member had that value, run SELECT segment_set(%s, value) on the registry, with a value "
                    "above all that members had.",
                    quote_literal_cstr(r.segment)));
}

} // namespace

void open_segment(const Registry &registry, Call *call) {
    const char *name = call->request.segment;
    if (is_refused(*call) || name == nullptr || call->request.generator.incarnation != 0)
        return;
    call->sequence = find_segment(cstring_to_text(name));
    if (!OidIsValid(call->sequence) ||
        pg_class_aclcheck(call->sequence, registry.role, ACL_USAGE | ACL_UPDATE) != ACLCHECK_OK)
        return;
    if (ConditionalLockRelationOid(call->sequence, RowExclusiveLock))
        call->entry = open_entry(call->sequence, SlotKind::segment);
    else
        refuse(call, core::Refusal::being_altered, psprintf("segment \"%s\" is being altered at the registry", name));
}

void give_block(Call *call) {
    const FleetRequest &request = call->request;
    FleetAnswer *answer = &call->answer;
    if (!OidIsValid(call->sequence))
        return refuse(call, core::Refusal::no_segment,
                      psprintf("segment \"%s\" does not exist at the registry", request.segment),
                      psprintf("Run SELECT segment_create(%s) on the registry.", quote_literal_cstr(request.segment)));
    if (call->entry == nullptr) // so it is not locked, and may be dropped by now
        return refuse(
            call, core::Refusal::no_privilege,
            psprintf("this server's login may not use segment \"%s\"", request.segment),
            psprintf("Run GRANT USAGE ON SEQUENCE %s on the registry, to the role that uidgen.registry names.",
                     qualified_name(call->sequence)));
    const core::SequenceRule rule = sequence_rule(call->sequence);
    describe_segment(call, rule);
    if (is_refused(*call))
        return;
    answer->is_synchronous = standbys_are_awaited();
    answer->count = 0;
    if (request.count == 0)
        return;
    const core::StepBounds bounds = bounds_of(call->entry, rule);
    const core::SequenceState counter = read_counter(call->entry);
    const bool up = rule.increment > 0;
    const int64_t known = read_given(request.segment, up ? PG_INT64_MIN : PG_INT64_MAX);
    const bool is_known = up ? request.shown <= known : request.shown >= known;
    if (!is_known && !is_credible(counter, rule, bounds, request.shown))
        return refuse_unknown(call);
    const core::PlannedRange block =
        reserve_for_member(call->entry, Min(request.count, bounds.most), is_known ? known : request.shown);
    if (block.count == 0)
        return refuse(call, core::Refusal::used_up,
                      psprintf("segment \"%s\" has no value left at the registry", request.segment),
                      psprintf("Run ALTER SEQUENCE %s %s on the registry.", qualified_name(call->sequence),
                               up ? "MAXVALUE with a larger number" : "MINVALUE with a smaller number"));
    put_given(request.segment, block.last);
    answer->count = static_cast<int64_t>(block.count);
    answer->first = block.first;
}

} // namespace uidgen::pg
