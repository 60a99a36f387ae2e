#include "detect/lifetimes.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "../at.hpp"
#include "line_lifetimes.hpp"

namespace vramtrack {
namespace {

using Kind = LifetimesWord::Kind;

/// A line that allocates `rate(t)` bytes per second, of which the share `left(age)` is still live.
struct Line {
  std::string site;
  std::function<double(double t)> rate;
  std::function<double(double age)> left;

  [[nodiscard]] SiteLifetimes at(double now) const { return line_lifetimes(site, now, rate, left); }
};

double all(double) {
  return 1;
}

/// The word on the growth of the lines since `start`, if all reports about them explain it.
LifetimesWord word(const std::vector<Line>& lines, double start, double end, double unseen_bytes = 0) {
  Lifetimes lifetimes;
  double then = 0, now = 0;
  for (double t = 30; t <= end; t += 30) {
    std::vector<SiteLifetimes> sites;
    double live = 0;
    for (const Line& line : lines) live += (sites.push_back(line.at(t)), sites.back().live_bytes);
    lifetimes.take(at(t), sites);
    if (t <= start) then = live;
    now = live;
  }
  return lifetimes.word(at(start), at(end), now - then + unseen_bytes, 30);
}

TEST(Lifetimes, WhatStaysIsALeakWithinMinutes) {
  const Line leak{"train.py:57 step", [](double t) { return t >= 600 ? 4e6 : 0; }, all};
  EXPECT_EQ(word({leak}, 600, 700).kind, Kind::none);
  const LifetimesWord after = word({leak}, 600, 960);
  EXPECT_EQ(after.kind, Kind::stays);
  EXPECT_GT(after.odds(), 1);
  EXPECT_EQ(after.site, "train.py:57 step");
  EXPECT_EQ(after.describe(kSecondsAndBytes), "of what train.py:57 step allocated 4 min ago 100 % is still live");
  EXPECT_EQ(word({leak}, 600, 36000).kind, Kind::stays);
}

TEST(Lifetimes, ALineThatKeepsATenthOfWhatItAllocatesLeaks) {
  const Line leak{"a.py:1", [](double t) { return t >= 600 ? 4e7 : 0; }, [](double age) { return age < 20 ? 1 : 0.1; }};
  EXPECT_EQ(word({leak}, 600, 1200).kind, Kind::stays);
}

/// A leak of one hundredth in a line whose other blocks live for minutes.
TEST(Lifetimes, ALeakBesideTemporariesOfTheSameLineIsNoLoad) {
  const Line leak{"a.py:1", [](double t) { return t >= 600 ? 1.01e8 : 1e8; },
                  [](double age) { return age < 90 ? 1 : 0.0099; }};
  EXPECT_NE(word({leak}, 1000, 6000).kind, Kind::dies);
}

TEST(Lifetimes, MoreAndMoreThatIsSoonGivenBackIsLoad) {
  const auto dying = [](double life_s) { return [life_s](double age) { return std::exp(-age / life_s); }; };
  for (const double life_s : {30.0, 120.0, 600.0}) {
    const Line load{"serve.py:9 batch", [](double t) { return t * 1e4; }, dying(life_s)};
    const LifetimesWord said = word({load}, 3600, 3600 + 12 * life_s + 600);
    EXPECT_EQ(said.kind, Kind::dies) << life_s;
    EXPECT_TRUE(said.denies());
    EXPECT_EQ(said.odds(), 0);
  }
  // At first, a life of hours looks like one without an end: there is no word.
  const Line sessions{"serve.py:9 batch", [](double t) { return t * 1e4; }, dying(7200)};
  EXPECT_EQ(word({sessions}, 600, 3600).kind, Kind::none);
}

TEST(Lifetimes, ALineThatHasStoppedLeaksNoMore) {
  const Line filled{"cache.py:3 fill", [](double t) { return t >= 600 && t < 1200 ? 4e6 : 0; }, all};
  EXPECT_EQ(word({filled}, 600, 1200).kind, Kind::stays);
  const LifetimesWord said = word({filled}, 600, 1500);
  EXPECT_EQ(said.kind, Kind::stopped);
  EXPECT_EQ(said.describe(kSecondsAndBytes), "cache.py:3 fill has allocated nothing for 5 min");
}

TEST(Lifetimes, LinesThatDoNotExplainTheRiseSayNothing) {
  const Line leak{"train.py:57 step", [](double t) { return t >= 600 ? 4e6 : 0; }, all};
  const double grown = 600 * 4e6;
  EXPECT_EQ(word({leak}, 600, 1200, 0.5 * grown).kind, Kind::stays);
  EXPECT_EQ(word({leak}, 600, 1200, 1.5 * grown).kind, Kind::none);
  // A large turnover does not explain another line's growth.
  const Line passes{"b.py:2", [](double) { return 1e9; }, [](double age) { return age < 60 ? 1 : 0; }};
  EXPECT_EQ(word({passes}, 600, 1200, 1e9).kind, Kind::none);
  EXPECT_EQ(word({passes, leak}, 600, 1200).site, "train.py:57 step");
}

/// Memory below the libraries: only its sum is known, so it cannot be distinguished from a load or a leak.
TEST(Lifetimes, ALineWithoutAgesExplainsNothing) {
  const Line load{"serve.py:9 batch", [](double t) { return t * 1e4; }, [](double age) { return std::exp(-age / 30); }};
  Lifetimes lifetimes;
  double then = 0, now = 0;
  for (double t = 30; t <= 4560; t += 30) {
    SiteLifetimes below{"below the libraries (by i915)", 2e6 * t, 0, 0, 0, {}};
    const SiteLifetimes told = load.at(t);
    if (t <= 3600) then = told.live_bytes + below.live_bytes;
    now = told.live_bytes + below.live_bytes;
    lifetimes.take(at(t), {told, below});
  }
  EXPECT_EQ(lifetimes.word(at(3600), at(4560), now - then, 30).kind, Kind::none);
  EXPECT_EQ(word({load}, 3600, 4560).kind, Kind::dies);
}

TEST(Lifetimes, WhatWasToldLongAgoSaysNothing) {
  const Line leak{"train.py:57 step", [](double t) { return t >= 600 ? 4e6 : 0; }, all};
  Lifetimes lifetimes;
  for (double t = 30; t <= 1200; t += 30) lifetimes.take(at(t), {leak.at(t)});
  EXPECT_EQ(lifetimes.word(at(600), at(1300), 2e9, 30).kind, Kind::stays);
  EXPECT_EQ(lifetimes.word(at(600), at(1500), 2e9, 30).kind, Kind::none);
  EXPECT_EQ(Lifetimes().word(at(0), at(1000), 1e9, 30).kind, Kind::none);
}

TEST(Lifetimes, ManyLinesAndALongTimeAreBounded) {
  Lifetimes lifetimes;
  for (int t = 0; t < 20000; ++t) {
    std::vector<SiteLifetimes> sites;
    for (int i = 0; i < 5; ++i) sites.push_back({"line " + std::to_string(t % 500 + i), 1e9, 1, 0, 0, {}});
    lifetimes.take(at(30.0 * t), sites);
  }
  EXPECT_EQ(lifetimes.sites().size(), 5U);
}

}  // namespace
}  // namespace vramtrack
