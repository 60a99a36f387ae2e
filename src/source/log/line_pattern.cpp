#include "source/log/line_pattern.hpp"

#include <fmt/format.h>

#include <utility>

#include "core/option.hpp"

namespace vramtrack {
namespace {

constexpr std::size_t kLongestLine = 4096;

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

Result<LinePattern> LinePattern::compile(const std::string& text) {
  const auto wrong = [&](const std::string& why) {
    return fail(fmt::format("{} '{}': {}; an example is '(?<used>\\d+) / (?<total>\\d+) MiB'",
                            name_of(Option::line_pattern), text, why));
  };
  // std::regex has no named groups: the groups are counted, and the names removed.
  std::string plain;
  std::vector<Group> groups;
  bool in_class = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    plain += text[i];
    if (text[i] == '\\' && i + 1 < text.size()) {
      plain += text[++i];
    } else if (in_class) {
      in_class = text[i] != ']';
    } else if (text[i] == '[') {
      in_class = true;
    } else if (text[i] == '(') {
      const std::string_view rest = std::string_view(text).substr(i + 1);
      const std::size_t sign = rest.starts_with("?<") ? 2 : rest.starts_with("?P<") ? 3 : 0;
      if (sign == 0 || (rest.size() > sign && (rest[sign] == '=' || rest[sign] == '!'))) {
        if (!rest.starts_with("?")) groups.push_back(nullptr);
        continue;
      }
      const std::size_t close = rest.find('>');
      if (close == std::string_view::npos) return wrong("the name of a group does not end in '>'");
      const std::string_view name = rest.substr(sign, close - sign);
      Group group = nullptr;
      for (const auto& [known, member] : kGroups)
        if (known == name) group = member;
      if (group == nullptr)
        return wrong(fmt::format("group '{}' is not known; the groups are {}", name, group_names()));
      groups.push_back(group);
      i += close + 1;
    }
  }
  auto regex = Regex::compile(plain);
  if (!regex) return wrong(regex.error().message);
  LinePattern pattern(std::move(*regex));
  bool used = false;
  bool free = false;
  bool total = false;
  for (const Group group : groups) {
    used |= group == &TextReading::used || group == &TextReading::allocated || group == &TextReading::reserved;
    free |= group == &TextReading::free;
    total |= group == &TextReading::total;
    pattern.has_time_ |= group == &TextReading::time;
    pattern.has_step_ |= group == &TextReading::step;
    pattern.has_pid_ |= group == &TextReading::pid;
  }
  if (!used && !(free && total)) return wrong("it has no group named used, allocated or reserved, nor free and total");
  pattern.groups_ = std::move(groups);
  return pattern;
}

bool LinePattern::read(std::string_view line, TextReading& out) {
  if (line.size() > kLongestLine || !regex_.find(line, found_)) return false;
  out = {};
  for (std::size_t i = 0; i < groups_.size() && i + 1 < found_.size(); ++i)
    if (groups_[i] != nullptr) out.*groups_[i] = found_[i + 1];
  return true;
}

}  // namespace vramtrack
