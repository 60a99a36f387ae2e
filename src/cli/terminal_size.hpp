// The size of the terminal on standard output.
#pragma once

#include <cstddef>

namespace vramtrack::cli {

struct TerminalSize {
  std::size_t columns = 0;  ///< 0: unknown
  std::size_t rows = 0;     ///< 0: unknown
};

/// The current size; both are 0 if standard output is not a terminal. Any thread; one system call.
TerminalSize terminal_size();

}  // namespace vramtrack::cli
