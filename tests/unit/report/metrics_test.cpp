#include "report/metrics.hpp"

#include <gmock/gmock.h>

#include <fstream>
#include <map>
#include <regex>
#include <sstream>

#include "paths.hpp"
#include "sample_view.hpp"

namespace vramtrack {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

/// name -> {type, labels} of every metric in a text.
struct Described {
  std::string type;
  std::string labels;
  friend bool operator==(const Described&, const Described&) = default;
  friend std::ostream& operator<<(std::ostream& out, const Described& d) { return out << d.type << ' ' << d.labels; }
};

std::map<std::string, Described> described(const std::string& text) {
  std::map<std::string, Described> out;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    std::smatch m;
    if (std::regex_match(line, m, std::regex("# TYPE (\\S+) (\\S+)"))) out[m[1]].type = m[2];
    if (line.empty() || line[0] == '#') continue;
    const std::string name = line.substr(0, line.find_first_of("{ "));
    std::string labels;
    const std::regex label(R"((\w+)=")");
    const std::size_t open = line.find('{');
    const std::string inside = open == std::string::npos ? "" : line.substr(open, line.rfind('}') - open);
    for (std::sregex_iterator it(inside.begin(), inside.end(), label), end; it != end; ++it)
      labels += (labels.empty() ? "" : ", ") + (*it)[1].str();
    labels = std::regex_replace(labels, std::regex("UUID, gpu, Hostname"), "device");
    out[name].labels =
        std::regex_replace(labels,
                           std::regex("pid, comm, framework, user, work, slurm_job_id, slurm_step_id, namespace, pod, "
                                      "container, deployment, pod_uid, container_id"),
                           "process");
  }
  return out;
}

std::map<std::string, Described> documented() {
  std::ifstream in(source_dir() + "/docs/METRICS.md");
  std::map<std::string, Described> out;
  for (std::string line; std::getline(in, line);) {
    std::smatch m;
    if (std::regex_match(line, m, std::regex(R"(\| `(\w+)` \| (\w+) \| ?(.*?) ?\| .* \|)"))) out[m[1]] = {m[2], m[3]};
  }
  return out;
}

View full_view() {
  View view = sample_view();
  view.series[0].utilisation_ratio = 0.5;
  view.series[0].gauges = {0.25, 61, 148.5, 150, 0.4, 1.695e9};
  view.series[0].health = healthy_gpu();
  view.series[0].last_xid = LastXid{at(7100), 48, "XID 48: an uncorrectable memory error"};
  view.series[0].verdict.suspect = Suspect{4243, 78, "python serve.py", 0.96};
  view.series[1].process->name = "python";
  view.series[1].stall = lasting_stall();
  view.series[0].headroom = view.series[1].headroom = Headroom{9 * 1073741824ULL, 5, 3, -1073741824, 0, 88};
  view.series[1].wall = MemoryWall{12 * 1073741824ULL, 9 * 1073741824ULL, 2, 1048576, "dmem.max of /pod"};
  view.series[1].host = HostHolding{3 * 1073741824ULL, 5 * 1073741824ULL, 1073741824ULL, 7 * 1073741824ULL};
  SeriesView host = view.series[1];
  host.key.metric = Metric::host_anonymous;
  host.alerts.clear();
  host.suspicions.clear();
  view.series.push_back(host);
  view.series[1].sites = {{"train.py:57 step", 3e9, 100, 0, 2, {}}, {"model.py:4 forward", 1e9, 10, 0, 2, {}}};
  SeriesView reserved = view.series[0];
  reserved.key.metric = Metric::device_reserved;
  reserved.used_bytes = 1000;
  view.series.push_back(reserved);
  SeriesView rest = view.series[0];
  rest.key.metric = Metric::device_unattributed;
  rest.alerts.clear();
  rest.unreleased_bytes = 12345;
  view.series.push_back(rest);
  return view;
}

OwnCost full_cost() {
  OwnCost own;
  own.recording = true;
  own.sources = {{"nvml", 10, 1, 0.5}};
  own.polls = 10;
  own.acts[{"freeze", "done"}] = 2;
  own.host_kills[{"cgroup", true}] = 3;
  return own;
}

