// GrowthTest: tests whether memory grows with every iteration of a repeated body. These are the statistics of the leak
// gate; docs/leak-gate.md has the mathematics, with citations.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "core/result.hpp"

namespace vramtrack::gate {

/// The parameters of a test. All bounds on growth are in bytes per iteration.
struct GrowthLimits {
  double limit_bytes_per_iteration = 0;  ///< growth up to this rate is allowed
  double error_rate = 1e-4;              ///< at most this share of healthy programs fails; above 0, at most 0.05
  /// The series after warm-up is cut into blocks. This many of them may contain growth of any size that is not due to a
  /// leak (a cache that takes another segment, the tail of the warm-up). A larger number tolerates more and finds less.
  std::size_t contaminated_blocks = 4;
  /// True if a series of zeros means that memory is freed each time; false if it means that nothing was measured.
  bool zeros_are_counted = false;
  // For the text of the result:
  std::string unit = "iteration";  ///< the user's word for one repetition, such as "step"
  std::string stated_error_rate;   ///< the rate that error_rate is part of: "1e-4 over 3 looks"; empty: error_rate
};

enum class Outcome : std::uint8_t {
  passes,        ///< growth above the limit has been ruled out
  fails,         ///< memory grows faster than the limit, at the error rate
  inconclusive,  ///< neither: growth above the limit is possible but unproven, or nothing was measured
  warming_up,    ///< also inconclusive: growth is slowing down or has stopped; repeat the body more often
  too_short,     ///< also inconclusive: fewer iterations than the error rate needs
};
std::string_view to_string(Outcome outcome);

/// The conclusion about one series.
struct GrowthResult {
  Outcome outcome = Outcome::too_short;
  std::size_t iterations = 0;
  std::size_t warm_up_iterations = 0;  ///< iterations discarded, up to a change point
  std::size_t tested_iterations = 0;   ///< iterations after the warm-up; fewer if memory fell below all earlier values
  std::size_t blocks = 0;              ///< number of blocks that the tested iterations were cut into
  double growth_bytes = 0;             ///< per iteration: Hodges-Lehmann estimate over all blocks
  double low_bytes = 0;                ///< lower confidence bound at the error rate: if above the limit, it fails
  double high_bytes = 0;               ///< upper confidence bound at 1 - 1e-3, one-sided: passes if at most the limit
  double given_back_bytes = 0;         ///< the largest fall after warm-up, ignoring single iterations
  bool gives_back = false;        ///< that fall is at least half of the whole range: memory is collected occasionally
  bool beneath_garbage = false;   ///< the figures describe the memory that collections leave
  bool stopped = false;           ///< growth has ended before the series did
  bool nothing_measured = false;  ///< no value is finite, or all are 0 and zeros are not counted
  double late_to_early = 1;       ///< growth of the later half of the blocks divided by that of the earlier half
  bool settled = false;  ///< no growth above the limit, in total or per block; more iterations would not change that
  std::string because;   ///< the reason in words, with the figures
};

/// Tests `used_bytes`: the memory in use after each iteration, in order. Pure; O(n log n), about 60 us for 400
/// iterations. Values that are not finite are replaced by the previous one. REQUIRES: the limits are finite.
GrowthResult test_growth(std::span<const double> used_bytes, const GrowthLimits& limits);

struct ShortGrowth {
  bool grows = false;
  double p_value = 1;  ///< probability that the values are this well ordered by chance (Mann-Kendall)
};
/// Tests the part after the warm-up of a series that is too short for test_growth(). It grows if it rises at this error
/// rate, the lowest values of its thirds also rise without slowing down, and `rise_bytes`, the rise as measured by the
/// caller, is at least `least_bytes`. Pure; O(n^2). REQUIRES: at least three values.
ShortGrowth test_short_growth(std::span<const double> used_bytes, double error_rate, double rise_bytes,
                              double least_bytes);

/// The fewest iterations after warm-up with which a test can fail at this error rate: three per block.
std::size_t least_iterations(const GrowthLimits& limits);

/// The number of iterations that are warm-up: those before the point where a line bent downwards fits better than a
/// straight one, repeated on the rest until no bend is found. At most half of all iterations. Pure; O(n) per bend.
std::size_t find_warm_up(std::span<const double> used_bytes);

/// A small share as people write it, such as "1e-4". Pure.
std::string error_rate_words(double error_rate);

/// Parses bytes per iteration: "0.2 MiB/iter", "512KiB", "1MB / step". Sizes are those of core's parse_bytes; the user
/// chooses the word after the slash. Except for 0, a unit is required. The Error quotes the text and what was expected.
Result<double> parse_growth_limit(std::string_view text);

}  // namespace vramtrack::gate
