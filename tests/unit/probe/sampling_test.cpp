// Which allocations are recorded: all of them, until the rate exceeds what a program should have to bear.
#include "probe/sampling.hpp"

#include <gtest/gtest.h>

#include <cstdint>

namespace vramtrack::probe {
namespace {

constexpr std::uint64_t kWindowUs = 62'500;

/// The rate after `seconds` with `per_s` allocations of `bytes` each.
SamplingRate after(double seconds, double per_s, double bytes, SamplingRate rate = {},
                   double* recorded_per_s = nullptr) {
  double recorded = 0;
  double last = 0;
  const int windows = static_cast<int>(seconds * 1e6 / kWindowUs);
  for (int i = 0; i < windows; ++i) {
    const double made = per_s * kWindowUs / 1e6;
    const double share = rate.interval_bytes == 0 ? 1 : std::min(1.0, bytes / static_cast<double>(rate.interval_bytes));
    rate.after(static_cast<std::uint64_t>(made * share), static_cast<std::uint64_t>(made * bytes), kWindowUs);
    if (i >= windows / 2) last += made * share;
    recorded += made * share;
  }
  if (recorded_per_s != nullptr) *recorded_per_s = last / (seconds / 2);
  return rate;
}

TEST(Sampling, ASlowProgramIsRecordedWhole) {
  EXPECT_EQ(after(3600, 12'000, 1 << 20).interval_bytes, 0U);
}

TEST(Sampling, TheFirstStepsOfATrainingAreRecordedWhole) {
  EXPECT_EQ(after(1, 100'000, 1 << 20).interval_bytes, 0U) << "100,000 records are less than what is saved";
}

TEST(Sampling, AFastProgramIsBroughtToWhatItCanBear) {
  for (const double per_s : {20'000.0, 100'000.0, 1'000'000.0}) {
    double recorded_per_s = 0;
    EXPECT_GT(after(120, per_s, 4096, {}, &recorded_per_s).interval_bytes, 0U) << per_s;
    EXPECT_LT(recorded_per_s, 1.2 * kMostPerSecond) << per_s;
    EXPECT_GT(recorded_per_s, 0.2 * kMostPerSecond) << per_s;
  }
}

TEST(Sampling, AQuietProgramIsRecordedWholeAgain) {
  const SamplingRate fast = after(60, 200'000, 4096);
  ASSERT_GT(fast.interval_bytes, 0U);
  EXPECT_EQ(after(60, 1000, 4096, fast).interval_bytes, 0U);
}

}  // namespace
}  // namespace vramtrack::probe
