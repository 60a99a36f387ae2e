// Coroot's memory leak check (auditor/memory.go, MemoryGrowthPct): the hour's line, if the last quarter still rises.
#include <cstddef>
#include <deque>
#include <span>
#include <vector>

#include "detect/regression.hpp"
#include "rivals_parts.hpp"

namespace vramtrack::accuracy {
namespace {

constexpr double kStepSeconds = 60;
constexpr std::size_t kSteps = 60;  ///< of the window, an hour
constexpr std::size_t kLeastPoints = 10;
constexpr double kTailSeconds = 15 * 60;
constexpr std::size_t kLeastTailPoints = 5;
constexpr double kTailShare = 0.3;
constexpr double kLeastGrowthShare = 0.05;
constexpr double kPercentPerHour = 10;

Fit line_through(std::span<const Reading> points, double origin_s) {
  Moments moments;
  for (const Reading& point : points) moments.add(point.t_s - origin_s, point.y);
  return fit_slope(moments);
}

/// The longest stretch in which no value is below half of the one before; the first of equals.
std::span<const Reading> longest_segment(std::span<const Reading> points) {
  std::span<const Reading> longest;
  std::size_t begin = 0;
  for (std::size_t i = 1; i <= points.size(); ++i) {
    if (i < points.size() && points[i].y >= 0.5 * points[i - 1].y) continue;
    if (i - begin > longest.size()) longest = points.subspan(begin, i - begin);
    begin = i;
  }
  return longest;
}

/// Memory is a point a minute.
class Coroot final : public Polled {
 public:
  explicit Coroot(double capacity_bytes) : capacity_bytes_(capacity_bytes) {}

 private:
  void take(double t_s, double used_bytes, bool /*replaces*/) override {
    if (!points_.empty() && slot_of(points_.back().t_s, kStepSeconds) == slot_of(t_s, kStepSeconds))
      points_.back() = {t_s, used_bytes};
    else
      points_.push_back({t_s, used_bytes});
    const std::int64_t oldest = slot_of(t_s, kStepSeconds) - static_cast<std::int64_t>(kSteps) + 1;
    while (slot_of(points_.front().t_s, kStepSeconds) < oldest) points_.pop_front();
  }

  Alarm evaluate(double t_s, double /*used_bytes*/, const Alarm& /*before*/) override {
    return {.on = growth_percent_per_h(t_s) > kPercentPerHour, .true_since_s = std::nullopt, .full_at_s = std::nullopt};
  }

  [[nodiscard]] double growth_percent_per_h(double t_s) const {
    if (points_.size() * 10 < kSteps * 8) return 0;
    const std::vector<Reading> points(points_.begin(), points_.end());
    const std::span<const Reading> segment = longest_segment(points);
    if (segment.size() < kLeastPoints || segment.size() < kSteps / 3) return 0;
    const Fit line = line_through(segment, t_s);
    if (line.slope_per_s <= 0) return 0;
    // The plateau guard.
    std::size_t tail = segment.size() - segment.size() / 4;
    while (tail > 0 && segment.back().t_s - segment[tail].t_s < kTailSeconds) --tail;
    if (segment.size() - tail < kLeastTailPoints) return 0;
    const double tail_slope = line_through(segment.subspan(tail), t_s).slope_per_s;
    if (tail_slope <= 0 || tail_slope < kTailShare * line.slope_per_s) return 0;
    const double begin_bytes = line.at(-3600);
    const double end_bytes = line.at(0);
    if (end_bytes <= 0 || end_bytes - begin_bytes < kLeastGrowthShare * capacity_bytes_) return 0;
    return 100 * (end_bytes - begin_bytes) / (begin_bytes > 0 ? begin_bytes : end_bytes);
  }

  const double capacity_bytes_;
  std::deque<Reading> points_;
};

}  // namespace

std::unique_ptr<Rival> make_coroot(double capacity_bytes) {
  return std::make_unique<Coroot>(capacity_bytes);
}

}  // namespace vramtrack::accuracy
