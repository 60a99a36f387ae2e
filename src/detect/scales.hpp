// Scales: the past of one series as floors and peaks at many time scales, in fixed memory, and the running evidence
// at each scale that its floor drifts upwards.
//
//   level 0  10 s   |.|.|.|.|.|.|.|.|   48 buckets each
//   level 1  20 s   | . | . | . | . |
//   ...                                 level 11: 5.7 h buckets, 11 days in all
//
// A level whose buckets span two cycles of a sawtooth sees its floor and its peak without knowing the
// period (docs/detectors/judge.md).
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/time.hpp"
#include "detect/regimes.hpp"

namespace vramtrack {

/// One closed bucket. `slot` counts widths of its level since the first sample of the series.
struct Bucket {
  std::int32_t slot = 0;
  float floor_bytes = 0;
  float peak_bytes = 0;
  std::array<float, 3> gain_nats{};  ///< of its floor's increment, by each bet of DriftEvidence
};

/// An e-process against "the floor's increments are as likely down as up" (conditionally symmetric): given the
/// size of an increment its sign is a fair coin, so exp(z) / cosh(z) with z = 2 * increment / scale has mean 1 for
/// any scale that depends on sizes only, and the running product restarted at 1 reaches e^W by chance with
/// probability at most N e^-W over N increments (Shin, Ramdas & Rinaldo, "E-detectors", 2022; de la Pena 1999).
/// Three bets, mixed: z = 2x / (five medians of the recent sizes), for a drift within noise; z = 2x / (the largest
/// recent size, forgotten by a tenth per bucket), for rare rises among small jitter (stairs) and clean ramps; and
/// z = +-1.5, the sign alone, for rises of very different sizes.
struct DriftEvidence {
  static constexpr std::size_t kBets = 3;
  static constexpr std::size_t kRecent = 5;  ///< sizes whose median scales the first bet: as few as a median needs

  /// Takes an increment; returns its gains in nats. O(1).
  std::array<float, kBets> observe(float increment_bytes);

  /// The largest of the running (restarted at 0) log evidences: a cheap upper bound on log E.
  [[nodiscard]] float nats() const { return *std::max_element(log_e.begin(), log_e.end()); }

  std::array<float, kBets> log_e{};
  std::array<float, kRecent> recent_abs{};
  float largest_abs = 0;
  std::uint8_t recent_count = 0;
  std::uint8_t recent_next = 0;
};

/// One time scale.
class Level {
 public:
  /// The number of buckets kept: enough for a shape, few enough for statistics that cost their square.
  static constexpr std::size_t kCapacity = 48;

  /// `weighs`: whether its drift is evidence; a level whose buckets hold one sample each only repeats the next level's.
  void push(Bucket bucket, bool weighs = true);
  /// Forgets its buckets; `keep_highs`: but not the levels that the series had reached (Regimes::fall).
  void clear(bool keep_highs);

  [[nodiscard]] std::size_t size() const { return size_; }
  /// i = 0 is the oldest bucket kept.
  [[nodiscard]] const Bucket& operator[](std::size_t i) const {
    return ring_[head_ + i < kCapacity ? head_ + i : head_ + i - kCapacity];
  }
  [[nodiscard]] const Bucket& back() const { return (*this)[size_ - 1]; }
  /// All of them, from the oldest on, and from the newest back: without checking at each where the ring begins.
  template <class Visit>
  void for_each(Visit visit) const {
    const std::size_t to_end = std::min(size_, ring_.size() - head_);
    for (std::size_t i = 0; i < to_end; ++i) visit(ring_[head_ + i]);
    for (std::size_t i = 0; i < size_ - to_end; ++i) visit(ring_[i]);
  }
  template <class Visit>
  void for_each_back(Visit visit) const {
    const std::size_t to_end = std::min(size_, ring_.size() - head_);
    for (std::size_t i = size_ - to_end; i-- > 0;) visit(ring_[i]);
    for (std::size_t i = to_end; i-- > 0;) visit(ring_[head_ + i]);
  }

