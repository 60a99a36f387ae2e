// The facts about a process that makes no progress, and the judgement of it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/progress.hpp"
#include "core/stall.hpp"

namespace vramtrack {

/// One process at one reading. "quiet": for how long no activity of that kind was seen; this is less than the length of
/// the watch.
struct StallFacts {
  ProcessProgress now;  ///< the last reading
  Timestamp time;       ///< the time of that reading
  std::uint64_t held_bytes = 0;
  std::string slurm_job;

  double cpu_quiet_s = 0;       ///< its CPU time
  double io_quiet_s = 0;        ///< its reads and writes, if known
  double children_quiet_s = 0;  ///< everything that its children do
  double memory_quiet_s = 0;    ///< its device memory did not change
  double gpu_quiet_s = 0;       ///< its kernels, if known
  double parent_quiet_s = 0;    ///< the parent's CPU time
  double cpu_ratio = 0;         ///< since the previous reading: share of a core

  bool knows_io = false;   ///< whether it was known in the whole window
  bool knows_gpu = false;  ///< likewise

  double spins_cpu_s = 0;        ///< how long it has kept half a core or more busy
  double spins_gpu_s = 0;        ///< how long its devices were busy without touching memory
  bool cool = false;             ///< during that time, they drew less than half of their power limit
  double in_state_s = 0;         ///< how long every reading had `now.state`
  double requests_wait_s = 0;    ///< how long every reading had requests waiting
  std::uint32_t peers = 0;       ///< other ranks of its job on this machine
  std::uint32_t peers_work = 0;  ///< those whose kernels ran, or that made other progress, recently
  std::uint32_t peers_spin = 0;  ///< those whose devices were busy without touching memory for the whole window
};

/// The judgement after `window_s` without progress; nullopt if it made some. Causal, deterministic, pure. Confidence
/// is the sum over the kinds of evidence; see docs/stalls.md.
std::optional<Stall> judge_stall(const StallFacts& facts, double window_s);

/// From this confidence on, a stalled process raises an alert.
inline constexpr double kStallAlertConfidence = 0.75;

}  // namespace vramtrack