TEST(Metrics, MemoryThatWasNotReleasedHasItsBytes) {
  EXPECT_THAT(prometheus_text(full_view(), full_cost(), {"node7", "0.1.0", true, 10}),
              ::testing::ContainsRegex("vramtrack_device_memory_unreleased_bytes\\{[^}]*\\} 12345\n"));
}

TEST(Metrics, HeadroomMayBeMissing) {
  const std::string text = prometheus_text(full_view(), full_cost(), {"node7", "0.1.0", true, 10});
  EXPECT_THAT(text, ::testing::ContainsRegex("vramtrack_device_memory_headroom_bytes\\{[^}]*\\} -1073741824\n"));
  EXPECT_THAT(text,
              ::testing::ContainsRegex("vramtrack_process_memory_wall_bytes\\{[^}]*set_by=\"dmem.max of /pod\"\\} "
                                       "12884901888\n"));
  EXPECT_THAT(text, ::testing::ContainsRegex("vramtrack_process_memory_headroom_bytes\\{[^}]*\\} -1073741824\n"));
  EXPECT_THAT(text, ::testing::ContainsRegex(
                        "vramtrack_process_memory_wall_growth_bytes_per_second\\{[^}]*set_by=\"dmem.max of "
                        "/pod\"\\} 1048576\n"));
  EXPECT_THAT(text, ::testing::ContainsRegex("vramtrack_process_host_anonymous_bytes\\{[^}]*\\} 3221225472\n"));
  EXPECT_THAT(text, ::testing::ContainsRegex("vramtrack_process_host_available_bytes\\{[^}]*\\} 7516192768\n"));
  EXPECT_THAT(text, ::testing::HasSubstr("vramtrack_host_out_of_memory_total{reason=\"cgroup\",held_gpu=\"yes\"} 3\n"));
  EXPECT_THAT(text, ::testing::ContainsRegex("vramtrack_process_memory_peak_bytes\\{[^}]*\\} 9663676416\n"));
}

TEST(Metrics, TheLinesThatHoldMostAreShownOnTheDeviceWhereTheirProcessHoldsMost) {
  View view = sample_view();
  view.series[1].sites = {{"train.py:57 step", 3e9, 100, 0, 2, {}}, {"model.py:4 forward", 1e9, 10, 0, 2, {}}};
  SeriesView second = view.series[1];
  second.key.device_id = "GPU-2";
  second.used_bytes = view.series[1].used_bytes / 2;
  SeriesView other_device = view.series[0];
  other_device.key.device_id = other_device.device.id = "GPU-2";
  view.series.push_back(other_device);
  view.series.push_back(second);
  const std::string text = prometheus_text(view, full_cost(), {"node7", "0.1.0", false, 1});
  EXPECT_THAT(text, ::testing::ContainsRegex(
                        "vramtrack_site_live_bytes\\{UUID=\"GPU-1\"[^}]*site=\"train.py:57 step\"\\} 3000000000"));
  EXPECT_THAT(text, Not(HasSubstr("model.py:4")));
  EXPECT_THAT(text, Not(::testing::ContainsRegex("vramtrack_site_live_bytes\\{UUID=\"GPU-2\"")));
}

TEST(Metrics, AreTheDocumentedOnes) {
  MetricsOptions options{"node7", "0.1.0", true, 10};
  options.categories = [](const SeriesView& process) {
    return process.key.pid == 4243 ? CategoryBytesByName{{"weights", 7e9}, {"kv_cache", 2e9}} : CategoryBytesByName{};
  };
  const std::string text = prometheus_text(full_view(), full_cost(), options);
  EXPECT_THAT(text, ::testing::ContainsRegex(
                        "vramtrack_category_live_bytes\\{[^}]*pid=\"4243\"[^}]*category=\"kv_cache\"\\} 2000000000\n"));
  const auto written = described(text);
  const auto told = documented();
  for (const auto& [name, what] : written) {
    ASSERT_TRUE(told.contains(name)) << name << " is not in docs/METRICS.md";
    EXPECT_EQ(what, told.at(name)) << name;
  }
  for (const auto& entry : told)
    EXPECT_TRUE(written.contains(entry.first)) << entry.first << " is in docs/METRICS.md only";
}

