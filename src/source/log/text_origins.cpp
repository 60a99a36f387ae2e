// Determines the origin of the readings in a free-text log: GPUs, programs and phases of programs.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <tuple>
#include <utility>

#include "core/option.hpp"
#include "source/log/columns.hpp"
#include "source/log/labels.hpp"
#include "source/log/line_numbers.hpp"
#include "source/log/line_prefix.hpp"
#include "source/log/owners.hpp"
#include "source/log/text_plan.hpp"
#include "source/log/unnamed_gpus.hpp"

namespace vramtrack {
namespace {

using logtext::excerpt;

/// The words of a line: equal for lines that one statement of a program writes.
std::string shape_of(const HeadLine& line) {
  std::string_view text = line.text;
  if (!line.found.stamp.empty())
    text.remove_prefix(static_cast<std::size_t>(line.found.stamp.data() + line.found.stamp.size() - text.data()));
  return label_key(text);
}

/// Whether names before the message identify programs: there are several, and each one repeats.
bool names_differ(const Head& head, std::string_view LineFigures::*name) {
  std::map<std::string_view, std::size_t> seen;
  for (const HeadLine& line : head.lines) ++seen[line.found.*name];
  if (seen.size() < 2 || seen.contains({})) return false;
  return std::all_of(seen.begin(), seen.end(), [](const auto& p) { return p.second >= 2; }) &&
         seen.size() * 3 <= head.lines.size();
}

/// Total absolute change between consecutive readings, summed over series.
class PathLength {
 public:
  void add(const std::string& series, double bytes) {
    const auto [last, is_first] = last_.emplace(series, bytes);
    sum_ += std::abs(bytes - last->second);
    last->second = bytes;
  }
  [[nodiscard]] double sum() const { return sum_; }

