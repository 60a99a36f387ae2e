// Derived: a series that is made of another one, with a judge of its own. What stands there stands for the series.
#pragma once

#include <memory>
#include <optional>

#include "detect/detector.hpp"

namespace vramtrack {

/// Costs nothing, and knows nothing, before begin().
class Derived {
 public:
  /// From now on the judge sees the derived series. REQUIRES: !has_begun().
  void begin(std::unique_ptr<Detector> judge) { judge_ = std::move(judge); }
  [[nodiscard]] bool has_begun() const { return judge_ != nullptr; }
  /// The next value. `means_something`: whether a growth of it is a growth of the series, as far as is known now. What
  /// was raised while it did stands until the judge ends it.
  /// REQUIRES: begin().
  void observe(Timestamp time, double bytes, std::optional<double> limit_bytes, bool means_something);
  /// The program has ended, or starts anew.
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
