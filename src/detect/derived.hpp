// Derived: a series derived from another one, with its own judge. Alerts that this judge raises count for the series.
#pragma once

#include <memory>
#include <optional>

#include "detect/detector.hpp"

namespace vramtrack {

/// Costs nothing, and has no effect, before begin().
class Derived {
 public:
  /// From now on, the judge sees the derived series. REQUIRES: !has_begun().
  void begin(std::unique_ptr<Detector> judge) { judge_ = std::move(judge); }
  [[nodiscard]] bool has_begun() const { return judge_ != nullptr; }
  /// Takes the next value. `means_something`: whether its growth is growth of the series, as far as is known now.
  /// Anything raised while that was true stands until the judge ends it.
  /// REQUIRES: begin().
  void observe(Timestamp time, double bytes, std::optional<double> limit_bytes, bool means_something);
  /// The program has ended or restarts.
  void clear() { *this = Derived{}; }

  [[nodiscard]] bool suspects() const { return suspects_; }
  [[nodiscard]] bool alerts() const { return alerts_; }
  /// REQUIRES: begin().
  [[nodiscard]] const Detector& judge() const { return *judge_; }

 private:
  std::unique_ptr<Detector> judge_;
  bool suspects_ = false;
  bool alerts_ = false;
};

}  // namespace vramtrack
