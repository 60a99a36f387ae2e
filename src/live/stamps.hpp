// Stamps: the timestamps of live samples. The only place that handles a clock that may be set.
#pragma once

#include <optional>
#include <string>

#include "core/clock_mark.hpp"
#include "live/clock.hpp"

namespace vramtrack {

/// The timestamps of a run always rise. They follow the time of day as long as it advances like the time since boot.
/// When it jumps, they continue from the last good time by the time since boot. A jump ahead is accepted once it has
/// lasted for kStable (a machine without a battery gets its time from the network after the start). After a jump back,
/// the stamps continue as before it, since they must rise, until the time of day is corrected or another run begins:
/// that run accepts what has lasted for kStable, ahead or back, and until then continues from the last run's stamps.
///
///        wall    ______/‾‾‾‾‾‾‾‾‾‾      stamps   ______________/‾‾‾‾‾
///                      jump                             kStable
///
/// A pure function of its inputs; not thread-safe.
class Stamps {
 public:
  /// How far the time of day may deviate from the time since boot between two calls without counting as a jump: this,
  /// plus 1/kSlew of the time between them. NTP daemons slew by at most 500 ppm, and step anything above 128 ms.
  static constexpr Duration kTolerance = std::chrono::milliseconds{100};
  static constexpr int kSlew = 1000;
  /// How long a jump ahead must last before it is accepted: longer than a mistake that somebody corrects at once.
  static constexpr Duration kStable = std::chrono::minutes{10};

  /// Restarts at `now`, where another run left `last`. Returns the stamp of this moment, which may lie before
  /// `last.stamp`. Whether the clock was set between the two runs is only known within one boot of the machine; if it
  /// is unknown, the time of day is accepted.
  Timestamp resume(const ClockMark& last, const ClockReading& now, const std::string& boot_id);

  /// The stamp of this moment, later than any before it.
  Timestamp next(const ClockReading& now);
  /// The last moment, for another run to resume from. REQUIRES: next() or resume() was called.
  [[nodiscard]] ClockMark mark(const std::string& boot_id) const;
  /// The message about a jump that the last call has seen or begun to believe; empty: none. Reported once.
  std::string take_news();

 private:
  [[nodiscard]] bool settled(Duration since_boot) const { return since_boot - changed_at_ >= kStable; }

  std::optional<Timestamp> last_;
  Timestamp wall_;
  Duration last_boot_{};
  Duration ahead_{0};      ///< of the time of day over the stamps
  Duration changed_at_{};  ///< since boot: when `ahead_` last changed
  std::string news_;
};

}  // namespace vramtrack
