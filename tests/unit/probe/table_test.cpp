#include "probe/table.hpp"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <utility>

namespace vramtrack::probe {
namespace {

TEST(Table, AgreesWithAMap) {
  Table<std::uint64_t> table;
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::uint64_t> expected;
  std::mt19937_64 random(3);
  for (std::uint64_t i = 0; i < 100'000; ++i) {
    const Key key{random() % 3, 1 + random() % 3000};
    const auto known = expected.find({key.owner, key.handle});
    std::uint64_t value = 0;
    switch (random() % 4) {
      case 0:
        table.put(key, i);
        expected[{key.owner, key.handle}] = i;
        break;
      case 1:
        ASSERT_EQ(table.take(key, value), known != expected.end());
        if (known != expected.end()) {
          ASSERT_EQ(value, known->second);
          expected.erase(known);
        }
        break;
      case 2:
        ASSERT_EQ(table.update(key, [](std::uint64_t& held) { ++held; }), known != expected.end());
        if (known != expected.end()) ++known->second;
        break;
      default:
        ASSERT_EQ(table.find(key, value), known != expected.end());
        if (known != expected.end()) {
          ASSERT_EQ(value, known->second);
        }
    }
  }
  std::size_t of_one = 0;
  std::uint64_t value = 0;
  for (std::size_t at = 0; table.take_next(
           at, [](const Key& key) { return key.owner == 1; }, value);)
    ++of_one;
  std::size_t expected_of_one = 0;
  for (const auto& [key, held] : expected) {
    expected_of_one += key.first == 1;
    EXPECT_EQ(table.find({key.first, key.second}, value), key.first != 1);
  }
  EXPECT_EQ(of_one, expected_of_one);
}

}  // namespace
}  // namespace vramtrack::probe
