#include "core/scale.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <regex>

#include "../at.hpp"
#include "core/units.hpp"
#include "core/verdict.hpp"
#include "paths.hpp"

namespace vramtrack {
namespace {

namespace fs = std::filesystem;

TEST(Scale, FiguresOfALogThatCountsStepsArePerStep) {
  Scale steps;
  steps.step = "step";
  steps.step_s = 0.6;  // 100 steps per minute on the axis
  EXPECT_EQ(steps.rate(0.2 * kMiB), "+0.12 MiB/step");
  EXPECT_EQ(steps.rate(0), "0 MiB/step");
  EXPECT_EQ(steps.scaled_rate(0.2 * kMiB), "0.12 MiB/step");
  EXPECT_EQ(steps.duration(60), "100 steps");
  EXPECT_EQ(steps.duration(0.6), "1 step");
  EXPECT_EQ(steps.span(600), "1,000 steps");
  EXPECT_EQ(steps.eta({60, 120, 180}), "200 steps (100–300)");
  EXPECT_EQ(steps.oom({60, 120, 180}), "out of memory in 200 steps (100–300)");
  EXPECT_EQ(steps.moment(at(720), true), "step 1,200");
}

TEST(Scale, TimesOfDayAreSaidAsSuch) {
  Scale day;
  day.is_time_of_day = true;
  day.begins_s = 13 * 3600 + 25 * 60;
  EXPECT_EQ(day.moment(at(50), true), "13:25:50");
  EXPECT_EQ(day.moment(at(12 * 3600), true), "01:25:00 on day 2");
  EXPECT_EQ(day.duration(3600), "1h 00m");
}

TEST(Scale, AmountsOfAnUnknownUnitAreInTheLogsOwn) {
  Scale own;
  own.count(AmountUnit::unknown, kGiB);
  EXPECT_EQ(own.bytes(217 * kGiB), "217.0 (unit unknown)");
  EXPECT_EQ(own.bytes_of(217 * kGiB, 512 * kGiB), "217.0/512.0 (unit unknown)");
  EXPECT_EQ(own.rate(kGiB / 60), "+1.000 units/min");
}

TEST(Scale, PercentagesStayPercentages) {
  Scale percent;
  percent.count_percent();
  const double one = Scale::kPercentBytes;
  EXPECT_EQ(percent.bytes(Scale::kWholeBytes), "100 %");
  EXPECT_EQ(percent.bytes(75.66 * one), "75.7 %");
  EXPECT_EQ(percent.bytes(0.42 * one), "0.42 %");
  EXPECT_EQ(percent.bytes(0.0), "0 %");
  EXPECT_EQ(percent.bytes_of(75.66 * one, 100 * one), "75.7 %");
  EXPECT_EQ(percent.rate(1.84 * one / 60), "+1.8 %/min");
  EXPECT_EQ(percent.rate(-0.02 * one / 60), "-0.020 %/min");
  EXPECT_EQ(percent.rate(1e-9 * one), "0 %/min");
  EXPECT_EQ(percent.rate({1.7 * one / 60, 1.84 * one / 60, 1.93 * one / 60}), "+1.8 %/min (1.7 to 1.9)");
  EXPECT_EQ(percent.rate({1.83 * one / 60, 1.84 * one / 60, 1.84 * one / 60}), "+1.8 %/min");
  EXPECT_EQ(percent.scaled_rate(1.84 * one / 60), "1.8 %/min");
  EXPECT_EQ(percent.scaled_rate(0.02 * one / 60), "1.2 %/h");
  EXPECT_EQ(percent.axis_unit(5 * one).name, "%");
  percent.step = "epoch";
  percent.step_s = 60;
  EXPECT_EQ(percent.rate(0.5 * one / 60), "+0.50 %/epoch");
}

TEST(Scale, SecondsAndBytesAreTheDefault) {
  EXPECT_EQ(kSecondsAndBytes.bytes(3 * kGiB), "3.0 GiB");
  EXPECT_EQ(kSecondsAndBytes.rate({10 * kMiB, 10 * kMiB, 10 * kMiB}), "+600 MiB/min");
  EXPECT_EQ(kSecondsAndBytes.duration(3900), "1h 05m");
  EXPECT_EQ(kSecondsAndBytes.span(3900), "65 min");
  EXPECT_EQ(kSecondsAndBytes.moment(at(3907), true), "1h 05m 07s after the start");
  EXPECT_EQ(kSecondsAndBytes.moment(at(3907), false), "1970-01-01T01:05:07Z");
}

/// Code that shows recordings writes their figures by their scale: the functions of core/format.hpp would take steps
/// for seconds, and nobody would notice before reading a log without a clock.
TEST(Scale, WhatShowsRecordingsWritesNoFigureWithoutIt) {
  const std::regex plain(R"(\bformat_(bytes|bytes_of|rate|scaled_rate|duration|span|eta|oom|moment)\()");
  std::size_t files = 0;
  for (const char* module : {"detect", "engine", "report", "period", "top"})
    for (const auto& entry : fs::recursive_directory_iterator(fs::path(source_dir()) / "src" / module)) {
      if (entry.path().extension() != ".cpp" && entry.path().extension() != ".hpp") continue;
      ++files;
      std::ifstream in(entry.path());
      std::string line;
      for (std::size_t number = 1; std::getline(in, line); ++number)
        EXPECT_FALSE(std::regex_search(line, plain))
            << entry.path() << ':' << number << ": use the function of the recording's Scale (View::scale, "
            << "Catalog::scale, PeriodReport::scale) in place of that of core/format.hpp";
    }
  EXPECT_GT(files, 200U) << "the sources were not found";
}

}  // namespace
}  // namespace vramtrack
