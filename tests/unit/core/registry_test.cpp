#include "core/registry.hpp"

#include <gtest/gtest.h>

#include <array>

namespace vramtrack {
namespace {

struct Info {
  std::string_view name;
  int sure;
};
constexpr Info kA{"a", 1};
constexpr Info kB{"b", 3};
constexpr Info kC{"c", 3};
constexpr std::array kAll = {&kA, &kB};
constexpr std::array kMore = {&kC};

TEST(Registry, AnEntryIsFoundByItsName) {
  EXPECT_EQ(find_named<Info>(kAll, "b"), &kB);
  EXPECT_EQ(find_named<Info>(kAll, "c"), nullptr);
  EXPECT_EQ(find_named<Info>({}, "a"), nullptr);
}

TEST(Registry, TheSurestOfAllListsIsTheFirstOfEquals) {
  const auto sureness = [](const Info& info) { return info.sure; };
  EXPECT_EQ(surest<Info>({kAll, kMore}, sureness), &kB);
  EXPECT_EQ(surest<Info>({kMore, kAll}, sureness), &kC);
  EXPECT_EQ(surest<Info>({kAll}, sureness, 4), nullptr);
  EXPECT_EQ(surest<Info>({kAll}, [](const Info&) { return 0; }), nullptr);
}

}  // namespace
}  // namespace vramtrack
