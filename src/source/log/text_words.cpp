// Lines of free text, read by the words and units next to their figures: make_word_lines(). Which figures are meant is
// determined once from the head; then those are read from each line.
#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <map>
#include <set>

#include "core/option.hpp"
#include "core/units.hpp"
#include "source/log/stamp.hpp"
#include "source/log/stamp_search.hpp"
#include "source/log/table_rows.hpp"
#include "source/log/text_lines.hpp"
#include "source/log/unit.hpp"

namespace vramtrack {
namespace {

using logtext::excerpt;
using logtext::trim;

/// Which figures are meant, according to the head.
struct WordPlan {
  std::set<Meaning> roles;           ///< of the figures that are read
  bool said_only = false;            ///< figures without a word for used memory are not used memory
  bool percents = false;             ///< read percentages, for want of amounts
  bool peaks = false;                ///< read peaks, for want of others
  std::optional<std::string> label;  ///< of used memory, if other labels are skipped
  std::optional<Meaning> counted;    ///< what is counted in place of time
  bool prefix_is_gpu = false;        ///< "trainer-0 |", "0:" identify GPUs
  bool heads_name_gpu = false;       ///< a line "GPU 1:" names the GPU of the lines after it
  bool in_blocks = false;
  bool minutes = false;                     ///< lines begin with hours and minutes
  bool unclear = false;                     ///< read LineFigures::unclear, for want of others
  std::uint64_t unit_bytes = kBytesPerMiB;  ///< of figures without a unit
  bool unit_unknown = false;
  Grouping grouping = Grouping::by_comma;
  std::uint64_t open_unit_bytes = 0;  ///< of figures such as "4.000 MB", if nothing shows what they are
  std::string read_as;                ///< for people

  [[nodiscard]] bool takes(const MemoryFigure& f) const {
    if (f.percent) return percents && f.role == Meaning::used;
    if (f.role == Meaning::peak) return peaks;
    if (!roles.contains(f.role)) return false;
    if (f.role == Meaning::used && said_only && !f.is_said) return false;
    return f.role != Meaning::used || !label || *label == f.label;
  }
  [[nodiscard]] std::uint64_t bytes(MemoryFigure f) const {
    if (f.is_open && open_unit_bytes != 0) f.unit_bytes = open_unit_bytes;
    return f.bytes(unit_bytes);
  }
};

std::optional<std::uint64_t> count_of(const LineFigures& line, Meaning meaning) {
  for (const LineCount& count : line.counts)
    if (count.meaning == meaning) return count.value;
  return std::nullopt;
}

class WordLines final : public TextLines {
 public:
  WordLines(WordPlan plan, StampReader stamp, std::vector<std::string> assumptions)
      : TextLines(std::move(stamp), std::move(assumptions)), plan_(std::move(plan)) {}

  void finish(LogRows& rows) override {
    TextLines::finish(rows);
    rows.warn(
        fmt::format("{}; {} other line{} skipped{}", plan_.read_as, skipped_, skipped_ == 1 ? "" : "s", pattern_));
  }
  void set_pattern(std::string text) { pattern_ = std::move(text); }

