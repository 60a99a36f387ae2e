// The random choices of one trace, with the ranges of its split.
#pragma once

#include <cstddef>
#include <initializer_list>

#include "source/sim/random.hpp"
#include "trace.hpp"

namespace vramtrack::accuracy {

struct Draw {
  sim::Random random;
  Split split = Split::tune;

  double uniform(double low, double high) { return random.uniform(low, high); }
  double log_uniform(double low, double high) { return random.log_uniform(low, high); }
  bool chance(double p) { return random.uniform() < p; }
  int whole(int low, int high) {
    return low + static_cast<int>(random.uniform() * static_cast<double>(high - low + 1));
  }
  template <class T>
  T pick(std::initializer_list<T> of) {
    return *(of.begin() + static_cast<std::ptrdiff_t>(random.uniform() * static_cast<double>(of.size())));
  }
  /// One of two ranges, by split.
  template <class T>
  T by_split(T tune, T test) const {
    return split == Split::tune ? tune : test;
  }
};

}  // namespace vramtrack::accuracy
