// Distributions: how much a busy series grows in all of its states at once. A leak shifts every quantile of a block of
// time; a change of load leaves at least one in place. Mathematics: docs/detectors/judge.md, section 10.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <vector>

#include "core/time.hpp"

namespace vramtrack {

/// The quantiles of one series' blocks of ten minutes. O(1) amortised; about 1 KiB.
class Distributions {
 public:
  static constexpr std::array kQuantiles{0.02, 0.1, 0.25, 0.5, 0.75, 0.9};
  using Quantiles = std::array<double, kQuantiles.size()>;

  /// Takes the next sample. When it closes a block: reference_bytes() plus the least shift of that block's quantiles
  /// above those of the first blocks. Otherwise, and until the first blocks are known, nullopt.
  std::optional<double> observe(Timestamp time, double used_bytes);
  /// The lowest quantile of the first blocks. REQUIRES: observe() has returned a value.
  [[nodiscard]] double reference_bytes() const { return (*reference_)[0]; }
  /// Forgets everything: the program has ended or restarts.
  void clear() { *this = Distributions{}; }

 private:
  [[nodiscard]] std::optional<double> close();

  Timestamp begin_{};
  bool open_ = false;
  std::vector<float> samples_;  ///< the samples of the open block: every `stride_`-th
  std::size_t stride_ = 1;
  std::size_t seen_ = 0;
  std::vector<Quantiles> first_;  ///< until there are enough for a reference
  std::optional<Quantiles> reference_;
};

}  // namespace vramtrack