 private:
  void read_line(std::string_view raw, std::uint64_t number, bool whole, LogRows& rows) override {
    if (!whole) return;
    const std::string_view line = table_.line(raw);
    find_figures(line, found_, plan_.grouping);
    if (plan_.unclear) found_.figures.swap(found_.unclear);
    if (plan_.counted) {
      const auto count = count_of(found_, *plan_.counted);  // as a plain number: "1,200" is written otherwise
      read_time(count ? std::to_string(*count) : std::string(), rows);
    } else {
      read_time(found_.stamp.empty() && plan_.minutes ? found_.minute : found_.stamp, rows);
    }
    const bool has_figures = std::any_of(found_.figures.begin(), found_.figures.end(),
                                         [&](const MemoryFigure& f) { return plan_.takes(f); });
    if (!has_figures) {
      if (plan_.heads_name_gpu && found_.gpu >= 0) head_gpu_ = found_.gpu;
      if (!trim(line).empty()) ++skipped_;
      return;
    }
    // Figures of one GPU make one reading; each GPU of the line has its own.
    std::vector<int> gpus;
    for (const MemoryFigure& f : found_.figures)
      if (plan_.takes(f) && std::find(gpus.begin(), gpus.end(), f.gpu) == gpus.end()) gpus.push_back(f.gpu);
    for (const int gpu : gpus) {
      TextFigures out;
      out.line = number;
      name(out, gpu);
      for (const MemoryFigure& f : found_.figures) {
        if (f.gpu != gpu || !plan_.takes(f)) continue;
        if (f.percent) {
          out.percent = f.number;
          continue;
        }
        const std::uint64_t bytes = plan_.bytes(f);
        switch (f.role) {
          case Meaning::total:
            out.total = bytes;
            break;
          case Meaning::free:
            out.free = bytes;
            break;
          case Meaning::allocated:
            out.allocated = bytes;
            break;
          case Meaning::reserved:
            out.reserved = bytes;
            break;
          default:
            out.used = bytes;
            break;
        }
      }
      take(std::move(out), rows);
    }
  }

  void name(TextFigures& out, int gpu) const {
    out.is_named = true;
    if (plan_.prefix_is_gpu && !found_.prefix.empty()) {
      const auto index = logtext::whole_number<int>(found_.prefix);
      if (index) {
        out.gpu.index = *index;
      } else {
        out.gpu.text = found_.prefix;
        if (gpu >= 0) out.gpu.text += '/' + std::to_string(gpu);
      }
    } else if (gpu >= 0) {
      out.gpu.index = gpu;
    } else if (plan_.heads_name_gpu && head_gpu_ >= 0) {
      out.gpu.index = head_gpu_;
    } else {
      out.is_named = false;
    }
  }

