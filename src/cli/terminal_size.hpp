// The size of the terminal that standard output is.
#pragma once

#include <cstddef>

namespace vramtrack::cli {

struct TerminalSize {
  std::size_t columns = 0;  ///< 0: unknown
  std::size_t rows = 0;     ///< 0: unknown
};

/// As it is now; both are 0 if standard output is not a terminal. Any thread; one system call.
TerminalSize terminal_size();

}  // namespace vramtrack::cli
