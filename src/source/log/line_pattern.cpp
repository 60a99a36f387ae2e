#include "source/log/line_pattern.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/option.hpp"

namespace vramtrack {
namespace {

using Group = std::string_view TextReading::*;

constexpr std::array<std::pair<std::string_view, Group>, 12> kGroups = {{{"time", &TextReading::time},
                                                                         {"step", &TextReading::step},
                                                                         {"used", &TextReading::used},
                                                                         {"total", &TextReading::total},
                                                                         {"free", &TextReading::free},
                                                                         {"allocated", &TextReading::allocated},
                                                                         {"reserved", &TextReading::reserved},
                                                                         {"gpu", &TextReading::gpu},
                                                                         {"uuid", &TextReading::uuid},
                                                                         {"pid", &TextReading::pid},
                                                                         {"name", &TextReading::name},
                                                                         {"user", &TextReading::user}}};

std::string group_names() {
  std::string names;
  for (const auto& [name, group] : kGroups) names += (names.empty() ? "" : ", ") + std::string(name);
  return names;
}

}  // namespace

std::string quoted_for_pattern(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (std::string_view("\\^$.|?*+()[]{}/").find(c) != std::string_view::npos) out += '\\';
    out += c;
  }
  return out;
}

Result<LinePattern> LinePattern::compile(const std::string& text) {
  const auto wrong = [&](const std::string& why) {
    return fail(
        fmt::format("{}: {}; an example is '(?<used>\\d+) / (?<total>\\d+) MiB'", name_of(Option::line_pattern), why));
  };
  auto regex = Regex::compile(text);
  if (!regex) return wrong(regex.error().message);
  LinePattern pattern(std::move(*regex));
  bool used = false;
  bool free = false;
  bool total = false;
  for (const std::string& name : pattern.regex_.group_names()) {
    const auto known = std::find_if(kGroups.begin(), kGroups.end(), [&](const auto& g) { return g.first == name; });
    if (known == kGroups.end() && !name.empty())
      return wrong(fmt::format("group '{}' is not known; the groups are {}", name, group_names()));
    const Group group = known == kGroups.end() ? nullptr : known->second;
    pattern.groups_.push_back(group);
    used |= group == &TextReading::used || group == &TextReading::allocated || group == &TextReading::reserved;
    free |= group == &TextReading::free;
    total |= group == &TextReading::total;
    pattern.has_time_ |= group == &TextReading::time;
    pattern.has_step_ |= group == &TextReading::step;
    pattern.has_pid_ |= group == &TextReading::pid;
  }
  if (!used && !(free && total)) return wrong("it has no group named used, allocated or reserved, nor free and total");
  return pattern;
}

bool LinePattern::read(std::string_view line, TextReading& out) {
  if (line.size() > kLongestLine || !regex_.find(line, found_)) return false;
  out = {};
  for (std::size_t i = 0; i < groups_.size(); ++i)  // a name may occur in several alternatives
    if (groups_[i] != nullptr && !found_[i + 1].empty()) out.*groups_[i] = found_[i + 1];
  return true;
}

}  // namespace vramtrack
