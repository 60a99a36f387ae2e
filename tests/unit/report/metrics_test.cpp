#include "report/metrics.hpp"

#include <gmock/gmock.h>

#include <fstream>
#include <map>
#include <regex>
#include <sstream>

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
    out[name].labels = std::regex_replace(labels, std::regex("UUID, gpu, Hostname"), "device");
  }
  return out;
}

std::map<std::string, Described> documented() {
  std::ifstream in(std::string(VRAMTRACK_SOURCE_DIR) + "/docs/METRICS.md");
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
  view.series[0].health = healthy_gpu();
  view.series[0].last_xid = LastXid{at(7100), 48, "XID 48: an uncorrectable memory error"};
  view.series[0].verdict.suspect = Suspect{4243, 78, "python serve.py", 0.96};
  view.series[1].process->name = "python";
  SeriesView reserved = view.series[0];
  reserved.key.metric = Metric::device_reserved;
  reserved.used_bytes = 1000;
  view.series.push_back(reserved);
  return view;
}

OwnCost full_cost() {
  OwnCost own;
  own.recording = true;
  own.sources = {{"nvml", 10, 1, 0.5}};
  own.polls = 10;
  return own;
}

TEST(Metrics, AreTheDocumentedOnes) {
  const std::string text = prometheus_text(full_view(), full_cost(), {"node7", "0.1.0", true, 10});
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

TEST(Metrics, OfHealth) {
  View view = full_view();
  view.series[0].health->throttle->add(Throttle::thermal_software);
  const std::string text = prometheus_text(view, full_cost(), {"node7", "0.1.0", false, 10});
  const std::string device = R"({UUID="GPU-1",gpu="0",Hostname="node7")";
  EXPECT_THAT(text, HasSubstr("vramtrack_gpu_temperature_celsius" + device + "} 71\n"));
  EXPECT_THAT(text, HasSubstr("vramtrack_gpu_ecc_errors_total" + device + R"(,kind="corrected"} 2)" + "\n"));
  EXPECT_THAT(text, HasSubstr("vramtrack_gpu_throttled" + device + R"(,reason="thermal_software"} 1)" + "\n"));
  EXPECT_THAT(text, HasSubstr("vramtrack_gpu_throttled" + device + R"(,reason="power_brake"} 0)" + "\n"));
  EXPECT_THAT(text, HasSubstr("vramtrack_gpu_xid_last" + device + "} 48\n"));
  EXPECT_THAT(text, HasSubstr("vramtrack_gpu_health" + device + "} 2\n"));
}

TEST(Metrics, HealthThatIsNotKnownIsAbsent) {
  View view = full_view();
  view.series[0].health = DeviceHealth{};
  view.series[0].last_xid.reset();
  const std::string text = prometheus_text(view, full_cost(), {"node7", "0.1.0", false, 10});
  for (const char* name : {"vramtrack_gpu_temperature", "vramtrack_gpu_ecc", "vramtrack_gpu_throttled",
                           "vramtrack_gpu_remapped", "vramtrack_gpu_memory_repair", "vramtrack_gpu_xid"})
    EXPECT_THAT(text, Not(HasSubstr(name)));
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

// 300 processes, 5 greatest and 5 fastest shown: at most 10, and the sum of all is kept.
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
  view.series[0].device.name = "a\"b\\c\nd";
  const std::string text = prometheus_text(view, full_cost(), {"node7", "0.1.0", false, 10});
  EXPECT_THAT(text, HasSubstr(R"(name="a\"b\\c?d")"));
}

}  // namespace
}  // namespace vramtrack
