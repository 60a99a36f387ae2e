// Describes what was read from a free-text log, in words and as a --line-pattern.
#include <fmt/format.h>

#include <algorithm>

#include "core/format.hpp"
#include "source/log/line_pattern.hpp"
#include "source/log/line_prefix.hpp"
#include "source/log/line_start.hpp"
#include "source/log/text_plan.hpp"

namespace vramtrack {
namespace {

using logtext::excerpt;
using logtext::trim;

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

/// The text before a figure, back to the previous amount: the whole label, in case its word alone also occurs
/// elsewhere.
std::string_view whole_label(std::string_view line, std::size_t begin) {
  std::size_t from = begin;
  while (from > 0 && !logtext::is_digit(line[from - 1])) --from;
  std::string_view label = line.substr(from, begin - from);
  // "MB, current memory allocated: ": the unit belongs to the previous amount.
  const std::string_view unit = label.substr(0, std::min(label.find_first_of(",;|)]}"), label.size()));
  if (from > 0 && written_unit(trim(unit)) != 0) label.remove_prefix(unit.size());
  label.remove_prefix(std::min(label.find_first_not_of(" ,;|)]}\t"), label.size()));
  return label.substr(0, label.find_last_not_of(" :=") + 1);
}

/// "trainer-0" and similar prefixes, which identify the GPU.
std::string prefix_pattern(const HeadLine& line) {
  const std::string_view prefix = line.found.prefix;
  if (line.text.starts_with("[pod/")) return "^\\[pod/(?<gpu>[^\\]]+)\\]";
  if (std::all_of(prefix.begin(), prefix.end(), logtext::is_digit)) return "^ *(?<gpu>[0-9]+): ";
  return "^ *(?<gpu>[^ :=%|]+) *\\|";
}

/// The pattern that reads from lines like `line` what the plan reads from it; empty: none. `by_label`: uses whole
/// labels instead of the words that give a figure's role.
std::string pattern_of(const HeadLine& line, const WordPlan& plan, bool by_label) {
  const std::string_view text = line.text;
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
      const std::string_view digits = text.substr(count.begin, count.end - count.begin);
      if (!std::all_of(digits.begin(), digits.end(), logtext::is_digit)) return {};  // "1,200"
      parts.push_back({count.begin, count.word, "step", "[0-9]+"});
    }
  for (const MemoryFigure& f : line.found.figures) {
    if (!plan.takes(f)) continue;
    if (f.gpu != line.found.gpu || plan.ratios || plan.free_percents) return {};
    const std::string_view amount = text.substr(f.begin, f.end - f.begin);
    const std::size_t digits = std::min(amount.find_first_not_of("0123456789.,"), amount.size());
    const std::string_view unit = trim(amount.substr(digits));
    const std::string_view label = by_label ? whole_label(text, f.begin) : std::string_view{};
    parts.push_back({f.begin, label.empty() ? f.word : label, group_of(f.role),
                     unit.empty() ? std::string("[0-9.]+") : "[0-9.,]+ *" + quoted_for_pattern(unit)});
  }
  if (parts.empty()) return {};
  if (plan.minutes || plan.elapsed) {
    const std::string_view time = plan.minutes ? line.found.minute : line.found.elapsed.text;
    if (time.empty()) return {};  // it is on an earlier line
    if (plan.elapsed && time.find_first_not_of("0123456789.") != std::string_view::npos) return {};  // "0.5 min"
    parts.push_back({static_cast<std::size_t>(time.data() - text.data()),
                     {},
                     "time",
                     plan.minutes ? "[0-9]{1,2}:[0-9]{2}" : "[0-9.]+"});
  }
  if (plan.pid_is_process) parts.push_back({line.found.pid_begin, line.found.pid_word, "pid", "[0-9]+"});
  if (!line.found.uuid.empty())
    parts.push_back({static_cast<std::size_t>(line.found.uuid.data() - text.data()),
                     {},
                     "uuid",
                     std::string(line.found.uuid.substr(0, 4)) + "[0-9A-Fa-f-]{36}"});
  else if (!line.found.tag.empty())
    parts.push_back({static_cast<std::size_t>(line.found.tag.data() - text.data()),
                     {},
                     {},
                     field_pattern({plan.tag, line.found.tag})});
  else if (line.found.gpu >= 0)
    parts.push_back({line.found.gpu_begin, line.found.gpu_word, "gpu", "[0-9]+"});
  std::sort(parts.begin(), parts.end(), [](const Part& a, const Part& b) { return a.begin < b.begin; });
  std::string out = plan.prefix_is_gpu ? prefix_pattern(line) : std::string();
  std::set<std::string_view> groups;
  for (const Part& part : parts) {
    if (!groups.insert(part.group).second) return {};  // several GPUs in a line
    if (!out.empty()) out += ".*?";
    if (part.group.empty()) {  // of a field, which has its own group
      out += part.value;
      continue;
    }
    const bool stands_before = !part.word.empty() && part.word.data() < text.data() + part.begin;
    if (stands_before) out += quoted_for_pattern(part.word) + "[^0-9]*";
    out += fmt::format("(?<{}>{})", part.group, part.value);
    if (!stands_before && !part.word.empty()) out += " *" + quoted_for_pattern(part.word);
  }
  return out;
}

/// The time or the count of a line, as the plan reads it.
std::string_view time_of(const HeadLine& line, const WordPlan& plan) {
  if (plan.minutes) return line.found.minute;
  if (plan.elapsed) return line.found.elapsed.text;
  if (!plan.counted) return plan.no_stamps ? std::string_view{} : line.found.stamp;
  const auto it = std::find_if(line.found.counts.rbegin(), line.found.counts.rend(),
                               [&](const LineCount& count) { return count.meaning == *plan.counted; });
  return it == line.found.counts.rend() ? std::string_view{}
                                        : std::string_view(line.text).substr(it->begin, it->end - it->begin);
}

/// Whether `read` is what the plan reads from `line`. `by_stamp`: its pattern has no group for the time.
bool is_same(const HeadLine& line, const HeadLine& read, const WordPlan& plan, bool by_stamp) {
  const LineFigures& found = line.found;
  const auto is_read = [&](const MemoryFigure& f) {
    return std::any_of(read.found.figures.begin(), read.found.figures.end(),
                       [&](const MemoryFigure& r) { return r.role == f.role && r.begin == f.begin && r.end == f.end; });
  };
  std::size_t taken = 0;
  for (const MemoryFigure& f : found.figures) {
    if (!plan.takes(f)) continue;
    if (!is_read(f)) return false;
    ++taken;
  }
  const std::string_view time = time_of(line, plan);
  const bool is_timed_alike = by_stamp ? read.found.stamp.empty() == time.empty() && read.found.stamp.starts_with(time)
                                       : read.found.stamp == time;
  const std::string_view origin = plan.origin(found);
  const std::string_view gpu = !origin.empty() || found.gpu < 0 ? origin
                                                                : std::string_view(line.text).substr(
                                                                      found.gpu_begin, found.gpu_end - found.gpu_begin);
  return taken == read.found.figures.size() && is_timed_alike && read.found.tag == gpu &&
         read.found.pid == (plan.pid_is_process ? found.pid : std::nullopt);
}

/// Whether `pattern` reads from each line of `text` what the plan reads, and nothing from other lines.
bool reads_the_same(const std::string& pattern, std::string_view text, const Head& head, const WordPlan& plan) {
  auto compiled = LinePattern::compile(pattern);
  if (!compiled) return false;
  const bool by_stamp = !compiled->has_time() && !compiled->has_step();
  const Head read = survey(text, LineCutter(std::move(*compiled)), false);
  auto next = read.lines.begin();
  for (const HeadLine& line : head.lines) {
    if (!plan.takes_any(line.found)) continue;
    if (next == read.lines.end() || next->number != line.number || !is_same(line, *next++, plan, by_stamp))
      return false;
  }
  return next == read.lines.end() || head.lines.empty() || next->number > head.lines.back().number;
}

/// The pattern for all kinds of lines, as alternatives.
std::string pattern_of(const Head& head, const WordPlan& plan, bool by_label) {
  constexpr std::size_t kMostKinds = 6;
  std::vector<std::string> alternatives;
  for (const HeadLine& line : head.lines) {
    std::string one = pattern_of(line, plan, by_label);
    if (one.empty() || std::find(alternatives.begin(), alternatives.end(), one) != alternatives.end()) continue;
    alternatives.push_back(std::move(one));
    if (alternatives.size() > kMostKinds) return {};
  }
  return fmt::format("{}", fmt::join(alternatives, "|"));
}

/// Whether a line has the time that is read.
bool is_timed(const HeadLine& line, const WordPlan& plan) {
  if (plan.elapsed) return !line.found.elapsed.text.empty();
  return !line.found.stamp.empty() || (plan.minutes && !line.found.minute.empty());
}

}  // namespace

