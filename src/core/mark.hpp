// Mark: the name that a program, or somebody for it, gives to a point it has reached: "request", "step=1200".
#pragma once

#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/result.hpp"

namespace vramtrack {

struct Mark {
  std::string name;                     ///< untrusted
  std::optional<std::uint64_t> number;  ///< nullopt: marks are counted instead
};

/// The most bytes in the text of a mark.
inline constexpr std::size_t kMostMarkBytes = 64;

/// NAME or NAME=NUMBER; the last '=' separates them. The error explains what is wrong with it.
inline Result<Mark> parse_mark(std::string_view text) {
  if (text.size() > kMostMarkBytes) return fail("a mark can have at most 64 bytes");
  const std::size_t equals = text.rfind('=');
  Mark out{std::string(text.substr(0, equals)), {}};
  if (out.name.empty())
    return fail("a mark needs a name: NAME=NUMBER, for example step=1200, or NAME alone to count automatically");
  if (equals == std::string_view::npos) return out;
  std::uint64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data() + equals + 1, end, number);
  if (error != std::errc{} || stop != end)
    return fail(
        "'" + std::string(text.substr(equals + 1)) +
        "' is not a whole number; write NAME=NUMBER, for example step=1200, or NAME alone to count automatically");
  out.number = number;
  return out;
}

}  // namespace vramtrack
