// The high-water mark: what a generator's sequence says was leased, as a tick of its layout, and what that means for
// the generator's word and ids.
//
// A layout and a policy that are passed together belong to one generator: the policy's `end` is 2^time_bits, and its
// sequence_bits are the layout's.
#pragma once

#include <algorithm>
#include <cstdint>

#include "clock_policy.hpp"
#include "layout.hpp"

namespace uidgen::core {

// The mark of a generator that never wrote a lease: the first value of its sequence.
constexpr int64_t no_lease_yet = 1;

// No generator issues an id of a tick up to the mark with which it begins. So a number that small is a sequence's.
constexpr bool precedes_every_id(const TimeField &field, int64_t id) noexcept {
    return id >> field.shift <= no_lease_yet;
}

// The last tick leased. A mark beyond what the generator can use stands for its end.
constexpr int64_t tick_of_mark(const ClockPolicy &p, int64_t high_water_mark) noexcept {
    return std::min(std::max(high_water_mark, INT64_C(0)), p.end - 1);
}

// The first position above all that was leased.
constexpr uint64_t position_above(const ClockPolicy &p, int64_t high_water_mark) noexcept {
    return static_cast<uint64_t>(tick_of_mark(p, high_water_mark) + 1) << p.sequence_bits;
}

// The largest id that the generator can have issued.
constexpr int64_t largest_leased_id(const Layout &l, const ClockPolicy &p, int64_t high_water_mark) noexcept {
    const int64_t first_above = first_id_of(l, tick_of_mark(p, high_water_mark) + 1);
    return first_above == INT64_MAX ? first_above : first_above - 1;
}

} // namespace uidgen::core
