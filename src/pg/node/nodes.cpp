#include "nodes.hpp"

#include "base/settings.hpp"

namespace uidgen::pg {
namespace {

// Negative: none.
int64_t given_datacenter_id(const GeneratorConfig &config) {
    return config.datacenter_id >= 0 ? config.datacenter_id : settings::datacenter_id;
}

// Under the lock of the state, which excludes that a slot is made or reset.
bool node_is_taken(const Slot *of, int64_t node, int64_t *others) {
    bool taken = false;
    *others = 0;
    for (const Slot *other = first_slot(SlotKind::generator); other != nullptr; other = next_slot(other))
        if (other != of && other->phase == SlotPhase::ready &&
            other->generator.number.load(std::memory_order_relaxed) != no_number &&
            core::same_layout(other->generator.config.layout, of->generator.config.layout)) {
            ++*others;
            taken = taken || other->generator.drawn_node == node;
        }
    return taken;
}

// Relaxed: the row's writer reads them under the state's lock.
void set_draw(GeneratorState *generator, const NodeDraw &draw) {
    generator->worker_draw.store(draw.id, std::memory_order_relaxed);
    generator->drawn_at_us = draw.at_us;
    generator->drawn_node = draw.node;
    generator->row_owed.store(true, std::memory_order_relaxed);
    generator->row_due.store(0, std::memory_order_relaxed);
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

bool slot_set_number(Slot *slot, int64_t number, const NodeDraw &draw, bool insist, int64_t *others) {
    GeneratorState &generator = slot->generator;
    lock_state(LW_EXCLUSIVE);
    const bool set_already = generator.number.load(std::memory_order_relaxed) != no_number;
    const bool free = !set_already && (!node_is_taken(slot, draw.node, others) || insist);
    if (free) {
        set_draw(&generator, draw);
        generator.number.store(number, std::memory_order_release);
    }
    unlock_state();
    return set_already || free;
}

void slot_set_node(Slot *slot, const NodeDraw &draw) {
    lock_state(LW_EXCLUSIVE);
    set_draw(&slot->generator, draw);
    unlock_state();
}

} // namespace uidgen::pg
