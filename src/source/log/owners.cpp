#include "source/log/owners.hpp"

#include <algorithm>
#include <initializer_list>
#include <map>
#include <set>
#include <unordered_set>
#include <utility>
#include <vector>

#include "source/log/columns.hpp"
#include "source/log/text.hpp"

namespace vramtrack {

LogDevice device_of(const OwnerIds& ids) {
  LogDevice out;
  out.name = ids.name;
  if (!logtext::is_missing(ids.uuid)) out.uuid = ids.uuid;
  std::string_view own = ids.index;
  if (auto named = device_named(own))
    out.index = named->index;
  else if (own.starts_with("GPU-") || own.starts_with("MIG-"))
    out.uuid = std::exchange(own, {});
  if (!out.uuid.empty() || ids.origin.empty()) {
    out.pci_bus_id = ids.pci_bus_id;
    if (out.uuid.empty() && out.pci_bus_id.empty() && !out.index) out.text = own;
  } else {
    out.text = ids.origin;
    const std::string_view within = ids.pci_bus_id.empty() ? own : ids.pci_bus_id;
    if (!within.empty()) out.text += '/';
    if (ids.pci_bus_id.empty() && out.index)
      out.text += std::to_string(*out.index);
    else
      out.text += within;
  }
  if (ids.partition.empty()) return out;
  LogDevice part;
  part.name = std::move(out.name);
  part.parent_id = device_id(out);
  (part.text = part.parent_id + '/') += ids.partition;
  return part;
}

namespace {

/// "job id" for "Job_ID".
std::string words_of(std::string_view key) {
  std::string out = logtext::lower(key);
  std::replace(out.begin(), out.end(), '_', ' ');
  return out;
}

/// The titles of words.def with one of these roles.
std::unordered_set<std::string> titles_of(std::initializer_list<ColumnRole> roles) {
  std::unordered_set<std::string> out;
  const auto add = [&](const char* title, ColumnRole role) {
    if (std::find(roles.begin(), roles.end(), role) != roles.end()) out.emplace(title);
  };
#define VRAMTRACK_TITLE(title, role, rank) add(title, ColumnRole::role);
#include "core/words.def"
  return out;
}

}  // namespace

bool names_origin(std::string_view key) {
  static const std::unordered_set<std::string> known = [] {
    std::unordered_set<std::string> words =
        titles_of({ColumnRole::series, ColumnRole::process_name, ColumnRole::pid, ColumnRole::user});
#define VRAMTRACK_ORIGIN(word) words.emplace(word);
#include "core/words.def"
    return words;
  }();
  return known.contains(words_of(key));
}

bool names_program(std::string_view key) {
  constexpr std::size_t kLongest = 15;  // asked about each word of a line: without memory from the heap
  static const std::unordered_set<std::string> known = titles_of({ColumnRole::process_name});
  return key.size() <= kLongest && known.contains(words_of(key));
}

std::optional<std::uint32_t> pid_of(std::string_view text) {
  const auto pid = logtext::whole_number<std::uint32_t>(logtext::trim(text));
  return pid && *pid > 0 ? pid : std::nullopt;
}

bool number_programs(std::span<const std::string_view> pids) {
  std::set<std::uint32_t> numbers;
  for (const std::string_view text : pids) {
    if (logtext::is_missing(text)) continue;
    const auto number = logtext::whole_number<std::uint32_t>(logtext::trim(text));
    if (!number) return false;
    numbers.insert(*number);
  }
  return !numbers.empty() && *numbers.rbegin() + 1 == numbers.size();
}

bool distinguish(std::span<const std::string_view> values, std::span<const std::string_view> times,
                 std::span<const std::string> owners) {
  constexpr std::size_t kFewest = 3;
  std::map<std::pair<std::string_view, std::string_view>, std::vector<std::string_view>> shared;
  for (std::size_t i = 0; i < values.size(); ++i)
    if (!times[i].empty()) shared[{owners[i], times[i]}].push_back(values[i]);
  std::size_t several = 0;
  std::size_t apart = 0;
  for (auto& [of, its] : shared) {
    if (its.size() < 2) continue;
    ++several;
    std::sort(its.begin(), its.end());
    apart += std::adjacent_find(its.begin(), its.end()) == its.end() ? 1U : 0U;
  }
  return several >= kFewest && apart * 3 >= several * 2;
}

bool are_few(std::span<const std::string_view> values) {
  constexpr std::size_t kMost = 64;
  constexpr std::size_t kRepeated = 3;
  const std::set<std::string_view> different(values.begin(), values.end());
  return different.size() > 1 && different.size() <= kMost && different.size() * kRepeated <= values.size();
}

}  // namespace vramtrack
