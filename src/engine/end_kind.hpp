// How a run ended, judging only by its last figures.
#pragma once

#include <optional>

#include "core/verdict.hpp"

namespace vramtrack {

/// A run's last figures.
struct LastFigures {
  double used_bytes = 0;
  std::optional<double> limit_bytes;
  std::optional<double> onset_bytes;         ///< where the growth began; nullopt: it did not grow
  std::optional<double> growth_bytes_per_s;  ///< likewise
  double unseen_s = 0;                       ///< time after the last sample during which it continued unseen
};

/// Out of memory: what was free when last seen, less the unseen growth at the last rate, is at most a tenth of
/// what was free when the growth began. Near the limit: at most a tenth of the limit was free. Pure.
EndKind end_kind(const LastFigures& last);

}  // namespace vramtrack
