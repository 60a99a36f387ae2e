#include "explain/pattern.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "core/units.hpp"
#include "explain/reader.hpp"
#include "explain/statement.hpp"
#include "explain/wording.hpp"
#include "explain/words.hpp"
#include "paths.hpp"

namespace vramtrack::explain {
namespace {

Match matched(std::string_view pattern, std::string_view text) {
  const auto compiled = Pattern::compile(pattern);
  EXPECT_TRUE(compiled) << (compiled ? "" : compiled.error().message);
  Match match;
  GapSearches searches;
  EXPECT_TRUE(compiled && compiled->match(text, 0, match, searches)) << pattern << " on " << text;
  return match;
}

bool matches(std::string_view pattern, std::string_view text) {
  Match match;
  GapSearches searches;
  const auto compiled = Pattern::compile(pattern);
  return compiled && compiled->match(text, 0, match, searches);
}

double size_of(std::string_view text) {
  std::size_t at = 0;
  return read_size(text, at).value_or(-1);
}

TEST(Sizes, AreReadAsProgramsSpellThem) {
  EXPECT_DOUBLE_EQ(size_of("1.5 GiB"), 1.5 * kGiB);
  EXPECT_DOUBLE_EQ(size_of("21.95G of"), 21.95 * kGiB);
  EXPECT_DOUBLE_EQ(size_of("27.93GiB (rounded"), 27.93 * kGiB);
  EXPECT_DOUBLE_EQ(size_of("25,600,000 bytes"), 25'600'000);
  EXPECT_DOUBLE_EQ(size_of("1900,00 MiB"), 1900 * kMiB);
  EXPECT_DOUBLE_EQ(size_of("201. GiB for"), 201 * kGiB);
  EXPECT_DOUBLE_EQ(size_of("786432"), 786432);
  EXPECT_DOUBLE_EQ(size_of("4004bytes on gpu"), 4004);
  EXPECT_DOUBLE_EQ(size_of("6291456 bytes."), 6291456);
  EXPECT_DOUBLE_EQ(size_of("12 Gigs"), 12) << "no unit that is known";
  EXPECT_DOUBLE_EQ(size_of("x"), -1);
  EXPECT_DOUBLE_EQ(size_of("9999999999999999999999999"), -1) << "no number of any machine";
}

TEST(Pattern, EarlierSearchesChangeNoMatch) {
  const auto pattern = Pattern::compile("abc..xy...z{count}");
  ASSERT_TRUE(pattern);
  std::uint32_t random = 1;
  for (int round = 0; round < 200; ++round) {
    std::string text;
    while (text.size() < 2500) {
      random = random * 1664525 + 1013904223;
      static constexpr std::string_view kPieces[] = {"abc", "xy", "z7",        "z",
                                                     "\n",  "x",  ".........", "                    "};
      text += kPieces[(random >> 20) % (round % 2 == 0 ? 8 : 6)];
      if (round % 5 == 0 && random % 7 == 0) text.append(390, '-');
    }
    GapSearches searches;
    for (std::size_t at = text.find("abc"); at != std::string::npos; at = text.find("abc", at + 1)) {
      Match match;
      Match alone;
      GapSearches none;
      const bool is_match = pattern->match(text, at, match, searches);
      ASSERT_EQ(is_match, pattern->match(text, at, alone, none)) << at << " of " << text;
      if (is_match) {
        ASSERT_EQ(match.end, alone.end) << at << " of " << text;
      }
    }
  }
}

/// Each byte is examined once for all beginnings of a message, not once per beginning.
TEST(Pattern, BeginningsShareTheSearchOfAGap) {
  const auto pattern = Pattern::compile("abc..xy");
  ASSERT_TRUE(pattern);
  std::string text;
  while (text.size() < 100'000) text += "abc";
  GapSearches searches;
  for (std::size_t at = 0; at + kGapBytes < text.size(); at += 3) {
    Match match;
    EXPECT_FALSE(pattern->match(text, at, match, searches));
    ASSERT_EQ(searches.gaps[0].text.from, 3U) << at;  // it continued at the previous one's end
  }
}

TEST(Pattern, TakesFigures) {
  const Match match = matched("asked {asked} of {total:GiB} on {device}", "Asked 1 MiB of 2.5 on 3!");
  ASSERT_EQ(match.captured.size(), 3U);
  EXPECT_EQ(match.captured[0].figure, Figure::asked);
  EXPECT_DOUBLE_EQ(match.captured[0].value, kMiB);
  EXPECT_DOUBLE_EQ(match.captured[1].value, 2.5 * kGiB);
  EXPECT_DOUBLE_EQ(match.captured[2].value, 3);
  EXPECT_EQ(match.end, 23U);
}

TEST(Pattern, BlanksMayBeWrappedAndQuoted) {
  EXPECT_TRUE(matches("one two three", "one  two\r\n> | three"));
  EXPECT_TRUE(matches("one two three", "one two\n\xe2\x94\x82 three"));
  EXPECT_FALSE(matches("one two", "onetwo"));
  EXPECT_FALSE(matches("one two", "one > two")) << "a quote mark stands at the begin of a line";
}

TEST(Pattern, GapsAreBounded) {
  EXPECT_TRUE(matches("from..to", "from here\tto"));
  EXPECT_FALSE(matches("from..to", "from\nto"));
  EXPECT_TRUE(matches("from...to", "from\nto"));
  EXPECT_TRUE(matches("from...to", "from" + std::string(kGapBytes, '-') + "to"));
  EXPECT_FALSE(matches("from...to", "from" + std::string(kGapBytes + 1, '-') + "to"));
}

TEST(Pattern, GroupsNeedNotBeThere) {
  EXPECT_EQ(matched("all[ {pid} held {other}]* end", "all 1 held 5 MiB 2 held 7 MiB end").captured.size(), 4U);
  EXPECT_EQ(matched("all[ {pid} held {other}]* end", "all end").captured.size(), 0U);
  EXPECT_EQ(matched("all[ {pid} held {other}] end", "all 1 held 5 MiB end").captured.size(), 2U);
}

TEST(Pattern, StandsAtTheLine) {
  const auto killed = Pattern::compile("^Killed$");
  ASSERT_TRUE(killed);
  Match match;
  GapSearches none;  // it has no gaps
  EXPECT_TRUE(killed->match("a\n  Killed \n", 4, match, none));
  EXPECT_FALSE(killed->match("x Killed", 2, match, none));
  EXPECT_FALSE(killed->match("Killed by me", 0, match, none));
}

TEST(Pattern, ErrorsNameTheFault) {
  EXPECT_EQ(Pattern::compile("abc {size}").error().message, "the wording \"abc {size}\": there is no figure size");
  EXPECT_FALSE(Pattern::compile("{asked} abc"));
  EXPECT_FALSE(Pattern::compile("abc [def"));
  EXPECT_FALSE(Pattern::compile("abc [d[e]f]"));
  EXPECT_FALSE(Pattern::compile("abc {asked:furlong}"));
  EXPECT_FALSE(Pattern::compile("abc {asked"));
}

TEST(Wordings, AreInTheManual) {
  std::ifstream in(source_dir() + "/docs/explain.md");
  const std::string manual{std::istreambuf_iterator<char>(in), {}};
  std::map<std::string_view, std::size_t> counts;
  for (const Wording& wording : wordings()) {
    if (wording.role == Role::device || wording.role == Role::host) ++counts[wording.program];
    if (wording.role == Role::frame) {
      EXPECT_NE(manual.find(fmt::format("\n| {} | ", wording.program)), std::string::npos) << wording.program;
    }
  }
  for (const ProgramMark& mark : marks()) ++counts[mark.wording.program];
  for (const auto& [program, count] : counts)
    EXPECT_NE(manual.find(fmt::format("\n| {} | {} | ", program, count)), std::string::npos)
        << program << ": " << count << " wordings";
}

/// A message that matches `text`.
std::string sample_of(std::string text) {
  constexpr std::pair<std::string_view, std::string_view> kParts[] = {{"\\[", "("},
                                                                      {"]*", ""},
                                                                      {"]", ""},
                                                                      {"[", ""},
                                                                      {"...", " x "},
                                                                      {"..", " x "},
                                                                      {"^", ""},
                                                                      {"$", ""},
                                                                      {"{shape}", "[2,3]"},
                                                                      {"{element}", "int"},
                                                                      {"{count}", "3"},
                                                                      {"{pid}", "4711"},
                                                                      {"{device}", "0"},
                                                                      {"{fraction}", "0.9"},
                                                                      {"{tokens}", "4096"},
                                                                      {"{tokens_fit}", "2048"}};
  for (const auto& [mark, part] : kParts)
    for (std::size_t at = 0; (at = text.find(mark, at)) != std::string::npos; at += part.size())
      text.replace(at, mark.size(), part);
  for (std::size_t at = 0; (at = text.find('{')) != std::string::npos;) {
    const std::size_t end = text.find('}', at);
    const std::size_t colon = text.find(':', at);
    text.replace(at, end - at + 1, colon < end ? "12.50" : "12.50 GiB");
  }
  return text;
}

TEST(Wordings, FindNoFailureThatStructureDoesNot) {
  for (const Wording& wording : wordings())
    if (wording.role == Role::device || wording.role == Role::host || wording.role == Role::resource)
      for (const std::string_view text : texts_of(wording)) {
        const std::string sample = sample_of(std::string(text));
        EXPECT_TRUE(has_statement(lower(sample))) << wording.name << ": " << sample;
        EXPECT_FALSE(read_messages(sample + "\n").empty()) << wording.name << ": " << sample;
      }
}

TEST(Wordings, AllCompileAndHaveNamesOfTheirOwn) {
  std::set<std::string_view> names;
  for (const Wording& wording : wordings()) {
    for (const std::string_view text : texts_of(wording)) {
      const auto pattern = Pattern::compile(text);
      EXPECT_TRUE(pattern) << wording.name << ": " << (pattern ? "" : pattern.error().message);
    }
    EXPECT_TRUE(names.insert(wording.name).second) << wording.name;
    EXPECT_FALSE(wording.program.empty() || wording.versions.empty()) << wording.name;
  }
  for (const ProgramMark& mark : marks()) {
    EXPECT_TRUE(names.insert(mark.wording.name).second) << mark.wording.name;
    EXPECT_FALSE(mark.marks.empty() || !mark.wording.text.empty()) << mark.wording.name;
  }
  EXPECT_GT(names.size(), 100U);
}

}  // namespace
}  // namespace vramtrack::explain
