// uid_slots(): what shared memory knows of this database's generators and segments.

#include "reserve.hpp"
#include "slots.hpp"
#include "time_source.hpp"

namespace uidgen::pg {
namespace {

struct Listing {
    Oid *sequences;
    int used;
    int capacity;
};

void list_sequence(Slot *slot, void *arg) {
    auto *listing = static_cast<Listing *>(arg);
    if (slot->key.database == MyDatabaseId && OidIsValid(slot->key.sequence) && listing->used < listing->capacity)
        listing->sequences[listing->used++] = slot->key.sequence;
}

void count_slot(Slot *, void *arg) { ++*static_cast<int *>(arg); }

Listing list_sequences() {
    Listing listing = {};
    slots_visit(count_slot, &listing.capacity);
    listing.sequences = static_cast<Oid *>(palloc(sizeof(Oid) * static_cast<Size>(listing.capacity + 1)));
    slots_visit(list_sequence, &listing);
    return listing;
}

enum Column { col_sequence, col_kind, col_worker, col_last, col_until, col_first, col_length, col_left,
              col_records, col_flush_waits, col_standby_waits, col_clock_waits, columns };

void fill_generator(const GeneratorState &generator, Datum *values, bool *nulls) {
    const core::Layout &layout = generator.config.layout;
    const auto instant = [&layout](uint64_t position) {
        return TimestampTzGetDatum(
            to_timestamptz(core::start_of(layout, static_cast<int64_t>(position >> layout.sequence_bits))));
    };
    const int32_t worker = generator.worker_id.load(std::memory_order_acquire);
    nulls[col_worker] = worker == no_worker;
    values[col_worker] = Int32GetDatum(worker);
    values[col_last] = instant(generator.ticks.last());
    values[col_until] = instant(generator.ticks.written_range().until);
    nulls[col_first] = nulls[col_length] = nulls[col_left] = true;
}

// The ranges are guarded by the page, so the sequence is opened for them.
void fill_segment(const Slot *slot, Relation rel, Datum *values, bool *nulls) {
    core::Range range = {};
    SequencePage page = lock_page_for_reading(rel);
    const bool in_use = slot->segment.word.current(&range);
    const uint64_t next = slot->segment.word.next();
    unlock_page(&page);
    nulls[col_worker] = nulls[col_last] = nulls[col_until] = true;
    nulls[col_first] = nulls[col_length] = nulls[col_left] = !in_use;
    values[col_first] = Int64GetDatum(range.first);
    values[col_length] = Int64GetDatum(static_cast<int64_t>(range.end - range.begin));
    values[col_left] = Int64GetDatum(static_cast<int64_t>(range.end > next ? range.end - next : 0));
}

void add_row(ReturnSetInfo *result, Oid sequence) {
    Relation rel = try_relation_open(sequence, AccessShareLock); // keeps the slot while it is read
    if (rel == nullptr)
        return;
    const Slot *slot = slot_find({MyDatabaseId, sequence});
    if (slot != nullptr && rel->rd_rel->relkind == RELKIND_SEQUENCE) {
        Datum values[columns] = {};
        bool nulls[columns] = {};
        values[col_sequence] = ObjectIdGetDatum(sequence);
        const bool is_generator = slot->kind == SlotKind::generator;
        values[col_kind] = CStringGetTextDatum(is_generator ? "generator" : "segment");
        const auto count = [](const std::atomic<uint64_t> &counter) {
            return Int64GetDatum(static_cast<int64_t>(counter.load(std::memory_order_relaxed)));
        };
        values[col_records] = count(slot->records);
        values[col_flush_waits] = count(slot->flush_waits);
        values[col_standby_waits] = count(slot->standby_waits);
        values[col_clock_waits] = count(slot->clock_waits);
        if (is_generator)
            fill_generator(slot->generator, values, nulls);
        else
            fill_segment(slot, rel, values, nulls);
        tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
    }
    relation_close(rel, AccessShareLock);
}

} // namespace
} // namespace uidgen::pg

using namespace uidgen::pg;

extern "C" {

UIDGEN_SQL_FUNCTION(uid_slots);

Datum uid_slots(PG_FUNCTION_ARGS) {
    InitMaterializedSRF(fcinfo, 0);
    if (!slots_exist())
        return static_cast<Datum>(0);
    const Listing listing = list_sequences();
    for (int i = 0; i < listing.used; i++)
        add_row(reinterpret_cast<ReturnSetInfo *>(fcinfo->resultinfo), listing.sequences[i]);
    return static_cast<Datum>(0);
}
}
