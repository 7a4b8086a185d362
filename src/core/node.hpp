// Which node the ids of a generator have (layout.hpp): a pure function of what a person gave and what was drawn.
//
// A *number* is drawn for a generator once in an incarnation for each datacenter id that its sessions have: the next
// value of a sequence of its database, or, with worker_policy static, the worker id that was given. The datacenter id
// is a number that a person gave to a server, to a database or to a generator. What the node is made of:
//
//   datacenter id      | layout                   | datacenter field | worker field
//   fits the field     | has a datacenter field   | the id           | the number
//   fits the worker id | has no datacenter field  | -                | the id (static: the number)
//   none, or too large | any                      | both fields: hash of the database + the number (static: see 3)
//
// The hash is of the database and of random bits of the incarnation, so every copy of the server has another one. With
// worker_policy static it is of the server's place instead, so that it stays over a start.
//
//   1. Databases with different ids that fit have different nodes, whatever is drawn: `set`.
//   2. All other nodes are only unlikely to meet: `automatic`. Two databases start at the same node with a probability
//      of 1 in 2^drawn_node_bits(), and each number that a database draws in one incarnation gives it another node.
//   3. With worker_policy static the worker field is the number, whatever else is given. Without a datacenter field a
//      person has given the whole node then, so it is `set`.
//   4. An id too large for the layout is not an error, because then a setting could make generators fail. It is not
//      taken modulo the width either, because then two databases with different ids would share a node for certain.
#pragma once

#include "layout.hpp"

namespace uidgen::core {

enum class Protection : uint8_t {
    automatic, // by the hash of the database
    set,       // by a number that a person gave
    registry,  // by a grant of the fleet's registry
};

constexpr int64_t no_node = -1;

struct Node {
    int64_t value;
    Protection protection;
};

// The right to use the ticks from <= t < until of a node (holding.hpp). A view that has become old is still right: its
// ticks belong to its node forever.
struct GrantView {
    bool granted;
    int64_t node;
    int64_t from;  // ticks of the layout
    int64_t until; // the first tick beyond
};

constexpr GrantView no_grant = {};

constexpr bool same_view(const GrantView &a, const GrantView &b) noexcept {
    return a.granted == b.granted && a.node == b.node && a.from == b.from && a.until == b.until;
}

struct NodeSource {
    int64_t datacenter_id; // negative: none
    uint64_t database_hash;
    bool worker_is_given; // worker_policy static
};

// The finalizer of splitmix64 (Sebastiano Vigna, prng.di.unimi.it, 2015; the variant 13 of David Stafford).
constexpr uint64_t mix(uint64_t bits) noexcept {
    bits = (bits ^ (bits >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    bits = (bits ^ (bits >> 27)) * UINT64_C(0x94D049BB133111EB);
    return bits ^ (bits >> 31);
}

// The same for a node of layouts that same_layout() holds to be one; for others hardly ever.
constexpr uint64_t node_hash(const Layout &layout, int64_t node) noexcept {
    const int64_t widths = layout.time_bits | layout.datacenter_bits << 6 | layout.worker_bits << 12 |
                           layout.sequence_bits << 18 | (layout.sequence_first ? 1 : 0) << 24 |
                           (layout.backup ? 1 : 0) << 25;
    uint64_t hash = 0;
    for (const int64_t field : {layout.epoch_us, layout.tick_us, widths, node})
        hash = mix(hash + static_cast<uint64_t>(field));
    return hash;
}

// `life` tells servers apart that are copies of one: random bits of the incarnation, or the place.
constexpr uint64_t database_hash(uint64_t system_identifier, uint32_t database, uint64_t life) noexcept {
    return mix(mix(mix(system_identifier) + database) + life);
}

// The field that a datacenter id goes into is so wide.
constexpr int32_t datacenter_id_bits(const Layout &layout) noexcept {
    return layout.datacenter_bits > 0 ? layout.datacenter_bits : drawn_worker_bits(layout);
}

constexpr bool holds_datacenter_id(const Layout &layout, int64_t datacenter_id) noexcept {
    return datacenter_id >= 0 && datacenter_id <= largest(datacenter_id_bits(layout));
}

constexpr Protection protection_of(const Layout &layout, const NodeSource &source) noexcept {
    const bool all_given = source.worker_is_given && layout.datacenter_bits == 0;
    return all_given || holds_datacenter_id(layout, source.datacenter_id) ? Protection::set : Protection::automatic;
}

// The part of the source by which nodes of one generator differ: the datacenter id that they have, or no_datacenter_id.
// Sessions with the same one follow one formula.
constexpr int64_t no_datacenter_id = -1;

constexpr int64_t used_datacenter_id(const Layout &layout, int64_t given, bool worker_is_given) noexcept {
    const bool has_field = layout.datacenter_bits > 0 || !worker_is_given;
    return has_field && holds_datacenter_id(layout, given) ? given : no_datacenter_id;
}

// How many bits of the node follow from the number that is drawn.
constexpr int32_t bits_by_number(const Layout &layout, const NodeSource &source) noexcept {
    if (source.worker_is_given)
        return 0;
    if (protection_of(layout, source) == Protection::automatic)
        return drawn_node_bits(layout);
    return layout.datacenter_bits > 0 ? drawn_worker_bits(layout) : 0;
}

// `number` is not negative.
constexpr Node node_of(const Layout &layout, const NodeSource &source, int64_t number) noexcept {
    const Protection protection = protection_of(layout, source);
    const auto all_bits = static_cast<uint64_t>(largest(drawn_node_bits(layout)));
    const uint64_t added = source.worker_is_given ? 0 : static_cast<uint64_t>(number);
    const auto by_hash = static_cast<int64_t>((source.database_hash + added) & all_bits);
    if (!source.worker_is_given && protection == Protection::automatic)
        return {by_hash, protection};
    if (layout.datacenter_bits == 0 && !source.worker_is_given)
        return {source.datacenter_id, protection};
    const bool has_id = layout.datacenter_bits > 0 && protection == Protection::set;
    const int64_t datacenter = has_id ? source.datacenter_id : fields_of_node(layout, by_hash).datacenter;
    return {node_of_fields(layout, {datacenter, number & largest(drawn_worker_bits(layout))}), protection};
}

// The number with which node_of() gives that node, as far as the node follows from the number.
constexpr int64_t number_of(const Layout &layout, const NodeSource &source, int64_t node) noexcept {
    if (protection_of(layout, source) == Protection::set)
        return fields_of_node(layout, node).worker;
    const uint64_t number = static_cast<uint64_t>(node) - source.database_hash;
    return static_cast<int64_t>(number & static_cast<uint64_t>(largest(drawn_node_bits(layout))));
}

} // namespace uidgen::core
