// Standing: a suspicion or an alert of the judge, from when it is raised to its end.
#pragma once

#include <array>
#include <cstdint>

#include "detect/evidence.hpp"
#include "detect/scales.hpp"

namespace vramtrack {

/// Counts the looks at the levels. Pure; one per series.
class Standing {
 public:
  /// Takes in a look at level `k`: the window that supports raising; null if there is none.
  void look(std::size_t k, const Evidence* speaks);
  /// Whether the looks so far suffice; one does not, as there are hundreds per day.
  [[nodiscard]] bool wanted() const;
  void raise(Timestamp now, const Evidence& best);
  void end();
  /// Forgets the looks, but not the suspicion or alert that stands.
  void forget_looks() { streak_.fill(0); }
  /// Some level, or the continuing growth, supports it at this time.
  void hold(Timestamp now) { held_until_ = now; }

  [[nodiscard]] bool stands() const { return stands_; }
  [[nodiscard]] std::size_t level() const { return level_; }
  [[nodiscard]] Timestamp start() const { return start_; }
  [[nodiscard]] double start_bytes() const { return start_bytes_; }
  [[nodiscard]] double net_bytes() const { return net_bytes_; }
  [[nodiscard]] double duration_s() const { return duration_s_; }
  [[nodiscard]] Timestamp held_until() const { return held_until_; }
  /// Whether the level's latest peak shows that more than a fifth of the growth was released.
  [[nodiscard]] bool is_given_back(const Level& level) const;
  /// A pause is not an end: without support, it stands for another share of the growth's duration.
  [[nodiscard]] double patience_s(const Level& level) const;

 private:
  std::array<std::uint8_t, Scales::kLevels> streak_{};  ///< looks in a row that supported raising
  bool stands_ = false;
  std::size_t level_ = 0;
  Timestamp start_{};
  double start_bytes_ = 0;
  double net_bytes_ = 0;
  double duration_s_ = 0;
  Timestamp held_until_{};
};

}  // namespace vramtrack
