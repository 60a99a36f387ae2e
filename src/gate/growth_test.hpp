// GrowthTest: does memory grow with every iteration of a body that is repeated? The statistics of the leak gate; their
// mathematics, with citations, are in docs/leak-gate.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "core/result.hpp"

namespace vramtrack::gate {

/// What is asked of a test. All bounds on growth are in bytes an iteration.
struct GrowthLimits {
  double limit_bytes_per_iteration = 0;  ///< growth up to this is allowed
  double error_rate = 1e-4;              ///< at most this share of healthy tests fails; above 0, to 0.05
  /// Of the blocks the series is cut into after warm-up, so many may hold growth of any size that is none of the
  /// leak's (a cache that takes another segment, the tail of the warm-up). More of them allow more, and find less.
  std::size_t contaminated_blocks = 4;
  /// A series of zeros is memory that was freed each time; false: memory that nobody counted, which shows nothing.
  bool zeros_are_counted = false;
  // For the words of the result:
  std::string unit = "iteration";  ///< what the user calls one repetition: "step"
  std::string stated_error_rate;   ///< the rate of which error_rate is a share: "1e-4 over 3 looks"; empty: error_rate
};

enum class Outcome : std::uint8_t {
  passes,        ///< growth above the limit is excluded
  fails,         ///< grows faster than the limit, at the error rate
  inconclusive,  ///< neither: growth above the limit is possible, and not shown; or nothing was measured
  warming_up,    ///< inconclusive, too: grows, ever more slowly or no longer. Repeat it more often
  too_short,     ///< inconclusive, too: fewer iterations than the error rate needs
};
std::string_view to_string(Outcome outcome);

/// The conclusion about one series.
struct GrowthResult {
  Outcome outcome = Outcome::too_short;
  std::size_t iterations = 0;
  std::size_t warm_up_iterations = 0;  ///< discarded, by change point
  std::size_t tested_iterations = 0;   ///< those behind it; fewer than the rest where memory fell below all before
  std::size_t blocks = 0;              ///< the rest was cut into so many
  double growth_bytes = 0;             ///< an iteration: Hodges-Lehmann estimate over all blocks
  double low_bytes = 0;                ///< lower confidence bound at the error rate: fails when above the limit
  double high_bytes = 0;               ///< upper confidence bound at 1 - 1e-3, one-sided: passes when at most the limit
  double given_back_bytes = 0;         ///< the largest fall after warm-up, single iterations aside
  bool gives_back = false;  ///< that fall is at least half of the whole range: part of it is collected now and then
  bool beneath_garbage = false;   ///< the figures are those of what collections leave
  bool stopped = false;           ///< growth has ended before the series did
  bool nothing_measured = false;  ///< no value is a number, or all are 0 and zeros are not counted
  double late_to_early = 1;       ///< growth of the later half of the blocks, by that of the earlier half
  bool settled = false;  ///< no growth above the limit, whole or per block: more iterations would not change it
  std::string because;   ///< in words, with the figures
};

/// Tests `used_bytes`: memory after each iteration, in order. Pure; O(n log n), about 60 us for 400 iterations.
/// Values that are not finite are taken as the one before them. REQUIRES: the limits are finite.
GrowthResult test_growth(std::span<const double> used_bytes, const GrowthLimits& limits);

/// The fewest iterations after warm-up that can fail at this error rate: three for each block.
std::size_t least_iterations(const GrowthLimits& limits);

/// How many iterations at the beginning are warm-up: where a line bent downwards replaces a straight one, found again
/// in what is left until no more is found. At most half of them. Pure; O(n) a bend.
std::size_t find_warm_up(std::span<const double> used_bytes);

/// "1e-4": as people write a small share. Pure.
std::string error_rate_words(double error_rate);

/// "0.2 MiB/iter", "512KiB", "1MB / step": bytes an iteration, as core's parse_bytes reads sizes; what follows the
/// slash is a word of the user's own. A unit must be there, but for 0. The Error names the text and what was expected.
Result<double> parse_growth_limit(std::string_view text);

}  // namespace vramtrack::gate
