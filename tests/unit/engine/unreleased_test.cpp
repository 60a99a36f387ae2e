// Memory that stays in use after its process has ended: the alert, its end, and its handling by a later watch.
#include <gmock/gmock.h>

#include "one_gpu.hpp"

namespace vramtrack {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

class UnreleasedMemoryTest : public OneGpu {
 protected:
  /// A server with 2 GiB, and a job with `held` bytes that ends after 100 s; `left(t)` of its memory stays in use.
  template <class Left>
  void run(double from, double until, Left left, std::uint64_t held = 8 * kGiB) {
    const SeriesId server = process(10, "serve"), job = process(20, "python train.py");
    for (double t = from; t < until; ++t) {
      if (t == 100) end_process(t, 20);
      if (t < 100)
        tick(t, 2 * kGiB + 300 * kMiB + held, {{server, 2 * kGiB}, {job, held}});
      else
        tick(t, 2 * kGiB + 300 * kMiB + left(t), {{server, 2 * kGiB}});
    }
    engine->finish();
  }
  [[nodiscard]] SeriesId rest() { return *catalog.find({Metric::device_unattributed, "GPU-a", 0, 0, {}}); }
};

TEST_F(UnreleasedMemoryTest, IsAnAlertUntilItComesBack) {
  start();
  run(0, 400, [](double t) { return t < 300 ? 8 * kGiB : 0; });
  ASSERT_EQ(changes.size(), 2U);
  const Alert& raised = changes[0].alert;
  EXPECT_EQ(changes[0].news, AlertNews::raised);
  EXPECT_EQ(raised.kind, AlertKind::unreleased);
  EXPECT_EQ(raised.series, process(20, "python train.py"));
  EXPECT_EQ(raised.finding.onset, at(100));
  EXPECT_FALSE(raised.finding.leak);
  EXPECT_LT(seconds_between(at(100), raised.raised), 70);
  EXPECT_THAT(raised.finding.because, HasSubstr("it held 8.0 GiB and ended 1m"));
  EXPECT_THAT(raised.finding.because,
              HasSubstr("; 8.0 GiB are still in use, and no process that the driver lists holds"));
  EXPECT_EQ(changes[1].news, AlertNews::cleared);
  EXPECT_EQ(changes[1].alert.ended, AlertEnd::released);
  EXPECT_THAT(changes[1].alert.end_reason, HasSubstr("the memory was freed 3m"));
}

TEST_F(UnreleasedMemoryTest, IsShownWithItsBytes) {
  start();
  run(0, 250, [](double) { return 6 * kGiB; });
  EXPECT_EQ(seen(rest()).unreleased_bytes, 6 * kGiB);
  const SeriesId job = process(20, "python train.py");
  ASSERT_EQ(seen(job).alerts.size(), 1U);
  EXPECT_EQ(seen(job).alerts[0].ended, AlertEnd::standing);
  EXPECT_TRUE(seen(rest()).alerts.empty());
  EXPECT_EQ(seen(device_series).unreleased_bytes, 0U);
}

TEST_F(UnreleasedMemoryTest, WhatIsReleasedOrSmallIsNone) {
  start();
  run(0, 300, [](double t) { return t < 150 ? 8 * kGiB : 0; });
  EXPECT_THAT(changes, IsEmpty());
  start();
  run(
      0, 300, [](double) { return 200 * kMiB; }, 200 * kMiB);
  EXPECT_THAT(changes, IsEmpty()) << "below stall.min-memory-mb";
}

TEST_F(UnreleasedMemoryTest, AnAlertOfAnEarlierWatchStandsUntilMostIsBack) {
  start();
  Alert earlier;
  earlier.kind = AlertKind::unreleased;
  earlier.series = process(20, "python train.py");
  earlier.raised = at(-100);
  earlier.finding.onset = at(-200);
  engine->adopt(earlier);
  const SeriesId server = process(10, "serve");
  for (double t = 0; t < 100; ++t) tick(t, 11 * kGiB, {{server, 2 * kGiB}});
  EXPECT_THAT(changes, IsEmpty()) << "it stands already";
  for (double t = 100; t < 110; ++t) tick(t, 3 * kGiB, {{server, 2 * kGiB}});
  engine->finish();
  ASSERT_EQ(changes.size(), 1U);
  EXPECT_EQ(changes[0].news, AlertNews::cleared);
  EXPECT_EQ(changes[0].alert.raised, earlier.raised);
  EXPECT_EQ(changes[0].alert.ended, AlertEnd::released);
}

TEST_F(UnreleasedMemoryTest, EachProcessHasItsAlert) {
  start();
  const SeriesId one = process(10, "one"), two = process(20, "two");
  for (double t = 0; t < 500; ++t) {
    if (t == 100) end_process(t, 10);
    if (t == 250) end_process(t, 20);
    std::vector<std::pair<SeriesId, std::uint64_t>> listed;
    if (t < 100) listed.emplace_back(one, 4 * kGiB);
    if (t < 250) listed.emplace_back(two, 5 * kGiB);
    tick(t, 9 * kGiB, listed);
  }
  engine->finish();
  ASSERT_EQ(changes.size(), 2U);
  EXPECT_EQ(changes[0].alert.series, one);
  EXPECT_EQ(changes[1].alert.series, two);
  EXPECT_EQ(seen(rest()).unreleased_bytes, 9 * kGiB);
}

TEST_F(UnreleasedMemoryTest, EachOfTwoThatEndAtOnceHasItsAlert) {
  start();
  const SeriesId one = process(10, "one"), two = process(20, "two");
  for (double t = 0; t < 400; ++t) {
    if (t == 100) {
      end_process(t, 10);
      end_process(t, 20);
    }
    std::vector<std::pair<SeriesId, std::uint64_t>> listed;
    if (t < 100) listed = {{one, 4 * kGiB}, {two, 5 * kGiB}};
    tick(t, t < 300 ? 9 * kGiB : 0, listed);
  }
  engine->finish();
  ASSERT_EQ(changes.size(), 4U);
  EXPECT_EQ(changes[0].alert.series, one);
  EXPECT_EQ(changes[1].alert.series, two);
  EXPECT_THAT(changes[1].alert.finding.because, HasSubstr(", as others did at about that time"));
  for (const std::size_t i : {2U, 3U}) EXPECT_EQ(changes[i].alert.ended, AlertEnd::released);
}

}  // namespace
}  // namespace vramtrack
