// Reads a whole small file as text.
#pragma once

#include <istream>
#include <optional>
#include <sstream>
#include <string>

namespace vramtrack {

/// The rest of `in`; nullopt if reading fails, as for a directory or a process that has just ended. Unlike
/// std::istreambuf_iterator, it never throws in that case.
inline std::optional<std::string> read_all(std::istream& in) {
  std::ostringstream out;
  if (in.peek() == std::istream::traits_type::eof()) return in.bad() ? std::nullopt : std::optional<std::string>("");
  out << in.rdbuf();
  if (in.bad() || out.fail()) return std::nullopt;
  return std::move(out).str();
}

}  // namespace vramtrack
