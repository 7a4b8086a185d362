// Other forms of an id: short texts, and UUIDs. What is read gives an id, or no_id.
//
// Short texts for ids 0 .. 2^63 - 1, to and from: numbers of base 62, the most significant digit first.
//
// They are written with all of their 11 digits, 0-9 A-Z a-z. So they sort as the ids do, byte by byte: the digits are
// in the order of ASCII. Reading takes any number of leading zeros, even none.
#pragma once

#include <cstddef>
#include <cstdint>

#include "layout.hpp"
#include "node.hpp"

namespace uidgen::core {

constexpr int64_t no_id = -1;

constexpr int64_t short_form_base = 62;
constexpr size_t short_form_width = 11; // digits of 2^63 - 1

// What a byte stands for, or -1 if it is no digit.
constexpr int64_t short_form_value(char byte) noexcept {
    if (byte >= '0' && byte <= '9')
        return byte - '0';
    if (byte >= 'A' && byte <= 'Z')
        return byte - 'A' + 10;
    return byte >= 'a' && byte <= 'z' ? byte - 'a' + 36 : -1;
}

// Writes all digits. The id must not be negative.
constexpr void write_short_form(int64_t id, char *text) noexcept {
    for (size_t i = short_form_width; i-- > 0; id /= short_form_base)
        text[i] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"[id % short_form_base];
}

constexpr int64_t read_short_form(const char *text, size_t length) noexcept {
    int64_t id = 0;
    for (size_t i = 0; i < length; i++) {
        const int64_t digit = short_form_value(text[i]);
        if (digit < 0 || __builtin_mul_overflow(id, short_form_base, &id) || __builtin_add_overflow(id, digit, &id))
            return no_id;
    }
    return length == 0 ? no_id : id;
}

// ---------------------------------------------------------------------------------------------------------
// An id as a UUID of version 7 (RFC 9562, 5.7), and back:
//
//   unix_ts_ms (48) | 0111 | rand_a (12) | 10 | rand_b (62)
//
// unix_ts_ms is the millisecond in which the id's tick starts. rand_a and rand_b together are 74 bits:
//
//   index (i) | below (b) | random (r) | check (c)            (most significant bit first)
//
//   index   numbers the ticks that start in that millisecond, from 0. i = 0 if a tick is 1 ms or longer, at most 10.
//   below   the bits of the id below its time, in their order: node and sequence number. b is at most 62.
//   random  what the caller gives.
//   check   a hash of the layout and of all other bits. c = min(16, 74 - i - b), at least 2.
//
// docs/design.md, P2 UUIDs, says why they sort as their ids do, and why the id can be read back whatever the random
// bits are. A UUID that was not made here, or in another layout, has the right check bits once in 2^c. It must also
// name a tick that the layout has. UUIDs last as long as the tables that hold them: this form never changes.
// ---------------------------------------------------------------------------------------------------------

struct Uuid {
    uint64_t high; // the first eight bytes, big-endian
    uint64_t low;
};

constexpr int32_t payload_bits = 74;
constexpr int32_t rand_b_bits = 62;
constexpr int32_t most_check_bits = 16;
constexpr int64_t us_in_ms = 1000;
constexpr uint64_t version_7 = 7;
constexpr uint64_t variant_rfc = 2;

// Ticks of one millisecond are numbered from 0 to this.
constexpr int64_t last_index(const Layout &layout) noexcept { return (us_in_ms - 1) / layout.tick_us; }

// The first tick that starts at that millisecond or later. Negative before the epoch.
constexpr int64_t first_tick_from(const Layout &layout, int64_t unix_ms) noexcept {
    const int64_t since = unix_ms * us_in_ms - layout.epoch_us;
    return since / layout.tick_us + (since % layout.tick_us > 0 ? 1 : 0);
}

struct UuidWidths {
    int32_t index;
    int32_t below;
    int32_t random;
    int32_t check;
};

constexpr UuidWidths uuid_widths(const Layout &layout) noexcept {
    int32_t index = 0;
    while (last_index(layout) >> index != 0)
        index++;
    const int32_t rest = payload_bits - index - time_shift(layout);
    const int32_t check = std::min(rest, most_check_bits);
    return {.index = index, .below = time_shift(layout), .random = rest - check, .check = check};
}

// The check bits of a UUID whose check bits are 0.
constexpr uint64_t check_bits_of(const Layout &layout, const Uuid &uuid, int32_t bits) noexcept {
    uint64_t hash = 0;
    for (const int64_t field :
         {layout.epoch_us, layout.tick_us, int64_t{layout.time_bits}, int64_t{layout.datacenter_bits},
          int64_t{layout.worker_bits}, int64_t{layout.sequence_bits}, int64_t{layout.sequence_first},
          int64_t{layout.backup}, static_cast<int64_t>(uuid.high), static_cast<int64_t>(uuid.low)})
        hash = mix(hash + static_cast<uint64_t>(field));
    return hash >> (64 - bits);
}

// The id must be one of the layout. Of `random` the low bits count.
constexpr Uuid uuid_of(const Layout &layout, int64_t id, uint64_t random) noexcept {
    const UuidWidths widths = uuid_widths(layout);
    const int64_t tick = id >> time_shift(layout);
    const int64_t unix_ms = start_of(layout, tick) / us_in_ms; // max_instant_us says that it fits 48 bits
    const auto index = static_cast<unsigned __int128>(tick - first_tick_from(layout, unix_ms));
    const auto below = static_cast<uint64_t>(id & largest(time_shift(layout)));
    const unsigned __int128 payload =
        ((index << widths.below | below) << widths.random | (random & ((UINT64_C(1) << widths.random) - 1)))
        << widths.check;
    Uuid uuid = {static_cast<uint64_t>(unix_ms) << 16 | version_7 << 12 | static_cast<uint64_t>(payload >> rand_b_bits),
                 variant_rfc << rand_b_bits | (static_cast<uint64_t>(payload) & ((UINT64_C(1) << rand_b_bits) - 1))};
    uuid.low |= check_bits_of(layout, uuid, widths.check);
    return uuid;
}

constexpr int64_t id_of(const Layout &layout, const Uuid &uuid) noexcept {
    if ((uuid.high >> 12 & 15) != version_7 || uuid.low >> rand_b_bits != variant_rfc)
        return no_id;
    const UuidWidths widths = uuid_widths(layout);
    const auto unix_ms = static_cast<int64_t>(uuid.high >> 16);
    const unsigned __int128 payload = static_cast<unsigned __int128>(uuid.high & 0xfff) << rand_b_bits |
                                      (uuid.low & ((UINT64_C(1) << rand_b_bits) - 1));
    const unsigned __int128 place = payload >> (widths.random + widths.check);
    const int64_t tick = first_tick_from(layout, unix_ms) + static_cast<int64_t>(place >> widths.below);
    if (tick < 0 || tick > largest(layout.time_bits) || start_of(layout, tick) / us_in_ms != unix_ms)
        return no_id;
    const uint64_t check_mask = (UINT64_C(1) << widths.check) - 1;
    if (check_bits_of(layout, {uuid.high, uuid.low & ~check_mask}, widths.check) != (uuid.low & check_mask))
        return no_id;
    const auto below = static_cast<int64_t>(static_cast<uint64_t>(place) & ((UINT64_C(1) << widths.below) - 1));
    return tick << widths.below | below;
}

} // namespace uidgen::core
