#include "core/tzif.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace vramtrack {
namespace {

std::string big_endian(std::int64_t value, int bytes) {
  std::string out;
  for (int i = bytes - 1; i >= 0; --i) out.push_back(static_cast<char>(value >> (8 * i) & 0xff));
  return out;
}

/// A TZif file, version 2: an empty 32-bit block, then `changes` (UTC second, index into `offsets_s`) and the rule.
std::string tzif(const std::vector<std::pair<std::int64_t, int>>& changes, const std::vector<int>& offsets_s,
                 const std::string& rule) {
  const auto header = [](std::size_t times, std::size_t types) {
    return "TZif2" + std::string(15, '\0') + std::string(12, '\0') + big_endian(static_cast<std::int64_t>(times), 4) +
           big_endian(static_cast<std::int64_t>(types), 4) + big_endian(4, 4);
  };
  std::string out = header(0, 1) + std::string(6, '\0') + std::string("UTC\0", 4);
  out += header(changes.size(), offsets_s.size());
  for (const auto& change : changes) out += big_endian(change.first, 8);
  for (const auto& change : changes) out.push_back(static_cast<char>(change.second));
  for (const int offset_s : offsets_s) out += big_endian(offset_s, 4) + std::string(2, '\0');
  return out + std::string("UTC\0", 4) + "\n" + rule + "\n";
}

TimeZone zone_of(const std::string& rule) {
  auto zone = TimeZone::parse(tzif({}, {0}, rule));
  EXPECT_TRUE(zone.has_value()) << rule;
  return zone ? *zone : TimeZone{};
}

constexpr std::int64_t kNoon20260701 = 1782907200;
constexpr std::int64_t kNoon20260101 = 1767268800;

TEST(TimeZone, RuleOfCentralEurope) {
  const TimeZone zone = zone_of("CET-1CEST,M3.5.0,M10.5.0/3");
  EXPECT_EQ(zone.at(kNoon20260101).offset_s, 3600);
  const TimeZone::Span summer = zone.at(kNoon20260701);
  EXPECT_EQ(summer.offset_s, 7200);
  EXPECT_EQ(summer.begin_s, 1774746000);  // 2026-03-29T01:00:00Z
  EXPECT_EQ(summer.end_s, 1792890000);    // 2026-10-25T01:00:00Z
  EXPECT_EQ(zone.at(summer.begin_s - 1).offset_s, 3600);
  EXPECT_EQ(zone.at(summer.end_s).offset_s, 3600);
}

TEST(TimeZone, SouthOfTheEquatorSummerSpansTheNewYear) {
  const TimeZone zone = zone_of("AEST-10AEDT,M10.1.0,M4.1.0/3");
  EXPECT_EQ(zone.at(kNoon20260101).offset_s, 11 * 3600);
  EXPECT_EQ(zone.at(kNoon20260701).offset_s, 10 * 3600);
}

TEST(TimeZone, AChangeInFebruaryIsInItsOwnYear) {  // Brazil until 2019
  const TimeZone::Span summer = zone_of("<-03>3<-02>,M10.3.0/0,M2.3.0/0").at(kNoon20260101);
  EXPECT_EQ(summer.offset_s, -2 * 3600);
  EXPECT_EQ(summer.begin_s, 1760842800);  // 2025-10-19T03:00:00Z
  EXPECT_EQ(summer.end_s, 1771120800);    // 2026-02-15T02:00:00Z
}

TEST(TimeZone, RulesWithoutSummerAndWithOddOffsets) {
  EXPECT_EQ(zone_of("<+0530>-5:30").at(kNoon20260101).offset_s, 19800);
  EXPECT_EQ(zone_of("NST3:30NDT,M3.2.0,M11.1.0").at(kNoon20260101).offset_s, -12600);
  EXPECT_EQ(zone_of("NST3:30NDT,M3.2.0,M11.1.0").at(kNoon20260701).offset_s, -9000);
}

TEST(TimeZone, DayOfYearRulesCountLeapDaysAsTheirKindSays) {
  // J60 is always 1 March; 59 is 1 March in common years and 29 February in leap years.
  constexpr std::int64_t k20280229 = 1835395200;
  constexpr std::int64_t k20280301 = k20280229 + 86400;
  EXPECT_EQ(zone_of("AAA0BBB,J60/0,J300/0").at(k20280301).begin_s, k20280301);
  EXPECT_EQ(zone_of("AAA0BBB,59/0,300/0").at(k20280301).begin_s, k20280229);
}

TEST(TimeZone, TableComesBeforeRule) {
  auto zone = TimeZone::parse(tzif({{1000, 1}, {2000, 0}}, {600, 1200}, "XXX-1"));
  ASSERT_TRUE(zone.has_value());
  EXPECT_EQ(zone->at(-5).offset_s, 600);
  EXPECT_EQ(zone->at(1000).offset_s, 1200);
  EXPECT_EQ(zone->at(1000).end_s, 2000);
  EXPECT_EQ(zone->at(1999).offset_s, 1200);
  EXPECT_EQ(zone->at(5000).offset_s, 3600);
  EXPECT_EQ(zone->at(5000).begin_s, 2000);
}

TEST(TimeZone, AnswersAtTheEndsOfTime) {
  const TimeZone zone = zone_of("CET-1CEST,M3.5.0,M10.5.0/3");
  for (const std::int64_t second : {INT64_MIN, INT64_MAX, -TimeZone::kFarS, TimeZone::kFarS, std::int64_t{0}}) {
    const TimeZone::Span span = zone.at(second);
    EXPECT_LT(span.begin_s, span.end_s);
    EXPECT_TRUE(span.offset_s == 3600 || span.offset_s == 7200);
  }
}

TEST(TimeZone, EveryTruncationIsAnError) {
  const std::string whole = tzif({{1000, 1}, {2000, 0}}, {600, 1200}, "XXX-1");
  const std::size_t table_end = whole.size() - std::string("\nXXX-1\n").size();
  for (std::size_t size = 0; size < table_end; ++size) {
    const auto zone = TimeZone::parse(std::string_view(whole).substr(0, size));
    ASSERT_FALSE(zone.has_value()) << size;
    EXPECT_EQ(zone.error().message.rfind("byte ", 0), 0U) << zone.error().message;
  }
}

TEST(TimeZone, BrokenTablesAreErrors) {
  EXPECT_FALSE(TimeZone::parse(tzif({{2000, 0}, {1000, 0}}, {0}, "")).has_value()) << "not in order";
  EXPECT_FALSE(TimeZone::parse(tzif({{1000, 3}}, {0}, "")).has_value()) << "no such kind";
  EXPECT_FALSE(TimeZone::parse(tzif({}, {1'000'000}, "")).has_value()) << "offset out of range";
  for (const char* rule :
       {"CET", "CET-1CEST,M13.5.0,M10.5.0", "CET-1CEST,M3.5.0", "CET-1 ", "-1", "<>-1", "CET-1CEST,J0,J9"}) {
    EXPECT_FALSE(TimeZone::parse(tzif({}, {0}, rule)).has_value()) << rule;
  }
}

TEST(TimeZone, NamesStayBelowTheDatabase) {
  for (const char* name : {"", "/etc/passwd", "../../etc/passwd", "Europe/Nowhere", "Europe"}) {
    EXPECT_FALSE(TimeZone::load(name).has_value()) << name;
  }
}

}  // namespace
}  // namespace vramtrack
