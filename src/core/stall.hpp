// Stall: the conclusion about a process that holds memory and makes no progress.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/time.hpp"

namespace vramtrack {

/// `stalled`: it is expected to work but does not. `idle`: it rests by nature, or because somebody wants it to.
/// `unclear`: the facts fit both.
enum class StallJudgement : std::uint8_t { unclear, idle, stalled };

/// Why it makes no progress, as far as the facts show.
enum class StallCause : std::uint8_t {
  unknown,
  waits,            ///< for something that does not come: a lock, a queue, a peer
  stopped,          ///< by SIGSTOP, or its cgroup is frozen
  uninterruptible,  ///< inside the kernel, such as in a driver that does not answer
  exited,           ///< a zombie whose memory is still listed
  orphaned,         ///< the process that it worked for has ended
  collective,       ///< all ranks wait for each other on the GPU
  busy_loop,        ///< it uses the CPU, but nothing else changes
  unread_requests,  ///< a server that no longer answers
};

/// About one process on all its devices.
struct Stall {
  StallJudgement judgement = StallJudgement::unclear;
  StallCause cause = StallCause::unknown;
  Timestamp since;                    ///< its last observed progress, or the beginning of the watch
  double stalled_for_s = 0;           ///< from then to the last reading
  double confidence = 0;              ///< 0..1, in the judgement: a weight of evidence, not a measured frequency
  std::uint64_t held_bytes = 0;       ///< on all devices
  std::string what;                   ///< the kind of program: "Jupyter kernel"
  std::vector<std::string> evidence;  ///< in words, the strongest first
  friend bool operator==(const Stall&, const Stall&) = default;
};

/// The old name of stalled_for_s, kept for one release.
inline double stalled_s(const Stall& stall) {
  return stall.stalled_for_s;
}

}  // namespace vramtrack
