// Rest: what a series does when nothing in it rises: steady, cycling, falling, or just after a jump.
#pragma once

#include "core/verdict.hpp"
#include "detect/scales.hpp"
#include "detect/shape.hpp"

namespace vramtrack {

struct RestContext {
  Timestamp now{};
  double now_bytes = 0;
  double matters_bytes = 0;      ///< smaller changes are ignored
  std::size_t finest_level = 0;  ///< the finest level that is useful at this sampling period
  const Scale& scale;            ///< formats the figures
};

/// Fills state, pattern, spike, onset and because of `finding`. O(48).
void describe_rest(Finding& finding, const Scales& scales, const Jumps& jumps, const RestContext& context);

}  // namespace vramtrack