 private:
  std::map<std::string, double> last_;
  double sum_ = 0;
};

/// The first figure of a line that is read.
const MemoryFigure* first_figure(const HeadLine& line, const WordPlan& plan) {
  const auto it = std::find_if(line.found.figures.begin(), line.found.figures.end(), [&](const MemoryFigure& f) {
    return !f.percent && f.role != Meaning::total && plan.takes(f);
  });
  return it == line.found.figures.end() ? nullptr : &*it;
}

/// The field whose values distinguish machines, programs or threads with their own GPUs; empty: none. Threads of one
/// program that write about one GPU take turns in one series: the path from line to line is then no longer than the
/// path within each thread. With separate GPUs, the path from line to line jumps between their levels. A few lines may
/// belong to another program.
std::string find_tag(const Head& head, const WordPlan& plan) {
  struct Value {
    std::size_t lines = 0;
    std::size_t times = 0;  ///< how often it starts, after another value or at the beginning
  };
  struct Seen {
    std::map<std::string_view, Value> values;
    std::string_view last;
    std::size_t lines = 0;
    PathLength path;
  };
  std::map<std::string, Seen> seen;
  std::vector<std::string> in_order;
  PathLength path_of_all;
  std::size_t lines = 0;
  std::vector<LineField> fields;
  for (const HeadLine& line : head.lines) {
    const MemoryFigure* const f = first_figure(line, plan);
    if (f == nullptr) continue;
    ++lines;
    const auto bytes = static_cast<double>(f->bytes(1));
    const std::string gpu = std::to_string(f->gpu);
    path_of_all.add(gpu, bytes);
    cut_fields(line.text, fields, FieldKeys::of_origins);
    for (auto field = fields.begin(); field != fields.end(); ++field) {
      if (std::any_of(fields.begin(), field, [&](const LineField& other) { return other.name == field->name; }))
        continue;
      const auto [its, is_new] = seen.try_emplace(field->name);
      if (is_new) in_order.push_back(field->name);
      Value& value = its->second.values[field->value];
      value.times += value.lines == 0 || its->second.last != field->value ? 1U : 0U;
      its->second.last = field->value;
      ++value.lines;
      ++its->second.lines;
      its->second.path.add(gpu + ' ' + std::string(field->value), bytes);
    }
  }
  constexpr std::size_t kFewestEach = 3;
  constexpr std::size_t kManyEach = 16;
  // A name recurs after others have written. A count does not: "(after 100 iterations)" of each rank. Logs that were
  // joined end to end have few names.
  const auto comes_back = [](const Seen& its) {
    const auto n =
        std::count_if(its.values.begin(), its.values.end(), [](const auto& v) { return v.second.times > 1; });
    return static_cast<std::size_t>(n) * 2 >= its.values.size() || its.values.size() * kManyEach <= its.lines;
  };
  // Each rank has its own GPU, even if all of them do the same at the same time.
  const auto is_rank = [](std::string_view name) {
    constexpr std::array<std::string_view, 4> kRanks = {"tp", "dp", "pp", "ep"};
    return std::find(kRanks.begin(), kRanks.end(), name.substr(0, name.size() - 1)) != kRanks.end();
  };
  std::string best;
  double shortest = path_of_all.sum() / 2;
  std::size_t most_ranks = 0;
  for (const std::string& name : in_order) {
    const Seen& its = seen[name];
    const bool is_name =
        its.lines * 20 >= lines * (is_rank(name) ? 16 : 19) && its.values.size() >= 2 &&
        its.values.size() * kFewestEach <= lines &&
        std::all_of(its.values.begin(), its.values.end(), [](const auto& v) { return v.second.lines >= kFewestEach; });
    if (!is_name || !comes_back(its)) continue;
    if (is_rank(name)) {
      if (its.values.size() <= most_ranks) continue;
      most_ranks = its.values.size();
    } else if (most_ranks > 0 || its.path.sum() >= shortest) {
      continue;
    } else {
      shortest = its.path.sum();
    }
    best = name;
  }
  return best;
}

/// Whether the numbers behind "pid" are no pids: see number_programs().
bool pids_number_programs(const Head& head, const WordPlan& plan) {
  std::vector<std::string_view> pids;
  for (const HeadLine& line : head.lines)
    if (plan.takes_any(line.found) && line.found.pid)
      pids.push_back(
          std::string_view(line.text).substr(line.found.pid_begin, line.found.pid_end - line.found.pid_begin));
  return number_programs(pids);
}

/// Whether "pid 4242" distinguishes processes: each reading has one, there are several, and each one repeats. GPUs
/// named in lines are more informative.
bool pids_differ(const Head& head, const WordPlan& plan) {
  std::map<std::uint32_t, std::size_t> seen;
  std::size_t readings = 0;
  for (const HeadLine& line : head.lines) {
    if (!plan.takes_any(line.found)) continue;
    if (!line.found.pid) return false;
    ++seen[*line.found.pid];
    ++readings;
  }
  if (!pids_number_programs(head, plan)) seen.erase(0);
  return seen.size() >= 2 && seen.size() * 3 <= readings &&
         std::all_of(seen.begin(), seen.end(), [](const auto& p) { return p.second >= 2; });
}

/// The field that has the pid of the first line that is read; empty: none.
std::string field_of_pid(const Head& head, const WordPlan& plan) {
  const auto line = std::find_if(head.lines.begin(), head.lines.end(),
                                 [&](const HeadLine& one) { return plan.takes_any(one.found); });
  std::vector<LineField> fields;
  cut_fields(line->text, fields, FieldKeys::any);
  const auto field = std::find_if(fields.begin(), fields.end(), [&](const LineField& one) {
    return one.value.data() == line->text.data() + line->found.pid_begin;
  });
  return field == fields.end() ? std::string() : field->name;
}

/// The time of a line as text, or its count in place of it.
const std::string& time_of(const HeadLine& line, const WordPlan& plan) {
  return plan.counted ? line.count : line.stamp;
}

/// Whether a part of a line has another meaning than that of an id: a figure, a count, a pid or the time.
bool has_other_meaning(std::string_view part, const HeadLine& line) {
  const auto begin = static_cast<std::size_t>(part.data() - line.text.data());
  const std::size_t end = begin + part.size();
  const auto overlaps = [&](std::size_t from, std::size_t to) { return begin < to && from < end; };
  const auto is_within = [&](std::string_view other) {
    if (other.empty()) return false;
    const auto from = static_cast<std::size_t>(other.data() - line.text.data());
    return overlaps(from, from + other.size());
  };
  const LineFigures& found = line.found;
  return std::any_of(found.figures.begin(), found.figures.end(),
                     [&](const MemoryFigure& f) { return overlaps(f.begin, f.end); }) ||
         std::any_of(found.counts.begin(), found.counts.end(),
                     [&](const LineCount& c) { return overlaps(c.begin, c.end); }) ||
         (found.pid && overlaps(found.pid_begin, found.pid_end)) || is_within(found.stamp) || is_within(found.minute) ||
         is_within(found.elapsed.text);
}

/// Whether a field may hold ids of GPUs, by its name.
bool may_hold_ids(const std::string& name) {
  if (name.starts_with('[')) return true;
  const std::string_view key = std::string_view(name).substr(0, name.size() - 1);
  const ColumnRole role = classify_column(key).role;
  return may_be_id(key) || role == ColumnRole::index || role == ColumnRole::pci || role == ColumnRole::uuid;
}

/// The field whose values distinguish the GPUs of a reading, although its name does not say so; empty: none. Lines that
/// all name the same GPU name none.
std::string find_id(const Head& head, const WordPlan& plan) {
  std::vector<const HeadLine*> rows;
  std::vector<std::string_view> times;
  std::vector<double> used;
  std::optional<Meaning> by;  // in blocks, one role is enough to count by
  std::size_t shared = 0;
  for (const HeadLine& line : head.lines) {
    const MemoryFigure* const f = first_figure(line, plan);
    if (f == nullptr || (plan.in_blocks && by.value_or(f->role) != f->role)) continue;
    if (!rows.empty() && f->gpu != first_figure(*rows.front(), plan)->gpu) return {};
    by = f->role;
    shared += !times.empty() && times.back() == time_of(line, plan) ? 1U : 0U;
    rows.push_back(&line);
    times.emplace_back(time_of(line, plan));
    used.push_back(f->number);
  }
  if (shared * 3 < rows.size()) return {};
  struct Values {
    std::string name;
    std::vector<std::string_view> values, times;
    std::vector<double> used;     // where steps are counted
    std::size_t last = SIZE_MAX;  ///< row
  };
  std::vector<Values> all;  // in order
  std::vector<LineField> fields;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    cut_fields(rows[i]->text, fields, FieldKeys::any);
    for (const LineField& field : fields) {
      if (has_other_meaning(field.value, *rows[i])) continue;
      auto its = std::find_if(all.begin(), all.end(), [&](const Values& v) { return v.name == field.name; });
      if (its == all.end()) its = all.insert(its, {field.name, {}, {}, {}});
      if (std::exchange(its->last, i) == i) continue;
      its->values.push_back(field.value);
      its->times.push_back(times[i]);
      if (plan.counted) its->used.push_back(used[i]);
    }
    // An odd line may lack it.
    std::erase_if(all, [&](const Values& v) { return (i + 1 - v.values.size()) * 20 > rows.size(); });
  }
  const auto id = std::find_if(all.begin(), all.end(), [](const Values& v) {
    return goes_round(v.values, v.times, v.used) && may_hold_ids(v.name);
  });
  return id == all.end() ? std::string() : id->name;
}

}  // namespace

