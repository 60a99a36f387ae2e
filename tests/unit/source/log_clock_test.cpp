// Finding the clock of a log that no title or date identifies.
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

/// `rows` readings of `used MiB`, half a minute apart, each a line from `line(time, number)`.
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

TEST(ClockColumn, IsFoundByTheSameRuleWithoutTitles) {
  const auto covered = [](auto row) {
    std::string text;
    for (int i = 0; i < 40; ++i) text += row(fmt::format("10:{:02}:{:02}", i / 2, i % 2 * 30), i) + "\n";
    const auto r = read_text(text);
    EXPECT_EQ(r.error, "");
    EXPECT_EQ(r.device("0").size(), 40U);
    return r.catalog->clock_is_relative ? -seconds_covered(r) : seconds_covered(r);
  };
  const double whole_s = 39 * 30;
  EXPECT_EQ(covered([](const std::string& time, int i) {
              return fmt::format("2026-03-01,{},{} MiB,24576 MiB", time, 4000 + i);
            }),
            whole_s)
      << "a date in a column of its own";
  EXPECT_EQ(covered([](const std::string& time, int i) {
              return fmt::format("{} MiB,24576 MiB,2026-03-01 {}", 4000 + i, time);
            }),
            whole_s);
  EXPECT_EQ(covered([](const std::string& time, int i) {
              return fmt::format("2026-03-01 {},2026-03-01 {},{} MiB", time, time, 4000 + i);
            }),
            whole_s)
      << "of the logger, and of the tool";
  EXPECT_EQ(covered([](const std::string&, int i) {
              return fmt::format("{},{} MiB,24576 MiB", 1'772'359'200 + 30 * i, 4000 + i);
            }),
            whole_s);
  EXPECT_LT(covered([](const std::string&, int i) { return fmt::format("{},25769803776", 5'000'000'000 + 1024 * i); }),
            0)
      << "amounts in bytes are no dates";
}

TEST(ClockColumn, ThatNeverGoesOnIsNotAClockWithoutTitles) {
  std::string text;
  for (int i = 0; i < 300; ++i) text += fmt::format("2026-03-01 09:00:00,{} MiB,24576 MiB\n", 4000 + i);
  const auto r = read_text(text);
  ASSERT_EQ(r.error, "");
  EXPECT_EQ(r.device("0").size(), 300U);
  EXPECT_GT(seconds_covered(r), 0) << "the readings are counted";
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
  EXPECT_THAT(r.error, HasSubstr("column 1 'when' and column 2 'stored' both hold times"));
}

/// Forty readings half a minute apart, as JSON lines with the members from `line(time, number)` before the memory.
template <class Line>
std::string objects(Line line) {
  std::string text;
  for (int i = 0; i < 40; ++i)
    text += fmt::format("{{{}, \"gpu_mem_used_mib\": {}}}\n",
                        line(fmt::format("2026-03-02 08:{:02}:{:02}", i / 2, i % 2 * 30), i), 1000 + i);
  return text;
}

TEST(ClockKey, IsFoundByItsValuesAsAColumnIs) {
  const auto r = read_text(objects([](const std::string& time, int i) {
    return fmt::format(R"("step": {}, "when": "{}", "launched": "2026-03-02 07:00:00")", i, time);
  }));
  ASSERT_EQ(r.error, "");
  EXPECT_EQ(seconds_covered(r), 39 * 30);
  EXPECT_FALSE(r.catalog->clock_is_relative);
}

TEST(ClockKey, TwoOfThemAreRefused) {
  const auto r = read_text(
      objects([](const std::string& time, int) { return fmt::format(R"("when": "{}", "stored": "{}")", time, time); }));
  EXPECT_THAT(r.error, HasSubstr("the key 'stored' and the key 'when' both hold times"));
}

TEST(Clock, OneRuleForEverySyntax) {
  struct Case {
    std::string_view what, first, second;
    double (*second_value)(int i);
    std::string_view step;  ///< the thing counted; empty: there is a time
  };
  const Case cases[] = {
      {"a duration is no clock", "step", "time_s", [](int i) { return 20.0 + i * i % 5; }, "step"},
      {"a clock beside a count is one", "step", "time_s", [](int i) { return 30.0 * i; }, ""},
      {"a count of epochs is none beside a time", "epoch", "elapsed_s", [](int i) { return 30.0 * i; }, ""},
  };
  for (const Case& c : cases) {
    std::string csv = fmt::format("{},{},gpu_mem_used_mib\n", c.first, c.second);
    std::string json;
    for (int i = 0; i < 40; ++i) {
      csv += fmt::format("{},{},{}\n", i, c.second_value(i), 1000 + i);
      json += fmt::format("{{\"{}\": {}, \"{}\": {}, \"gpu_mem_used_mib\": {}}}\n", c.first, i, c.second,
                          c.second_value(i), 1000 + i);
    }
    for (const std::string& text : {csv, json}) {
      SCOPED_TRACE(fmt::format("{}: {}", c.what, text.substr(0, 60)));
      const auto r = read_text(text);
      ASSERT_EQ(r.error, "");
      EXPECT_EQ(r.catalog->scale.step, c.step);
      if (c.step.empty()) {
        EXPECT_EQ(seconds_covered(r), 39 * 30);
      }
    }
  }
}

TEST(Clock, AnEpochInSecondsSince1970IsOneBesideSteps) {
  std::string csv = "epoch,step,gpu_mem_used_mib\n";
  for (int i = 0; i < 40; ++i) csv += fmt::format("{},{},{}\n", 1'772'359'200 + 30 * i, i, 1000 + i);
  const auto r = read_text(csv);
  ASSERT_EQ(r.error, "");
  EXPECT_EQ(seconds_covered(r), 39 * 30);
  EXPECT_FALSE(r.catalog->clock_is_relative);
}

TEST(Clock, StepsWithinEpochsGoOnInEverySyntax) {
  std::string csv = "epoch,step,gpu_mem_used_mib\n";
  std::string json;
  std::string text;
  for (int i = 0; i < 40; ++i) {
    csv += fmt::format("{},{},{}\n", i / 10, i % 10, 1000 + i);
    json += fmt::format("{{\"epoch\": {}, \"step\": {}, \"gpu_mem_used_mib\": {}}}\n", i / 10, i % 10, 1000 + i);
    text += fmt::format("epoch {} step {} gpu mem used {} MiB\n", i / 10, i % 10, 1000 + i);
  }
  for (const std::string& log : {csv, json, text}) {
    SCOPED_TRACE(log.substr(0, 60));
    const auto r = read_text(log);
    ASSERT_EQ(r.error, "");
    EXPECT_EQ(r.catalog->scale.step, "step");
    EXPECT_NEAR(seconds_covered(r), 39 * r.catalog->scale.step_s, 1e-6);
    EXPECT_TRUE(r.in_order());
  }
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
