// HealthCheckup: whether the GPUs of this machine are fit for work, and the evidence. Facts in, findings out; pure.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/health.hpp"
#include "core/series.hpp"
#include "health/kernel_log.hpp"
#include "live/ledger.hpp"
#include "report/report.hpp"
#include "source/nvml_check.hpp"

namespace vramtrack {

/// `info`: a program's own error, no evidence about the GPU; `warning`: slower or worse than it should be;
/// `critical`: work was or will be lost.
enum class HealthSeverity : std::uint8_t { info, warning, critical };
inline constexpr std::array<std::string_view, 3> kHealthSeverityNames = {"info", "warning", "critical"};

/// The exit codes of `vramtrack doctor --health`, which are those of node-problem-detector's plugins.
enum class HealthStatus : std::uint8_t { healthy = 0, unhealthy = 1, unknown = 2 };
inline constexpr std::array<std::string_view, 3> kHealthStatusNames = {"healthy", "unhealthy", "unknown"};

/// The facts that were gathered.
struct HealthFacts {
  struct Device {
    DeviceInfo info;
    std::optional<DeviceHealth> health;
    std::string lost;  ///< why the driver no longer answers for it; empty if it does
  };
  /// The kernel log, or why it was not read.
  struct Log {
    bool is_wanted = true;
    bool is_named = false;  ///< whether the user named it: being unreadable is then a problem on any machine
    std::string name;       ///< "/dev/kmsg"
    std::string error;      ///< why it could not be read
    std::vector<DriverEvent> events;
    std::uint64_t dropped = 0;
    double uptime_s = 0;     ///< the machine's uptime now, on the log's clock; 0: unknown, no ages are shown
    std::string span_words;  ///< the part of it that was read: "the last 24 h"
  };
  Timestamp now;
  std::vector<Device> devices;     ///< whole GPUs, those requested
  std::vector<DeviceInfo> others;  ///< those not requested
  std::vector<int> wanted;         ///< the requested indices; empty: all
  std::string absent;              ///< why there is no source, in one line; empty if there is one
  std::optional<NvmlCheck> nvml;   ///< empty: NVIDIA's GPUs are not requested
  std::string module_version;      ///< the version of the NVIDIA driver's kernel module; empty: it is not loaded
  Log log;
  std::optional<Ledger> ledger;  ///< if the GPUs are expected to be empty
};

struct HealthFinding {
  HealthSeverity severity = HealthSeverity::info;
  std::string kind;   ///< for programs; docs/health.md lists them
  DeviceInfo device;  ///< without an id: a GPU known only by its PCI address, or the machine
  std::string what;   ///< "XID 79: the GPU has fallen off the bus"
  std::string cause;  ///< the usual cause: application, driver, hardware, power; empty: unknown
  std::string evidence;
  std::string advice;
};

/// A check that could not be made: no conclusion is drawn from it, in particular not that all is well.
struct Unchecked {
  std::string what;
  std::string why;
  std::string next;  ///< what to do so that it can be made; may be empty
};

/// One GPU.
struct DeviceCheckup {
  DeviceInfo device;
  bool has_fault = false;             ///< whether there is a finding about it that is a warning or worse
  std::string words;                  ///< its temperature, ECC counts and throttling
  std::vector<std::string> excludes;  ///< evidence against a fault of the hardware
  std::vector<std::string> unknown;   ///< unknown facts that would be evidence for or against one
};

struct HealthCheckup {
  HealthStatus status = HealthStatus::unknown;
  std::vector<HealthFinding> findings;  ///< the worst first
  std::vector<Unchecked> unchecked;
  std::vector<DeviceCheckup> devices;
};

/// Judges `facts`: unhealthy if a finding is at least as bad as `fail_on`; else unknown if something could not be
/// checked; else healthy. O(devices * messages).
HealthCheckup check_health(const HealthFacts& facts, HealthSeverity fail_on = HealthSeverity::critical);

/// "GPU 0", "GPU at 0000:65:00", "this machine". Pure; foreign text.
std::string health_device_words(const DeviceInfo& device);

/// The same for people, as one JSON document (schema vramtrack.health.v1), and in one line of at most 200 bytes that
/// begins with the status: the reason that node-problem-detector and Slurm show. All are printable and end with a
/// newline. Pure.
std::string health_text(const HealthCheckup& checkup, const ReportStyle& style);
std::string health_json(const HealthCheckup& checkup);
std::string health_line(const HealthCheckup& checkup);

}  // namespace vramtrack
