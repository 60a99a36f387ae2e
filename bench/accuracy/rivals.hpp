// The rules people use today to find a memory leak or to foretell its end, from their published formulas, each as a
// streaming rule over one device's used bytes. Time is data: seconds since the trace began.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string_view>

namespace vramtrack::accuracy {

/// One rule watching one trace. Not thread-safe.
class Rival {
 public:
  Rival() = default;
  Rival(const Rival&) = delete;
  Rival& operator=(const Rival&) = delete;
  virtual ~Rival() = default;

  /// The next sample; times do not decrease (an equal time replaces the value before it).
  virtual void observe(double t_s, double used_bytes) = 0;
  /// Whether the rule would be alarming after the last sample.
  [[nodiscard]] virtual bool alarming() const = 0;
  /// Its prediction of the time left, where the rule makes one.
  [[nodiscard]] virtual std::optional<double> oom_in_s() const { return std::nullopt; }
};

struct RivalInfo {
  std::string_view name;    ///< short, for the table: "predict_linear"
  std::string_view rule;    ///< in one line, with its constants
  std::string_view source;  ///< where the formula was published
  std::unique_ptr<Rival> (*make)(double capacity_bytes);
};

/// All of them, in the order of the table.
std::span<const RivalInfo> rivals();

}  // namespace vramtrack::accuracy
