#include "host/command_line.hpp"

namespace vramtrack {

std::string command_line(std::string_view raw) {
  constexpr std::size_t kMostBytes = 256;
  std::string command(raw.substr(0, kMostBytes + 1));
  if (command.size() > kMostBytes) {
    std::size_t end = kMostBytes;
    while (end > 0 && (static_cast<unsigned char>(command[end]) & 0xC0U) == 0x80U) --end;
    command.resize(end);
  }
  for (char& c : command)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
  while (!command.empty() && command.back() == ' ') command.pop_back();
  return command;
}

}  // namespace vramtrack
