#include "gate/growth_test.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/format.hpp"
#include "core/median.hpp"
#include "core/time.hpp"
#include "core/units.hpp"
#include "gate/signed_rank.hpp"

namespace vramtrack::gate {
namespace {

constexpr std::size_t kBlocks = 24;
constexpr double kUpperError = 1e-3;
constexpr double kSlowing = 0.5;  ///< later growth below this share of the earlier: it dies out
/// What gives back more than half of all it ever took may be collected now and then.
constexpr double kGivenBack = 0.5;

double median_of(std::vector<double> values) {
  return median(values);
}

/// Growth an iteration within each of `blocks` equal stretches of the series: the last third's median less the first
/// third's, over the distance between them. Two neighbouring differences share no iteration, which is what makes them
/// independent.
std::vector<double> growth_of_blocks(std::span<const double> y, std::size_t blocks) {
  const std::size_t length = y.size() / blocks;
  const std::size_t third = std::max<std::size_t>(1, length / 3);
  const std::size_t skipped = y.size() - length * blocks;  // of the oldest: nearest to the warm-up
  std::vector<double> growth;
  for (std::size_t b = 0; b < blocks; ++b) {
    const auto block = y.subspan(skipped + b * length, length);
    const auto first = block.first(third);
    const auto last = block.last(third);
    growth.push_back((median_of({last.begin(), last.end()}) - median_of({first.begin(), first.end()})) /
                     static_cast<double>(length - third));
  }
  return growth;
}

double centre_of(std::span<const double> values) {
  return hodges_lehmann(walsh_averages(values));
}

struct Fall {
  double largest = 0;
  double range = 0;
};

/// Medians of three, each at its first iteration: one odd iteration is no fall.
std::vector<double> levels_of(std::span<const double> y) {
  std::vector<double> levels;
  for (std::size_t i = 0; i + 2 < y.size(); ++i) levels.push_back(median_of({y[i], y[i + 1], y[i + 2]}));
  return levels;
}

/// The largest fall below anything earlier, and the range.
Fall largest_fall(std::span<const double> levels) {
  Fall fall;
  double least = INFINITY;
  double most = -INFINITY;
  for (const double level : levels) {
    least = std::min(least, level);
    most = std::max(most, level);
    fall.largest = std::max(fall.largest, most - level);
  }
  fall.range = most - least;
  return fall;
}

/// The floor: at each iteration the least that is still to come. What is collected later is not in it, a leak is.
std::vector<double> floor_of(std::vector<double> levels) {
  for (std::size_t i = levels.size(); i-- > 1;) levels[i - 1] = std::min(levels[i - 1], levels[i]);
  return levels;
}

/// Where memory has fallen by `enough` since it rose, each the first level after the fall.
std::vector<std::size_t> falls_of(std::span<const double> levels, double enough) {
  std::vector<std::size_t> falls;
  double most = -INFINITY;
  for (std::size_t i = 0; i < levels.size(); ++i) {
    most = std::max(most, levels[i]);
    if (most - levels[i] < enough) continue;
    // One that takes some iterations is one.
    if (!falls.empty() && falls.back() + 1 == i)
      falls.back() = i;
    else
      falls.push_back(i);
    most = levels[i];
  }
  return falls;
}

/// How much of `levels`, from its beginning, holds only growth that a collection had its time to take: all up to the
/// last fall; and all behind it, too, once that lasts longer than it ever took until the next.
std::size_t had_its_time(std::span<const double> levels, double enough) {
  const std::vector<std::size_t> falls = falls_of(levels, enough);
  if (falls.empty()) return levels.size();
  std::size_t longest = falls.front();
  for (std::size_t i = 1; i < falls.size(); ++i) longest = std::max(longest, falls[i] - falls[i - 1]);
  return levels.size() - falls.back() > longest ? levels.size() : falls.back() + 1;
}

struct Stretch {
  std::size_t begin = 0;
  std::size_t end = 0;
};

/// What to test of a series that falls below all that was before, by half of its range: no collection does that (it
/// takes back what has grown), so something else ended there. The last stretch that is long enough, else the longest.
Stretch stretch_of(std::span<const double> y, std::size_t least) {
  const std::vector<double> levels = levels_of(y);
  const double enough = kGivenBack * largest_fall(levels).range;
  std::vector<Stretch> all{{0, y.size()}};
  double lowest = INFINITY;
  for (std::size_t i = 0; i < levels.size(); ++i) {
    if (enough > 0 && levels[i] <= lowest - enough) {
      // The fall may take some iterations: they belong to neither.
      if (i > all.back().begin + 3) {
        all.back().end = i;
        all.push_back({i, y.size()});
      } else {
        all.back().begin = i;
      }
    }
    lowest = std::min(lowest, levels[i]);
  }
  const auto length = [](const Stretch& s) { return s.end - s.begin; };
  if (length(all.back()) >= least) return all.back();
  return *std::max_element(all.begin(), all.end(),
                           [&](const Stretch& a, const Stretch& b) { return length(a) < length(b); });
}

/// The lower bound of growth in `growth`'s blocks less the `spared` largest, whichever blocks a cache has grown in:
/// those are at least as large as what is left without them, so the rest lies no higher than the clean blocks do.
double lower_bound(std::vector<double> growth, const GrowthLimits& limits) {
  std::sort(growth.begin(), growth.end());
  growth.resize(growth.size() - limits.contaminated_blocks);
  return lower_bound_of_centre(walsh_averages(growth), growth.size(), limits.error_rate).value_or(-INFINITY);
}

/// The blocks that a failure at this error rate needs when `spared` of them are taken out.
std::size_t least_blocks(double error_rate, std::size_t spared) {
  return static_cast<std::size_t>(std::ceil(-std::log2(error_rate))) + spared;
}

std::string words(const GrowthResult& r, const GrowthLimits& limits) {
  const auto growth = [&](double bytes) { return format_growth(bytes, limits.unit); };
  const std::string error_rate =
      limits.stated_error_rate.empty() ? fmt::format("{:g}", limits.error_rate) : limits.stated_error_rate;
  switch (r.outcome) {
    case Outcome::too_short:
      return fmt::format(
          "{} iterations, {} of them warm-up: at least {} iterations after warm-up are needed to detect a leak at "
          "error rate {}",
          r.iterations, r.warm_up_iterations, least_iterations(limits), error_rate);
    case Outcome::fails:
      return fmt::format("grows {} (at least {} at error rate {}), the limit is {}; {} iterations after {} of warm-up",
                         growth(r.growth_bytes), growth(r.low_bytes), error_rate,
                         growth(limits.limit_bytes_per_iteration), r.tested_iterations, r.warm_up_iterations);
    case Outcome::warming_up:
      return fmt::format(
          "grows {}, but slows down (the second half grew {:.0f} % as fast as the first): still warming up after {} "
          "iterations; run more iterations to decide",
          growth(r.growth_bytes), 100 * r.late_to_early, r.iterations);
    case Outcome::passes:
      if (r.gives_back && r.low_bytes > limits.limit_bytes_per_iteration)
        return fmt::format(
            "grows {} between garbage collections, which released {:.1f} MiB: no evidence of a leak; {} iterations "
            "after {} of warm-up",
            growth(r.growth_bytes), r.given_back_bytes / kMiB, r.tested_iterations, r.warm_up_iterations);
      break;
  }
  return fmt::format("grows {} (at most {}), the limit is {}; {} iterations after {} of warm-up{}",
                     growth(r.growth_bytes), growth(r.high_bytes), growth(limits.limit_bytes_per_iteration),
                     r.tested_iterations, r.warm_up_iterations,
                     r.settled ? "" : "; memory varies too much to rule out faster growth");
}

GrowthResult conclude(GrowthResult r, const GrowthLimits& limits) {
  r.because = words(r, limits);
  return r;
}

}  // namespace

std::string_view to_string(Outcome outcome) {
  switch (outcome) {
    case Outcome::passes:
      return "passes";
    case Outcome::fails:
      return "fails";
    case Outcome::warming_up:
      return "warming_up";
    case Outcome::too_short:
      break;
  }
  return "too_short";
}

std::size_t least_iterations(const GrowthLimits& limits) {
  return 3 * least_blocks(limits.error_rate, limits.contaminated_blocks);
}

GrowthResult test_growth(std::span<const double> used_bytes, const GrowthLimits& limits) {
  std::vector<double> y(used_bytes.begin(), used_bytes.end());
  for (std::size_t i = 0; i < y.size(); ++i)
    if (!std::isfinite(y[i])) y[i] = i > 0 ? y[i - 1] : 0.0;
  GrowthResult r;
  r.iterations = y.size();
  const Stretch stretch = stretch_of(y, least_iterations(limits));
  const auto tested = std::span<const double>(y).subspan(stretch.begin, stretch.end - stretch.begin);
  const std::size_t warm_up = find_warm_up(tested);
  r.warm_up_iterations = stretch.begin + warm_up;
  const auto settled = tested.subspan(warm_up);
  r.tested_iterations = settled.size();
  r.blocks =
      std::min(std::max(kBlocks, least_blocks(limits.error_rate, limits.contaminated_blocks) + 4), settled.size() / 3);
  if (r.blocks < least_blocks(limits.error_rate, limits.contaminated_blocks)) return conclude(r, limits);

  const std::vector<double> growth = growth_of_blocks(settled, r.blocks);
  const std::vector<double> walsh = walsh_averages(growth);
  r.growth_bytes = hodges_lehmann(walsh);
  r.high_bytes = upper_bound_of_centre(walsh, r.blocks, kUpperError).value_or(walsh.back());
  r.settled = r.high_bytes <= limits.limit_bytes_per_iteration;
  const std::span<const double> halves(growth);
  const double early = centre_of(halves.first(r.blocks / 2));
  const double late = centre_of(halves.last(r.blocks / 2));
  r.late_to_early = early > 0 ? late / early : 1.0;

  r.low_bytes = lower_bound(growth, limits);
  std::vector<double> levels = levels_of(settled);
  const Fall fall = largest_fall(levels);
  r.given_back_bytes = fall.largest;
  r.gives_back = fall.largest > 0 && fall.largest >= kGivenBack * fall.range;
  if (r.gives_back && r.low_bytes > limits.limit_bytes_per_iteration) {
    // What is given back takes the growth along, or the floor grows all the same: a leak beneath it.
    const std::vector<double> whole = levels_of(y);
    const std::size_t timely = had_its_time(whole, kGivenBack * largest_fall(whole).range);
    levels.resize(std::min(levels.size(), timely > r.warm_up_iterations ? timely - r.warm_up_iterations : 0));
    if (levels.size() >= least_iterations(limits)) {
      const std::size_t blocks = std::min(r.blocks, levels.size() / 3);
      const std::vector<double> floor = growth_of_blocks(floor_of(std::move(levels)), blocks);
      const double low_bytes = lower_bound(floor, limits);
      if (low_bytes > limits.limit_bytes_per_iteration) {
        r.gives_back = false;
        r.low_bytes = std::min(r.low_bytes, low_bytes);
        r.growth_bytes = centre_of(floor);
      }
    }
  }
  if (r.low_bytes <= limits.limit_bytes_per_iteration || r.gives_back)
    r.outcome = Outcome::passes;
  else if (r.late_to_early < kSlowing)
    r.outcome = Outcome::warming_up;
  else
    r.outcome = Outcome::fails;
  return conclude(r, limits);
}

std::string error_rate_words(double error_rate) {
  const std::string text = fmt::format("{:.2e}", error_rate);  // 1.00e-04
  const std::size_t e = text.find('e');
  return fmt::format("{:g}e{}", std::stod(text.substr(0, e)), std::stoi(text.substr(e + 1)));
}

Result<double> parse_growth_limit(std::string_view text) {
  std::string_view size = text;
  if (const auto slash = text.find('/'); slash != std::string_view::npos) {
    size = text.substr(0, slash);
    if (text.find_first_not_of(' ', slash + 1) == std::string_view::npos)
      return fail(fmt::format(
          "'{}' is not a valid growth limit: nothing follows the slash; expected for example \"0.2 MiB/iter\"", text));
  }
  while (!size.empty() && size.back() == ' ') size.remove_suffix(1);
  // "0.2" was meant to be MiB, or is a typo; 0 is 0 in every unit.
  if (!size.empty() && size.find_first_not_of("0123456789. ") == std::string_view::npos &&
      size.find_first_of("123456789") != std::string_view::npos)
    return fail(fmt::format(
        "'{}' is not a valid growth limit: the unit is missing; expected for example \"0.2 MiB/iter\"", text));
  // parse_bytes gives whole bytes; that is fine enough here.
  const auto bytes = parse_bytes(size);
  if (!bytes)
    return fail(fmt::format("'{}' is not a valid growth limit ({}); expected for example \"0.2 MiB/iter\"", text,
                            bytes.error().message));
  return static_cast<double>(*bytes);
}

}  // namespace vramtrack::gate