void tag_lines(Head& all, const WordPlan& plan) {
  if (plan.tag.empty()) return;
  for (HeadLine& line : all.lines) line.found.tag = field_of(line.text, plan.tag);
}

void detect_origins(Head& all, WordPlan& plan) {
  if (std::all_of(all.lines.begin(), all.lines.end(),
                  [&](const HeadLine& line) { return !plan.takes_any(line.found) || !line.found.uuid.empty(); }))
    return;
  plan.prefix_is_gpu = names_differ(all, &LineFigures::prefix);
  plan.pid_is_process = !plan.prefix_is_gpu && pids_differ(all, plan);
  if (plan.pid_is_process && pids_number_programs(all, plan)) {
    plan.tag = field_of_pid(all, plan);
    plan.pid_is_process = plan.tag.empty();
  } else if (!plan.prefix_is_gpu && !plan.pid_is_process) {
    plan.tag = find_tag(all, plan);
  }
  tag_lines(all, plan);
}

void detect_ids(Head& all, WordPlan& plan, std::vector<std::string>& assumptions) {
  const bool named =
      plan.prefix_is_gpu || plan.pid_is_process || plan.heads_name_gpu || !plan.tag.empty() ||
      std::any_of(all.lines.begin(), all.lines.end(), [](const HeadLine& line) { return !line.found.uuid.empty(); });
  if (named) return;
  plan.tag = find_id(all, plan);
  if (plan.tag.empty()) return;
  tag_lines(all, plan);
  const std::string_view name = plan.tag;
  assumptions.push_back(distinguished_by(name.starts_with('[') ? "[...]" : name.substr(0, name.size() - 1)));
}

