// Runs of programs as the engine tracks them: read at the first sample, written at the last.
#include <cmath>

#include "one_gpu.hpp"

namespace vramtrack {
namespace {

class RunMemoryTest : public OneGpu {
 protected:
  void begin() {
    start();
    ProgramMemory memory = memory_of_programs();
    if (!on_device.empty()) memory.program_on = [this](const SeriesKey&, Timestamp) { return on_device.back(); };
    engine->remember(memory);
  }

  static std::uint64_t ramp(double t) {
    return 2 * kGiB + static_cast<std::uint64_t>(16.0 * static_cast<double>(kGiB) * std::min(1.0, t / 3600));
  }
  /// Feeds one run of the ramp, from `t` on; returns the time after it.
  double run(double t, std::uint32_t pid, const std::string& command, double duration_s = 5400) {
    const SeriesId id = process(pid, command);
    for (double age = 0; age < duration_s; age += 10) tick(t + age, ramp(age) + kGiB / 2, {{id, ramp(age)}});
    end_process(t + duration_s, pid);
    tick(t + duration_s, kGiB / 2);
    return t + duration_s + 60;
  }

  void tell_age(double t, std::uint32_t pid, double age_s) {
    Batch batch;
    batch.samples.push_back(
        {at(t), catalog.intern({Metric::process_age, "GPU-a", pid, 1000 + pid}), static_cast<std::uint64_t>(age_s)});
    engine->ingest(batch);
  }

