#include "fleet/findings.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>

#include "fleet/status.hpp"
#include "fleet/text.hpp"

namespace {

using namespace vramtrack;
using namespace vramtrack::fleet;

constexpr std::int64_t kHourMs = 3'600'000;

Timestamp at_hour(double hour) {
  return Timestamp{std::chrono::milliseconds{static_cast<std::int64_t>(hour * kHourMs)}};
}

/// One GPU with one user between two hours; it leaks from `raised_h` on, or never (< 0).
GpuVerdict gpu(const std::string& host, const Workload& user, double from_h, double to_h, double raised_h = -1) {
  GpuVerdict out;
  out.device.host = host;
  out.device.id = "GPU-" + host;
  out.tenancies = {{user, static_cast<std::int64_t>(from_h * kHourMs), static_cast<std::int64_t>(to_h * kHourMs)}};
  if (raised_h >= 0) {
    Alert alert;
    alert.raised = at_hour(raised_h);
    alert.finding.leak = true;
    alert.finding.onset = at_hour(raised_h - 0.5);
    out.alerts.push_back(alert);
  }
  return out;
}

Workload job(const std::string& id, const std::string& name = {}, const std::string& image = {}) {
  Workload out;
  out.job = id;
  out.job_name = name;
  out.image = image;
  return out;
}

Scan scan_of(std::vector<GpuVerdict> gpus) {
  Scan out;
  for (GpuVerdict& g : gpus) {
    const std::string host = g.device.host;
    out.machines.push_back({host, {std::move(g)}, {}});
  }
  return out;
}

const FleetFinding* of_kind(const FleetFindings& found, FindingKind kind) {
  for (const FleetFinding& finding : found.findings)
    if (finding.kind == kind) return &finding;
  return nullptr;
}

TEST(Findings, TheFirstRankThatLeaks) {
  const Scan scan = scan_of({gpu("n1", job("7"), 0, 10, 5), gpu("n2", job("7"), 0, 10, 3), gpu("n3", job("7"), 0, 10)});
  const FleetFindings found = find(scan);
  ASSERT_EQ(found.jobs.size(), 1U);
  EXPECT_EQ(found.jobs[0].name, "job 7");
  EXPECT_EQ(found.jobs[0].leaks[0].gpu->device.host, "n2");
  EXPECT_EQ(found.jobs[0].gpus, 3U);
  EXPECT_EQ(found.jobs[0].nodes.size(), 3U);
  EXPECT_NEAR(found.jobs[0].gpu_hours, 30, 1e-9);
  EXPECT_EQ(found.leaking_gpus, 2U);
}

TEST(Findings, GpusWithoutAKnownUserAreAGroupEach) {
  const Scan scan = scan_of({gpu("n1", {}, 0, 10, 5), gpu("n2", {}, 0, 10, 5)});
  const FleetFindings found = find(scan);
  ASSERT_EQ(found.jobs.size(), 2U);
  EXPECT_FALSE(found.jobs[0].is_named);
  EXPECT_TRUE(found.findings.empty());
}

TEST(Findings, OneImageOnManyNodesIsOneLeak) {
  std::vector<GpuVerdict> gpus;
  for (int i = 0; i < 4; ++i)
    gpus.push_back(gpu("bad" + std::to_string(i), job("l" + std::to_string(i), "a", "torch:2"), 0, 10, 3));
  for (int i = 0; i < 12; ++i)
    gpus.push_back(gpu("good" + std::to_string(i), job("h" + std::to_string(i), "b", "torch:1"), 0, 10));
  const Scan scan = scan_of(std::move(gpus));
  const FleetFindings found = find(scan);
  const FleetFinding* one = of_kind(found, FindingKind::signature);
  ASSERT_NE(one, nullptr);
  EXPECT_EQ(one->program, "torch:2");
  EXPECT_EQ(one->nodes.size(), 4U);
  ASSERT_FALSE(one->shared.empty());
  EXPECT_EQ(one->shared[0].leaking, 4U);
  EXPECT_NEAR(one->shared[0].p_value, 1.0 / 1820, 1e-12) << "4 of 16";
}

TEST(Findings, WhatHealthyRunsShareAsWellIsNoCause) {
  std::vector<GpuVerdict> gpus;
  for (int i = 0; i < 4; ++i)
    gpus.push_back(gpu("bad" + std::to_string(i), job("l" + std::to_string(i), "a", "same"), 0, 10, 3));
  for (int i = 0; i < 12; ++i)
    gpus.push_back(gpu("good" + std::to_string(i), job("h" + std::to_string(i), "b", "same"), 0, 10));
  const Scan scan = scan_of(std::move(gpus));
  const FleetFindings found = find(scan);
  const FleetFinding* one = of_kind(found, FindingKind::signature);
  ASSERT_NE(one, nullptr);
  for (const SharedValue& shared : one->shared) EXPECT_NE(shared.value, "same");
}

TEST(Findings, ANodeThatLeaksAloneInSeveralRunsIsNamed) {
  std::vector<GpuVerdict> gpus;
  for (const char* run : {"1", "2", "3"})
    for (const char* node : {"n1", "n2", "n3", "n4"})
      gpus.push_back(gpu(node, job(run, "bert"), 0, 10, std::string(node) == "n3" ? 4 : -1));
  const Scan scan = scan_of(std::move(gpus));
  const FleetFindings found = find(scan);
  const FleetFinding* node = of_kind(found, FindingKind::node);
  ASSERT_NE(node, nullptr);
  EXPECT_EQ(node->nodes, std::vector<std::string>{"n3"});
  EXPECT_NEAR(node->p_value, 1.0 / 64, 1e-12);
  EXPECT_NE(node->text.find("points at the node"), std::string::npos);
}

TEST(Findings, OneRankOfOneJobIsNotCalledAProof) {
  std::vector<GpuVerdict> gpus;
  for (const char* node : {"n1", "n2", "n3", "n4"})
    gpus.push_back(gpu(node, job("1", "bert"), 0, 10, std::string(node) == "n3" ? 4 : -1));
  const Scan scan = scan_of(std::move(gpus));
  const FleetFindings found = find(scan);
  const FleetFinding* node = of_kind(found, FindingKind::node);
  ASSERT_NE(node, nullptr);
  EXPECT_NEAR(node->p_value, 0.25, 1e-12);
  EXPECT_NE(node->text.find("does not show which of the two is the cause"), std::string::npos);
}

TEST(Findings, AVersionThatBeganToLeakIsNamed) {
  std::vector<GpuVerdict> gpus;
  for (int i = 0; i < 3; ++i)
    gpus.push_back(gpu("n" + std::to_string(i), job("o" + std::to_string(i), "bert", "v1"), 0, 10));
  for (int i = 0; i < 3; ++i)
    gpus.push_back(gpu("n" + std::to_string(i), job("n" + std::to_string(i), "bert", "v2"), 10, 20, 13));
  const Scan scan = scan_of(std::move(gpus));
  const FleetFindings found = find(scan);
  const FleetFinding* version = of_kind(found, FindingKind::version);
  ASSERT_NE(version, nullptr);
  EXPECT_EQ(version->before, "v1");
  EXPECT_EQ(version->since, "v2");
  EXPECT_NEAR(version->p_value, 1.0 / 20, 1e-12);
}

TEST(Findings, AYoungRunIsNoEvidenceOfHealth) {
  // v1 ran for only an hour, and detecting the leak of v2 took three.
  const Scan scan = scan_of({gpu("n1", job("1", "bert", "v1"), 0, 1), gpu("n1", job("2", "bert", "v2"), 1, 10, 4)});
  const FleetFindings found = find(scan);
  EXPECT_EQ(of_kind(found, FindingKind::version), nullptr);
}

TEST(Findings, AJobThatRanOutOfMemorySaysSo) {
  for (const auto& [kind, words] :
       {std::pair<std::optional<EndKind>, std::string>{EndKind::out_of_memory, "out of memory"},
        {EndKind::ended, "process ended"},
        {std::nullopt, "process ended"}}) {
    GpuVerdict leaked = gpu("n1", job("7"), 0, 10, 3);
    leaked.alerts[0].cleared = at_hour(9);
    leaked.alerts[0].ended = AlertEnd::process_ended;
    leaked.alerts[0].end_kind = kind;
    const Scan scan = scan_of({std::move(leaked)});
    const FleetFindings found = find(scan);
    EXPECT_NE(scan_text(scan, found, {}).find("  ended: " + words + "  "), std::string::npos)
        << scan_text(scan, found, {});
    EXPECT_NE(scan_json(scan, found, {}).find("\"state\":\"" + words + '"'), std::string::npos);
  }
}

TEST(Findings, ALeakOnASharedGpuIsOfAllItsPodsOrOfNone) {
  Workload x, y, alone;
  x.pod = "x-0";
  y.pod = "y-0";
  x.name_space = y.name_space = "ml";
  GpuVerdict shared = gpu("n1", x, 0, 10, 5);
  shared.tenancies.push_back({y, 0, 10 * kHourMs});
  shared.tenancies.push_back({Workload{}, 0, 10 * kHourMs});  // from a scrape with less information
  // The same programs alone on other nodes: no node or program is compared with unknown ones.
  const Scan scan = scan_of({shared, gpu("n2", x, 0, 10), gpu("n3", y, 0, 10)});
  const FleetFindings found = find(scan);
  ASSERT_EQ(found.jobs.size(), 1U);
  EXPECT_EQ(found.jobs[0].name, "ml/x, ml/y");
  EXPECT_EQ(found.jobs[0].leaks[0].users.size(), 2U);
  EXPECT_EQ(found.jobs[0].program, "");
  EXPECT_EQ(found.jobs[0].nodes, std::vector<std::string>{"n1"});
  EXPECT_NEAR(found.jobs[0].gpu_hours, 10, 1e-9);
  EXPECT_TRUE(found.findings.empty());
  const std::string json = scan_json(scan, found, {});
  EXPECT_NE(json.find(R"("pod":null,"pods":["x-0","y-0"])"), std::string::npos) << json;
  const std::string metrics = fleet_metrics(scan, found, {});
  // Each metric of a leak names its owner, so an alert on any of them can be grouped by job.
  for (const char* name :
       {"vramtrack_verdict", "vramtrack_severity", "vramtrack_confidence_ratio", "vramtrack_growth_bytes_per_second",
        "vramtrack_device_leak_paged", "vramtrack_fleet_leaking_used_bytes"}) {
    const std::size_t at = metrics.find(std::string("\n") + name + '{');
    ASSERT_NE(at, std::string::npos) << name << " is not in\n" << metrics;
    const std::string line = metrics.substr(at + 1, metrics.find('\n', at + 1) - at - 1);
    EXPECT_NE(
        line.find(R"(work="ml/x, ml/y",slurm_job_id="",namespace="ml",pod="x-0,y-0",container="",deployment="x,y")"),
        std::string::npos)
        << line;
  }
}

TEST(Findings, PeopleAreNotifiedOfALeakWhenTheEngineDecidesSo) {
  GpuVerdict later = gpu("n1", job("1"), 0, 10, 5), now = gpu("n2", job("2"), 0, 10, 5);
  now.alerts[0].paged_because = "memory may run out in 58m";
  const Scan scan = scan_of({later, now, gpu("n3", job("3"), 0, 10)});
  const std::string metrics = fleet_metrics(scan, find(scan), {});
  const auto value_of = [&metrics](const std::string& name, const std::string& host) {
    for (std::size_t at = metrics.find('\n' + name + '{'); at != std::string::npos;
         at = metrics.find('\n' + name + '{', at + 1)) {
      const std::string line = metrics.substr(at + 1, metrics.find('\n', at + 1) - at - 1);
      if (line.find("Hostname=\"" + host + '"') != std::string::npos) return line.substr(line.rfind(' ') + 1);
    }
    return std::string("none");
  };
  EXPECT_EQ(value_of("vramtrack_verdict", "n1"), "1");
  EXPECT_EQ(value_of("vramtrack_device_leak_paged", "n1"), "0");
  EXPECT_EQ(value_of("vramtrack_device_leak_paged", "n2"), "1");
  EXPECT_EQ(value_of("vramtrack_device_leak_paged", "n3"), "none");
}

TEST(Findings, WhoHadAGpuLastIsItsUserAfterwards) {
  GpuVerdict verdict = gpu("n1", job("1"), 0, 4);
  verdict.tenancies.push_back({job("2"), 2 * kHourMs, 4 * kHourMs});
  verdict.tenancies.push_back({job("3"), 6 * kHourMs, 8 * kHourMs});
  EXPECT_EQ(verdict.users_at(at_hour(1)).size(), 1U);
  EXPECT_EQ(verdict.users_at(at_hour(3)).size(), 2U);
  EXPECT_EQ(verdict.users_at(at_hour(5)).size(), 2U) << "nobody has it: those who had";
  EXPECT_EQ(verdict.users_at(at_hour(9)).front()->job, "3");
  EXPECT_EQ(GpuVerdict().users_at(at_hour(1)).size(), 0U);
}

TEST(Findings, AWithdrawnAlertIsNoLeak) {
  GpuVerdict withdrawn = gpu("n1", job("1"), 0, 10, 4);
  withdrawn.alerts[0].cleared = at_hour(5);
  withdrawn.alerts[0].ended = AlertEnd::withdrawn;
  const Scan scan = scan_of({withdrawn});
  const FleetFindings found = find(scan);
  EXPECT_TRUE(found.jobs.empty());
  EXPECT_EQ(found.leaking_gpus, 0U);
}

}  // namespace
