// Band: the levels between which a series has moved up and down before, such as the total of a card that several
// tenants share: memory that one releases, another may take.
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

/// The band that contains the rise that began at `onset`. nullopt if there is none: the rise is higher than all
/// before it or has lasted for much longer, or there were fewer than two such swings. Anything before `since`, or
/// before the series was last at a fifth of its present level, belonged to another run and does not count. Pure;
/// O(History::kCapacity).
std::optional<Band> band_of(const History& history, Timestamp since, Timestamp onset);

}  // namespace vramtrack
