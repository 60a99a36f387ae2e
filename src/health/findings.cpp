#include "health/findings.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/format.hpp"
#include "core/xid.hpp"
#include "report/health.hpp"

namespace vramtrack {
namespace {

constexpr std::uint64_t kOffTheBus = 79;
constexpr std::uint64_t kRecoveryChanged = 154;

/// "0000:65:00" for "00000000:65:00.0": the form in the kernel log.
std::string log_address(const std::string& pci_bus_id) {
  std::string address = pci_bus_id.substr(0, pci_bus_id.rfind('.'));
  constexpr std::size_t kDigits = 10;
  while (address.size() > kDigits && address.front() == '0') address.erase(0, 1);
  return address;
}

bool is_at(const std::string& address, const DeviceInfo& device) {
  return !address.empty() && log_address(device.pci_bus_id) == address;
}

/// The GPU at `address`; one without an id if none has that address.
DeviceInfo device_at(const std::string& address, const HealthFacts& facts) {
  for (const HealthFacts::Device& device : facts.devices)
    if (is_at(address, device.info)) return device.info;
  DeviceInfo device;
  device.pci_bus_id = address;
  return device;
}

/// "kernel log, 3 messages, the last 2h 10m ago: NVRM: Xid ..."
std::string log_evidence(const DriverEvent& event, const HealthFacts::Log& log) {
  std::string out = log.name + ", " + format_count(event.count, "message");
  if (event.since_boot_s && log.uptime_s >= *event.since_boot_s)
    out += fmt::format(", {} {} ago", event.count == 1 ? "written" : "the last",
                       format_duration(log.uptime_s - *event.since_boot_s));
  return out + ": " + event.text;
}

/// XID 154: the action that the driver requests, "GPU Reset Required", is in brackets at the end.
void judge_recovery(const DriverEvent& event, HealthFinding& finding) {
  finding.severity = HealthSeverity::warning;
  const std::size_t open = event.text.rfind('(');
  const std::size_t close = event.text.rfind(')');
  if (open == std::string::npos || close == std::string::npos || close < open) return;
  const std::string wanted = event.text.substr(open + 1, close - open - 1);
  const auto has = [&wanted](std::string_view word) { return wanted.find(word) != std::string::npos; };
  finding.what = fmt::format("XID {}: the driver asks for a recovery of the GPU: {}", kRecoveryChanged, wanted);
  if (has("Reboot")) {
    finding.severity = HealthSeverity::critical;
    finding.advice = "restart the machine";
  } else if (has("Reset") || has("FLR")) {
    finding.severity = HealthSeverity::critical;
    finding.advice = "stop the programs on the GPU and reset it (nvidia-smi --gpu-reset)";
  }
}

HealthFinding xid_finding(const DriverEvent& event) {
  HealthFinding finding;
  finding.kind = "xid";
  finding.what = describe_xid(event.code);
  finding.severity = static_cast<HealthSeverity>(xid_severity(event.code, event.text));
  finding.advice = std::string(xid_advice(event.code));
  if (const XidInfo* info = find_xid(event.code))
    finding.cause = std::string(kXidCauseNames[static_cast<std::size_t>(info->cause)]);
  if (event.code == kRecoveryChanged) judge_recovery(event, finding);
  if (!event.process.empty() || event.pid)
    finding.what += fmt::format(" ({}{}{})", event.pid ? fmt::format("pid {}", *event.pid) : std::string(),
                                event.pid && !event.process.empty() ? " " : "", event.process);
  return finding;
}

/// A client has another version: if the library here works, it is that of a container, or has been replaced since.
HealthFinding mismatch_finding(const DriverEvent& event) {
  return {
      .severity = HealthSeverity::warning,
      .kind = "client_mismatch",
      .device = {},
      .what = fmt::format("a program's NVIDIA library has version {}, the kernel module {}: it cannot use the GPUs",
                          event.client_version.empty() ? "unknown" : event.client_version,
                          event.module_version.empty() ? "another" : event.module_version),
      .cause = "driver",
      .evidence = {},
      .advice =
          "give the container the libraries of the host's driver; after an update of the driver, restart the machine"};
}

std::string holder_words(const Holder& holder) {
  const std::string& command = holder.info.command.empty() ? holder.info.name : holder.info.command;
  std::string out = fmt::format("pid {} {}", holder.info.pid, command.empty() ? "(no command)" : command);
  if (!holder.info.user.empty()) out += fmt::format(" of {}", holder.info.user);
  if (!holder.info.slurm_job.empty()) out += fmt::format(", Slurm job {}", holder.info.slurm_job);
  return out;
}

}  // namespace

bool has_nvidia(const HealthFacts& facts) {
  return !facts.module_version.empty() || (facts.nvml && facts.nvml->works);
}

HealthFinding lost_finding(const DeviceInfo& device, const std::string& reason) {
  return {.severity = HealthSeverity::critical,
          .kind = "gpu_lost",
          .device = device,
          .what = "the GPU does not answer the driver",
          .cause = "hardware",
          .evidence = reason,
          .advice = "see the kernel log for its XID; reset the GPU (nvidia-smi --gpu-reset) or restart the machine"};
}

std::string problem_evidence(std::string_view kind, const HealthFacts::Device& device) {
  if (!device.health) return {};
  std::string out = health_words(device.health);
  const DeviceHealth& h = *device.health;
  if (kind.starts_with("repair"))
    out += fmt::format("; the driver reports: repair pending: {}, repair failed: {}",
                       h.repair_pending == true ? "yes" : "no", h.repair_failed == true ? "yes" : "no");
  return out;
}

void add_log_finding(const DriverEvent& event, const HealthFacts& facts, HealthCheckup& out) {
  const auto is_its = [&event](const DeviceInfo& other) { return is_at(event.pci_address, other); };
  if (std::any_of(facts.others.begin(), facts.others.end(), is_its)) return;
  HealthFinding finding;
  switch (event.kind) {
    case DriverEvent::Kind::xid:
      finding = xid_finding(event);
      break;
    case DriverEvent::Kind::off_the_bus: {
      const auto is_same = [&](const DriverEvent& other) {
        return other.kind == DriverEvent::Kind::xid && other.code == kOffTheBus &&
               other.pci_address == event.pci_address;
      };
      if (std::any_of(facts.log.events.begin(), facts.log.events.end(), is_same)) return;
      const XidInfo* info = find_xid(kOffTheBus);
      finding.severity = HealthSeverity::critical;
      finding.kind = "off_the_bus";
      finding.what = "the GPU has fallen off the bus";
      finding.cause = "hardware";
      finding.advice = info != nullptr ? info->advice : std::string_view();
      break;
    }
    case DriverEvent::Kind::version_mismatch:
      if (facts.nvml && facts.nvml->is_mismatched) return;  // already reported, with its meaning here
      finding = mismatch_finding(event);
      break;
  }
  if (event.kind != DriverEvent::Kind::version_mismatch) finding.device = device_at(event.pci_address, facts);
  finding.evidence = log_evidence(event, facts.log);
  out.findings.push_back(std::move(finding));
}

void check_empty(const Ledger& ledger, HealthCheckup& out) {
  for (const DeviceLedger& one : ledger.devices) {
    for (const LedgerLine& line : one.lines) {
      if (line.holder.state == HolderState::service) continue;
      out.findings.push_back(
          {.severity = HealthSeverity::critical,
           .kind = "process_left_over",
           .device = one.device,
           .what = fmt::format("a process is still on the GPU: {}", holder_words(line.holder)),
           .cause = "application",
           .evidence =
               fmt::format("it holds {}; {}", line.bytes ? format_bytes(*line.bytes) : "an unknown amount",
                           line.holder.why.empty() ? to_string(line.holder.state) : std::string_view(line.holder.why)),
           .advice = "end it if its job has ended; 'vramtrack reclaim' does that for orphaned workers"});
    }
    if (!one.device.parent_id.empty()) continue;  // the GPU's own figure includes its instances
    if (!one.used_bytes) {
      out.unchecked.push_back({"memory left over on " + health_device_words(one.device),
                               "the driver does not report how much memory is in use", ""});
      continue;
    }
    if (one.unattributed_bytes == 0) continue;
    std::string evidence =
        fmt::format("{} in use, {} held by {}, up to {} for the driver itself", format_bytes(*one.used_bytes),
                    format_bytes(one.process_bytes),
                    one.lines.size() == 1 ? "1 process" : fmt::format("{} processes", one.lines.size()),
                    format_bytes(one.driver_bytes));
    for (const Holder& holder : one.not_listed) evidence += "; has the GPU open: " + holder_words(holder);
    out.findings.push_back(
        {.severity = HealthSeverity::critical,
         .kind = "memory_left_over",
         .device = one.device,
         .what = fmt::format("{} in use are held by no process", format_bytes(one.unattributed_bytes)),
         .cause = "driver",
         .evidence = std::move(evidence),
         .advice = "run 'vramtrack holders' as root; when nothing uses the GPU, reset it (nvidia-smi "
                   "--gpu-reset)"});
  }
}

void list_exclusions(const HealthFacts::Device& device, DeviceCheckup& out) {
  const DeviceHealth h = device.health.value_or(DeviceHealth{});
  if (h.ecc_enabled == false)
    out.unknown.emplace_back("memory errors (ECC is off)");
  else if (!h.ecc_since_load.uncorrected)
    out.unknown.emplace_back("memory errors (the driver does not report them)");
  else if (*h.ecc_since_load.uncorrected == 0)
    out.excludes.emplace_back("no uncorrected memory error since the driver was loaded");
  if (!h.repair_pending)
    out.unknown.emplace_back("memory repairs");
  else if (!*h.repair_pending && h.repair_failed != true)
    out.excludes.emplace_back("no memory repair pending or failed");
  constexpr Throttle kReasons[] = {Throttle::thermal_software, Throttle::thermal_hardware, Throttle::power_brake,
                                   Throttle::hardware_slowdown};
  if (!h.throttle)
    out.unknown.emplace_back("throttling");
  else if (std::none_of(std::begin(kReasons), std::end(kReasons), [&](Throttle r) { return h.throttle->has(r); }))
    out.excludes.emplace_back("no throttling due to heat or the power supply");
}

}  // namespace vramtrack