  /// Highest floor among buckets of the present regime that have left the ring.
  [[nodiscard]] float forgotten_floor() const { return forgotten_floor_; }
  [[nodiscard]] const Regimes& regimes() const { return regimes_; }
  /// Increments of this epoch that counted in bet `i` of DriftEvidence: the number of starts that evidence had there (a
  /// start at an increment that hardly counts is the same as one after it).
  [[nodiscard]] std::uint32_t moves(std::size_t i) const { return moves_[i]; }
  [[nodiscard]] const DriftEvidence& drift() const { return drift_; }
  /// Whether all floors kept are the same: then no window rises, whatever the earlier evidence is.
  [[nodiscard]] bool is_flat() const { return same_ >= size_; }

 private:
  std::vector<Bucket> ring_;  ///< grows with its content: most programs are younger than the coarse levels
  std::size_t head_ = 0;
  std::size_t size_ = 0;
  std::size_t same_ = 0;  ///< buckets since the floor last moved, up to the ones kept
  std::array<std::uint32_t, DriftEvidence::kBets> moves_{};
  float forgotten_floor_ = 0;
  DriftEvidence drift_;
  Regimes regimes_;
};

/// All levels of one series. observe() costs a comparison and two min/max; a close costs O(levels closed), fewer than
/// two per finest bucket on average.
class Scales {
 public:
  static constexpr std::size_t kLevels = 12;  ///< up to 5.7 h per bucket, 11 days in all: longer than horizon-days
  static constexpr Duration kFinest = std::chrono::seconds{10};

  /// Returns a bit mask of the levels in which a bucket closed (before this sample was taken in). Levels finer than
  /// `finest` are kept without evidence of drift.
  std::uint32_t observe(Timestamp time, float bytes, std::size_t finest = 0);

  /// The last sample turned out to be `bytes`. REQUIRES: an observe() before it.
  void replace_last(float bytes);

  /// Starts a new epoch, whose first bucket is the last closed one. REQUIRES: one has closed. `keep_highs`: earlier
  /// levels still count as seen before (memory that was released by itself may rise again); false after an end that was
  /// not the program's own doing.
  void restart(bool keep_highs);

  [[nodiscard]] const Level& level(std::size_t k) const { return levels_[k]; }
  [[nodiscard]] static double width_s(std::size_t k) {
    return std::chrono::duration<double>(kFinest).count() * static_cast<double>(1U << k);
  }
  /// End of a bucket in time.
  [[nodiscard]] Timestamp end_of(std::size_t k, std::int32_t slot) const;
  [[nodiscard]] Timestamp start_of(std::size_t k, std::int32_t slot) const;
  /// The floor of the finest closed bucket that still covers `time`; of the last one before it in a gap; 0 if nothing
  /// is known of that time.
  [[nodiscard]] double floor_at(Timestamp time) const;
  /// Whether the floor of a closed bucket that ends after `time` is at least `bytes`, at the finest level that reaches
  /// back that far or a finer one; at least the last bucket of each counts. Nothing is below 0 bytes. The search stops
  /// at the first such bucket, from the newest: on a rising series that is one of the first.
  [[nodiscard]] bool reaches_since(Timestamp time, double bytes) const;
  /// How long before `time` the floors of level `k`, and further back those of coarser levels, stayed within [low,
  /// high] without a break; 0 if the bucket that ends at `time` is outside. O(48 per level).
  [[nodiscard]] double quiet_before_s(std::size_t k, Timestamp time, double low_bytes, double high_bytes) const;

 private:
  void close_before(std::int32_t slot, std::uint32_t& mask, std::size_t finest);
  void close(std::size_t k, std::uint32_t& mask, bool weighs);

  Timestamp first_{};
  Timestamp boundary_{};  ///< end of the open finest bucket
  bool has_first_ = false;
  bool started_ = false;  ///< a finest bucket is open
  std::array<Bucket, kLevels> open_{};
  Bucket before_last_{};  ///< the open finest bucket without its last sample
  bool alone_ = true;     ///< the last sample is the only one of its bucket
  std::array<bool, kLevels> has_open_{};
  std::array<Level, kLevels> levels_{};
};

}  // namespace vramtrack
