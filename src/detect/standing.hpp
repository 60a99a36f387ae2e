// Standing: a suspicion or an alert of the judge, from its raise to its end.
#pragma once

#include <array>
#include <cstdint>

#include "detect/evidence.hpp"
#include "detect/scales.hpp"

namespace vramtrack {

/// What the looks at the levels add up to. Pure; of one series.
class Standing {
 public:
  /// A look at level `k`: whether it speaks for raising, and its window if it does.
  void look(std::size_t k, const Evidence* speaks);
  /// Whether the looks so far are enough: a single one is one of hundreds a day.
  [[nodiscard]] bool wanted() const;
  void raise(Timestamp now, const Evidence& best);
  void end();
  /// Forgets the looks, not what stands.
  void forget_looks() { streak_.fill(0); }
  /// Some level, or the growth as it goes on, holds it at this time.
  void hold(Timestamp now) { held_until_ = now; }

  [[nodiscard]] bool stands() const { return stands_; }
  [[nodiscard]] std::size_t level() const { return level_; }
  [[nodiscard]] Timestamp start() const { return start_; }
  [[nodiscard]] double start_bytes() const { return start_bytes_; }
  [[nodiscard]] double net_bytes() const { return net_bytes_; }
  [[nodiscard]] double duration_s() const { return duration_s_; }
  [[nodiscard]] Timestamp held_until() const { return held_until_; }
  /// Whether a level with this latest peak has given back more than a fifth of the growth.
  [[nodiscard]] bool is_given_back(const Level& level) const;
  /// A pause is not an end: what nothing holds stands for a share of the growth's duration.
  [[nodiscard]] double patience_s(const Level& level) const;

 private:
  std::array<std::uint8_t, Scales::kLevels> streak_{};  ///< looks in a row that spoke for raising
  bool stands_ = false;
  std::size_t level_ = 0;
  Timestamp start_{};
  double start_bytes_ = 0;
  double net_bytes_ = 0;
  double duration_s_ = 0;
  Timestamp held_until_{};
};

}  // namespace vramtrack
