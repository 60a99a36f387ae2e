// Which events are told to people as they stand.
#pragma once

#include "core/sample.hpp"

namespace vramtrack {

/// False of the ends of processes, which alerts and runs tell, and of the walls of processes (a capacity with a pid),
/// each of which has a note beside it where it is news.
inline bool is_for_people(const Event& event) {
  return !event.text.empty() && event.kind != Event::Kind::process_ended &&
         !(event.kind == Event::Kind::capacity && event.pid != 0);
}

}  // namespace vramtrack
