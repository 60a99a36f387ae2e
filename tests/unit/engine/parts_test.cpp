// What a list of processes adds to the answer about a device: see parts.cpp.
#include <gmock/gmock.h>

#include <cmath>

#include "one_gpu.hpp"

namespace vramtrack {
namespace {

using ::testing::HasSubstr;

class Parts : public OneGpu {
 protected:
  /// When people were notified of the device's leak; nullopt: never.
  [[nodiscard]] std::optional<double> notified_s() const {
    for (const AlertChange& change : changes)
      if (change.news == AlertNews::raised && change.alert.finding.leak && change.alert.series == device_series)
        return seconds_between(at(0), change.alert.raised);
    return std::nullopt;
  }
};

/// Workers of 600 MiB come one after another and stay: none of them grows.
TEST_F(Parts, ProcessesThatPileUpAreALeakOfTheirDevice) {
  start();
  const SeriesId trainer = process(10, "python train.py");
  std::vector<std::pair<SeriesId, std::uint64_t>> all = {{trainer, 4 * kGiB}};
  double t = 0;
  for (; t < 8000; t += 10) {
    if (t > 1200 && std::fmod(t, 240) == 0)
      all.emplace_back(process(static_cast<std::uint32_t>(100 + all.size()), "python worker.py"), 600 * kMiB);
    std::uint64_t used = 400 * kMiB;
    for (const auto& [id, bytes] : all) used += bytes;
    if (used > 24 * kGiB) break;
    tick(t, used, all);
  }
  const auto when = notified_s();
  ASSERT_TRUE(when);
  EXPECT_LT(*when, t - 600);
  EXPECT_THAT(seen(device_series).verdict.finding.because, HasSubstr("processes like python worker.py"));
}

}  // namespace
}  // namespace vramtrack
