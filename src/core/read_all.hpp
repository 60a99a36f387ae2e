// The whole of a small file as text.
#pragma once

#include <istream>
#include <optional>
#include <sstream>
#include <string>

namespace vramtrack {

/// What is left of `in`; nullopt when reading fails: a directory, a process that has ended meanwhile. Never throws for
/// that, as std::istreambuf_iterator does.
inline std::optional<std::string> read_all(std::istream& in) {
  std::ostringstream out;
  if (in.peek() == std::istream::traits_type::eof()) return in.bad() ? std::nullopt : std::optional<std::string>("");
  out << in.rdbuf();
  if (in.bad() || out.fail()) return std::nullopt;
  return std::move(out).str();
}

}  // namespace vramtrack
