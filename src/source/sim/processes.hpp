// The simulated processes of a scenario: when each one runs, what it holds, and which one is killed by an OOM.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "source/sim/scenario.hpp"

namespace vramtrack::sim {

/// What one run of a process holds on one device.
struct Holding {
  struct Part {
    Curve curve;
    bool multiply = false;
    bool cached = false;
  };
  std::size_t device = 0;
  std::vector<Part> parts;
  double used_bytes = 0;
  double allocated_bytes = 0;  ///< without the cached parts
  double previous_bytes = 0;
  bool interned = false;
  SeriesId used_id{};
  SeriesId reserved_id{};
  SeriesId allocated_id{};
};

/// The host memory that one run holds.
struct HostPart {
  std::vector<Holding::Part> parts;
  double bytes = 0;
};

/// One process as the system would see it; after a restart, the next run takes its place.
struct Run {
  const ProcessSpec* spec = nullptr;
  std::size_t rank = 0;
  std::uint64_t stream = 0;  ///< seed of its random numbers
  bool alive = false;
  bool seen = false;        ///< it has been reported
  double next_start_s = 0;  ///< infinity: never again
  double end_s = 0;
  double started_s = 0;
  std::uint32_t number = 0;  ///< number of this run, from 1
  std::uint32_t pid = 0;
  std::uint64_t start_ticks = 0;
  std::vector<Holding> holdings;
  HostPart host;
  bool limit_reported = false;    ///< that its host memory has a limit
  bool failure_reported = false;  ///< that an allocation failed
  bool age_reported = false;
  double read_bytes = 0;   ///< total so far, as emitted
  double grown_bytes = 0;  ///< what it held when read_bytes was last emitted
  double read_at_s = 0;    ///< when that was
};

struct Ending {
  std::uint32_t pid = 0;
  std::uint64_t start_ticks = 0;
  bool out_of_memory = false;
  bool killed_by_host = false;
};

struct Failure {
  std::uint32_t pid = 0;
  std::uint64_t start_ticks = 0;
  std::size_t device = 0;
};

/// Not thread-safe. `scenario` must outlive it.
class Processes {
 public:
  explicit Processes(const Scenario& scenario);

  /// Advances to `t_s` (never back): ends and starts processes, evaluates them, and resolves what does not fit: below
  /// each wall and on each device, the allocation of the process that has grown most since the last tick fails.
  void advance(double t_s);

  /// All runs; those that are not alive hold nothing.
  std::deque<Run>& runs() { return runs_; }
  /// The baseline plus the memory of all processes, at most the capacity.
  [[nodiscard]] double used_bytes(std::size_t device) const { return used_bytes_[device]; }
  /// How much more host memory a run can take; nullopt if unlimited.
  [[nodiscard]] std::optional<double> host_left_bytes(const Run& run) const;
  /// The same for the machine as a whole.
  [[nodiscard]] std::optional<double> machine_left_bytes() const;
  /// Processes that have reported a failed allocation since the last call, each once.
  std::vector<Failure> take_failures();
  /// Reported processes that have ended since the last call.
  std::vector<Ending> take_endings();

 private:
  void expand_tenants(const TenantsSpec& tenants);
  void add_runs(const ProcessSpec& spec, std::uint32_t pid);
  void start(Run& run);
  enum class Why : std::uint8_t { exited, out_of_memory, killed_by_host };
  void end(Run& run, double at_s, Why why);
  void evaluate(Run& run, double t_s);
  void fit(std::size_t device, const WallSpec* wall, double t_s);
  void fit_host(double t_s);
  [[nodiscard]] double of_host_bytes(const Run& run) const;
  [[nodiscard]] double host_used_bytes() const;
  [[nodiscard]] double host_bytes_of_group(const Run& run) const;
  void sum();
  [[nodiscard]] double quantised(double bytes) const;
  [[nodiscard]] bool admitted(const ProcessSpec& spec, std::size_t rank) const;

  const Scenario& scenario_;
  std::deque<ProcessSpec> tenant_specs_;
  std::deque<Run> runs_;
  std::vector<double> used_bytes_;
  std::vector<Ending> endings_;
  std::vector<Failure> failures_;
};

}  // namespace vramtrack::sim
