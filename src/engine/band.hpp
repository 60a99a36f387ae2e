// Band: the levels between which a series has moved up and down before, as the total of a card does that several
// tenants share: what one releases another may take.
#pragma once

#include <optional>

#include "core/time.hpp"
#include "detect/history.hpp"

namespace vramtrack {

struct Band {
  int swings = 0;  ///< rises as high as the present one that were released
  double lowest_bytes = 0;
  double highest_bytes = 0;
};

/// The band in which the rise lies that began at `onset`. nullopt: there is none, since the rise is higher than all
/// before it or has lasted for much longer, or there were fewer than two such swings. What lies before `since`, or
/// before the series was last at a fifth of its present level, was another run and does not count. Pure;
/// O(History::kCapacity).
std::optional<Band> band_of(const History& history, Timestamp since, Timestamp onset);

}  // namespace vramtrack
