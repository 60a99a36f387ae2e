// A pool that doubles, as in JAX and TensorFlow.
#include "detect/doubling.hpp"

#include <gmock/gmock.h>

#include "../at.hpp"
#include "core/units.hpp"

namespace vramtrack {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

/// A pool of 64 MiB that doubles whenever its use, which grows at `rate` MiB/s, exceeds it.
struct Pool {
  DoublingJudge judge{DetectionConfig{}, kSecondsAndBytes};
  double limit = 1872;
  double used = 616;
  double step = 64;
  double needed = 0;
  double t = 0;
  void run(double until, double rate) {
    for (; t < until; t += 5) {
      needed += 5 * rate;
      if (needed > used - 616 + 64) {
        step *= 2;
        used = std::min(limit, used + step);
      }
      judge.set_limit(limit * kMiB);
      judge.observe(at(t), used * kMiB);
    }
  }
};

TEST(DoublingPool, KnowsItsStepsAndHowFastTheyWereUsedUp) {
  DoublingPool pool;
  double t = 0;
  for (const double mib : {500.0, 520.0, 520.0, 584.0, 584.0, 712.0, 713.0, 713.0, 713.0, 969.0})
    pool.observe(at(10 * t++), mib * kMiB, {});
  ASSERT_EQ(pool.steps().size(), 3U);
  EXPECT_DOUBLE_EQ(pool.steps()[1].bytes, 128 * kMiB);
  EXPECT_DOUBLE_EQ(pool.rates()[0], 3.2 * kMiB);
  EXPECT_DOUBLE_EQ(pool.rates()[1], 3.2 * kMiB);
  pool.observe(at(200), 500 * kMiB, {});
  EXPECT_THAT(pool.steps(), IsEmpty()) << "given back";
}

TEST(DoublingPool, StairsOfEqualStepsAreNone) {
  DoublingPool pool;
  for (int i = 0; i < 50; ++i) pool.observe(at(60 * i), (500 + 64 * (i / 5)) * kMiB, {});
  EXPECT_LT(pool.steps().size(), DoublingPool::kLeastSteps);
}

TEST(DoublingJudge, APoolThatIsUsedUpAtOneRateIsALeak) {
  Pool pool;
  pool.limit = 6000;
  pool.run(400, 2);
  EXPECT_TRUE(pool.judge.suspecting());
  EXPECT_FALSE(pool.judge.alerting()) << "two rates";
  pool.run(500, 2);
  EXPECT_EQ(pool.judge.finding().stage, Stage::confirmed);
  const Finding f = pool.judge.finding();
  EXPECT_NEAR(f.growth_bytes_per_s.mid, 2 * kMiB, 0.3 * kMiB);
  ASSERT_TRUE(f.oom_in_s);
  // The use reaches 6000 - 616 + 64 MiB at 2 MiB/s.
  EXPECT_NEAR(f.oom_in_s->mid, (6000 - 616 + 64) / 2.0 - 500, 60);
  EXPECT_THAT(f.because, HasSubstr("grows like a doubling pool"));
  EXPECT_THAT(f.because, HasSubstr("; 1 doubling left"));
}

TEST(DoublingJudge, TheLastStepTakesTheRest) {
  Pool pool;
  pool.run(500, 2);
  EXPECT_DOUBLE_EQ(pool.used, 1872);
  EXPECT_TRUE(pool.judge.alerting());
  EXPECT_THAT(pool.judge.finding().because, HasSubstr("; it cannot double again"));
  EXPECT_LT(pool.judge.finding().oom_in_s->mid, 200);
}

TEST(DoublingJudge, APoolThatIsNotUsedUpInTimeHasStopped) {
  Pool pool;
  pool.limit = 8000;
  pool.run(500, 2);
  ASSERT_TRUE(pool.judge.alerting());
  pool.run(3000, 0);
  EXPECT_FALSE(pool.judge.suspecting());
  EXPECT_EQ(pool.judge.last_end_reason(), "the pool no longer fills at its earlier rate");
}

TEST(DoublingJudge, PausesThatFollowNoRateSayNothing) {
  DoublingJudge judge{DetectionConfig{}, kSecondsAndBytes};
  double used = 500;
  double t = 0;
  for (const auto& [step, pause] :
       {std::pair{64.0, 10.0}, {128.0, 300.0}, {256.0, 60.0}, {512.0, 900.0}, {1024.0, 100.0}}) {
    for (double until = t + pause; t < until; t += 5) judge.observe(at(t), used * kMiB);
    used += step;
  }
  EXPECT_FALSE(judge.suspecting());
}

}  // namespace
}  // namespace vramtrack
