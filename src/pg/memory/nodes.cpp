#include "nodes.hpp"

#include "base/settings.hpp"

namespace uidgen::pg {
namespace {

// Negative: none.
int64_t given_datacenter_id(const GeneratorConfig &config) {
    return config.datacenter_id >= 0 ? config.datacenter_id : settings::datacenter_id;
}

} // namespace

core::NodeSource node_source(const GeneratorConfig &config) {
    return {given_datacenter_id(config), core::database_hash(GetSystemIdentifier(), MyDatabaseId),
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

bool datacenter_id_is_unused(const GeneratorConfig &config) {
    const core::NodeSource source = {given_datacenter_id(config), 0, config.worker_policy == WorkerPolicy::fixed};
    return source.datacenter_id >= 0 && core::protection_of(config.layout, source) == core::Protection::automatic;
}

int32_t datacenter_id_to_ask_for(const GeneratorConfig &config) {
    const int64_t given = given_datacenter_id(config);
    const bool asks = config.layout.datacenter_bits > 0 && core::holds_datacenter_id(config.layout, given);
    return asks ? static_cast<int32_t>(given) : -1;
}

void warn_of_datacenter_id(Oid generator, const GeneratorConfig &config) {
    const core::Layout &layout = config.layout;
    const auto most = static_cast<long long>(core::largest(core::datacenter_id_bits(layout)));
    ereport(
        WARNING,
        (errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
         errmsg("datacenter id %lld does not fit the layout of generator \"%s\"",
                static_cast<long long>(given_datacenter_id(config)), get_rel_name(generator)),
         settings::registry[0] != '\0'
             ? errdetail("The layout holds datacenter ids from 0 to %lld. The registry grants a node as if none were "
                         "set.",
                         most)
             : errdetail("The layout holds datacenter ids from 0 to %lld. The generator draws ids as if none were "
                         "set, so they are only unlikely to collide with those of other databases.",
                         most),
         errhint("Use a smaller datacenter id, or a generator with more datacenter_bits.")));
}

void note_datacenter_id(Oid generator, const GeneratorConfig &config) {
    const int64_t given = given_datacenter_id(config);
    if (datacenter_id_is_unused(config))
        warn_of_datacenter_id(generator, config);
    else if (given >= 0 && config.layout.datacenter_bits == 0 && config.worker_policy != WorkerPolicy::fixed)
        ereport(NOTICE, (errmsg("datacenter id %lld is the worker id in all ids of generator \"%s\"",
                                static_cast<long long>(given), get_rel_name(generator)),
                         errdetail("The layout has no datacenter field. Other generators of this layout in the same "
                                   "database have the same worker id, so their ids may collide with these.")));
}

} // namespace uidgen::pg
