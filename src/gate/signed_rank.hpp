// The signed-rank test of Wilcoxon (Biometrics Bulletin 1, 1945) and the estimate and bounds that belong to it
// (Hodges & Lehmann, Ann. Math. Statist. 34, 1963): exact for independent values that are symmetric about their centre,
// whatever their distribution, even if it differs from value to value.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace vramtrack::gate {

/// The largest c with P(W <= c) <= `probability`, where W is the sum of a random subset of the ranks 1..n; nullopt if
/// even P(W = 0) = 2^-n is above it. Exact, by counting subsets. O(n^3). REQUIRES: n <= 60.
std::optional<std::size_t> signed_rank_critical(std::size_t n, double probability);

/// The averages of all pairs of values, including each with itself, ascending; n(n+1)/2 values (Walsh averages).
std::vector<double> walsh_averages(std::span<const double> values);

/// The centre: the median of ascending Walsh averages. REQUIRES: not empty.
double hodges_lehmann(std::span<const double> walsh);

/// The centre's lower confidence bound: P(centre < bound) <= probability. The test of "centre <= x" at that level
/// rejects if and only if the bound is above x. nullopt as for signed_rank_critical. `n`: the number of values.
std::optional<double> lower_bound_of_centre(std::span<const double> walsh, std::size_t n, double probability);
/// The upper bound, defined in the same way.
std::optional<double> upper_bound_of_centre(std::span<const double> walsh, std::size_t n, double probability);

}  // namespace vramtrack::gate
