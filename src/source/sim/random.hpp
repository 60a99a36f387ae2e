// Random numbers that are the same with every compiler and library: SplitMix64 and transforms of our own, because the
// distributions of <random> are not specified bit by bit. (G. Steele, D. Lea, C. Flood, "Fast splittable pseudorandom
// number generators", OOPSLA 2014.)
#pragma once

#include <cstdint>
#include <string_view>

namespace vramtrack::sim {

/// One independent stream. Copyable: a copy produces the same numbers as the original. Cost: a few ns per number.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() {
    state_ += 0x9E3779B97F4A7C15ULL;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
    return z ^ (z >> 31);
  }

  /// Uniformly distributed in [0, 1).
  double uniform() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }
  double uniform(double low, double high) { return low + (high - low) * uniform(); }
  /// A factor, uniformly distributed in [1 - spread, 1 + spread].
  double around_one(double spread) { return 1 + spread * (2 * uniform() - 1); }
  /// Standard normal (Box-Muller; always takes two numbers, so that streams stay aligned).
  double normal();
  double exponential(double mean);
  /// Between `low` and `high`, uniformly on a logarithmic scale. REQUIRES: 0 < low <= high.
  double log_uniform(double low, double high);

 private:
  std::uint64_t state_;
};

/// The seed of a stream named `name` under `seed`. A stream depends only on its name, so that adding a process
/// to a scenario does not change what the others do.
std::uint64_t substream(std::uint64_t seed, std::string_view name);
std::uint64_t substream(std::uint64_t seed, std::uint64_t number);

}  // namespace vramtrack::sim
