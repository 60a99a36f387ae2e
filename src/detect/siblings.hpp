// Siblings: the ranks and replicas of one job that now run on other devices or hosts, and what they show about a rise.
// Pure: no clock, no I/O. The statistics: docs/detectors/judge.md, "Siblings".
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "detect/experience.hpp"
#include "detect/floor_curve.hpp"

namespace vramtrack {

/// What one sibling shows about a rise. `nothing`: it was not there all the time, holds much less, or was as high
/// without rising like this.
enum class SiblingMove : std::uint8_t {
  nothing,
  still,  ///< it stands still, at a lower level
  rises,  ///< it rises as well
  ended   ///< it made the same rise, and stands still at that level or above
};
SiblingMove move_of_sibling(const FloorCurve& sibling, const Rise& rise);

/// What all of them show, also expressed as a Bayes factor and as the weight of a rival.
struct SiblingsWord {
  SiblingMove kind = SiblingMove::nothing;
  int siblings = 0;     ///< those that showed something
  int of_them = 0;      ///< how many of those showed `kind`
  double familiar = 0;  ///< weight of "like its siblings", relative to a leak's 1; at most 16
  double odds = 1;      ///< Bayes factor for a leak against its rivals, from 1 to 10

  /// Whether the rise is as expected of a healthy rank.
  [[nodiscard]] bool explains() const { return kind == SiblingMove::ended && familiar >= 1; }
  /// "; 7 of its 8 siblings stand still"; empty if they show nothing.
  [[nodiscard]] std::string describe() const;
};

/// The word of this many siblings of each kind. Pure.
SiblingsWord siblings_word(int still, int rising, int ended);

/// Both words combined, within the bounds of experience alone.
ExperienceWord with_siblings(ExperienceWord word, const SiblingsWord& siblings);

/// The siblings of one series: owned by the engine, read by its detector. They change only between ticks.
class Siblings {
 public:
  /// The curves of the other series; they must outlive this object or the next call.
  void set(std::vector<const FloorCurve*> curves) { curves_ = std::move(curves); }
  /// O(siblings).
  [[nodiscard]] SiblingsWord word(const Rise& rise) const;

 private:
  std::vector<const FloorCurve*> curves_;
};

}  // namespace vramtrack
