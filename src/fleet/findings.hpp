// Findings: conclusions from all verdicts of a fleet together. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "fleet/scan.hpp"

namespace vramtrack::fleet {

/// Why a job is listed.
enum class JobState : std::uint8_t {
  leaks,      ///< an alert is active
  suspected,  ///< a suspicion is active, but no alert
  ended,      ///< its leaks are over
};
std::string_view to_string(JobState state);

/// A GPU that leaks, leaked, or is suspected to.
struct LeakingGpu {
  const GpuVerdict* gpu = nullptr;
  const Alert* alert = nullptr;  ///< the active one, otherwise the last one, otherwise the suspicion
  bool is_suspected = false;     ///< there is only a suspicion: no notification was sent
  /// All who shared the GPU when it was raised; empty: unknown.
  std::vector<const Workload*> users;

  /// The value that all of its users have in common, for example their image; empty if they differ.
  [[nodiscard]] std::string common(std::string Workload::*what) const;
};

/// Work that runs together and leaks. Each GPU whose users are unknown is a group of its own.
struct LeakingJob {
  std::string name;     ///< work_name()
  std::string program;  ///< Workload::program(), or empty
  bool is_named = false;
  std::vector<LeakingGpu> leaks;   ///< ordered by when their growth began, so the first rank that leaks is first
  std::size_t gpus = 0;            ///< the GPUs of the job, leaking or not
  std::vector<std::string> nodes;  ///< the nodes of the job
  std::vector<std::string> leaking_nodes;
  JobState state = JobState::ended;
  double growth_bytes_per_s = 0;     ///< the growth of all its leaking GPUs
  std::optional<Interval> oom_in_s;  ///< of the GPU that runs out of memory first
  /// The share in use of an inference server's key-value cache on one of its GPUs; nullopt: none is known.
  std::optional<double> cache_ratio;
  double gpu_hours =
      0;  ///< the GPU-hours of all its GPUs since it began, within the time scanned: the work a crash may lose
};

/// The name of the work that uses the GPU: "job 1234", "ml/a, ml/b" if several share it, "node1 GPU 3" if unknown.
std::string work_name(const GpuVerdict& gpu, const std::vector<const Workload*>& users);

/// How many leaking and how many healthy runs share a value.
struct SharedValue {
  std::string what;  ///< "image", "program", "framework", "driver", "GPU model"
  std::string value;
  std::size_t leaking = 0, leaking_of = 0;
  std::size_t healthy = 0, healthy_of = 0;
  /// The p-value of Fisher's exact test, one-sided: the chance that at least as many of the leaking ones share the
  /// value.
  double p_value = 1;
};

enum class FindingKind : std::uint8_t {
  signature,  ///< leaks on several nodes share a program or an image: one leak, not many
  node,       ///< one node leaks although the same program is healthy elsewhere
  version,    ///< runs of one program have leaked since its image changed
};
std::string_view to_string(FindingKind kind);

struct FleetFinding {
  FindingKind kind = FindingKind::signature;
  std::string text;  ///< one or two sentences, with the next step
  std::string program;
  std::vector<std::string> nodes;  ///< the nodes concerned
  std::vector<std::string> jobs;
  std::vector<SharedValue> shared;  ///< beyond chance
  std::string before, since;        ///< for version: the images
  double p_value = 1;               ///< of chance alone; for node, if all nodes of a job are equally likely
};

struct FleetFindings {
  std::vector<LeakingJob>
      jobs;  ///< those that leak first, then the suspected; by the end of their memory, then by growth
  std::vector<FleetFinding> findings;
  std::size_t gpus = 0;
  std::size_t gpus_without_uuid = 0;  ///< identified only by their machine and number
  std::size_t leaking_gpus = 0;       ///< now
  std::size_t suspected_gpus = 0;     ///< now
  double gpu_hours_at_risk = 0;       ///< of the jobs that leak now
};

/// `scan` must outlive the result. O(GPUs log GPUs).
FleetFindings find(const Scan& scan);
FleetFindings find(Scan&&) = delete;

}  // namespace vramtrack::fleet
