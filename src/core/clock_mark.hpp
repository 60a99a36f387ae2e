// ClockMark: the readings of a machine's clocks at one moment, and the timestamp of a sample taken at that moment.
#pragma once

#include <string>

#include "core/time.hpp"

namespace vramtrack {

/// Two marks of one boot show how much time passed between them, even if the time of day was changed meanwhile.
struct ClockMark {
  std::string boot_id;    ///< the id of this boot of the machine; empty: not a machine's clock, equal to no other
  Duration since_boot{};  ///< this clock cannot be set, and it continues while the machine sleeps
  Timestamp wall;         ///< the time of day
  Timestamp stamp;        ///< the timestamp of a sample taken at this moment
  Duration changed_at{};  ///< since boot: when the difference between `wall` and `stamp` last changed

  friend bool operator==(const ClockMark&, const ClockMark&) = default;
};

}  // namespace vramtrack
