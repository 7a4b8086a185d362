#include "nodes.hpp"

#include "incarnation.hpp"
#include "base/settings.hpp"

namespace uidgen::pg {

core::NodeSource node_source(const GeneratorConfig &config) {
    return {config.datacenter_id >= 0 ? config.datacenter_id : settings::datacenter_id,
            core::database_hash(GetSystemIdentifier(), MyDatabaseId), config.worker_policy == WorkerPolicy::fixed};
}

core::Node node_at(const GeneratorConfig &config, int64_t number, uint64_t position) {
    return core::node_of(config.layout, node_source(config), number, term_of(config, position));
}

const char *protection_name(core::Protection protection) {
    if (protection == core::Protection::registry)
        return "registry";
    return protection == core::Protection::set ? "set" : "auto";
}

bool datacenter_id_is_unused(const GeneratorConfig &config) {
    const core::NodeSource source = node_source(config);
    return source.datacenter_id >= 0 && core::protection_of(config.layout, source) == core::Protection::automatic;
}

void warn_of_datacenter_id(Oid generator, const GeneratorConfig &config) {
    const core::Layout &layout = config.layout;
    const auto most = static_cast<long long>(core::largest(core::datacenter_id_bits(layout)));
    ereport(
        WARNING,
        (errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
         errmsg("datacenter id %lld does not fit the layout of generator \"%s\"",
                static_cast<long long>(node_source(config).datacenter_id), get_rel_name(generator)),
         errdetail("The layout holds datacenter ids from 0 to %lld. The generator draws ids as if none were set, so "
                   "they are only unlikely to collide with those of other databases.",
                   most),
         errhint("Use a smaller datacenter id, or a generator with more datacenter_bits.")));
}

void log_protection(const core::Layout &layout, const core::Node &node) {
    if (!is_first_draw_of_database())
        return;
    const char *database = get_database_name(MyDatabaseId);
    const auto value = static_cast<long long>(node.value);
    if (node.protection == core::Protection::registry)
        ereport(LOG, (errmsg("database \"%s\" draws ids with uidgen's protection \"registry\"", database),
                      errdetail("Its node %lld was granted by the registry of the fleet.", value)));
    else if (node.protection == core::Protection::set)
        ereport(LOG, (errmsg("database \"%s\" draws ids with uidgen's protection \"set\"", database),
                      errdetail("Its node %lld follows from a number that was set.", value)));
    else
        ereport(LOG, (errmsg("database \"%s\" draws ids with uidgen's protection \"auto\"", database),
                      errdetail("Its node %lld comes from a hash of the database. Another database has the same node "
                                "with a probability of 1 in %lld.",
                                value, static_cast<long long>(core::largest(core::drawn_node_bits(layout)) + 1)),
                      errhint("If ids of databases must not collide, give each a number of its own: "
                              "ALTER DATABASE %s SET uidgen.datacenter_id = 1.",
                              quote_identifier(database))));
}

} // namespace uidgen::pg
