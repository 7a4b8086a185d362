#include "worker_node.hpp"

#include <unistd.h>

#include "config_table.hpp"
#include "base/errors.hpp"
#include "sequence_page.hpp"
#include "base/settings.hpp"
#include "base/time_source.hpp"

namespace uidgen::pg {
namespace {

constexpr char sequence_name[] = "worker_node_id_seq";

// The columns of worker_node that identify a row's generator and server, as the install script makes them.
enum NodeColumn : AttrNumber { node_host_name = 2, node_port, node_created = 7, node_generator, node_worker_id };

bool is_text(HeapTuple tuple, TupleDesc desc, AttrNumber column, const char *expected) {
    bool is_null = false;
    const Datum value = heap_getattr(tuple, column, desc, &is_null);
    return !is_null && strcmp(TextDatumGetCString(value), expected) == 0;
}

// The worker id of the generator's latest row from this host and port; no_worker if there is none. Rows may be late or
// lost. Then a new number is drawn, which is safe: `sticky` only makes numbers change seldom.
int32_t former_worker_id(Oid schema, Oid generator) {
    const ServerAddress address = address_of_server();
    const char *name = qualified_name(generator);
    Relation rel = table_open(required_table(schema, node_table_name), AccessShareLock);
    const TupleDesc desc = RelationGetDescr(rel);
    SysScanDesc scan = systable_beginscan(rel, InvalidOid, false, nullptr, 0, nullptr);
    TimestampTz latest = PG_INT64_MIN;
    int32_t worker_id = no_worker;
    HeapTuple tuple;
    while (HeapTupleIsValid(tuple = systable_getnext(scan))) {
        bool is_null = false;
        bool has_no_worker = false;
        const TimestampTz created = DatumGetTimestampTz(heap_getattr(tuple, node_created, desc, &is_null));
        const Datum number = heap_getattr(tuple, node_worker_id, desc, &has_no_worker);
        if (created >= latest && !has_no_worker && is_text(tuple, desc, node_host_name, address.host) &&
            is_text(tuple, desc, node_port, address.port) && is_text(tuple, desc, node_generator, name)) {
            latest = created;
            worker_id = DatumGetInt32(number);
        }
    }
    systable_endscan(scan);
    table_close(rel, AccessShareLock);
    return worker_id;
}

} // namespace

ServerAddress address_of_server() {
    ServerAddress address = {};
    gethostname(address.host, sizeof(address.host) - 1);
    address.host[64] = '\0'; // as wide as the column
    address.port = psprintf("%d", PostPortNumber);
    return address;
}

// The sequence's lock is released at once, because the draw belongs to no transaction.
int64_t draw_node_id(Oid schema) {
    const Oid sequence = extension_table(schema, sequence_name);
    if (!OidIsValid(sequence))
        ereport(ERROR, (errcode(ERRCODE_UNDEFINED_TABLE), errmsg("sequence \"%s\" does not exist", sequence_name),
                        errhint("Run DROP EXTENSION uidgen and CREATE EXTENSION uidgen.")));
    Relation rel = relation_open(sequence, RowExclusiveLock);
    const core::SequenceRule rule = {1, 1, PG_INT64_MAX, true};
    SequencePage page = lock_page_for_writing(rel);
    const core::PlannedRange draw = core::plan_range(read_page(page).counter, rule, 1);
    write_page(&page, draw.last);
    unlock_page(&page);
    relation_close(rel, RowExclusiveLock);
    return draw.first;
}

void draw_worker_id(Slot *slot, Oid function) {
    const GeneratorConfig &config = slot->generator.config;
    const int64_t now_us = wall_clock_us();
    const Oid schema = schema_of_function(function);
    const int64_t mask = core::largest(core::drawn_worker_bits(config.layout));
    int32_t former = no_worker;
    if (config.worker_policy == WorkerPolicy::sticky)
        former = former_worker_id(schema, slot->key.sequence);
    // With one try more than there are slots, the draws get past every number that a live generator can hold.
    const int64_t tries = Min(mask + 1, static_cast<int64_t>(settings::max_slots) + 1);
    for (int64_t i = 1;; i++) {
        const int64_t draw = draw_node_id(schema); // the row's id, whatever the worker id
        if (config.worker_policy == WorkerPolicy::fixed) {
            slot_set_worker(slot, config.worker_number, draw, now_us, true);
            break;
        }
        if (former != no_worker && former <= mask && slot_set_worker(slot, former, draw, now_us, false))
            break;
        if (slot_set_worker(slot, static_cast<int32_t>(draw & mask), draw, now_us, i >= tries))
            break;
    }
}

void draw_row_of_term(Slot *slot, Oid function) {
    slot_begin_term(slot, draw_node_id(schema_of_function(function)), wall_clock_us());
}

} // namespace uidgen::pg