TEST(Metrics, OfALeak) {
  const std::string text = prometheus_text(full_view(), full_cost(), {"node7", "0.1.0", false, 10});
  const std::string device = R"({UUID="GPU-1",gpu="0",Hostname="node7")";
  EXPECT_THAT(text, HasSubstr("vramtrack_verdict" + device +
                              R"(,detector="judge",pattern="gradual_leak"} 1)"
                              "\n"));
  EXPECT_THAT(text, HasSubstr("vramtrack_verdict" + device +
                              R"(,detector="judge",pattern="cyclic"} 0)"
                              "\n"));
  EXPECT_THAT(text, HasSubstr("vramtrack_oom_eta_seconds" + device +
                              R"(,detector="judge"} 2820)"
                              "\n"));
  EXPECT_THAT(text, HasSubstr("vramtrack_suspect_info" + device + R"(,pid="4243",comm="python",framework="PyTorch")"));
  EXPECT_THAT(text, HasSubstr("vramtrack_device_memory_used_bytes" + device + "} 12884901888\n"));
  EXPECT_THAT(text, Not(HasSubstr("serve.py"))) << "a command line";
  EXPECT_THAT(text, Not(HasSubstr("vramtrack_process_memory_used_bytes"))) << "off by default";
}

TEST(Metrics, OfStalledProcesses) {
  View view = full_view();
  const std::string device = R"({UUID="GPU-1",gpu="0",Hostname="node7")";
  std::string text = prometheus_text(view, full_cost(), {"node7", "0.1.0", true, 10});
  EXPECT_THAT(text, HasSubstr("vramtrack_device_processes_stalled" + device + "} 1\n"));
  EXPECT_THAT(text, HasSubstr("vramtrack_device_stalled_memory_bytes" + device + "} 3221225472\n"));
  EXPECT_THAT(text, HasSubstr("vramtrack_process_stalled_seconds" + device +
                              R"(,pid="4243",comm="python",framework="",user="alice",)"));
  view.series[1].stall->judgement = StallJudgement::unclear;
  text = prometheus_text(view, full_cost(), {"node7", "0.1.0", true, 10});
  EXPECT_THAT(text, HasSubstr("vramtrack_device_processes_stalled" + device + "} 0\n"));
  EXPECT_THAT(text, HasSubstr("vramtrack_device_processes_no_progress" + device + "} 1\n"));
  EXPECT_THAT(text, Not(HasSubstr("vramtrack_process_stalled_seconds")));
}

TEST(Metrics, OfHealth) {
  View view = full_view();
  view.series[0].health->throttle->add(Throttle::thermal_software);
  const std::string text = prometheus_text(view, full_cost(), {"node7", "0.1.0", false, 10});
  const std::string device = R"({UUID="GPU-1",gpu="0",Hostname="node7")";
  EXPECT_THAT(text, HasSubstr("vramtrack_gpu_temperature_celsius" + device + "} 61\n")) << "the gauge is newer";
  EXPECT_THAT(text, HasSubstr("vramtrack_gpu_power_watts" + device + "} 148.5\n"));
  EXPECT_THAT(text, HasSubstr("vramtrack_gpu_power_limit_watts" + device + "} 150\n"));
  EXPECT_THAT(text, HasSubstr("vramtrack_gpu_sm_clock_hertz" + device + "} 1695000000\n"));
  EXPECT_THAT(text, HasSubstr("vramtrack_gpu_fan_ratio" + device + "} 0.4\n"));
  EXPECT_THAT(text, HasSubstr("vramtrack_device_memory_utilisation_ratio" + device + "} 0.25\n"));
  EXPECT_THAT(text, HasSubstr("vramtrack_gpu_ecc_errors_total" + device + R"(,kind="corrected"} 2)" + "\n"));
  EXPECT_THAT(text, HasSubstr("vramtrack_gpu_throttled" + device + R"(,reason="thermal_software"} 1)" + "\n"));
  EXPECT_THAT(text, HasSubstr("vramtrack_gpu_throttled" + device + R"(,reason="power_brake"} 0)" + "\n"));
  EXPECT_THAT(text, HasSubstr("vramtrack_gpu_xid_last" + device + "} 48\n"));
  EXPECT_THAT(text, HasSubstr("vramtrack_gpu_health" + device + "} 2\n"));
}

