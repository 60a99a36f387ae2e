// Which events are shown to people unchanged.
#pragma once

#include "core/sample.hpp"

namespace vramtrack {

/// False of the ends of processes, which alerts and runs show, of capacities and walls, each of which has a note or the
/// message that names it beside it where it is news, and of what policies hold, of which their own messages say more.
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
