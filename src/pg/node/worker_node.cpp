#include "worker_node.hpp"

#include "config/rows.hpp"
#include "memory/generator_state.hpp"
#include "sequence/sequence.hpp"

namespace uidgen::pg {

namespace {

constexpr char sequence_name[] = "worker_node_id_seq";
constexpr char sequence_index_name[] = "worker_node_sequence_idx";
constexpr char generator_index_name[] = "worker_node_generator_idx";

bool has_text(Row row, const char *name, const char *expected) { return strcmp(text_column(row, name), expected) == 0; }

// Whether the row has this server's system identifier, as rows of its copies have.
bool is_of_this_server(Row row) {
    return static_cast<uint64>(DatumGetInt64(column(row, "system_identifier"))) == GetSystemIdentifier();
}

// Whether this server wrote the row where it is now (ServerState::place, which is set once).
bool is_of_this_place(Row row) {
    return fault_is("any_place") ||
           (!is_null(row, "place") && static_cast<uint64>(DatumGetInt64(column(row, "place"))) == server_state->place);
}

// InvalidOid: an application inserted the row.
Oid oid_in(Row row, const char *name) { return DatumGetObjectId(column(row, name)); }

// Whether the row is of another database that there is, by the catalogs. A database that was restored in place of a
// former one takes over the former one's rows.
bool is_of_other_database(Row row) {
    const Oid database = oid_in(row, "database");
    return OidIsValid(database) && database != MyDatabaseId && is_of_this_server(row) &&
           get_database_name(database) != nullptr;
}

// The sequence that the row's oid means, by the catalogs; InvalidOid: none of this database.
Oid sequence_in(Row row) {
    const Oid sequence = oid_in(row, "sequence");
    const bool is_ours = is_of_this_server(row) && oid_in(row, "database") == MyDatabaseId;
    return is_ours && is_relation(sequence) ? sequence : InvalidOid;
}

// The node in the row's columns, without a look at a slot. no_node: the row has none of the layout.
int64_t node_in_row(Row row, const core::Layout &layout) {
    const int64_t worker = DatumGetInt32(column(row, "worker_id"));
    const int64_t datacenter = DatumGetInt32(column(row, "datacenter_id"));
    const auto fits = [](int64_t value, int32_t bits) { return value >= 0 && value <= core::largest(bits); };
    if (is_null(row, "worker_id") || is_null(row, "datacenter_id") || !fits(worker, core::drawn_worker_bits(layout)) ||
        !fits(datacenter, layout.datacenter_bits))
        return core::no_node;
    return core::node_of_fields(layout, {datacenter, worker});
}

// A line of the log, with names from the catalogs. The caller holds RowExclusiveLock on the generator.
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

namespace {

// Calls visit(row) for each row of worker_node whose column has the value, found by the index. Takes AccessShareLock on
// the table for the moment.
template <typename Visit>
void for_each_row_with(Oid schema, const char *index_name, const char *name, Oid type, RegProcedure equal, Datum value,
                       Visit visit) EXCLUDES(page_lock, table_lock, slot_lock, state_lock) {
    Relation rel = open_required_table(schema, node_table_name);
    const Oid index = required_table(schema, index_name, RELKIND_INDEX);
    if (IndexGetRelation(index, true) != RelationGetRelid(rel))
        report_dropped();
    const AttrNumber number = column_number(RelationGetDescr(rel), name, type);
    const ScanKeyData key =
        equals(number, equal, value, TupleDescAttr(RelationGetDescr(rel), number - 1)->attcollation);
    for_each_row(rel, index, &key, visit);
}

} // namespace

const char *stored_name(Oid generator) {
    const int nest_level = NewGUCNestLevel();
    set_config_option("quote_all_identifiers", "off", PGC_USERSET, PGC_S_SESSION, GUC_ACTION_SAVE, true, 0, false);
    const char *name = qualified_name(generator);
    AtEOXact_GUC(true, nest_level);
    return name;
}

// If the row is late or lost, a new number is drawn, which is safe: `sticky` only makes nodes change seldom.
int64_t former_node(Oid schema, Oid generator, const core::Layout &layout, core::Protection protection) {
    const ServerAddress address = address_of_server();
    int64_t node = core::no_node;
    int64_t latest = PG_INT64_MIN;
    const auto consider = [&](Row row) {
        const bool is_own = protection != core::Protection::automatic || is_of_this_place(row);
        const bool counts = is_own && !is_of_other_database(row) && has_text(row, "host_name", address.host) &&
                            has_text(row, "port", address.port);
        const int64_t created = DatumGetTimestampTz(column(row, "created"));
        const int64_t found = node_in_row(row, layout);
        if (!counts || found == core::no_node || created < latest)
            return;
        node = found;
        latest = created;
    };
    for_each_row_with(schema, sequence_index_name, "sequence", OIDOID, F_OIDEQ, ObjectIdGetDatum(generator),
                      [&](Row row) {
                          if (sequence_in(row) == generator)
                              consider(row);
                      });
    if (node == core::no_node)
        for_each_row_with(schema, generator_index_name, "generator", TEXTOID, F_TEXTEQ,
                          CStringGetTextDatum(stored_name(generator)), [&](Row row) {
                              if (!OidIsValid(sequence_in(row)))
                                  consider(row);
                          });
    return node;
}

const char *layout_text(const core::Layout &layout) {
    return psprintf("%d/%d/%d/%d, tick %lld us, epoch %lld us%s%s", layout.time_bits, layout.datacenter_bits,
                    layout.worker_bits, layout.sequence_bits, static_cast<long long>(layout.tick_us),
                    static_cast<long long>(layout.epoch_us), layout.sequence_first ? ", sequence first" : "",
                    layout.backup ? ", backup worker" : "");
}

int64_t draw_node_id(Oid schema) { return draw_number_of(schema, sequence_name); }

namespace {

// The definition's, or else the session's setting; negative: none.
int64_t given_datacenter_id(const GeneratorConfig &config) {
    return config.datacenter_id >= 0 ? config.datacenter_id : settings::datacenter_id;
}

// The one that the nodes follow from, by `config` and the setting; no_datacenter_id: they follow from none.
int64_t datacenter_id_in_use(const GeneratorConfig &config) {
    return core::used_datacenter_id(config.layout, given_datacenter_id(config),
                                    config.worker_policy == WorkerPolicy::fixed);
}

// Draws the id of a row from worker_node's sequence (draw_node_id()), whose number gives the generator's own node,
// unless it is fixed or, if `sticky`, read in the table (former_node()); counts the node in the table of slots
// (take_node()), puts it into a place of the slot (claim_node_place(), fill_node_place()) and logs it. The caller holds
// RowExclusiveLock on the generator. A node that another generator of the layout has is given back, and another id is
// drawn, unless all may be held: one number more than there are others gets past every node that they hold.
NodeDraw *draw_node(Slot *slot, int64_t now_us) EXCLUDES(page_lock, table_lock, slot_lock, state_lock) {
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
        const core::Node node = own_node(config, number);
        NodeDraw *place = claim_node_place(slot);
        const NodeHolders others = take_node(config.layout, node.value);
        const bool is_last = tries > 0 && (others.of_layout >= nodes || tries >= Min(nodes, others.of_layout + 1));
        if (others.of_node == 0 || is_last || fault_is("reuse_worker")) {
            NodeDraw *filled = fill_node_place(slot, place, datacenter_id_in_use(config), node, {id, now_us});
            if (filled == place)
                log_node(slot, node);
            else // another session was first
                give_back_node(config.layout, node.value);
            return filled;
        }
        give_back_node(config.layout, node.value);
        give_up_node_place(place);
    }
}

} // namespace

NodeDraw *own_node_for(Slot *slot, int64_t now_us) {
    NodeDraw *drawn = find_node_draw(slot, datacenter_id_in_use(generator_of(slot).config));
    if (fault_is("keep_number"))
        drawn = own_node_so_far(slot);
    return likely(drawn != nullptr) ? drawn : draw_node(slot, now_us);
}

NodeDraw *own_node_so_far(Slot *slot) {
    NodeDraw *found = find_node_draw(slot, datacenter_id_in_use(generator_of(slot).config));
    for (NodeDraw *draw = first_node_draw(slot); found == nullptr && draw != nullptr; draw = next_node_draw(draw))
        if (draw->drawn_for.load(std::memory_order_acquire) >= core::no_datacenter_id)
            found = draw;
    return found;
}

// Draws the id first, so that after an error the next call tries again: both.
void draw_own_row_again(Slot *slot) {
    if (generator_of(slot).granted_node.load(std::memory_order_relaxed) == core::no_node)
        return;
    NodeDraw *own = own_node_so_far(slot);
    const int64_t id = own != nullptr ? draw_node_id(extension_schema()) : 0;
    if (show_own_node(slot, own, {id, wall_clock_us()}) && own != nullptr)
        log_node(slot, own->node);
}

void draw_row_of_grant(Slot *slot, int64_t shown, int64_t node) {
    const core::Node granted = {node, core::Protection::registry};
    const int64_t id = draw_node_id(extension_schema());
    if (show_granted_node(slot, claim_node_place(slot), shown, granted, {id, wall_clock_us()}))
        log_node(slot, granted);
}

// With a worker id that a person gave, the datacenter id stays over a start, too.
core::NodeSource node_source(const GeneratorConfig &config) {
    const bool worker_is_given = config.worker_policy == WorkerPolicy::fixed;
    const uint64_t life = worker_is_given || fault_is("same_life") ? server_state->place : server_state->life;
    return {.datacenter_id = given_datacenter_id(config),
            .database_hash = core::database_hash(GetSystemIdentifier(), MyDatabaseId, life),
            .worker_is_given = worker_is_given};
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

void warn_of_datacenter_id(Slot *slot, const core::Node &node) {
    GeneratorState &generator = generator_of(slot);
    const core::Layout &layout = generator.config.layout;
    const int64_t given = given_datacenter_id(generator.config);
    if (likely(given < 0 || node.protection != core::Protection::automatic) ||
        generator.warned.load(std::memory_order_relaxed) || generator.warned.exchange(true, std::memory_order_relaxed))
        return;
    ereport(WARNING,
            (errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
             errmsg("datacenter id %lld does not fit the layout of generator \"%s\"", static_cast<long long>(given),
                    get_rel_name(sequence_of(slot))),
             errdetail("The layout holds datacenter ids from 0 to %lld. The generator gets a node as if none were set.",
                       static_cast<long long>(core::largest(core::datacenter_id_bits(layout)))),
             errhint("Use a smaller datacenter id, or a generator with more datacenter_bits.")));
}

void notify_of_datacenter_id(Oid generator, const GeneratorConfig &config) {
    const core::Layout &layout = config.layout;
    const int64_t given = given_datacenter_id(config);
    if ((layout.datacenter_bits > 0 && layout.worker_bits > 0) || config.worker_policy == WorkerPolicy::fixed ||
        !core::holds_datacenter_id(layout, given))
        return;
    const char *name = get_rel_name(generator);
    const auto number = static_cast<long long>(given);
    if (!is_in_fleet())
        ereport(NOTICE, (errmsg("datacenter id %lld is the node in all ids of generator \"%s\"", number, name),
                         errdetail("Other generators of this layout in the same database have the same node, so their "
                                   "ids may collide with these.")));
    else if (layout.datacenter_bits == 0)
        ereport(NOTICE, (errmsg("datacenter id %lld does not choose the node of generator \"%s\"", number, name),
                         errdetail("The layout has no datacenter field, so the registry grants any worker id."),
                         errhint("To choose it, run SELECT uid_generator_alter(%s, worker_policy => 'static', "
                                 "worker_number => %lld).",
                                 quote_literal_cstr(qualified_name(generator)), number)));
}

} // namespace uidgen::pg