TEST(Metrics, HealthThatIsNotKnownIsAbsent) {
  View view = full_view();
  view.series[0].health = DeviceHealth{};
  view.series[0].gauges = {};
  view.series[0].last_xid.reset();
  const std::string text = prometheus_text(view, full_cost(), {"node7", "0.1.0", false, 10});
  for (const char* name :
       {"vramtrack_gpu_temperature", "vramtrack_gpu_power", "vramtrack_gpu_fan", "vramtrack_gpu_ecc",
        "vramtrack_gpu_throttled", "vramtrack_gpu_remapped", "vramtrack_gpu_memory_repair", "vramtrack_gpu_xid"})
    EXPECT_THAT(text, Not(HasSubstr(name)));
}

TEST(Metrics, TheSuspectHasTheNamesOfItsJob) {
  View view = full_view();
  ProcessInfo& who = *view.series[1].process;
  who.slurm_job = "77.batch";
  who.pod = "u-1";
  who.container = "aa11";
  MetricsOptions options{"node7", "0.1.0", true, 10};
  options.pod_name = [](const std::string& uid, const std::string& id) {
    return uid == "u-1" && id == "aa11" ? PodName{"train", "job-7c9d8b6f5-x2x4z", "main"} : PodName();
  };
  const std::string text = prometheus_text(view, full_cost(), options);
  EXPECT_THAT(text,
              HasSubstr(R"(pid="4243",comm="python",framework="PyTorch",user="alice",work="job 77",slurm_job_id="77",)"
                        R"(slurm_step_id="batch",namespace="train",pod="job-7c9d8b6f5-x2x4z",container="main",)"
                        R"(deployment="job",pod_uid="u-1",container_id="aa11"} 1)"));
  options.pod_name = {};
  EXPECT_THAT(prometheus_text(view, full_cost(), options),
              HasSubstr(R"(namespace="",pod="",container="",deployment="",pod_uid="u-1",container_id="aa11"} 1)"));
}

TEST(Metrics, EachProcessHasTheNamesOfItsJob) {
  View view = full_view();
  ProcessInfo& who = *view.series[1].process;
  who.slurm_job = "77.0";
  who.pod = "u-1";
  MetricsOptions options{"node7", "0.1.0", true, 10};
  options.pod_name = [](const std::string&, const std::string&) { return PodName{"train", "vllm-0", "main"}; };
  std::istringstream in(prometheus_text(view, full_cost(), options));
  int processes = 0;
  for (std::string line; std::getline(in, line);) {
    if (line.find("pid=\"4243\"") == std::string::npos) continue;
    ++processes;
    EXPECT_THAT(
        line,
        HasSubstr(R"(user="alice",work="job 77",slurm_job_id="77",slurm_step_id="0",namespace="train",pod="vllm-0",)"
                  R"(container="main",deployment="vllm",pod_uid="u-1")"));
  }
  EXPECT_GE(processes, 4) << "memory, growth, headroom and the suspect";
}

TEST(Metrics, WorkIsTheJobThePodTheContainerOrWhatWasStarted) {
  View view = full_view();
  ProcessInfo& who = *view.series[1].process;
  MetricsOptions options{"node7", "0.1.0", true, 10};
  options.pod_name = [](const std::string& uid, const std::string&) {
    return uid == "u-1" ? PodName{"train", "big-7c9d8b6f5-x2x4z", "main"} : PodName();
  };
  options.launch = [](const ProcessKey& p) { return p.pid == 4243 ? "torchrun pid 4200" : ""; };
  const auto work = [&] {
    const std::string text = prometheus_text(view, full_cost(), options);
    const auto value = [&text](const std::string& metric) {
      const std::size_t line = text.find('\n' + metric + '{');
      const std::size_t at = text.find(",work=\"", line) + 7;
      return line == std::string::npos ? "none" : text.substr(at, text.find('"', at) - at);
    };
    EXPECT_EQ(value("vramtrack_suspect_info"), value("vramtrack_device_leak_paged"));
    return value("vramtrack_suspect_info");
  };
  EXPECT_EQ(work(), "node7 torchrun pid 4200");
  who.container = std::string(64, 'a');
  EXPECT_EQ(work(), "node7 container aaaaaaaaaaaa");
  who.pod = "u-2";
  EXPECT_EQ(work(), "pod u-2");
  who.pod = "u-1";
  EXPECT_EQ(work(), "train/big");
  who.slurm_job = "77.0";
  EXPECT_EQ(work(), "job 77");
  who = {};
  who.name = "python";
  options.launch = {};
  EXPECT_EQ(work(), "node7 python pid 4243") << "what is not visible here";
  view.series[0].verdict.suspect.reset();
  EXPECT_THAT(prometheus_text(view, full_cost(), options), HasSubstr(R"(detector="judge",work="node7 GPU 0"})"));
}

