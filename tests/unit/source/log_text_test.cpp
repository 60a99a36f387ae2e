// Text for people: gpustat's, tables with columns separated by spaces, pairs of used and total memory, --line-pattern.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "log_testing.hpp"
#include "source/log/line_start.hpp"
#include "source/log/memory_words.hpp"

namespace vramtrack {
namespace {

using logtest::fixture;
using logtest::kReading_s;
using logtest::read_logs;
using logtest::read_text;
using logtest::utc;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;
using testing::SizeIs;

constexpr double kTen = 1'772'359'200;  // 2026-03-01T10:00:00Z

TEST(GpustatText, ReadsGpusAndProcesses) {
  const auto r = read_logs({fixture("gpustat.log")});
  ASSERT_EQ(r.error, "");
  EXPECT_THAT(r.formats, ElementsAre("gpustat-text"));
  EXPECT_THAT(r.device("0"), ElementsAre(Pair(kTen, 552), Pair(kTen + 1, 420)));
  EXPECT_EQ(r.catalog->device("1")->capacity_bytes, 12189ULL << 20);
  EXPECT_EQ(r.catalog->device("1")->name, "NVIDIA TITAN X (Pascal)");
  EXPECT_THAT(r.of(Metric::process_used, "0", 12795), ElementsAre(Pair(kTen, 132)));
  EXPECT_THAT(r.of(Metric::process_used, "1", 881), ElementsAre(Pair(kTen + 1, 631)));
  EXPECT_EQ(r.catalog->process(881, 0)->user, "bob");
  EXPECT_EQ(r.catalog->process(882, 0)->command, "ray::IDLE w");
  ASSERT_THAT(r.events, SizeIs(1));
  EXPECT_EQ(r.events[0].pid, 12795U);
  EXPECT_EQ(r.notes.skipped_lines, 0U);
}

TEST(GpustatText, CountsReadingsWithoutAHeaderAndSaysThatPidsAreMissing) {
  const auto r = read_text(
      "[0] A100 | 65'C,  75 % | 33409 / 40536 MB | along(33407M)\n[1] A100 | 65'C, ?? % |    ?? / 40536 MB | (Not "
      "Supported)\n[0] A100 | 65'C,  75 % | 33410 / 40536 MB | along(33407M)\n");
  ASSERT_EQ(r.error, "");
  EXPECT_THAT(r.device("0"), ElementsAre(Pair(0, 33409), Pair(kReading_s, 33410)));
  EXPECT_THAT(r.device("1"), SizeIs(0));
  EXPECT_THAT(r.warnings(), HasSubstr("gpustat -cp"));
}

TEST(Text, ReadsPairsBesideATime) {
  const auto r = read_logs({fixture("text.log")});
  ASSERT_EQ(r.error, "");
  EXPECT_THAT(r.formats, ElementsAre("text"));
  EXPECT_THAT(r.device("0"), ElementsAre(Pair(kTen + 1.104, 8123), Pair(kTen + 2.104, 8223), Pair(kTen + 3.104, 8323)));
  EXPECT_EQ(r.catalog->device("0")->capacity_bytes, 24576ULL << 20);
}

TEST(Text, AWordBehindATimeIsOfTheSentence) {
  for (const char* const words : {"GPU {}: used {}.5 GB", "cuda:{} mem {}.5GiB/24GiB", "GPU[{}] VRAM {}.5 / 24 GB"}) {
    std::string text;
    for (int i = 0; i < 8; ++i)
      text += fmt::format("2026-03-01 10:00:{:02} {}\n", i / 2, fmt::format(fmt::runtime(words), i % 2, 5 + i % 2));
    const auto r = read_text(text);
    ASSERT_EQ(r.error, "") << words;
    EXPECT_THAT(r.device("0"), SizeIs(4)) << words;
    EXPECT_EQ(r.device("1").back(), std::make_pair(kTen + 3, 6.5 * 1024)) << words;
  }
}

TEST(Text, TakesTheTimeFromALineBefore) {
  const auto r = read_text(
      "[2026-03-01 10:00:00] step 1\n  GPU 0: 1.0 / 24.0 GiB, GPU 1: 2.5GiB of 24GiB\n[2026-03-01 10:00:09] step 2\n  "
      "GPU 0: "
      "1.5 / 24.0 GiB, GPU 1: 2.5GiB of 24GiB\n");
  ASSERT_EQ(r.error, "");
  EXPECT_THAT(r.device("0"), ElementsAre(Pair(kTen, 1024), Pair(kTen + 9, 1536)));
  EXPECT_THAT(r.device("1"), ElementsAre(Pair(kTen, 2560), Pair(kTen + 9, 2560)));
}

TEST(Text, ReadsRowsGreppedFromTheTable) {
  std::string text;
  for (int i = 0; i < 5; ++i) {
    text += fmt::format("Sun Mar  1 10:00:{:02} UTC 2026\n", i);
    for (int gpu = 0; gpu < 2; ++gpu)
      text += fmt::format("| 30%   45C    P8    18W / 170W |   {}MiB / 12053MiB |      0%      Default |\n",
                          gpu == 0 ? 8000 + i : 300);
  }
  const auto r = read_text(text);
  ASSERT_EQ(r.error, "");
  EXPECT_THAT(r.device("0"), SizeIs(5));
  EXPECT_EQ(r.device("1").back(), std::make_pair(kTen + 4, 300.0));
  EXPECT_THAT(r.warnings(), HasSubstr("are assumed to be 2 GPUs"));
}

TEST(Text, SeveralGpusInTurnWithoutNamesOrTimesAreRefused) {
  std::string two;
  std::string one;
  for (int i = 0; i < 60; ++i) {
    one += fmt::format("Memory-Usage {}MiB / 12053MiB\n", 8000 + i);
    two += fmt::format("Memory-Usage {}MiB / 12053MiB\n", i % 2 == 0 ? 8000 + i : 300);
  }
  EXPECT_THAT(read_text(one).device("0"), SizeIs(60));
  EXPECT_THAT(read_text(two).error, HasSubstr("between 2 GPUs"));
}

TEST(Figures, PairsAreOfMemoryAndOfAGpu) {
  const auto find = [](std::string_view line) {
    LineFigures found;
    find_figures(line, found);
    std::erase_if(found.figures,
                  [](const MemoryFigure& f) { return f.role == Meaning::used || f.role == Meaning::peak; });
    return found.figures;
  };
  EXPECT_THAT(find("VRAM 8.1/24.0 GB"), SizeIs(1));
  EXPECT_EQ(find("gpu 8.1G/24G")[0].bytes(1), 24ULL << 30);
  EXPECT_EQ(find("cuda:3 mem 100MiB/200MiB")[0].gpu, 3);
  EXPECT_EQ(find("GPU[1] util 35 % memory 100/200 MB")[0].gpu, 1);
  EXPECT_EQ(find("memory 10/64 GB, GPU memory 8/24 GB")[0].bytes(1), 24ULL << 30);
  EXPECT_THAT(find("memory 10/64 GB, GPU memory 8/24 GB"), SizeIs(1));
  EXPECT_EQ(find("18W / 170W |   300MiB / 12053MiB |")[0].bytes(1), 12053ULL << 20);
  for (const std::string_view none :
       {"10.2/804.1 MB 50.5 MB/s eta 0:00:16", "GPU traffic 10 / 100 MB/s", "RAM 3 / 64 GB", "disk 5/10 GB",
        "Max Allocated / Max Reserved: 18706.66MB / 23816.00MB", "step 100/2000", "memory 30 / 20 GB", "memory 3/4",
        "GPU 1/2"})
    EXPECT_THAT(find(none), SizeIs(0)) << none;
}

TEST(LinePattern, ReadsWhatItNames) {
  LogOptions options = utc();
  options.line_pattern =
      R"(^\[(?<time>[^\]]+)\].* dev=(?<gpu>\d+) .*alloc (?P<used>[\d.]+)M of (?:about )?(?<total>\d+)M)";
  options.unit = "MiB";
  const auto r = read_text(
      "hello\n[2026-03-01 10:00:00] x dev=2 (alloc 10.5M of about 100M)\nnothing\n[2026-03-01 10:00:01] y dev=2 (alloc "
      "11M "
      "of 100M)\n",
      options);
  ASSERT_EQ(r.error, "");
  EXPECT_THAT(r.device("2"), ElementsAre(Pair(kTen, 10.5), Pair(kTen + 1, 11)));
  EXPECT_EQ(r.catalog->device("2")->capacity_bytes, 100ULL << 20);
  EXPECT_EQ(r.notes.skipped_lines, 0U);
}

TEST(LinePattern, ReadsProcessesAndTakesTheUnitItIsTold) {
  LogOptions options = utc();
  options.line_pattern = "pid (?<pid>[0-9]+) (?<name>[a-z]+) (?<used>[0-9]+)";
  options.unit = "GiB";
  const auto r = read_text("pid 7 train 2\npid 8 serve 3\npid 7 train 4\n", options);
  ASSERT_EQ(r.error, "");
  EXPECT_THAT(r.of(Metric::process_used, "0", 7), ElementsAre(Pair(0, 2048), Pair(60, 4096)));
  EXPECT_EQ(r.catalog->scale.step, "reading");
  EXPECT_EQ(r.catalog->process(8, 0)->name, "serve");
}

TEST(LinePattern, SaysWhatIsWrong) {
  const auto error = [](const std::string& pattern, const std::string& text = "x\n") {
    LogOptions options = utc();
    options.line_pattern = pattern;
    return read_text(text, options).error;
  };
  EXPECT_THAT(error("(?<used>[0-9]+"), HasSubstr("a parenthesis is not closed"));
  EXPECT_THAT(error("(?<used>[0-9]+)(?= MiB)"), HasSubstr("look-ahead"));
  EXPECT_THAT(error("(?<use>[0-9]+)"), HasSubstr("group 'use' is not known; the groups are time, step, used"));
  EXPECT_THAT(error("([0-9]+)"), HasSubstr("no group named used"));
  EXPECT_THAT(error("(?<used>[0-9]+)", "no number here\n"), HasSubstr("matches --line-pattern"));
}

std::string repeated(const std::string& text, int times) {
  std::string out;
  for (int i = 0; i < times; ++i) out += text;
  return out;
}

TEST(LinePattern, AnAlternativeThatTookNoPartSaysNothing) {
  LogOptions options = utc();
  options.line_pattern = "used (?<used>[0-9]+)|mem (?<used>[0-9]+)";
  options.unit = "MiB";
  EXPECT_THAT(read_text("used 7\nmem 8\nused 9\n", options).device("0"), SizeIs(3));
}

/// The previous library compiled the pattern suggested for such a line by recursion, which crashed the program.
TEST(LinePattern, ALineOfAnyLengthIsRefusedInFewWords) {
  for (const std::string& line :
       {"mem 1000 MiB " + std::string(60'000, 'a'), std::string(60'000, 'a') + " 1000 MiB",
        repeated("1000 MiB,", 20'000), repeated("1000 MiB a ", 300), std::string(1 << 20, '(')}) {
    const auto r = read_text(repeated(line + '\n', 4));
    EXPECT_LT(r.error.size(), 2000U) << line.substr(0, 20);
  }
}

TEST(FindStamp, FindsATimeAmongOtherWords) {
  EXPECT_EQ(find_stamp("node7  Sat Jun 23 20:36:39 2018  390.48"), "Sat Jun 23 20:36:39 2018");
  EXPECT_EQ(find_stamp("Marvin says Sat Jun 23 20:36:39 2018"), "Sat Jun 23 20:36:39 2018");
  EXPECT_EQ(find_stamp("[2026-03-01 10:00:00,104] [INFO] x"), "2026-03-01 10:00:00,104");
  EXPECT_EQ(find_stamp("at 10:00:07 it was"), "10:00:07");
  EXPECT_EQ(find_stamp("1772359200.5 gpu 3"), "1772359200.5");
  EXPECT_EQ(find_stamp("2026-03-01 10:00:00 GPU 1: used 5 GB"), "2026-03-01 10:00:00");
  EXPECT_EQ(find_stamp("2026-03-01 10:00:00 UTC used 5 GB"), "2026-03-01 10:00:00 UTC");
  EXPECT_EQ(find_stamp("03/01/2026 10:00:00 PM used 5 GB"), "03/01/2026 10:00:00 PM");
  EXPECT_EQ(find_stamp("step 12 of 100, 3:1 odds, 10.0.0.1"), "");
  constexpr std::string_view kBuilt =
      "Python version: 3.12.11 (main, Aug 18 2025, 19:17:54) [MSC v.1944 64 bit (AMD64)]";
  EXPECT_EQ(find_stamp(kBuilt), "");
  EXPECT_EQ(find_stamp("readings (taken 2026-03-01 10:00:00)"), "2026-03-01 10:00:00");
}

TEST(Spaced, ReadsColumnsSetApartBySpaces) {
  const auto r = read_logs({fixture("spaced.log")});
  ASSERT_EQ(r.error, "");
  EXPECT_THAT(r.formats, ElementsAre("spaced"));
  EXPECT_THAT(r.device("0"), ElementsAre(Pair(kTen, 8123), Pair(kTen + 1, 8223)));
  EXPECT_THAT(r.device("1"), SizeIs(2));
  EXPECT_EQ(r.catalog->device("1")->capacity_bytes, 24576ULL << 20);
}

TEST(Spaced, ReadsSingleSpacesAndDatesOfSeveralWords) {
  const auto r = read_text(
      "timestamp gpu used total\nSun Mar  1 10:00:00 UTC 2026 0 8123 MiB 24576 MiB\nSun Mar  1 10:00:01 UTC 2026 0 "
      "8124 "
      "MiB 24576 MiB\n");
  ASSERT_EQ(r.error, "");
  EXPECT_THAT(r.device("0"), ElementsAre(Pair(kTen, 8123), Pair(kTen + 1, 8124)));
}

TEST(Spaced, ReadsDateAndTimeUnderTitlesOfTheirOwn) {
  const auto r = read_text("Date Time GPU Used Total\n2026-03-01 10:00:00 0 5 10\n2026-03-01 10:00:01 0 6 10\n");
  ASSERT_EQ(r.error, "");
  EXPECT_THAT(r.device("0"), ElementsAre(Pair(kTen, 5), Pair(kTen + 1, 6)));
}

TEST(Text, TwoLinesThatGiveOneAmountInTwoUnitsAreOneReading) {
  std::string text;
  for (int i = 0; i < 6; ++i)
    text += fmt::format(
        "2026-03-01 10:00:0{0} free GPU memory is {1}M\n2026-03-01 10:00:0{0} free GPU memory in bytes: {2} bytes\n", i,
        448 - i, (448LL - i) << 20);
  const auto r = read_text(text);
  ASSERT_EQ(r.error, "");
  EXPECT_EQ(r.series(), 1U);
  EXPECT_EQ(r.device("0").back().second - r.device("0").front().second, 5);
}

TEST(Spaced, AUnitMayLackItsB) {
  const auto r = read_text("time,used,total\n2026-03-01 10:00:00,1.5Gi,24Gi\n2026-03-01 10:00:01,2Gi,24Gi\n");
  EXPECT_THAT(r.device("0"), ElementsAre(Pair(kTen, 1536), Pair(kTen + 1, 2048)));
}

TEST(Spaced, ATableWithNamesOfRowsIsRefused) {
  // the output of free -m -s 1
  EXPECT_NE(read_text("       total  used  free\nMem:  64000  1000 63000\nMem:  64000  1000 63000\n").error, "");
  EXPECT_NE(read_text("       total  used  free\nMem:  64000  1000  63000\nMem:  64000  1000  63000\n").error, "");
}

}  // namespace
}  // namespace vramtrack
