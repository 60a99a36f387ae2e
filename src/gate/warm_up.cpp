// The end of warm-up, by change point.
#include <algorithm>
#include <cmath>
#include <vector>

#include "gate/growth_test.hpp"

namespace vramtrack::gate {
namespace {

constexpr std::size_t kLeastSegment = 4;

/// Sums over a stretch of (i, y_i), from prefix sums; y about its mean so that bytes keep their precision.
struct Sums {
  double n = 0;
  double x = 0;
  double y = 0;
  double xx = 0;
  double xy = 0;
  double yy = 0;
  Sums operator-(const Sums& o) const { return {n - o.n, x - o.x, y - o.y, xx - o.xx, xy - o.xy, yy - o.yy}; }
};

struct Line {
  double slope = 0;
  double residual = 0;  ///< sum of squares
};

Line fit(const Sums& s) {
  if (s.n < 2) return {};
  const double xx = s.xx - s.x * s.x / s.n;
  const double xy = s.xy - s.x * s.y / s.n;
  const double yy = std::max(0.0, s.yy - s.y * s.y / s.n);
  const double slope = xx > 0 ? xy / xx : 0.0;
  return {slope, std::max(0.0, yy - slope * xy)};
}

struct Bend {
  std::size_t at = 0;
  double residual = 0;
  Line before;
  Line after;
};

Bend best_bend(const std::vector<Sums>& prefix, std::size_t begin, std::size_t last) {
  const std::size_t end = prefix.size() - 1;
  Bend best;
  bool found = false;
  // A segment before of one iteration is the usual first one: it allocates what all others use again.
  for (std::size_t at = begin + 1; at <= last && at + kLeastSegment <= end; ++at) {
    const Line before = fit(prefix[at] - prefix[begin]);
    const Line after = fit(prefix[end] - prefix[at]);
    const double residual = before.residual + after.residual;
    if (found && residual >= best.residual) continue;
    best = {at, residual, before, after};
    found = true;
  }
  return best;
}

double mean(const Sums& s) {
  return s.n > 0 ? s.y / s.n : 0;
}

}  // namespace

std::size_t find_warm_up(std::span<const double> used_bytes) {
  const std::size_t n = used_bytes.size();
  const std::size_t last = n / 2;
  if (n < 4 * kLeastSegment) return 0;
  double centre = 0;
  for (const double y : used_bytes) centre += y / static_cast<double>(n);
  std::vector<Sums> prefix(n + 1);
  for (std::size_t i = 0; i < n; ++i) {
    const double x = static_cast<double>(i) - 0.5 * static_cast<double>(n);
    const double y = used_bytes[i] - centre;
    const Sums& p = prefix[i];
    prefix[i + 1] = {p.n + 1, p.x + x, p.y + y, p.xx + x * x, p.xy + x * y, p.yy + y * y};
  }
  std::size_t begin = 0;
  while (begin < last) {
    const Sums whole = prefix[n] - prefix[begin];
    const Line straight = fit(whole);
    const Bend bend = best_bend(prefix, begin, last);
    if (bend.at == 0) break;
    // Two lines have three parameters more than one: what they explain must outweigh them by the Bayesian information
    // criterion (Schwarz 1978), thrice over since neighbouring iterations are alike and 3 n log n is cheap to ask of a
    // real warm-up.
    const double m = whole.n;
    const double floor = 1e-9 * std::max(1.0, whole.yy);
    if (m * std::log((straight.residual + floor) / (bend.residual + floor)) < 9 * std::log(m)) break;
    // Warm-up ends in less growth than it had: a segment of one iteration has no slope, and is one when it lies below.
    const Sums before = prefix[bend.at] - prefix[begin];
    const Sums after = prefix[n] - prefix[bend.at];
    const bool steeper = before.n >= 2 && bend.before.slope > 2 * std::max(0.0, bend.after.slope);
    const bool stepped = mean(before) < mean(after) && before.n * 2 < after.n;
    if (!steeper && !stepped) break;
    begin = bend.at;
  }
  return begin;
}

}  // namespace vramtrack::gate
