// Lifetimes through the engine: they confirm a leak early, rule out growth that is released, and are the reason shown.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "../detect/line_lifetimes.hpp"
#include "one_gpu.hpp"

namespace vramtrack {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class LifetimesOfAProcess : public OneGpu {
 protected:
  LifetimesOfAProcess() { catalog.processes_are_listed = true; }

  /// The allocations of train.py:57: as much as `bytes` rises by, of which the share left(age) is live.
  static SiteLifetimes line(double now, const std::function<double(double)>& rate,
                            const std::function<double(double)>& left) {
    return line_lifetimes("train.py:57 step", now, rate, left);
  }

  void tell(double t, SiteLifetimes site) {
    Batch batch;
    Event event;
    event.time = at(t);
    event.kind = Event::Kind::lifetimes;
    event.pid = 7;
    event.pid_start_ticks = 1007;
    event.sites = {std::move(site)};
    batch.events.push_back(std::move(event));
    engine->ingest(batch);
  }

  /// Feeds a process with memory `bytes(t)`, beside 1 GiB of another; returns the time of the first alert, or 0.
  double first_alert(const std::function<std::uint64_t(double)>& bytes, double until,
                     const std::function<SiteLifetimes(double)>& told) {
    start();
    memory = process(7, "python train.py");
    const SeriesId other = process(8, "other");
    changes.clear();
    for (int t = 0; t <= static_cast<int>(until); t += 2) {
      tick(t, bytes(t) + kGiB, {{memory, bytes(t)}, {other, kGiB}});
      if (told && t > 0 && t % 30 == 0) tell(t, told(t));
      if (!changes.empty()) return t;
    }
    return 0;
  }
  SeriesId memory{};
};

double leaks(double t) {
  return t > 900 ? 4.0 * kMiB : 0;
}
double stays(double) {
  return 1;
}

TEST_F(LifetimesOfAProcess, ConfirmALeakWithinMinutesAndAreTheReason) {
  const double alone = first_alert(leak, 5000, {});
  const double informed = first_alert(leak, 5000, [](double t) { return line(t, leaks, stays); });
  RecordProperty("alone_s", static_cast<int>(alone));
  RecordProperty("known_s", static_cast<int>(informed));
  EXPECT_GT(informed, 900);
  EXPECT_LE(informed, 900 + 480);
  EXPECT_TRUE(alone == 0 || informed < alone) << alone << ' ' << informed;
  ASSERT_FALSE(changes.empty());
  EXPECT_THAT(changes[0].alert.finding.because, HasSubstr("of what train.py:57 step allocated"));
  EXPECT_THAT(changes[0].alert.finding.because, HasSubstr("100 % is still live"));
  ASSERT_EQ(seen(memory).sites.size(), 1U);
  EXPECT_EQ(seen(memory).sites[0].site, "train.py:57 step");
  EXPECT_TRUE(seen(device_series).sites.empty());
}

/// Under `vramtrack run`, without a driver that lists processes.
TEST_F(LifetimesOfAProcess, AreOfWhatItsProbeSawToo) {
  process(7, "python train.py");
  const SeriesId probe = catalog.intern({Metric::probe_live, "GPU-a", 7, 1007});
  start();
  tick(0, 5 * kGiB, {{probe, kGiB}});
  tell(0, line(60, stays, stays));
  tick(2, 5 * kGiB, {{probe, kGiB}});
  ASSERT_EQ(seen(probe).sites.size(), 1U);
  EXPECT_EQ(seen(probe).sites[0].site, "train.py:57 step");
}

/// The same curve, for memory that is released after two minutes: more and more of it is in flight.
TEST_F(LifetimesOfAProcess, DenyWhatIsGivenBack) {
  const auto told = [](double t) {
    SiteLifetimes site = line(
        t, [](double at) { return at > 900 ? (at - 900) * kMiB / 30 : 0; },
        [](double age) { return age < 120 ? 1 : 0; });
    site.live_bytes = static_cast<double>(leak(t) - 4 * kGiB);
    return site;
  };
  EXPECT_EQ(first_alert(leak, 3000, told), 0);
  EXPECT_EQ(seen(memory).verdict.finding.stage, Stage::none);
  EXPECT_THAT(seen(memory).verdict.finding.because, HasSubstr("what is allocated is released"));
  EXPECT_THAT(seen(memory).verdict.finding.because, HasSubstr("0 % is still live"));
  EXPECT_EQ(seen(device_series).verdict.finding.stage, Stage::none);
}

TEST_F(LifetimesOfAProcess, EndAnAlertThatTheyContradict) {
  const double alone = first_alert(leak, 5000, [](double t) { return line(t, leaks, stays); });
  ASSERT_GT(alone, 0);
  changes.clear();
  SeriesId other = process(8, "other");
  const auto find_own = [&] {
    return std::find_if(changes.begin(), changes.end(),
                        [&](const AlertChange& change) { return change.alert.series == memory; });
  };
  for (int t = static_cast<int>(alone) + 2; t < 4800 && find_own() == changes.end(); t += 2) {
    tick(t, leak(t) + kGiB, {{memory, leak(t)}, {other, kGiB}});
    if (t % 30 != 0) continue;
    SiteLifetimes site = line(
        t, [](double at) { return at > 900 ? (at - 900) * kMiB / 30 : 0; },
        [](double age) { return age < 120 ? 1 : 0; });
    site.live_bytes = static_cast<double>(leak(t) - 4 * kGiB);
    tell(t, site);
  }
  const auto own = find_own();
  ASSERT_NE(own, changes.end());
  EXPECT_EQ(own->news, AlertNews::cleared);
  EXPECT_THAT(own->alert.end_reason, HasSubstr("what is allocated is released"));
}

TEST_F(LifetimesOfAProcess, OfLinesThatDoNotExplainTheRiseChangeNothing) {
  const double alone = first_alert(leak, 5000, {});
  const double beside = first_alert(leak, 5000, [](double t) {
    return line(
        t, [](double) { return 1e6; }, [](double age) { return age < 60 ? 1 : 0; });
  });
  EXPECT_EQ(alone, beside);
  if (!changes.empty()) {
    EXPECT_THAT(changes[0].alert.finding.because, Not(HasSubstr("train.py:57")));
  }
}

}  // namespace
}  // namespace vramtrack
