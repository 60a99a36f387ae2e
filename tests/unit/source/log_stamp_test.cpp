// Times as written in logs, and time zones.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <chrono>

#include "source/log/recording.hpp"
#include "source/log/stamp.hpp"

namespace vramtrack {
namespace {

constexpr std::int64_t kNoon = 1'781'179'471;  // 2026-06-11T12:04:31Z

std::int64_t civil_s(std::string_view text, DateOrder order = DateOrder::month_first) {
  Civil civil;
  if (!read_civil(text, order, civil) || civil.length != text.size()) return -1;
  return civil.local_s - civil.offset_s.value_or(0);
}

TEST(ReadCivil, ReadsTheFormsThatToolsWrite) {
  EXPECT_EQ(civil_s("2026/06/11 12:04:31.269"), kNoon);
  EXPECT_EQ(civil_s("2026-06-11T12:04:31Z"), kNoon);
  EXPECT_EQ(civil_s("2026-06-11T14:04:31+02:00"), kNoon);
  EXPECT_EQ(civil_s("2026-06-11 07:34:31.5 -0430"), kNoon);
  EXPECT_EQ(civil_s("2026-06-11T12:04:31,250"), kNoon);
  EXPECT_EQ(civil_s("20260611 12:04:31"), kNoon);
  EXPECT_EQ(civil_s("06-11-2026 12:04:31"), kNoon);
  EXPECT_EQ(civil_s("6/11/2026 12:04:31 PM"), kNoon);
  EXPECT_EQ(civil_s("11.06.2026 12:04:31", DateOrder::day_first), kNoon);
  EXPECT_EQ(civil_s("Thu Jun 11 12:04:31 2026"), kNoon);
  EXPECT_EQ(civil_s("Thu Jun 11 12:04:31 PM EDT 2026"), kNoon);
  EXPECT_EQ(civil_s("Thu 11 Jun 2026 12:04:31 PM UTC"), kNoon);
  EXPECT_EQ(civil_s("2026-06-11T12:04"), kNoon - 31);
  for (const char* text : {"20260611-120431", "20260611T120431Z", "2026-06-11_12-04-31", "2026.06.11-12.04.31",
                           "2026-06-11 12h04m31s", "2026-06-11 12:04:31PM"})
    EXPECT_EQ(civil_s(text), kNoon) << text;
  EXPECT_EQ(civil_s("11/06/2026 12h04", DateOrder::day_first), kNoon - 31);
}

TEST(ReadCivil, RefusesWhatIsNoTime) {
  for (const char* text : {"", "x", "2026", "2026-13-01 00:00:00", "2026-02-30 00:00:00", "1960-01-01 00:00:00",
                           "12:61:00", "Thu Jun 11 2026", "99/99/2026 00:00:00", "2026-06-11 25:00:00"}) {
    Civil civil;
    const bool read = read_civil(text, DateOrder::month_first, civil) && civil.length == std::string_view(text).size();
    EXPECT_FALSE(read) << text;
  }
}

TEST(ReadCivil, RoundTripsEverySecond) {
  rc::check("a formatted time is read as itself", [] {
    const auto s = *rc::gen::inRange<std::int64_t>(0, 4'000'000'000);
    const std::chrono::sys_seconds time{std::chrono::seconds{s}};
    const auto day = std::chrono::floor<std::chrono::days>(time);
    const std::chrono::year_month_day ymd{day};
    const auto t = (time - day).count();
    const int y = static_cast<int>(ymd.year());
    const unsigned m = static_cast<unsigned>(ymd.month());
    const unsigned d = static_cast<unsigned>(ymd.day());
    const std::string clock = fmt::format("{:02}:{:02}:{:02}", t / 3600, t / 60 % 60, t % 60);
    RC_ASSERT(civil_s(fmt::format("{:04}/{:02}/{:02} {}", y, m, d, clock)) == s);
    RC_ASSERT(civil_s(fmt::format("{:02}-{:02}-{:04} {}", m, d, y, clock)) == s);
    RC_ASSERT(civil_s(fmt::format("{:02}.{:02}.{:04} {}", d, m, y, clock), DateOrder::day_first) == s);
  });
}

Zone zone(const std::string& name) {
  auto found = Zone::open(name);
  EXPECT_TRUE(found) << (found ? "" : found.error().message);
  return found ? *found : Zone{};
}

TEST(Zone, ConvertsSummerAndWinter) {
  Zone berlin = zone("Europe/Berlin");
  EXPECT_EQ(berlin.to_utc(kNoon, 0), kNoon - 7200);
  const std::int64_t january = 1'768'000'000;
  EXPECT_EQ(berlin.to_utc(january, 0), january - 3600);
  EXPECT_EQ(berlin.to_utc(kNoon, 0), kNoon - 7200);  // back again: the cache must not keep its state
}

TEST(Zone, TellsTheDoubledHourByWhatCameBefore) {
  // 2025-10-26 03:00 CEST -> 02:00 CET: 02:30 happens at 00:30Z and at 01:30Z.
  Zone berlin = zone("Europe/Berlin");
  const std::int64_t half_past_two = 1'761'445'800;
  EXPECT_EQ(berlin.to_utc(half_past_two, 0), half_past_two - 7200);
  EXPECT_EQ(berlin.to_utc(half_past_two, half_past_two - 7200 + 900), half_past_two - 3600);
}

TEST(Zone, ShiftsTheHourThatIsSkipped) {
  // 2025-03-30 02:00 CET -> 03:00 CEST: 02:30 does not occur and is read as 03:30 CEST.
  Zone berlin = zone("Europe/Berlin");
  const std::int64_t half_past_two = 1'743'301'800;
  EXPECT_EQ(berlin.to_utc(half_past_two, 0), half_past_two - 3600);
}

TEST(Zone, NamesAnUnknownZone) {
  const auto none = Zone::open("Europe/Nowhere");
  ASSERT_FALSE(none);
  EXPECT_NE(none.error().message.find("Europe/Nowhere"), std::string::npos);
}

struct Detected {
  StampReader reader;
  std::vector<std::string> warnings;
};

Detected detect(const std::vector<std::string_view>& samples, StampReader::Title title = {},
                const LogOptions& options = {}, const std::string& zone_name = "UTC") {
  Detected out;
  auto found = StampReader::detect(samples, title, options, zone(zone_name), out.warnings);
  EXPECT_TRUE(found) << (found ? "" : found.error().message);
  if (found) out.reader = *found;
  return out;
}

double seconds(StampReader& reader, std::string_view text) {
  Timestamp time;
  return reader.read(text, time) ? seconds_between(Timestamp{}, time) : -1;
}

TEST(StampReader, TellsDayFirstByAFieldAboveTwelve) {
  auto d = detect({"11/06/2026 12:04:31", "13/06/2026 12:04:31"});
  EXPECT_EQ(seconds(d.reader, "11/06/2026 12:04:31"), kNoon);
  EXPECT_TRUE(d.warnings.empty());
}

TEST(StampReader, TellsTheOrderByTheShorterRecording) {
  // Read month first, these are two minutes apart; day first, two months.
  auto d = detect({"03-11-2026 23:59:16", "03-12-2026 00:01:16"});
  EXPECT_TRUE(d.warnings.empty());
  EXPECT_EQ(seconds(d.reader, "03-12-2026 00:01:16") - seconds(d.reader, "03-11-2026 23:59:16"), 120);
}

TEST(StampReader, TakesMonthFirstOnATieAndSaysSo) {
  auto d = detect({"06-11-2026 12:04:31", "06-11-2026 12:04:32"});
  EXPECT_EQ(seconds(d.reader, "06-11-2026 12:04:31"), kNoon);
  ASSERT_EQ(d.warnings.size(), 1U);
  EXPECT_NE(d.warnings[0].find("month first"), std::string::npos);
}

TEST(StampReader, TellsEpochUnitsByTheirDigits) {
  for (const std::string_view text :
       {"1781179471", "1781179471000", "1781179471000000", "1781179471000000000", "1781179471.0"}) {
    auto d = detect({text});
    EXPECT_EQ(d.reader.kind(), StampReader::Kind::epoch) << text;
    EXPECT_EQ(seconds(d.reader, text), kNoon) << text;
    EXPECT_FALSE(d.reader.is_relative());
  }
}

TEST(StampReader, DottedDatesAreDayFirstUnlessTheyCannotBe) {
  auto january = detect({"05.01.2026 10:00:00", "05.01.2026 10:00:01"});
  EXPECT_EQ(seconds(january.reader, "05.01.2026 10:00:00"), 1'767'607'200);  // 2026-01-05T10:00:00Z
  EXPECT_TRUE(january.warnings.empty());
  auto dashed = detect({"05-01-2026 10:00:00", "05-01-2026 10:00:01"});
  EXPECT_EQ(seconds(dashed.reader, "05-01-2026 10:00:00"), 1'777'629'600);  // 2026-05-01T10:00:00Z
  // A field above 12 is unambiguous, and so is a recording that would otherwise take months.
  auto impossible = detect({"05.01.2026 10:00:00", "05.13.2026 10:00:01"});
  EXPECT_EQ(seconds(impossible.reader, "05.01.2026 10:00:00"), 1'777'629'600);
  auto shorter = detect({"05.01.2026 23:00:00", "05.02.2026 01:00:00", "05.03.2026 01:00:00"});
  EXPECT_EQ(seconds(shorter.reader, "05.01.2026 10:00:00"), 1'777'629'600);
}

TEST(StampReader, ReadsRelativeSecondsAndMilliseconds) {
  auto d = detect({"0.00", "30.25"});
  EXPECT_TRUE(d.reader.is_relative());
  EXPECT_DOUBLE_EQ(seconds(d.reader, "30.25"), 30.25);
  auto ms = detect({"0", "30250"}, {1'000'000, false});
  EXPECT_DOUBLE_EQ(seconds(ms.reader, "30250"), 30.25);
  LogOptions options;
  options.start = Timestamp{std::chrono::seconds{kNoon}};
  auto dated = detect({"0", "60"}, {}, options);
  EXPECT_FALSE(dated.reader.is_relative());
  EXPECT_EQ(seconds(dated.reader, "60"), kNoon + 60);
}

TEST(StampReader, CountsSamplesByTheInterval) {
  LogOptions options;
  options.interval_s = 5;
  auto d = detect({"0", "1", "2"}, {0, true}, options);
  EXPECT_EQ(seconds(d.reader, "2"), 10);
  EXPECT_TRUE(d.warnings.empty());
  auto assumed = detect({"0", "1", "2"}, {0, true});
  EXPECT_EQ(seconds(assumed.reader, "2") / assumed.reader.scale().step_s, 2) << "no figure of seconds is made up";
  EXPECT_EQ(assumed.reader.scale().step, "step");
  EXPECT_EQ(assumed.warnings.size(), 1U);
}

TEST(StampReader, CarriesTimesOfDayOverMidnight) {
  auto d = detect({"23:59:59", "00:00:01"});
  EXPECT_EQ(seconds(d.reader, "23:59:59"), 86'399);
  EXPECT_EQ(seconds(d.reader, "00:00:01"), 86'401);
  LogOptions options;
  options.start = Timestamp{std::chrono::seconds{kNoon}};
  auto dated = detect({"12:04:31"}, {}, options);
  EXPECT_EQ(seconds(dated.reader, "12:04:31"), kNoon);
}

TEST(StampReader, ItsFastPathAgreesWithItsSlowOne) {
  auto fast = detect({"2026/06/11 12:04:31.269"}, {}, {}, "Europe/Berlin");
  for (const char* text :
       {"2026/06/11 12:04:31.269", "2026/06/11 12:04:32", "2026/06/11 12:04:59.9", "2026/06/11 12:05:00.001"}) {
    auto slow = detect({text}, {}, {}, "Europe/Berlin");
    EXPECT_DOUBLE_EQ(seconds(fast.reader, text), seconds(slow.reader, text)) << text;
  }
  EXPECT_EQ(seconds(fast.reader, "2026/06/11 12:05:6x"), -1);
  EXPECT_EQ(seconds(fast.reader, "2026/06/11 12:05:30Z"), kNoon - 31 + 90);  // another suffix is parsed again
}

TEST(StampReader, FollowsTheClockThroughTheDoubledHour) {
  auto d = detect({"2025/10/26 02:40:00"}, {}, {}, "Europe/Berlin");
  const double before = seconds(d.reader, "2025/10/26 02:40:00");
  EXPECT_EQ(seconds(d.reader, "2025/10/26 02:59:59"), before + 1199);
  EXPECT_EQ(seconds(d.reader, "2025/10/26 02:00:00"), before + 1200);
  EXPECT_EQ(seconds(d.reader, "2025/10/26 02:20:00"), before + 2400);
  EXPECT_EQ(seconds(d.reader, "2025/10/26 02:40:00"), before + 3600);
  EXPECT_EQ(seconds(d.reader, "2025/10/26 03:00:00"), before + 4800);
}

}  // namespace
}  // namespace vramtrack
