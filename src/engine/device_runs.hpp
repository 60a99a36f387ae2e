// The runs of a device: when one begins, continues and has ended (docs/design/0009-endings.md, "Runs").
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/verdict.hpp"
#include "detect/detector.hpp"

namespace vramtrack {

/// When the first alert in `run` that was not withdrawn was raised. Pure.
std::optional<Timestamp> first_alert_of(const Run& run, const std::vector<Alert>& alerts);

/// Follows one device, reading by reading. A run ends when the device is idle, or at a call of close(); the next one
/// begins when more is in use than the last one left. Bounded memory. Not thread-safe.
class DeviceRuns {
 public:
  static constexpr std::size_t kMaxRuns = 256;
  static constexpr double kReported_s = 60;  ///< shorter runs are counted, but not reported one by one

  /// The levels with which the readings are compared.
  struct Levels {
    double idle_bytes = 0;              ///< a device with no more than this in use is idle
    std::uint64_t no_growth_bytes = 0;  ///< a smaller rise does not count
    double release_s = 0;               ///< how long after an end its memory may still be being released
  };

  /// Takes a reading; times do not decrease. `last_end`: the last end of a process on the device. Returns whether a run
  /// has begun: with this reading, or a few earlier. O(1).
  bool read(Timestamp time, std::uint64_t bytes, const Levels& levels, const std::optional<End>& last_end);
  /// A process was listed for the first time. Where processes are listed, a run begins with one.
  void came(Timestamp time);
  /// Ends the present run with `end`; `left_bytes` are in use now, and `gone_at` is the first reading without it. Does
  /// nothing if no run continues, or if it began later. Returns whether it ended one.
  bool close(const End& end, Timestamp gone_at, std::uint64_t left_bytes);

  /// A run began at `time`, and `bytes` are in use now. REQUIRES: !goes_on().
  void begin(Timestamp time, std::uint64_t bytes);

  [[nodiscard]] const std::vector<Run>& all() const { return runs_; }
  /// Sets the first alert of the last run. REQUIRES: !all().empty().
  void set_first_alert(std::optional<Timestamp> raised) { runs_.back().first_alert = raised; }
  [[nodiscard]] bool goes_on() const { return !runs_.empty() && !runs_.back().end; }
  /// Memory in use before the last run began: by other programs, or by the driver. nullopt if it was not seen.
  [[nodiscard]] std::optional<std::uint64_t> rest_bytes() const { return rest_bytes_; }
  /// Of the runs of kTold_s or more that have ended: how many grew until memory ran out, and how fast.
  [[nodiscard]] std::optional<Precedent> precedent() const;
  /// The lowest reading of the present run so far.
  [[nodiscard]] std::uint64_t lowest_bytes() const { return lowest_bytes_; }
  /// The memory that the present run held once loaded: its last reading no later than `release_s` after it began.
  [[nodiscard]] std::uint64_t loaded_bytes() const { return loaded_bytes_; }
  /// Its lowest reading since then.
  [[nodiscard]] std::uint64_t lowest_loaded_bytes() const { return lowest_loaded_bytes_; }
  /// The largest rise from one reading to the next, over at least the last half of the present run.
  [[nodiscard]] std::uint64_t largest_rise_bytes() const { return std::max(rise_bytes_, prior_rise_bytes_); }

 private:
  /// The memory in use between two runs.
  struct Between {
    Timestamp since;  ///< the first reading without the run, or with less than before
    std::uint64_t floor_bytes = 0;
    int readings = 0;                ///< number of readings at the floor
    std::optional<Timestamp> risen;  ///< the first reading of the present stretch above the floor
  };

  void note_rise(Timestamp time, std::uint64_t bytes);
  [[nodiscard]] bool somebody_stayed(const Levels& levels) const;

  std::vector<Run> runs_;
  std::optional<Between> between_;
  std::optional<Timestamp> came_;  ///< when the latest process came
  bool listed_ = false;
  std::optional<std::uint64_t> rest_bytes_;
  std::uint64_t first_bytes_ = 0;  ///< of the last run
  std::uint64_t lowest_bytes_ = 0;
  std::uint64_t loaded_bytes_ = 0;
  std::uint64_t lowest_loaded_bytes_ = 0;
  std::uint64_t last_bytes_ = 0;
  std::uint64_t rise_bytes_ = 0;  ///< the largest of the present stretch, which ends at `rise_until_`
  std::uint64_t prior_rise_bytes_ = 0;
  Timestamp rise_until_{};
  Timestamp prior_{};  ///< time of the previous reading
};

}  // namespace vramtrack
