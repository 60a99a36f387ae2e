// The ticks of a time axis are round in the reader's time zone.
#include "report/time_ticks.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <ctime>

#include "core/local_time.hpp"

namespace vramtrack {
namespace {

using namespace std::chrono_literals;

/// 2026-01-05 08:10:00 UTC.
Timestamp begin() {
  return Timestamp{} + from_seconds(1767600600);
}

std::vector<std::string> labels(Timestamp from, Timestamp to, int most, bool relative = false) {
  const double step_s = time_step(seconds_between(from, to), kSecondsAndBytes, most);
  std::vector<std::string> out;
  for (const Timestamp tick : time_ticks(from, to, step_s))
    out.push_back(time_label(tick, step_s, relative, kSecondsAndBytes));
  return out;
}

TEST(TimeTicks, AreRoundAndAtMostAsManyAsAsked) {
  EXPECT_EQ(labels(begin(), begin() + 80min, 6),
            (std::vector<std::string>{"08:15", "08:30", "08:45", "09:00", "09:15", "09:30"}));
  EXPECT_EQ(labels(begin() + 7s, begin() + 70s, 5),
            (std::vector<std::string>{"08:10:15", "08:10:30", "08:10:45", "08:11:00"}));
  EXPECT_EQ(labels(begin(), begin() + 24h, 4), (std::vector<std::string>{"12:00", "18:00", "01-06", "06:00"}));
}

TEST(TimeTicks, AreRoundInTheZoneInWhichTheyAreWritten) {
  const char* const before = std::getenv("TZ");
  const std::string kept = before != nullptr ? before : "";
  ::setenv("TZ", "Asia/Kolkata", 1);  // five and a half hours ahead
  ::tzset();
  {
    const LocalTimes local(true);
    EXPECT_EQ(labels(begin(), begin() + 4h, 4), (std::vector<std::string>{"14:00", "15:00", "16:00", "17:00"}));
  }
  if (before != nullptr)
    ::setenv("TZ", kept.c_str(), 1);
  else
    ::unsetenv("TZ");
  ::tzset();
}

TEST(TimeTicks, OfAClockThatIsRelativeAreDurations) {
  EXPECT_EQ(labels(Timestamp{}, Timestamp{} + 60min, 4, true).at(1), "15m");
}

}  // namespace
}  // namespace vramtrack
