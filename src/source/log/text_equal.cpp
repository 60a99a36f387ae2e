// What was taken from a log of free text, in words and as a --line-pattern.
#include <fmt/format.h>

#include <algorithm>

#include "source/log/text_plan.hpp"

namespace vramtrack {
namespace {

using logtext::excerpt;
using logtext::trim;

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (std::string_view("\\^$.|?*+()[]{}/").find(c) != std::string_view::npos) out += '\\';
    out += c;
  }
  return out;
}

std::string_view group_of(Meaning role) {
  switch (role) {
    case Meaning::total:
      return "total";
    case Meaning::free:
      return "free";
    case Meaning::allocated:
      return "allocated";
    case Meaning::reserved:
      return "reserved";
    default:
      return "used";
  }
}

/// The pattern that reads from lines like `line` what the plan reads from it; empty: there is none.
std::string pattern_of(const HeadLine& line, const WordPlan& plan) {
  std::string out;
  const auto add = [&](std::size_t begin, std::string_view word, std::string_view group, std::string_view value) {
    if (!out.empty()) out += ".*?";
    const bool stands_before = !word.empty() && word.data() < line.text.data() + begin;
    if (stands_before) out += escaped(word) + "[^0-9]*";
    out += fmt::format("(?<{}>{})", group, value);
    if (!stands_before && !word.empty()) out += " *" + escaped(word);
  };
  struct Part {
    std::size_t begin;
    std::string_view word;
    std::string_view group;
    std::string value;
  };
  std::vector<Part> parts;
  if (plan.counted)
    for (const LineCount& count : line.found.counts) {
      if (count.meaning != *plan.counted) continue;
      const std::string_view digits = std::string_view(line.text).substr(count.begin, count.end - count.begin);
      if (!std::all_of(digits.begin(), digits.end(), logtext::is_digit)) return {};  // "1,200"
      parts.push_back({count.begin, count.word, "step", "[0-9]+"});
    }
  for (const MemoryFigure& f : line.found.figures) {
    if (!plan.takes(f)) continue;
    const std::string_view amount = std::string_view(line.text).substr(f.begin, f.end - f.begin);
    const std::size_t digits = std::min(amount.find_first_not_of("0123456789.,"), amount.size());
    const std::string_view unit = trim(amount.substr(digits));
    parts.push_back(
        {f.begin, f.word, group_of(f.role), unit.empty() ? std::string("[0-9.]+") : "[0-9.,]+ *" + escaped(unit)});
  }
  std::sort(parts.begin(), parts.end(), [](const Part& a, const Part& b) { return a.begin < b.begin; });
  std::set<std::string_view> groups;
  for (const Part& part : parts) {
    if (!groups.insert(part.group).second) return {};  // several GPUs in a line
    add(part.begin, part.word, part.group, part.value);
  }
  return out;
}

}  // namespace

std::string equal_pattern(const Head& head, const WordPlan& plan) {
  std::vector<std::string> alternatives;
  if (plan.prefix_is_gpu || plan.heads_name_gpu) return {};
  for (const HeadLine& line : head.lines) {
    if (line.is_row || line.found.gpu >= 0) return {};
    std::string one = pattern_of(line, plan);
    if (one.empty()) continue;
    if (std::find(alternatives.begin(), alternatives.end(), one) == alternatives.end()) alternatives.push_back(one);
    if (alternatives.size() > 6) return {};
  }
  std::string out;
  for (const std::string& one : alternatives) out += (out.empty() ? "" : "|") + one;
  return out;
}

std::string read_as(const Head& head, const WordPlan& plan) {
  std::string out = "read as: ";
  if (plan.counted)
    out += fmt::format("{}s for time", count_word(*plan.counted));
  else if (head.stamped == 0)
    out += "no time";
  else
    out += head.lines.front().found.stamp.empty() && head.lines.front().found.minute.empty() ? "time on an earlier line"
                                                                                             : "time in the line";
  std::map<Meaning, std::string> said;
  for (const HeadLine& line : head.lines)
    for (const MemoryFigure& f : line.found.figures) {
      if (!plan.takes(f) || said.contains(f.role)) continue;
      const std::string_view amount = std::string_view(line.text).substr(f.begin, f.end - f.begin);
      const std::string by = f.word.empty() ? std::string() : fmt::format(" by '{}'", f.word);
      said[f.role] =
          fmt::format("{} memory{} ('{}')", f.percent ? "used part of the" : group_of(f.role), by, excerpt(amount, 24));
    }
  for (const auto& [role, words] : said) out += ", " + words;
  return out;
}

}  // namespace vramtrack
