// RunCurve: what one run of a program did, in fixed memory, for comparison with the next run.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "core/program.hpp"

namespace vramtrack {

/// The highest floor up to each of FinishedRun's ages. A floor is the lower of two neighbouring sixteenths of its age
/// (of at least 10 s): a spike does not change it, and a cycle counts with its lower turning point.
///
///   age   |15s| 30s |  1 min  |     2 min     | ...      each |......| in sixteen parts
class RunCurve {
 public:
  /// Ages must not decrease. O(1).
  void observe(double age_s, double bytes);

  /// The run from `begin` to `end`, as far as it was seen: without the last sample if that came after the end.
  /// `alerted`: an alert was raised and not withdrawn; it was a leak if the floor rose until near the end.
  /// `out_of_memory`: memory ran out, and it grew. `from_start`: the first sample was the program's first memory.
  [[nodiscard]] FinishedRun run(Timestamp begin, Timestamp end, bool alerted, bool out_of_memory,
                                bool from_start) const;

  [[nodiscard]] std::uint64_t samples() const { return samples_; }

 private:
  void take(double age_s, double bytes);
  void close();

  double held_age_s_ = -1;  ///< of the last sample, not yet taken in; negative if there is none
  double held_bytes_ = 0;
  std::array<float, FinishedRun::kPoints> floor_bytes_{};
  std::size_t point_ = 0;
  std::int64_t part_ = -1;   ///< the open one of the point's sixteen parts
  double open_bytes_ = 0;    ///< the lowest value of the open part
  double open_age_s_ = 0;    ///< age at which it began
  double prior_bytes_ = 0;   ///< of the part before, likewise
  double prior_age_s_ = -1;  ///< negative: no such part
  double highest_bytes_ = 0;
  double settled_bytes_ = 0;  ///< the level above which the next rise counts
  double warm_up_s_ = 0;
  double peak_bytes_ = 0;
  std::uint64_t samples_ = 0;
};

}  // namespace vramtrack
