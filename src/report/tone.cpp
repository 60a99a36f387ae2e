#include "report/tone.hpp"

#include <fmt/format.h>

#include <array>

namespace vramtrack {

std::string_view to_string(Tone tone) {
  constexpr std::array<std::string_view, 7> kWords = {"plain", "ok", "notice", "watch", "warning", "critical", "faint"};
  return kWords[static_cast<std::size_t>(tone)];
}

bool is_bad(Tone tone) {
  return tone == Tone::watch || tone == Tone::warning || tone == Tone::critical;
}

std::string toned(std::string_view text, Tone tone, const ReportStyle& style) {
  constexpr std::string_view kRed = "\033[1;31m";
  constexpr std::array<std::string_view, 7> kCodes = {"", "\033[32m", "\033[33m", kRed, kRed, kRed, "\033[2m"};
  if (!style.colour || tone == Tone::plain) return std::string(text);
  return fmt::format("{}{}\033[0m", kCodes[static_cast<std::size_t>(tone)], text);
}

}  // namespace vramtrack
