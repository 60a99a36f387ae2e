// Findings: what the verdicts of a fleet say together. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "fleet/scan.hpp"

namespace vramtrack::fleet {

/// What a job is listed for.
enum class JobState : std::uint8_t {
  leaks,      ///< an alert is active
  suspected,  ///< a suspicion is active, and no alert
  ended,      ///< its leaks have ended
};
std::string_view to_string(JobState state);

/// A GPU that leaks, did, or is suspected to.
struct LeakingGpu {
  const GpuVerdict* gpu = nullptr;
  const Alert* alert = nullptr;  ///< the one that stands, else the last one, else the suspicion
  bool is_suspected = false;     ///< there is only a suspicion: no notification was sent
  /// When it was raised: all who shared the GPU; empty: not known.
  std::vector<const Workload*> users;

  /// What all of its users have in common, for example their image; empty where they differ.
  [[nodiscard]] std::string common(std::string Workload::*what) const;
};

/// What runs together, and leaks. GPUs whose users are not known are a group each.
struct LeakingJob {
  std::string name;     ///< work_name()
  std::string program;  ///< Workload::program(), or empty
  bool is_named = false;
  std::vector<LeakingGpu> leaks;   ///< in the order in which the growth began: the first rank that leaks is the first
  std::size_t gpus = 0;            ///< the GPUs of the job, leaking or not
  std::vector<std::string> nodes;  ///< the nodes of the job
  std::vector<std::string> leaking_nodes;
  JobState state = JobState::ended;
  double growth_bytes_per_s = 0;     ///< the growth of all its leaking GPUs
  std::optional<Interval> oom_in_s;  ///< of the GPU whose memory ends first
  /// The key-value cache of an inference server on one of its GPUs: the share in use; nullopt: none is known.
  std::optional<double> cache_ratio;
  double gpu_hours =
      0;  ///< the GPU-hours of all its GPUs since it began, within the time scanned: the work a crash may lose
};

/// What leaks when these use the GPU: "job 1234", "ml/a, ml/b" of those who share it; of nobody known: "node1 GPU 3".
std::string work_name(const GpuVerdict& gpu, const std::vector<const Workload*>& users);

/// How a value is shared by those that leak, and by those that do not.
struct SharedValue {
  std::string what;  ///< "image", "program", "framework", "driver", "GPU model"
  std::string value;
  std::size_t leaking = 0, leaking_of = 0;
  std::size_t healthy = 0, healthy_of = 0;
  /// The p-value of Fisher's exact test, one-sided: at least as many of the leaking ones would share the value by
  /// chance.
  double p_value = 1;
};

enum class FindingKind : std::uint8_t {
  signature,  ///< leaks on several nodes share a program or an image: one leak, not many
  node,       ///< one node leaks where the same program is healthy elsewhere
  version,    ///< runs of one program leak since its image changed
};
std::string_view to_string(FindingKind kind);

struct FleetFinding {
  FindingKind kind = FindingKind::signature;
  std::string text;  ///< one or two sentences, with what to do next
  std::string program;
  std::vector<std::string> nodes;  ///< it hit
  std::vector<std::string> jobs;
  std::vector<SharedValue> shared;  ///< beyond chance
  std::string before, since;        ///< of version: the images
  double p_value = 1;               ///< by chance alone; of node: were each node of a job equally likely
};

struct FleetFindings {
  std::vector<LeakingJob>
      jobs;  ///< those that leak first, then the suspected; by the end of their memory, then by growth
  std::vector<FleetFinding> findings;
  std::size_t gpus = 0;
  std::size_t gpus_without_uuid = 0;  ///< known by their machine and number alone
  std::size_t leaking_gpus = 0;       ///< now
  std::size_t suspected_gpus = 0;     ///< now
  double gpu_hours_at_risk = 0;       ///< of the jobs that leak now
};

/// `scan` must outlive the result. O(GPUs log GPUs).
FleetFindings find(const Scan& scan);
FleetFindings find(Scan&&) = delete;

}  // namespace vramtrack::fleet
