// The messages with which programs, shells and supervisors report that a program has ended.
#pragma once

#include <string_view>

namespace vramtrack {

/// Whether `line` reports that a program ended and did not do so by itself: "worker died with signal 9, restarting",
/// "Main process exited, code=killed", "exited with code 137", "train.sh: line 3: 4711 Killed". A status of zero does
/// not count: helpers end so all the time. It need not be the program that holds the memory, so this is evidence of an
/// end only together with a fall. A line without such a message costs about a hundred nanoseconds.
bool tells_end(std::string_view line);

}  // namespace vramtrack
