// Facts: what is known of a series besides its memory: what its program reads, how busy it keeps the GPU, what kind of
// program it is. They distinguish a load, and a rise that may belong to a morning, from a leak. Pure: no clock, no I/O.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "core/program_kind.hpp"
#include "core/time.hpp"
#include "detect/lifetimes.hpp"

namespace vramtrack {

/// A quantity that only grows, as its total at no more than kMost points of time, at least kApart_s apart; older points
/// are kept more coarsely. A query costs O(log kMost), first_at_rate() O(kMost).
class Track {
 public:
  static constexpr std::size_t kMost = 512;
  static constexpr double kApart_s = 10;

  /// `total` so far, at `time`. A time that is not later than the last one, or a total that is lower, starts over.
  void observe(Timestamp time, double total);
  void clear() { points_.clear(); }
  /// The increase from `from` to `to`, as far as it was seen, by linear interpolation; nullopt if more than a fifth of
  /// that time was not seen.
  [[nodiscard]] std::optional<double> increase(Timestamp from, Timestamp to) const;
  /// Since when, at `from` or later, it has increased by at least `per_s` over two intervals in a row; nullopt: never.
  [[nodiscard]] std::optional<Timestamp> first_at_rate(double per_s, Timestamp from) const;
  [[nodiscard]] bool empty() const { return points_.empty(); }
  [[nodiscard]] double total() const { return points_.empty() ? 0 : points_.back().total; }
  [[nodiscard]] Timestamp last() const { return points_.empty() ? Timestamp{} : points_.back().time; }

 private:
  struct Point {
    Timestamp time;
    double total = 0;
  };
  [[nodiscard]] double at(Timestamp time) const;

  std::vector<Point> points_;
};

/// A rise that a load explains.
struct Load {
  std::optional<double> read_bytes;  ///< read during it; nullopt: unknown, or it does not match
  bool idle = false;                 ///< the program had not begun to work
  bool goes_on = true;               ///< not over yet
};

/// Owned by the engine, one per series that has facts; read by its detector. Memory: at most 48 KiB, plus that of
/// Lifetimes.
class Facts {
 public:
  // Reports by the engine. Times do not decrease.
  /// The share of time, 0..1, since the previous reading during which the GPU worked for this series' program.
  void busy(Timestamp time, double ratio);
  /// What the program has read so far, and what its device has received since the previous reading.
  void read(Timestamp time, double total_bytes);
  void received(Timestamp time, double bytes_per_s);
  /// Another program has begun to use the GPU as well: how busy it was, or what it received, no longer describes this
  /// program.
  void forget_busy() { busy_.clear(); }
  void forget_received() { received_.clear(); }
  /// The number of devices on which the program holds memory: what it reads is spread over them.
  void set_devices(std::size_t devices) { devices_ = static_cast<double>(devices > 0 ? devices : 1); }
  void set_kind(ProgramKind kind) { kind_ = kind; }
  /// When the program began; that may be long before it was watched. nullopt: no longer known.
  void set_begin(std::optional<Timestamp> time) { begin_ = time; }
  [[nodiscard]] std::optional<Timestamp> begin() const { return begin_; }
  [[nodiscard]] ProgramKind kind() const { return kind_; }
  [[nodiscard]] Lifetimes& lifetimes() { return lifetimes_; }
  [[nodiscard]] const Lifetimes& lifetimes() const { return lifetimes_; }

  /// A rise of `net_bytes` from `start` to `end` in a life that began at `life`, if it is a load:
  /// * as much was read (or received) as it rose, within a factor of two; or
  /// * the program has not begun to work since its life began, the rise has not lasted for an hour, and it has not all
  ///   but filled the memory (`full`). Whether it worked is unknown for a life that was not seen for an hour.
  /// A rise counts as the load's if the load took more than half of its time: a leak that follows is judged alone.
  [[nodiscard]] std::optional<Load> load(Timestamp life, Timestamp start, Timestamp end, double net_bytes,
                                         bool full) const;
  /// Whether the program worked for most of this time: its rise is then not a load that precedes the work.
  [[nodiscard]] bool worked(Timestamp from, Timestamp to) const;
  /// Bytes read since `from`; nullopt: unknown.
  [[nodiscard]] std::optional<double> read_since(Timestamp from) const;

 private:
  [[nodiscard]] std::optional<double> brought(const Track& track, Timestamp from, Timestamp to, double net_bytes) const;

  Track busy_;      ///< seconds of work
  Track read_;      ///< bytes
  Track received_;  ///< bytes
  double devices_ = 1;
  std::optional<Timestamp> begin_;
  ProgramKind kind_ = ProgramKind::unknown;
  Lifetimes lifetimes_;
};

}  // namespace vramtrack