std::string equal_pattern(std::string_view text, const Head& head, const WordPlan& plan) {
  const bool in_table = std::any_of(head.lines.begin(), head.lines.end(), [](const HeadLine& l) { return l.is_row; });
  if (in_table || plan.heads_name_gpu || plan.count_in_epochs) return {};
  for (const bool by_label : {false, true}) {
    std::string pattern = pattern_of(head, plan, by_label);
    if (!pattern.empty() && reads_the_same(pattern, text, head, plan)) return pattern;
  }
  return {};
}

std::string read_as(const Head& head, const WordPlan& plan) {
  std::string out = "read as: ";
  if (plan.counted)
    out += fmt::format("{} for time", plural(count_word(*plan.counted)));
  else if (head.stamped == 0)
    out += "no time";
  else
    out += is_timed(head.lines.front(), plan) ? "time in the line" : "time on an earlier line";
  std::map<Meaning, std::string> read;
  for (const HeadLine& line : head.lines)
    for (const MemoryFigure& f : line.found.figures) {
      if (!plan.takes(f) || read.contains(f.role)) continue;
      const std::string_view amount = std::string_view(line.text).substr(f.begin, f.end - f.begin);
      const std::string by = f.word.empty() ? std::string() : fmt::format(" by '{}'", f.word);
      read[f.role] = fmt::format("{} memory{} ('{}')",
                                 plan.free_percents ? "free part of the"
                                 : f.percent        ? "used part of the"
                                                    : group_of(f.role),
                                 by, excerpt(amount, 24));
    }
  for (const auto& [role, words] : read) out += ", " + words;
  return out;
}

}  // namespace vramtrack
