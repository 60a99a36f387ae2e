// A stretch of time that a user asks for, of a recording or of a report.
#pragma once

#include <optional>

#include "core/time.hpp"

namespace vramtrack {

/// [from, to); nullopt: unbounded.
struct TimeRange {
  std::optional<Timestamp> from;
  std::optional<Timestamp> to;
};

}  // namespace vramtrack
