#include "core/printable.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace vramtrack {
namespace {

TEST(Printable, ControlCharactersBecomeQuestionMarks) {
  EXPECT_EQ(printable("a\033[31mb"), "a?[31mb");
  EXPECT_EQ(printable("\x7f\b\x1a"), "???");
  EXPECT_EQ(printable("\u0084\u009b31m"), "??31m") << "C1: a terminal takes U+009B for ESC [";
}

TEST(Printable, LineBreaksBecomeOneBlankEach) {
  EXPECT_EQ(printable("python -c import torch\n\n    while True:\r\n\tx()"), "python -c import torch while True: x()");
  EXPECT_EQ(printable("a \n"), "a ");
  EXPECT_EQ(printable("a\u2028b\u2029c\u0085d\v\fe"), "a b c d e");
  EXPECT_EQ(printable("a   b"), "a   b") << "blanks alone stay";
}

TEST(Printable, TextCannotTurnItsDirection) {
  EXPECT_EQ(printable("\u202Eexe.gpj \u2066x\u2069 \u200f\u061c"), "?exe.gpj ?x? ??");
}

TEST(Printable, BytesThatAreNoUtf8BecomeReplacementCharacters) {
  EXPECT_EQ(printable("\xff"), "\ufffd");
  EXPECT_EQ(printable("a\xe2\x82"), "a\ufffd\ufffd") << "cut short";
  EXPECT_EQ(printable("\xc0\xaf"), "\ufffd\ufffd") << "overlong";
  EXPECT_EQ(printable("\xed\xa0\x80"), "\ufffd\ufffd\ufffd") << "a surrogate";
  EXPECT_EQ(printable("\xf4\x90\x80\x80"), "\ufffd\ufffd\ufffd\ufffd") << "beyond Unicode";
}

TEST(Printable, OtherTextStays) {
  const std::string text = "R² 0.98 – ämne 東京 \U0001F600 …";
  EXPECT_EQ(printable(text), text);
  EXPECT_EQ(printable(""), "");
}

TEST(Printable, LinesKeepTheirBreaks) {
  EXPECT_EQ(printable_lines("a\tb\r\nc\r\x1b"), "a\tb\nc??");
}

TEST(Printable, JsonKeepsItsMeaning) {
  EXPECT_EQ(printable_json(R"({"a":"x\\u001b\n\u001b[0m\r\"\u00e4"})"), R"({"a":"x\\u001b\n?[0m?\"\u00e4"})");
  EXPECT_EQ(printable_json("[\"\u009b \xff \x7f\"]"), "[\"? \ufffd ?\"]");
}

TEST(PrintableProperty, AnyBytesBecomeCleanTextThatStays) {
  const bool ok = rc::check([](const std::string& bytes) {
    const std::string once = printable(bytes);
    RC_ASSERT(printable(once) == once);
    for (const char c : once) RC_ASSERT(static_cast<unsigned char>(c) >= 0x20 && c != 0x7f);
  });
  EXPECT_TRUE(ok);
}

}  // namespace
}  // namespace vramtrack
