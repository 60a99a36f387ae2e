// The parts of the engine that keep alerts of their own: where they keep them, and how they report a change of one.
#pragma once

#include <functional>
#include <unordered_map>
#include <vector>

#include "core/series.hpp"
#include "core/verdict.hpp"

namespace vramtrack {

/// Called after an alert was raised, escalated or cleared.
using Announce = std::function<void(Alert&, AlertNews)>;

/// In order, by the series that they belong to.
using AlertsBySeries = std::unordered_map<SeriesId, std::vector<Alert>>;

/// nullptr if there are none. O(1).
inline const std::vector<Alert>* find_alerts(const AlertsBySeries& all, SeriesId series) {
  const auto known = all.find(series);
  return known == all.end() ? nullptr : &known->second;
}

}  // namespace vramtrack
