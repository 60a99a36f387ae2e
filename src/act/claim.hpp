// Claim: a problem reported from outside, such as an alert of a fleet. It begins a ladder once evidence confirms it,
// and at most one.
#pragma once

#include <map>
#include <string>

#include "core/time.hpp"

namespace vramtrack::act {

/// One firing of one alert, whose fingerprint is computed from its labels. Texts are untrusted.
struct Claim {
  std::string fingerprint;
  Timestamp starts_at;
  std::map<std::string, std::string> labels;
  Timestamp first_seen;  ///< by this machine's wall clock
  Timestamp last_seen;
  bool is_resolved = false;
  bool is_over = false;  ///< its ladder has ended

  /// The id of its climb, which restarts and repeats do not change.
  [[nodiscard]] std::string id() const;
};

}  // namespace vramtrack::act
