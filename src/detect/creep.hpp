// Creep: how much a busy series grows between its jumps. GPU memory in normal use does not creep: programs take and
// release it in blocks, so most increments are zero and few are small. Mathematics: docs/detectors/judge.md,
// section 9.
#pragma once

#include <cstdint>
#include <optional>

namespace vramtrack {

/// The sum of the small increments of one series, and whether that sum is meaningful there. O(1) in time and memory.
class Creep {
 public:
  /// Takes the next sample. The sum starts at the first one.
  void observe(double used_bytes);
  /// Forgets everything: the program has ended or restarts.
  void clear() { *this = Creep{}; }

  /// The first sample plus the sum of the increments that are not jumps.
  [[nodiscard]] double bytes() const { return first_bytes_ + small_bytes_; }
  /// How many of the increments were jumps.
  [[nodiscard]] std::uint64_t jumps() const { return jumps_; }
  /// Whether the series stands still between its jumps, and these are many and carry a load. `free_bytes`: the free
  /// memory of the device when the series began; nullopt: unknown.
  [[nodiscard]] bool is_busy(std::optional<double> free_bytes) const;
  /// Whether it is busy, its jumps and small increments form two distinct kinds, and the jumps balance: only then is
  /// the sum growth and not load.
  [[nodiscard]] bool separable(std::optional<double> free_bytes) const;
  [[nodiscard]] double first_bytes() const { return first_bytes_; }
  /// The share of the increments that are not jumps: the sum contains this share of a steady growth.
  [[nodiscard]] double share_seen() const;

 private:
  bool has_last_ = false;
  double last_bytes_ = 0;
  double first_bytes_ = 0;
  double small_bytes_ = 0;
  double highest_bytes_ = 0;  ///< highest sum of the jumps alone
  double fall_bytes_ = 0;     ///< largest fall below that: the load that the jumps carry, whatever was loaded at first
  double up_bytes_ = 0;
  double down_bytes_ = 0;
  bool stands_still_ = false;  ///< between its jumps, as seen at some time so far
  std::uint64_t still_ = 0;
  std::uint64_t jumps_ = 0;
  std::uint64_t between_ = 0;  ///< increments between a small one and a jump in size
  std::uint64_t increments_ = 0;
};

}  // namespace vramtrack
