// The layout of an id: where its time, datacenter, worker and sequence number stand in 63 bits.
//
//   0 | time | datacenter | worker | sequence            (most significant bit first)
//
// The field order and the 41/5/5/12 widths are those of Twitter's Snowflake (2010); every width may be
// chosen here. A *tick* is one unit of the time field, counted from the layout's epoch. A *position* is
// tick << sequence_bits | sequence: the id without its datacenter and worker. Positions order ids.
//
// Pure arithmetic: no clock, no allocation, no exceptions. Times are microseconds since 1970-01-01 UTC.
#pragma once

#include <cstdint>

namespace uidgen::core {

struct Layout {
    int64_t epoch_us;        // instant of tick 0
    int64_t tick_us;         // length of a tick, 1 us .. 1 h
    int32_t time_bits;       // 1 .. 47: the durable counter keeps 47 bits for a tick
    int32_t datacenter_bits; // 0 .. 31
    int32_t worker_bits;     // 0 .. 31
    int32_t sequence_bits;   // 0 .. 31
};

constexpr int32_t max_time_bits = 47;
constexpr int32_t max_field_bits = 31;
constexpr int32_t max_id_bits = 63;
constexpr int64_t max_tick_us = INT64_C(3600) * 1000 * 1000;
// A timestamptz ends in the year 294276; layouts end 60 years earlier at the latest, so that sums can't overflow.
constexpr int64_t max_instant_us = INT64_C(9223371331200000000) - INT64_C(946684800000000);

enum class LayoutFault : uint8_t {
    none,
    tick_length,     // tick_us outside 1 .. max_tick_us
    epoch,           // epoch_us negative or beyond max_instant_us
    time_width,      // time_bits outside 1 .. max_time_bits
    field_width,     // another width outside 0 .. max_field_bits
    too_wide,        // the widths add up to more than max_id_bits
    beyond_calendar, // the last tick ends after max_instant_us
};

struct Parts {
    int64_t tick;
    int64_t datacenter;
    int64_t worker;
    int64_t sequence;
};

enum class EncodeFault : uint8_t { none, tick, datacenter, worker, sequence };

struct Encoded {
    EncodeFault fault;
    int64_t id; // 0 when there is a fault
};

enum class DecodeFault : uint8_t { none, negative, beyond_layout };

struct Decoded {
    DecodeFault fault;
    Parts parts; // zeros when there is a fault
};

constexpr int64_t largest(int32_t bits) noexcept { return static_cast<int64_t>((UINT64_C(1) << bits) - 1); }

constexpr int32_t id_bits(const Layout &l) noexcept {
    return l.time_bits + l.datacenter_bits + l.worker_bits + l.sequence_bits;
}
constexpr int32_t worker_shift(const Layout &l) noexcept { return l.sequence_bits; }
constexpr int32_t datacenter_shift(const Layout &l) noexcept { return worker_shift(l) + l.worker_bits; }
constexpr int32_t time_shift(const Layout &l) noexcept { return datacenter_shift(l) + l.datacenter_bits; }

constexpr LayoutFault check(const Layout &l) noexcept {
    constexpr auto field_fits = [](int32_t bits) { return bits >= 0 && bits <= max_field_bits; };
    if (l.tick_us < 1 || l.tick_us > max_tick_us)
        return LayoutFault::tick_length;
    if (l.epoch_us < 0 || l.epoch_us > max_instant_us)
        return LayoutFault::epoch;
    if (l.time_bits < 1 || l.time_bits > max_time_bits)
        return LayoutFault::time_width;
    if (!field_fits(l.datacenter_bits) || !field_fits(l.worker_bits) || !field_fits(l.sequence_bits))
        return LayoutFault::field_width;
    if (id_bits(l) > max_id_bits)
        return LayoutFault::too_wide;
    int64_t life_us = 0;
    if (__builtin_mul_overflow(largest(l.time_bits) + 1, l.tick_us, &life_us) ||
        life_us > max_instant_us - l.epoch_us)
        return LayoutFault::beyond_calendar;
    return LayoutFault::none;
}

// The tick that contains an instant; negative before the epoch, and not bounded by time_bits.
constexpr int64_t tick_at(const Layout &l, int64_t instant_us) noexcept {
    const int64_t since = instant_us - l.epoch_us;
    const int64_t quotient = since / l.tick_us;
    return quotient - (since % l.tick_us < 0 ? 1 : 0);
}

// The first instant of a tick; the tick must fit the layout.
constexpr int64_t start_of(const Layout &l, int64_t tick) noexcept { return l.epoch_us + tick * l.tick_us; }

constexpr Encoded encode(const Layout &l, const Parts &p) noexcept {
    const auto fits = [](int64_t value, int32_t bits) { return value >= 0 && value <= largest(bits); };
    if (!fits(p.tick, l.time_bits))
        return {EncodeFault::tick, 0};
    if (!fits(p.datacenter, l.datacenter_bits))
        return {EncodeFault::datacenter, 0};
    if (!fits(p.worker, l.worker_bits))
        return {EncodeFault::worker, 0};
    if (!fits(p.sequence, l.sequence_bits))
        return {EncodeFault::sequence, 0};
    return {EncodeFault::none, p.tick << time_shift(l) | p.datacenter << datacenter_shift(l) |
                                   p.worker << worker_shift(l) | p.sequence};
}

constexpr Decoded decode(const Layout &l, int64_t id) noexcept {
    if (id < 0)
        return {DecodeFault::negative, {}};
    if (id > largest(id_bits(l)))
        return {DecodeFault::beyond_layout, {}};
    return {DecodeFault::none,
            {id >> time_shift(l), id >> datacenter_shift(l) & largest(l.datacenter_bits),
             id >> worker_shift(l) & largest(l.worker_bits), id & largest(l.sequence_bits)}};
}

// What turns a position into an id, worked out once for many ids: join() does for a position what encode()
// does for its parts, without the checks.
struct Shape {
    uint64_t node;          // datacenter and worker, in place
    uint64_t sequence_mask; // the position's sequence number
    int32_t gap;            // how far the tick moves up to make room for the node
};

// The datacenter, the worker, and the tick of every position must fit the layout.
constexpr Shape shape_of(const Layout &l, int64_t datacenter, int64_t worker) noexcept {
    return {static_cast<uint64_t>(datacenter) << datacenter_shift(l) |
                static_cast<uint64_t>(worker) << worker_shift(l),
            static_cast<uint64_t>(largest(l.sequence_bits)), l.datacenter_bits + l.worker_bits};
}

constexpr int64_t join(const Shape &shape, uint64_t position) noexcept {
    const uint64_t sequence = position & shape.sequence_mask;
    return static_cast<int64_t>((position - sequence) << shape.gap | shape.node | sequence);
}

} // namespace uidgen::core
