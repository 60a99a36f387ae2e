#include "host/host_memory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/limit_end.hpp"
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
  std::uint64_t swap_free = 0;
  while (!text.empty()) {
    const std::string_view line = next_line(text);
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos) continue;
    if (line.substr(0, colon) == "MemTotal") total = kibibytes(line.substr(colon + 1));
    if (line.substr(0, colon) == "SwapFree") swap_free = kibibytes(line.substr(colon + 1)).value_or(0);
    if (line.substr(0, colon) == "MemAvailable") available = kibibytes(line.substr(colon + 1));
  }
  if (!total || *total == 0 || !available) return std::nullopt;
  return HostMemory{*total, std::min(*total, *available), swap_free};
}

std::optional<HostMemory> read_host_memory(const std::string& proc_root) {
  const auto text = read_text_file(proc_root + "/meminfo", 16384);
  return text ? parse_meminfo(*text) : std::nullopt;
}

std::optional<ProcessMemory> parse_process_memory(std::string_view status) {
  ProcessMemory out;
  bool is_known = false;
  while (!status.empty()) {
    const std::string_view line = next_line(status);
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos) continue;
    const std::string_view key = line.substr(0, colon);
    const bool is_anonymous = key == "RssAnon" || key == "RssShmem" || key == "VmSwap";
    if (!is_anonymous && key != "VmRSS" && key != "VmPin") continue;
    const auto bytes = kibibytes(line.substr(colon + 1));
    if (!bytes) continue;
    if (is_anonymous) out.anonymous_bytes += *bytes;
    if (key == "RssAnon") is_known = true;
    if (key == "VmRSS") out.resident_bytes = *bytes;
    if (key == "VmPin") out.pinned_bytes = *bytes;
  }
  return is_known ? std::optional(out) : std::nullopt;
}

std::optional<ProcessMemory> read_process_memory(const std::string& proc_root, std::uint32_t pid) {
  std::array<char, 8192> buffer;
  const auto text = read_small_file(fmt::format("{}/{}/status", proc_root, pid).c_str(), buffer);
  return text ? parse_process_memory(*text) : std::nullopt;
}

std::vector<std::string> cgroup_folders(const std::string& folder) {
  constexpr std::size_t kMostFolders = 64;
  std::vector<std::string> out;
  if (folder.empty() || folder.front() != '/' || folder.find("/../") != std::string::npos || folder.ends_with("/.."))
    return out;
  std::string at = folder == "/" ? std::string() : folder;
  while (!at.empty() && out.size() < kMostFolders) {
    out.push_back(at);
    at.resize(at.rfind('/'));
  }
  out.emplace_back();
  return out;
}

namespace {

/// File caches, which can be reclaimed.
std::uint64_t cached_bytes(const std::string& memory_stat) {
  std::uint64_t out = 0;
  std::string_view rest = memory_stat;
  while (!rest.empty()) {
    const std::string_view line = next_line(rest);
    for (const std::string_view key : {"inactive_file ", "active_file "})
      if (line.starts_with(key)) out += parse_unsigned(trimmed(line.substr(key.size()))).value_or(0);
  }
  return out;
}

/// How much the memory of a cgroup can still grow.
std::uint64_t left_in(const std::string& path, std::uint64_t max_bytes, std::uint64_t swap_free_bytes) {
  const auto saturating = [](std::uint64_t a, std::uint64_t b) { return a > b ? a - b : 0; };
  const std::uint64_t current = read_number_file(path + "/memory.current").value_or(0);
  const std::uint64_t cached = cached_bytes(read_text_file(path + "/memory.stat", 16384).value_or(std::string()));
  std::uint64_t swap = swap_free_bytes;
  if (const auto most = read_number_file(path + "/memory.swap.max"))
    swap = std::min(swap, saturating(*most, read_number_file(path + "/memory.swap.current").value_or(0)));
  return saturating(max_bytes, saturating(current, cached)) + swap;
}

}  // namespace

HostLimit read_host_limit(const std::string& cgroup_root, const std::string& folder, const HostMemory& machine) {
  HostLimit out{std::string(kMachineMemory), machine.total_bytes, machine.available_bytes + machine.swap_free_bytes};
  for (const std::string& at : cgroup_folders(folder)) {
    const auto max_bytes = read_number_file(cgroup_root + at + "/memory.max");  // "max" is not a number
    if (!max_bytes || *max_bytes >= machine.total_bytes) continue;
    const std::uint64_t left_bytes = left_in(cgroup_root + at, *max_bytes, machine.swap_free_bytes);
    if (left_bytes < out.available_bytes) out = {"memory.max of " + (at.empty() ? "/" : at), *max_bytes, left_bytes};
  }
  return out;
}

}  // namespace vramtrack
