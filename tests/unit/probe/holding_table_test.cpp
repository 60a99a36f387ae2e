#include "probe/holding_table.hpp"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace vramtrack::probe {
namespace {

TEST(HoldingTable, AgreesWithAMap) {
  HoldingTable table;
  std::map<std::uint64_t, std::uint64_t> expected;
  std::mt19937_64 random(7);
  for (int i = 0; i < 200'000; ++i) {
    const std::uint64_t address = 512 * (1 + random() % 5000);
    if (random() % 2 == 0) {
      const Holding before =
          table.put({address, static_cast<std::uint64_t>(i), 1, Call::cu_mem_alloc, 0, Level::driver, true});
      const auto known = expected.find(address);
      ASSERT_EQ(before.address != 0, known != expected.end());
      expected[address] = static_cast<std::uint64_t>(i);
    } else {
      const Holding taken = table.take(Level::driver, address);
      const auto known = expected.find(address);
      ASSERT_EQ(taken.address != 0, known != expected.end());
      if (known != expected.end()) {
        ASSERT_EQ(taken.bytes, known->second);
        expected.erase(known);
      }
    }
  }
  std::size_t left = 0;
  table.take_all([](const Holding&) { return true; },
                 [&](const Holding& held) {
                   ++left;
                   EXPECT_EQ(expected.at(held.address), held.bytes);
                 });
  EXPECT_EQ(left, expected.size());
  table.reset();
}

TEST(HoldingTable, TakesOnlyWhatIsWanted) {
  HoldingTable table;
  for (std::uint64_t i = 1; i <= 3000; ++i)
    table.put({i * 16, i, 0, Call::cu_mem_alloc, static_cast<std::int8_t>(i % 3), Level::driver, true});
  std::uint64_t count = 0;
  table.take_all([](const Holding& held) { return held.device == 2; }, [&](const Holding&) { ++count; });
  EXPECT_EQ(count, 1000U);
  for (std::uint64_t i = 1; i <= 3000; ++i) EXPECT_EQ(table.find(Level::driver, i * 16).address != 0, i % 3 != 2);
  table.reset();
}

}  // namespace
}  // namespace vramtrack::probe
