// Growth: one rise of a series, from when some scale first shows it to its end. Scales and windows come and go while it
// lasts; it keeps what is known of the whole: its beginning, and how probable it has become that it is a leak.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "core/time.hpp"
#include "core/verdict.hpp"
#include "detect/evidence.hpp"
#include "detect/scales.hpp"

namespace vramtrack {

/// Pure; one per series. All costly work happens when a growth begins, and whenever it is a quarter older.
class Growth {
 public:
  /// Some level shows a rise with this confidence in a leak. The onset is the one from the finest scale that still
  /// reached back to it. A coarser scale moves it only if it disagrees by more than it can resolve. `finest`: the
  /// finest level that counts.
  void see(const Scales& scales, std::size_t finest, const Evidence& e, double confidence, Timestamp now);
  /// Ends it if the memory was released, or has stood still for too long; for a suspicion or an alert that `stands`,
  /// how long is too long is decided there. A growth that stood still continues as the same one if a window reaches
  /// back into it. O(1) while the growth is seen.
  void check(const Scales& scales, std::size_t finest, bool stands, Timestamp now);
  void end() {
    const std::uint32_t number = number_;
    *this = Growth{};
    number_ = number;
  }
  /// Something else explains it: earlier evidence against that no longer counts.
  void doubt() { confidence_ = 0; }

  [[nodiscard]] bool lives() const { return lives_; }
  /// The number of growths that the series has had, including this one.
  [[nodiscard]] std::uint32_t number() const { return number_; }
  /// REQUIRES for all of these: lives().
  [[nodiscard]] Timestamp onset() const { return onset_; }
  [[nodiscard]] double onset_bytes() const { return onset_bytes_; }
  /// The highest confidence so far. It does not decrease while the growth continues.
  [[nodiscard]] double confidence() const { return confidence_; }
  /// It followed a faster rise, at a rate of its own: conclusions about that rise do not apply to this one.
  [[nodiscard]] bool follows_another() const { return follows_; }
  /// Whether it is time to predict its end again: it is a tenth older than the last time.
  [[nodiscard]] bool wants_forecast(Timestamp now) const;
  /// Takes in when memory is predicted to run out, as of `now`; nullopt: unknown.
  void foretell(const std::optional<Interval>& oom_in_s, Timestamp now);
  /// The same end with the narrowest interval so far, unless it has moved out of that: the rate has then really
  /// changed.
  [[nodiscard]] Interval narrowed(const Interval& oom_in_s, Timestamp now) const;
  /// The finest level, starting with `finest`, that reaches back to the onset.
  [[nodiscard]] std::size_t level(const Scales& scales, std::size_t finest) const;

 private:
  struct Foretold {
    Timestamp end;      ///< the middle
    double spread = 0;  ///< the spread of the logarithm of the time left: from the middle to either side
  };

  void review(const Scales& scales, std::size_t finest, Timestamp now);
  [[nodiscard]] bool changes_regime(const Scales& scales, std::size_t finest, Timestamp now);

  std::uint32_t number_ = 0;
  bool lives_ = false;
  bool follows_ = false;
  bool of_jump_ = false;  ///< all windows so far were jumps and their aftermath
  Timestamp onset_{};
  double onset_bytes_ = 0;
  double high_bytes_ = 0;
  double confidence_ = 0;
  Timestamp seen_{};     ///< when a new high was seen, or when the standstill was last checked
  Timestamp high_at_{};  ///< the last new high
  std::size_t seen_level_ = 0;
  double reviewed_age_s_ = 0;
  double foretold_age_s_ = 0;
  std::optional<Foretold> foretold_;
};

}  // namespace vramtrack
