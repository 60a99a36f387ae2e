// Which events are shown to people unchanged.
#pragma once

#include "core/sample.hpp"

namespace vramtrack {

/// False for the ends of processes, which alerts and runs show; for capacities and walls, which have a note or a
/// message of their own where they are news; and for holds by policies, which have more detailed messages of their own.
inline bool is_for_people(const Event& event) {
  switch (event.kind) {
    case Event::Kind::process_ended:
    case Event::Kind::held:
    case Event::Kind::let_go:
    case Event::Kind::mark:
    case Event::Kind::capacity:
      return false;
    default:
      break;
  }
  return !event.text.empty();
}

}  // namespace vramtrack
