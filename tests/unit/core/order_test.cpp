#include "core/order.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

namespace vramtrack {
namespace {

struct Row {
  int rank = 0;
  std::string name;

  bool operator==(const Row&) const = default;
};

bool by_rank(const Row& a, const Row& b) {
  return a.rank < b.rank;
}

TEST(Order, EqualOnesKeepTheirOrder) {
  std::vector<Row> rows = {{2, "a"}, {1, "b"}, {2, "c"}, {1, "d"}, {0, "e"}};
  order(rows, by_rank);
  EXPECT_EQ(rows, (std::vector<Row>{{0, "e"}, {1, "b"}, {1, "d"}, {2, "a"}, {2, "c"}}));
}

TEST(Order, NothingAndOne) {
  std::vector<Row> rows;
  order(rows, by_rank);
  EXPECT_TRUE(rows.empty());
  rows.push_back({1, "only"});
  order(rows, by_rank);
  EXPECT_EQ(rows, (std::vector<Row>{{1, "only"}}));
}

TEST(Order, WhatCanOnlyBeMovedIsMoved) {
  std::vector<std::unique_ptr<int>> owned;
  for (const int number : {3, 1, 2}) owned.push_back(std::make_unique<int>(number));
  order(owned, [](const auto& a, const auto& b) { return *a < *b; });
  for (std::size_t i = 0; i < owned.size(); ++i) EXPECT_EQ(*owned[i], static_cast<int>(i) + 1);
}

RC_GTEST_PROP(Order, IsThatOfStableSort, (const std::vector<std::uint8_t>& ranks)) {
  std::vector<Row> rows;
  for (std::size_t i = 0; i < ranks.size(); ++i) rows.push_back({ranks[i] % 8, std::to_string(i)});
  std::vector<Row> expected = rows;
  std::stable_sort(expected.begin(), expected.end(), by_rank);
  order(rows, by_rank);
  RC_ASSERT(rows == expected);
}

}  // namespace
}  // namespace vramtrack
