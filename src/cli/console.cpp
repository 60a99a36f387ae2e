#include "cli/console.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>

#include "cli/terminal_size.hpp"
#include "core/errno_words.hpp"
#include "core/printable.hpp"
#include "core/regular_file.hpp"
#include "core/wrap.hpp"

namespace vramtrack::cli {
namespace {

bool is_set(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0';
}

}  // namespace

Console::Console() : terminal_(::isatty(STDOUT_FILENO) == 1) {
  std::signal(SIGPIPE, SIG_IGN);
  const char* term = std::getenv("TERM");
  const bool dumb = term == nullptr || std::strcmp(term, "dumb") == 0;
  if (dumb) terminal_ = false;
  colour_ = terminal_ && !is_set("NO_COLOR");
}

void Console::write(std::string_view text) {
  if (text.empty()) return;
  const std::lock_guard lock(mutex_);
  erase_progress();
  std::string with_zone;
  if (const std::string zone = unnamed_zone(); !zone.empty()) text = with_zone = zone + '\n' + std::string(text);
  if (gone_ || write_all(STDOUT_FILENO, text)) return;
  const int cause = errno;
  gone_ = true;
  if (cause == EPIPE) return;
  failed_ = true;
  const std::string why = errno_words(cause);
  static_cast<void>(write_all(STDERR_FILENO,
                              "vramtrack: cannot write the output: " + why + "; free some space or write elsewhere\n"));
}

void Console::write_prose(std::string_view text) {
  write(wrap(text, width()));
}

std::size_t Console::width() const {
  return terminal_ ? terminal_size().columns : 0;
}

void Console::error(std::string_view message) {
  const std::lock_guard lock(mutex_);
  erase_progress();
  if (const std::string zone = unnamed_zone(); !zone.empty())
    static_cast<void>(write_all(STDERR_FILENO, "vramtrack: " + zone + '\n'));
  // Nothing can be done if standard error is closed, too.
  static_cast<void>(write_all(STDERR_FILENO, "vramtrack: " + printable_lines(message) + '\n'));
}

void Console::set_progress(const std::string& line) {
  const std::lock_guard lock(mutex_);
  erase_progress();
  if (line.empty()) return;
  // Cut at the edge of the screen, because a line that wraps could not be erased.
  has_progress_ = write_all(STDERR_FILENO, "\033[?7l" + line + "\033[?7h");
}

void Console::erase_progress() {
  if (has_progress_) static_cast<void>(write_all(STDERR_FILENO, "\r\033[K"));
  has_progress_ = false;
}

void Block::draw(std::string_view text) {
  if (!console_.is_terminal()) return;
  erase();
  // Without line wrap, one line of text is one line of the screen however narrow it is.
  console_.write("\033[?7l" + std::string(text) + "\033[?7h");
  lines_ = static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
}

void Block::erase() {
  if (lines_ > 0) console_.write(fmt::format("\033[{}A\r\033[J", lines_));
  lines_ = 0;
}

}  // namespace vramtrack::cli
