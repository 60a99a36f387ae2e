#include "gate/marks.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace vramtrack::gate {
namespace {

TEST(Marks, LinesOfTheProtocol) {
  EXPECT_EQ(parse_mark("step"), (Mark{"step", std::nullopt, ""}));
  EXPECT_EQ(parse_mark("step 123"), (Mark{"step", 123.0, ""}));
  EXPECT_EQ(parse_mark("step 123 4242\r"), (Mark{"step", 123.0, "4242"}));
  for (const char* wrong : {"", " ", "step  1", "step x", "step -1", "step 1e9", "step 1 two words", "st\tep 1",
                            "step 99999999999999999999999"})
    EXPECT_EQ(parse_mark(wrong), std::nullopt) << wrong;
}

TEST(Marks, LinesMayComeInPieces) {
  MarkReader reader;
  EXPECT_TRUE(reader.read("st").empty());
  EXPECT_EQ(reader.read("ep 5\nnonsense here\nepoch\nste"),
            (std::vector<Mark>{{"step", 5.0, ""}, {"epoch", std::nullopt, ""}}));
  EXPECT_EQ(reader.skipped_lines(), 1u);
  EXPECT_EQ(reader.read("p\n").size(), 1u);
}

TEST(Marks, ALineWithoutEndIsForgottenAndTheNextOneIsRead) {
  MarkReader reader;
  for (int i = 0; i < 1000; ++i) EXPECT_TRUE(reader.read(std::string(100, 'x')).empty());
  EXPECT_EQ(reader.read("\nstep\n").size(), 1u);
  EXPECT_EQ(reader.skipped_lines(), 1u);
}

TEST(Marks, ALineMayHave512Bytes) {
  for (const std::size_t size : {512U, 513U}) {
    const std::string line = "step " + std::string(size - 6, '0') + '5';
    for (const std::size_t cut : {std::size_t{0}, std::size_t{300}, size}) {
      MarkReader reader;
      EXPECT_TRUE(reader.read(line.substr(0, cut)).empty());
      const std::vector<Mark> marks = reader.read(line.substr(cut) + "\nstep 6\n");
      EXPECT_EQ(marks.size(), size == 512 ? 2U : 1U) << size << " cut at " << cut;
      EXPECT_EQ(marks.back(), (Mark{"step", 6.0, ""}));
      EXPECT_EQ(reader.skipped_lines(), size == 512 ? 0U : 1U);
    }
  }
}

RC_GTEST_PROP(MarksProperties, HowTheBytesAreCutDoesNotMatter, ()) {
  const auto text = *rc::gen::container<std::string>(rc::gen::element('a', ' ', '1', '\n', '\r', '\0', 'z'));
  const auto cut = *rc::gen::inRange<std::size_t>(0, text.size() + 1);
  MarkReader whole;
  MarkReader pieces;
  auto expected = whole.read(text);
  auto found = pieces.read(text.substr(0, cut));
  for (Mark& mark : pieces.read(text.substr(cut))) found.push_back(std::move(mark));
  RC_ASSERT(found == expected);
  RC_ASSERT(whole.skipped_lines() == pieces.skipped_lines());
}

}  // namespace
}  // namespace vramtrack::gate
