#include "cli/terminal_size.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

namespace vramtrack::cli {

TerminalSize terminal_size() {
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0) return {};
  return {size.ws_col, size.ws_row};
}

}  // namespace vramtrack::cli
