#include "core/local_time.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <ctime>
#include <thread>

#include "core/format.hpp"

namespace vramtrack {
namespace {

using namespace std::chrono_literals;

constexpr Timestamp kWinter{std::chrono::sys_days{std::chrono::year{2026} / 1 / 2} + 3h + 4min + 5s};
constexpr Timestamp kSummer{std::chrono::sys_days{std::chrono::year{2026} / 7 / 2} + 23h};

/// Uses rules of its own, because the zone database may be missing.
class InBerlin {
 public:
  InBerlin() {
    if (const char* zone = std::getenv("TZ")) was_ = zone;
    ::setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3", 1);
    ::tzset();
  }
  ~InBerlin() {
    was_.empty() ? ::unsetenv("TZ") : ::setenv("TZ", was_.c_str(), 1);
    ::tzset();
  }

 private:
  std::string was_;
};

TEST(LocalTime, IsWrittenOnlyWhereAskedFor) {
  const InBerlin zone;
  EXPECT_EQ(format_moment(kWinter, false), "2026-01-02T03:04:05Z");
  EXPECT_EQ(zone_name(kWinter), "UTC");
  {
    const LocalTimes local(true);
    EXPECT_EQ(format_moment(kWinter, false), "2026-01-02 04:04:05");
    EXPECT_EQ(format_moment(kSummer, false), "2026-07-03 01:00:00");
    EXPECT_EQ(clock_time(kSummer), "2026-07-03T01:00:00");
    EXPECT_EQ(zone_name(kWinter), "CET");
    EXPECT_EQ(zone_name(kSummer), "CEST");
    EXPECT_EQ(format_moment(kWinter, true), format_moment(kWinter, true)) << "no date: nothing to convert";
    const LocalTimes within(false);
    EXPECT_TRUE(writes_local_times()) << "what is for people stays so";
    std::thread([] { EXPECT_EQ(format_moment(kWinter, false), "2026-01-02T03:04:05Z"); }).join();
  }
  EXPECT_EQ(format_moment(kWinter, false), "2026-01-02T03:04:05Z");
}

TEST(LocalTime, TheZoneIsNamedOnce) {
  const InBerlin zone;
  static_cast<void>(unnamed_zone());
  const LocalTimes local(true);
  static_cast<void>(format_moment(kWinter, false));
  const std::string first = unnamed_zone();
  EXPECT_TRUE(first.empty() || first == "times are local, CET (UTC+01:00)")
      << "another test may have had it: " << first;
  static_cast<void>(format_moment(kSummer, false));
  EXPECT_EQ(unnamed_zone(), "");
}

}  // namespace
}  // namespace vramtrack
