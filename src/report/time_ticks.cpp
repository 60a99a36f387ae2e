#include "report/time_ticks.hpp"

#include <array>
#include <cmath>

#include "core/local_time.hpp"

namespace vramtrack {
namespace {

constexpr double kDay_s = 86400;

}  // namespace

double time_step(double length_s, const Scale& scale, int most) {
  if (scale.counts_steps()) {
    double step_s = scale.step_s;
    for (int i = 0; length_s / step_s > most; ++i) step_s *= i % 3 == 1 ? 2.5 : 2;  // 1, 2, 5, 10
    return step_s;
  }
  constexpr std::array kSteps_s = {1.0,     2.0,     5.0,     10.0,   15.0,       30.0,      60.0,
                                   120.0,   300.0,   600.0,   900.0,  1800.0,     3600.0,    7200.0,
                                   10800.0, 21600.0, 43200.0, kDay_s, 2 * kDay_s, 7 * kDay_s};
  for (const double step_s : kSteps_s)
    if (length_s / step_s <= most) return step_s;
  return length_s / most;
}

std::vector<Timestamp> time_ticks(Timestamp from, Timestamp to, double step_s) {
  std::vector<Timestamp> out;
  const double offset_s = zone_offset_s(from);
  const double begin_s = seconds_between(Timestamp{}, from) + offset_s;
  const double end_s = begin_s + seconds_between(from, to);
  for (double at_s = std::ceil(begin_s / step_s) * step_s; at_s <= end_s; at_s += step_s)
    out.push_back(Timestamp{} + from_seconds(at_s - offset_s));
  return out;
}

std::string time_label(Timestamp tick, double step_s, bool clock_is_relative, const Scale& scale) {
  if (clock_is_relative || scale.counts_steps()) return scale.duration(seconds_between(Timestamp{}, tick));
  const std::string clock = clock_time(tick);  // 2026-01-02T03:04:05
  if (step_s >= kDay_s || (step_s >= 3600 && clock.compare(11, 5, "00:00") == 0)) return clock.substr(5, 5);
  return step_s < 60 ? clock.substr(11, 8) : clock.substr(11, 5);
}

}  // namespace vramtrack
