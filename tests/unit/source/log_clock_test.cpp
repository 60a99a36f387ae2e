// Where the clock of a log is, when no title or date says so.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "log_testing.hpp"

namespace vramtrack {
namespace {

using logtest::Files;
using logtest::read_logs;
using logtest::read_text;
using testing::HasSubstr;
using testing::Not;

/// `rows` readings of `used MiB`, half a minute apart, each line by `line(time, number)`.
template <class Line>
std::string readings(const std::string& header, Line line) {
  std::string text = header + "\n";
  for (int i = 0; i < 40; ++i) text += line(fmt::format("08:{:02}:{:02}", i / 2, i % 2 * 30), i) + "\n";
  return text;
}

double seconds_covered(const logtest::Reading& r) {
  return r.samples.empty() ? 0 : seconds_between(r.samples.front().time, r.samples.back().time);
}

TEST(ClockColumn, IsFoundByItsValuesWhateverItsTitle) {
  for (const std::string title : {"when", "Zeit", "x", ""}) {
    const auto r = read_text(readings(title + ",gpu_index,used_mib", [](const std::string& time, int i) {
      return fmt::format("2026-03-02 {},0,{}", time, 1000 + i);
    }));
    ASSERT_EQ(r.error, "") << title;
    EXPECT_EQ(seconds_covered(r), 39 * 30) << title;
    EXPECT_THAT(r.warnings(), Not(HasSubstr("no clock"))) << title;
    EXPECT_FALSE(r.catalog->clock_is_relative) << title;
  }
}

TEST(ClockColumn, IsReadBesideACountOfSamplesAndAfterARepeatedHeader) {
  const std::string header = "step,when,gpu_index,used_mib";
  const auto line = [](const std::string& time, int i) {
    return fmt::format("{},2026-03-02 {},0,{}", i, time, 1000 + i);
  };
  const std::string text = readings(header, line);
  const auto r = read_text(text + header + "\n" + "40,2026-03-02 08:20:00,0,1040\n");
  ASSERT_EQ(r.error, "");
  EXPECT_EQ(seconds_covered(r), 40 * 30);
  EXPECT_EQ(r.notes.skipped_lines, 0U);
}

TEST(ClockColumn, PandasTitleOfAnIndexIsATitle) {
  const auto r = read_text(readings("Unnamed: 0,timestamp,gpu_index,used_mib", [](const std::string& time, int i) {
    return fmt::format("{},2026-03-02 {},0,{}", i, time, 1000 + i);
  }));
  ASSERT_EQ(r.error, "");
  EXPECT_EQ(seconds_covered(r), 39 * 30);
}

TEST(ClockColumn, TheTimeAtWhichARunBeganIsNone) {
  const auto r = read_text(readings("launched,gpu_index,used_mib", [](const std::string&, int i) {
    return fmt::format("2026-03-0{} 08:00:00,0,{}", i < 20 ? 1 : 2, 1000 + i);
  }));
  ASSERT_EQ(r.error, "");
  EXPECT_THAT(r.warnings(), HasSubstr("the log has no clock"));
}

TEST(ClockColumn, TheTimeThatIsLeftIsNone) {
  const auto r = read_text(readings("step,eta,gpu_index,used_mib", [](const std::string&, int i) {
    return fmt::format("{},01:{:02}:00,0,{}", i, 59 - i, 1000 + i);
  }));
  ASSERT_EQ(r.error, "");
  EXPECT_EQ(r.samples.front().bytes, 1000ULL << 20);
  EXPECT_NEAR(seconds_covered(r), 39 * r.catalog->scale.step_s, 1e-6) << "steps are counted, and no seconds";
  EXPECT_EQ(r.catalog->scale.step, "step");
}

TEST(ClockColumn, TwoOfThemAreRefused) {
  const auto r = read_text(readings("when,stored,gpu_index,used_mib", [](const std::string& time, int i) {
    return fmt::format("2026-03-02 {},2026-03-03 {},0,{}", time, time, 1000 + i);
  }));
  EXPECT_THAT(r.error, HasSubstr("columns 1 'when' and 2 'stored' both hold times"));
}

TEST(TimesOfDay, BeginAtZero) {
  const auto line = [](const std::string& time, int i) {
    return fmt::format("{} GPU Memory: {} / 24576 MB", time, 1000 + i);
  };
  const auto r = read_text(readings("training", line));
  ASSERT_EQ(r.error, "");
  EXPECT_TRUE(r.catalog->clock_is_relative);
  EXPECT_EQ(r.samples.front().time, Timestamp{});
  EXPECT_EQ(r.samples.back().time, Timestamp{std::chrono::seconds{39 * 30}});
}

TEST(TimesOfDay, OfLogsThatAreJoinedKeepTheirDistance) {
  Files files;
  const auto gpu = files.write("gpu.csv", "time,index,memory.used [MiB]\n10:00:10,0,500\n10:00:20,0,501\n");
  const auto apps =
      files.write("apps.csv", "time,index,pid,used_gpu_memory [MiB]\n10:00:00,0,7,400\n10:00:20,0,7,400\n");
  const auto r = read_logs({gpu, apps});
  ASSERT_EQ(r.error, "");
  EXPECT_EQ(r.device("0").front().first, 10);
  EXPECT_EQ(r.of(Metric::process_used, "0", 7).front().first, 0);
}

}  // namespace
}  // namespace vramtrack
