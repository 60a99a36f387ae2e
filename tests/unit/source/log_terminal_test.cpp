// Terminal output of programs, converted to text.
#include <gmock/gmock.h>

#include "log_testing.hpp"
#include "source/log/terminal_text.hpp"

namespace vramtrack {
namespace {

using logtest::fixture;
using logtest::read_logs;
using logtest::read_text;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;
using testing::SizeIs;

constexpr double kTen = 1'772'359'200;  // 2026-03-01T10:00:00Z

TEST(TerminalText, ReadsTheScreenThatWatchDraws) {
  const auto r = read_logs({fixture("watch_table.log")});
  ASSERT_EQ(r.error, "");
  EXPECT_THAT(r.formats, ElementsAre("table"));
  const double t = 1'795'325'364;  // 2026-11-22T05:29:24Z
  const std::string gpu = "00000000:01:00.0";
  EXPECT_THAT(r.device(gpu),
              ElementsAre(Pair(t, 7998), Pair(t + 1, 8000), Pair(t + 2, 8002), Pair(t + 3, 8004), Pair(t + 4, 8006)));
  EXPECT_THAT(r.of(Metric::process_used, gpu, 1234), SizeIs(5));
  EXPECT_EQ(r.notes.skipped_lines, 0U);
}

TEST(TerminalText, TakesColoursOutOfText) {
  std::ifstream file(fixture("gpustat.log"));
  std::string text;
  for (std::string line; std::getline(file, line);)
    text += "\x1b[1m\x1b[36m" + line.substr(0, 3) + "\x1b[0;10m" + line.substr(3) + "\x1b(B\x1b[m\n";
  const auto r = read_text(text);
  ASSERT_EQ(r.error, "");
  EXPECT_THAT(r.device("0"), ElementsAre(Pair(kTen, 552), Pair(kTen + 1, 420)));
}

TEST(TerminalText, IsTheSameHoweverItIsCut) {
  std::ifstream file(fixture("watch_table.log"), std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(file)), {});
  const auto show = [&](std::size_t stretch) {
    TerminalText terminal;
    terminal.keep_screen();
    std::string out;
    for (std::size_t i = 0; i < bytes.size(); i += stretch)
      terminal.feed(std::string_view(bytes).substr(i, stretch), out);
    terminal.finish(out);
    return out;
  };
  EXPECT_TRUE(TerminalText::draws_screen(bytes));
  EXPECT_FALSE(TerminalText::draws_screen("\x1b[H\x1b[2Jplain \x1b[31mtext"));
  EXPECT_EQ(show(1), show(bytes.size()));
  EXPECT_THAT(show(7), HasSubstr("8006MiB / 12053MiB"));
}

TEST(TerminalText, KeepsWithinItsBoundsWhateverItIsTold) {
  TerminalText terminal;
  terminal.keep_screen();
  std::string out;
  for (const char command : std::string_view("HfdABCDEFGJKXPLM@bSTrm`hlZ"))
    for (const std::string_view parameters : {"", "0", "1", "2", "7;9", "99999;99999", ";;", "?1049", "99999999999"}) {
      terminal.feed("x\x1b[" + std::string(parameters) + command + "y\n\b\t\xc3\xa9\x1bM\x1b]0;t\a", out);
      EXPECT_LT(out.size(), 100U << 20);
    }
  terminal.finish(out);
}

}  // namespace
}  // namespace vramtrack
