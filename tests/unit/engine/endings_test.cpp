// How runs end: the same story however many readings come after the end, and whatever lists the processes.
#include <gmock/gmock.h>

#include "one_gpu.hpp"
#include "report/words.hpp"

namespace vramtrack {
namespace {

constexpr double kEvery_s = 5;
constexpr std::uint64_t kIdle = 420 * kMiB;
constexpr std::uint32_t kPid = 20;

/// A job that leaks 120 MiB/min from 10 GiB on and ends at some level.
class Endings : public OneGpu {
 protected:
  /// The time at which the leak reaches `bytes`, and the last reading before it.
  void run_until(std::uint64_t bytes, bool listed, std::uint64_t others = 0) {
    trainer = process(kPid, "python train.py");
    start();
    for (now = 0; used() <= bytes; now += kEvery_s) reading(listed, others + used());
    now -= kEvery_s;
    last_used = others + used();
  }
  [[nodiscard]] std::uint64_t used() const { return 10 * kGiB + static_cast<std::uint64_t>(now * 2) * kMiB; }
  void reading(bool listed, std::uint64_t device) {
    std::vector<std::pair<SeriesId, std::uint64_t>> processes;
    if (listed) processes.emplace_back(trainer, used());
    tick(now, kIdle + device, processes);
  }
  void after(int readings, std::uint64_t device = 0) {
    for (int i = 0; i < readings; ++i) tick(now += kEvery_s, kIdle + device);
    engine->finish();
  }
  const SeriesView& device() { return seen(device_series); }

