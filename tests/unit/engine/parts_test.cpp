// The additional information from a list of processes about a device: see parts.cpp.
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

/// A process with its device's curve is listed less often than the device is read.
class ListedRarely : public Parts {
 protected:
  /// 4 GiB, and 4 MiB/s from a quarter of an hour on; the program is listed every `list_s`, beside `tenants` with 2 GiB
  /// each. Without `list_s`, no process is listed. Runs until `until_s`.
  void leak_beside(double list_s, int tenants, double until_s) {
    start();
    const SeriesId trainer = process(10, "python train.py");
    std::vector<SeriesId> others;
    for (int i = 0; i < tenants; ++i)
      others.push_back(process(static_cast<std::uint32_t>(20 + i), "python serve" + std::to_string(i) + ".py"));
    for (double t = 0; t <= until_s; ++t) {
      const std::uint64_t its = leak(t);
      // Their memory varies, for each at its own pace.
      const auto of_other = [&](std::size_t i) {
        return 2 * kGiB +
               static_cast<std::uint64_t>(100 * (1 + std::sin(t / (40.0 + 13 * static_cast<double>(i))))) * kMiB;
      };
      std::uint64_t used = 300 * kMiB + its;
      std::vector<std::pair<SeriesId, std::uint64_t>> listed = {{trainer, its}};
      for (std::size_t i = 0; i < others.size(); ++i) {
        used += of_other(i);
        listed.emplace_back(others[i], of_other(i));
      }
      if (list_s <= 0 || std::fmod(t, list_s) != 0) listed.clear();
      tick(t, used, listed);
    }
  }
};

TEST_F(ListedRarely, IsNotifiedOfAsItsDeviceAloneWouldBe) {
  for (const int tenants : {0, 3}) {
    changes.clear();
    leak_beside(0, tenants, 4000);
    const auto alone = notified_s();
    ASSERT_TRUE(alone) << tenants;
    for (const double list_s : {60.0, 300.0}) {
      changes.clear();
      leak_beside(list_s, tenants, 4000);
      const auto when = notified_s();
      ASSERT_TRUE(when) << tenants << ' ' << list_s;
      EXPECT_LE(*when, *alone + 60) << tenants << ' ' << list_s;
      const SeriesView& device = seen(device_series);
      ASSERT_TRUE(device.verdict.suspect);
      EXPECT_EQ(device.verdict.suspect->pid, 10U) << device.verdict.finding.because;
    }
  }
}

TEST_F(ListedRarely, AndItsDeviceTellOneStory) {
  leak_beside(300, 3, 4000);
  const SeriesView& device = seen(device_series);
  const SeriesView& trainer = seen(process(10, "python train.py"));
  EXPECT_TRUE(device.verdict.finding.leak);
  EXPECT_TRUE(trainer.verdict.finding.leak);
  EXPECT_EQ(device.verdict.severity, trainer.verdict.severity);
  EXPECT_EQ(device.verdict.finding.onset, trainer.verdict.finding.onset);
  EXPECT_EQ(device.verdict.finding.confidence, trainer.verdict.finding.confidence);
  EXPECT_NEAR(trainer.verdict.finding.growth_bytes_per_s.mid / kMiB, 4, 0.2);
  EXPECT_NEAR(seconds_between(at(900), *trainer.verdict.finding.onset), 0, 60);
  EXPECT_EQ(trainer.alerts.size(), 1U);
  EXPECT_EQ(device.alerts.size(), 1U);
  // None of the others does.
  EXPECT_FALSE(seen(process(20, "python serve0.py")).verdict.finding.leak);
}

/// The data about its run is kept after its end.
TEST_F(ListedRarely, KeepsItsGrowthAfterItsEnd) {
  leak_beside(300, 1, 4000);
  end_process(4001, 10);
  tick(4002, 300 * kMiB + 2 * kGiB);
  tick(4003, 300 * kMiB + 2 * kGiB);
  const SeriesView& trainer = seen(process(10, "python train.py"));
  ASSERT_TRUE(trainer.verdict.end);
  EXPECT_TRUE(trainer.verdict.finding.leak);
  ASSERT_TRUE(trainer.verdict.finding.onset);
  EXPECT_NEAR(seconds_between(at(900), *trainer.verdict.finding.onset), 0, 60);
  ASSERT_EQ(trainer.alerts.size(), 1U);
  EXPECT_EQ(trainer.alerts[0].ended, AlertEnd::process_ended);
}

/// A program that has run for an hour loads, beside a tenant, as its reads show.
TEST_F(ListedRarely, StaysALoadThatFactsExplain) {
  for (const bool knows : {false, true}) {
    changes.clear();
    start();
    const SeriesId tenant = process(20, "python serve.py");
    const SeriesId loads = process(10, "python tool.py");
    const SeriesId read = catalog.intern({Metric::process_read, "GPU-a", 10, 1010});
    for (double t = 0; t < 7200; ++t) {
      const auto loaded = static_cast<std::uint64_t>(std::clamp(t - 4200, 0.0, 2700.0) * 6) * kMiB;
      const std::uint64_t its = 1 * kGiB + loaded;
      std::vector<std::pair<SeriesId, std::uint64_t>> listed;
      if (std::fmod(t, 60) == 0) listed = {{tenant, 4 * kGiB}, {loads, its}};
      if (knows && std::fmod(t, 30) == 0) {
        Batch facts;
        facts.samples.push_back({at(t), read, 2 * kGiB + loaded});
        engine->ingest(facts);
      }
      tick(t, 300 * kMiB + 4 * kGiB + its, listed);
    }
    EXPECT_EQ(changes.empty(), knows);
    EXPECT_EQ(seen(loads).suspicions.empty() && seen(loads).alerts.empty(), knows);
  }
}

/// A job that arrives and loads for twenty minutes; its first listing shows little of it.
TEST_F(ListedRarely, MayLoadWhileItIsYoung) {
  for (const double list_s : {0.0, 60.0, 240.0}) {
    changes.clear();
    start();
    const SeriesId tenant = process(20, "python serve.py");
    const SeriesId job = process(10, "python job.py");
    for (double t = 0; t < 7200; ++t) {
      const bool is_there = t >= 3650;
      const std::uint64_t its =
          is_there ? 500 * kMiB + static_cast<std::uint64_t>(std::min(t - 3650, 1200.0) * 10) * kMiB : 0;
      std::vector<std::pair<SeriesId, std::uint64_t>> listed;
      if (list_s > 0 && std::fmod(t, list_s) == 0) {
        listed = {{tenant, 4 * kGiB}};
        if (is_there) listed.emplace_back(job, its);
      }
      tick(t, 300 * kMiB + 4 * kGiB + its, listed);
    }
    EXPECT_EQ(notified_s().has_value(), list_s == 0) << list_s;
  }
}

/// Two programs, neither of which makes up most of the growth: each is judged by its own curve.
TEST_F(ListedRarely, IsJudgedByItselfWhereItDoesNotExplainTheGrowth) {
  start();
  const SeriesId one = process(10, "python train.py");
  const SeriesId other = process(11, "python other.py");
  for (double t = 0; t < 3000; ++t) {
    const std::uint64_t its = leak(t) / 2;
    std::vector<std::pair<SeriesId, std::uint64_t>> listed;
    if (std::fmod(t, 300) == 0) listed = {{one, its}, {other, its}};
    tick(t, 300 * kMiB + 2 * its, listed);
  }
  EXPECT_FALSE(seen(one).verdict.finding.leak);
  EXPECT_FALSE(seen(other).verdict.finding.leak);
}

}  // namespace
}  // namespace vramtrack
