// Distributions: what a busy series grows by in all of its states at once. A leak moves every quantile of a block of
// time; a change of load leaves one standing. Mathematics: docs/detectors/judge.md, section 10.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <vector>

#include "core/time.hpp"

namespace vramtrack {

/// Blocks of ten minutes of one series, by their quantiles. O(1) amortised; about 1 KiB.
class Distributions {
 public:
  static constexpr std::array kQuantiles{0.02, 0.1, 0.25, 0.5, 0.75, 0.9};
  using Quantiles = std::array<double, kQuantiles.size()>;

  /// The next sample. When it closes a block: reference_bytes() and by how much every quantile of that block lies above
  /// the first blocks' at the least. nullopt otherwise, and while the first blocks are not known.
  std::optional<double> observe(Timestamp time, double used_bytes);
  /// The lowest quantile of the first blocks. REQUIRES: that observe() has returned a value.
  [[nodiscard]] double reference_bytes() const { return (*reference_)[0]; }
  /// Forgets everything: the program has ended, or starts anew.
  void clear() { *this = Distributions{}; }

 private:
  [[nodiscard]] std::optional<double> close();

  Timestamp begin_{};
  bool open_ = false;
  std::vector<float> samples_;  ///< of the open block: every `stride_`-th
  std::size_t stride_ = 1;
  std::size_t seen_ = 0;
  std::vector<Quantiles> first_;  ///< until there are enough for a reference
  std::optional<Quantiles> reference_;
};

}  // namespace vramtrack
