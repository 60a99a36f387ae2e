// The known need of a program compared with the free memory, and the alert about it, on request.
#include "core/headroom.hpp"

#include <gmock/gmock.h>

#include "one_gpu.hpp"

namespace vramtrack {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

class HeadroomTest : public OneGpu {
 protected:
  void begin(bool alerts = false, bool remembers = true) {
    Config config;
    config.alert.headroom = alerts;
    start(config);
    if (remembers) engine->remember(memory_of_programs());
  }
  /// Three runs with peaks of 9, 11 and 10 GiB.
  double earlier_runs() {
    double t = 0;
    for (const double peak : {9.0, 11.0, 10.0}) {
      const auto pid = static_cast<std::uint32_t>(100 + t);
      const SeriesId id = process(pid, "python train.py");
      for (double age = 0; age < 300; age += 10, t += 10) {
        const auto bytes = static_cast<std::uint64_t>((age < 150 ? 2 : peak) * static_cast<double>(kGiB));
        tick(t, bytes + kGiB / 2, {{id, bytes}});
      }
      end_process(t, pid);
      tick(t, kGiB / 2);
      t += 200;
    }
    return t;
  }
  [[nodiscard]] Headroom of(SeriesId id) { return seen(id).headroom.value(); }
};

TEST_F(HeadroomTest, WhatEarlierRunsNeededDoesNotFitBesideAnother) {
  begin();
  const double t = earlier_runs();
  const SeriesId job = process(7, "python train.py"), server = process(88, "serve");
  tick(t, 18 * kGiB, {{job, 2 * kGiB}, {server, 15 * kGiB}});
  engine->finish();
  const Headroom h = of(job);
  EXPECT_NEAR(static_cast<double>(h.peak_bytes), 11.0 * kGiB, 0.01 * kGiB);
  EXPECT_EQ(h.earlier_runs, 3U);
  EXPECT_FALSE(h.fits());
  EXPECT_EQ(h.beside_pid, 88U);
  const Headroom device = of(device_series);
  EXPECT_EQ(device.pid, 7U);
  EXPECT_EQ(device.left_bytes, h.left_bytes);
  EXPECT_NEAR(static_cast<double>(device.peak_bytes), 27.0 * kGiB, 0.01 * kGiB);
  EXPECT_THAT(
      headroom_words(device, 24 * kGiB, kSecondsAndBytes),
      HasSubstr("peaks at 27.0/24.0 GiB; the last 3 runs of the program of pid 7 needed up to 9.0 GiB more than "
                "this run does now: does not fit beside pid 88, 3."));
  EXPECT_THAT(seen(device_series).verdict.finding.because, testing::Not(HasSubstr("fit")));
  EXPECT_THAT(changes, IsEmpty()) << "an alert only on request";
}

TEST_F(HeadroomTest, ItsOwnPeakFitsUntilAnotherTakesThePlace) {
  begin(false, false);
  const SeriesId job = process(7, "python train.py"), server = process(88, "serve");
  tick(0, 13 * kGiB, {{job, 12 * kGiB}});
  tick(10, 3 * kGiB, {{job, 2 * kGiB}});
  EXPECT_TRUE(of(job).fits());
  EXPECT_EQ(of(job).earlier_runs, 0U);
  EXPECT_FALSE(of(job).is_news());
  tick(20, 18 * kGiB, {{job, 2 * kGiB}, {server, 15 * kGiB}});
  engine->finish();
  EXPECT_FALSE(of(job).fits());
  EXPECT_TRUE(of(server).fits()) << "it is at its peak";
}

TEST_F(HeadroomTest, TheAlertIsRaisedOnRequestAndEnds) {
  begin(true);
  double t = earlier_runs();
  const SeriesId job = process(7, "python train.py"), server = process(88, "serve");
  for (int i = 0; i < 12; ++i, t += 10) tick(t, 18 * kGiB, {{job, 2 * kGiB}, {server, 15 * kGiB}});
  ASSERT_EQ(changes.size(), 1U);
  EXPECT_EQ(changes[0].alert.kind, AlertKind::headroom);
  EXPECT_EQ(changes[0].alert.series, job);
  EXPECT_THAT(changes[0].alert.finding.because, HasSubstr("does not fit beside pid 88"));
  EXPECT_EQ(alert_words(changes[0].alert, kSecondsAndBytes).what, "does not fit");
  end_process(t, 88);
  for (int i = 0; i < 12; ++i, t += 10) tick(t, 3 * kGiB, {{job, 2 * kGiB}});
  ASSERT_EQ(changes.size(), 2U);
  EXPECT_EQ(changes[1].news, AlertNews::cleared);
  EXPECT_EQ(changes[1].alert.end_reason, "what it needs fits again");
  ASSERT_EQ(seen(job).alerts.size(), 1U);
}

TEST_F(HeadroomTest, WithoutProcessesTheRunsOfTheDeviceTell) {
  begin(false, false);
  double t = 0;
  for (const double peak : {16.0, 20.0}) {
    for (int i = 0; i < 12; ++i, t += 10) tick(t, static_cast<std::uint64_t>(peak * static_cast<double>(kGiB)));
    for (int i = 0; i < 12; ++i, t += 10) tick(t, 100 * kMiB);
  }
  for (int i = 0; i < 3; ++i, t += 10) tick(t, 8 * kGiB);
  engine->finish();
  const Headroom h = of(device_series);
  EXPECT_EQ(h.peak_bytes, 20 * kGiB);
  EXPECT_EQ(h.more_bytes, 12 * kGiB);
  EXPECT_EQ(h.earlier_runs, 2U);
  EXPECT_TRUE(h.fits());
  EXPECT_THAT(headroom_words(h, 24 * kGiB, kSecondsAndBytes),
              HasSubstr("peaks at 20.0/24.0 GiB; the last 2 runs needed up to 12.0 GiB "
                        "more than this run does now; 4.0 GiB would be left"));
}

}  // namespace
}  // namespace vramtrack
