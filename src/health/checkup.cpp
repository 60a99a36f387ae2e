#include "health/checkup.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/option.hpp"
#include "core/order.hpp"
#include "core/xid.hpp"
#include "health/findings.hpp"
#include "report/health.hpp"

namespace vramtrack {
namespace {

HealthSeverity severity_of(Condition condition) {
  return condition == Condition::failing ? HealthSeverity::critical : HealthSeverity::warning;
}

void check_driver(const HealthFacts& facts, HealthCheckup& out) {
  if (!facts.nvml) return;
  const NvmlCheck& nvml = *facts.nvml;
  const std::string module =
      facts.module_version.empty() ? "kernel module of unknown version" : "kernel module " + facts.module_version;
  if (nvml.is_mismatched) {
    out.findings.push_back(
        {.severity = HealthSeverity::critical,
         .kind = "driver_mismatch",
         .device = {},
         .what = "the NVIDIA driver's library and its kernel module have different versions; no new program can use "
                 "the GPUs",
         .cause = "driver",
         .evidence = fmt::format("library {} ({}), {}; {}",
                                 nvml.library_version.empty() ? "of unknown version" : nvml.library_version, nvml.path,
                                 module, nvml.reason),
         .advice = "restart the machine, or unload the nvidia modules and load them again"});
  } else if (!nvml.works && !facts.module_version.empty()) {
    out.unchecked.push_back({"the NVIDIA GPUs", fmt::format("the driver is loaded ({}), and {}", module, nvml.reason),
                             "see nvidia-smi and the kernel log"});
  }
  for (const NvmlCheck::Silent& silent : nvml.silent) {
    DeviceInfo device;
    device.index = static_cast<int>(silent.index);
    if (silent.is_lost)
      out.findings.push_back(lost_finding(device, silent.reason));
    else
      out.unchecked.push_back(
          {health_device_words(device), "it does not answer: " + silent.reason, "see nvidia-smi and the kernel log"});
  }
}

void check_device(const HealthFacts::Device& device, Timestamp now, HealthCheckup& out) {
  DeviceCheckup one;
  one.device = device.info;
  one.words = health_words(device.health);
  if (!device.lost.empty()) {
    out.findings.push_back(lost_finding(device.info, device.lost));
    out.devices.push_back(std::move(one));
    return;
  }
  SeriesView view;
  view.key.device_id = device.info.id;
  view.device = device.info;
  view.health = device.health;
  const HealthReport report = judge_health(view, now);
  for (const HealthProblem& problem : report.problems) {
    const bool is_clocks = problem.kind == "thermal" || problem.kind == "power" || problem.kind == "slowdown";
    out.findings.push_back({.severity = severity_of(problem.condition),
                            .kind = std::string(problem.kind),
                            .device = device.info,
                            .what = problem.text,
                            .cause = is_clocks ? "power" : "hardware",
                            .evidence = problem_evidence(problem.kind, device),
                            .advice = problem.next});
  }
  if (report.condition == Condition::unknown)
    out.unchecked.push_back({"the health of " + health_device_words(device.info),
                             "its driver reports neither temperature nor ECC nor throttling here", ""});
  list_exclusions(device, one);
  out.devices.push_back(std::move(one));
}

void check_log(const HealthFacts& facts, HealthCheckup& out) {
  // XIDs are NVIDIA's. Without its driver there is nothing to look for.
  const HealthFacts::Log& log = facts.log;
  if (!log.is_wanted || (log.events.empty() && !log.is_named && !has_nvidia(facts))) return;
  if (!log.error.empty()) {
    out.unchecked.push_back({"XID errors in the kernel log", log.error,
                             fmt::format("run as root, name a copy of the log with {}, or leave it out with {}",
                                         name_of(Option::kernel_log), name_of(Option::no_kernel_log))});
    return;
  }
  for (const DriverEvent& event : log.events) add_log_finding(event, facts, out);
  if (log.dropped > 0)
    out.unchecked.push_back({"some XID errors in the kernel log",
                             fmt::format("there are too many different ones: {} were left out", log.dropped), ""});
}

/// A requested GPU that does not exist is reported as unhealthy.
void check_wanted(const HealthFacts& facts, HealthCheckup& out) {
  for (const int index : facts.wanted) {
    const bool is_here = std::any_of(facts.devices.begin(), facts.devices.end(),
                                     [index](const HealthFacts::Device& one) { return one.info.index == index; });
    const bool is_silent = facts.nvml && std::any_of(facts.nvml->silent.begin(), facts.nvml->silent.end(),
                                                     [index](const NvmlCheck::Silent& one) {
                                                       return static_cast<int>(one.index) == index;
                                                     });
    if (!is_here && !is_silent)
      out.unchecked.push_back(
          {fmt::format("GPU {}", index), "there is no such GPU", "'vramtrack doctor' lists the GPUs"});
  }
}

/// Whether the log may contain an XID of the hardware of a GPU without naming the GPU.
bool has_unplaced_xid(const HealthFacts& facts, const HealthCheckup& out) {
  return facts.log.dropped > 0 ||
         std::any_of(out.findings.begin(), out.findings.end(), [](const HealthFinding& finding) {
           return (finding.kind == "xid" || finding.kind == "off_the_bus") &&
                  finding.severity != HealthSeverity::info && finding.device.id.empty() &&
                  finding.device.pci_bus_id.empty();
         });
}

/// The evidence in the log for or against a fault of each GPU's hardware.
void conclude_devices(const HealthFacts& facts, HealthCheckup& out) {
  const bool is_read = facts.log.is_wanted && facts.log.error.empty() && !has_unplaced_xid(facts, out);
  for (DeviceCheckup& one : out.devices) {
    for (const HealthFinding& finding : out.findings) {
      const bool is_its = finding.device.id == one.device.id && !finding.device.id.empty();
      if (is_its && finding.severity != HealthSeverity::info && finding.kind != "memory_left_over" &&
          finding.kind != "process_left_over")
        one.has_fault = true;
    }
    if (!is_read)
      one.unknown.emplace_back("XID errors");
    else if (!one.has_fault && has_nvidia(facts))
      one.excludes.push_back(fmt::format("no hardware XID in {}", facts.log.span_words));
  }
}

}  // namespace

HealthCheckup check_health(const HealthFacts& facts, HealthSeverity fail_on) {
  HealthCheckup out;
  check_driver(facts, out);
  for (const HealthFacts::Device& device : facts.devices) check_device(device, facts.now, out);
  check_wanted(facts, out);
  check_log(facts, out);
  if (facts.ledger) check_empty(*facts.ledger, out);
  conclude_devices(facts, out);
  if (facts.devices.empty() && out.unchecked.empty())
    out.unchecked.push_back({"the GPUs", facts.absent.empty() ? "there is none here" : facts.absent,
                             "'vramtrack doctor' shows what is missing"});
  order(out.findings, [](const HealthFinding& a, const HealthFinding& b) { return a.severity > b.severity; });
  const bool fails = !out.findings.empty() && out.findings.front().severity >= fail_on;
  out.status = fails ? HealthStatus::unhealthy : out.unchecked.empty() ? HealthStatus::healthy : HealthStatus::unknown;
  return out;
}

}  // namespace vramtrack
