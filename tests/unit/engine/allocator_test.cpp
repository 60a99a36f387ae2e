// The allocator's word: growth of reserved memory alone is cache or fragmentation, growth of live memory is a leak.
#include <cmath>
#include <functional>

#include "one_gpu.hpp"
#include "report/total.hpp"
#include "report/words.hpp"

namespace vramtrack {
namespace {

constexpr std::uint32_t kPid = 4242;

class AllocatorTest : public OneGpu {
 protected:
  using Shape = std::function<double(double)>;

  void SetUp() override {
    start();
    held = process(kPid, "python train.py");
    allocated = catalog.intern({Metric::allocator_allocated, "GPU-a", kPid, 1000 + kPid});
    reserved = catalog.intern({Metric::allocator_reserved, "GPU-a", kPid, 1000 + kPid});
  }

  /// Levels in GiB at each time: live tensors, reserved memory, and the process's other memory.
  void run(double until_s, const Shape& live, const Shape& kept, const Shape& beside, bool lists = true,
           bool tells = true) {
    const auto bytes = [](double gib) { return static_cast<std::uint64_t>(gib * static_cast<double>(kGiB)); };
    for (double t = 0; t <= until_s; t += 10) {
      std::vector<std::pair<SeriesId, std::uint64_t>> samples;
      if (lists) samples.emplace_back(held, bytes(kept(t) + beside(t)));
      if (tells) samples.emplace_back(allocated, bytes(live(t)));
      if (tells) samples.emplace_back(reserved, bytes(kept(t)));
      tick(t, bytes(kept(t) + beside(t) + 0.5), samples);
    }
    engine->finish();
  }
  /// Whether it was ever shown as a leak.
  bool told(SeriesId id) { return !leaks_of(id).empty(); }
  std::string because(SeriesId id) { return seen(id).verdict.finding.because; }

