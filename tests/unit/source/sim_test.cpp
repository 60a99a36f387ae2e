#include "source/sim/sim.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <numeric>
#include <string>
#include <vector>

namespace vramtrack::sim {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

/// The complete output of a scenario.
struct Recording {
  Catalog catalog;
  std::vector<Sample> samples;
  std::vector<Event> events;

  [[nodiscard]] std::vector<std::uint64_t> bytes(Metric metric, std::uint32_t pid = 0) const {
    std::vector<std::uint64_t> out;
    for (const Sample& sample : samples)
      if (catalog.key(sample.series).metric == metric && (pid == 0 || catalog.key(sample.series).pid == pid))
        out.push_back(sample.bytes);
    return out;
  }
};

void play(const Scenario& scenario, Recording& out) {
  const auto source = make_simulation(scenario, out.catalog);
  Batch batch;
  for (bool more = true; more;) {
    batch.clear();
    const Result<Progress> progress = source->poll({}, batch);
    ASSERT_TRUE(progress);
    more = *progress == Progress::more;
    out.samples.insert(out.samples.end(), batch.samples.begin(), batch.samples.end());
    out.events.insert(out.events.end(), batch.events.begin(), batch.events.end());
  }
}

void play(const std::string& toml, Recording& out) {
  const Result<Scenario> scenario = parse_scenario(toml, "test.toml");
  ASSERT_TRUE(scenario) << scenario.error().message;
  play(*scenario, out);
}

const std::string kDevice = "[[device]]\ncapacity_bytes = \"10GiB\"\n";

TEST(Sim, EveryTickOfTheDurationIsTakenInOrderAndTheLastSaysEnd) {
  Recording out;
  play("period_s = 10\nduration_s = 60\n" + kDevice, out);
  ASSERT_THAT(out.samples, SizeIs(7));
  EXPECT_EQ(out.samples.front().time, Timestamp{});
  EXPECT_EQ(out.samples.back().time, Timestamp{from_seconds(60)});
  EXPECT_TRUE(out.catalog.clock_is_relative);
  EXPECT_EQ(out.catalog.devices().front().capacity_bytes, 10ULL << 30);
}

TEST(Sim, StartMakesTheClockAbsolute) {
  Recording out;
  play("duration_s = 0\nstart = 2026-01-05T08:00:00+01:00\n" + kDevice, out);
  EXPECT_FALSE(out.catalog.clock_is_relative);
  EXPECT_EQ(iso8601(out.samples.front().time), "2026-01-05T07:00:00Z");
}

TEST(Sim, ADeviceIsItsBaselinePlusItsProcesses) {
  Recording out;
  play(
      "duration_s = 0\n[[device]]\ncapacity_bytes = 1000000\nbaseline_bytes = 100\nreserved_bytes = 7\n"
      "[[process]]\n[[process.shape]]\nkind = \"constant\"\nbytes = 20\n"
      "[[process]]\nvisible = false\n[[process.shape]]\nkind = \"constant\"\nbytes = 3\n",
      out);
  EXPECT_THAT(out.bytes(Metric::device_used), ElementsAre(123));
  EXPECT_THAT(out.bytes(Metric::device_reserved), ElementsAre(7));
  EXPECT_THAT(out.bytes(Metric::process_used), ElementsAre(20));
}

TEST(Sim, TheSameSeedSaysTheSameAndAnotherSeedDoesNot) {
  for (const BuiltinScenario& builtin : builtin_scenarios()) {
    Result<Scenario> scenario = parse_scenario(builtin.toml, builtin.name);
    ASSERT_TRUE(scenario) << scenario.error().message;
    scenario->duration_s = std::min(scenario->duration_s, 3600.0);
    Recording first, again;
    play(*scenario, first);
    play(*scenario, again);
    EXPECT_EQ(first.bytes(Metric::device_used), again.bytes(Metric::device_used)) << builtin.name;
  }
  const std::string noisy =
      kDevice + "[[process]]\n[[process.shape]]\nkind = \"requests\"\nrequests_per_s = 1\nleak_bytes = 9\n";
  Recording one, two;
  play("seed = 1\nduration_s = 60\n" + noisy, one);
  play("seed = 2\nduration_s = 60\n" + noisy, two);
  EXPECT_NE(one.bytes(Metric::device_used), two.bytes(Metric::device_used));
}

// The numbers must be the same with every compiler and machine: a change here changes every recorded expectation.
TEST(Sim, TheRandomNumbersAreThoseOfSplitMix64) {
  Random random{0};
  EXPECT_EQ(random.next(), 0xE220A8397B1DCDAFULL);
  EXPECT_EQ(random.next(), 0x6E789E6AA1B965F4ULL);
  double sum = 0, squares = 0;
  for (int i = 0; i < 20000; ++i) {
    const double x = random.normal();
    sum += x;
    squares += x * x;
  }
  EXPECT_NEAR(sum / 20000, 0, 0.03);
  EXPECT_NEAR(squares / 20000, 1, 0.05);
}

TEST(Sim, AnotherProcessDoesNotChangeThisOne) {
  const std::string noisy =
      "[[process]]\nname = \"a\"\npid = 5\n[[process.shape]]\nkind = \"requests\"\nrequests_per_s = 3\nleak_bytes = "
      "99\n";
  Recording alone, together;
  play("duration_s = 100\n" + kDevice + noisy, alone);
  play("duration_s = 100\n" + kDevice +
           "[[process]]\nname = \"b\"\n[[process.shape]]\nkind = \"serving\"\nrequests_per_s = 1\nrequest_bytes = "
           "1\nservice_s = 3\n" +
           noisy,
       together);
  EXPECT_EQ(alone.bytes(Metric::process_used, 5), together.bytes(Metric::process_used, 5));
}

TEST(Sim, DroppedTicksChangeNothingElse) {
  const std::string rest = kDevice +
                           "[[process]]\n[[process.shape]]\nkind = \"requests\"\nrequests_per_s = 1\nleak_bytes = 9\n"
                           "[[process.shape]]\nkind = \"wander\"\nsigma_bytes = 1000\ncorrelation_s = 30\n";
  Recording all, some;
  play("duration_s = 400\n" + rest, all);
  play("duration_s = 400\ndrop = 0.3\n" + rest, some);
  std::map<Timestamp, std::uint64_t> by_time;
  for (const Sample& sample : all.samples)
    if (sample.series == all.samples.front().series) by_time[sample.time] = sample.bytes;
  const auto kept = some.bytes(Metric::device_used);
  EXPECT_NEAR(static_cast<double>(kept.size()), 280, 40);
  for (const Sample& sample : some.samples)
    if (sample.series == some.samples.front().series) {
      EXPECT_EQ(by_time.at(sample.time), sample.bytes);
    }
}

TEST(Sim, DuplicateStampsRepeatTheTimeAndNotTheValue) {
  Recording out;
  play("duration_s = 100\nduplicate = 0.5\n" + kDevice +
           "[[process]]\nvisible = false\n[[process.shape]]\nkind = \"linear\"\nrate_bytes_per_s = 1000\n",
       out);
  int repeats = 0;
  for (std::size_t i = 1; i < out.samples.size(); ++i) {
    EXPECT_LE(out.samples[i - 1].time, out.samples[i].time);
    EXPECT_LT(out.samples[i - 1].bytes, out.samples[i].bytes);
    if (out.samples[i - 1].time == out.samples[i].time) ++repeats;
  }
  EXPECT_NEAR(repeats, 50, 25);
}

TEST(Sim, JitterKeepsTheOrderAndTheGapLeavesAHole) {
  Recording out;
  play("period_s = 10\nduration_s = 1000\njitter = 0.8\n" + kDevice +
           "[[fault]]\nkind = \"gap\"\nfrom_s = 300\nto_s = 500\n",
       out);
  EXPECT_THAT(out.samples, SizeIs(testing::AllOf(testing::Ge(80u), testing::Le(82u))));
  double widest = 0;
  for (std::size_t i = 1; i < out.samples.size(); ++i) {
    const double gap_s = seconds_between(out.samples[i - 1].time, out.samples[i].time);
    EXPECT_GT(gap_s, 0);
    widest = std::max(widest, gap_s);
  }
  EXPECT_GT(widest, 190);
}

TEST(Sim, AProcessThatHitsTheCapacityDiesAndComesBackWithOtherIds) {
  Recording out;
  play(
      "duration_s = 100\n[[device]]\ncapacity_bytes = 1000\n"
      "[[process]]\nname = \"big\"\n[[process.shape]]\nkind = \"constant\"\nbytes = 600\n"
      "[[process]]\nname = \"leak\"\npid = 50\nrestart_after_s = 10\n[[process.shape]]\nkind = "
      "\"linear\"\nrate_bytes_per_s = 10\n",
      out);
  // 600 + 10 t <= 1000 until t = 40; at 41 the leaking process, not the largest one, is killed.
  ASSERT_THAT(out.events, SizeIs(testing::Ge(1u)));
  EXPECT_EQ(out.events[0].kind, Event::Kind::process_ended);
  EXPECT_EQ(out.events[0].time, Timestamp{from_seconds(41)});
  EXPECT_EQ(out.events[0].pid, 50u);
  EXPECT_EQ(out.events[0].text, "out of memory");
  EXPECT_THAT(out.bytes(Metric::process_used, 50), SizeIs(41));
  EXPECT_THAT(out.bytes(Metric::process_used, 1050), SizeIs(41));
  const auto device = out.bytes(Metric::device_used);
  EXPECT_EQ(device[40], 1000u);
  EXPECT_EQ(device[41], 600u);
  EXPECT_EQ(device[51], 600u);
  EXPECT_EQ(device[52], 610u);
}

TEST(Sim, AReusedPidIsANewSeries) {
  Recording out;
  play("duration_s = 30\n" + kDevice +
           "[[process]]\npid = 9\npid_reuse = true\nlifetime_s = 10\nrestart_after_s = 2\n[[process.shape]]\nkind = "
           "\"constant\"\nbytes = 5\n",
       out);
  std::vector<std::uint64_t> starts;
  for (const ProcessInfo& process : out.catalog.processes()) {
    EXPECT_EQ(process.pid, 9u);
    starts.push_back(process.start_ticks);
  }
  EXPECT_THAT(starts, ElementsAre(360000, 361200, 362400));
}

TEST(Sim, CaughtOomClipsInsteadOfDying) {
  Recording out;
  play(
      "duration_s = 100\n[[device]]\ncapacity_bytes = 1000\n"
      "[[process]]\non_oom = \"clip\"\n[[process.shape]]\nkind = \"linear\"\nrate_bytes_per_s = 20\n",
      out);
  EXPECT_THAT(out.events, IsEmpty());
  EXPECT_EQ(out.bytes(Metric::device_used).back(), 1000u);
}

TEST(Sim, OneRankLeaksOnItsOwnDevice) {
  Recording out;
  play("duration_s = 10\n" + kDevice + "id = \"A\"\n" + kDevice + "id = \"B\"\n" +
           "[[process]]\npid = 70\ndevices = [0, 1]\none_per_device = true\n"
           "[[process.shape]]\nkind = \"constant\"\nbytes = 100\n"
           "[[process.shape]]\nkind = \"linear\"\nrate_bytes_per_s = 1\nonly_rank = 1\n",
       out);
  EXPECT_EQ(out.bytes(Metric::process_used, 70).back(), 100u);
  EXPECT_EQ(out.bytes(Metric::process_used, 71).back(), 110u);
}

TEST(Sim, ALostDevicePausesAndResumes) {
  Recording out;
  play("duration_s = 20\n" + kDevice +
           "[[fault]]\nkind = \"device_lost\"\nfrom_s = 5\nto_s = 10\n[[fault]]\nkind = \"xid\"\nat_s = 5\ncode = 79\n",
       out);
  EXPECT_THAT(out.samples, SizeIs(16));
  ASSERT_THAT(out.events, SizeIs(3));
  EXPECT_EQ(out.events[0].kind, Event::Kind::xid);
  EXPECT_EQ(out.events[0].xid, 79u);
  EXPECT_EQ(out.events[1].kind, Event::Kind::device_lost);
  EXPECT_EQ(out.events[2].kind, Event::Kind::device_resumed);
  EXPECT_EQ(out.events[2].time, Timestamp{from_seconds(10)});
}

TEST(Sim, UnreadableMakesNoSampleAndAClockStepGoesBack) {
  Recording out;
  play("duration_s = 9\n" + kDevice +
           "[[process]]\nname = \"p\"\n[[process.shape]]\nkind = \"constant\"\nbytes = 5\n"
           "[[fault]]\nkind = \"unreadable\"\nmetric = \"process_used\"\nfrom_s = 2\nto_s = 4\n"
           "[[fault]]\nkind = \"clock_step\"\nat_s = 8\nstep_s = -100\n",
       out);
  EXPECT_THAT(out.bytes(Metric::device_used), SizeIs(10));
  EXPECT_THAT(out.bytes(Metric::process_used), SizeIs(8));
  EXPECT_LT(out.samples.back().time, Timestamp{});
}

TEST(Sim, TheAllocatorHoldsMoreThanItsTensors) {
  Recording out;
  play("duration_s = 0\n" + kDevice +
           "[[process]]\nallocator = true\n[[process.shape]]\nkind = \"constant\"\nbytes = 70\n"
           "[[process.shape]]\nkind = \"constant\"\nbytes = 30\ncached = true\n",
       out);
  EXPECT_THAT(out.bytes(Metric::allocator_reserved), ElementsAre(100));
  EXPECT_THAT(out.bytes(Metric::allocator_allocated), ElementsAre(70));
}

TEST(Sim, TheInstrumentsAreAliveAndTheSameEachTime) {
  const auto readings = [](std::string_view name) {
    Catalog catalog;
    const Result<Scenario> scenario = parse_scenario(
        "period_s = 10\nduration_s = 600\n[[device]]\nname = \"" + std::string(name) +
            "\"\ncapacity_bytes = \"10GiB\"\n[[process]]\nname = \"a\"\n[[process.shape]]\nkind = \"load\"\nbytes = "
            "\"4GiB\"\nover_s = 10\n",
        "test.toml");
    const auto source = make_simulation(*scenario, catalog);
    Batch batch;
    while (source->poll({}, batch).value_or(Progress::end) == Progress::more) {
    }
    return batch;
  };
  const Batch desktop = readings("NVIDIA GeForce RTX 4090");
  ASSERT_THAT(desktop.readings, SizeIs(61));
  ASSERT_THAT(desktop.loads, SizeIs(61));
  double least = 1;
  double most = 0;
  for (const DeviceReading& reading : desktop.readings) {
    const DeviceGauges& g = reading.gauges;
    ASSERT_TRUE(g.temperature_celsius && g.power_watts && g.power_limit_watts && g.sm_clock_hertz && g.fan_ratio);
    EXPECT_GT(*g.temperature_celsius, 25);
    EXPECT_LT(*g.temperature_celsius, 85);
    EXPECT_LT(*g.power_watts, *g.power_limit_watts);
    EXPECT_GT(*g.sm_clock_hertz, 200e6);
    EXPECT_LT(*g.sm_clock_hertz, 2e9);
    least = std::min(least, reading.gpu_utilisation_ratio.value_or(0));
    most = std::max(most, reading.gpu_utilisation_ratio.value_or(0));
  }
  EXPECT_LT(least, most);
  EXPECT_EQ(desktop.readings[7].gauges, readings("NVIDIA GeForce RTX 4090").readings[7].gauges);
  const Batch server = readings("NVIDIA H100 80GB HBM3");
  EXPECT_EQ(server.readings[7].gauges.fan_ratio, std::nullopt) << "the server cools it";
  EXPECT_EQ(server.readings[7].gauges.power_limit_watts, 700);
  ASSERT_TRUE(server.readings[0].health);
  EXPECT_EQ(server.readings[0].health->ecc_enabled, true);
}

TEST(Sim, TenantsComeAndGoAndNeverOverfillTheDevice) {
  Recording out;
  play("duration_s = \"4h\"\nperiod_s = 30\n" + kDevice +
           "[[tenants]]\nname = \"job\"\narrivals_per_s = \"60/h\"\nlifetime_s = \"10min\"\nmin_bytes = \"200MiB\"\n"
           "max_bytes = \"4GiB\"\nat_start = 2\n",
       out);
  EXPECT_GT(out.catalog.processes().size(), 60u);
  for (const Event& event : out.events) EXPECT_EQ(event.text, "exited");
  EXPECT_GT(out.events.size(), 50u);
  const auto used = out.bytes(Metric::device_used);
  EXPECT_GT(*std::max_element(used.begin(), used.end()), 6ULL << 30);
}

TEST(Sim, BuiltinScenariosEndAsTheySay) {
  for (const BuiltinScenario& builtin : builtin_scenarios()) {
    const Result<Scenario> scenario = parse_scenario(builtin.toml, builtin.name);
    ASSERT_TRUE(scenario) << scenario.error().message;
    EXPECT_EQ(scenario->name, builtin.name);
    EXPECT_TRUE(scenario->truth) << builtin.name;
  }
  Recording demo;
  play(*parse_scenario(builtin_scenarios().front().toml, "demo"), demo);
  ASSERT_FALSE(demo.events.empty());
  EXPECT_EQ(demo.events.back().pid, 4242u);
  EXPECT_EQ(demo.events.back().text, "out of memory");
  EXPECT_EQ(find_builtin_scenario("no such"), nullptr);
}

}  // namespace
}  // namespace vramtrack::sim