  SeriesId trainer{};
  double now = 0;
  std::uint64_t last_used = 0;
};

enum class Knows { nothing, list, end, late_end };

using Case = std::tuple<Knows, int>;
class OutOfMemory : public Endings, public testing::WithParamInterface<Case> {};

TEST_P(OutOfMemory, IsTheSameStoryHoweverMuchComesAfter) {
  const auto [knows, readings] = GetParam();
  run_until(24 * kGiB - kIdle, knows != Knows::nothing);
  const double end = now;
  if (knows == Knows::end) end_process(now + kEvery_s, kPid);
  after(std::min(readings, 3));
  if (knows == Knows::late_end && readings >= 3) end_process(now, kPid);
  after(readings - std::min(readings, 3));

  const SeriesView& s = device();
  ASSERT_TRUE(s.verdict.end);
  EXPECT_EQ(s.verdict.end->how, EndKind::out_of_memory);
  EXPECT_EQ(s.verdict.end->time, at(end));
  EXPECT_EQ(s.verdict.end->pid, knows == Knows::nothing ? 0 : kPid);
  EXPECT_EQ(s.verdict.end->used_bytes, kIdle + last_used);
  EXPECT_NEAR(*s.verdict.end->growth_bytes_per_s, 2.0 * kMiB, 0.1 * kMiB);
  EXPECT_FALSE(s.verdict.finding.leak);
  EXPECT_FALSE(s.verdict.finding.oom_in_s);
  EXPECT_NE(s.verdict.finding.state, State::growing);
  EXPECT_FALSE(s.verdict.suspect);
  EXPECT_EQ(next_step(s), "");
  ASSERT_EQ(s.alerts.size(), 1U);
  EXPECT_TRUE(s.alerts[0].finding.leak);
  EXPECT_EQ(s.alerts[0].ended, AlertEnd::process_ended);
  EXPECT_THAT(verdict_words(s), testing::HasSubstr("LEAKED until memory ran out"));
  EXPECT_THAT(end_story(s, *view), testing::HasSubstr("the first alert came"));
  if (knows != Knows::nothing) {
    const SeriesView& process = seen(trainer);
    ASSERT_TRUE(process.verdict.end);
    EXPECT_EQ(process.verdict.end->how, EndKind::out_of_memory);
    EXPECT_FALSE(process.verdict.finding.oom_in_s);
    EXPECT_TRUE(process.ended);
    EXPECT_EQ(process.alerts.back().ended, AlertEnd::process_ended);
    EXPECT_EQ(verdict_words(process), "LEAKED until memory ran out");
    EXPECT_EQ(next_step(process), "");
  }
}
std::string name_of(const testing::TestParamInfo<Case>& info) {
  const char* const knows[] = {"Nothing", "AList", "TheEnd", "TheEndLate"};
  return std::string("Knowing") + knows[static_cast<int>(std::get<0>(info.param))] + "With" +
         std::to_string(std::get<1>(info.param)) + "After";
}
INSTANTIATE_TEST_SUITE_P(All, OutOfMemory,
                         testing::Combine(testing::Values(Knows::nothing, Knows::list, Knows::end, Knows::late_end),
                                          testing::Values(1, 3, 60, 360)),
                         name_of);

TEST_F(Endings, ALeakerThatIsStoppedInTimeHasEnded) {
  run_until(16 * kGiB, true);
  end_process(now + kEvery_s, kPid);
  after(3);
  ASSERT_TRUE(device().verdict.end);
  EXPECT_EQ(device().verdict.end->how, EndKind::ended);
  EXPECT_EQ(device().verdict.end->pid, kPid);
  EXPECT_FALSE(device().verdict.finding.leak);
  EXPECT_THAT(verdict_words(device()), testing::HasSubstr("LEAKED until its process ended"));
}

TEST_F(Endings, WhatIsSaidCountsMoreThanTheLevel) {
  run_until(16 * kGiB, true);
  end_process(now + kEvery_s, kPid, std::string(Event::kOutOfMemory));
  after(1);
  EXPECT_EQ(device().verdict.end->how, EndKind::out_of_memory);
}

TEST_F(Endings, AProgramThatGivesItsMemoryBackGoesOn) {
  run_until(20 * kGiB, true);
  for (int i = 0; i < 10; ++i) tick(now += kEvery_s, kIdle + 2 * kGiB, {{trainer, 2 * kGiB}});
  EXPECT_FALSE(device().verdict.end);
  EXPECT_FALSE(seen(trainer).verdict.end);
}

TEST_F(Endings, BesideAnotherProgramTheLeakersEndIsTold) {
  const SeriesId server = process(10, "vllm serve");
  trainer = process(kPid, "python train.py");
  start();
  for (now = 0; used() + 8 * kGiB <= 24 * kGiB - kIdle; now += kEvery_s)
    tick(now, kIdle + 8 * kGiB + used(), {{server, 8 * kGiB}, {trainer, used()}});
  now -= kEvery_s;
  for (int i = 0; i < 60; ++i) tick(now += kEvery_s, kIdle + 8 * kGiB, {{server, 8 * kGiB}});
  ASSERT_TRUE(device().verdict.end);
  EXPECT_EQ(device().verdict.end->how, EndKind::out_of_memory);
  EXPECT_EQ(device().verdict.end->pid, kPid);
  EXPECT_FALSE(device().verdict.finding.leak);
  EXPECT_NE(device().verdict.finding.state, State::growing);
}

TEST_F(Endings, LittleFreeWithoutGrowthIsNearTheLimitOnly) {
  trainer = process(kPid, "vllm serve");
  start();
  for (int i = 0; i < 600; ++i) tick(now += kEvery_s, kIdle + 22 * kGiB, {{trainer, 22 * kGiB}});
  after(1);
  ASSERT_TRUE(device().verdict.end);
  EXPECT_EQ(device().verdict.end->how, EndKind::ended_near_limit);
  EXPECT_FALSE(device().verdict.end->growth_bytes_per_s);
  EXPECT_TRUE(device().alerts.empty());
}

TEST_F(Endings, TheNextLeakIsAStoryOfItsOwn) {
  run_until(24 * kGiB - kIdle, true);
  end_process(now + kEvery_s, kPid);
  after(12);
  const SeriesId next = process(21, "python train.py");
  for (int i = 0; i < 1000; ++i) {
    const std::uint64_t bytes = 10 * kGiB + static_cast<std::uint64_t>(i) * 10 * kMiB;
    tick(now += kEvery_s, kIdle + bytes, {{next, bytes}});
  }
  EXPECT_TRUE(device().verdict.finding.leak);
  EXPECT_FALSE(device().verdict.end) << "the end of the run before is past";
  ASSERT_TRUE(device().verdict.suspect);
  EXPECT_EQ(device().verdict.suspect->pid, 21U);
}

TEST_F(Endings, ASawtoothIsNoEnd) {
  start();
  for (int i = 0; i < 2000; ++i) tick(now += kEvery_s, 4 * kGiB + static_cast<std::uint64_t>(i % 60) * 100 * kMiB);
  EXPECT_FALSE(device().verdict.end);
  ASSERT_EQ(device().runs.size(), 1U);
}

TEST_F(Endings, EachRunOfALogIsOneOfItsRuns) {
  start();
  for (const std::uint64_t peak : {8 * kGiB, 12 * kGiB, 6 * kGiB}) {
    for (int i = 0; i < 100; ++i) tick(now += kEvery_s, kIdle + peak);
    for (int i = 0; i < 20; ++i) tick(now += kEvery_s, kIdle);
  }
  const auto& runs = device().runs;
  ASSERT_EQ(runs.size(), 3U);
  EXPECT_EQ(runs[0].begin, at(5));
  EXPECT_EQ(runs[0].end, at(500));
  EXPECT_EQ(runs[1].peak_bytes, kIdle + 12 * kGiB);
  EXPECT_EQ(runs[2].how, EndKind::ended);
}

}  // namespace
}  // namespace vramtrack
