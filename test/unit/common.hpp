// What most tests include, compiled once for each program. (A guard, because the compiled one is a copy of this file.)
#ifndef UIDGEN_TEST_COMMON
#define UIDGEN_TEST_COMMON

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

// Chi-square over the number of counts less one: about 1 for values drawn at random.
inline double chi_square_ratio(const std::vector<int64_t> &counts, double expected) {
    double sum = 0;
    for (const int64_t count : counts)
        sum += (static_cast<double>(count) - expected) * (static_cast<double>(count) - expected) / expected;
    return sum / static_cast<double>(counts.size() - 1);
}

#endif
