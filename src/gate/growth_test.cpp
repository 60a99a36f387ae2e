#include "gate/growth_test.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "core/format.hpp"
#include "core/median.hpp"
#include "core/printable.hpp"
#include "core/statistics.hpp"
#include "core/time.hpp"
#include "core/units.hpp"
#include "gate/shape.hpp"
#include "gate/signed_rank.hpp"

namespace vramtrack::gate {
namespace {

constexpr std::size_t kBlocks = 24;
constexpr double kUpperError = 1e-3;
constexpr double kLongWarmUp = 0.05;  ///< as a share of all iterations
constexpr std::size_t kWarmUpBlocks = 8;
constexpr double kFaster = 1.25;
constexpr double kSteadyShare = 0.65;
constexpr double kExponentialZ = 3.72;   ///< the normal quantile at 1e-4, one-sided
constexpr std::size_t kCollections = 8;  ///< after this many, whatever grew between them is known to be collected

/// Growth per iteration within each of `blocks` equal stretches of the series: the median of the last third minus that
/// of the first third, divided by the distance between them. No two differences share an iteration, which makes them
/// independent.
std::vector<double> growth_of_blocks(std::span<const double> y, std::size_t blocks) {
  const std::size_t length = y.size() / blocks;
  const std::size_t third = std::max<std::size_t>(1, length / 3);
  const std::size_t skipped = y.size() - length * blocks;  // skip the oldest: they are nearest to the warm-up
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

/// The lower bound of growth, computed without the limits.contaminated_blocks largest values of `growth`. Whichever
/// blocks a cache has grown in, the remaining values are then no higher than those of the clean blocks.
double lower_bound(std::vector<double> growth, const GrowthLimits& limits) {
  std::sort(growth.begin(), growth.end());
  growth.resize(growth.size() - limits.contaminated_blocks);
  return lower_bound_of_centre(walsh_averages(growth), growth.size(), limits.error_rate).value_or(-INFINITY);
}

/// The number of blocks needed to fail at this error rate if `spared` of them are left out.
std::size_t least_blocks(double error_rate, std::size_t spared) {
  return static_cast<std::size_t>(std::ceil(-std::log2(error_rate))) + spared;
}

/// Computes the figures from `growth`, which holds one value per block.
void measure(GrowthResult& r, const std::vector<double>& growth, const GrowthLimits& limits) {
  const std::vector<double> walsh = walsh_averages(growth);
  r.growth_bytes = hodges_lehmann(walsh);
  r.high_bytes = upper_bound_of_centre(walsh, growth.size(), kUpperError).value_or(walsh.back());
  r.low_bytes = lower_bound(growth, limits);
  const std::span<const double> halves(growth);
  const double early = centre_of(halves.first(growth.size() / 2));
  const double late = centre_of(halves.last(growth.size() / 2));
  r.late_to_early = early > 0 ? late / early : 1.0;
}

/// Growth during a long warm-up divided by growth after it, ignoring single steps; nullopt if it was not faster.
std::optional<double> how_much_faster(std::span<const double> warm_up, const GrowthResult& after,
                                      std::size_t iterations) {
  if (static_cast<double>(warm_up.size()) < kLongWarmUp * static_cast<double>(iterations) ||
      warm_up.size() < 3 * kWarmUpBlocks)
    return std::nullopt;
  const double before = centre_of(growth_of_blocks(warm_up, kWarmUpBlocks));
  if (before <= kFaster * after.growth_bytes) return std::nullopt;
  return before / after.growth_bytes;
}

/// Whether growth that was faster in the warm-up may continue to slow down. The warm-up was cut off because growth
/// slowed, so the rest alone is not enough: a curve cut at its bend looks like two lines. If growth decays
/// exponentially, it was still faster right before the cut, and slows in the rest as it did from there on. A start that
/// was over long before the cut does not look like that.
bool may_go_on_slowing(std::span<const double> warm_up, const GrowthResult& after, std::span<const double> growth,
                       std::size_t settled, std::size_t iterations) {
  if (!how_much_faster(warm_up, after, iterations)) return false;
  if (may_slow_down(growth, kSteadyShare, kSlowingZ)) return true;
  const auto before_the_cut = how_much_faster(warm_up.last(warm_up.size() / 2), after, iterations);
  if (!before_the_cut) return false;
  // The distance between the halves of the rest, divided by the distance from the middle of the warm-up's later half to
  // the middle of the rest.
  const auto rest = static_cast<double>(settled);
  const double share = rest / 2 / (static_cast<double>(warm_up.size()) / 4 + rest / 2);
  return may_slow_down(growth, std::pow(*before_the_cut, -share), kExponentialZ);
}

struct FloorGrowth {
  bool tested = false;  ///< enough of the run precedes the collection that is still to come
  double growth_bytes = 0;
  double low_bytes = 0;
  double high_bytes = 0;
  std::size_t collections = 0;
};

/// Growth of the floor. `levels`: the levels of `y` after its warm-up.
FloorGrowth floor_growth(std::span<const double> y, std::vector<double> levels, const GrowthResult& r,
                         const GrowthLimits& limits) {
  FloorGrowth floor;
  const std::vector<double> whole = levels_of(y);
  const double enough = kGivenBack * largest_fall(whole).range;
  floor.collections = falls_of(levels, kGivenBack * largest_fall(levels).range).size();
  const std::size_t timely = had_its_time(whole, enough);
  levels.resize(std::min(levels.size(), timely > r.warm_up_iterations ? timely - r.warm_up_iterations : 0));
  if (levels.size() < std::max(least_iterations(limits), r.tested_iterations / 2)) return floor;
  const std::size_t blocks = std::min(r.blocks, levels.size() / 3);
  levels = floor_of(std::move(levels));
  const std::vector<double> growth = growth_of_blocks(levels, blocks);
  const NetGrowth net = net_growth(levels, blocks);
  floor.tested = true;
  floor.growth_bytes = centre_of(growth);
  floor.low_bytes = lower_bound(growth, limits);
  floor.high_bytes = net.high_bytes / static_cast<double>(levels.size());
  return floor;
}

std::string words(const GrowthResult& r, const GrowthLimits& limits) {
  const std::string unit = printable(limits.unit);
  const auto growth = [&](double bytes) { return format_growth(bytes, unit); };
  const std::string error_rate =
      limits.stated_error_rate.empty() ? fmt::format("{:g}", limits.error_rate) : limits.stated_error_rate;
  switch (r.outcome) {
    case Outcome::too_short:
      return fmt::format(
          "{} iterations, {} of them warm-up: at least {} iterations after warm-up are needed to detect a leak at "
          "error rate {}",
          r.iterations, r.warm_up_iterations, least_iterations(limits), error_rate);
    case Outcome::fails:
      return fmt::format("grows {} (at least {} at error rate {}); the limit is {}; {} iterations after {} of warm-up",
                         growth(r.growth_bytes), growth(r.low_bytes), error_rate,
                         growth(limits.limit_bytes_per_iteration), r.tested_iterations, r.warm_up_iterations);
    case Outcome::warming_up:
      if (r.stopped)
        return fmt::format(
            "grew {} and then stopped: a cache that is full, or a leak that has ended; {} iterations; run more "
            "iterations to decide",
            growth(r.growth_bytes), r.iterations);
      return fmt::format(
          "grows {}, but slows down (the second half grew {:.0f} % as fast as the first): still warming up after {} "
          "iterations; run more iterations to decide",
          growth(r.growth_bytes), 100 * r.late_to_early, r.iterations);
    case Outcome::inconclusive:
      if (r.nothing_measured) return fmt::format("is 0 bytes in all {} iterations: nothing was measured", r.iterations);
      return fmt::format(
          "grows {} (from {} to {}); the limit is {}: inconclusive after {} iterations, {} of them warm-up; run more "
          "iterations, or make memory vary less",
          growth(r.growth_bytes), growth(r.low_bytes), growth(r.high_bytes), growth(limits.limit_bytes_per_iteration),
          r.iterations, r.warm_up_iterations);
    case Outcome::passes:
      break;
  }
  if (r.beneath_garbage)
    return fmt::format(
        "grows {} (at most {}) beneath memory that comes and goes (up to {:.1f} MiB); the limit is {}; {} iterations "
        "after {} of warm-up",
        growth(r.growth_bytes), growth(r.high_bytes), r.given_back_bytes / kMiB,
        growth(limits.limit_bytes_per_iteration), r.tested_iterations, r.warm_up_iterations);
  return fmt::format("grows {} (at most {}); the limit is {}; {} iterations after {} of warm-up",
                     growth(r.growth_bytes), growth(r.high_bytes), growth(limits.limit_bytes_per_iteration),
                     r.tested_iterations, r.warm_up_iterations);
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
    case Outcome::inconclusive:
      return "inconclusive";
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
  const double limit = limits.limit_bytes_per_iteration;
  GrowthResult r;
  r.iterations = y.size();
  const Stretch stretch = stretch_of(y, least_iterations(limits));
  const auto tested = std::span<const double>(y).subspan(stretch.begin, stretch.end - stretch.begin);
  const std::size_t warm_up = find_warm_up(tested);
  r.warm_up_iterations = stretch.begin + warm_up;
  const auto settled = tested.subspan(warm_up);
  r.tested_iterations = settled.size();
  const std::size_t least = least_blocks(limits.error_rate, limits.contaminated_blocks);
  r.blocks = std::min(std::max(kBlocks, least + 4), settled.size() / 3);
  if (r.blocks < least) return conclude(r, limits);
  const bool all_zero = std::all_of(y.begin(), y.end(), [](double used) { return used == 0; });
  const bool any_number =
      std::any_of(used_bytes.begin(), used_bytes.end(), [](double used) { return std::isfinite(used); });
  if (all_zero && !(limits.zeros_are_counted && any_number)) {
    r.outcome = Outcome::inconclusive;
    r.nothing_measured = true;
    return conclude(r, limits);
  }

  std::vector<double> growth = growth_of_blocks(settled, r.blocks);
  measure(r, growth, limits);
  const std::vector<double> levels = levels_of(settled);
  const Fall fall = largest_fall(levels);
  r.given_back_bytes = fall.largest;
  r.gives_back = fall.largest > 0 && fall.largest >= kGivenBack * fall.range;

  const NetGrowth net = net_growth(settled, r.blocks);
  const double allowed = limit * static_cast<double>(settled.size());
  const double net_high_bytes = net.high_bytes / static_cast<double>(settled.size());
  const double least_growth = growth_of_the_least(levels);
  // A single step may have any cause. Two steps are a rare leak or a cache, so the total growth decides.
  const auto excluded = [&](const NetGrowth& whole, double high_bytes) {
    if (least_growth - whole.single_step_bytes > allowed * 2 / 3) return false;
    return whole.high_bytes <= allowed ||
           (high_bytes <= limit && whole.high_bytes - whole.single_step_bytes <= allowed);
  };
  r.settled = r.high_bytes <= limit && net.high_bytes <= allowed && least_growth <= allowed;
  bool passes = excluded(net, r.high_bytes);
  bool grows = r.low_bytes > limit;
  if (passes && net_high_bytes <= limit) r.high_bytes = std::clamp(net_high_bytes, r.growth_bytes, r.high_bytes);
  if (r.gives_back && !passes) {
    // Memory that comes and goes within a block is not growth, and must not hide growth.
    const auto kept = without_what_is_held_for_less(settled, settled.size() / r.blocks);
    growth = growth_of_blocks(kept, r.blocks);
    measure(r, growth, limits);
    grows = r.low_bytes > limit;
    passes = excluded(net_growth(kept, r.blocks), r.high_bytes);
    r.beneath_garbage = passes;
    // Either occasional collections remove the growth too, or the floor still grows: a leak beneath the garbage.
    const FloorGrowth floor = floor_growth(y, levels, r, limits);
    if (!floor.tested || floor.low_bytes <= limit) {
      grows = false;
      if (!passes && floor.tested && floor.collections >= kCollections && floor.high_bytes <= limit) {
        passes = r.beneath_garbage = true;
        r.growth_bytes = std::min(floor.growth_bytes, floor.high_bytes);
        r.low_bytes = std::min(r.low_bytes, floor.low_bytes);
        r.high_bytes = floor.high_bytes;
      }
    } else if (grows) {
      r.low_bytes = std::min(r.low_bytes, floor.low_bytes);
      r.growth_bytes = floor.growth_bytes;
      r.gives_back = false;
    }
  }
  if (passes || !grows) {
    r.outcome = passes ? Outcome::passes : Outcome::inconclusive;
    return conclude(r, limits);
  }
  r.stopped = has_stopped(settled, growth, r.growth_bytes);
  const bool slowing = slows_down(settled, growth, r.late_to_early) ||
                       may_go_on_slowing(tested.first(warm_up), r, growth, settled.size(), y.size());
  r.outcome = r.stopped || slowing ? Outcome::warming_up : Outcome::fails;
  return conclude(r, limits);
}

ShortGrowth test_short_growth(std::span<const double> used_bytes, double error_rate, double rise_bytes,
                              double least_bytes) {
  const std::size_t third = used_bytes.size() / 3;
  const auto first = used_bytes.first(third);
  const double low = *std::ranges::min_element(first);
  const double middle = *std::ranges::min_element(used_bytes.subspan(third, third));
  const double high = *std::ranges::min_element(used_bytes.subspan(2 * third));
  ShortGrowth out{false, mann_kendall_p(used_bytes)};
  out.grows = is_growth(out.p_value, error_rate, rise_bytes, least_bytes) && low < middle && middle < high &&
              high >= median_of({first.begin(), first.end()}) && !is_slowing(middle - low, high - middle);
  return out;
}

std::string error_rate_words(double error_rate) {
  const std::string text = fmt::format("{:.2e}", error_rate);  // 1.00e-04
  const std::size_t e = text.find('e');
  return fmt::format("{:g}e{}", std::stod(text.substr(0, e)), std::stoi(text.substr(e + 1)));
}

Result<double> parse_growth_limit(std::string_view text) {
  const auto refuse = [text](std::string_view why) {
    return fail(printable(
        fmt::format("'{}' is not a valid growth limit{}; expected, for example, \"0.2 MiB/iter\"", text, why)));
  };
  std::string_view size = text;
  if (const auto slash = text.find('/'); slash != std::string_view::npos) {
    size = text.substr(0, slash);
    if (text.find_first_not_of(' ', slash + 1) == std::string_view::npos) return refuse(": nothing follows the slash");
  }
  while (!size.empty() && size.back() == ' ') size.remove_suffix(1);
  // "0.2" probably means MiB, or is a typo; 0 needs no unit.
  if (!size.empty() && size.find_first_not_of("0123456789. ") == std::string_view::npos &&
      size.find_first_of("123456789") != std::string_view::npos)
    return refuse(": the unit is missing");
  // parse_bytes returns whole bytes, which is precise enough here.
  const auto bytes = parse_bytes(size);
  if (!bytes) return refuse(" (" + bytes.error().message + ")");
  return static_cast<double>(*bytes);
}

}  // namespace vramtrack::gate
