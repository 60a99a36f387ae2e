// The families of bodies on which the leak gate is measured: how healthy bodies use memory, and how bodies leak. A
// series is what a gate would read after each of 1,024 iterations; the seed makes it reproducible.
#pragma once

#include <ostream>
#include <span>
#include <string_view>
#include <vector>

#include "series.hpp"

namespace vramtrack::gate::made {

struct Family {
  std::string_view name;
  std::string_view words;  ///< for tables
  void (*make)(std::vector<double>& y, Random& random);

  friend void PrintTo(const Family& family, std::ostream* out) { *out << family.name; }
};

/// Their memory stops growing, or never grows, or grows by less than the limit of 0.2 MiB per iteration.
std::span<const Family> healthy_families();
/// Each grows without end by more than that limit.
std::span<const Family> leaking_families();
/// Healthy families in which a leak of 0.5 MiB per iteration is detected at least 99 times in 100.
std::span<const std::string_view> quiet_enough_for_a_small_leak();

/// The memory of one run. `leak_mib`: added to every iteration.
std::vector<double> series_of(const Family& family, std::uint64_t seed, double leak_mib = 0,
                              std::size_t iterations = 1024);

}  // namespace vramtrack::gate::made