  WordPlan plan_;
  std::string pattern_;
  TableRows table_;
  LineFigures found_;
  int head_gpu_ = -1;
  std::uint64_t skipped_ = 0;
};

/// One line of the head that has figures, and what came before it.
struct HeadLine {
  std::uint64_t number = 0;
  std::string text;
  LineFigures found;
  std::map<Meaning, std::uint64_t> counts;  ///< of this line, or the last before it
  std::string stamp;                        ///< likewise
  std::string minute;                       ///< likewise: LineFigures::minute
  std::uint64_t minute_line = 0;            ///< on which that stands
  int head_gpu = -1;                        ///< of the last line that names a GPU and has no figures
  bool is_row = false;                      ///< of a table
};

struct Head {
  std::deque<HeadLine> lines;  ///< never moved: other data are views into them
  std::size_t stamped = 0;     ///< of them, those with a time in the line or before it
  std::size_t heads = 0;       ///< lines that name a GPU and have no figures
  std::string first;           ///< line with anything in it
};

constexpr std::size_t kMostLines = 4000;

Head survey(std::string_view text, bool unclear, Grouping grouping = Grouping::by_comma) {
  Head out;
  TableRows table;
  std::map<Meaning, std::uint64_t> counts;
  std::string stamp;
  std::string minute;
  std::uint64_t minute_line = 0;
  int head_gpu = -1;
  for (std::uint64_t number = 1; !text.empty() && out.lines.size() < kMostLines; ++number) {
    const std::string_view raw = logtext::take_line(text);
    HeadLine& line = out.lines.emplace_back();
    line.text = table.line(raw);
    line.is_row = table.in_table();
    line.number = number;
    if (out.first.empty()) out.first = trim(raw);
    if (tells_out_of_memory(raw)) {  // not read as a line of figures
      out.lines.pop_back();
      continue;
    }
    find_figures(line.text, line.found, grouping);
    if (unclear) line.found.figures.swap(line.found.unclear);
    if (!line.found.stamp.empty()) stamp = line.found.stamp;
    if (!line.found.minute.empty()) {
      minute = line.found.minute;
      minute_line = number;
    }
    for (const LineCount& count : line.found.counts) counts[count.meaning] = count.value;
    if (line.found.figures.empty()) {
      out.heads += line.found.gpu >= 0 ? 1 : 0;
      if (line.found.gpu >= 0) head_gpu = line.found.gpu;
      out.lines.pop_back();
      continue;
    }
    line.counts = counts;
    line.head_gpu = head_gpu;
    line.stamp = stamp;
    line.minute = minute;
    line.minute_line = minute_line;
    out.stamped += stamp.empty() ? 0U : 1U;
  }
  return out;
}

std::string how_to_say() {
  return fmt::format("describe a line with {0}, for example {0} 'memory used: (?<used>[0-9.]+ *GB)'",
                     name_of(Option::line_pattern));
}

/// What is counted in place of time: the count that rises and never falls; if there are several, the one that rises
/// most often.
std::optional<Meaning> find_count(const Head& head) {
  std::optional<Meaning> best;
  std::size_t most = 0;
  for (const Meaning meaning : {Meaning::step, Meaning::iteration, Meaning::request, Meaning::batch, Meaning::epoch}) {
    std::size_t rises = 0;
    std::size_t lines = 0;
    bool falls = false;
    std::optional<std::uint64_t> last;
    for (const HeadLine& line : head.lines) {
      const auto it = line.counts.find(meaning);
      if (it == line.counts.end()) continue;
      ++lines;
      falls |= last && it->second < *last;
      rises += last && it->second > *last ? 1U : 0U;
      last = it->second;
    }
    if (!falls && rises > most && lines * 10 >= head.lines.size() * 9) {
      most = rises;
      best = meaning;
    }
  }
  return best;
}

/// Whether prefixes identify programs: there are several, and each one repeats.
bool prefixes_differ(const Head& head) {
  std::map<std::string_view, std::size_t> seen;
  for (const HeadLine& line : head.lines) ++seen[line.found.prefix];
  if (seen.size() < 2 || seen.contains({})) return false;
  return std::all_of(seen.begin(), seen.end(), [](const auto& p) { return p.second >= 2; }) &&
         seen.size() * 3 <= head.lines.size();
}

/// Decides which figures of used memory are meant if their labels differ. Phases that follow one another ("before
/// load", "during load") are one quantity; two labels that alternate, or are in one line, may be two quantities.
Status settle_labels(const Head& head, WordPlan& plan) {
  struct Seen {
    std::size_t lines = 0;
    const HeadLine* first = nullptr;
  };
  std::map<std::string, Seen> labels;
  std::string last;
  std::size_t switches = 0;
  std::size_t readings = 0;
  std::size_t together = 0;
  const HeadLine* double_line = nullptr;
  for (const HeadLine& line : head.lines) {
    std::map<int, std::set<std::string>> of_gpu;
    for (const MemoryFigure& f : line.found.figures) {
      if (f.percent || f.role != Meaning::used || !plan.takes(f)) continue;
      if (!of_gpu[f.gpu].insert(f.label).second || of_gpu[f.gpu].size() > 1)
        if (double_line == nullptr) double_line = &line;
      Seen& seen = labels[f.label];
      if (seen.lines++ == 0) seen.first = &line;
      switches += readings > 0 && f.label != last ? 1U : 0U;
      last = f.label;
      ++readings;
    }
    if (std::any_of(of_gpu.begin(), of_gpu.end(), [](const auto& g) { return g.second.size() > 1; })) ++together;
  }
  if (double_line != nullptr && together * 4 >= head.lines.size())
    return fail(fmt::format("line {} has several figures of used memory, but nothing says which is meant: '{}'; {}",
                            double_line->number, excerpt(double_line->text, 120), how_to_say()));
  if (labels.size() < 2 || readings < 6) return {};
  std::vector<std::pair<std::size_t, std::string>> by_size;
  for (const auto& [label, seen] : labels) by_size.emplace_back(seen.lines, label);
  std::sort(by_size.rbegin(), by_size.rend());
  // The labels contain free text (a name, a phase): then they do not stand for different quantities.
  constexpr std::size_t kFewLabels = 8;
  if (labels.size() > kFewLabels && by_size[0].first * 2 < readings) return {};
  const std::size_t few = by_size[1].first;
  if (few < 3 || switches * 2 < few) return {};  // phases, or single lines
  if (few * 4 >= by_size[0].first)
    return fail(fmt::format("lines such as {} '{}' and {} '{}' alternate, and both may be the used memory; {}",
                            labels[by_size[0].second].first->number, excerpt(labels[by_size[0].second].first->text, 80),
                            labels[by_size[1].second].first->number, excerpt(labels[by_size[1].second].first->text, 80),
                            how_to_say()));
  plan.label = by_size[0].second;
  return {};
}

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

/// The pattern of all kinds of lines, as alternatives.
std::string pattern_of(const Head& head, const WordPlan& plan) {
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

}  // namespace

std::size_t count_word_lines(std::string_view head, std::size_t most) {
  constexpr std::size_t kLooked = 4000;
  LineFigures found;
  TableRows table;
  std::size_t lines = 0;
  for (std::size_t i = 0; i < kLooked && !head.empty() && lines < most; ++i) {
    find_figures(table.line(logtext::take_line(head)), found);
    lines += found.figures.empty() ? 0U : 1U;
  }
  return lines;
}

bool has_unclear_lines(std::string_view head) {
  constexpr std::size_t kLooked = 4000;
  constexpr std::size_t kEnough = 3;
  LineFigures found;
  std::size_t lines = 0;
  for (std::size_t i = 0; i < kLooked && !head.empty() && lines < kEnough; ++i) {
    find_figures(logtext::take_line(head), found);
    lines += found.unclear.empty() ? 0U : 1U;
  }
  return lines == kEnough;
}

bool is_table_of_figures(std::string_view head) {
  constexpr std::size_t kFirst = 300;
  LineFigures found;
  TableRows table;
  std::size_t lines = 0;
  std::size_t figures = 0;
  for (std::size_t i = 0; i < kFirst && !head.empty(); ++i) {
    const std::string_view line = table.line(logtext::take_line(head));
    if (trim(line).empty()) continue;
    ++lines;
    if (!table.in_table()) continue;
    find_figures(line, found);
    figures += std::any_of(found.figures.begin(), found.figures.end(), [](const MemoryFigure& f) { return !f.percent; })
                   ? 1U
                   : 0U;
  }
  return figures >= 3 && figures * 2 >= lines;
}

namespace {

/// Which figures say how much is used.
Status settle_roles(const Head& all, WordPlan& plan, std::vector<std::string>& assumptions) {
  std::map<Meaning, std::size_t> amounts;
  std::size_t said = 0;
  std::size_t percents = 0;
  for (const HeadLine& line : all.lines)
    for (const MemoryFigure& f : line.found.figures) {
      if (f.percent)
        ++percents;
      else
        ++amounts[f.role];
      said += !f.percent && f.role == Meaning::used && f.is_said ? 1 : 0;
    }
  // A few lines of another kind do not count.
  const std::size_t enough = std::max<std::size_t>(2, all.lines.size() / 50);
  const auto repeats = [&](Meaning role) { return amounts.contains(role) && amounts[role] >= enough; };
  for (const Meaning role : {Meaning::used, Meaning::allocated, Meaning::reserved, Meaning::free, Meaning::total})
    if (amounts.contains(role) && (role == Meaning::total || repeats(role))) plan.roles.insert(role);
  plan.said_only = said >= enough && said * 4 >= amounts[Meaning::used];
  const bool has_use = plan.roles.contains(Meaning::used) || plan.roles.contains(Meaning::allocated) ||
                       plan.roles.contains(Meaning::reserved) ||
                       (plan.roles.contains(Meaning::free) && plan.roles.contains(Meaning::total));
  if (!has_use && repeats(Meaning::peak)) {
    plan.peaks = true;
    assumptions.emplace_back(
        "only peaks are given, which never fall: a peak that no longer rises says nothing about what is in use now");
  } else if (!has_use && percents >= enough) {
    plan.percents = true;
  } else if (!has_use) {
    const HeadLine& line = all.lines.front();
    return fail(
        fmt::format("line {} is one of {} with a figure of GPU memory, but no figure of how much is used repeats "
                    "(used, allocated, "
                    "reserved, or free and total): '{}'; {}",
                    line.number, all.lines.size(), excerpt(line.text, 100), how_to_say()));
  }
  return {};
}

/// Whether the hours and minutes with which lines begin are times of day: they do not fall, except at midnight, and
/// each is that of one reading of a GPU.
void settle_minutes(Head& all, WordPlan& plan, std::vector<std::string>& assumptions) {
  constexpr std::int64_t kHalfDay_s = 12 * 3600;
  if (all.stamped * 10 >= all.lines.size() * 9) return;
  std::size_t timed = 0;
  std::size_t written = 0;
  std::size_t repeats = 0;
  std::uint64_t last_line = 0;
  std::optional<std::int64_t> last_s;
  std::set<std::pair<std::string_view, int>> in_minute;  // prefix and GPU of the lines
  for (const HeadLine& line : all.lines) {
    Civil civil;
    if (!read_civil(line.minute, DateOrder::month_first, civil)) continue;
    ++timed;
    if (line.minute_line == last_line) continue;  // a reading of several lines
    last_line = line.minute_line;
    ++written;
    if (last_s && civil.local_s < *last_s && *last_s - civil.local_s < kHalfDay_s) return;
    if (last_s != civil.local_s) in_minute.clear();
    last_s = civil.local_s;
    const bool is_own = line.minute_line == line.number;
    if (!in_minute.emplace(is_own ? line.found.prefix : std::string_view{}, is_own ? line.found.gpu : -1).second)
      ++repeats;
  }
  if (timed * 10 < all.lines.size() * 9 || written < 3) return;
  const std::string example = all.lines.front().minute;
  if (repeats * 10 > written) {
    assumptions.push_back(
        fmt::format("times such as '{}' have no seconds, and several readings share one: they are not used", example));
    return;
  }
  if (example.starts_with("00:") || example.starts_with("0:"))
    assumptions.push_back(fmt::format(
        "times such as '{}' are read as hours and minutes; if they are minutes and seconds, write the hours "
        "in front",
        example));
  plan.minutes = true;
  all.stamped = 0;
  for (HeadLine& line : all.lines) {
    if (line.stamp.empty()) line.stamp = line.minute;
    all.stamped += line.stamp.empty() ? 0U : 1U;
  }
}

/// Whether a count takes the place of time.
Status settle_counted(const Head& all, WordPlan& plan) {
  if (all.stamped * 10 < all.lines.size() * 9) {
    if (all.stamped * 2 > all.lines.size())
      return fail(
          fmt::format("the first time in the log comes after line {}: '{}', which has a figure of memory; remove "
                      "what is before the first time",
                      all.lines.front().number, excerpt(all.lines.front().text, 80)));
    plan.counted = find_count(all);
  }
  return {};
}

/// How lines name their GPU, and whether a reading spans several lines: not all of them have the same roles then.
void settle_readings(const Head& all, WordPlan& plan) {
  std::size_t unnamed = 0;
  for (const HeadLine& line : all.lines)
    for (const MemoryFigure& f : line.found.figures) unnamed += plan.takes(f) && f.gpu < 0 ? 1U : 0U;
  plan.heads_name_gpu = all.heads >= 2 && unnamed >= all.heads;
  plan.prefix_is_gpu = prefixes_differ(all);

  std::set<std::set<Meaning>> kinds;
  for (const HeadLine& line : all.lines) {
    std::set<Meaning> roles;
    for (const MemoryFigure& f : line.found.figures)
      if (plan.takes(f)) roles.insert(f.role);
    if (!roles.empty()) kinds.insert(roles);
  }
  plan.in_blocks = kinds.size() > 1;
}

/// How numbers such as "4.000 MB" are meant. Reads the head again if it is not as was taken for granted.
Status settle_numbers(const LogHead& head, Head& all, WordPlan& plan, std::vector<std::string>& assumptions) {
  std::vector<WrittenAmount> amounts;
  std::vector<std::string_view> lines;
  std::uint64_t unit_bytes = 0;  // of the open ones
  for (const HeadLine& line : all.lines) {
    lines.emplace_back(line.text);
    for (const MemoryFigure& f : line.found.figures) {
      if (f.percent) continue;
      const std::string_view text = line.text;
      if (f.is_open) unit_bytes = std::max(unit_bytes, f.unit_bytes);
      amounts.push_back({text.substr(f.begin, f.digits_end - f.begin), f.unit_bytes, f.role == Meaning::total,
                         is_german(f.label) || is_german(f.word), std::to_string(static_cast<int>(f.role)) + f.label});
    }
  }
  SettledGrouping settled = settle_grouping(amounts, lines);
  if (settled.is_unknown && unit_bytes != 0) {  // without any unit, it is guessed by the size
    const auto given = unit_of(*head.options);
    if (!given) return fail(given.error());
    plan.open_unit_bytes = *given != 0 ? *given : 1000 * unit_bytes;
    plan.unit_unknown = *given == 0;
    if (plan.unit_unknown) assumptions.push_back(unknown_grouping(settled.example, unit_bytes));
  }
  plan.grouping = settled.grouping;
  if (plan.grouping != Grouping::by_comma) all = survey(head.text, plan.unclear, plan.grouping);
  return {};
}

/// The unit of figures without one.
Status settle_unit(const LogHead& head, const Head& all, WordPlan& plan, std::vector<std::string>& assumptions) {
  std::vector<std::string> bare;
  std::optional<double> total;
  for (const HeadLine& line : all.lines)
    for (const MemoryFigure& f : line.found.figures) {
      if (!plan.takes(f) || f.percent || f.unit_bytes != 0) continue;
      if (f.role == Meaning::total)
        total = std::max(total.value_or(0), f.number);
      else
        bare.push_back(f.is_open ? fmt::format("{}", f.number) : line.text.substr(f.begin, f.end - f.begin));
    }
  const auto given = unit_of(*head.options);
  if (!given) return fail(given.error());
  if (*given != 0) {
    plan.unit_bytes = *given;
  } else if (!bare.empty()) {
    const std::vector<std::string_view> values(bare.begin(), bare.end());
    const GuessedUnit guessed = guess_unit(values, true, head.options->capacity_bytes, total, assumptions);
    plan.unit_bytes = guessed.bytes;
    plan.unit_unknown |= guessed.is_unknown;
  }
  return {};
}

/// The count of a line, or of the last one before it; empty: there is none.
std::string count_text(const HeadLine& line, Meaning counted) {
  if (const auto count = count_of(line.found, counted)) return std::to_string(*count);
  const auto it = line.counts.find(counted);
  return it == line.counts.end() ? std::string() : std::to_string(it->second);
}

/// The clock, from the times or counts as they will be read.
Result<StampReader> settle_clock(const LogHead& head, const Head& all, const WordPlan& plan,
                                 std::vector<std::string>& assumptions) {
  std::vector<std::string> texts;
  for (const HeadLine& line : all.lines) {
    if (plan.counted) {
      if (std::string text = count_text(line, *plan.counted); !text.empty()) texts.push_back(std::move(text));
    } else if (!line.stamp.empty()) {
      texts.emplace_back(line.stamp);
    }
  }
  if (texts.empty()) return StampReader::of_readings(*head.options, assumptions);
  StampReader::Title title;
  title.step = plan.counted.has_value();
  if (plan.counted) title.counts = count_word(*plan.counted);
  const std::vector<std::string_view> samples(texts.begin(), texts.end());
  return StampReader::detect(samples, title, *head.options, *head.zone, assumptions);
}

/// The readings, each by the figure of one role.
std::vector<PlacedReading> placed_readings(const Head& all, const WordPlan& plan) {
  std::vector<PlacedReading> readings;
  std::optional<Meaning> by;  // in blocks one role is enough to count by: that of the first reading
  for (const HeadLine& line : all.lines) {
    std::set<int> seen;
    for (const Meaning role : {Meaning::used, Meaning::allocated, Meaning::reserved, Meaning::free, Meaning::peak})
      for (const MemoryFigure& f : line.found.figures) {
        if (f.role != role || !plan.takes(f) || (plan.in_blocks && by.value_or(role) != role)) continue;
        if (!seen.insert(f.gpu).second) continue;
        by = role;
        std::string gpu = plan.prefix_is_gpu ? std::string(line.found.prefix) : std::string();
        if (f.gpu >= 0)
          gpu += (gpu.empty() ? "" : "/") + std::to_string(f.gpu);
        else if (plan.heads_name_gpu && gpu.empty())
          gpu = std::to_string(line.head_gpu);
        readings.push_back({plan.counted ? count_text(line, *plan.counted) : line.stamp, f.number, line.number, gpu});
      }
  }
  return readings;
}

}  // namespace

Result<std::unique_ptr<LogParser>> make_word_lines(const LogHead& head) {
  Head all = survey(head.text, false);
  const bool unclear = all.lines.empty();
  if (unclear) all = survey(head.text, true);
  if (all.lines.empty())
    return fail(fmt::format(
        "no line has a figure of GPU memory: a number with a unit (MiB, GB, %) or beside words such as 'memory used', "
        "'allocated', 'VRAM' (also in Chinese, Japanese, Korean and German); the first line is '{}'; {}",
        excerpt(all.first, 100), how_to_say()));

  WordPlan plan;
  plan.unclear = unclear;
  std::vector<std::string> assumptions;
  if (unclear)
    assumptions.push_back(fmt::format("nothing says whose memory '{}' is: it is assumed to be that of a GPU",
                                      excerpt(all.lines.front().found.figures.front().label)));
  if (Status ok = settle_roles(all, plan, assumptions); !ok) return fail(std::move(ok.error()));
  if (Status ok = settle_labels(all, plan); !ok) return fail(std::move(ok.error()));
  if (Status ok = settle_numbers(head, all, plan, assumptions); !ok) return fail(std::move(ok.error()));
  settle_minutes(all, plan, assumptions);
  if (Status ok = settle_counted(all, plan); !ok) return fail(std::move(ok.error()));
  settle_readings(all, plan);
  if (Status ok = settle_unit(head, all, plan, assumptions); !ok) return fail(std::move(ok.error()));
  auto stamp = settle_clock(head, all, plan, assumptions);
  if (!stamp) return fail(std::move(stamp.error()));
  const std::vector<PlacedReading> readings = placed_readings(all, plan);
  const auto places = count_places(readings, *stamp, assumptions);
  if (!places) return fail(places.error());

  if (plan.percents && !head.options->capacity_bytes && !plan.roles.contains(Meaning::total))
    assumptions.push_back(nominal_scale("the used memory is a percentage"));
  plan.read_as = read_as(all, plan);
  // A pattern calls a count a step: several readings of one epoch are of one GPU, and those of one step of several.
  const bool share_epochs = plan.counted == Meaning::epoch && *places == 1 &&
                            std::adjacent_find(readings.begin(), readings.end(), [](const auto& a, const auto& b) {
                              return a.stamp == b.stamp && a.gpu == b.gpu;
                            }) != readings.end();
  const std::string pattern = share_epochs ? std::string() : pattern_of(all, plan);
  const bool unknown = plan.unit_unknown;
  const std::uint64_t unit = plan.open_unit_bytes != 0 ? plan.open_unit_bytes : plan.unit_bytes;
  const bool in_blocks = plan.in_blocks;
  auto parser = std::make_unique<WordLines>(std::move(plan), std::move(*stamp), std::move(assumptions));
  parser->expect_places(*places);
  parser->set_percent_bytes(head.options->capacity_bytes ? static_cast<double>(*head.options->capacity_bytes) / 100
                                                         : static_cast<double>(kBytesPerGiB));
  if (in_blocks) parser->expect_blocks();
  if (unknown) parser->set_unit_unknown(unit);
  if (!pattern.empty())
    parser->set_pattern(fmt::format("; to correct it: {} '{}'", name_of(Option::line_pattern), pattern));
  else
    parser->set_pattern(fmt::format("; if that is wrong, describe a line with {}", name_of(Option::line_pattern)));
  return parser;
}

}  // namespace vramtrack
