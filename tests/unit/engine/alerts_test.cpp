// The consequences of the decision to page: alerts, leaks that are only shown, and series near a full card.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "one_gpu.hpp"
#include "report/conclusion.hpp"
#include "scenario_run.hpp"

namespace vramtrack {
namespace {

using ::testing::HasSubstr;
class AlertsTest : public OneGpu {
 protected:
  [[nodiscard]] std::ptrdiff_t count(AlertNews news) const {
    return std::count_if(changes.begin(), changes.end(), [&](const AlertChange& c) { return c.news == news; });
  }
};

constexpr int kHour = 3600;

/// Six quiet hours at 4 GiB, then `mib_per_min` for `growing_s`, then level.
std::uint64_t grown(double t, double mib_per_min, double growing_s) {
  const double s = std::clamp(t - 6.0 * kHour, 0.0, growing_s);
  return 4 * kGiB + static_cast<std::uint64_t>(s / 60 * mib_per_min * static_cast<double>(kMiB));
}

TEST_F(AlertsTest, ALeakFarFromItsEndIsToldAndWakesNobody) {
  start();
  // 20 GiB at 32 MiB/min last 10 h 40 min.
  double t = 0;
  for (; t < 12 * kHour; t += 10) tick(t, grown(t, 32, 20 * kHour));
  EXPECT_TRUE(changes.empty());
  const SeriesView& far = seen(device_series);
  EXPECT_TRUE(far.verdict.finding.leak) << far.verdict.finding.because;
  EXPECT_EQ(far.verdict.finding.stage, Stage::confirmed);
  EXPECT_TRUE(has_leaked(*views.back())) << "the exit status is that of the verdict";
  EXPECT_TRUE(far.alerts.empty());
  ASSERT_EQ(far.suspicions.size(), 1U);
  EXPECT_TRUE(far.suspicions[0].finding.leak);
  EXPECT_TRUE(far.suspicions[0].paged_because.empty());
  EXPECT_THAT(far.paging, HasSubstr("an alert is raised when 60 min are left"));
  for (; changes.empty() && t < 17 * kHour; t += 10) tick(t, grown(t, 32, 20 * kHour));
  ASSERT_EQ(changes.size(), 1U);
  const Alert& alert = changes[0].alert;
  EXPECT_THAT(alert.paged_because, HasSubstr("lead-time is 1h 00m"));
  ASSERT_TRUE(alert.finding.oom_in_s);
  EXPECT_NEAR(alert.finding.oom_in_s->low, kHour, 120);
  const double end_s = (6 + 10 + 40.0 / 60) * kHour;
  EXPECT_GT(end_s - seconds_between(at(0), alert.raised), kHour);
  ASSERT_TRUE(alert.suspected_for_s);
  const SeriesView& near = seen(device_series);
  EXPECT_EQ(near.alerts.size(), 1U);
  EXPECT_TRUE(near.suspicions.empty());
  EXPECT_TRUE(near.paging.empty());
}

TEST_F(AlertsTest, TheLeadTimeIsASetting) {
  Config config;
  config.detection.lead_time_minutes = 240;
  start(config);
  double t = 0;
  for (; changes.empty() && t < 17 * kHour; t += 10) tick(t, grown(t, 32, 20 * kHour));
  ASSERT_EQ(changes.size(), 1U);
  EXPECT_THAT(changes[0].alert.paged_because, HasSubstr("within the last third")) << "of 10 h 40 min";
  EXPECT_NEAR(changes[0].alert.finding.oom_in_s->low, 3.4 * kHour, 0.3 * kHour);
}

TEST_F(AlertsTest, AnAlertDoesNotOutliveItsGrowthAndIsNotRaisedAnew) {
  start();
  // It stops at 17.4 GiB, 57 min before the end.
  const double growing_s = 1.9 * kHour;
  double t = 0;
  for (; t < 8 * kHour; t += 10) tick(t, grown(t, 120, growing_s));
  ASSERT_EQ(count(AlertNews::raised), 1);
  ASSERT_EQ(count(AlertNews::cleared), 0);
  for (; t < 16 * kHour; t += 10) tick(t, grown(t, 120, growing_s));
  EXPECT_EQ(count(AlertNews::raised), 1);
  ASSERT_EQ(count(AlertNews::cleared), 1);
  const Alert& over = changes.back().alert;
  EXPECT_EQ(over.ended, AlertEnd::withdrawn);
  EXPECT_THAT(over.end_reason, HasSubstr("memory has not grown for"));
  EXPECT_LT(seconds_between(at(6 * kHour + growing_s), *over.cleared), kHour);
}

TEST_F(AlertsTest, AProcessThatAPolicyHoldsKeepsItsAlert) {
  start();
  const SeriesId pid_7 = process(7, "train.py");
  const double growing_s = 1.9 * kHour;
  const auto tell = [&](Event::Kind kind, double t, const std::string& text) {
    Batch batch;
    batch.events.push_back(Event{.time = at(t), .kind = kind, .pid = 7, .pid_start_ticks = 1007, .text = text});
    engine->ingest(batch);
  };
  const auto grow = [&](double& t, double until) {
    for (; t < until; t += 10) tick(t, grown(t, 120, growing_s) + kGiB, {{pid_7, grown(t, 120, growing_s)}});
  };
  double t = 0;
  grow(t, 6 * kHour + growing_s);
  ASSERT_EQ(count(AlertNews::raised), 2) << "of the process and of its device";
  tell(Event::Kind::held, t, "pid 7 is frozen by policy a");
  grow(t, 30 * kHour);
  EXPECT_EQ(count(AlertNews::cleared), 0);
  for (const SeriesId id : {pid_7, device_series}) {
    const SeriesView& held = seen(id);
    EXPECT_TRUE(held.verdict.finding.leak);
    EXPECT_THAT(held.verdict.finding.because,
                ::testing::StartsWith("pid 7 is frozen by policy a, for 22h 06m now; it will not free its memory by "
                                      "itself"));
  }
  tell(Event::Kind::let_go, t, {});
  grow(t, 32 * kHour);
  EXPECT_EQ(count(AlertNews::cleared), 2) << "it is let go, and does not grow";
}

TEST_F(AlertsTest, TheEndOfAProcessThatAPolicyHoldsEndsItsAlert) {
  start();
  const SeriesId pid_7 = process(7, "train.py");
  double t = 0;
  for (; t < 7.9 * kHour; t += 10) tick(t, grown(t, 120, 2 * kHour) + kGiB, {{pid_7, grown(t, 120, 2 * kHour)}});
  ASSERT_EQ(count(AlertNews::raised), 2);
  Batch batch;
  batch.events.push_back(Event{.time = at(t),
                               .kind = Event::Kind::held,
                               .pid = 7,
                               .pid_start_ticks = 1007,
                               .text = "pid 7 is frozen by policy a"});
  engine->ingest(batch);
  end_process(t, 7);
  for (const double until = t + 600; t < until; t += 10) tick(t, kGiB);
  EXPECT_EQ(count(AlertNews::cleared), 2);
}

TEST_F(AlertsTest, NearAFullCardAQuietNightIsNoReason) {
  start();
  // It stops at 23 of 24 GiB for eight hours, then continues.
  const double growing_s = (23.0 - 4) * 1024 / 120 * 60;
  double t = 0;
  for (; t < 16 * kHour; t += 10) tick(t, grown(t, 120, growing_s));
  ASSERT_EQ(count(AlertNews::raised), 1);
  ASSERT_EQ(count(AlertNews::cleared), 0);
  const SeriesView& quiet = seen(device_series);
  ASSERT_EQ(quiet.alerts.size(), 1U);
  EXPECT_EQ(quiet.alerts[0].ended, AlertEnd::standing);
  EXPECT_TRUE(quiet.verdict.finding.leak);
  EXPECT_THAT(quiet.verdict.finding.because, HasSubstr("the alert stays active"));
  for (const double until = t + 20; t < until; t += 10) tick(t, 12 * kGiB);
  for (const double until = t + 600; t < until; t += 10) tick(t, 12 * kGiB);
  EXPECT_NE(seen(device_series).alerts[0].ended, AlertEnd::standing) << "it is given back";
}

TEST_F(AlertsTest, TheEndOfARecordingRaisesNoAlert) {
  start();
  for (double t = 0; t < 7.2 * kHour; t += 10) tick(t, grown(t, 32, 20 * kHour));
  engine->end_of_recording();
  EXPECT_TRUE(changes.empty());
  EXPECT_TRUE(seen(device_series).alerts.empty());
  EXPECT_TRUE(has_leaked(*views.back())) << seen(device_series).verdict.finding.because;
}

/// The memory of all tenants together: it moves between 22.7 and 23.3 of 24 GiB, in 5 to 8 minutes each way.
double of_tenants(double t) {
  static const std::vector<double> kLegs_s = {300, 420, 360, 480, 330, 390};
  bool up = true;
  for (std::size_t i = 0;; ++i, up = !up) {
    const double leg_s = kLegs_s[i % kLegs_s.size()];
    if (t < leg_s) return 22.7 + 0.6 * (up ? t / leg_s : 1 - t / leg_s);
    t -= leg_s;
  }
}

TEST_F(AlertsTest, ACardThatTenantsShareIsNeverOutOfMemoryWithinItsBand) {
  for (const bool listed : {false, true}) {
    changes.clear();
    const SeriesId one = process(100, "python serve.py");
    const SeriesId two = process(101, "python chat.py");
    start();
    for (double t = 0; t < 5 * kHour; t += 5) {
      const auto bytes = [](double gib) { return static_cast<std::uint64_t>(gib * static_cast<double>(kGiB)); };
      const double its = 8 + 0.3 * std::sin(t / 500);
      if (listed)
        tick(t, bytes(of_tenants(t)), {{one, bytes(its)}, {two, bytes(of_tenants(t) - its - 0.5)}});
      else
        tick(t, bytes(of_tenants(t)));
      if (static_cast<int>(t) % 60 != 0 || t < kHour) continue;
      const Finding& f = seen(device_series).verdict.finding;
      ASSERT_FALSE(f.leak) << t << " " << f.because;
      if (!listed) {
        ASSERT_FALSE(f.oom_in_s || f.oom_if_growth_continues_s) << t << " " << f.because;
      }
    }
    EXPECT_TRUE(changes.empty());
  }
}

constexpr const char* kRiseThatEnds = R"(name = "rise_that_ends"
seed = 3
period_s = 5
duration_s = "5h"
[[device]]
capacity_bytes = "24GiB"
baseline_bytes = "400MiB"
[[process]]
name = "python"
command = "python train.py"
  [[process.shape]]
  kind = "constant"
  bytes = "6GiB"
  [[process.shape]]
  kind = "linear"
  rate_bytes_per_s = "120MiB/min"
  onset_s = "20min"
  until_s = "100min"
)";

TEST(Alerts, ARiseThatHasEndedRaisesNone) {
  auto scenario = sim::parse_scenario(kRiseThatEnds, "rise_that_ends");
  ASSERT_TRUE(scenario) << scenario.error().message;
  const auto run = play(std::move(*scenario));
  // Some 70 minutes would have been left: a quarter of that counts as recent.
  constexpr double kLatest_s = (100 + 18) * 60;
  for (const AlertChange& change : run->changes)
    if (change.news == AlertNews::raised) {
      EXPECT_LE(run->seconds(change.alert.raised), kLatest_s) << change.alert.paged_because;
    }
}

TEST_F(AlertsTest, NothingIsSuspectedOrConfirmedOfARiseThatHasEnded) {
  DeviceInfo device;
  device.id = "GPU-a";
  device.index = 0;
  device.capacity_bytes = 80 * kGiB;
  catalog.describe(device);
  for (const double minutes : {10.0, 20.0, 30.0}) {
    SCOPED_TRACE(minutes);
    changes.clear();
    start();
    const double end_s = 60 + 60 * minutes;
    for (int t = 0; t <= 3600; t += 5) {
      const double loaded_mib = 61000 * std::clamp((t - 60) / (60 * minutes), 0.0, 1.0);
      tick(t, (600 + static_cast<std::uint64_t>(loaded_mib) + static_cast<std::uint64_t>(t * 7919 % 5)) * kMiB);
    }
    engine->end_of_recording();
    const SeriesView& seen_device = seen(device_series);
    // At the end, 10 minutes would have been left: a quarter of that, and a minute between two reviews.
    for (const auto* all : {&seen_device.alerts, &seen_device.suspicions})
      for (const Alert& one : *all) {
        EXPECT_LE(seconds_between(at(0), one.raised), end_s + 210) << one.finding.because;
        EXPECT_TRUE(!one.finding.leak || one.raised <= at(end_s)) << one.finding.because;
      }
  }
}

/// Five tenants, each of which rises for a while and releases it: 9.7 to 10.2 GiB of 11.
TEST_F(AlertsTest, WhatTenantsGiveBackTheEndOfARecordingDoesNotConfirm) {
  struct Tenant {
    double base_mib;
    double cycle_s;
    double swing_mib;
  };
  constexpr std::array<Tenant, 5> kTenants = {
      {{1500, 780, 150}, {700, 1020, 160}, {4300, 1380, 120}, {2000, 2200, 90}, {1500, 640, 80}}};
  DeviceInfo device;
  device.id = "GPU-a";
  device.index = 0;
  device.capacity_bytes = 11 * kGiB;
  catalog.describe(device);
  std::vector<SeriesId> ids;
  for (std::uint32_t k = 0; k < kTenants.size(); ++k) ids.push_back(process(1000 + k, fmt::format("program{}", k)));
  const auto mib = [](double of) { return static_cast<std::uint64_t>(of) * kMiB; };
  for (int minutes = 12; minutes <= 60; ++minutes) {
    start();
    for (int t = 0; t <= 60 * minutes; t += 10) {
      std::vector<std::pair<SeriesId, std::uint64_t>> held;
      double total_mib = 0;
      for (std::size_t k = 0; k < kTenants.size(); ++k) {
        const Tenant& one = kTenants[k];
        const double its_mib = one.base_mib + std::fmod(t, one.cycle_s) / one.cycle_s * one.swing_mib - 60;
        total_mib += its_mib;
        held.emplace_back(ids[k], mib(its_mib));
      }
      tick(t, mib(std::clamp(total_mib, 9.7 * 1024, 10.3 * 1024)), held);
    }
    engine->end_of_recording();
    EXPECT_FALSE(has_leaked(seen(device_series)) || has_leaked(*views.back()))
        << minutes << " min: " << seen(device_series).verdict.finding.because;
    EXPECT_TRUE(changes.empty());
  }
}

TEST_F(AlertsTest, WhatATenantTakesWhileAnotherGivesItBackWakesNobody) {
  const SeriesId taker = process(100, "python train.py");
  const SeriesId giver = process(101, "python serve.py");
  start();
  for (double t = 0; t < 9 * kHour; t += 5) {
    const std::uint64_t taken = grown(t, 60, 20 * kHour) - 4 * kGiB;
    const std::uint64_t a = 2 * kGiB + taken;
    const std::uint64_t b = 19 * kGiB - taken;
    tick(t, a + b + kGiB, {{taker, a}, {giver, b}});
  }
  EXPECT_TRUE(changes.empty()) << changes[0].alert.paged_because;
}

}  // namespace
}  // namespace vramtrack
