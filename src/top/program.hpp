// The terminal program: draws the data of a TopSource, and handles keys, until q.
#pragma once

#include <string>
#include <vector>

#include "core/result.hpp"
#include "top/feed.hpp"

namespace vramtrack::top {

struct ProgramOptions {
  std::string theme;       ///< empty: the first
  bool read_only = false;  ///< never send a signal
  bool mouse = true;       ///< initial setting; a key switches it
  Only only;
  std::string proc_root = "/proc";
  std::string store_path;  ///< the store with which to share acknowledgements; empty: none
};

/// Takes over the terminal until the user, SIGINT or SIGTERM ends it. Returns the warnings on the screen, because they
/// disappear with it. Error: there is no terminal that can show the screens.
Result<std::vector<std::string>> run_program(const ProgramOptions& options, TopSource source);

/// The first screen as text, without a terminal: that after one poll, or at the end of a recording or a simulation.
std::string screen_once(const ProgramOptions& options, TopSource source, int width, int height);

}  // namespace vramtrack::top
