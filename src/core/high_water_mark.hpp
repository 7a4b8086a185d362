// The high-water mark: what a generator's sequence says was leased, and what that means for the generator's word.
//
// The sequence counts term x 2^47 + tick (max_time_bits), so that its format does not depend on the layout. The word
// counts term x 2^time_bits + tick, called *ticks* here. Both order by term first.
//
// A term begins by when_back new_worker, or by a restart (restart.hpp). The terms of new_worker are those of the word.
// A restart frees the slot, so all others have one term in a word: the word counts from the last restart's term on.
// The row says where a restart begins. The sequence follows with the first lease of that term, so a restart that is
// rolled back leaves no trace. Until then the mark that the row says is the higher one, and counts.
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

// The mark has room for so many terms.
constexpr int64_t most_terms = INT64_C(1) << (max_id_bits - max_time_bits);

// The term in which the word counts from 0.
constexpr int64_t first_term(const ClockPolicy &p) noexcept {
    return p.when_back == WhenBack::new_worker ? 0 : p.restart.mark >> max_time_bits;
}

// How many terms a word has: one, or with when_back new_worker one for each worker id. The mark must have room for
// them, and the word needs a bit to spare for its end.
constexpr int64_t terms_of(const Layout &l, const ClockPolicy &p) noexcept {
    if (p.when_back != WhenBack::new_worker)
        return 1;
    const int32_t mark_bits = max_id_bits - max_time_bits;
    const int32_t word_bits = max_id_bits - 1 - l.time_bits - l.sequence_bits;
    return INT64_C(1) << std::max(std::min({l.worker_bits, mark_bits, word_bits}), 0);
}

// The last tick leased, in the word's count. A mark beyond what the generator can use stands for its end.
constexpr int64_t ticks_of_mark(const Layout &l, const ClockPolicy &p, int64_t high_water_mark) noexcept {
    const int64_t mark = std::max({high_water_mark, p.restart.mark, INT64_C(0)});
    const int64_t term = (mark >> max_time_bits) - first_term(p);
    const int64_t tick = mark & largest(max_time_bits);
    const int64_t terms = terms_of(l, p);
    return term < terms ? term * p.end + std::min(tick, p.end - 1) : terms * p.end - 1;
}

// The mark to write for a lease whose last tick is that one, in the word's count.
constexpr int64_t mark_of_ticks(const ClockPolicy &p, int64_t ticks) noexcept {
    return (first_term(p) + ticks / p.end) << max_time_bits | ticks % p.end;
}

// The first position above all that was leased.
constexpr uint64_t position_above(const Layout &l, const ClockPolicy &p, int64_t high_water_mark) noexcept {
    return static_cast<uint64_t>(ticks_of_mark(l, p, high_water_mark) + 1) << p.sequence_bits;
}

// The tick of a position, without its term.
constexpr int64_t tick_of(const ClockPolicy &p, uint64_t position) noexcept {
    return static_cast<int64_t>(position >> p.sequence_bits) % p.end;
}

// The largest id that the generator can have issued. An earlier term may have reached a later tick, so from the second
// term on the whole time of the layout counts. What was reached before a restart is known.
constexpr int64_t largest_leased_id(const Layout &l, const ClockPolicy &p, int64_t high_water_mark) noexcept {
    const int64_t last = std::max(ticks_of_mark(l, p, high_water_mark), p.restart.until - 1);
    const int64_t first_above = first_id_of(l, std::min(last, p.end - 1) + 1);
    return first_above == INT64_MAX ? first_above : first_above - 1;
}

} // namespace uidgen::core
