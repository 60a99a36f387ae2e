// The host memory of a program that holds GPU memory: judged like GPU memory, with its own end, and separately.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "core/end_words.hpp"
#include "engine/remainder.hpp"
#include "report/conclusion_words.hpp"
#include "scenario_run.hpp"

namespace vramtrack {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

/// A server that holds 8 GiB of a 64 GiB GPU, and `host` of the host's memory; `more` goes into its table.
sim::Scenario server(const std::string& gpu, const std::string& host, const std::string& duration = "80min",
                     const std::string& more = "") {
  const auto scenario =
      sim::parse_scenario(fmt::format("seed = 3\nperiod_s = 10\nduration_s = \"{}\"\nhost_memory_bytes = \"256GiB\"\n"
                                      "[[device]]\ncapacity_bytes = \"64GiB\"\n"
                                      "[[process]]\nname = \"serve\"\ncommand = \"python serve.py\"\npid = 42\n{}\n"
                                      "[[process.shape]]\nkind = \"constant\"\nbytes = \"8GiB\"\n{}\n{}",
                                      duration, more, gpu, host),
                          "server.toml");
  EXPECT_TRUE(scenario) << (scenario ? "" : scenario.error().message);
  return *scenario;
}

constexpr const char* kLeak = "kind = \"linear\"\nrate_bytes_per_s = \"400MiB/min\"\nonset_s = \"10min\"\n";
const std::string kGpuLeak = fmt::format("[[process.shape]]\n{}", kLeak);
const std::string kHostLeak =
    fmt::format("[[process.host_shape]]\nkind = \"constant\"\nbytes = \"8GiB\"\n[[process.host_shape]]\n{}", kLeak);
const std::string kLimit = "host_limit_bytes = \"64GiB\"\ncgroup = \"/pod\"";

const SeriesView* find(const View& view, Metric metric) {
  for (const SeriesView& s : view.series)
    if (s.key.metric == metric) return &s;
  return nullptr;
}

/// Seconds until a leak of that series was shown, with or without an alert, and until its alert.
struct Found {
  std::optional<double> leak_s;
  std::optional<double> alert_s;
};
Found found(const ScenarioRun& run, Metric metric) {
  const SeriesView* s = find(*run.view, metric);
  Found out;
  if (s == nullptr) return out;
  for (const std::vector<Alert>* all : {&s->suspicions, &s->alerts})
    for (const Alert& alert : *all) {
      if (!alert.finding.leak) continue;
      const double s_since = run.seconds(alert.raised) - alert.suspected_for_s.value_or(0);
      out.leak_s = std::min(out.leak_s.value_or(s_since), s_since);
      if (all == &s->alerts)
        out.alert_s = std::min(out.alert_s.value_or(run.seconds(alert.raised)), run.seconds(alert.raised));
    }
  return out;
}

TEST(HostMemoryJudged, ALeakIsNamedWithinTheTimeOfAGpusOfThatRate) {
  const auto gpu = play(server(kGpuLeak, "", "150min"));
  const auto host = play(server("", kHostLeak, "150min", kLimit));
  const Found of_gpu = found(*gpu, Metric::process_used);
  const Found of_host = found(*host, Metric::host_anonymous);
  ASSERT_TRUE(of_gpu.leak_s && of_gpu.alert_s);
  ASSERT_TRUE(of_host.leak_s && of_host.alert_s);
  EXPECT_LE(*of_host.leak_s, *of_gpu.leak_s + 10);
  EXPECT_LE(*of_host.alert_s, *of_gpu.alert_s + 10);
  RecordProperty("gpu_leak_s", std::to_string(*of_gpu.leak_s));
  RecordProperty("host_leak_s", std::to_string(*of_host.leak_s));
  const SeriesView& device = *find(*host->view, Metric::device_used);
  EXPECT_TRUE(device.alerts.empty());
  EXPECT_TRUE(device.suspicions.empty());
  EXPECT_FALSE(device.verdict.finding.leak);
  EXPECT_TRUE(find(*host->view, Metric::process_used)->alerts.empty());
}

TEST(HostMemoryJudged, TheForecastEndsAtTheLimitOfItsCgroup) {
  const auto run = play(server("", kHostLeak, "80min", kLimit));
  const SeriesView& s = *find(*run->view, Metric::host_anonymous);
  ASSERT_TRUE(s.verdict.finding.oom_in_s) << s.verdict.finding.because;
  const double left_s = (56.0 * 1024 - 70 * 400) / 400 * 60;
  EXPECT_NEAR(s.verdict.finding.oom_in_s->mid, left_s, 0.05 * left_s);
  EXPECT_THAT(s.verdict.finding.because,
              HasSubstr("it is host memory, which is limited to 64.0 GiB by memory.max of /pod"));
  ASSERT_TRUE(s.wall);
  EXPECT_EQ(s.wall->name, "memory.max of /pod");
  EXPECT_EQ(s.wall->bytes, std::uint64_t{64} << 30U);
  const ConclusionWords told = conclusion_words(*run->view, s);
  EXPECT_THAT(told.forecast, HasSubstr("the kernel will end a process in"));
  EXPECT_THAT(told.forecast, Not(HasSubstr("out of memory")));
  ASSERT_FALSE(s.verdict.advice.empty());
  EXPECT_THAT(s.verdict.advice.front(), HasSubstr("this is host memory"));
  const SeriesView& gpu = *find(*run->view, Metric::process_used);
  ASSERT_TRUE(gpu.host);
  EXPECT_EQ(gpu.host->anonymous_bytes, s.used_bytes);
  EXPECT_EQ(gpu.host->available_bytes, s.wall->bytes - s.used_bytes);
}

TEST(HostMemoryJudged, WithoutALimitItEndsWithTheMachine) {
  const auto run = play(server("", kHostLeak));
  EXPECT_EQ(find(*run->view, Metric::host_anonymous)->wall->name, "the machine's memory");
}

TEST(HostMemoryJudged, FilesThatAreMappedAreNoLeak) {
  const auto run = play(server("", "[[process.host_shape]]\nkind = \"constant\"\nbytes = \"4GiB\"\n", "80min",
                               "host_mapped_bytes = \"120GiB\""));
  const SeriesView& s = *find(*run->view, Metric::host_anonymous);
  EXPECT_FALSE(s.verdict.finding.leak);
  EXPECT_EQ(s.host->resident_bytes, std::uint64_t{124} << 30U);
}

/// The reports about the GPU's series must not depend on the data about the host.
TEST(HostMemoryJudged, TheGpusVerdictsAreTheSameWithIt) {
  const auto without = play(server(kGpuLeak, "", "150min"));
  const auto with = play(server(kGpuLeak, kHostLeak, "150min", "host_limit_bytes = \"128GiB\""));
  for (const Metric metric : {Metric::device_used, Metric::process_used, Metric::device_unattributed}) {
    const SeriesView& a = *find(*without->view, metric);
    const SeriesView& b = *find(*with->view, metric);
    EXPECT_EQ(a.verdict.finding.because, b.verdict.finding.because);
    EXPECT_EQ(a.verdict.finding.confidence, b.verdict.finding.confidence);
    EXPECT_EQ(a.verdict.finding.oom_in_s, b.verdict.finding.oom_in_s);
    EXPECT_EQ(a.alerts.size(), b.alerts.size());
  }
}

/// The end of a scenario in which host memory runs out: with the kernel's message, or by the figures alone.
class HostEnd : public testing::TestWithParam<bool> {
 protected:
  std::unique_ptr<ScenarioRun> play_to_the_end() {
    auto run = std::make_unique<ScenarioRun>();
    run->scenario = server("", kHostLeak, "170min", kLimit);
    run->engine = std::make_unique<Engine>(Config{}, run->catalog);
    run->engine->on_alert([r = run.get()](const AlertChange& change) { r->changes.push_back(change); });
    const auto source = sim::make_simulation(run->scenario, run->catalog);
    for (bool more = true; more;) {
      Batch batch;
      const auto progress = source->poll({}, batch);
      more = progress && *progress != Progress::end;
      for (Event& event : batch.events) {
        killed = killed || event.killed_by_host;
        event.killed_by_host = event.killed_by_host && GetParam();
      }
      run->engine->ingest(batch);
    }
    run->engine->finish();
    run->view = run->engine->view();
    return run;
  }
  bool killed = false;
};

TEST_P(HostEnd, IsToldApartFromOneByTheGpu) {
  const auto run = play_to_the_end();
  EXPECT_TRUE(killed);
  for (const Metric metric : {Metric::host_anonymous, Metric::process_used, Metric::device_used}) {
    const SeriesView& s = *find(*run->view, metric);
    ASSERT_TRUE(s.verdict.end) << to_string(metric);
    EXPECT_EQ(s.verdict.end->how, EndKind::host_out_of_memory) << to_string(metric);
  }
  const SeriesView& host = *find(*run->view, Metric::host_anonymous);
  ASSERT_EQ(host.alerts.size(), 1U);
  EXPECT_EQ(host.alerts.front().end_kind, EndKind::host_out_of_memory);
  EXPECT_EQ(host.alerts.front().end_reason, "the host's memory ran out, and the kernel ended pid 42");
  for (const Metric metric : {Metric::host_anonymous, Metric::process_used}) {
    const auto& wall = find(*run->view, metric)->wall;
    ASSERT_TRUE(wall) << to_string(metric);
    EXPECT_EQ(wall->name, "memory.max of /pod");
    EXPECT_THAT(conclusion_words(*run->view, *find(*run->view, metric)).end,
                HasSubstr("; its limit was memory.max of /pod"));
  }
  EXPECT_TRUE(find(*run->view, Metric::process_used)->alerts.empty()) << "one alert is enough";
  EXPECT_THAT(conclusion_words(*run->view, *find(*run->view, Metric::process_used)).verdict,
              HasSubstr("the host's memory ran out"));
}

INSTANTIATE_TEST_SUITE_P(Both, HostEnd, testing::Bool(),
                         [](const auto& told) { return told.param ? "ByTheKernel" : "ByTheFigures"; });

TEST(HostMemoryJudged, AProcessThatDidNotLeakAndWasChosenIsAnAlert) {
  ScenarioRun run;
  run.engine = std::make_unique<Engine>(Config{}, run.catalog);
  run.engine->on_alert([&](const AlertChange& change) { run.changes.push_back(change); });
  const auto source = sim::make_simulation(server("", "", "20min"), run.catalog);
  for (bool more = true; more;) {
    Batch batch;
    const auto progress = source->poll({}, batch);
    more = progress && *progress != Progress::end;
    run.engine->ingest(batch);
  }
  const SeriesKey key = [&] {
    const auto view = run.engine->view();
    for (const SeriesView& s : view->series)
      if (s.key.metric == Metric::process_used) return s.key;
    return SeriesKey{};
  }();
  Batch killed;
  Event event;
  event.time = run.engine->view()->time;
  event.kind = Event::Kind::host_out_of_memory;
  event.pid = key.pid;
  event.pid_start_ticks = key.pid_start_ticks;
  event.text = "the kernel ended pid 42";
  killed.events.push_back(event);
  event.kind = Event::Kind::process_ended;
  event.text.clear();
  killed.events.push_back(event);
  run.engine->ingest(killed);
  ASSERT_EQ(run.changes.size(), 2U);
  EXPECT_EQ(run.changes[0].news, AlertNews::raised);
  EXPECT_EQ(run.changes[0].alert.kind, AlertKind::host_out_of_memory);
  EXPECT_EQ(run.changes[1].news, AlertNews::cleared);
  EXPECT_EQ(alert_words(run.changes[1].alert, kSecondsAndBytes).severity, "HOST OUT OF MEMORY");
  const auto view = run.engine->view();
  ASSERT_EQ(find(*view, Metric::process_used)->alerts.size(), 1U);
  EXPECT_EQ(find(*view, Metric::process_used)->verdict.end->how, EndKind::host_out_of_memory);
  ASSERT_EQ(view->notices.size(), 1U);
}

/// GB10, Jetson, an APU: if such a device's memory runs out, the kernel kills a process.
TEST(SharedMemory, TheEndIsTheHosts) {
  const auto scenario = [](const std::string& duration) {
    const auto parsed = sim::parse_scenario(
        fmt::format("seed = 3\nperiod_s = 10\nduration_s = \"{}\"\n[[device]]\nname = \"NVIDIA GB10\"\n"
                    "capacity_bytes = \"120GiB\"\nshares_host_memory = true\nbaseline_bytes = \"20GiB\"\n"
                    "[[process]]\nname = \"serve\"\npid = 42\n[[process.shape]]\nkind = \"constant\"\n"
                    "bytes = \"40GiB\"\n{}",
                    duration, kGpuLeak),
        "gb10.toml");
    EXPECT_TRUE(parsed) << (parsed ? "" : parsed.error().message);
    return *parsed;
  };
  const auto run = play(scenario("90min"));
  const SeriesView& device = *find(*run->view, Metric::device_used);
  EXPECT_TRUE(device.device.shares_host_memory);
  ASSERT_TRUE(device.verdict.finding.oom_in_s) << device.verdict.finding.because;
  const double left_s = (60.0 * 1024 - 80 * 400) / 400 * 60;
  EXPECT_NEAR(device.verdict.finding.oom_in_s->mid, left_s, 0.05 * left_s);
  const ConclusionWords told = conclusion_words(*run->view, device);
  EXPECT_THAT(told.forecast, HasSubstr("the kernel will end a process in"));
  EXPECT_THAT(told.facts, testing::Contains(testing::Field(&Fact::text, HasSubstr("it shares the host's"))));
  const auto ended = play(scenario("170min"));
  EXPECT_EQ(find(*ended->view, Metric::device_used)->verdict.end->how, EndKind::host_out_of_memory);
  EXPECT_EQ(find(*ended->view, Metric::process_used)->verdict.end->how, EndKind::host_out_of_memory);
  EXPECT_THAT(conclusion_words(*ended->view, *find(*ended->view, Metric::device_used)).verdict,
              HasSubstr("the host's memory ran out"));
}

/// GB10: a process's host memory is part of its device's memory.
TEST(SharedMemory, TheHostMemoryOfAProcessExplainsTheDevices) {
  const auto scenario = sim::parse_scenario(
      fmt::format("seed = 3\nperiod_s = 10\nduration_s = \"90min\"\nhost_memory_bytes = \"120GiB\"\n[[device]]\n"
                  "name = \"NVIDIA GB10\"\ncapacity_bytes = \"120GiB\"\nshares_host_memory = true\n"
                  "baseline_bytes = \"6GiB\"\n[[process]]\nname = \"serve\"\ncommand = \"python serve.py\"\npid = 42\n"
                  "[[process.shape]]\nkind = \"constant\"\nbytes = \"40GiB\"\n{}",
                  kHostLeak),
      "gb10.toml");
  ASSERT_TRUE(scenario) << scenario.error().message;
  const auto run = play(*scenario);
  const SeriesView& device = *find(*run->view, Metric::device_used);
  EXPECT_TRUE(device.verdict.finding.leak) << device.verdict.finding.because;
  ASSERT_TRUE(device.verdict.suspect) << device.verdict.finding.because;
  EXPECT_EQ(device.verdict.suspect->pid, 42U);
  EXPECT_GT(device.verdict.suspect->share, 0.9);
  EXPECT_THAT(device.verdict.finding.because, HasSubstr("host memory of pid 42 grows"));
  const SeriesView& rest = *find(*run->view, Metric::device_unattributed);
  EXPECT_EQ(rest.used_bytes, std::uint64_t{6} << 30U);
  EXPECT_FALSE(rest.verdict.finding.leak) << rest.verdict.finding.because;
  const ConclusionWords told = conclusion_words(*run->view, device);
  EXPECT_THAT(told.suspect, HasSubstr("pid 42 python serve.py"));
  EXPECT_EQ(told.unattributed, "6.0 GiB held by no visible process") << "what is not of the process";
}

/// GB10: both kinds of memory leak into one, and swap does not count as room for it. `host_bytes` is the memory that
/// the host can still provide.
TEST(SharedMemory, TheDevicesEndIsThatOfBothLeaks) {
  for (const bool gpu_leaks : {false, true})
    for (const char* const host_bytes : {"120GiB", "152GiB"})
      for (const double minutes : {60.0, 90.0, 105.0}) {
        const auto scenario = sim::parse_scenario(
            fmt::format("seed = 3\nperiod_s = 10\nduration_s = \"{}min\"\nhost_memory_bytes = \"{}\"\n[[device]]\n"
                        "name = \"NVIDIA GB10\"\ncapacity_bytes = \"120GiB\"\nshares_host_memory = true\n"
                        "baseline_bytes = \"6GiB\"\n[[process]]\nname = \"serve\"\ncommand = \"python serve.py\"\n"
                        "pid = 42\n[[process.shape]]\nkind = \"constant\"\nbytes = \"{}GiB\"\n{}{}",
                        minutes, host_bytes, gpu_leaks ? 25 : 65, gpu_leaks ? kGpuLeak : "", kHostLeak),
            "gb10.toml");
        ASSERT_TRUE(scenario) << scenario.error().message;
        const auto run = play(*scenario);
        const SeriesView& device = *find(*run->view, Metric::device_used);
        const auto& oom_in_s = device.verdict.finding.oom_in_s;
        ASSERT_TRUE(oom_in_s) << minutes << ": " << device.verdict.finding.because;
        const double left_bytes = 120.0 * 1024 * 1024 * 1024 - static_cast<double>(device.used_bytes);
        const double left_s = left_bytes / ((gpu_leaks ? 800 : 400) * 1024.0 * 1024 / 60);
        EXPECT_NEAR(oom_in_s->mid, left_s, 0.05 * left_s + 10) << minutes << ": " << device.verdict.finding.because;
        const auto& wall = find(*run->view, Metric::host_anonymous)->wall;
        ASSERT_TRUE(wall);
        EXPECT_EQ(wall->name, "the machine's memory");
        EXPECT_EQ(wall->bytes, std::uint64_t{120} << 30U);
        EXPECT_NEAR(static_cast<double>(wall->used_bytes), static_cast<double>(device.used_bytes), 1e6);
      }
}

/// The report for each of several series that fill one memory: when it ends, not when each alone would have filled it.
void expect_ends(const sim::Scenario& scenario, double end_s, std::initializer_list<Metric> metrics) {
  const auto run = play(scenario);
  std::size_t seen = 0;
  for (const SeriesView& s : run->view->series) {
    if (std::find(metrics.begin(), metrics.end(), s.key.metric) == metrics.end()) continue;
    ++seen;
    const Finding& finding = s.verdict.finding;
    ASSERT_TRUE(finding.oom_in_s) << finding.because;
    const double left_s = end_s - scenario.duration_s;
    EXPECT_NEAR(finding.oom_in_s->mid, left_s, 0.05 * left_s + 10) << finding.because;
  }
  EXPECT_GE(seen, metrics.size());
}

TEST(SharedMemory, TwoThatLeakTheSameHostMemoryFillItTogether) {
  constexpr double kOnset_s = 600;
  constexpr double kBytesPerS = 400.0 * 1024 * 1024 / 60;
  constexpr double kGiB = 1024.0 * 1024 * 1024;
  // The end of the machine's memory, and of the memory of their common cgroup.
  for (const bool is_cgroup : {false, true}) {
    const auto process = [is_cgroup](int pid) {
      return fmt::format(
          "[[process]]\nname = \"serve{0}\"\ncommand = \"python serve.py {0}\"\npid = {0}\ncgroup = \"/pod\"\n{1}"
          "[[process.shape]]\nkind = \"constant\"\nbytes = \"8GiB\"\n{2}",
          pid, is_cgroup ? "host_limit_bytes = \"128GiB\"\n" : "", kHostLeak);
    };
    const auto scenario = sim::parse_scenario(
        fmt::format("seed = 3\nperiod_s = 10\nduration_s = \"80min\"\nhost_memory_bytes = \"{}GiB\"\n[[device]]\n"
                    "capacity_bytes = \"64GiB\"\n{}{}",
                    is_cgroup ? 512 : 128, process(42), process(43)),
        "two.toml");
    ASSERT_TRUE(scenario) << scenario.error().message;
    expect_ends(*scenario, kOnset_s + (128 - 16) * kGiB / (2 * kBytesPerS), {Metric::host_anonymous});
    const auto run = play(*scenario);
    const SeriesView& host = *find(*run->view, Metric::host_anonymous);
    ASSERT_TRUE(host.wall);
    EXPECT_EQ(host.wall->name, is_cgroup ? "memory.max of /pod" : "the machine's memory");
    EXPECT_NEAR(host.wall->growth_bytes_per_s, 2 * kBytesPerS, 0.05 * kBytesPerS);
    EXPECT_THAT(host.verdict.finding.because, HasSubstr("; it and others fill that at 800.0 MiB/min together"));
  }
}

TEST(SharedMemory, AllSeriesOfADeviceThatSharesItEndWithIt) {
  const auto scenario = sim::parse_scenario(
      fmt::format("seed = 3\nperiod_s = 10\nduration_s = \"80min\"\nhost_memory_bytes = \"120GiB\"\n[[device]]\n"
                  "name = \"NVIDIA GB10\"\ncapacity_bytes = \"120GiB\"\nshares_host_memory = true\n"
                  "baseline_bytes = \"6GiB\"\n[[process]]\nname = \"serve\"\ncommand = \"python serve.py\"\n"
                  "pid = 42\n[[process.shape]]\nkind = \"constant\"\nbytes = \"25GiB\"\n{}{}",
                  kGpuLeak, kHostLeak),
      "gb10.toml");
  ASSERT_TRUE(scenario) << scenario.error().message;
  expect_ends(*scenario, 600 + (120 - 6 - 25 - 8) * 1024.0 / (800.0 / 60),
              {Metric::device_used, Metric::process_used, Metric::host_anonymous});
}

/// An APU may map more memory than the host has.
TEST(SharedMemory, AnApuEndsWithTheHost) {
  const auto scenario = sim::parse_scenario(
      "seed = 3\nperiod_s = 10\nduration_s = \"80min\"\nhost_memory_bytes = \"32GiB\"\n[[device]]\n"
      "name = \"AMD Strix Halo\"\ncapacity_bytes = \"48GiB\"\nshares_host_memory = true\nbaseline_bytes = \"1GiB\"\n"
      "[[process]]\nname = \"llama\"\ncommand = \"llama-server\"\npid = 42\n[[process.shape]]\nkind = \"constant\"\n"
      "bytes = \"8GiB\"\n[[process.shape]]\nkind = \"linear\"\nrate_bytes_per_s = \"200MiB/min\"\nonset_s = \"10min\"\n"
      "[[process.host_shape]]\nkind = \"constant\"\nbytes = \"1GiB\"\n",
      "apu.toml");
  ASSERT_TRUE(scenario) << scenario.error().message;
  expect_ends(*scenario, 600 + (32 - 10) * 1024.0 / (200.0 / 60), {Metric::device_used, Metric::process_used});
  const auto run = play(*scenario);
  EXPECT_THAT(find(*run->view, Metric::device_used)->verdict.finding.because,
              HasSubstr("the host's memory limits it to 32.0 GiB"));
}

/// An APU counts the host memory that it maps, but not its programs' other host memory.
TEST(SharedMemory, WhatDoesNotFitIntoTheDevicesFigureIsNotPartOfIt) {
  Remainder remainder;
  const SeriesId process{1}, host{2};
  for (int i = 0; i < 4; ++i) {
    const Timestamp time = Timestamp{from_seconds(10 * i)};
    remainder.read(time, 20);
    remainder.list(process, time, 15);
    remainder.also(host, 30);
    EXPECT_EQ(remainder.close(time), 5U);
    EXPECT_FALSE(remainder.counts_also());
  }
  remainder.also(host, 4);
  for (int i = 4; i < 8; ++i) {
    const Timestamp time = Timestamp{from_seconds(10 * i)};
    remainder.read(time, 20);
    remainder.list(process, time, 15);
    remainder.close(time);
  }
  EXPECT_TRUE(remainder.counts_also());
  remainder.also(host, 0);
  remainder.close(Timestamp{from_seconds(70)});
}

TEST(EndOfTheHost, IsNoEndOfTheGpu) {
  const EndWords words = words_of_end(EndKind::host_out_of_memory);
  EXPECT_EQ(words.verdict, "the host's memory ran out: the kernel ended the process");
  EXPECT_EQ(words.plain, "lost its process as the host's memory ran out");
}

}  // namespace
}  // namespace vramtrack