/// Labels that change with jobs would create new series each time, so only processes have them.
TEST(Metrics, JobsArePartOfNoOtherSeries) {
  std::istringstream in(prometheus_text(full_view(), full_cost(), {"node7", "0.1.0", true, 10}));
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("#") || line.starts_with("vramtrack_suspect_info") || line.starts_with("vramtrack_process_") ||
        line.starts_with("vramtrack_site_"))
      continue;
    for (const char* label : {"slurm_job_id=", "pod=", "pod_uid=", "namespace=", "container=", "container_id="})
      EXPECT_THAT(line, Not(HasSubstr(label)));
    EXPECT_THAT(line, Not(HasSubstr("pid=")));
    EXPECT_THAT(line, Not(HasSubstr("comm=")));
  }
}

TEST(Metrics, SuspectOnlyWhileAVerdictStands) {
  View view = full_view();
  view.series[0].verdict.finding.leak = false;
  const std::string text = prometheus_text(view, full_cost(), {"node7", "0.1.0", false, 10});
  EXPECT_THAT(text, Not(HasSubstr("vramtrack_suspect_info")));
  EXPECT_THAT(text, Not(HasSubstr(R"(pattern="gradual_leak"} 1)")));
}

TEST(Metrics, WhatIsNotKnownIsAbsent) {
  View view = full_view();
  view.series[0].paused = true;
  view.series[0].device.capacity_bytes.reset();
  view.series[0].verdict.finding.state = State::too_short;
  view.series[0].verdict.finding.oom_in_s.reset();
  OwnCost own = full_cost();
  own.recording = false;
  const std::string text = prometheus_text(view, own, {"node7", "0.1.0", false, 10});
  for (const char* name : {"vramtrack_device_memory_used_bytes{", "vramtrack_device_memory_total_bytes",
                           "vramtrack_confidence_ratio", "vramtrack_oom_eta_seconds", "vramtrack_store_bytes"})
    EXPECT_THAT(text, Not(HasSubstr(name)));
  EXPECT_THAT(text, HasSubstr("vramtrack_device_up"));
  EXPECT_THAT(text, HasSubstr("vramtrack_recording 0\n"));
}

// 300 processes, of which the 5 largest and 5 fastest are shown: at most 10, and the sum of all is kept.
TEST(Metrics, ProcessesAreBoundedAndSumUp) {
  View view = full_view();
  const SeriesView one = view.series[1];
  view.series.erase(view.series.begin() + 1);
  std::uint64_t all = 0;
  for (std::uint32_t i = 0; i < 300; ++i) {
    SeriesView p = one;
    p.key.pid = 1000 + i;
    p.used_bytes = (i * 7919 % 300 + 1) * 1024;
    p.verdict.finding.growth_bytes_per_s.mid = i * 31 % 300;
    all += p.used_bytes;
    view.series.push_back(p);
  }
  const std::string text = prometheus_text(view, full_cost(), {"node7", "0.1.0", true, 5});
  std::istringstream in(text);
  std::size_t shown = 0;
  double sum = 0;
  for (std::string line; std::getline(in, line);) {
    const bool process = line.rfind("vramtrack_process_memory_used_bytes{", 0) == 0;
    if (process) ++shown;
    if (process || line.rfind("vramtrack_processes_rest_memory_bytes{", 0) == 0)
      sum += std::stod(line.substr(line.rfind(' ') + 1));
  }
  EXPECT_GE(shown, 5U);
  EXPECT_LE(shown, 10U);
  EXPECT_EQ(sum, static_cast<double>(all));
}

