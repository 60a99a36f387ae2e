// Paging: when people are notified of a leak, and when that is taken back (docs/design/0029-paging.md).
//
// That something leaks is a conclusion; to page somebody about it is a decision about time. It is made here and nowhere
// else: what raises, upgrades or withdraws an alert about growth asks decide_page().
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

/// What counts as a move of a line.
struct Move {
  double quantum_bytes = 0;  ///< a smaller rise is none
  double window_s = 0;       ///< what is higher for a shorter time is a spike, and none either

  /// `cycle_s`: if the lows of cycles show it, the time between two, the least that is waited for.
  /// A twentieth of the `free_bytes` that are left, or what grows in five minutes, whichever is less; an eighth of the
  /// time that it has grown or of what is left, whichever is less, and ten minutes at most.
  static Move of(std::optional<double> free_bytes, double growth_bytes_per_s, double grown_s,
                 const std::optional<Interval>& left_s, double cycle_s = 0);
};

/// How long a line has stood still, compared with how it moved before. Fed from when a growth is first seen. It looks
/// at the lowest level of the last one to two windows, which rises with a leak and not with a spike. That a level is
/// held is known only then; the line came to it earlier. Pure; 300 bytes.
class Standstill {
 public:
  /// Times must not decrease. O(1) on average.
  void observe(Timestamp time, double bytes, const Move& move);

  /// Since a move was last known, or since the first observation: what is higher and not known to be held may continue.
  [[nodiscard]] double still_s() const { return begun_ ? seconds_between(moved_, last_) : 0; }
  /// Since when it has stayed within a quantum of the level of its last move, from when it came to that level on. What
  /// is higher may be a move; what falls and comes back may rise from fall to fall.
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
  bool knows_a_window_ = false;  ///< one has passed
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
  std::array<Held, 12> held_{};  ///< rising
  std::size_t held_count_ = 0;
  std::array<float, kGaps> gaps_s_{};
  std::size_t gaps_ = 0;  ///< number ever seen
};

/// What the decision is made from. Times in seconds.
struct PageFacts {
  Stage stage = Stage::none;
  bool leak = false;               ///< the verdict, whatever decided it
  bool at_rest = false;            ///< shown as a leak, but neither a rate nor an end can be given at this moment
  Basis basis = Basis::curve;      ///< what has decided, besides the curve
  std::optional<Interval> left_s;  ///< until memory runs out; nullopt: cannot be predicted
  double grown_s = 0;              ///< since the growth began
  double lead_s = 0;               ///< what a person needs: alert.lead-time-minutes; 0: raised as soon as it is a leak
  double least_s = 0;              ///< a growth is not a page before: detection.minimum-duration-minutes
  double still_s = 0;              ///< since the line was last known to move: Standstill::still_s()
  double flat_s = 0;               ///< since it came to where it is: Standstill::flat_s()
  double usual_pause_s = 0;        ///< between its moves; 0: not known
  double period_s = 0;             ///< between two samples
  double cycle_s = 0;              ///< between the lows that show it: Detector::cycle_s()
  std::optional<double> left_bytes;  ///< how much it still rises at most, where it slows down: Detector
  double free_bytes = 0;             ///< until memory runs out
  double used_bytes = 0;
  std::optional<double> stood_bytes;  ///< how high earlier runs of its program rose, which then stood still for hours
  double full_ratio = 0;              ///< of what ends the memory, how much is in use; 0: not known
  bool given_back = false;            ///< a fifth of the growth or more
  bool of_device = false;             ///< the figures above are the device's: others release what a process takes
  bool in_band = false;  ///< the device has moved up and down between these levels before (engine/band.hpp)
  bool paged = false;    ///< an alert is active
  bool held = false;     ///< a policy keeps the process from growing
};

/// `nothing`: nobody needs to know; `suspected`: shown as what may be a leak; `told`: shown as a leak, and nobody is
/// notified yet; `page`: an alert is raised, or continues; `withdraw`: the alert ends, and what it was about is shown
/// on.
enum class Paging : std::uint8_t { nothing, suspected, shown, page, withdraw };

struct PageDecision {
  Paging what = Paging::nothing;
  std::string why;  ///< in words, with the figures; of `shown`, `page` and `withdraw`
};

/// Pure. Monotone: with less time left, and all else the same, what was a page stays one. `scale` writes the figures.
PageDecision decide_page(const PageFacts& facts, const Scale& scale);

/// Whether the line has been flat for so long that nothing new is concluded from how it rose before: nothing is
/// suspected, confirmed or raised. Of `facts` counts what is known of the standstill, and what is left.
bool has_stood_still(const PageFacts& facts);
/// "memory has not grown for 11 min".
std::string still_words(const PageFacts& facts, const Scale& scale);

/// The time that a person needs of a growth that began `grown_s` ago and ends in `left_s`: `lead_s`, and of a short
/// life a third.
double needed_s(double lead_s, double grown_s, double left_s);

/// Whether the memory is so full that a pause or a quiet night says nothing: it is then the last of it that counts.
bool is_nearly_full(double full_ratio);

}  // namespace vramtrack