  std::vector<std::string> on_device;  ///< the last one runs on the device now; empty: not recorded
};

TEST_F(RunMemoryTest, ARampThatAlarmedIsAWarmUpOnceItHasSettledOften) {
  begin();
  double t = 0;
  tick(t, kGiB / 2);
  std::vector<std::size_t> raised;
  for (std::uint32_t i = 0; i < 5; ++i) {
    const auto count = [&] {
      return std::count_if(changes.begin(), changes.end(), [](const auto& c) { return c.news == AlertNews::raised; });
    };
    const auto before = count();
    t = run(t + 10, 100 + i, "python train.py --output /runs/" + std::to_string(i));
    raised.push_back(static_cast<std::size_t>(count() - before));
  }
  ASSERT_EQ(known_programs.size(), 1U);
  const Program& program = known_programs.begin()->second;
  EXPECT_EQ(program.runs, 5U);
  EXPECT_EQ(program.name, "python train.py");
  EXPECT_NEAR(program.recent.back().settled_bytes, 18.0 * kGiB, 0.1 * kGiB);
  EXPECT_NEAR(program.recent.back().warm_up_s, 3600, 250);
  EXPECT_GT(raised.front(), 0U) << "the ramp must be one that alarms for a stranger";
  EXPECT_EQ(raised.back(), 0U) << "neither the process nor its device";
}

TEST_F(RunMemoryTest, AnotherArgumentMakesAStranger) {
  begin();
  tick(0, kGiB / 2);
  double t = run(10, 100, "python train.py --batch-size 32");
  t = run(t, 101, "python train.py --batch-size 64");
  EXPECT_EQ(known_programs.size(), 2U);
}

TEST_F(RunMemoryTest, AFirstRunSaysThatASecondWillTell) {
  begin();
  tick(0, kGiB / 2);
  const SeriesId id = process(100, "python train.py");
  bool said = false;
  for (double age = 0; age < 1500; age += 10) {
    tick(10 + age, ramp(age) + kGiB / 2, {{id, ramp(age)}});
    const Finding& finding = seen(id).verdict.finding;
    if (finding.state == State::growing) {
      said = true;
      EXPECT_NE(finding.because.find("a second one will show more"), std::string::npos) << finding.because;
    }
  }
  EXPECT_TRUE(said);
}

TEST_F(RunMemoryTest, ALeakIsRememberedAsOne) {
  begin();
  tick(0, kGiB / 2);
  const SeriesId id = process(100, "python leak.py");
  double t = 10;
  for (; leak(t) < 23 * kGiB; t += 10) tick(t, leak(t) + kGiB / 2, {{id, leak(t)}});
  end_process(t, 100, true);
  ASSERT_EQ(known_programs.size(), 1U);
  EXPECT_EQ(known_programs.begin()->second.leaked, 1U);
  EXPECT_EQ(known_programs.begin()->second.out_of_memory, 1U);
}

TEST_F(RunMemoryTest, AProcessOnTwoDevicesIsOneRun) {
  begin();
  tick(0, kGiB / 2);
  const SeriesId one = process(100, "python train.py");
  const SeriesId other = catalog.intern({Metric::process_used, "GPU-b", 100, 1100});
  for (double t = 10; t < 1000; t += 10) tick(t, 9 * kGiB, {{one, 8 * kGiB}, {other, 3 * kGiB}});
  end_process(1000, 100);
  ASSERT_EQ(known_programs.size(), 1U);
  EXPECT_EQ(known_programs.begin()->second.runs, 1U);
  EXPECT_NEAR(known_programs.begin()->second.recent.front().settled_bytes, 8.0 * kGiB, 1);
}

TEST_F(RunMemoryTest, ARunThatWasThereBeforeHasNoCurve) {
  begin();
  const SeriesId id = process(100, "python serve.py");
  for (double t = 0; t < 1000; t += 10) tick(t, 9 * kGiB, {{id, 8 * kGiB}});
  end_process(1000, 100);
  ASSERT_EQ(known_programs.size(), 1U);
  EXPECT_FALSE(known_programs.begin()->second.recent.front().seen_from_start);
  EXPECT_EQ(known_programs.begin()->second.recent.front().points, 0U);
}

/// A watch that begins in the middle of a run compares it with earlier ones at its age, if that is known.
TEST_F(RunMemoryTest, ARunThatWasThereBeforeIsComparedAtItsAge) {
  begin();
  tick(0, kGiB / 2);
  double t = 10;
  for (std::uint32_t i = 0; i < 4; ++i) t = run(t, 100 + i, "python train.py");
  for (const bool is_known : {false, true}) {
    const std::map<std::string, Program> before = known_programs;
    begin();
    const SeriesId id = process(is_known ? 201 : 200, "python train.py");
    const double from = t + 1800;
    double confidence = 0;
    for (double age = 1800; age < 3500; age += 10) {
      tick(t + age, ramp(age) + kGiB / 2, {{id, ramp(age)}});
      if (is_known && t + age == from) tell_age(from, 201, 1800);
      confidence = std::max(confidence, seen(id).verdict.finding.confidence);
    }
    if (is_known)
      EXPECT_LT(confidence, 0.5) << seen(id).verdict.finding.because;
    else
      EXPECT_GT(confidence, 0.85) << "the ramp must look like a leak in a stranger";
    known_programs = before;
    t += 7200;
  }
}

TEST_F(RunMemoryTest, AnOldProcessWithLittleMemoryHasNotJustBegun) {
  for (const double age_s : {30.0, 28800.0}) {
    known_programs.clear();
    begin();
    const SeriesId id = process(100, "python train.py");
    for (double s = 0; s < 5400; s += 10) {
      tick(s, ramp(s) - 3 * kGiB / 2, {{id, ramp(s) - 2 * kGiB + kGiB / 4}});
      if (s == 0) tell_age(0, 100, age_s);
    }
    end_process(5400, 100);
    tick(5410, kGiB / 2);
    ASSERT_EQ(known_programs.size(), 1U) << age_s;
    EXPECT_EQ(known_programs.begin()->second.recent.back().seen_from_start, age_s < 60);
  }
}

TEST_F(RunMemoryTest, WithoutProcessesADevicesRunsAreRuns) {
  on_device = {"train"};
  begin();
  const auto once = [&](double t) {
    for (double age = 0; age < 5400; age += 10) tick(t + age, ramp(age));
    tick(t + 5400, 0);
    tick(t + 5410, 0);
    return t + 5500;
  };
  double t = 10;
  tick(0, 0);
  for (int i = 0; i < 3; ++i) t = once(t);
  ASSERT_EQ(known_programs.size(), 1U);
  EXPECT_EQ(known_programs.begin()->second.runs, 3U);
}

TEST_F(RunMemoryTest, WhatStoodStillOnADeviceNotifiesNobodyWhenItFillsAgain) {
  on_device = {"serve"};
  begin();
  const auto height = [](double t) { return static_cast<std::uint64_t>((0.3 + 0.6 * t) * 24 * kGiB); };
  // It was there before, so it is not known how it grew.
  double t = 0;
  for (; t < 4 * 3600; t += 30) tick(t, height(1));
  const auto fill = [&](double to) {
    changes.clear();
    for (const double end = t + 60; t < end; t += 30) tick(t, 0);
    for (const double begun = t; t < begun + to * 10800; t += 30) tick(t, height((t - begun) / 10800));
    return std::count_if(changes.begin(), changes.end(), [](const auto& c) { return c.news == AlertNews::raised; });
  };
  EXPECT_EQ(fill(1), 0) << "it fills to where it stood";
  for (const double end = t + 4 * 3600; t < end; t += 30) tick(t, height(1));
  EXPECT_EQ(fill(1.1), 1) << "it goes on beyond";
  on_device.push_back("train");
  EXPECT_EQ(fill(1), 1) << "another program has stood nowhere";
  on_device.push_back("");
  EXPECT_EQ(fill(1), 1) << "nor has what nobody knows";
}

TEST_F(RunMemoryTest, WhatSlowsDownIsNoPageAndALineIs) {
  const auto pages = [&](auto share_at) {
    start();
    changes.clear();
    for (double t = 0; t < 60; t += 30) tick(t, 0);
    for (double t = 60; t < 7200; t += 30)
      tick(t, static_cast<std::uint64_t>((0.3 + 0.55 * share_at((t - 60) / 7200)) * 24 * kGiB));
    return std::count_if(changes.begin(), changes.end(), [](const auto& c) { return c.news == AlertNews::raised; });
  };
  EXPECT_EQ(pages([](double of) { return 1 - std::exp(-3 * of); }), 0);
  EXPECT_EQ(pages([](double of) { return 1.27 * of; }), 1);
  EXPECT_EQ(pages([](double of) { return 1.27 * std::sqrt(of); }), 1) << "slower and slower, without an end";
}

}  // namespace
}  // namespace vramtrack
