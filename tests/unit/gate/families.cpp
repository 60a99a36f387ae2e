#include "families.hpp"

#include <algorithm>
#include <set>

namespace vramtrack::gate::made {
namespace {

using Series = std::vector<double>;

double uniform(Random& random, double low = 0, double high = 1) {
  return std::uniform_real_distribution<double>(low, high)(random);
}
std::size_t draw(Random& random, std::size_t low, std::size_t high) {
  return std::uniform_int_distribution<std::size_t>(low, high)(random);
}

// ---- healthy

void warms_up(Series& y, Random& random) {
  add_warm_up(y, 1000, 20);
  add_jitter(y, 2, random);
}
void warms_up_long(Series& y, Random& random) {
  add_warm_up(y, 2000, 100);
  add_jitter(y, 1, random);
}
void ramps(Series& y, Random& random) {
  add_ramp(y, 4000, 150);
  add_jitter(y, 2, random);
}
void quiet(Series& y, Random& random) {
  add_warm_up(y, 300, 3);
  add_jitter(y, 0.01, random);
}
void caches(Series& y, Random& random) {
  add_warm_up(y, 300, 5);
  add_cache(y, 4, 64, random);
  add_jitter(y, 2, random);
}
void quiet_caches(Series& y, Random& random) {
  add_cache(y, 4, 20, random);
  add_jitter(y, 0.01, random);
}
void wanders(Series& y, Random& random) {
  add_warm_up(y, 300, 5);
  add_wander(y, 10, 0.9, random);
}
void walks(Series& y, Random& random) {
  add_wander(y, 2, 1, random);
}
void collects(Series& y, Random& random) {
  add_garbage(y, 3, 17);
  add_jitter(y, 0.5, random);
}
void collects_at_odds(Series& y, Random& random) {
  double garbage = 0;
  double left = 50 * uniform(random);
  for (double& each : y) {
    garbage += 3 * kMib;
    if (--left < 0) {
      garbage *= 0.2 * uniform(random);
      left = 10 + 40 * uniform(random);
    }
    each += garbage;
  }
  add_jitter(y, 0.5, random);
}
void all_of_it(Series& y, Random& random) {
  add_warm_up(y, 800, 15);
  add_cache(y, 3, 64, random);
  add_jitter(y, 1.5, random);
  add_wander(y, 1, 0.9, random);
}
void starts_high(Series& y, Random& random) {
  for (std::size_t i = 0; i < y.size() && i < 40; ++i) y[i] += 3000 * kMib;
  add_jitter(y, 0.5, random);
}

/// `mib` are held for `length` of every `period` iterations.
void add_evaluations(Series& y, double mib, std::size_t length, std::size_t period) {
  for (std::size_t i = 0; i < y.size(); ++i)
    if (i % period >= period / 2 && i % period < period / 2 + length) y[i] += mib * kMib;
}
void evaluates(Series& y, Random& random) {
  add_evaluations(y, 1024, 5, 200);
  add_jitter(y, 0.5, random);
}
void evaluates_often(Series& y, Random& random) {
  add_evaluations(y, 2048, 10, 100);
  add_jitter(y, 0.5, random);
}
void saves_checkpoints(Series& y, Random& random) {
  add_evaluations(y, 2048, 3, 250);
  add_garbage(y, 1, 25);
  add_jitter(y, 0.2, random);
}

/// Each iteration needs a random one of `shapes`; `mib` are kept for each shape seen so far.
void add_shapes(Series& y, std::size_t shapes, double mib, Random& random) {
  std::set<std::size_t> seen;
  for (double& each : y) {
    seen.insert(draw(random, 1, shapes));
    each += mib * kMib * static_cast<double>(seen.size());
  }
}
void shapes_300(Series& y, Random& random) {
  add_shapes(y, 300, 5, random);
}
void shapes_1000(Series& y, Random& random) {
  add_shapes(y, 1000, 2, random);
  add_jitter(y, 0.5, random);
}
/// Few of the shapes are frequent: the k-th occurs with frequency 1/k.
void shapes_zipf(Series& y, Random& random) {
  std::vector<double> weights;
  for (int k = 1; k <= 100; ++k) weights.push_back(1.0 / k);
  std::discrete_distribution<int> shape(weights.begin(), weights.end());
  std::set<int> seen;
  for (double& each : y) {
    seen.insert(shape(random));
    each += 4 * kMib * static_cast<double>(seen.size());
  }
}
/// Entries of `mib` until `capacity` of them are kept; a share `hits` of the iterations needs no new entry.
void add_lru(Series& y, std::size_t capacity, double mib, double hits, Random& random) {
  std::size_t entries = 0;
  for (double& each : y) {
    if (entries < capacity && uniform(random) >= hits) ++entries;
    each += mib * kMib * static_cast<double>(entries);
  }
}
void lru_fills(Series& y, Random& random) {
  add_lru(y, draw(random, 50, 900), 5, 0, random);
}
void lru_fills_noisily(Series& y, Random& random) {
  add_lru(y, draw(random, 50, 850), 5, 0, random);
  add_jitter(y, 2, random);
}
void lru_fills_slowly(Series& y, Random& random) {
  add_lru(y, draw(random, 20, 240), 20, 0.7, random);
  add_jitter(y, 0.5, random);
}
/// 400 entries for 1,000 keys: the more it holds, the fewer are new.
void lru_random_keys(Series& y, Random& random) {
  std::set<std::size_t> kept;
  for (double& each : y) {
    if (kept.size() < 400) kept.insert(draw(random, 1, 1000));
    each += 5 * kMib * static_cast<double>(kept.size());
  }
}
/// A pool that doubles whenever a larger request comes, which happens less and less often.
void pool_doubles(Series& y, Random& random) {
  double pool = 16;
  for (double& each : y) {
    const double wanted = 16 * std::exp(std::exponential_distribution<double>(1)(random));
    while (pool < wanted) pool *= 2;
    each += pool * kMib;
  }
  add_jitter(y, 0.5, random);
}
/// The longest sequence so far stays allocated.
void longest_so_far(Series& y, Random& random) {
  double longest = 0;
  for (double& each : y) {
    longest = std::max(longest, 200 * std::exponential_distribution<double>(1)(random));
    each += longest * kMib;
  }
}
void batches_vary(Series& y, Random& random) {
  for (double& each : y) each += uniform(random, 0, 500) * kMib;
}
void waves(Series& y, Random& random) {
  const double phase = uniform(random, 0, 6.28);
  const double period = uniform(random, 40, 120);
  add(y, [=](std::size_t i) { return 300 * kMib * std::sin(phase + 6.2832 * static_cast<double>(i) / period); });
  add_jitter(y, 1, random);
}
void swaps_models(Series& y, Random& random) {
  bool large = false;
  for (double& each : y) {
    if (uniform(random) < 0.05) large = !large;
    each += large ? 1500 * kMib : 0;
  }
  add_jitter(y, 0.5, random);
}

constexpr Family kHealthy[] = {
    {"warms_up", "warm-up of 1 GiB, tau 20, jitter 2 MiB", warms_up},
    {"warms_up_long", "warm-up of 2 GiB, tau 100, jitter 1 MiB", warms_up_long},
    {"ramps", "straight warm-up of 4 GiB over 150 iterations, jitter 2 MiB", ramps},
    {"quiet", "warm-up, jitter 0.01 MiB", quiet},
    {"caches", "warm-up, 4 cache steps of 64 MiB at random, jitter 2 MiB", caches},
    {"quiet_caches", "4 cache steps of 20 MiB, jitter 0.01 MiB", quiet_caches},
    {"wanders", "wander of 10 MiB with correlation 0.9", wanders},
    {"walks", "random walk of 2 MiB per iteration", walks},
    {"collects", "garbage of 3 MiB per iteration collected every 17th, jitter 0.5 MiB", collects},
    {"collects_at_odds", "garbage of 3 MiB per iteration collected after 10 to 50, not always completely",
     collects_at_odds},
    {"all_of_it", "warm-up, 3 cache steps, jitter 1.5 MiB, wander of 1 MiB with correlation 0.9", all_of_it},
    {"starts_high", "3 GiB for the first 40 iterations, jitter 0.5 MiB", starts_high},
    {"evaluates", "1 GiB for 5 of each 200 iterations, jitter 0.5 MiB", evaluates},
    {"evaluates_often", "2 GiB for 10 of each 100 iterations, jitter 0.5 MiB", evaluates_often},
    {"saves_checkpoints", "2 GiB for 3 of each 250 iterations, garbage collected every 25th", saves_checkpoints},
    {"shapes_300", "300 shapes at random, 5 MiB kept for each", shapes_300},
    {"shapes_1000", "1,000 shapes at random, 2 MiB kept for each, jitter 0.5 MiB", shapes_1000},
    {"shapes_zipf", "100 shapes by Zipf's law, 4 MiB kept for each", shapes_zipf},
    {"lru_fills", "a cache of 50 to 900 entries of 5 MiB, one per iteration", lru_fills},
    {"lru_fills_noisily", "a cache of 50 to 850 entries of 5 MiB, jitter 2 MiB", lru_fills_noisily},
    {"lru_fills_slowly", "a cache of 20 to 240 entries of 20 MiB, three iterations in ten add one", lru_fills_slowly},
    {"lru_random_keys", "a cache of 400 entries for 1,000 keys at random, 5 MiB each", lru_random_keys},
    {"pool_doubles", "a pool that doubles for ever rarer requests", pool_doubles},
    {"longest_so_far", "a buffer as large as the longest sequence so far", longest_so_far},
    {"batches_vary", "batches from 0 to 500 MiB", batches_vary},
    {"waves", "a wave of 300 MiB, 40 to 120 iterations long", waves},
    {"swaps_models", "1.5 GiB more or less, at random", swaps_models},
};

constexpr std::string_view kQuietEnough[] = {"warms_up", "warms_up_long", "ramps",       "quiet",    "quiet_caches",
                                             "collects", "all_of_it",     "starts_high", "evaluates"};

// ---- leaks

void straight(Series& y, Random& random) {
  add_leak(y, 1);
  add_jitter(y, 1, random);
}
void beneath_evaluations(Series& y, Random& random) {
  add_evaluations(y, 10240, 10, 100);
  add_leak(y, 8);
  add_jitter(y, 0.5, random);
}
void beneath_small_evaluations(Series& y, Random& random) {
  add_evaluations(y, 2048, 10, 100);
  add_leak(y, 0.5);
  add_jitter(y, 0.5, random);
}
/// 20 MiB per evaluation: 1 MiB per iteration on average.
void in_evaluations(Series& y, Random& random) {
  add_evaluations(y, 1024, 2, 20);
  add(y, [](std::size_t i) { return 20 * kMib * static_cast<double>(i / 20); });
  add_jitter(y, 0.5, random);
}
void staircase(Series& y, Random& random) {
  const std::size_t phase = draw(random, 0, 24);
  add(y, [=](std::size_t i) { return 32 * kMib * static_cast<double>((i + phase) / 25); });
  add_jitter(y, 0.5, random);
}
void rarely(Series& y, Random& random) {
  const std::size_t phase = draw(random, 0, 49);
  add(y, [=](std::size_t i) { return 32 * kMib * static_cast<double>((i + phase) / 50); });
  add_jitter(y, 0.2, random);
}
void by_chance(Series& y, Random& random) {
  double kept = 0;
  for (double& each : y) {
    if (uniform(random) < 0.1) kept += 8 * kMib;
    each += kept;
  }
}
void behind_a_warm_up(Series& y, Random& random) {
  add_warm_up(y, 2000, 60);
  add_leak(y, 0.5);
  add_jitter(y, 0.5, random);
}
void begins_late(Series& y, Random& random) {
  add_leak(y, 2, draw(random, 10, 60));
  add_jitter(y, 0.5, random);
}
void accelerates(Series& y, Random& random) {
  add(y, [](std::size_t i) { return kMib * (0.5 + static_cast<double>(i) / 1024) * static_cast<double>(i); });
  add_jitter(y, 1, random);
}
void above_a_full_cache(Series& y, Random& random) {
  add_lru(y, draw(random, 50, 300), 2, 0, random);
  add_leak(y, 1);
  add_jitter(y, 0.5, random);
}
void beneath_garbage(Series& y, Random& random) {
  add_garbage(y, 3, 17);
  add_leak(y, 1);
  add_jitter(y, 0.5, random);
}

constexpr Family kLeaking[] = {
    {"straight", "1 MiB, jitter 1 MiB", straight},
    {"beneath_evaluations", "8 MiB beneath 10 GiB for 10 of each 100 iterations", beneath_evaluations},
    {"beneath_small_evaluations", "0.5 MiB beneath 2 GiB for 10 of each 100 iterations", beneath_small_evaluations},
    {"in_evaluations", "20 MiB in each evaluation, every 20 iterations", in_evaluations},
    {"staircase", "32 MiB every 25 iterations", staircase},
    {"rarely", "32 MiB every 50 iterations", rarely},
    {"by_chance", "8 MiB in one iteration of ten", by_chance},
    {"behind_a_warm_up", "0.5 MiB behind a warm-up of 2 GiB, tau 60", behind_a_warm_up},
    {"begins_late", "2 MiB from iteration 10 to 60 on", begins_late},
    {"accelerates", "0.5 MiB, and 2.5 MiB at the end, jitter 1 MiB", accelerates},
    {"above_a_full_cache", "1 MiB, and a cache of 50 to 300 entries of 2 MiB", above_a_full_cache},
    {"beneath_garbage", "1 MiB beneath garbage of 3 MiB collected every 17th", beneath_garbage},
};

}  // namespace

std::span<const Family> healthy_families() {
  return kHealthy;
}
std::span<const Family> leaking_families() {
  return kLeaking;
}
std::span<const std::string_view> quiet_enough_for_a_small_leak() {
  return kQuietEnough;
}

std::vector<double> series_of(const Family& family, std::uint64_t seed, double leak_mib, std::size_t iterations) {
  Series y(iterations, 2048 * kMib);
  Random random(seed);
  family.make(y, random);
  add_leak(y, leak_mib);
  return y;
}

}  // namespace vramtrack::gate::made
