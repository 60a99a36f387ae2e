#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "source/sim/shape.hpp"

namespace vramtrack::sim {
namespace {

/// A shape with its defaults except for `values`.
ShapeSpec shape(std::string_view kind, const std::map<std::string, double>& values) {
  ShapeSpec spec;
  spec.kind = find_shape_kind(kind);
  for (const Parameter& parameter : spec.kind->parameters) {
    const auto it = values.find(std::string(parameter.key));
    spec.values.push_back(it != values.end() ? it->second : parameter.fallback);
  }
  return spec;
}

/// The curve at 0, dt, 2 dt ... up to `end_s`.
std::vector<double> draw(const ShapeSpec& spec, double dt_s, double end_s, std::uint64_t seed = 1) {
  Curve curve = make_curve(spec, Random{seed});
  std::vector<double> out;
  for (double i = 0; i * dt_s <= end_s; ++i) out.push_back(curve(i * dt_s));
  return out;
}

std::size_t rises(const std::vector<double>& values) {
  std::size_t n = 0;
  for (std::size_t i = 1; i < values.size(); ++i) n += values[i] > values[i - 1] ? 1U : 0U;
  return n;
}

double mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double lowest(const std::vector<double>& values, std::size_t from, std::size_t to) {
  return *std::min_element(values.begin() + static_cast<std::ptrdiff_t>(from),
                           values.begin() + static_cast<std::ptrdiff_t>(to));
}
double highest(const std::vector<double>& values, std::size_t from, std::size_t to) {
  return *std::max_element(values.begin() + static_cast<std::ptrdiff_t>(from),
                           values.begin() + static_cast<std::ptrdiff_t>(to));
}

TEST(SimShape, LinearLeaksAtItsRate) {
  EXPECT_DOUBLE_EQ(draw(shape("linear", {{"rate_bytes_per_s", 12}}), 10, 100).back(), 1200);
}

TEST(SimShape, AcceleratingReachesItsBytesAndGrowsFasterLater) {
  const auto y = draw(shape("accelerating", {{"bytes", 100}, {"over_s", 10}, {"power", 2}}), 1, 10);
  EXPECT_DOUBLE_EQ(y[5], 25);
  EXPECT_DOUBLE_EQ(y[10], 100);
}

TEST(SimShape, StaircaseTakesOneStepPerInterval) {
  const auto regular = draw(shape("staircase", {{"step_bytes", 7}, {"every_s", 60}}), 1, 3600);
  EXPECT_EQ(rises(regular), 60u);
  EXPECT_DOUBLE_EQ(regular.back(), 420);
  EXPECT_DOUBLE_EQ(regular[59], 0);
  EXPECT_DOUBLE_EQ(regular[60], 7);
  const auto few = draw(shape("staircase", {{"step_bytes", 7}, {"every_s", 60}, {"steps", 3}}), 1, 3600);
  EXPECT_DOUBLE_EQ(few.back(), 21);
  const auto jittered = draw(shape("staircase", {{"step_bytes", 7}, {"every_s", 60}, {"intervals", 1}}), 1, 36000);
  EXPECT_NEAR(static_cast<double>(rises(jittered)), 600, 1);
  const auto random = draw(shape("staircase", {{"step_bytes", 7}, {"every_s", 60}, {"intervals", 2}}), 1, 360000);
  EXPECT_NEAR(random.back() / 7, 6000, 300);
}

TEST(SimShape, RequestsLeakTheirMeanRate) {
  // 5 requests per second, a tenth of which leak 1000 bytes on average: 500 bytes/s.
  const auto y = draw(shape("requests", {{"requests_per_s", 5}, {"leak_share", 0.1}, {"leak_bytes", 1000}}), 10, 40000);
  EXPECT_NEAR(y.back() / 40000, 500, 30);
}

TEST(SimShape, SawtoothReturnsToItsFloor) {
  const auto y = draw(shape("sawtooth", {{"low_bytes", 10}, {"amplitude_bytes", 100}, {"period_s", 60}}), 1, 6000);
  EXPECT_DOUBLE_EQ(lowest(y, 0, y.size()), 10);
  EXPECT_NEAR(highest(y, 0, y.size()), 110, 2);
  EXPECT_EQ(rises(y), 6000u - 100u);
}

TEST(SimShape, RisingSawtoothRaisesFloorAndPeakOrTheFloorAlone) {
  const auto both = draw(
      shape("sawtooth", {{"amplitude_bytes", 1000}, {"period_s", 60}, {"leak_bytes_per_s", 1}, {"form", 1}}), 1, 6000);
  EXPECT_NEAR(lowest(both, 5400, 6000) - lowest(both, 0, 600), 5400, 10);
  EXPECT_NEAR(highest(both, 5400, 6000) - highest(both, 0, 600), 5400, 10);
  const auto floor_only =
      draw(shape("sawtooth", {{"amplitude_bytes", 10000}, {"period_s", 60}, {"floor_bytes_per_s", 1}}), 1, 6000);
  EXPECT_NEAR(lowest(floor_only, 5400, 6000) - lowest(floor_only, 0, 600), 5400, 10);
  EXPECT_NEAR(highest(floor_only, 5400, 6000) - highest(floor_only, 0, 600), 0, 100);
}

TEST(SimShape, SawtoothFormsAndDriftingPeriods) {
  const auto square = draw(shape("sawtooth", {{"amplitude_bytes", 8}, {"period_s", 10}, {"form", 2}}), 1, 100);
  EXPECT_DOUBLE_EQ(square[4], 8);
  EXPECT_DOUBLE_EQ(square[5], 0);
  const auto sine = draw(shape("sawtooth", {{"amplitude_bytes", 8}, {"period_s", 10}, {"form", 3}}), 1, 100);
  EXPECT_NEAR(sine[5], 8, 1e-9);
  const auto drifting =
      draw(shape("sawtooth", {{"amplitude_bytes", 8}, {"period_s", 100}, {"period_drift", 0.2}}), 1, 100000);
  const auto falls = static_cast<double>(drifting.size() - rises(drifting));
  EXPECT_GT(falls, 450);  // a period is between half and twice the one requested
  EXPECT_LT(falls, 2100);
}

TEST(SimShape, GcCollectsAtItsThresholdAndALeakRaisesWhatIsKept) {
  const auto y = draw(shape("gc", {{"keep_bytes", 100},
                                   {"threshold_bytes", 1100},
                                   {"rate_bytes_per_s", 10},
                                   {"threshold_spread", 0},
                                   {"rate_spread", 0},
                                   {"leak_bytes", 50}}),
                      1, 450);
  EXPECT_NEAR(y[99], 1090, 1e-6);
  EXPECT_NEAR(y[100], 150, 1e-6);  // first collection, after (1100 - 100) / 10 s
  EXPECT_NEAR(y[195], 200, 1e-6);  // second, (1100 - 150) / 10 s later
  EXPECT_LE(highest(y, 0, y.size()), 1100 + 1e-6);
}

TEST(SimShape, EvaluationsComeAtTheEndOfEachEpochAndMayLeak) {
  const auto y =
      draw(shape("evaluation", {{"bytes", 100}, {"every_s", 60}, {"lasts_s", 10}, {"leak_bytes", 3}}), 1, 130);
  EXPECT_DOUBLE_EQ(y[49], 0);
  EXPECT_DOUBLE_EQ(y[50], 100);
  EXPECT_DOUBLE_EQ(y[60], 3);
  EXPECT_DOUBLE_EQ(y[110], 103);
  EXPECT_DOUBLE_EQ(y[120], 6);
}

TEST(SimShape, DiurnalPeaksWhenTold) {
  const auto y = draw(shape("diurnal", {{"low_bytes", 1}, {"high_bytes", 5}, {"peak_s", 43200}}), 3600, 86400);
  EXPECT_NEAR(y[12], 5, 1e-9);
  EXPECT_NEAR(y[0], 1, 1e-9);
}

TEST(SimShape, SpikesStayGoOrGoInPart) {
  const std::map<std::string, double> spike{{"bytes", 100}, {"rise_s", 10}, {"hold_s", 20}};
  const auto transient = draw(shape("spike", spike), 1, 60);
  EXPECT_DOUBLE_EQ(transient[5], 50);
  EXPECT_DOUBLE_EQ(transient[15], 100);
  EXPECT_DOUBLE_EQ(transient[31], 0);
  auto part = spike;
  part["remain"] = 0.4;
  EXPECT_DOUBLE_EQ(draw(shape("spike", part), 1, 60).back(), 40);
}

TEST(SimShape, LoadsComeInShards) {
  const auto y = draw(shape("load", {{"bytes", 80}, {"over_s", 40}, {"shards", 4}}), 1, 60);
  EXPECT_EQ(rises(y), 4u);
  EXPECT_DOUBLE_EQ(y[9], 0);
  EXPECT_DOUBLE_EQ(y[10], 20);
  EXPECT_DOUBLE_EQ(y[60], 80);
  EXPECT_DOUBLE_EQ(draw(shape("kv_cache", {{"bytes", 9}, {"after_s", 5}}), 1, 6)[4], 0);
  EXPECT_DOUBLE_EQ(draw(shape("kv_cache", {{"bytes", 9}, {"after_s", 5}}), 1, 6)[5], 9);
}

TEST(SimShape, WarmUpsEndAtTheirPlateau) {
  for (const double form : {0.0, 1.0, 2.0}) {
    const auto y = draw(shape("warm_up", {{"bytes", 100}, {"over_s", 60}, {"form", form}}), 1, 1200);
    EXPECT_NEAR(y.back(), 100, 1e-3);
    EXPECT_EQ(y[0], 0);
    EXPECT_TRUE(std::is_sorted(y.begin(), y.end()));
  }
  EXPECT_NEAR(draw(shape("warm_up", {{"bytes", 100}, {"over_s", 60}}), 60, 60).back(), 100 * (1 - std::exp(-1.0)),
              1e-9);
}

TEST(SimShape, SettlingStepsAndFragmentationAddUpAndEnd) {
  const auto steps = draw(shape("settle", {{"bytes", 100}, {"over_s", 600}, {"steps", 4}}), 1, 1200);
  EXPECT_LE(rises(steps), 4u);
  EXPECT_NEAR(steps.back(), 100, 1e-9);
  EXPECT_DOUBLE_EQ(steps[600], steps[1200]);
  const auto frag = draw(shape("fragmentation", {{"bytes", 100}, {"over_s", 3600}}), 1, 7200);
  EXPECT_NEAR(frag.back(), 100, 1e-9);
  EXPECT_GT(frag[900] - frag[0], frag[3600] - frag[900]);  // ever slower
}

TEST(SimShape, RunningMaximumSetsRecordsEverMoreRarely) {
  double early = 0, late = 0;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const auto y = draw(shape("running_max", {{"typical_bytes", 100}, {"every_s", 1}}), 1, 1000, seed);
    EXPECT_TRUE(std::is_sorted(y.begin(), y.end()));
    early += static_cast<double>(rises({y.begin(), y.begin() + 500}));
    late += static_cast<double>(rises({y.begin() + 500, y.end()}));
  }
  EXPECT_NEAR(late / 50, std::log(2), 0.35);  // records of n draws: ln n
  EXPECT_GT(early, 4 * late);
}

TEST(SimShape, CachesFillToTheirLimit) {
  const auto y = draw(shape("cache", {{"limit_bytes", 1000}, {"item_bytes", 10}, {"requests_per_s", 1}}), 1, 1000);
  EXPECT_DOUBLE_EQ(y.back(), 1000);
  EXPECT_NEAR(y[50], 500, 300);
  const auto finite =
      draw(shape("cache", {{"limit_bytes", 1e9}, {"item_bytes", 10}, {"requests_per_s", 1}, {"universe_bytes", 1000}}),
           1, 5000);
  EXPECT_LE(finite.back(), 1000);
  EXPECT_GT(finite.back(), 950);
}

TEST(SimShape, WanderIsMeanRevertingWithItsSigmaAndCorrelation) {
  const auto y = draw(shape("wander", {{"sigma_bytes", 10}, {"correlation_s", 60}}), 10, 600000);
  double var = 0, lag = 0;
  for (std::size_t i = 1; i < y.size(); ++i) {
    var += y[i] * y[i];
    lag += y[i] * y[i - 1];
  }
  EXPECT_NEAR(mean(y), 0, 1);
  EXPECT_NEAR(std::sqrt(var / static_cast<double>(y.size())), 10, 1);
  EXPECT_NEAR(lag / var, std::exp(-10.0 / 60), 0.02);
}

TEST(SimShape, TheRandomWalkStaysBetweenItsWalls) {
  const auto y = draw(
      shape("random_walk", {{"step_bytes", 10}, {"every_s", 1}, {"low_bytes", 100}, {"high_bytes", 200}}), 1, 10000);
  EXPECT_GE(lowest(y, 0, y.size()), 100);
  EXPECT_LE(highest(y, 0, y.size()), 200);
  EXPECT_GT(highest(y, 0, y.size()) - lowest(y, 0, y.size()), 90);
}

TEST(SimShape, ServingHoldsItsMeanNumberOfRequests) {
  // Little's law: 0.5 requests/s that take 8 s are 4 in flight.
  const auto quiet =
      draw(shape("serving", {{"requests_per_s", 0.5}, {"request_bytes", 10}, {"service_s", 8}}), 5, 200000);
  EXPECT_NEAR(mean(quiet), 40, 2);
  const auto bursty = draw(shape("serving", {{"requests_per_s", 0.5},
                                             {"request_bytes", 10},
                                             {"service_s", 8},
                                             {"burst_factor", 10},
                                             {"max_requests", 12}}),
                           5, 20000);
  EXPECT_DOUBLE_EQ(highest(bursty, 0, bursty.size()), 120);
}

TEST(SimShape, LoraKeepsItsSlotsAndLeaksPerSwap) {
  const auto y = draw(shape("lora", {{"slots", 4}, {"adapter_bytes", 100}, {"spread", 0}, {"every_s", 60}}), 1, 6000);
  EXPECT_DOUBLE_EQ(lowest(y, 0, y.size()), 400);
  EXPECT_DOUBLE_EQ(highest(y, 0, y.size()), 500);
  const auto leaking =
      draw(shape("lora", {{"slots", 4}, {"adapter_bytes", 100}, {"spread", 0}, {"every_s", 60}, {"leak_bytes", 1}}), 1,
           60000);
  EXPECT_NEAR(leaking.back() - 400, 1000, 200);
}

TEST(SimShape, CommonKeysFrameEveryCurve) {
  ShapeSpec spec = shape("linear", {{"rate_bytes_per_s", 1}});
  spec.onset_s = 100;
  spec.until_s = 200;
  spec.release_s = 300;
  const auto y = draw(spec, 1, 400);
  EXPECT_EQ(y[100], 0);
  EXPECT_EQ(y[150], 50);
  EXPECT_EQ(y[250], 100);
  EXPECT_EQ(y[300], 0);
  spec.multiply = true;
  EXPECT_EQ(draw(spec, 1, 400)[50], 1);
}

TEST(SimShape, PartialReleasesGiveBackAShareOfWhatIsHeld) {
  ShapeSpec spec = shape("linear", {{"rate_bytes_per_s", 1}});
  spec.release_every_s = 100;
  spec.release_share = 0.5;
  const auto y = draw(spec, 1, 200);
  EXPECT_EQ(y[99], 99);
  EXPECT_EQ(y[100], 50);  // half of 100
  EXPECT_EQ(y[199], 149);
  EXPECT_EQ(y[200], 75);  // half of 150
}

// Events do not depend on how often the curve is evaluated (only wander and noise make a draw per evaluation).
RC_GTEST_PROP(SimShape, EventsDoNotDependOnTheSamplingRate, (std::uint64_t seed)) {
  const auto index = *rc::gen::inRange<std::size_t>(0, shape_kinds().size());
  const std::string_view kind = shape_kinds()[index]->name;
  RC_PRE(kind != "wander" && kind != "noise");
  std::map<std::string, double> values;
  for (const Parameter& parameter : shape_kinds()[index]->parameters)
    if (parameter.required()) values[std::string(parameter.key)] = parameter.unit == Unit::per_s ? 0.5 : 40;
  const auto fine = draw(shape(kind, values), 1, 600, seed);
  const auto coarse = draw(shape(kind, values), 20, 600, seed);
  for (std::size_t i = 0; i < coarse.size(); ++i) RC_ASSERT(std::abs(coarse[i] - fine[20 * i]) < 1e-6);
}

}  // namespace
}  // namespace vramtrack::sim
