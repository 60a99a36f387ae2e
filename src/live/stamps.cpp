#include "live/stamps.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "core/format.hpp"

namespace vramtrack {
namespace {

std::string span(Duration jump) {
  return format_duration(std::chrono::duration<double>(std::chrono::abs(jump)).count());
}

}  // namespace

Timestamp Stamps::resume(const ClockMark& last, const ClockReading& now, const std::string& boot_id) {
  *this = Stamps();
  if (boot_id.empty() || boot_id != last.boot_id || now.since_boot < last.since_boot) return next(now);
  last_ = last.stamp;
  wall_ = last.wall;
  last_boot_ = last.since_boot;
  ahead_ = last.wall - last.stamp;
  changed_at_ = last.changed_at;
  const Timestamp stamp = next(now);
  // A jump back that has lasted: the last run could not follow it.
  if (!news_.empty() || ahead_ >= Duration{0} || !settled(now.since_boot)) return stamp;
  *this = Stamps();
  return next(now);
}

ClockMark Stamps::mark(const std::string& boot_id) const {
  return {.boot_id = boot_id, .since_boot = last_boot_, .wall = wall_, .stamp = *last_, .changed_at = changed_at_};
}

Timestamp Stamps::next(const ClockReading& now) {
  const auto& [wall, since_boot] = now;
  wall_ = wall;
  if (!last_) {
    last_boot_ = changed_at_ = since_boot;
    return *(last_ = wall);
  }
  const Duration elapsed = std::max(since_boot - last_boot_, Duration{1});
  const Timestamp expected = *last_ + elapsed;
  const Duration off = wall - ahead_ - expected;
  Timestamp stamp = expected;
  const Duration tolerance = kTolerance + elapsed / kSlew;
  if (std::chrono::abs(off) > tolerance) {
    // Back to where it was before: the jump was a mistake and is over.
    const bool returned = ahead_ != Duration{0} && std::chrono::abs(ahead_ + off) <= tolerance;
    ahead_ = returned ? Duration{0} : ahead_ + off;
    changed_at_ = since_boot;
    news_ = returned ? "the clock was corrected"
                     : fmt::format("the clock was set {} by {}; timestamps continue from the previous time{}",
                                   off > Duration{0} ? "forward" : "back", span(off),
                                   ahead_ > Duration{0}
                                       ? fmt::format(" and follow the clock if it still differs in {}", span(kStable))
                                       : fmt::format("; to follow the clock, restart vramtrack {} from now or later",
                                                     span(kStable)));
    if (returned) stamp = std::max(wall, expected);
  } else if (ahead_ > Duration{0} && settled(since_boot)) {
    news_ = fmt::format("timestamps follow the clock again, {} ahead", span(ahead_));
    ahead_ = Duration{0};
    stamp = wall;
  } else {
    // If network time slews the clock, the stamps follow, but never backwards.
    stamp = std::max(wall - ahead_, *last_ + Duration{1});
  }
  last_boot_ = since_boot;
  return *(last_ = stamp);
}

std::string Stamps::take_news() {
  return std::exchange(news_, {});
}

}  // namespace vramtrack