  SeriesId held{};
  SeriesId allocated{};
  SeriesId reserved{};
};

double still(double) {
  return 4;
}
double context(double) {
  return 0.5;
}
/// A quarter of an hour at 5 GiB, then 240 MiB/min.
double growing(double t) {
  return 5 + std::max(0.0, t - 900) / 256;
}
/// Live tensors come and go within a step.
double stepping(double t) {
  return 3.5 + 0.5 * std::fmod(t, 70) / 70;
}

TEST_F(AllocatorTest, GrowthOfReservedAloneIsCacheOrFragmentation) {
  run(3600, stepping, growing, context, true, false);
  ASSERT_TRUE(told(held)) << "it must be what alarms where the allocator is not heard";
  ASSERT_TRUE(told(device_series));
  SetUp();
  changes.clear();
  run(3600, stepping, growing, context);
  for (const SeriesId id : {held, reserved, allocated, device_series}) EXPECT_FALSE(told(id)) << index_of(id);
  for (const SeriesId id : {held, reserved}) {
    const Finding finding = seen(id).verdict.finding;
    EXPECT_EQ(finding.state, State::growing);
    EXPECT_EQ(finding.stage, Stage::none);
    EXPECT_TRUE(finding.oom_if_growth_continues_s);
    EXPECT_NE(finding.because.find("cache or fragmentation, not a leak"), std::string::npos) << finding.because;
  }
  EXPECT_FALSE(seen(device_series).verdict.finding.leak);
}

TEST_F(AllocatorTest, TheDevicesTotalIsExplainedWhereNoProcessIsListed) {
  run(3600, stepping, growing, context, false);
  EXPECT_FALSE(told(device_series));
  EXPECT_NE(because(device_series).find("cache or fragmentation"), std::string::npos) << because(device_series);
}

TEST_F(AllocatorTest, GrowthOfLiveMemoryIsALeak) {
  run(
      3600, [](double t) { return growing(t) - 1; }, growing, context);
  for (const SeriesId id : {held, allocated, device_series}) EXPECT_TRUE(told(id)) << index_of(id);
  EXPECT_NE(because(held).find("live memory grows"), std::string::npos) << because(held);
}

TEST_F(AllocatorTest, ALeakIntoTheCacheIsTheProcesss) {
  // The process has not grown by a byte yet, because the cache still has room.
  run(
      3600, growing, [](double) { return 18.0; }, context);
  for (const SeriesId id : {held, allocated, device_series}) EXPECT_TRUE(told(id)) << index_of(id);
  const Finding finding = seen(held).verdict.finding;
  ASSERT_TRUE(finding.oom_in_s);
  // It ends when reserved and free memory are used up: at 23 GiB.
  EXPECT_NEAR(finding.oom_in_s->mid, (23 - growing(3600)) * 256, 0.1 * 256 * 23);
}

TEST_F(AllocatorTest, GrowthBesideTheAllocatorIsTheProcesss) {
  run(3600, stepping, still, [](double t) { return growing(t) - 4; });
  EXPECT_TRUE(told(held));
  EXPECT_TRUE(told(device_series));
  EXPECT_EQ(because(held).find("cache or fragmentation"), std::string::npos) << because(held);
}

TEST_F(AllocatorTest, FragmentationThatTurnsIntoALeakIsFound) {
  run(
      7200, [](double t) { return 4 + std::max(0.0, t - 3600) / 512; },
      [](double t) { return 5 + std::max(0.0, t - 900) / 1024 + std::max(0.0, t - 3600) / 512; }, context);
  EXPECT_TRUE(told(held));
  for (const AlertChange& change : changes) {
    EXPECT_GE(change.alert.raised, at(3600));
  }
}

TEST_F(AllocatorTest, ALeakThatEndsIsOverForTheProcess) {
  run(
      7200, [](double t) { return t < 3600 ? growing(t) : still(t); }, [](double) { return 18.0; }, context);
  EXPECT_TRUE(told(held));
  EXPECT_NE(seen(held).alerts.back().ended, AlertEnd::standing);
  EXPECT_NE(seen(device_series).alerts.back().ended, AlertEnd::standing);
}

/// A training script's log: the allocator's report for a GPU, and nothing else.
class AllocatorAloneTest : public AllocatorTest {
 protected:
  void SetUp() override {
    start();
    allocated = catalog.intern({Metric::allocator_allocated, "GPU-a", 0, 0});
    reserved = catalog.intern({Metric::allocator_reserved, "GPU-a", 0, 0});
  }
  void tell(double from_s, double until_s, const Shape& live) {
    for (double t = from_s; t <= until_s; t += 10) {
      Batch batch;
      for (const auto& [id, gib] : {std::pair(allocated, live(t)), std::pair(reserved, live(t) + 1)})
        batch.samples.push_back({at(t), id, static_cast<std::uint64_t>(gib * static_cast<double>(kGiB))});
      engine->ingest(batch);
    }
  }
  void say_out_of_memory(double t) {
    Batch batch;
    Event event;
    event.time = at(t);
    event.kind = Event::Kind::out_of_memory;
    event.device_id = "GPU-a";
    batch.events.push_back(event);
    engine->ingest(batch);
  }
};

TEST_F(AllocatorAloneTest, TheDeviceIsJudgedByWhatIsAllocated) {
  tell(0, 3600, growing);
  engine->finish();
  EXPECT_TRUE(is_total(seen(allocated)));
  EXPECT_FALSE(is_total(seen(reserved)));
  EXPECT_EQ(device_words(seen(allocated)), "GPU 0 [allocated to tensors]");
  EXPECT_EQ(series_words(seen(reserved)), "GPU 0 [held by the framework's allocator]");
}

TEST_F(AllocatorAloneTest, ALeakEndsWhereTheProgramSaysThatMemoryRanOut) {
  tell(0, 3600, growing);
  say_out_of_memory(3600);
  engine->end_of_recording();
  for (const SeriesId id : {allocated, reserved}) {
    ASSERT_TRUE(told(id));
    const SeriesView& s = seen(id);
    ASSERT_EQ(s.alerts.size(), 1U) << "it is not raised again";
    EXPECT_EQ(s.alerts[0].ended, AlertEnd::process_ended);
    EXPECT_NE(s.alerts[0].end_reason.find("memory ran out at "), std::string::npos) << s.alerts[0].end_reason;
    ASSERT_TRUE(s.verdict.end);
    EXPECT_EQ(s.verdict.end->how, EndKind::out_of_memory);
    EXPECT_EQ(told_of(id).verdict, "LEAKED until memory ran out");
  }
}

TEST_F(AllocatorAloneTest, EachRunOfARestartedProgramEnds) {
  for (const double begin : {0.0, 4000.0, 8000.0}) {
    tell(begin, begin + 3600, [&](double t) { return growing(t - begin); });
    say_out_of_memory(begin + 3600);
  }
  engine->end_of_recording();
  const SeriesView& s = seen(allocated);
  ASSERT_EQ(s.runs.size(), 3U);
  EXPECT_EQ(s.runs[1].how, EndKind::out_of_memory);
  EXPECT_EQ(s.runs[1].end, at(7600));
  EXPECT_EQ(s.runs[2].begin, at(8000));
}

TEST_F(AllocatorAloneTest, AProgramThatFreesItsTensorsGoesOn) {
  tell(0, 3600, [](double t) { return std::fmod(t, 1200) < 600 ? 8.0 : 0.25; });
  engine->end_of_recording();
  EXPECT_EQ(seen(allocated).runs.size(), 1U);
  EXPECT_FALSE(seen(allocated).verdict.end);
}

TEST_F(AllocatorAloneTest, WhatTheDeviceUsesSpeaksForIt) {
  tell(0, 100, still);
  tick(110, 5 * kGiB);
  engine->finish();
  EXPECT_FALSE(is_total(seen(allocated)));
  EXPECT_TRUE(is_total(seen(device_series)));
}

TEST_F(AllocatorAloneTest, OfSeveralProgramsNoneSpeaksForIt) {
  const SeriesId other = catalog.intern({Metric::allocator_allocated, "GPU-a", kPid, 1});
  Batch batch;
  batch.samples = {{at(0), allocated, kGiB}, {at(0), other, kGiB}};
  engine->ingest(batch);
  engine->finish();
  EXPECT_FALSE(is_total(seen(allocated)));
  EXPECT_FALSE(is_total(seen(other)));
}

TEST_F(OneGpu, AMessageWithNothingAfterItEndsTheRecording) {
  start();
  for (double t = 0; t <= 600; t += 10) tick(t, 20 * kGiB);
  Batch batch;
  Event event;
  event.time = at(600);
  event.kind = Event::Kind::out_of_memory;
  event.device_id = "GPU-a";
  batch.events.push_back(event);
  engine->ingest(batch);
  engine->end_of_recording();
  EXPECT_EQ(told_of(device_series).verdict, "ran out of memory");

  start();
  for (double t = 0; t <= 600; t += 10) tick(t, 20 * kGiB);
  batch.events[0].device_id.clear();  // for some device on the host
  engine->ingest(batch);
  engine->end_of_recording();
  EXPECT_FALSE(seen(device_series).verdict.end);
}

}  // namespace
}  // namespace vramtrack
