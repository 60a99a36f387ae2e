// What siblings show about a rise, individually and together.
#include "detect/siblings.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <functional>

#include "core/units.hpp"

namespace vramtrack {
namespace {

constexpr double kGiB = 1024 * kMiB;

Timestamp at(double s) {
  return Timestamp{from_seconds(1.75e9 + s)};
}

FloorCurve curve_of(const std::function<double(double)>& bytes, double from_s, double to_s, double period_s = 10) {
  FloorCurve curve;
  for (double t = from_s; t <= to_s; t += period_s) curve.observe(at(t), bytes(t));
  return curve;
}

/// From 10 to 20 GiB within 40 min.
const Rise kRise{at(3600), at(6000), 10 * kGiB, 10 * kGiB};

double rise(double t) {
  return (10 + 10 * std::clamp((t - 3600) / 2400, 0.0, 1.0)) * kGiB;
}

TEST(SiblingMove, WhatItDidMeanwhile) {
  const auto says = [](const std::function<double(double)>& bytes, double from_s = 0, double to_s = 6000,
                       double period_s = 10) {
    return move_of_sibling(curve_of(bytes, from_s, to_s, period_s), kRise);
  };
  EXPECT_EQ(says([](double) { return 10 * kGiB; }), SiblingMove::still);
  EXPECT_EQ(says([](double) { return 10 * kGiB; }, 0, 6000, 60), SiblingMove::still);
  EXPECT_EQ(says(rise), SiblingMove::rises);
  EXPECT_EQ(says([](double t) { return rise(3600 + (t - 3600) / 2); }), SiblingMove::rises) << "half as fast";
  EXPECT_EQ(says([](double t) { return rise(t + 3000); }), SiblingMove::ended);
  EXPECT_EQ(says([](double t) { return rise(t + 3000); }, -4000, 6000, 60), SiblingMove::ended);
  EXPECT_EQ(says([](double t) { return rise(3600 + (t + 3000) * 2); }, -4000), SiblingMove::ended) << "twice as fast";
  EXPECT_EQ(says([](double t) { return (t < 100 ? 10 : 20) * kGiB; }), SiblingMove::nothing)
      << "a load is another rise";
  EXPECT_EQ(says([](double) { return 20 * kGiB; }), SiblingMove::nothing) << "nobody saw how it came there";
  EXPECT_EQ(says([](double) { return 3 * kGiB; }), SiblingMove::nothing) << "it does something else";
  EXPECT_EQ(says([](double) { return 10 * kGiB; }, 5000), SiblingMove::nothing) << "it was not there";
  EXPECT_EQ(says([](double) { return 10 * kGiB; }, 0, 5000), SiblingMove::nothing) << "nor is it";
  EXPECT_EQ(says([](double t) { return 10 * kGiB * (std::fmod(t, 300) < 150 ? 1 : 2); }), SiblingMove::still)
      << "a cycle counts with its lower turn";
  EXPECT_EQ(move_of_sibling({}, kRise), SiblingMove::nothing);
}

TEST(SiblingsWord, AsInTheDocument) {
  // docs/detectors/judge.md: the worked example.
  EXPECT_NEAR(siblings_word(7, 0, 0).odds, 3.42, 0.01);
  EXPECT_NEAR(siblings_word(7, 1, 0).odds, 1.47, 0.01);
  EXPECT_NEAR(siblings_word(1, 0, 0).odds, 1.45, 0.01);
  EXPECT_EQ(siblings_word(0, 7, 0).odds, 1);
  EXPECT_EQ(siblings_word(0, 7, 0).familiar, 0);
  EXPECT_NEAR(siblings_word(0, 0, 7).familiar, 8, 1e-9);
  EXPECT_NEAR(siblings_word(0, 3, 1).familiar, 0.5, 1e-9);
  EXPECT_NEAR(siblings_word(2, 0, 5).familiar, 2, 1e-9);
  // The warm-up of one sibling does not outweigh the six that stand still.
  EXPECT_EQ(siblings_word(6, 0, 1).kind, SiblingMove::still);
  EXPECT_EQ(siblings_word(6, 0, 1).familiar, 0);
  EXPECT_EQ(siblings_word(6, 0, 1).odds, siblings_word(6, 1, 0).odds);
  EXPECT_EQ(siblings_word(7, 0, 0).describe(), "; all 7 siblings show no growth");
  EXPECT_EQ(siblings_word(7, 1, 0).describe(), "; 7 of its 8 siblings show no growth");
  EXPECT_EQ(siblings_word(1, 0, 0).describe(), "; its sibling shows no growth");
  EXPECT_EQ(siblings_word(0, 0, 8).describe(), "; all 8 siblings rose in the same way and then stopped");
  EXPECT_EQ(siblings_word(0, 0, 0).describe(), "");
}

RC_GTEST_PROP(SiblingsWord, IsBoundedAndNeverSpeaksAgainstALeakUnlessARiseEnded, ()) {
  const int still = *rc::gen::inRange(0, 65);
  const int rising = *rc::gen::inRange(0, 65);
  const SiblingsWord word = siblings_word(still, rising, 0);
  RC_ASSERT(word.odds >= 1 && word.odds <= 10);
  RC_ASSERT(word.familiar == 0);
  RC_ASSERT(siblings_word(still + 1, rising, 0).odds >= word.odds - 1e-9);
  RC_ASSERT(siblings_word(still, rising + 1, 0).odds <= word.odds + 1e-9);
  const int ended = *rc::gen::inRange(1, 65);
  const SiblingsWord familiar = siblings_word(still, rising, ended);
  if (ended >= still)
    RC_ASSERT(familiar.familiar > 0 && familiar.familiar <= 16 && familiar.odds == 1);
  else
    RC_ASSERT(familiar.familiar == 0 && familiar.odds <= word.odds + 1e-9);
}

RC_GTEST_PROP(SiblingsWord, StaysWithinTheBoundsOfExperience, ()) {
  ExperienceWord known;
  known.odds = *rc::gen::inRange(1, 128) / 8.0;
  known.familiar = *rc::gen::inRange(0, 16);
  const ExperienceWord both =
      with_siblings(known, siblings_word(*rc::gen::inRange(0, 9), *rc::gen::inRange(0, 9), *rc::gen::inRange(0, 9)));
  RC_ASSERT(both.odds <= 16 && both.odds >= known.odds && both.familiar <= 16 && both.familiar >= known.familiar);
}

}  // namespace
}  // namespace vramtrack