TEST(Metrics, ForeignTextsCannotBreakTheFormat) {
  View view = full_view();
  const std::string hostile = "a\"b\\c\nd} 1\r\x1b[2J\xff\xc3\xa9";
  view.series[0].device.name = hostile;
  ProcessInfo& who = *view.series[1].process;
  who.name = who.slurm_job = who.pod = who.container = hostile;
  view.series[0].verdict.framework = hostile;
  MetricsOptions options{hostile, "0.1.0", true, 10};
  options.pod_name = [&](const std::string&, const std::string&) { return PodName{hostile, hostile, hostile}; };
  const std::string text = prometheus_text(view, full_cost(), options);
  EXPECT_THAT(text, HasSubstr(R"(name="a\"b\\c d} 1)"));
  const std::regex line(R"re(# (HELP|TYPE) \w+ [ -~]+|\w+(\{(\w+="([^"\\\n]|\\["\\n])*",?)*\})? [-+.eE0-9naifNI]+)re");
  std::istringstream in(text);
  for (std::string one; std::getline(in, one);) {
    EXPECT_TRUE(std::regex_match(one, line)) << one;
    for (const char c : one) EXPECT_FALSE(c == '\r' || c == '\x1b' || c == '\xff') << one;
  }
}

/// name -> number of series with a UUID, for the first device.
std::map<std::string, std::size_t> series_of_device(const std::string& text) {
  std::map<std::string, std::size_t> out;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);)
    if (line.find("{UUID=\"GPU-1\"") != std::string::npos) ++out[line.substr(0, line.find('{'))];
  return out;
}

/// docs/METRICS.md has the table "| what | ... | series |" of the most series that one device can have.
std::size_t documented_series(const std::string& what) {
  std::ifstream in(source_dir() + "/docs/METRICS.md");
  std::smatch m;
  for (std::string line; std::getline(in, line);)
    if (std::regex_match(line, m, std::regex(R"re(\| ([^|]*) \|[^|]*\| (\d+) \|)re")) && m[1] == what)
      return std::stoul(m[2]);
  ADD_FAILURE() << "docs/METRICS.md has no row '" << what << "' in its table of series";
  return 0;
}

// Everything that a device can have at once, and 300 processes on it.
TEST(Metrics, SeriesPerDeviceAreAsManyAsDocumented) {
  View view = full_view();
  const SeriesView one = view.series[1];
  for (std::uint32_t i = 0; i < 300; ++i) {
    view.series.push_back(one);
    view.series.back().key.pid = 10000 + i;
    view.series.back().verdict.finding.growth_bytes_per_s.mid = i;
    view.series.back().used_bytes = 1000 - i;
    SeriesView host = view.series.back();
    host.key.metric = Metric::host_anonymous;
    view.series.push_back(std::move(host));
  }
  std::map<std::string, std::size_t> sums;
  for (const auto& [name, count] : series_of_device(prometheus_text(view, full_cost(), {"node7", "0.1.0", true, 10}))) {
    const bool process = name.find("vramtrack_process") == 0;
    const bool health = name.find("vramtrack_gpu_") == 0 && name.find("power") == std::string::npos &&
                        name.find("fan") == std::string::npos;
    const bool line = name.find("vramtrack_site_") == 0;
    sums[process                            ? "processes"
         : name == "vramtrack_suspect_info" ? "suspect"
         : line                             ? "lines"
         : health                           ? "health"
                                            : "other"] += count;
  }
  EXPECT_EQ(sums["suspect"], documented_series("suspect, while there is one"));
  EXPECT_EQ(sums["health"], documented_series("health, if the driver reports it"));
  EXPECT_EQ(sums["other"], documented_series("memory, use and verdict"));
  EXPECT_EQ(sums["processes"], documented_series("processes, with `metrics.per-process` and 10 `top-processes`"));
  EXPECT_EQ(sums["lines"], documented_series("lines of programs, with `telemetry.enabled` and 10 `top-processes`"));
}

}  // namespace
}  // namespace vramtrack
