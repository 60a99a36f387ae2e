// History: the whole past of one series in fixed memory, for "how much was it at time t?".
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "core/time.hpp"

namespace vramtrack {

/// At most kCapacity spans of equal width; when they are full, neighbours merge and the width doubles,
/// so the past is kept at a resolution of 1/kCapacity to 2/kCapacity of its length. Not thread-safe.
///
///   width 1 s  | | | | | | | |  full
///   width 2 s  |   |   |   |  then continues at 2 s
class History {
 public:
  static constexpr std::size_t kCapacity = 96;

  struct Span {
    std::int64_t slot = 0;  ///< time of its start in widths since the first sample
    float min_bytes = 0;
    float max_bytes = 0;
    float mean_bytes = 0;
    std::uint32_t samples = 0;
  };

  /// Times must not decrease. O(1) amortised.
  void observe(Timestamp time, double bytes);

  /// The span that contains `time`, or the last one before it; nullopt before the first sample.
  [[nodiscard]] std::optional<Span> at(Timestamp time) const;

  [[nodiscard]] const std::vector<Span>& spans() const { return spans_; }
  [[nodiscard]] Duration width() const { return width_; }
  [[nodiscard]] Timestamp start_of(const Span& span) const { return first_ + width_ * span.slot; }

 private:
  void halve();

  Timestamp first_{};
  Duration width_{std::chrono::seconds{1}};
  std::vector<Span> spans_;
};

}  // namespace vramtrack
