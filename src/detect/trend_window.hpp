// TrendWindow: least squares over a sliding window of time, in fixed memory, O(1) amortised per sample.
//
//        64 closed buckets, evicted whole             open    pending
//   | m | m | m | m | ... | m | m | m | m | m |  | m . . |    (t, y)
//   '------ front: suffix sums -----''- back -'
//
// The window thus reaches back between 1 and 1 + 1/64 of its length. Front and back are the two stacks of sliding
// window aggregation: each bucket is merged once into the back sum and once into a suffix sum (Tangwongsan, Hirzel
// & Schneider, "Low-latency sliding-window aggregation in worst-case constant time", DEBS 2017).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/time.hpp"
#include "detect/regression.hpp"
#include "detect/ring.hpp"

namespace vramtrack {

/// Up to 11 KiB, depending on what it holds. Not thread-safe.
class TrendWindow {
 public:
  static constexpr std::int64_t kBuckets = 64;  ///< the window's length is exact to 1/64
  static constexpr int kRecentPart = 3;         ///< recent() is the latest of this many equal parts

  explicit TrendWindow(double window_s);

  /// Times must not decrease; an equal time replaces the value before it. O(1) amortised, a few ns.
  void observe(Timestamp time, double y);
  void clear();

  /// All samples in the window, including the last one. O(1).
  [[nodiscard]] Moments all() const;
  /// The latest third of its span (whole buckets, plus the open one). O(buckets).
  [[nodiscard]] Moments recent() const;

  [[nodiscard]] bool empty() const { return !has_pending_; }
  [[nodiscard]] double samples() const { return closed_n_ + open_.moments.n + (has_pending_ ? 1 : 0); }
  /// The times of the first and the last sample in the window. REQUIRES !empty().
  [[nodiscard]] Timestamp first() const;
  [[nodiscard]] Timestamp last() const { return pending_time_; }
  [[nodiscard]] double span_s() const { return empty() ? 0 : seconds_between(first(), last()); }
  [[nodiscard]] double last_value() const { return pending_y_; }
  /// A time in the units of Moments and Fit.
  [[nodiscard]] double at(Timestamp time) const { return seconds_between(origin_, time); }

 private:
  struct Bucket {
    std::int64_t slot = 0;
    Timestamp first{};
    Moments moments;
  };

  void commit_pending();
  void close_open();
  void evict_before(std::int64_t slot);
  void turn_over();
  [[nodiscard]] Moments front_sum() const;
  [[nodiscard]] Timestamp recent_from() const { return last() - (last() - first()) / kRecentPart; }

  double window_s_;
  Duration width_;
  Timestamp origin_{};    ///< the time of the first sample since clear()
  Timestamp slot_end_{};  ///< of the pending sample's slot
  std::int64_t pending_slot_ = 0;
  Ring<Bucket, kBuckets + 2> closed_;
  std::size_t front_ = 0;  ///< how many of the oldest have suffix sums: from each to the front's newest
  /// Suffix sums of the front's newest buckets, the newest first: recent() still needs these buckets' own moments. The
  /// other buckets hold their suffix sums in place.
  std::vector<Moments> suffix_;
  Moments back_;  ///< sum of the other closed buckets
  double closed_n_ = 0;
  Bucket open_;
  bool has_pending_ = false;
  bool has_committed_ = false;
  Timestamp pending_time_{};
  double pending_y_ = 0;
  Timestamp committed_time_{};
  double committed_y_ = 0;
};

}  // namespace vramtrack
