#include "core/toml_depth.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace vramtrack {
namespace {

/// The end of the string with which `text` begins, one of TOML's four kinds.
std::size_t string_end(std::string_view text) {
  const char quote = text.front();
  const bool escapes = quote == '"';
  const bool lines = text.size() >= 3 && text[1] == quote && text[2] == quote;
  const std::size_t quotes = lines ? 3 : 1;
  for (std::size_t i = quotes; i < text.size(); ++i) {
    if (escapes && text[i] == '\\') {
      ++i;
    } else if (text.substr(i, quotes) == std::string_view("\"\"\"''''''").substr(escapes ? 0 : 3, quotes)) {
      return i + quotes;
    } else if (!lines && text[i] == '\n') {
      return i;  // it is not closed: the parser reports that
    }
  }
  return text.size();
}

}  // namespace

Status check_key_depth(std::string_view toml, std::string_view file) {
  std::uint32_t line = 1;
  std::uint32_t parts = 1;
  for (std::size_t i = 0; i < toml.size();) {
    const char c = toml[i];
    if (c == '"' || c == '\'') {
      const std::size_t end = i + string_end(toml.substr(i));
      line += static_cast<std::uint32_t>(std::count(toml.begin() + static_cast<std::ptrdiff_t>(i),
                                                    toml.begin() + static_cast<std::ptrdiff_t>(end), '\n'));
      i = end;
      continue;
    }
    if (c == '#') {
      i = std::min(toml.find('\n', i), toml.size());
      continue;
    }
    if (c == '.' && ++parts > kMaxKeyParts)
      return fail(fmt::format("{}:{}: a key has more than {} parts; correct this line", file, line, kMaxKeyParts));
    // A key ends where its value begins; the next one begins after the value.
    if (std::string_view("=,{}\n").find(c) != std::string_view::npos) parts = 1;
    if (c == '\n') ++line;
    ++i;
  }
  return {};
}

}  // namespace vramtrack
