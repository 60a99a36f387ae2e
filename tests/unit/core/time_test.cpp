#include "core/time.hpp"

#include <gtest/gtest.h>

namespace vramtrack {
namespace {

TEST(Time, Iso8601GoesFromTheEarliestTimeToTheLatest) {
  EXPECT_EQ(iso8601(Timestamp::min()), "1677-09-21T00:12:43.145Z");
  EXPECT_EQ(iso8601(Timestamp::max()), "2262-04-11T23:47:16.854Z");
}

TEST(Time, Iso8601WritesMillisecondsOnlyWhenThereAreSome) {
  EXPECT_EQ(iso8601(Timestamp{}), "1970-01-01T00:00:00Z");
  EXPECT_EQ(iso8601(Timestamp{from_seconds(951868800.25)}), "2000-03-01T00:00:00.250Z");
}

TEST(Time, FromSecondsSaturatesInsteadOfOverflowing) {
  EXPECT_EQ(from_seconds(1.5), Duration{1'500'000'000});
  EXPECT_EQ(from_seconds(1e30), Duration::max());
  EXPECT_EQ(from_seconds(-1e30), Duration::min());
}

TEST(Time, ParsesDurations) {
  EXPECT_DOUBLE_EQ(*parse_duration_s("30"), 30);
  EXPECT_DOUBLE_EQ(*parse_duration_s("5min"), 300);
  EXPECT_DOUBLE_EQ(*parse_duration_s("1.5 h"), 5400);
  EXPECT_DOUBLE_EQ(*parse_duration_s("250ms"), 0.25);
  EXPECT_FALSE(parse_duration_s("-3s"));
  EXPECT_NE(parse_duration_s("5 parsecs").error().message.find("5 parsecs"), std::string::npos);
}

TEST(Time, ParsesSizes) {
  EXPECT_EQ(*parse_bytes("24GiB"), 24ULL << 30);
  EXPECT_EQ(*parse_bytes("24g"), 24ULL << 30);
  EXPECT_EQ(*parse_bytes("40 GB"), 40'000'000'000ULL);
  EXPECT_EQ(*parse_bytes("123"), 123ULL);
  EXPECT_FALSE(parse_bytes("many"));
  EXPECT_FALSE(parse_bytes("-1GiB"));
}

}  // namespace
}  // namespace vramtrack
