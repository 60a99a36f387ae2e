// The terminal program: draws what a TopSource shows, and hears keys, until q.
#pragma once

#include <string>
#include <vector>

#include "core/result.hpp"
#include "top/feed.hpp"

namespace vramtrack::top {

struct ProgramOptions {
  std::string theme;       ///< empty: the first
  bool read_only = false;  ///< never send a signal
  bool mouse = true;       ///< until a key switches it
  Only only;
  std::string proc_root = "/proc";
  std::string store_path;  ///< whose acknowledgements are shared; empty: none
};

/// Takes the terminal over until the user ends it, or SIGINT or SIGTERM. Returns the warnings that stood on the screen,
/// for they are gone with it. Errors: no terminal that can show the screens.
Result<std::vector<std::string>> run_program(const ProgramOptions& options, TopSource source);

}  // namespace vramtrack::top
