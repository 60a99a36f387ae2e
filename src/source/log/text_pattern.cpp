// Cuts a line by --line-pattern: its groups are the figures, their time and their owner.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/option.hpp"
#include "source/log/line_pattern.hpp"
#include "source/log/line_start.hpp"
#include "source/log/text_plan.hpp"

namespace vramtrack {
namespace {

using logtext::trim;

/// Reads `text`, a part of `line`, as people write amounts: see find_figures(). False: it is none.
bool read_figure(std::string_view line, std::string_view text, Grouping grouping, MemoryFigure& out) {
  const std::size_t digits = std::min(text.find_first_not_of("0123456789.,"), text.size());
  const std::string_view unit = trim(text.substr(digits));
  out.begin = static_cast<std::size_t>(text.data() - line.data());
  out.digits_end = out.begin + digits;
  out.end = out.begin + text.size();
  out.percent = out.role == Meaning::used && unit == "%";
  out.unit_bytes = written_unit(unit);
  if (logtext::Decimal plain; out.unit_bytes == 0 && !out.percent && digits < text.size()) {  // "1.2e9"
    if (!logtext::read_decimal(text, plain) || plain.length != text.size()) return false;
    out.number = plain.value();
    return out.number >= 0;
  }
  const std::string_view number = text.substr(0, digits);
  out.number = read_number(number, out.unit_bytes, grouping);
  out.is_open =
      (out.unit_bytes != 0 || grouping == Grouping::by_dot) && is_open_number(number, out.unit_bytes) && !out.percent;
  return out.number >= 0;
}

std::string_view first_of(std::string_view a, std::string_view b) {
  return trim(a.empty() ? b : a);
}

}  // namespace

void LineCutter::cut_by_pattern(std::string_view line, Grouping grouping, LineFigures& out) {
  out = {};
  fault_ = {};
  matches_ = pattern_->read(line, groups_);
  if (!pattern_->has_time() && !pattern_->has_step())
    out.stamp = find_stamp(line);
  else if (matches_)
    out.stamp = first_of(groups_.time, groups_.step);
  if (!matches_) return;
  out.tag = first_of(groups_.uuid, groups_.gpu);
  out.pid = logtext::whole_number<std::uint32_t>(trim(groups_.pid));
  if (!groups_.pid.empty() && !out.pid) fault_ = "no readable pid";
  for (const auto& [role, group] : {std::pair(Meaning::used, groups_.used),
                                    {Meaning::total, groups_.total},
                                    {Meaning::free, groups_.free},
                                    {Meaning::allocated, groups_.allocated},
                                    {Meaning::reserved, groups_.reserved}}) {
    const std::string_view text = trim(group);
    if (text.empty() || logtext::is_missing(text)) continue;
    MemoryFigure& f = out.figures.emplace_back();
    f.role = role;
    f.has_role_word = f.is_of_gpu = f.is_memory = true;
    f.word = line;  // whose language shows how its numbers are grouped
    if (read_figure(line, text, grouping, f)) continue;
    fault_ = "no readable amount";
    out.figures.pop_back();
  }
}

void LineCutter::name(TextFigures& out) const {
  constexpr int kMostGpus = 4096;
  out.pid = logtext::whole_number<std::uint32_t>(trim(groups_.pid));
  out.is_named = !groups_.gpu.empty() || !groups_.uuid.empty();
  out.gpu.uuid = trim(groups_.uuid);
  const std::string_view text = trim(groups_.gpu);
  const auto index = logtext::whole_number<int>(text);
  if (index && *index >= 0 && *index < kMostGpus)
    out.gpu.index = *index;
  else if (text.empty())
    out.gpu.index = 0;
  else
    out.gpu.text = text;
  out.name = trim(groups_.name);
  out.user = trim(groups_.user);
  if (!out.pid) out.gpu.name = out.name;
}

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
