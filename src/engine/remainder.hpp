// The part of a device's used memory that its processes do not hold, computed from readings that do not match exactly.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "core/series.hpp"
#include "core/time.hpp"

namespace vramtrack {

/// The remainder of one device: used memory minus what its processes hold. Memory reserved by the driver is not part of
/// used memory; what it uses for itself besides processes is the remainder's healthy level.
///
/// Device and processes are read one after the other, or by two logs at different instants, and a driver frees the
/// memory of a process for a while after its end. Each listing therefore gives an interval that contains the remainder,
/// and the value moves only as far as two listings in a row require. Starts and ends of processes do not move it, nor
/// do swinging neighbours; memory that stays in use for longer than a release takes does.
///
/// Memory that a process held, and that is still unexplained when its release is due, is unreleased: see unreleased().
///
/// Causal and deterministic. O(listed processes) per listing. Not thread-safe.
class Remainder {
 public:
  /// Memory of a process that has ended that is still in use long after its end.
  struct Unreleased {
    SeriesId process{};
    Timestamp ended;
    double held_bytes = 0;           ///< by the process, when it was last listed
    double bytes = 0;                ///< the part of it that is in use but held by no process: at least half
    bool is_one_of_several = false;  ///< others ended meanwhile: it is unknown which of them held it
  };

  /// The device's used memory was read. Times must not decrease, here and in the functions below.
  void read(Timestamp time, std::uint64_t used_bytes);
  /// A process was listed as holding this many bytes.
  void list(SeriesId process, Timestamp time, std::uint64_t bytes);
  /// A process holds this many bytes of the device besides those it is listed with: host memory, if the
  /// device shares that; 0: no longer. It may be read less often. It is ignored while the sum would exceed the memory
  /// in use: the device's figure is then not the host's.
  void also(SeriesId series, std::uint64_t bytes);
  /// Whether this additional memory of processes was included when the remainder was last determined.
  [[nodiscard]] bool counts_also() const { return counts_also_; }
  /// A process has ended; the memory that it held may appear as in use until `release_s` later.
  void end(SeriesId process, Timestamp time, double release_s);
  /// The process is forgotten.
  void forget(SeriesId process) { held_.erase(process); }

  /// The tick at `time` is complete: the remainder, if this tick determines it. Nullopt if the device or some of its
  /// processes were not read, or none was ever listed. Never negative: memory that processes share counts with each.
  std::optional<std::uint64_t> close(Timestamp time);

  /// Memory that has not been released, as of the last close() that returned a value; the oldest first. Each was seen
  /// twice after its release was due, and stays until half of what it was then has been released.
  [[nodiscard]] std::vector<Unreleased> unreleased() const;

  /// Whether the processes are known at `time`: some were listed recently, or all have ended.
  [[nodiscard]] bool known(Timestamp time) const;

 private:
  struct Held {
    double bytes = 0;
    Timestamp listed;
  };
  struct Release {
    double bytes = 0;  ///< not yet seen to be released
    Timestamp until;
    Unreleased of;
    int closes = 0;  ///< since the process ended
  };
  /// A release that was due but did not happen.
  struct Overdue {
    Unreleased of;
    double first_bytes = 0;
    int closes = 0;  ///< since it was due
  };
  struct Bounds {
    double low = 0;
    double high = 0;
  };
  struct Reading {
    Timestamp time;
    double used_bytes = 0;
  };
  [[nodiscard]] bool all_listed(Timestamp time);
  [[nodiscard]] double longest_silence_s() const;
  [[nodiscard]] double look_s() const;
  [[nodiscard]] double being_released(Timestamp time);
  void shrink_releases(double most_bytes);
  void shrink_overdue();

  std::map<SeriesId, Held> held_;    ///< the living processes that hold something
  std::map<SeriesId, double> also_;  ///< additional bytes that live processes hold
  bool counts_also_ = false;
  std::vector<Release> releases_;  ///< the oldest first
  std::vector<Overdue> overdue_;   ///< the oldest first
  double base_bytes_ = 0;          ///< of the remainder, excluding what is overdue
  std::optional<Reading> now_;     ///< the last reading of the device
  std::optional<Reading> before_;
  int looks_ = 0;                        ///< since the last listing
  double least_used_bytes_ = 0;          ///< the lowest reading since the last value was determined
  std::optional<double> listed_before_;  ///< the processes' sum at the previous listing
  std::optional<Timestamp> last_listing_;
  std::optional<Timestamp> closed_;
  double listing_period_s_ = 0;  ///< the longest recent one
  double reading_period_s_ = 0;
  std::optional<Bounds> bounds_;  ///< the bounds of the previous listing
  std::optional<double> value_;
};

}  // namespace vramtrack
