// Finds the end of warm-up as a change point.
#include <algorithm>
#include <cmath>
#include <vector>

#include "core/moments.hpp"
#include "gate/growth_test.hpp"

namespace vramtrack::gate {
namespace {

constexpr std::size_t kLeastSegment = 4;

struct Bend {
  std::size_t at = 0;
  double residual = 0;
  Moments before;
  Moments after;
};

/// `rest[i]`: the moments of all values from i on.
Bend best_bend(std::span<const double> used_bytes, const std::vector<Moments>& rest, std::size_t begin,
               std::size_t last) {
  Bend best;
  Moments before;
  // A first segment of one iteration is common: it allocates the memory that all later ones reuse.
  for (std::size_t at = begin + 1; at <= last && at + kLeastSegment <= used_bytes.size(); ++at) {
    before.add(static_cast<double>(at - 1), used_bytes[at - 1]);
    const double residual = before.residual() + rest[at].residual();
    if (best.at > 0 && residual >= best.residual) continue;
    best = {at, residual, before, rest[at]};
  }
  return best;
}

}  // namespace

std::size_t find_warm_up(std::span<const double> used_bytes) {
  const std::size_t n = used_bytes.size();
  const std::size_t last = n / 2;
  if (n < 4 * kLeastSegment) return 0;
  std::vector<Moments> rest(n);
  Moments all;
  for (std::size_t i = n; i-- > 0;) {
    all.add(static_cast<double>(i), used_bytes[i]);
    rest[i] = all;
  }
  std::size_t begin = 0;
  while (begin < last) {
    const Moments& whole = rest[begin];
    const Bend bend = best_bend(used_bytes, rest, begin, last);
    if (bend.at == 0) break;
    // Two lines have three more parameters than one, so the better fit must outweigh them by the Bayesian information
    // criterion (Schwarz 1978), and by three times as much, because neighbouring iterations are correlated and a real
    // warm-up easily exceeds 3 n log n.
    const double m = whole.n;
    const double floor = 1e-9 * std::max(1.0, whole.yy);
    if (m * std::log((whole.residual() + floor) / (bend.residual + floor)) < 9 * std::log(m)) break;
    // Growth after warm-up must be slower. A segment of one iteration has no slope: it is warm-up if it is lower.
    const bool steeper = bend.before.n >= 2 && bend.before.slope() > 2 * std::max(0.0, bend.after.slope());
    const bool stepped = bend.before.mean_y < bend.after.mean_y && bend.before.n * 2 < bend.after.n;
    if (!steeper && !stepped) break;
    begin = bend.at;
  }
  return begin;
}

}  // namespace vramtrack::gate
