// The layout of an id: where its time, datacenter, worker and sequence number are in 63 bits.
//
//   0 | time | datacenter | worker | sequence            (most significant bit first)
//   0 | time | sequence | datacenter | worker            (sequence_first, as Sonyflake's)
//
// The first field order and the 41/5/5/12 widths are those of Twitter's Snowflake (2010). The second order is that of
// Sony's Sonyflake (2014). Every width can be chosen. A *tick* is one unit of the time field, counted from the layout's
// epoch. A *position* is tick << sequence_bits | sequence: the id without its datacenter and worker. In both field
// orders positions order the ids of one worker.
//
// With `backup` the top bit of the worker field separates a generator's backup worker from its primary worker. Worker
// ids are then drawn from the bits below it. A *node* is the value of the datacenter and worker bits together, without
// the backup bit: its low drawn_worker_bits() are the worker id, the bits above them the datacenter id.
//
// Pure arithmetic: no clock, no allocation, no exceptions. Times are microseconds since 1970-01-01 UTC.
#pragma once

#include <algorithm>
#include <cstdint>

namespace uidgen::core {

struct Layout {
    int64_t epoch_us;        // instant of tick 0
    int64_t tick_us;         // length of a tick, 1 us .. 1 h
    int32_t time_bits;       // 1 .. 47: the durable counter keeps 47 bits for a tick
    int32_t datacenter_bits; // 0 .. 31
    int32_t worker_bits;     // 0 .. 31
    int32_t sequence_bits;   // 0 .. 31
    bool sequence_first = false;
    bool backup = false; // needs worker_bits >= 1
};

constexpr int32_t max_time_bits = 47;
constexpr int32_t max_field_bits = 31;
constexpr int32_t max_id_bits = 63;
constexpr int64_t max_tick_us = INT64_C(3600) * 1000 * 1000;
// Layouts end in the year 10889 at the latest, with the 48 bits of milliseconds of a UUID (id_forms.hpp). So no sum of
// instants overflows.
constexpr int64_t max_instant_us = (INT64_C(1) << 48) * 1000;

enum class LayoutFault : uint8_t {
    none,
    tick_length,     // tick_us outside 1 .. max_tick_us
    epoch,           // epoch_us negative or beyond max_instant_us
    widths,          // a width outside its bounds; more than max_id_bits together; no bit for a backup worker
    beyond_calendar, // the last tick ends after max_instant_us
};

struct Parts {
    int64_t tick;
    int64_t datacenter;
    int64_t worker; // with the backup bit
    int64_t sequence;
};

constexpr bool same_layout(const Layout &a, const Layout &b) noexcept {
    return a.epoch_us == b.epoch_us && a.tick_us == b.tick_us && a.time_bits == b.time_bits &&
           a.datacenter_bits == b.datacenter_bits && a.worker_bits == b.worker_bits &&
           a.sequence_bits == b.sequence_bits && a.sequence_first == b.sequence_first && a.backup == b.backup;
}

constexpr int64_t largest(int32_t bits) noexcept { return static_cast<int64_t>((UINT64_C(1) << bits) - 1); }

constexpr int32_t id_bits(const Layout &layout) noexcept {
    return layout.time_bits + layout.datacenter_bits + layout.worker_bits + layout.sequence_bits;
}
constexpr int32_t node_bits(const Layout &layout) noexcept { return layout.datacenter_bits + layout.worker_bits; }
constexpr int32_t sequence_shift(const Layout &layout) noexcept {
    return layout.sequence_first ? node_bits(layout) : 0;
}
constexpr int32_t worker_shift(const Layout &layout) noexcept {
    return layout.sequence_first ? 0 : layout.sequence_bits;
}
constexpr int32_t datacenter_shift(const Layout &layout) noexcept { return worker_shift(layout) + layout.worker_bits; }
constexpr int32_t time_shift(const Layout &layout) noexcept { return node_bits(layout) + layout.sequence_bits; }

// How many bits of the worker field are drawn, and the bit that marks the backup worker (0: the layout has none).
constexpr int32_t drawn_worker_bits(const Layout &layout) noexcept {
    return layout.worker_bits - (layout.backup ? 1 : 0);
}
constexpr int64_t backup_bit(const Layout &layout) noexcept {
    return layout.backup ? INT64_C(1) << drawn_worker_bits(layout) : 0;
}

constexpr int32_t drawn_node_bits(const Layout &layout) noexcept {
    return layout.datacenter_bits + drawn_worker_bits(layout);
}

struct NodeFields {
    int64_t datacenter;
    int64_t worker; // without the backup bit
};

constexpr NodeFields fields_of_node(const Layout &layout, int64_t node) noexcept {
    return {node >> drawn_worker_bits(layout), node & largest(drawn_worker_bits(layout))};
}

// The fields must fit the layout.
constexpr int64_t node_of_fields(const Layout &layout, const NodeFields &fields) noexcept {
    return fields.datacenter << drawn_worker_bits(layout) | fields.worker;
}

constexpr LayoutFault find_layout_fault(const Layout &layout) noexcept {
    constexpr auto field_fits = [](int32_t bits) { return bits >= 0 && bits <= max_field_bits; };
    if (layout.tick_us < 1 || layout.tick_us > max_tick_us)
        return LayoutFault::tick_length;
    if (layout.epoch_us < 0 || layout.epoch_us > max_instant_us)
        return LayoutFault::epoch;
    if (layout.time_bits < 1 || layout.time_bits > max_time_bits || !field_fits(layout.datacenter_bits) ||
        !field_fits(layout.worker_bits) || !field_fits(layout.sequence_bits) || id_bits(layout) > max_id_bits ||
        (layout.backup && layout.worker_bits == 0))
        return LayoutFault::widths;
    int64_t life_us = 0;
    if (__builtin_mul_overflow(largest(layout.time_bits) + 1, layout.tick_us, &life_us) ||
        life_us > max_instant_us - layout.epoch_us)
        return LayoutFault::beyond_calendar;
    return LayoutFault::none;
}

// The tick that contains an instant: negative before the epoch, and not bounded by time_bits.
constexpr int64_t tick_at(const Layout &layout, int64_t instant_us) noexcept {
    const int64_t since = instant_us - layout.epoch_us;
    const int64_t quotient = since / layout.tick_us;
    return quotient - (since % layout.tick_us < 0 ? 1 : 0);
}

// The first instant of a tick. The tick must fit the layout.
constexpr int64_t start_of(const Layout &layout, int64_t tick) noexcept {
    return layout.epoch_us + tick * layout.tick_us;
}

// Each part must fit its field.
constexpr int64_t encode(const Layout &layout, const Parts &parts) noexcept {
    return parts.tick << time_shift(layout) | parts.datacenter << datacenter_shift(layout) |
           parts.worker << worker_shift(layout) | parts.sequence << sequence_shift(layout);
}

constexpr bool is_id_of(const Layout &layout, int64_t id) noexcept { return id >= 0 && id <= largest(id_bits(layout)); }

// The id must be one of the layout.
constexpr Parts decode(const Layout &layout, int64_t id) noexcept {
    return {.tick = id >> time_shift(layout),
            .datacenter = id >> datacenter_shift(layout) & largest(layout.datacenter_bits),
            .worker = id >> worker_shift(layout) & largest(layout.worker_bits),
            .sequence = id >> sequence_shift(layout) & largest(layout.sequence_bits)};
}

// The lowest id of a tick, which may be one past the last tick; INT64_MAX if that id would be 2^63.
constexpr int64_t first_id_of(const Layout &layout, int64_t tick) noexcept {
    const uint64_t id = static_cast<uint64_t>(tick) << time_shift(layout);
    return id > static_cast<uint64_t>(INT64_MAX) ? INT64_MAX : static_cast<int64_t>(id);
}

// The part of a layout that converts an id to its time and back.
struct TimeField {
    int64_t epoch_us; // as in Layout
    int64_t tick_us;
    int32_t shift; // time_shift(), 0 .. 62
    int64_t end;   // the first tick that has no ids; at most 2^(63 - shift)
};

constexpr TimeField time_field(const Layout &layout) noexcept {
    return {.epoch_us = layout.epoch_us,
            .tick_us = layout.tick_us,
            .shift = time_shift(layout),
            .end = largest(layout.time_bits) + 1};
}

// The smallest value above every id that can have been made before the instant. The ids from t0 on and before t1 are
// those in [lower_bound(t0), lower_bound(t1)). An id is as old as the start of its tick. Before the epoch the bound is
// 0. After the end it is one more than the largest id, or INT64_MAX if that would be 2^63.
constexpr int64_t lower_bound(const TimeField &field, int64_t instant_us) noexcept {
    if (instant_us <= field.epoch_us)
        return 0;
    const int64_t tick = (instant_us - field.epoch_us - 1) / field.tick_us + 1;
    const uint64_t id = static_cast<uint64_t>(std::min(tick, field.end)) << field.shift;
    return id > static_cast<uint64_t>(INT64_MAX) ? INT64_MAX : static_cast<int64_t>(id);
}

// Turns positions into ids. It is computed once for many ids: encode() of a position gives what encode() of its parts
// would give.
struct IdEncoder {
    uint64_t node;     // added to each position: the node and the backup bit in place
    uint64_t low_mask; // the bits of a position that stay at the bottom: its sequence number, or none
    int32_t gap;       // how far the other bits move up to make room for the node
};

// The node and the tick of every position must fit the layout.
constexpr IdEncoder encoder_of(const Layout &layout, int64_t node_value, bool backup = false) noexcept {
    const NodeFields fields = fields_of_node(layout, node_value);
    const int64_t worker = fields.worker | (backup ? backup_bit(layout) : 0);
    const Parts node = {.tick = 0, .datacenter = fields.datacenter, .worker = worker, .sequence = 0};
    return {.node = static_cast<uint64_t>(encode(layout, node)),
            .low_mask = layout.sequence_first ? 0 : static_cast<uint64_t>(largest(layout.sequence_bits)),
            .gap = node_bits(layout)};
}

// Fields do not overlap, so addition puts them side by side.
constexpr int64_t encode(const IdEncoder &encoder, uint64_t position) noexcept {
    const uint64_t low = position & encoder.low_mask;
    return static_cast<int64_t>(((position - low) << encoder.gap) + encoder.node + low);
}

} // namespace uidgen::core
