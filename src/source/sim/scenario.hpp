// Scenario: the input of a simulation, as parsed from TOML (docs/formats/scenario.md). Plain data.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.hpp"
#include "core/series.hpp"
#include "core/time.hpp"
#include "core/verdict.hpp"
#include "source/sim/shape.hpp"

namespace vramtrack::sim {

/// A simulated GPU. Its used bytes are the baseline plus the memory of its processes, at most the capacity.
struct DeviceSpec {
  DeviceInfo info;  ///< capacity_bytes limits the simulation even if it is not reported
  std::uint64_t capacity_bytes = 0;
  bool capacity_known = true;            ///< false: the catalog does not get the capacity
  double baseline_bytes = 0;             ///< the driver's share of `used`, which belongs to no process
  std::optional<double> reserved_bytes;  ///< emits device_reserved
};

enum class OnOom : std::uint8_t {
  die,     ///< the process that asked for too much ends, as an uncaught CUDA OOM does
  clip,    ///< it catches the error and continues with as much as fits
  report,  ///< likewise, and it reports the failure
};

/// A process, or one rank per device of a job. Times are in seconds since the scenario's start, when the watch begins;
/// the watch knows the age of any process that began before.
struct ProcessSpec {
  std::string name;                  ///< the name of its random stream, and ProcessInfo::name
  ProcessInfo info;                  ///< pid 0: chosen by the simulation
  std::vector<std::size_t> devices;  ///< positions in Scenario::devices
  bool one_per_device = false;       ///< a separate process on every device
  double start_s = 0;
  std::optional<double> end_s;            ///< after this, no run continues or begins
  std::optional<double> lifetime_s;       ///< every run ends after this
  std::optional<double> restart_after_s;  ///< runs again this long after each end, including an OOM
  double max_restarts = 1e9;
  bool pid_reuse = false;  ///< a restart gets the same pid (other start ticks)
  bool visible = true;     ///< false: counted in the device's total, without a series of its own
  bool allocator = false;  ///< emits allocator_reserved and allocator_allocated
  OnOom on_oom = OnOom::die;
  double needs_bytes = 0;  ///< it does not start unless this much is free on each device
  // Facts other than memory. Those that are not given are not emitted.
  std::optional<double> busy;        ///< share of time in which it keeps the GPU busy, once it works
  double works_after_s = 0;          ///< its work begins this long after its start
  std::optional<double> read_share;  ///< bytes read for each byte by which it grows before it works
  double reads_per_s = 0;            ///< bytes read while it works, with read_share
  std::optional<double> clients;     ///< connections to its services
  std::vector<ShapeSpec> shapes;
  // Its host memory; nothing is emitted without shapes.
  std::vector<ShapeSpec> host_shapes;
  std::optional<double> host_limit_bytes;  ///< limit of its cgroup
  double host_mapped_bytes = 0;            ///< resident pages of the files that it has mapped
  std::optional<double> host_pinned;       ///< share of its memory that is pinned
};

/// A limit that others have set on how much memory processes may hold on a device. It may move.
struct WallSpec {
  struct Move {
    double at_s = 0;
    double bytes = 0;  ///< 0: no limit from then on
  };
  std::string name;  ///< who set it, and where: "dmem.max of /pod"
  std::size_t device = 0;
  std::vector<std::string> processes;  ///< by name; the limit applies to their sum
  std::vector<Move> moves;             ///< in order of time, the first at 0

  [[nodiscard]] double bytes_at(double t_s) const;
  [[nodiscard]] bool limits(const ProcessSpec& process) const;
};

/// Processes that come and go at random, such as the tenants of a shared GPU or the jobs of a cluster.
struct TenantsSpec {
  std::string name;
  ProcessInfo info;
  std::vector<std::size_t> devices;  ///< each tenant is placed on one of them
  double arrivals_per_s = 0;
  double lifetime_s = 0;  ///< mean of an exponential distribution
  double min_bytes = 0;
  double max_bytes = 0;  ///< the size is log-uniform between min_bytes and this
  double load_s = 10;    ///< a tenant's size is loaded over this time, in 8 shards
  double start_s = 0;
  std::optional<double> end_s;  ///< no arrivals after this
  double at_start = 0;          ///< tenants that are already there at start_s
  bool visible = true;
};

struct FaultSpec {
  enum class Kind : std::uint8_t { device_lost, gap, xid, unreadable, clock_step };
  Kind kind = Kind::gap;
  double from_s = 0;
  double to_s = 0;
  std::size_t device = 0;
  Metric metric = Metric::device_used;  ///< unreadable: the metric concerned
  std::string process;                  ///< unreadable process_used: the process concerned; empty: all
  std::uint64_t code = 0;               ///< xid
  double step_s = 0;                    ///< clock_step
};

/// The ground truth, for tests; no detector sees it.
struct Truth {
  bool leak = false;
  Pattern pattern = Pattern::none;
  std::optional<double> onset_s;
  std::optional<double> oom_s;  ///< when the leak leads to OOM, if left alone
  std::optional<std::uint32_t> suspect_pid;
  std::size_t device = 0;  ///< the device that leaks
  std::string note;
};

struct Scenario {
  std::string name;
  std::string help;
  std::uint64_t seed = 1;
  double period_s = 1;
  double duration_s = 3600;
  std::optional<Timestamp> start;           ///< unset: relative time, from zero
  double jitter = 0;                        ///< share of the period: ticks are early or late by up to half of it
  double drop = 0;                          ///< share of ticks that are missing
  double duplicate = 0;                     ///< share of ticks that have the stamp of the previous tick
  double stamp_resolution_s = 0;            ///< stamps are rounded down to this; 0: exact
  double quantum_bytes = 1;                 ///< allocations are rounded up to this
  double gaps_per_s = 0;                    ///< random sampling gaps
  double gap_s = 0;                         ///< their mean length
  std::optional<double> host_memory_bytes;  ///< of the machine; unset: unlimited
  std::vector<DeviceSpec> devices;
  std::vector<ProcessSpec> processes;
  std::vector<WallSpec> walls;
  std::vector<TenantsSpec> tenants;
  std::vector<FaultSpec> faults;
  std::optional<Truth> truth;
};

/// Every mistake is an error that names the file, the line, what was expected and, for a misspelt key or word, the
/// nearest known one. Of several mistakes, the first one in the file is reported. Pure; cost: one TOML parse.
Result<Scenario> parse_scenario(std::string_view toml, std::string_view file_name);
Result<Scenario> load_scenario(const std::string& path);

}  // namespace vramtrack::sim