void detect_readings(const Head& all, WordPlan& plan) {
  // A heading is followed by the readings of its GPU, the same number after each one: in a log whose lines mention GPUs
  // now and then, the figures do not belong to the GPU that was mentioned last.
  std::map<std::size_t, std::size_t> figures;  // behind each heading
  for (const HeadLine& line : all.lines)
    for (const MemoryFigure& f : line.found.figures)
      if (plan.takes(f) && f.gpu < 0 && line.heads > 0) ++figures[line.heads];
  std::map<std::size_t, std::size_t> usual;
  for (const auto& [heads, n] : figures) ++usual[n];
  const auto most = logtext::most_frequent(usual);
  plan.heads_name_gpu = all.heads >= 2 && most != usual.end() && most->second * 4 >= all.heads * 3;

  std::set<std::set<Meaning>> kinds;
  for (const HeadLine& line : all.lines) {
    std::set<Meaning> roles;
    for (const MemoryFigure& f : line.found.figures)
      if (plan.takes(f)) roles.insert(f.role);
    if (!roles.empty()) kinds.insert(roles);
  }
  plan.in_blocks = kinds.size() > 1;
}

Status check_phases(const Head& all, const WordPlan& plan, std::size_t& unnamed_gpus) {
  if (unnamed_gpus < 2) return {};
  std::vector<const HeadLine*> of_time;
  std::set<std::string> shapes;
  std::size_t times = 0;
  std::size_t unlike = 0;
  std::size_t repeats = 0;  ///< times with one amount in several units
  const HeadLine* first = nullptr;
  const HeadLine* other = nullptr;
  const auto repeats_other = [&](const HeadLine* line) {
    const MemoryFigure* const a = first_figure(*of_time.front(), plan);
    const MemoryFigure* const b = first_figure(*line, plan);
    return line == of_time.front() || (a != nullptr && b != nullptr && a->unit_bytes != b->unit_bytes &&
                                       a->bytes(1) / kBytesPerMiB == b->bytes(1) / kBytesPerMiB);
  };
  const auto end_time = [&] {
    if (of_time.size() == unnamed_gpus) {
      ++times;
      repeats += std::all_of(of_time.begin(), of_time.end(), repeats_other) ? 1U : 0U;
      const std::string shape = shape_of(*of_time.front());
      shapes.insert(shape);
      const auto differs =
          std::find_if(of_time.begin(), of_time.end(), [&](const HeadLine* line) { return shape_of(*line) != shape; });
      if (differs != of_time.end()) {
        ++unlike;
        if (first == nullptr) std::tie(first, other) = std::pair(of_time.front(), *differs);
      }
    }
    of_time.clear();
  };
  std::string last;
  for (const HeadLine& line : all.lines) {
    if (!plan.takes_any(line.found)) continue;
    const std::string& time = time_of(line, plan);
    if (time != last) end_time();
    last = time;
    of_time.push_back(&line);
  }
  end_time();
  if (times > 0 && repeats == times) unnamed_gpus = 1;  // "448M", and "469762048.0" on the next line
  if (unnamed_gpus == 1) return {};
  // If lines begin in more ways than a program has phases, the words are names or other free text.
  constexpr std::size_t kFewShapes = 3;
  if (times < 3 || unlike * 10 < times * 9 || shapes.size() > kFewShapes) return {};
  return fail(fmt::format(
      "lines such as {} '{}' and {} '{}' have one time, but differ in their words: they may be readings of "
      "two GPUs, or of two phases of one program; {}",
      first->number, excerpt(first->text, 80), other->number, excerpt(other->text, 80), pattern_hint(*first, {other})));
}

