#include "worker_node.hpp"

#include "config/rows.hpp"
#include "memory/generator_state.hpp"
#include "sequence/sequence.hpp"

namespace uidgen::pg {

namespace {

constexpr char sequence_name[] = "worker_node_id_seq";
constexpr char index_name[] = "worker_node_generator_created_idx";

bool says(Row row, const char *name, const char *expected) { return strcmp(text_column(row, name), expected) == 0; }

bool is_of_this_server(Row row) {
    return static_cast<uint64>(DatumGetInt64(column(row, "system_identifier"))) == GetSystemIdentifier();
}

bool is_of_this_place(Row row) {
    return !is_null(row, "place") && static_cast<uint64>(DatumGetInt64(column(row, "place"))) == server_state->place;
}

// InvalidOid: an application inserted the row.
Oid database_of(Row row) { return DatumGetObjectId(column(row, "database")); }

// Another one that there is. A database that was restored in place of a former one takes over the former one's rows.
bool is_of_other_database(Row row) {
    const Oid database = database_of(row);
    return OidIsValid(database) && database != MyDatabaseId && is_of_this_server(row) &&
           get_database_name(database) != nullptr;
}

// no_node: the row has none of the layout.
int64_t node_in_row(Row row, const core::Layout &layout) {
    const int64_t worker = DatumGetInt32(column(row, "worker_id"));
    const int64_t datacenter = DatumGetInt32(column(row, "datacenter_id"));
    const auto fits = [](int64_t value, int32_t bits) { return value >= 0 && value <= core::largest(bits); };
    if (is_null(row, "worker_id") || is_null(row, "datacenter_id") || !fits(worker, core::drawn_worker_bits(layout)) ||
        !fits(datacenter, layout.datacenter_bits))
        return core::no_node;
    return core::node_of_fields(layout, {datacenter, worker});
}

// With names before the log is written: they may fail, and the caller draws nothing before.
void log_node(const Slot *slot, const core::Node &node) {
    const GeneratorConfig &config = generator_of(slot).config;
    const core::NodeFields fields = core::fields_of_node(config.layout, node.value);
    ereport(LOG, (errmsg("generator \"%s\" in database \"%s\" draws with datacenter id %lld and worker id %lld",
                         get_rel_name(sequence_of(slot)), get_database_name(MyDatabaseId),
                         static_cast<long long>(fields.datacenter), static_cast<long long>(fields.worker)),
                  errdetail("Preset: %s. Layout: %s. Protection: %s.", config.preset, layout_text(config.layout),
                            protection_name(node.protection))));
}

} // namespace

// The node of the latest row that has one. If the row is late or lost, a new number is drawn, which is safe: `sticky`
// only makes nodes change seldom.
int64_t former_node(Oid schema, Oid generator, const core::Layout &layout, core::Protection protection) {
    const ServerAddress address = address_of_server();
    int64_t node = core::no_node;
    int64_t latest = PG_INT64_MIN;
    Relation rel = open_required_table(schema, node_table_name);
    const Oid index = required_table(schema, index_name, RELKIND_INDEX);
    if (IndexGetRelation(index, true) != RelationGetRelid(rel))
        report_dropped();
    const AttrNumber number = column_number(RelationGetDescr(rel), "generator", TEXTOID);
    const ScanKeyData key = equals(number, F_TEXTEQ, CStringGetTextDatum(qualified_name(generator)),
                                   TupleDescAttr(RelationGetDescr(rel), number - 1)->attcollation);
    for_each_row(rel, index, &key, [&](Row row) {
        const bool is_own = protection != core::Protection::automatic || is_of_this_place(row);
        const bool counts = is_own && !is_of_other_database(row) && says(row, "host_name", address.host) &&
                            says(row, "port", address.port);
        const int64_t created = DatumGetTimestampTz(column(row, "created"));
        const int64_t found = node_in_row(row, layout);
        if (!counts || found == core::no_node || created < latest)
            return;
        node = found;
        latest = created;
    });
    return node;
}

NodeHistory node_history(Oid schema, Oid generator, const core::Layout &layout) {
    const char *name = qualified_name(generator);
    NodeHistory history = {};
    StringInfoData rows;
    initStringInfo(&rows);
    for_each_row(open_required_table(schema, node_table_name), InvalidOid, nullptr, [&](Row row) {
        const int64_t node = node_in_row(row, layout);
        if (database_of(row) != MyDatabaseId || !is_of_this_server(row)) {
            history.rows_of_another = history.rows_of_another || OidIsValid(database_of(row));
            return;
        }
        history.rows_of_elsewhere = history.rows_of_elsewhere || !is_of_this_place(row);
        if (node != core::no_node && says(row, "generator", name)) {
            const core::DrawnNode drawn = {DatumGetInt64(column(row, "id")), node};
            appendBinaryStringInfo(&rows, reinterpret_cast<const char *>(&drawn), sizeof(drawn));
        }
    });
    history.rows = reinterpret_cast<const core::DrawnNode *>(rows.data);
    history.count = rows.len / static_cast<int>(sizeof(core::DrawnNode));
    return history;
}

const char *layout_text(const core::Layout &l) {
    return psprintf("%d/%d/%d/%d, tick %lld us, epoch %lld us%s%s", l.time_bits, l.datacenter_bits, l.worker_bits,
                    l.sequence_bits, static_cast<long long>(l.tick_us), static_cast<long long>(l.epoch_us),
                    l.sequence_first ? ", sequence first" : "", l.backup ? ", backup worker" : "");
}

ServerAddress address_of_server() {
    ServerAddress address = {};
    (void)read_host_name(address.host, sizeof(address.host));
    address.host[64] = '\0'; // as wide as the column
    address.port = psprintf("%d", PostPortNumber);
    return address;
}

int64_t draw_node_id(Oid schema) { return draw_number_of(schema, sequence_name); }

int64_t last_node_id(Oid schema) {
    Relation rel = open_required_table(schema, sequence_name, AccessShareLock, RELKIND_SEQUENCE);
    const core::SequenceState counter = page_state(rel).counter;
    relation_close(rel, AccessShareLock);
    return counter.is_called ? counter.last_value : counter.last_value - 1;
}

namespace {

// The draw of a node: the id of its row of worker_node, and what goes into the row.
struct NodeDraw {
    int64_t id;
    int64_t at_us;
    int64_t node;
};

// Relaxed: the row's writer reads them under the state's lock.
void set_draw(GeneratorState *generator, const NodeDraw &draw) REQUIRES(state_lock) {
    generator->worker_draw.store(draw.id, std::memory_order_relaxed);
    generator->drawn_at_us = draw.at_us;
    generator->drawn_node = draw.node;
    generator->row_due.store(0, std::memory_order_relaxed);
    generator->retry_at_us = 0;
}

// Sets the number that the nodes of a generator's slot follow from. If another backend has set one meanwhile, gives the
// node back.
void set_number(Slot *slot, int64_t number, const NodeDraw &draw) {
    GeneratorState &generator = generator_of(slot);
    lock_state();
    const bool is_first = generator.number.load(std::memory_order_relaxed) == no_number;
    if (is_first) {
        set_draw(&generator, draw);
        generator.node_taken = draw.node;
        generator.number.store(number, std::memory_order_release);
    }
    unlock_state();
    if (is_first)
        log_node(slot, own_node(generator.config, number));
    else
        give_back_node(generator.config.layout, draw.node);
}

} // namespace

// A node that another generator of the layout has is given back, unless all may be held: one number more than there are
// others gets past every node that they hold.
void draw_number(Slot *slot, int64_t now_us) {
    const GeneratorConfig &config = generator_of(slot).config;
    const core::NodeSource source = node_source(config);
    const Oid schema = extension_schema();
    int64_t former = core::no_node;
    if (config.worker_policy == WorkerPolicy::sticky)
        former = former_node(schema, sequence_of(slot), config.layout, core::protection_of(config.layout, source));
    const int64_t nodes = core::largest(core::bits_by_number(config.layout, source)) + 1;
    for (int64_t tries = former != core::no_node ? 0 : 1;; tries++) {
        const int64_t id = draw_node_id(schema); // the row's, whatever the number
        const int64_t drawn = config.worker_policy == WorkerPolicy::fixed ? config.worker_number : id;
        const int64_t number = tries == 0 ? core::number_of(config.layout, source, former) : drawn;
        const NodeDraw draw = {id, now_us, own_node(config, number).value};
        const NodeHolders others = take_node(config.layout, draw.node);
        const bool is_last = tries > 0 && (others.of_layout >= nodes || tries >= Min(nodes, others.of_layout + 1));
        if (others.of_node == 0 || is_last) {
            set_number(slot, number, draw);
            break;
        }
        give_back_node(config.layout, draw.node);
    }
    note_generator_in_use(slot);
}

void draw_row_of_node(Slot *slot, const core::Node &node) {
    log_node(slot, node);
    const NodeDraw draw = {draw_node_id(extension_schema()), wall_clock_us(), node.value};
    lock_state();
    set_draw(&generator_of(slot), draw);
    unlock_state();
    note_generator_in_use(slot);
}

namespace {

// Negative: none.
int64_t given_datacenter_id(const GeneratorConfig &config) {
    return config.datacenter_id >= 0 ? config.datacenter_id : settings::datacenter_id;
}

} // namespace

core::NodeSource node_source(const GeneratorConfig &config) {
    return {given_datacenter_id(config), core::database_hash(GetSystemIdentifier(), MyDatabaseId, server_state->place),
            config.worker_policy == WorkerPolicy::fixed};
}

core::Node own_node(const GeneratorConfig &config, int64_t number) {
    return core::node_of(config.layout, node_source(config), number);
}

const char *protection_name(core::Protection protection) {
    if (protection == core::Protection::registry)
        return "registry";
    return protection == core::Protection::set ? "set" : "auto";
}

int32_t datacenter_id_to_ask_for(const GeneratorConfig &config) {
    const int64_t given = given_datacenter_id(config);
    const bool asks = config.layout.datacenter_bits > 0 && core::holds_datacenter_id(config.layout, given);
    return asks ? static_cast<int32_t>(given) : -1;
}

void warn_of_datacenter_id(Slot *slot) {
    GeneratorState &generator = generator_of(slot);
    const core::Layout &layout = generator.config.layout;
    const core::NodeSource source = node_source(generator.config);
    if (likely(source.datacenter_id < 0 || core::protection_of(layout, source) != core::Protection::automatic) ||
        generator.warned.load(std::memory_order_relaxed) || generator.warned.exchange(true, std::memory_order_relaxed))
        return;
    ereport(WARNING,
            (errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
             errmsg("datacenter id %lld does not fit the layout of generator \"%s\"",
                    static_cast<long long>(source.datacenter_id), get_rel_name(sequence_of(slot))),
             errdetail("The layout holds datacenter ids from 0 to %lld. The generator gets a node as if none were set.",
                       static_cast<long long>(core::largest(core::datacenter_id_bits(layout)))),
             errhint("Use a smaller datacenter id, or a generator with more datacenter_bits.")));
}

void notify_of_datacenter_id(Oid generator, const GeneratorConfig &config) {
    const int64_t given = given_datacenter_id(config);
    if (config.layout.datacenter_bits == 0 && config.worker_policy != WorkerPolicy::fixed &&
        core::holds_datacenter_id(config.layout, given))
        ereport(NOTICE, (errmsg("datacenter id %lld is the worker id in all ids of generator \"%s\"",
                                static_cast<long long>(given), get_rel_name(generator)),
                         errdetail("The layout has no datacenter field. Other generators of this layout in the same "
                                   "database have the same worker id, so their ids may collide with these.")));
}

} // namespace uidgen::pg
