// How a command line becomes ProcessInfo::command, for a process and for words that somebody types.
#pragma once

#include <string>
#include <string_view>

namespace vramtrack {

/// `raw` (words that end in NUL, as in /proc/PID/cmdline) with spaces between the words, cut to 256 bytes without
/// splitting a UTF-8 character. Pure.
std::string command_line(std::string_view raw);

}  // namespace vramtrack
