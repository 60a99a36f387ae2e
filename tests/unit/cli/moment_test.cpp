#include "cli/moment.hpp"

#include <gmock/gmock.h>

#include "golden.hpp"

namespace vramtrack::cli {
namespace {

using ::testing::HasSubstr;
using namespace std::chrono_literals;

/// 2026-07-02T13:30:00Z, half past nine the same morning in New York.
constexpr Timestamp kNow{std::chrono::sys_days{std::chrono::year{2026} / 7 / 2} + 13h + 30min};

std::string moment(const std::string& text, const std::string& zone = "UTC") {
  const auto at = parse_moment("--since", text, zone, kNow);
  return at ? iso8601(*at) : at.error().message;
}

TEST(Moment, IsWrittenAsPeopleDo) {
  EXPECT_EQ(moment("now"), "2026-07-02T13:30:00Z");
  EXPECT_EQ(moment("today"), "2026-07-02T00:00:00Z");
  EXPECT_EQ(moment("yesterday"), "2026-07-01T00:00:00Z");
  EXPECT_EQ(moment("yesterday 14:30"), "2026-07-01T14:30:00Z");
  EXPECT_EQ(moment("14:30"), "2026-07-02T14:30:00Z");
  EXPECT_EQ(moment("2h"), "2026-07-02T11:30:00Z");
  EXPECT_EQ(moment("2 hours ago"), "2026-07-02T11:30:00Z");
  EXPECT_EQ(moment("1 week ago"), "2026-06-25T13:30:00Z");
  EXPECT_EQ(moment("2026-01-02"), "2026-01-02T00:00:00Z");
  EXPECT_EQ(moment("2026-01-02T03:04"), "2026-01-02T03:04:00Z");
  EXPECT_EQ(moment("2026-01-02 03:04:05+02:00"), "2026-01-02T01:04:05Z");
}

TEST(Moment, DaysAreThoseOfTheZone) {
  EXPECT_EQ(moment("today", "America/New_York"), "2026-07-02T04:00:00Z");
  EXPECT_EQ(moment("yesterday", "Asia/Tokyo"), "2026-06-30T15:00:00Z");
  EXPECT_EQ(moment("today 23:00", "Asia/Tokyo"), "2026-07-02T14:00:00Z");
  EXPECT_EQ(moment("2026-01-02T03:04", "America/New_York"), "2026-01-02T08:04:00Z");
  EXPECT_EQ(moment("2026-01-02T03:04Z", "America/New_York"), "2026-01-02T03:04:00Z");
}

TEST(Moment, ErrorsSayWhatIsATime) {
  for (const char* bad : {"", "tomorrow", "yesterday noon", "today 2026-01-02", "yesterdays", "ago", "2 parsecs ago"})
    EXPECT_THAT(moment(bad), HasSubstr("is not a time; ")) << bad;
  EXPECT_THAT(moment("30"), HasSubstr("'30' has no unit; "));
  expect_golden("words/cli/refused_moments.txt", moment("tomorrow") + '\n' + moment("30") + '\n');
}

TEST(Moment, APeriodBeginsBeforeItEnds) {
  const auto range = [](const std::string& since, const std::string& until, bool from_end = false) {
    return time_range({since, until}, "UTC", kNow, from_end);
  };
  EXPECT_EQ(iso8601(*range("2h", "").value().from), "2026-07-02T11:30:00Z");
  EXPECT_FALSE(range("2h", "").value().to);
  EXPECT_EQ(iso8601(*range("2h", "yesterday", true).value().from), "2026-06-30T22:00:00Z");
  EXPECT_EQ(range("1h", "2h").error().message, "--since must be before --until");
}

}  // namespace
}  // namespace vramtrack::cli
