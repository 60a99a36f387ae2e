// Decides once, from the head of a log of free text, which of its figures are meant.
#include "source/log/text_plan.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/option.hpp"
#include "source/log/stamp.hpp"
#include "source/log/unit.hpp"

namespace vramtrack {
namespace {

using logtext::excerpt;

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

Result<PlannedText> plan_text(const LogHead& head, Head& all, bool unclear, std::vector<std::string>& assumptions) {
  WordPlan plan;
  plan.unclear = unclear;
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
  // A pattern calls a count a step: several readings of one epoch are of one GPU, and those of one step of several.
  const bool share_epochs = plan.counted == Meaning::epoch && *places == 1 &&
                            std::adjacent_find(readings.begin(), readings.end(), [](const auto& a, const auto& b) {
                              return a.stamp == b.stamp && a.gpu == b.gpu;
                            }) != readings.end();
  return PlannedText{std::move(plan), std::move(*stamp), *places, share_epochs};
}

}  // namespace vramtrack