bool are_events(const Head& all, const WordPlan& plan) {
  std::set<std::string> of_time;
  std::set<std::string> shapes;
  std::string last;
  std::size_t lines = 0;
  std::size_t repeats = 0;
  for (const HeadLine& line : all.lines) {
    if (first_figure(line, plan) == nullptr) continue;
    const std::string& time = time_of(line, plan);
    if (time != last) of_time.clear();
    last = time;
    const std::string shape = shape_of(line);
    repeats += of_time.insert(shape).second ? 0U : 1U;
    shapes.insert(shape);
    ++lines;
  }
  return repeats * 4 < lines && shapes.size() * 2 > lines;
}

std::vector<HeadReading> head_readings(const Head& all, const WordPlan& plan) {
  std::vector<HeadReading> readings;
  std::optional<Meaning> by;  // in blocks, one role is enough to count by: that of the first reading
  for (const HeadLine& line : all.lines) {
    if (!plan.tag.empty() && line.found.tag.empty()) continue;
    std::set<int> seen;
    for (const Meaning role : {Meaning::used, Meaning::allocated, Meaning::reserved, Meaning::free, Meaning::peak})
      for (const MemoryFigure& f : line.found.figures) {
        if (f.role != role || !plan.takes(f) || (plan.in_blocks && by.value_or(role) != role)) continue;
        if (!seen.insert(f.gpu).second) continue;
        by = role;
        std::string gpu(plan.origin(line.found));
        if (f.gpu >= 0)
          gpu += (gpu.empty() ? "" : "/") + std::to_string(f.gpu);
        else if (plan.heads_name_gpu && gpu.empty())
          gpu = std::to_string(line.head_gpu);
        if (plan.pid_is_process && line.found.pid) gpu += fmt::format("pid {}", *line.found.pid);
        readings.push_back({time_of(line, plan), f.number, line.number, gpu});
      }
  }
  return readings;
}

namespace {

/// Whether every `n`th value is the same: a program repeating itself in each round.
bool repeats_exactly(const std::vector<double>& values, std::size_t n) {
  for (std::size_t i = n; i < values.size(); ++i)
    if (values[i] != values[i - n]) return false;
  return true;
}

}  // namespace

