#include "core/format.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cmath>
#include <limits>

#include "core/units.hpp"

namespace vramtrack {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

TEST(Format, Bytes) {
  EXPECT_EQ(format_bytes(0.0), "0 MiB");
  EXPECT_EQ(format_bytes(512 * kMiB), "512 MiB");
  EXPECT_EQ(format_bytes(12.25 * 1024 * kMiB), "12.2 GiB");
  EXPECT_EQ(format_bytes_of(12 * 1024 * kMiB, 24 * 1024 * kMiB), "12.0/24.0 GiB");
  EXPECT_EQ(format_bytes_of(100 * kMiB, 512 * kMiB), "100/512 MiB");
}

TEST(Format, SizesOfAnyOrderHaveOneDigit) {
  EXPECT_EQ(format_size(std::uint64_t{0}), "0 bytes");
  EXPECT_EQ(format_size(std::uint64_t{1}), "1 byte");
  EXPECT_EQ(format_size(std::uint64_t{1023}), "1023 bytes");
  EXPECT_EQ(format_size(kBytesPerMiB), "1.0 MiB");
  EXPECT_EQ(format_size(kBytesPerMiB - 1), "1.0 MiB") << "not 1024.0 KiB";
  EXPECT_EQ(format_size(kBytesPerGiB - 1), "1.0 GiB");
  EXPECT_EQ(format_size(UINT64_MAX), "16777216.0 TiB");
  EXPECT_EQ(format_size(INT64_MIN), "-8388608.0 TiB");
  EXPECT_EQ(format_change(-1536), "-1.5 KiB");
  EXPECT_EQ(format_change(1536), "+1.5 KiB");
  EXPECT_EQ(format_change(0), "0 bytes");
}

TEST(Format, GrowthIsPerIteration) {
  EXPECT_EQ(format_growth(0), "0 MiB/iteration");
  EXPECT_EQ(format_growth(0.4), "0 MiB/iteration");
  EXPECT_EQ(format_growth(512), "0.5 KiB/iteration");
  EXPECT_EQ(format_growth(0.31 * kMiB), "0.31 MiB/iteration");
  EXPECT_EQ(format_growth(-2.5 * kMiB), "-2.50 MiB/iteration");
  EXPECT_EQ(format_growth(1.5 * kGiB), "1.50 GiB/iteration");
  EXPECT_EQ(format_growth(kInf), "0 MiB/iteration");
}

TEST(Format, CountsHaveCommasAndPlurals) {
  EXPECT_EQ(format_number(0), "0");
  EXPECT_EQ(format_number(123), "123");
  EXPECT_EQ(format_number(1000), "1,000");
  EXPECT_EQ(format_number(1234567), "1,234,567");
  EXPECT_EQ(format_count(1, "site"), "1 site");
  EXPECT_EQ(format_count(0, "site"), "0 sites");
  EXPECT_EQ(format_count(12345, "site"), "12,345 sites");
}

TEST(Format, RatesArePerMinuteAndSigned) {
  EXPECT_EQ(format_rate(12.4 * kMiB / 60), "+12.4 MiB/min");
  EXPECT_EQ(format_rate(-0.3 * kMiB / 60), "-0.30 MiB/min");
  EXPECT_EQ(format_rate(0), "0 MiB/min");
  EXPECT_EQ(format_rate(0.001 * kMiB / 60), "0 MiB/min");
  EXPECT_EQ(format_rate(200 * kMiB / 60), "+200 MiB/min");
  EXPECT_EQ(format_rate(-17 * kGiB / 60), "-17.0 GiB/min");
  EXPECT_EQ(format_rate(Interval{12 * kGiB / 60, 17 * kGiB / 60, 21 * kGiB / 60}), "+17.0 GiB/min (12.0 to 21.0)");
  EXPECT_EQ(format_rate(Interval{48 * kMiB / 60, 50 * kMiB / 60, 52.3 * kMiB / 60}), "+50.0 MiB/min (48.0 to 52.3)");
  EXPECT_EQ(format_rate(Interval{}), "0 MiB/min");
}

TEST(Format, DurationsNeverShowSixtyOfAnything) {
  EXPECT_EQ(format_duration(0), "0s");
  EXPECT_EQ(format_duration(0.0001), "0s");
  EXPECT_EQ(format_duration(0.02), "20ms");
  EXPECT_EQ(format_duration(0.0996), "0.1s");
  EXPECT_EQ(format_duration(0.25), "0.2s");
  EXPECT_EQ(format_duration(45.2), "45s");
  EXPECT_EQ(format_duration(59.6), "1m");
  EXPECT_EQ(format_duration(38 * 60), "38m");
  EXPECT_EQ(format_duration(3599), "1h 00m");
  EXPECT_EQ(format_duration(3900), "1h 05m");
  EXPECT_EQ(format_duration(47.9 * 3600), "47h 54m");
  EXPECT_EQ(format_duration(76 * 3600), "3d 04h");
  EXPECT_EQ(format_duration(kInf), "over 10 years");
}

TEST(Format, TheEndThatIsHereIsNow) {
  EXPECT_EQ(format_oom({2280, 2820, 3900}), "out of memory in 0h 47m (38m–1h 05m)");
  EXPECT_EQ(format_oom({0, 0.4, 90}), "out of memory now");
  EXPECT_EQ(format_oom({0, 1, 2}), "out of memory in 1s (0s–2s)");
}

TEST(Format, EtaShowsTheMiddleAndTheBounds) {
  EXPECT_EQ(format_eta({2280, 2820, 3900}), "0h 47m (38m–1h 05m)");
  EXPECT_EQ(format_eta({30, 45, 90}), "45s (30s–2m)");
  EXPECT_EQ(format_eta({7200, 7200, 7200}), "2h 00m");
}

TEST(Format, PercentIsNeverFalselyCertain) {
  EXPECT_EQ(format_percent(0.97), "97 %");
  EXPECT_EQ(format_percent(0.004), "under 1 %");
  EXPECT_EQ(format_percent(0.9994), "over 99 %");
  EXPECT_EQ(format_percent(1), "100 %");
  EXPECT_EQ(format_percent(0), "0 %");
}

TEST(Format, MomentsAreDatesOnlyWhereTheClockIs) {
  EXPECT_EQ(format_moment(Timestamp{std::chrono::seconds{1767323045}}, false), "2026-01-02T03:04:05Z");
  EXPECT_EQ(format_moment(Timestamp{std::chrono::seconds{3907}}, true), "1h 05m 07s after the start");
}

TEST(Format, FitCountsCodePoints) {
  EXPECT_EQ(fit("R²", 4), "R²  ");
  EXPECT_EQ(fit("abcdef", 4), "abc…");
  EXPECT_EQ(fit("äöüß", 4), "äöüß");
  EXPECT_EQ(fit("äöüßx", 4), "äöü…");
  EXPECT_EQ(fit_right("7", 3), "  7");
}

TEST(FormatProperty, AnyDoubleGivesAFigure) {
  const bool ok = rc::check([](std::uint64_t bits) {
    double value = 0;
    static_assert(sizeof value == sizeof bits);
    __builtin_memcpy(&value, &bits, sizeof value);
    for (const double d : {value, kNan, kInf, -kInf}) {
      for (const std::string& text :
           {format_bytes(d), format_rate(d), format_duration(d), format_percent(d), format_r_squared(d),
            format_eta({d, d, d}), format_rate(Interval{d, d, d}), format_bytes_of(d, d)}) {
        RC_ASSERT(!text.empty());
        RC_ASSERT(text.find("nan") == std::string::npos);
        RC_ASSERT(text.find("inf") == std::string::npos);
      }
    }
  });
  EXPECT_TRUE(ok);
}

TEST(Format, ScaledRatesChooseTheirUnit) {
  EXPECT_EQ(format_scaled_rate(50.1 * kMiB / 60), "50.1 MiB/min");
  EXPECT_EQ(format_scaled_rate(1536 * kMiB / 60), "1.5 GiB/min");
  EXPECT_EQ(format_scaled_rate(0.2 * kMiB / 60), "12.0 MiB/h");
  EXPECT_EQ(format_scaled_rate(-0.2 * kMiB / 60), "-12.0 MiB/h");
  EXPECT_EQ(format_scaled_rate(0), "0.0 MiB/min");
  EXPECT_EQ(format_scaled_rate(kNan), "0.0 MiB/min");
}

TEST(Format, SpansUseAUnitFromTwoOfItOn) {
  EXPECT_EQ(format_span(45), "45 s");
  EXPECT_EQ(format_span(119), "119 s");
  EXPECT_EQ(format_span(120), "2 min");
  EXPECT_EQ(format_span(38 * 60), "38 min");
  EXPECT_EQ(format_span(2.5 * 3600), "2.5 h");
  EXPECT_EQ(format_span(3.1 * 86400), "3.1 d");
  EXPECT_EQ(format_span(kInf), "0 s");
}

}  // namespace
}  // namespace vramtrack
