// Creep: what a busy series grows by between its jumps. GPU memory that is in use does not creep: programs take and
// give it back in blocks, so that most increments are zero and few are small. Mathematics: docs/detectors/judge.md,
// section 9.
#pragma once

#include <cstdint>
#include <optional>

namespace vramtrack {

/// The sum of the small increments of one series, and whether it means something there. O(1) in time and memory.
class Creep {
 public:
  /// The next sample. The first one is where the sum begins.
  void observe(double used_bytes);
  /// Forgets everything: the program has ended, or starts anew.
  void clear() { *this = Creep{}; }

  /// The first sample and the sum of the increments that are no jumps.
  [[nodiscard]] double bytes() const { return first_bytes_ + small_bytes_; }
  /// How many of the increments were jumps.
  [[nodiscard]] std::uint64_t jumps() const { return jumps_; }
  /// Whether the series stands still between its jumps, and these are many and carry a load. `free_bytes`: of the
  /// device, when the series began; nullopt: not known.
  [[nodiscard]] bool is_busy(std::optional<double> free_bytes) const;
  /// Whether it is busy, jumps and small increments are two kinds here, and the jumps balance: only then is the sum a
  /// growth, and no load.
  [[nodiscard]] bool separable(std::optional<double> free_bytes) const;
  [[nodiscard]] double first_bytes() const { return first_bytes_; }
  /// The share of the increments that are no jumps: so much of a steady growth is in the sum.
  [[nodiscard]] double share_seen() const;

 private:
  bool has_last_ = false;
  double last_bytes_ = 0;
  double first_bytes_ = 0;
  double small_bytes_ = 0;
  double highest_bytes_ = 0;  ///< of what the jumps alone make
  double fall_bytes_ = 0;     ///< the largest below that: the load they carry, whatever was loaded at first
  double up_bytes_ = 0;
  double down_bytes_ = 0;
  bool stands_still_ = false;  ///< between its jumps, as far as was seen at some time
  std::uint64_t still_ = 0;
  std::uint64_t jumps_ = 0;
  std::uint64_t between_ = 0;  ///< increments of a size between small and jump
  std::uint64_t increments_ = 0;
};

}  // namespace vramtrack
