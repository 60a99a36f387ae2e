// A random series that holds a level, then rises at a constant rate up to its limit.
#pragma once

#include <rapidcheck.h>

#include <algorithm>

#include "core/units.hpp"

namespace vramtrack {

/// REQUIRES: created within a RapidCheck property, which draws its figures.
struct KinkedGrowth {
  double flat_s = *rc::gen::inRange(0, 3600);
  double life_s = *rc::gen::inRange(1800, 36000);  ///< from the onset to the limit
  double period_s = *rc::gen::element(1.0, 5.0, 10.0, 30.0);
  double base_gib = *rc::gen::inRange(1, 20);
  double limit_gib = base_gib + *rc::gen::inRange(4, 60);

  [[nodiscard]] double used_bytes(double t_s) const {
    const double rate = (limit_gib - base_gib) * kGiB / life_s;
    return base_gib * kGiB + rate * std::max(0.0, t_s - flat_s);
  }
};

}  // namespace vramtrack
