// Window: the stretch of one level that is weighed as one rise, and the points where such stretches may begin.
#pragma once

#include <array>
#include <cstddef>

#include "detect/scales.hpp"

namespace vramtrack {

inline constexpr std::size_t kBets = DriftEvidence::kBets;
inline constexpr std::size_t kMinIncrements = 4;  ///< fewer do not make a trend

/// Consecutive floors of the level. The level keeps them in a ring, and each look reads every floor many times.
struct Floors {
  explicit Floors(const Scales& scales, std::size_t k);

  std::array<double, Level::kCapacity> bytes;
  std::array<double, Level::kCapacity> time_s;  ///< since the series began
  std::size_t size = 0;
  std::size_t regime = 0;  ///< the first one of the present regime
};

/// Buckets `first` (its base) to `last` of level `k`, with the evidence that its floor drifts.
struct Window {
  const Scales& scales;
  const Level& level;
  const Floors& floors;
  std::size_t k;
  std::size_t first;  ///< index of the base bucket
  std::size_t last;
  double nats;
  double starts;  ///< the number of starts at which evidence of this bet could have begun

  [[nodiscard]] double floor_at(std::size_t i) const { return floors.bytes[i]; }
  [[nodiscard]] double time_at(std::size_t i) const { return floors.time_s[i] - floors.time_s[first]; }
};

/// A point where a window may begin.
struct Start {
  std::size_t first = 0;
  std::size_t bet = 0;
  double nats = 0;
};

/// A few of them, without an allocation.
class Starts {
 public:
  void push_back(const Start& start) { items_[size_++] = start; }
  [[nodiscard]] const Start* begin() const { return items_.data(); }
  [[nodiscard]] const Start* end() const { return items_.data() + size_; }
  [[nodiscard]] bool empty() const { return size_ == 0; }

 private:
  std::array<Start, 3 * kBets> items_{};  ///< those of starts_of(), and one more per bet
  std::size_t size_ = 0;
};

/// For each bet, the suffix with the largest evidence, and the part after one large jump (a model load), which would
/// hide it. O(48).
/// REQUIRES: more than kMinIncrements buckets.
Starts starts_of(const Level& level, const Floors& floors);

/// The evidence of the buckets after `first`, by each bet.
std::array<double, kBets> nats_since(const Level& level, std::size_t first);

/// Flat buckets before the growth began are not part of it: the last bucket that is about as low as `first`.
std::size_t without_flat_beginning(const Floors& floors, std::size_t first);

}  // namespace vramtrack