bool shows_several_levels(const Head& all, const WordPlan& plan, const std::vector<HeadReading>& readings) {
  std::set<double> levels;
  for (const HeadReading& reading : readings) levels.insert(reading.used);
  CutLine cut;
  return std::any_of(all.lines.begin(), all.lines.end(), [&](const HeadLine& line) {
    const MemoryFigure* const figure = first_figure(line, plan);
    if (figure == nullptr) return false;
    cut = {};
    cut.line = line.text;
    cut.time = line.found.stamp;
    cut_numbers(cut, Grouping::by_comma);
    return std::any_of(cut.numbers.begin(), cut.numbers.end(), [&](const LineNumber& n) {
      const bool has_role =
          std::any_of(line.found.figures.begin(), line.found.figures.end(),
                      [&](const MemoryFigure& f) { return f.begin < n.digits_end && n.begin < f.digits_end; });
      return !has_role && n.number != figure->number && levels.contains(n.number);
    });
  });
}

Result<std::size_t> count_unnamed_gpus(const std::vector<HeadReading>& readings, StampReader stamp, bool is_one_owner,
                                       const std::function<std::string()>& example,
                                       std::vector<std::string>& assumptions) {
  const std::string record =
      fmt::format("pass {} with a group gpu that says which, or record the index or uuid of each GPU",
                  name_of(Option::line_pattern));
  const bool has_times = stamp.kind() != StampReader::Kind::none;
  std::map<std::string_view, UnnamedReadings> series;
  std::map<std::string_view, std::vector<double>> used;
  for (const HeadReading& reading : readings) {
    Timestamp time;
    if (has_times && !stamp.read(reading.stamp, time)) continue;
    series[reading.gpu].add(seconds_between(Timestamp{}, time), reading.used, reading.line);
    used[reading.gpu].push_back(reading.used);
  }
  if (!has_times) {
    // The load of one GPU may repeat exactly every few readings, but its name shows that it is one.
    const auto unnamed = used.find({});
    const std::size_t n = unnamed == used.end() ? 1 : count_interleaved(unnamed->second);
    if (n == 1) return 1;
    if (repeats_exactly(unnamed->second, n)) {
      if (!is_one_owner)
        return fail(
            fmt::format("the figures go through the same {} values again and again, as those of one program or of "
                        "several GPUs may, and nothing names a GPU or gives a time; if they are of one, {}; if not, {}",
                        n, example(), record));
      assumptions.push_back(fmt::format(
          "the figures go through the same {} values again and again: they are assumed to be of one GPU; if "
          "they are of several, name them in a group gpu of {}",
          n, name_of(Option::line_pattern)));
      return 1;
    }
    return fail(fmt::format("the lines seem to alternate between {} GPUs, but nothing names them or gives a time; {}",
                            n, record));
  }
  std::size_t unnamed_gpus = 1;
  const bool counts = stamp.kind() == StampReader::Kind::step;
  for (auto& [gpu, its] : series) {
    ReadingWords words;
    words.rows = "lines";
    words.of = gpu.empty() ? "name no GPU" : fmt::format("name the GPU '{}'", logtext::excerpt(gpu, 24));
    words.record = record;
    words.grain_s = counts ? 1 : grain_of_stamp(readings.front().stamp);
    const OrderEvidence order = counts
                                    ? stamp.scale().step == "epoch" ? OrderEvidence::if_two : OrderEvidence::if_in_turn
                                : gpu.empty() ? OrderEvidence::may
                                              : OrderEvidence::never;
    const auto n = count_gpus_by_order(std::move(its), order, stamp.is_relative() && !stamp.wraps(), words);
    if (!n) return fail(n.error());
    if (*n > 1 && !gpu.empty())
      return fail(
          fmt::format("the lines that name the GPU '{}' alternate between {} levels: they belong to several GPUs "
                      "that cannot be told apart; {}",
                      excerpt(gpu, 24), *n, record));
    if (*n > 1) {
      unnamed_gpus = *n;
      assumptions.push_back(fmt::format(
          "{} lines per time and no GPU index: they are assumed to be {} GPUs in that order; name them in a "
          "group gpu of {}",
          *n, *n, name_of(Option::line_pattern)));
    }
  }
  return unnamed_gpus;
}

}  // namespace vramtrack
