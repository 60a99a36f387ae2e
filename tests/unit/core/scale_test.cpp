#include "core/scale.hpp"

#include <gtest/gtest.h>

#include "core/format.hpp"
#include "core/units.hpp"

namespace vramtrack {
namespace {

Timestamp at(double seconds) {
  return Timestamp{} + from_seconds(seconds);
}

TEST(Scale, FiguresOfALogThatCountsStepsArePerStep) {
  Scale steps;
  steps.step = "step";
  steps.step_s = 0.6;  // 100 steps a minute of the axis
  const ScaleScope said_by(steps);
  EXPECT_EQ(format_rate(0.2 * kMiB), "+0.12 MiB/step");
  EXPECT_EQ(format_rate(0), "0 MiB/step");
  EXPECT_EQ(format_scaled_rate(0.2 * kMiB), "0.12 MiB/step");
  EXPECT_EQ(format_duration(60), "100 steps");
  EXPECT_EQ(format_duration(0.6), "1 step");
  EXPECT_EQ(format_span(600), "1,000 steps");
  EXPECT_EQ(format_eta({60, 120, 180}), "200 steps (100–300)");
  EXPECT_EQ(format_oom({60, 120, 180}), "out of memory in 200 steps (100–300)");
  EXPECT_EQ(format_moment(at(720), true), "step 1,200");
}

TEST(Scale, TimesOfDayAreSaidAsSuch) {
  Scale day;
  day.is_time_of_day = true;
  day.begins_s = 13 * 3600 + 25 * 60;
  const ScaleScope said_by(day);
  EXPECT_EQ(format_moment(at(50), true), "13:25:50");
  EXPECT_EQ(format_moment(at(12 * 3600), true), "01:25:00 on day 2");
  EXPECT_EQ(format_duration(3600), "1h 00m");
}

TEST(Scale, AmountsOfAnUnknownUnitAreInTheLogsOwn) {
  Scale own;
  own.has_unit = false;
  own.unit_bytes = kGiB;
  const ScaleScope said_by(own);
  EXPECT_EQ(format_bytes(217 * kGiB), "217.0 (unit unknown)");
  EXPECT_EQ(format_rate(kGiB / 60), "+1.000 units/min");
}

TEST(Scale, ScopesNestAndEnd) {
  Scale outer;
  outer.step = "epoch";
  {
    const ScaleScope of_outer(outer);
    {
      const ScaleScope of_inner(Scale{});
      EXPECT_EQ(format_duration(60), "1m");
    }
    EXPECT_EQ(format_duration(60), "60 epochs");
  }
  EXPECT_EQ(scale(), Scale{});
}

}  // namespace
}  // namespace vramtrack
