#include "host/host_memory.hpp"

#include <algorithm>

#include "host/small_file.hpp"

namespace vramtrack {
namespace {

constexpr std::uint64_t kKibibyte = 1024;

/// "123 kB"
std::optional<std::uint64_t> kibibytes(std::string_view text) {
  text = trimmed(text);
  if (!text.ends_with("kB")) return std::nullopt;
  const auto number = parse_unsigned(trimmed(text.substr(0, text.size() - 2)));
  if (!number || *number > UINT64_MAX / kKibibyte) return std::nullopt;
  return *number * kKibibyte;
}

}  // namespace

std::optional<HostMemory> parse_meminfo(std::string_view text) {
  std::optional<std::uint64_t> total;
  std::optional<std::uint64_t> available;
  while (!text.empty()) {
    const std::string_view line = next_line(text);
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos) continue;
    if (line.substr(0, colon) == "MemTotal") total = kibibytes(line.substr(colon + 1));
    if (line.substr(0, colon) == "MemAvailable") available = kibibytes(line.substr(colon + 1));
  }
  if (!total || *total == 0 || !available) return std::nullopt;
  return HostMemory{*total, std::min(*total, *available)};
}

std::optional<HostMemory> read_host_memory(const std::string& proc_root) {
  const auto text = read_text_file(proc_root + "/meminfo", 16384);
  return text ? parse_meminfo(*text) : std::nullopt;
}

}  // namespace vramtrack
