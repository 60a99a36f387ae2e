// Judges a device's health and describes it: one judgement for every surface.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/view.hpp"

namespace vramtrack {

/// `degraded`: slower or worse than it should be; `failing`: work was or will be lost.
enum class Condition : std::uint8_t { unknown, healthy, degraded, failing };
std::string_view to_string(Condition condition);

struct HealthProblem {
  Condition condition = Condition::degraded;
  std::string text;
  std::string next;       ///< what to do about it
  std::string_view kind;  ///< for programs: memory_errors, repair_failed, repair_pending, thermal, power, slowdown, xid
};

struct HealthReport {
  Condition condition = Condition::unknown;  ///< the worst problem's; healthy if there is none but something is known
  std::vector<HealthProblem> problems;       ///< the worst first
};

/// Judges a device's series. A power cap, clocks set by the user and an idle GPU are not problems, nor are XID errors
/// caused by a program; those of the hardware count for a day. `now`: the View's time. Pure.
HealthReport judge_health(const SeriesView& device, Timestamp now);

/// "temperature 71 °C; ECC on, 0 uncorrected; throttle: power cap"; unknown values are named as such. Without XID and
/// problems.
std::string health_words(const std::optional<DeviceHealth>& health);

/// "last XID 79: the GPU has fallen off the bus, at 03:12:05", "no XID error seen", "XID not known". `clock` formats a
/// time.
std::string xid_words(const SeriesView& device, const std::function<std::string(Timestamp)>& clock);

}  // namespace vramtrack
