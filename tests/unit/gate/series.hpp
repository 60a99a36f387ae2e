// Synthetic series of memory after each iteration: those of healthy tests and those of leaks.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <random>
#include <string_view>
#include <vector>

namespace vramtrack::gate::made {

inline constexpr double kMib = 1024.0 * 1024.0;
using Random = std::mt19937_64;

/// Adds `bytes_of(i)` to every iteration.
inline void add(std::vector<double>& y, const std::function<double(std::size_t)>& bytes_of) {
  for (std::size_t i = 0; i < y.size(); ++i) y[i] += bytes_of(i);
}

inline void add_leak(std::vector<double>& y, double mib_per_iteration, std::size_t from = 0) {
  add(y, [=](std::size_t i) { return i < from ? 0.0 : mib_per_iteration * kMib * static_cast<double>(i - from); });
}

/// Independent, heavy-tailed noise: one value in twenty is five times as large.
inline void add_jitter(std::vector<double>& y, double sigma_mib, Random& random) {
  std::normal_distribution<double> normal;
  std::uniform_real_distribution<double> uniform;
  add(y, [&](std::size_t) { return sigma_mib * kMib * normal(random) * (uniform(random) < 0.05 ? 5 : 1); });
}

/// An autoregressive process with standard deviation `sigma_mib`; correlation 1: a random walk with that step.
inline void add_wander(std::vector<double>& y, double sigma_mib, double correlation, Random& random) {
  std::normal_distribution<double> normal;
  const double step = correlation < 1 ? sigma_mib * std::sqrt(1 - correlation * correlation) : sigma_mib;
  double level = correlation < 1 ? sigma_mib * normal(random) : 0;
  add(y, [&](std::size_t) {
    level = correlation * level + step * normal(random);
    return level * kMib;
  });
}

/// `total_mib` that arrive exponentially with time constant `tau` iterations.
inline void add_warm_up(std::vector<double>& y, double total_mib, double tau) {
  add(y, [=](std::size_t i) { return total_mib * kMib * (1 - std::exp(-static_cast<double>(i) / tau)); });
}

/// A straight warm-up over the first `iterations`.
inline void add_ramp(std::vector<double>& y, double total_mib, std::size_t iterations) {
  add(y, [=](std::size_t i) {
    return total_mib * kMib * std::min(1.0, static_cast<double>(i) / static_cast<double>(iterations));
  });
}

/// A cache takes `count` more segments of `size_mib` at random iterations and keeps them.
inline void add_cache(std::vector<double>& y, int count, double size_mib, Random& random) {
  std::uniform_int_distribution<std::size_t> when(0, y.size() - 1);
  for (int k = 0; k < count; ++k) {
    const std::size_t at = when(random);
    add(y, [=](std::size_t i) { return i >= at ? size_mib * kMib : 0.0; });
  }
}

/// Garbage that is collected every `period` iterations.
inline void add_garbage(std::vector<double>& y, double mib_per_iteration, std::size_t period) {
  add(y, [=](std::size_t i) { return mib_per_iteration * kMib * static_cast<double>(i % period); });
}

}  // namespace vramtrack::gate::made
