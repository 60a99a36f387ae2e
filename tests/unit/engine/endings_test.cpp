// How runs end: the same report however many readings follow the end, and whichever source lists the processes.
#include <gmock/gmock.h>

#include "one_gpu.hpp"
#include "report/conclusion_words.hpp"

namespace vramtrack {
namespace {

constexpr double kEvery_s = 5;
constexpr std::uint64_t kIdle = 420 * kMiB;
constexpr std::uint32_t kPid = 20;

/// A job that leaks 120 MiB/min, starting at 10 GiB, and ends at some level.
class Endings : public OneGpu {
 protected:
  /// The time at which the leak reaches `bytes`, and the time of the last reading before it.
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
  const ConclusionWords told = conclusion_words(*views.back(), s);
  EXPECT_THAT(told.next, testing::StartsWith("find out what grew"));
  ASSERT_EQ(s.alerts.size(), 1U);
  EXPECT_TRUE(s.alerts[0].finding.leak);
  EXPECT_EQ(s.alerts[0].ended, AlertEnd::process_ended);
  EXPECT_EQ(s.alerts[0].end_kind, EndKind::out_of_memory);
  EXPECT_THAT(s.alerts[0].end_reason, testing::StartsWith("memory ran out at "));
  EXPECT_THAT(told.verdict, testing::HasSubstr("LEAKED until memory ran out"));
  EXPECT_THAT(told.end, testing::HasSubstr("the first alert came"));
  if (knows != Knows::nothing) {
    const SeriesView& process = seen(trainer);
    ASSERT_TRUE(process.verdict.end);
    EXPECT_EQ(process.verdict.end->how, EndKind::out_of_memory);
    EXPECT_FALSE(process.verdict.finding.oom_in_s);
    EXPECT_TRUE(process.ended);
    EXPECT_EQ(process.alerts.back().ended, AlertEnd::process_ended);
    EXPECT_EQ(process.alerts.back().end_kind, EndKind::out_of_memory) << "its own alert says so, too";
    EXPECT_THAT(process.alerts.back().end_reason, testing::StartsWith("memory ran out at "));
    EXPECT_EQ(conclusion_words(*views.back(), process).verdict, "LEAKED until memory ran out");
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

/// The value that the rule GpuMemoryLeak of contrib/prometheus reads at every scrape: it fires again if a leak loses
/// its suspect.
class SuspectAtTheEnd : public Endings, public testing::WithParamInterface<int> {};

TEST_P(SuspectAtTheEnd, ALeakThatHadOneNeverGoesOnWithoutOne) {
  const int held_readings = GetParam();  // after the process's end; negative: its end is known that much later
  run_until(20 * kGiB, true);
  ASSERT_TRUE(device().verdict.finding.leak);
  ASSERT_TRUE(device().verdict.suspect);
  const auto told_with_its_suspect = [&](const char* when, int reading) {
    engine->finish();
    const Verdict& v = device().verdict;
    EXPECT_TRUE(!v.finding.leak || (v.suspect && v.suspect->pid == kPid)) << when << ", reading " << reading;
  };
  const std::uint64_t level = last_used;
  if (held_readings >= 0) end_process(now + 1, kPid);
  told_with_its_suspect("the process has ended", 0);
  for (int i = 0; i < held_readings; ++i) {
    tick(now += kEvery_s, kIdle + level);
    told_with_its_suspect("its memory is still held", i);
  }
  for (int i = 0; i < 200; ++i) {
    tick(now += kEvery_s, kIdle);
    if (i == -held_readings) end_process(now + 1, kPid);
    told_with_its_suspect("its memory is free", i);
  }
  EXPECT_FALSE(device().verdict.finding.leak);
  ASSERT_TRUE(device().verdict.end);
  EXPECT_EQ(device().verdict.end->pid, kPid);
  EXPECT_EQ(device().verdict.end->used_bytes, kIdle + level);
  EXPECT_EQ(std::count_if(
                changes.begin(), changes.end(),
                [&](const AlertChange& c) { return c.news == AlertNews::raised && c.alert.series == device_series; }),
            1);
}
std::string held_name(const testing::TestParamInfo<int>& held) {
  return (held.param < 0 ? "KnownAfterReadings" : "HeldForReadings") + std::to_string(std::abs(held.param));
}
INSTANTIATE_TEST_SUITE_P(All, SuspectAtTheEnd, testing::Values(-3, -1, 0, 1, 3, 24), held_name);

/// A driver may free the memory of a process over several readings.
class SlowRelease : public Endings, public testing::WithParamInterface<std::vector<double>> {
 protected:
  void told_once() {
    const SeriesView& s = device();
    ASSERT_TRUE(s.verdict.end);
    EXPECT_EQ(s.verdict.end->how, EndKind::out_of_memory);
    EXPECT_EQ(s.verdict.end->used_bytes, kIdle + last_used);
    EXPECT_EQ(s.verdict.end->time, at(end_));
    EXPECT_FALSE(s.verdict.finding.leak);
    const ConclusionWords told = conclusion_words(*views.back(), s);
    EXPECT_THAT(told.next, testing::StartsWith("find out what grew"));
    ASSERT_EQ(s.alerts.size(), 1U);
    EXPECT_EQ(s.alerts[0].ended, AlertEnd::process_ended);
    EXPECT_EQ(s.alerts[0].end_kind, EndKind::out_of_memory);
    ASSERT_EQ(s.runs.size(), 1U);
    EXPECT_EQ(s.runs[0].how, EndKind::out_of_memory);
  }
  void release() {
    end_ = now;
    for (const double left : GetParam()) tick(now += kEvery_s, kIdle + static_cast<std::uint64_t>(left * kGiB));
  }
  double end_ = 0;
};

TEST_P(SlowRelease, IsOneEnd) {
  for (const bool listed : {true, false}) {
    SCOPED_TRACE(listed);
    run_until(24 * kGiB - kIdle, listed);
    release();
    after(3);
    told_once();
    EXPECT_EQ(device().verdict.end->pid, listed ? kPid : 0);
  }
}

TEST_P(SlowRelease, IsOneEndThoughTheProcessIsListedOnceMore) {
  run_until(24 * kGiB - kIdle, true);
  end_ = now;
  const std::uint64_t held = used();
  bool first = true;
  for (const double left : GetParam()) {
    const auto device_bytes = kIdle + static_cast<std::uint64_t>(left * kGiB);
    tick(now += kEvery_s, device_bytes,
         first ? std::vector<std::pair<SeriesId, std::uint64_t>>{{trainer, held}}
               : std::vector<std::pair<SeriesId, std::uint64_t>>{});
    first = false;
  }
  after(3);
  told_once();
  EXPECT_EQ(device().verdict.end->pid, kPid);
}
std::string release_name(const testing::TestParamInfo<std::vector<double>>& release) {
  std::string name = "Over";
  for (const double left : release.param) name += std::to_string(static_cast<int>(left)) + "GiB";
  return name;
}
INSTANTIATE_TEST_SUITE_P(All, SlowRelease,
                         testing::Values(std::vector<double>{22.0}, std::vector<double>{12.0}, std::vector<double>{2.0},
                                         std::vector<double>{18.0, 12.0, 6.0}, std::vector<double>{3.0, 2.9, 1.0}),
                         release_name);

class SaidOutOfMemory : public Endings, public testing::WithParamInterface<bool> {
 protected:
  void say(const std::string& device_id) {
    Batch batch;
    Event event;
    event.time = at(now + 1);
    event.kind = Event::Kind::out_of_memory;
    event.device_id = device_id;
    event.text = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 4.00 GiB";
    batch.events.push_back(event);
    engine->ingest(batch);
  }
  void ended() {
    ASSERT_TRUE(device().verdict.end);
    EXPECT_EQ(device().verdict.end->how, EndKind::out_of_memory);
    EXPECT_EQ(device().verdict.end->used_bytes, kIdle + last_used);
    EXPECT_EQ(device().verdict.end->pid, GetParam() ? kPid : 0);
    EXPECT_FALSE(device().verdict.finding.leak) << device().verdict.finding.because;
    EXPECT_THAT(told_of(device_series).next, testing::HasSubstr("'vramtrack explain' reads the message"));
    EXPECT_EQ(leaks_of(device_series).back().ended, AlertEnd::process_ended);
    EXPECT_EQ(leaks_of(device_series).back().end_kind, EndKind::out_of_memory);
  }
};

TEST_P(SaidOutOfMemory, IsTheEndFarBelowTheLimitWhateverComesAfter) {
  run_until(16 * kGiB, GetParam());
  ASSERT_TRUE(device().verdict.finding.leak);
  say("GPU-a");
  ended();
  after(1);
  ended();
  after(60);
  ended();
  if (GetParam()) {
    EXPECT_TRUE(seen(trainer).ended);
    EXPECT_EQ(told_of(trainer).next, told_of(device_series).next);
  }
}

TEST_P(SaidOutOfMemory, OfAnUnknownDeviceEndsTheOneThatLeaks) {
  run_until(16 * kGiB, GetParam());
  say("");
  ended();
}

TEST_P(SaidOutOfMemory, AProgramThatGoesOnLeakingIsToldAgain) {
  run_until(16 * kGiB, GetParam());
  say("");
  for (int i = 0; i < 200; ++i) {
    now += kEvery_s;
    reading(GetParam(), used());
  }
  engine->finish();
  EXPECT_TRUE(device().verdict.finding.leak);
  EXPECT_EQ(leaks_of(device_series).back().ended, AlertEnd::standing);
}

TEST_F(Endings, OutOfMemoryOfAHealthyDeviceIsEvidenceForItsEnd) {
  trainer = process(kPid, "python train.py");
  start();
  for (now = 0; now < 3600; now += kEvery_s) tick(now, kIdle + 8 * kGiB, {{trainer, 8 * kGiB}});
  Batch batch;
  Event event;
  event.time = at(now);
  event.kind = Event::Kind::out_of_memory;
  batch.events.push_back(event);
  engine->ingest(batch);
  EXPECT_FALSE(device().verdict.end) << "a program may go on after it";
  after(3);
  ASSERT_TRUE(device().verdict.end);
  EXPECT_EQ(device().verdict.end->how, EndKind::out_of_memory);
}
INSTANTIATE_TEST_SUITE_P(All, SaidOutOfMemory, testing::Bool(), [](const testing::TestParamInfo<bool>& listed) {
  return listed.param ? "Listed" : "NotListed";
});

/// In the missing reading, the device's memory falls by a fifth, and comes back.
TEST_F(Endings, AProcessOfWhichAReadingIsMissingHasNotEnded) {
  trainer = process(kPid, "python serve.py");
  start();
  for (int i = 0; i < 200; ++i, now += kEvery_s) {
    const bool missing = i % 20 == 19;
    const auto bytes = static_cast<std::uint64_t>((missing ? 8 : 10) * kGiB);
    if (missing)
      tick(now, kIdle + bytes, {});
    else
      tick(now, kIdle + bytes, {{trainer, bytes}});
  }
  EXPECT_FALSE(seen(trainer).ended);
  EXPECT_FALSE(device().verdict.end);
  // A process that is no longer listed has ended, although something invisible takes its place.
  for (int i = 0; i < 10; ++i, now += kEvery_s) tick(now, kIdle + 8 * kGiB, {});
  EXPECT_TRUE(seen(trainer).ended);
}

TEST_F(Endings, ProcessesThatEndTogetherHaveAllEnded) {
  const SeriesId other = process(10, "rank 0");
  trainer = process(kPid, "rank 1");
  const SeriesId small = process(30, "tensorboard");
  start();
  for (now = 0; kIdle + 2 * used() + kGiB <= 34 * kGiB; now += kEvery_s)
    tick(now, (kIdle + 2 * used() + kGiB) / 2, {{other, used() / 2}, {trainer, used() / 2}, {small, kGiB / 2}});
  now -= kEvery_s;
  after(60);
  for (const SeriesId id : {other, trainer, small}) {
    EXPECT_TRUE(seen(id).ended) << seen(id).key.pid;
    EXPECT_EQ(told_of(id).next.empty(), id == small) << "nothing grew in that one";
  }
}

/// Two programs that list processes with the same period do so at different moments.
TEST_F(Endings, ASmallProcessIsNotEndedByAnothersFall) {
  const SeriesId desktop = process(10, "Xorg");
  trainer = process(kPid, "python train.py");
  start();
  for (now = 0; used() <= 16 * kGiB; now += kEvery_s) {
    tick(now, kIdle + used());
    Batch listing;
    listing.samples = {{at(now + 2), desktop, 60 * kMiB}, {at(now + 2), trainer, used()}};
    engine->ingest(listing);
  }
  const double end = now;
  for (int i = 0; i < 12; ++i, now += kEvery_s) {
    tick(now, kIdle);
    engine->finish();
    EXPECT_FALSE(seen(desktop).ended) << "reading " << i;
    Batch listing;
    listing.samples = {{at(now + 2), desktop, 60 * kMiB}};
    engine->ingest(listing);
  }
  EXPECT_TRUE(seen(trainer).ended);
  EXPECT_EQ(seen(desktop).first, at(2)) << "it is the process it was";
  EXPECT_EQ(device().verdict.end->time, at(end - kEvery_s));
  EXPECT_EQ(device().verdict.end->pid, kPid);
}

TEST_F(Endings, TheNextProcessMayBeThereAtTheNextReading) {
  run_until(24 * kGiB - kIdle, true);
  const double end = now;
  const SeriesId next = process(21, "python train.py");
  end_process(now + kEvery_s, kPid);
  for (int i = 0; i < 200; ++i) tick(now += kEvery_s, kIdle + 2 * kGiB, {{next, 2 * kGiB}});
  engine->finish();
  ASSERT_EQ(device().runs.size(), 2U);
  EXPECT_EQ(device().runs[0].how, EndKind::out_of_memory);
  EXPECT_EQ(device().runs[0].pid, kPid);
  EXPECT_EQ(device().runs[0].end, at(end));
  EXPECT_EQ(device().runs[1].begin, at(end + kEvery_s));
  EXPECT_EQ(device().alerts.at(0).ended, AlertEnd::process_ended);
}

TEST_F(Endings, APidThatIsGivenAgainIsAnotherProcess) {
  run_until(24 * kGiB - kIdle, true);
  after(24);
  const double again = now + kEvery_s;
  const double first_now = now;
  for (int i = 0; i < 400; ++i) {
    now += kEvery_s;
    const auto bytes = 4 * kGiB + static_cast<std::uint64_t>((now - first_now) * 4) * kMiB;
    tick(now, kIdle + bytes, {{trainer, bytes}});
  }
  engine->finish();
  const SeriesView& s = seen(trainer);
  EXPECT_FALSE(s.ended);
  EXPECT_FALSE(s.verdict.end);
  EXPECT_EQ(s.first, at(again));
  EXPECT_EQ(leaks_of(trainer).size(), 2U) << "those of the first process are kept";
  ASSERT_TRUE(device().verdict.suspect);
  EXPECT_EQ(device().verdict.suspect->pid, kPid);
  const double second = now;
  after(3);
  EXPECT_EQ(device().verdict.end->time, at(second)) << "it is an end of its own";
  EXPECT_EQ(device().verdict.end->pid, kPid);
}

TEST_F(Endings, WhoLeaksGoesOnAfterAnothersEnd) {
  const SeriesId victim = process(10, "vllm serve");
  trainer = process(kPid, "python train.py");
  start();
  for (now = 0; kIdle + 6 * kGiB + used() <= 23 * kGiB; now += kEvery_s)
    tick(now, kIdle + 6 * kGiB + used(), {{victim, 6 * kGiB}, {trainer, used()}});
  for (int i = 0; i < 240; ++i, now += kEvery_s) {
    tick(now, kIdle + used(), {{trainer, used()}});
    engine->finish();
    const Verdict& device_verdict = device().verdict;
    if (!device_verdict.finding.leak) continue;
    const double free_mib = static_cast<double>(24 * kGiB - kIdle - used()) / kMiB;
    ASSERT_TRUE(device_verdict.finding.oom_in_s);
    EXPECT_NEAR(device_verdict.finding.oom_in_s->mid, free_mib / 2, 0.2 * free_mib / 2) << "reading " << i;
    EXPECT_NEAR(device_verdict.finding.growth_bytes_per_s.mid, 2.0 * kMiB, 0.3 * kMiB) << "reading " << i;
  }
}

TEST_F(Endings, ALeakerThatIsStoppedInTimeHasEnded) {
  run_until(16 * kGiB, true);
  end_process(now + kEvery_s, kPid);
  after(3);
  ASSERT_TRUE(device().verdict.end);
  EXPECT_EQ(device().verdict.end->how, EndKind::ended);
  EXPECT_EQ(device().verdict.end->pid, kPid);
  EXPECT_FALSE(device().verdict.finding.leak);
  EXPECT_THAT(told_of(device_series).verdict, testing::HasSubstr("LEAKED until its process ended"));
}

TEST_F(Endings, WhatIsSaidCountsMoreThanTheLevel) {
  run_until(16 * kGiB, true);
  end_process(now + kEvery_s, kPid, true);
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
    engine->finish();
    EXPECT_EQ(device().verdict.end.has_value(), !device().verdict.finding.leak)
        << "reading " << i << ": the end of the run before is told until a leak is, whoever shows it";
  }
  EXPECT_TRUE(device().verdict.finding.leak);
  ASSERT_TRUE(device().verdict.suspect);
  EXPECT_EQ(device().verdict.suspect->pid, 21U);
}

/// Two logs joined: the device's readings at each full minute, and those of its processes half a minute later. A
/// leaking process has grown between the device's last reading before its end and its own last reading.
TEST_F(Endings, AreTheSameWhereProcessesAreListedBetweenTheDevicesReadings) {
  for (const bool listed : {false, true}) {
    SCOPED_TRACE(listed);
    start();
    const SeriesId jobs[] = {process(1, "python train.py"), process(2, "python train.py"),
                             process(3, "python train.py")};
    constexpr int kMinutes = 61;
    constexpr int kRun = 63;  // and idle for the rest
    const auto taken = [&](double t) { return static_cast<std::uint64_t>(2000 + t * 6) * kMiB; };
    for (int i = 0; i < 3 * kRun; ++i) {
      const int minute = i % kRun;
      const bool runs = minute < kMinutes;
      tick(i * 60, kIdle + (runs ? taken(minute * 60) : 0));
      if (!listed || !runs) continue;
      Batch batch;
      batch.samples.push_back({at(i * 60 + 30), jobs[i / kRun], taken(minute * 60 + 30)});
      engine->ingest(batch);
    }
    engine->end_of_recording();
    const SeriesView& s = device();
    ASSERT_EQ(s.runs.size(), 3U);
    for (std::size_t i = 0; i < 3; ++i) {
      const auto& run = s.runs[i];
      EXPECT_EQ(run.how, EndKind::out_of_memory) << i;
      EXPECT_EQ(run.pid, listed ? i + 1 : 0);
      ASSERT_TRUE(run.growth_bytes_per_s && run.onset && run.end) << i;
      EXPECT_GE(*run.onset, run.begin);
      EXPECT_LE(*run.onset, *run.end);
    }
    ASSERT_TRUE(s.verdict.end);
    EXPECT_FALSE(s.verdict.finding.leak) << "it is over";
  }
}

TEST_F(Endings, ALeakThatOnlyAPartShowsIsAStoryOfItsOwn) {
  run_until(24 * kGiB - kIdle, true);
  end_process(now + kEvery_s, kPid);
  after(12);
  const SeriesId next = process(21, "python train.py");
  const SeriesId other = process(22, "python serve.py");
  bool leaked = false;
  for (int i = 0; i < 600; ++i) {
    const std::uint64_t bytes = 2 * kGiB + static_cast<std::uint64_t>(i) * 10 * kMiB;
    tick(now += kEvery_s, kIdle + 14 * kGiB, {{next, bytes}, {other, 14 * kGiB - bytes}});
    engine->finish();
    leaked = leaked || device().verdict.finding.leak;
    EXPECT_FALSE(device().verdict.finding.leak && device().verdict.end) << "reading " << i;
  }
  EXPECT_TRUE(leaked);
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

/// The kernel's message beside the readings of a GPU, although its memory was nearly full.
TEST_F(Endings, AnEndThatTheHostWasSaidToMakeIsTheHosts) {
  for (const bool by_host : {true, false}) {
    start();
    const double begin = by_host ? 0 : 100'000;
    for (double t = 0; t < 6600; t += 60) tick(begin + t, 3 * kGiB + static_cast<std::uint64_t>(t / 60) * 180 * kMiB);
    Batch batch;
    batch.events.push_back(Event{.time = at(begin + 6540.5), .kind = Event::Kind::process_ended, .text = "Killed"});
    batch.events.back().killed_by_host = by_host;
    engine->ingest(batch);
    for (double t = 6600; t < 6900; t += 60) tick(begin + t, 100 * kMiB);
    engine->end_of_recording();
    const auto& end = seen(device_series).verdict.end;
    ASSERT_TRUE(end);
    EXPECT_EQ(end->how, by_host ? EndKind::host_out_of_memory : EndKind::out_of_memory);
  }
}

}  // namespace
}  // namespace vramtrack
