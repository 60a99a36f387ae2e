// ClockMark: what the clocks of a machine showed at one moment, and how a sample of that moment was stamped.
#pragma once

#include <string>

#include "core/time.hpp"

namespace vramtrack {

/// Two marks of one boot show how much time passed between them, whatever was done to the time of day meanwhile.
struct ClockMark {
  std::string boot_id;    ///< the boot id of this start of the machine; empty: not a machine's clock, equal to no other
  Duration since_boot{};  ///< nobody can set it, and it continues while the machine sleeps
  Timestamp wall;         ///< the time of day
  Timestamp stamp;        ///< what a sample of this moment is stamped with
  Duration changed_at{};  ///< since boot: when the difference between `wall` and `stamp` last changed

  friend bool operator==(const ClockMark&, const ClockMark&) = default;
};

}  // namespace vramtrack
