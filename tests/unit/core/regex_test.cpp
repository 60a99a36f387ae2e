#include "core/regex.hpp"

#include <gtest/gtest.h>

#include <string>

namespace vramtrack {
namespace {

/// A pattern of one person meets a text of another: with a matcher that backtracks, this test would not end.
TEST(Regex, TakesNoLongerForATextThatAlmostMatches) {
  for (const char* pattern : {"(a+)+$", "(a|a)*b", "(a|aa)+$"}) {
    const auto regex = Regex::compile(pattern);
    ASSERT_TRUE(regex) << regex.error().message;
    EXPECT_FALSE(regex->found_in(std::string(64, 'a') + '!')) << pattern;
  }
}

TEST(Regex, HasNoBackReferences) {
  EXPECT_FALSE(Regex::compile("(a)\\1"));
}

TEST(Regex, FindsItsGroups) {
  const auto regex = Regex::compile("([0-9]+) / ([0-9]+) MiB");
  ASSERT_TRUE(regex);
  std::vector<std::string_view> groups;
  ASSERT_TRUE(regex->find("memory: 8123 / 24576 MiB", groups));
  EXPECT_EQ(groups, (std::vector<std::string_view>{"8123 / 24576 MiB", "8123", "24576"}));
}

}  // namespace
}  // namespace vramtrack
