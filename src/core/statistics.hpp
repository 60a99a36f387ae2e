// The statistics of all modules: distributions by Boost.Math, whose headers are slow to compile and included only in
// statistics.cpp; tests by counting; and what every rule of growth requires of a rise. All functions are pure, and
// any thread may call them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace vramtrack {

// Distributions. Each takes less than a microsecond unless stated otherwise.

/// The density of the standard normal distribution, and P(Z <= z).
double normal_pdf(double z);
double normal_cdf(double z);
/// P(T <= t) of Student's distribution with `degrees` > 0 (need not be whole) of freedom.
double students_t_cdf(double t, double degrees);
/// P(X <= successes) in this many trials, each of which succeeds with this probability. REQUIRES: successes <= trials.
double binomial_cdf(std::size_t successes, std::size_t trials, double probability);
/// P(X = successes) in this many trials with a probability drawn once from the Beta distribution of `alpha` and `beta`
/// (Skellam, J. R. Statist. Soc. B 10, 1948). REQUIRES: successes <= trials; alpha, beta > 0.
double beta_binomial_pmf(std::size_t successes, std::size_t trials, double alpha, double beta);
/// Of `a_of` and `b_of` things of two kinds, `a` and `b` have a property: the chance that at least as many of the first
/// kind would have it if it were dealt out at random. R. A. Fisher, "Statistical Methods for Research Workers", 1934,
/// section 21.02. REQUIRES: a <= a_of, b <= b_of. O(a_of).
double fisher_exact_p(std::size_t a, std::size_t a_of, std::size_t b, std::size_t b_of);

// Whether a sequence rises: the one-sided tests of Mann (Econometrica 13, 1945) and Kendall ("Rank Correlation
// Methods", 1975), by the score S.

/// S of the values that `value(i)` returns for i < n: pairs in rising order less pairs in falling order. O(n^2).
template <class Value>
std::int64_t kendall_score(std::size_t n, Value value) {
  std::int64_t score = 0;
  for (std::size_t i = 0; i + 1 < n; ++i)
    for (std::size_t j = i + 1; j < n; ++j) score += (value(j) > value(i) ? 1 : 0) - (value(j) < value(i) ? 1 : 0);
  return score;
}

/// The variance of S of n values in random order, without ties, which reduce it.
constexpr double kendall_variance(double n) {
  return n * (n - 1) * (2 * n + 5) / 18;
}

/// The chance that n values in random order have this S or a higher one. Exact; ties make it conservative.
/// REQUIRES: n <= 64. O(n^4).
double kendall_p(std::size_t n, std::int64_t score);

/// The same by the normal approximation, with Kendall's correction for continuity. REQUIRES: score > 0, variance > 0.
double kendall_normal_p(std::int64_t score, double variance);

/// The chance that these values in random order have their S or a higher one; 1 if S <= 0. The normal approximation
/// with the variance corrected for ties, for any number of values. O(n^2).
double mann_kendall_p(std::span<const double> values);

/// The chance that n values in random order rise from each to the next: 1/n!. O(n).
constexpr double rising_order_p(std::size_t n) {
  double p = 1;
  for (std::size_t i = 2; i <= n; ++i) p /= static_cast<double>(i);
  return p;
}

// Growth. The data judged (samples, iterations, snapshots, sites) and the tests differ; they have this in common.

/// The smallest number of values that can show a rise at this error rate, if each is above the one before.
/// REQUIRES: error_rate > 0.
constexpr std::size_t least_rising(double error_rate) {
  std::size_t n = 1;
  while (rising_order_p(n) > error_rate) ++n;
  return n;
}

/// Whether a rise is growth: chance explains it in no more than `error_rate` of cases, and it is large enough to
/// matter.
constexpr bool is_growth(double p_value, double error_rate, double rise, double least_rise) {
  return p_value <= error_rate && rise > 0 && rise >= least_rise;
}

/// Whether growth comes to an end (a cache that fills, a warm-up): the later gain is less than half of the
/// earlier one over the same number of values.
constexpr bool is_slowing(double earlier, double later) {
  return later < 0.5 * earlier;
}

}  // namespace vramtrack
