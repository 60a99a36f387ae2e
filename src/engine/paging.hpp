// Paging: when people are notified of a leak, and when the notification is withdrawn (docs/design/0029-paging.md).
//
// That something leaks is a conclusion; to page somebody about it is a decision about time. It is made here and nowhere
// else: the code that raises, upgrades or withdraws an alert about growth calls decide_page().
//
//   verdict, what is known besides the curve, how full, how long it stands still  ->  decide_page()  ->  PageDecision
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "core/time.hpp"
#include "core/verdict.hpp"
#include "detect/detector.hpp"

namespace vramtrack {

/// The definition of a move of a line.
struct Move {
  double quantum_bytes = 0;  ///< a smaller rise is not a move
  double window_s = 0;       ///< a level that is higher for a shorter time is a spike, not a move

  /// `cycle_s`: if the lows of cycles show it, the time between two of them, the least time to wait.
  /// A twentieth of the `free_bytes` that are left, or the growth of five minutes, whichever is less; an eighth of the
  /// time that it has grown or of the time left, whichever is less, and ten minutes at most.
  static Move of(std::optional<double> free_bytes, double growth_bytes_per_s, double grown_s,
                 const std::optional<Interval>& left_s, double cycle_s = 0);
};

/// How long a line has stood still, compared with how it moved before. Fed from when a growth is first seen. It uses
/// the lowest level of the last one to two windows, which rises with a leak but not with a spike. Only then is it known
/// that a level is held; the line reached it earlier. Pure; 300 bytes.
class Standstill {
 public:
  /// Times must not decrease. O(1) on average.
  void observe(Timestamp time, double bytes, const Move& move);

  /// Since a move was last known, or since the first observation: a higher level not known to be held may continue.
  [[nodiscard]] double still_s() const { return begun_ ? seconds_between(moved_, last_) : 0; }
  /// How long it has stayed within a quantum of the level of its last move, counted from when it reached that level. A
  /// higher level may be a move; a level that falls and recovers may rise from fall to fall.
  [[nodiscard]] double flat_s() const { return begun_ ? seconds_between(flat_, last_) : 0; }
  /// The median time between its last moves; 0: fewer than two are known.
  [[nodiscard]] double usual_s() const;
  [[nodiscard]] double highest_bytes() const { return highest_bytes_; }

 private:
  void reach(Timestamp time, double bytes, double step_bytes);
  [[nodiscard]] Timestamp reached_at(double level_bytes) const;

  static constexpr std::size_t kGaps = 8;
  bool begun_ = false;
  bool has_moved_ = false;
  bool knows_a_window_ = false;  ///< whether one has passed
  Timestamp moved_{};
  Timestamp flat_{};  ///< since then
  Timestamp last_{};
  double highest_bytes_ = 0;  ///< of the lowest levels, at `moved_`
  Timestamp window_begun_{};
  double lowest_bytes_ = 0;         ///< in this window
  double lowest_before_bytes_ = 0;  ///< in the window before
  /// A level that all samples since then have held.
  struct Held {
    Timestamp since{};
    double bytes = 0;
  };
  std::array<Held, 12> held_{};  ///< in rising order
  std::size_t held_count_ = 0;
  std::array<float, kGaps> gaps_s_{};
  std::size_t gaps_ = 0;  ///< number ever seen
};

/// The facts on which the decision is based. Times in seconds.
struct PageFacts {
  Stage stage = Stage::none;
  bool leak = false;               ///< the verdict, whatever decided it
  bool at_rest = false;            ///< shown as a leak, but neither a rate nor an end can be given at this moment
  Basis basis = Basis::curve;      ///< what has decided, besides the curve
  std::optional<Interval> left_s;  ///< until memory runs out; nullopt: cannot be predicted
  double grown_s = 0;              ///< since the growth began
  double lead_s = 0;               ///< the time people need: alert.lead-time-minutes; 0: raised as soon as it is a leak
  double least_s = 0;              ///< a younger growth is not a page: detection.minimum-duration-minutes
  double still_s = 0;              ///< since the line was last known to move: Standstill::still_s()
  double flat_s = 0;               ///< since it reached its present level: Standstill::flat_s()
  double usual_pause_s = 0;        ///< between its moves; 0: unknown
  double period_s = 0;             ///< between two samples
  double cycle_s = 0;              ///< between the lows that show it: Detector::cycle_s()
  std::optional<double> left_bytes;  ///< an upper bound on its further rise, if it slows down: Detector
  double free_bytes = 0;             ///< until memory runs out
  double used_bytes = 0;
  std::optional<double> stood_bytes;  ///< how high earlier runs of its program rose before they stood still for hours
  double full_ratio = 0;              ///< share of the limiting memory that is in use; 0: unknown
  bool given_back = false;            ///< whether a fifth of the growth or more was released
  bool of_device = false;             ///< the figures above are the device's: others release what a process takes
  bool in_band = false;  ///< the device has moved up and down between these levels before (engine/band.hpp)
  bool paged = false;    ///< an alert is active
  bool held = false;     ///< a policy keeps the process from growing
};

/// `nothing`: nobody needs to know; `suspected`: shown as a possible leak; `shown`: shown as a leak, but nobody is
/// notified yet; `page`: an alert is raised, or continues; `withdraw`: the alert ends, but its subject remains
/// visible.
enum class Paging : std::uint8_t { nothing, suspected, shown, page, withdraw };

struct PageDecision {
  Paging what = Paging::nothing;
  std::string why;  ///< in words, with the figures; of `shown`, `page` and `withdraw`
};

/// Pure. Monotone: with less time left, and all else equal, a page remains a page. `scale` formats the figures.
PageDecision decide_page(const PageFacts& facts, const Scale& scale);

/// Whether the line has been flat for so long that its earlier rise no longer supports a new conclusion: nothing is
/// suspected, confirmed or raised. Of `facts`, those about the standstill and what is left are used.
bool has_stood_still(const PageFacts& facts);
/// "memory has not grown for 11 min".
std::string still_words(const PageFacts& facts, const Scale& scale);

/// The time that a person needs for a growth that began `grown_s` ago and ends in `left_s`: `lead_s`, or a third of a
/// short life.
double needed_s(double lead_s, double grown_s, double left_s);

/// Whether the memory is so full that a pause or a quiet night means nothing: only the last of it counts then.
bool is_nearly_full(double full_ratio);

}  // namespace vramtrack
