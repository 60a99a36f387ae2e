// Claim: what somebody outside says is a problem, such as an alert of a fleet. It begins a ladder once evidence
// confirms it, and never a second one.
#pragma once

#include <map>
#include <string>

#include "core/time.hpp"

namespace vramtrack::act {

/// One firing of one alert: its fingerprint is of its labels. Texts are untrusted.
struct Claim {
  std::string fingerprint;
  Timestamp starts_at;
  std::map<std::string, std::string> labels;
  Timestamp first_seen;  ///< by this machine's time of day
  Timestamp last_seen;
  bool is_resolved = false;
  bool is_over = false;  ///< it had its ladder

  /// The same over restarts and repeats: the id of its climb.
  [[nodiscard]] std::string id() const;
};

}  // namespace vramtrack::act
