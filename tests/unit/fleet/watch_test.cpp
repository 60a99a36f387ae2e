#include "fleet/watch.hpp"

#include <gtest/gtest.h>

#include <random>

#include "stub_server.hpp"

namespace {

using namespace vramtrack;
using namespace vramtrack::fleet;

constexpr std::int64_t kMinuteMs = 60'000;
constexpr std::int64_t kHourMs = 60 * kMinuteMs;
constexpr std::int64_t kBeginMs = 1'770'000'000'000;

const Mapping& mapping() {
  static const Mapping known = Mapping::read().value();
  return known;
}

ScanOptions options() {
  ScanOptions out;
  out.first_pause_s = 0.001;
  return out;
}

/// Puts a value every half minute from `begin_ms` on, for `hours`.
void put(StubServer& server, const std::string& host, double hours, double mib_per_min,
         std::int64_t begin_ms = kBeginMs) {
  std::mt19937 random(7);
  for (int i = 0; i < hours * 120; ++i)
    server.put(host, begin_ms + i * 30'000,
               static_cast<int>(20'000 + mib_per_min * i / 2 + static_cast<double>(random() % 40)));
}

Scan scan_of(const Reader& reader, std::int64_t start_ms, std::int64_t end_ms) {
  ScanOptions asked = options();
  asked.plan.start_ms = start_ms;
  asked.plan.end_ms = end_ms;
  return scan(reader, mapping(), asked, [](std::size_t, std::size_t, std::uint64_t) {}).value();
}

std::vector<std::string> leaking(const Scan& scan) {
  std::vector<std::string> out;
  for (const MachineVerdict& machine : scan.machines)
    for (const GpuVerdict& gpu : machine.gpus)
      if (gpu.leak() != nullptr) out.push_back(machine.host);
  return out;
}

const GpuVerdict& gpu_of(const Scan& scan, const std::string& host) {
  for (const MachineVerdict& machine : scan.machines)
    if (machine.host == host) return machine.gpus.at(0);
  throw std::runtime_error("no machine " + host);
}

TEST(Scan, MachinesAreJudgedTheSameByAnyNumberOfThreads) {
  StubServer server;
  for (int i = 0; i < 20; ++i) put(server, "host" + std::to_string(10 + i), 3, i % 5 == 0 ? 50 : 0);
  const Reader reader = server.reader();
  ScanOptions asked = options();
  asked.plan.start_ms = kBeginMs;
  asked.plan.end_ms = kBeginMs + 3 * kHourMs;
  asked.json = true;
  std::vector<std::string> seen;
  for (const unsigned threads : {1U, 2U, 7U}) {
    asked.threads = threads;
    const Scan done = scan(reader, mapping(), asked, [](std::size_t, std::size_t, std::uint64_t) {}).value();
    EXPECT_EQ(leaking(done), (std::vector<std::string>{"host10", "host15", "host20", "host25"}));
    std::string json;
    for (const MachineVerdict& machine : done.machines) json += machine.json;
    seen.push_back(json);
  }
  EXPECT_EQ(seen[0], seen[1]);
  EXPECT_EQ(seen[0], seen[2]);
}

TEST(FleetWatch, PassByPassItKnowsWhatOneScanKnows) {
  StubServer server;
  put(server, "leaks", 6, 160);
  put(server, "idles", 6, 0);
  const Reader reader = server.reader();
  FleetWatch watch(reader, mapping(), {options(), 4 * kHourMs, 2 * kMinuteMs});
  for (std::int64_t now_ms = kBeginMs + kHourMs; now_ms <= kBeginMs + 5 * kHourMs; now_ms += 45'000)
    ASSERT_TRUE(watch.pass(now_ms));
  const Scan& seen = watch.latest();
  EXPECT_EQ(leaking(seen), std::vector<std::string>{"leaks"});
  const Scan whole = scan_of(reader, kBeginMs, kBeginMs + 5 * kHourMs);
  EXPECT_EQ(leaking(whole), leaking(seen));
  const GpuVerdict& a = gpu_of(seen, "leaks");
  const GpuVerdict& b = gpu_of(whole, "leaks");
  EXPECT_EQ(a.samples, b.samples);
  EXPECT_EQ(a.alerts.at(0).raised, b.alerts.at(0).raised);
  EXPECT_EQ(a.device.capacity_bytes, 81559ULL << 20);
  EXPECT_NEAR(a.verdict.finding.growth_bytes_per_s.mid, b.verdict.finding.growth_bytes_per_s.mid, 1);
}

TEST(FleetWatch, ANewMachinesPastIsJudgedFirst) {
  StubServer server;
  put(server, "first", 4, 0);
  const Reader reader = server.reader();
  FleetWatch watch(reader, mapping(), {options(), 4 * kHourMs, 2 * kMinuteMs});
  ASSERT_TRUE(watch.pass(kBeginMs + 4 * kHourMs - kMinuteMs));
  put(server, "second", 4, 160);
  ASSERT_TRUE(watch.pass(kBeginMs + 4 * kHourMs));
  EXPECT_EQ(leaking(watch.latest()), std::vector<std::string>{"second"});
  EXPECT_GT(gpu_of(watch.latest(), "second").samples, 470U);
}

TEST(FleetWatch, WhatAPassCouldNotReadIsReadByTheNext) {
  StubServer server;
  put(server, "host", 4, 40);
  const Reader reader = server.reader();
  FleetWatch watch(reader, mapping(), {options(), 4 * kHourMs, 2 * kMinuteMs});
  ASSERT_TRUE(watch.pass(kBeginMs + kHourMs));
  server.set_failing(true);
  EXPECT_FALSE(watch.pass(kBeginMs + 2 * kHourMs));
  EXPECT_EQ(gpu_of(watch.latest(), "host").samples, 121U) << "what was known stays";
  server.set_failing(false);
  ASSERT_TRUE(watch.pass(kBeginMs + 3 * kHourMs));
  EXPECT_EQ(gpu_of(watch.latest(), "host").samples, 361U);
}

TEST(FleetWatch, SamplesThatArriveLateAreTakenAsLongAsNothingLaterCame) {
  StubServer server;
  put(server, "host", 1, 0);
  const Reader reader = server.reader();
  FleetWatch watch(reader, mapping(), {options(), 4 * kHourMs, 2 * kMinuteMs});
  ASSERT_TRUE(watch.pass(kBeginMs + kHourMs + kMinuteMs));
  const std::uint64_t before = gpu_of(watch.latest(), "host").samples;
  server.put("host", kBeginMs + kHourMs, 20'000);  // before the end of the pass that did not see it
  ASSERT_TRUE(watch.pass(kBeginMs + kHourMs + 2 * kMinuteMs));
  EXPECT_EQ(gpu_of(watch.latest(), "host").samples, before + 1);
}

TEST(FleetWatch, AMachineThatIsRenamedGoesOn) {
  // Its name comes before the old one alphabetically, or after it.
  for (const auto& [before, after] : {std::pair("dcgm-b", "dcgm-a"), std::pair("dcgm-c", "dcgm-d")}) {
    StubServer server;
    for (const char* name : {before, after}) server.set_uuid(name, "GPU-0f3a6c1e-52b1-4c5d-9f10-8a7b6c5d4e3f");
    const auto put_part = [&](const char* name, int from, int to) {
      for (int i = from; i < to; ++i) server.put(name, kBeginMs + i * 30'000, 20'000 + 80 * i + i * 7919 % 40);
    };
    put_part(before, 0, 360);
    const Reader reader = server.reader();
    FleetWatch watch(reader, mapping(), {options(), 6 * kHourMs, 2 * kMinuteMs});
    for (std::int64_t now_ms = kBeginMs + kHourMs; now_ms <= kBeginMs + 3 * kHourMs; now_ms += kMinuteMs)
      ASSERT_TRUE(watch.pass(now_ms));
    ASSERT_EQ(leaking(watch.latest()).size(), 1U);
    const Timestamp raised = watch.latest().machines.at(0).gpus.at(0).alerts.at(0).raised;
    put_part(after, 360, 480);
    for (std::int64_t now_ms = kBeginMs + 3 * kHourMs + kMinuteMs; now_ms <= kBeginMs + 4 * kHourMs;
         now_ms += kMinuteMs)
      ASSERT_TRUE(watch.pass(now_ms));
    ASSERT_EQ(watch.latest().machines.size(), 1U);
    ASSERT_EQ(watch.latest().machines[0].gpus.size(), 1U);
    const GpuVerdict& gpu = watch.latest().machines[0].gpus[0];
    EXPECT_EQ(gpu.device.host, after);
    EXPECT_TRUE(gpu.has_uuid);
    EXPECT_EQ(gpu.samples, 480U);
    EXPECT_EQ(gpu.device.capacity_bytes, 81559ULL << 20);
    ASSERT_EQ(gpu.alerts.size(), 1U) << "one leak under both names";
    EXPECT_EQ(gpu.alerts[0].raised, raised);
    EXPECT_FALSE(gpu.alerts[0].cleared);
    const Scan whole = scan_of(reader, kBeginMs, kBeginMs + 4 * kHourMs);
    ASSERT_EQ(whole.machines.size(), 1U);
    EXPECT_EQ(whole.machines[0].gpus.at(0).samples, 480U);
    EXPECT_EQ(whole.machines[0].gpus.at(0).device.host, after);
  }
}

TEST(FleetWatch, TwoMachinesThatTurnOutToBeOneAreReadAnew) {
  StubServer server;
  put(server, "a", 2, 0);
  put(server, "b", 2, 0);
  const Reader reader = server.reader();
  FleetWatch watch(reader, mapping(), {options(), 6 * kHourMs, 2 * kMinuteMs});
  ASSERT_TRUE(watch.pass(kBeginMs + 2 * kHourMs));
  ASSERT_EQ(watch.latest().machines.size(), 2U);
  for (const char* name : {"a", "b"}) server.set_uuid(name, "GPU-0f3a6c1e-52b1-4c5d-9f10-8a7b6c5d4e3f");
  for (int i = 1; i <= 3; ++i) {
    server.put("a", kBeginMs + 2 * kHourMs + i * 30'000, 20'000);
    ASSERT_TRUE(watch.pass(kBeginMs + 2 * kHourMs + i * 30'000));
  }
  ASSERT_EQ(watch.latest().machines.size(), 1U);
  ASSERT_EQ(watch.latest().machines[0].gpus.size(), 1U);
  EXPECT_EQ(watch.latest().machines[0].gpus[0].samples, 243U);
}

TEST(FleetWatch, AMachineThatIsGoneIsForgotten) {
  StubServer server;
  put(server, "gone", 1, 0);
  put(server, "stays", 8, 0);
  const Reader reader = server.reader();
  FleetWatch watch(reader, mapping(), {options(), 2 * kHourMs, 2 * kMinuteMs});
  for (int hour = 1; hour <= 4; ++hour) ASSERT_TRUE(watch.pass(kBeginMs + hour * kHourMs));
  ASSERT_EQ(watch.latest().machines.size(), 1U);
  EXPECT_EQ(watch.latest().machines[0].host, "stays");
}

TEST(FleetWatch, SeveralServersAreReadAsOne) {
  StubServer first, second;
  put(first, "host1", 4, 160);
  put(second, "host2", 4, 0);
  // Both have host3, each for half of the time: a GPU that moved from one to the other.
  put(first, "host3", 2, 160);
  for (int i = 240; i < 480; ++i) second.put("host3", kBeginMs + i * 30'000, 20'000 + 160 * i / 2);
  WatchOptions watched;
  watched.scan = options();
  FleetWatch watch(Reader({first.to_read(), second.to_read()}, 30), mapping(), watched);
  ASSERT_TRUE(watch.pass(kBeginMs + 4 * kHourMs));
  EXPECT_TRUE(watch.latest().unread.empty());
  EXPECT_EQ(watch.latest().machines.size(), 3U);
  EXPECT_EQ(leaking(watch.latest()), (std::vector<std::string>{"host1", "host3"}));
  EXPECT_EQ(gpu_of(watch.latest(), "host3").samples, 480U);
}

TEST(FleetWatch, AServerThatDoesNotAnswerHidesNoMachineOfTheOthers) {
  StubServer first, second;
  put(first, "host1", 4, 160);
  put(second, "host2", 4, 160);
  second.set_failing(true);
  WatchOptions watched;
  watched.scan = options();
  FleetWatch watch(Reader({first.to_read(), second.to_read()}, 30), mapping(), watched);
  ASSERT_TRUE(watch.pass(kBeginMs + 4 * kHourMs));
  EXPECT_EQ(leaking(watch.latest()), (std::vector<std::string>{"host1"}));
  ASSERT_EQ(watch.latest().unread.size(), 1U);
  EXPECT_NE(words_of(watch.latest().unread.front()).find("the server http://127.0.0.1:"), std::string::npos);
  second.set_failing(false);
  ASSERT_TRUE(watch.pass(kBeginMs + 4 * kHourMs + kMinuteMs));
  EXPECT_TRUE(watch.latest().unread.empty());
  EXPECT_EQ(leaking(watch.latest()), (std::vector<std::string>{"host1", "host2"})) << "read from where it was left";
  first.set_failing(true);
  second.set_failing(true);
  EXPECT_FALSE(watch.pass(kBeginMs + 4 * kHourMs + 2 * kMinuteMs)) << "nobody answers";
}

TEST(FleetWatch, APartOfAnAnswerIsSaidAndItsRestIsReadLater) {
  StubServer server;
  put(server, "host1", 4, 160);
  put(server, "host2", 4, 160);
  server.set_without("host2");
  WatchOptions watched;
  watched.scan = options();
  FleetWatch watch(server.reader(), mapping(), watched);
  ASSERT_TRUE(watch.pass(kBeginMs + 4 * kHourMs));
  EXPECT_EQ(leaking(watch.latest()), (std::vector<std::string>{"host1"}));
  ASSERT_EQ(watch.latest().unread.size(), 1U);
  EXPECT_NE(words_of(watch.latest().unread.front()).find("part of what the server http://127.0.0.1:"),
            std::string::npos);
  EXPECT_EQ(watch.latest().unread.front().why, "a store is away");
  server.set_without("");
  ASSERT_TRUE(watch.pass(kBeginMs + 4 * kHourMs + kMinuteMs));
  EXPECT_TRUE(watch.latest().unread.empty());
  EXPECT_EQ(leaking(watch.latest()), (std::vector<std::string>{"host1", "host2"}));
}

}  // namespace
