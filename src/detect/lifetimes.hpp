// Lifetimes: whether the allocations of a program's lines stay or are released, and what that shows about a rise of
// its memory. The source of the information does not matter here. Pure: no clock, no I/O.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/lifetimes.hpp"
#include "core/scale.hpp"
#include "core/time.hpp"

namespace vramtrack {

/// What lifetimes show about a rise.
struct LifetimesWord {
  enum class Kind : std::uint8_t {
    none,    ///< not reported, or the reported lines do not explain the rise, or it cannot be decided
    stays,   ///< what made up the first half of the rise is still live: a leak, or a cache that fills
    dies,    ///< it was released, and other memory has taken its place: growing load
    stopped  ///< the lines that grew no longer allocate
  };
  Kind kind = Kind::none;
  std::string site;      ///< the line that grew most
  double age_s = 0;      ///< the age of allocations of which ...
  double share = 0;      ///< ... this share is still live
  double stopped_s = 0;  ///< since the last allocation

  /// Whether the rise is not a leak.
  [[nodiscard]] bool denies() const { return kind == Kind::dies || kind == Kind::stopped; }
  /// Odds for a leak against all of its rivals except chance: 0 or 16.
  [[nodiscard]] double odds() const;
  /// "of what train.py:57 train_step allocated 5 min ago 98 % is still live"; empty for Kind::none.
  [[nodiscard]] std::string describe(const Scale& scale) const;
};

/// For one process. Memory: at most 150 KiB. A query costs some 100 operations per reported line.
class Lifetimes {
 public:
  /// What is known of the lines that hold or allocate most. Times do not decrease.
  void take(Timestamp time, const std::vector<SiteLifetimes>& sites);
  [[nodiscard]] const std::vector<SiteLifetimes>& sites() const { return sites_; }

  /// About a rise of `net_bytes`; `gap_s`: the longest time that it has paused.
  [[nodiscard]] LifetimesWord word(Timestamp start, Timestamp end, double net_bytes, double gap_s) const;

 private:
  struct Point {
    Timestamp time;
    double live_bytes = 0;
    double settled_bytes = 0;  ///< the part that is older than temporary memory
  };
  /// What a line has held since it was first reported, at no more than kMostPoints points of time.
  struct Line {
    std::string site;
    std::vector<Point> points;
    /// Before the first point, its value: memory that was not seen counts as no growth.
    [[nodiscard]] Point at(Timestamp time) const;
  };

  Timestamp time_{};
  std::vector<SiteLifetimes> sites_;  ///< at time_
  std::vector<Line> lines_;
};

}  // namespace vramtrack
