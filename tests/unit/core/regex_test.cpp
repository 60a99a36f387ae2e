#include "core/regex.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace vramtrack {
namespace {

/// One person's pattern is applied to another's text: with a backtracking matcher, this test would not end.
TEST(Regex, TakesNoLongerForATextThatAlmostMatches) {
  for (const char* pattern : {"(a+)+$", "(a|a)*b", "(a|aa)+$"}) {
    const auto regex = Regex::compile(pattern);
    ASSERT_TRUE(regex) << regex.error().message;
    EXPECT_FALSE(regex->found_in(std::string(64, 'a') + '!')) << pattern;
  }
}

std::string error(const std::string& pattern) {
  const auto regex = Regex::compile(pattern);
  return regex ? std::string() : regex.error().message;
}

TEST(Regex, SaysWhatIsWrongInItsOwnWords) {
  using ::testing::HasSubstr;
  EXPECT_EQ(error("("), "'(' is not a regular expression: a parenthesis is not closed");
  EXPECT_THAT(error("a)"), HasSubstr("a parenthesis is closed that was not opened"));
  EXPECT_THAT(error("[a"), HasSubstr("a bracket is not closed"));
  EXPECT_THAT(error("*a"), HasSubstr("nothing for *, + or ? to repeat"));
  EXPECT_THAT(error("a++"), HasSubstr("directly follows another"));
  EXPECT_THAT(error("a{9000}"), HasSubstr("above 1000"));
  EXPECT_THAT(error("((a{100}){100}){100}"), HasSubstr("above 1000"));
  EXPECT_THAT(error("[b-a]"), HasSubstr("out of order"));
  EXPECT_THAT(error("\\u00e9"), HasSubstr("the escape '\\u' is unknown"));
  EXPECT_THAT(error("a\\"), HasSubstr("ends in a backslash"));
  EXPECT_THAT(error("(?<a b>c)"), HasSubstr("the name of a group"));
  EXPECT_THAT(error("(?<a"), HasSubstr("does not end in '>'"));
  EXPECT_THAT(error("(?>a)"), HasSubstr("unknown kind"));
}

TEST(Regex, SaysWhatItsDialectLacks) {
  using ::testing::HasSubstr;
  for (const char* pattern : {"a(?=b)", "a(?!b)"}) EXPECT_THAT(error(pattern), HasSubstr("look-ahead")) << pattern;
  for (const char* pattern : {"(?<=a)b", "(?<!a)b"}) EXPECT_THAT(error(pattern), HasSubstr("look-behind")) << pattern;
  for (const char* pattern : {"(a)\\1", "(?<n>a)\\k<n>"})
    EXPECT_THAT(error(pattern), HasSubstr("refers back to a group")) << pattern;
}

/// The previous library recursed once per character, so that a long pattern crashed the program.
TEST(Regex, NoPatternExhaustsTheStack) {
  for (const std::size_t length : {4096U, 60'000U, 5'000'000U})
    for (const char* piece : {"a", "(", "(?:", "[", "a|", "\\(", "(?<a>"}) {
      std::string pattern;
      while (pattern.size() < length) pattern += piece;
      pattern.resize(length);
      const std::string why = error(pattern);
      EXPECT_TRUE(length <= 4096 || why.find("the limit is 4096") != std::string::npos) << piece;
      EXPECT_LT(why.size(), 300U) << piece;
    }
}

TEST(Regex, CopiesAnEscapeAndAClassAsTheyAre) {
  const auto found = [](const char* pattern, const char* text) {
    const auto regex = Regex::compile(pattern);
    EXPECT_TRUE(regex) << pattern;
    return regex && regex->found_in(text);
  };
  EXPECT_TRUE(found("^[(?<=!]+$", "(?<=!"));
  EXPECT_FALSE(found("^[(?<]+$", "P"));
  EXPECT_FALSE(found("^[](?<]+$", "P"));
  EXPECT_FALSE(found("^[^[:digit:](?<]+$", "("));
  EXPECT_TRUE(found("^[^[:digit:](?<]+$", "P"));
  EXPECT_TRUE(found("^\\(\\?<$", "(?<"));
  EXPECT_TRUE(found("^\\Q(?<a\\E$", "(?<a"));
}

TEST(Regex, SearchesAnyBytes) {
  const auto regex = Regex::compile("a.*b");
  ASSERT_TRUE(regex);
  EXPECT_TRUE(regex->found_in("a\xff\xfe b"));
  EXPECT_TRUE(regex->found_in(std::string_view("a\0b", 3)));
}

TEST(Regex, NamesItsGroups) {
  const auto regex = Regex::compile("(?<used>[0-9]+)(x)(?P<free>y)?");
  ASSERT_TRUE(regex);
  EXPECT_EQ(regex->group_names(), (std::vector<std::string>{"used", "", "free"}));
  std::vector<std::string_view> groups;
  ASSERT_TRUE(regex->find("12x", groups));
  EXPECT_EQ(groups, (std::vector<std::string_view>{"12x", "12", "x", ""}));
  EXPECT_FALSE(regex->find("12", groups));
  EXPECT_TRUE(groups.empty());
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
