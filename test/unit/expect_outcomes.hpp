// What the tests expect of an exploration, and how many schedules all of them ran.
#pragma once

#include <gtest/gtest.h>

#include <iostream>

#include "explorer.hpp"

namespace uidgen::test {

inline uint64_t explored_schedules = 0;

class SchedulesExplored : public ::testing::Environment {
  public:
    void TearDown() override { std::cout << "schedules explored: " << explored_schedules << std::endl; }
};
inline const auto *const announced = ::testing::AddGlobalTestEnvironment(new SchedulesExplored);

inline const Explored &counted(const Explored &result) {
    explored_schedules += result.schedules;
    std::cout << "  " << result.schedules << " schedules" << std::endl;
    return result;
}

// All outcomes of the table, and no others.
inline void expect_exactly(const Explored &result, const Table &acceptable) {
    EXPECT_EQ(counted(result).forbidden, "");
    EXPECT_EQ(result.seen, acceptable) << "some acceptable outcomes never came";
}

} // namespace uidgen::test
