// Whose the readings of a log of free text are: GPUs, programs and phases of programs.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

#include "source/log/labels.hpp"
#include "source/log/text_plan.hpp"

namespace vramtrack {
namespace {

using logtext::excerpt;

/// The words of a line: the same for lines that one statement of a program writes.
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

/// Whether threads or processes, which name themselves in brackets, use GPUs of their own. Threads of one program that
/// write about one GPU take turns in one series: the way from line to line is then no longer than the way from each
/// line to the next one of its thread. With GPUs of their own, the way from line to line is that between their levels.
bool tags_tell_apart(const Head& head, const WordPlan& plan) {
  if (!names_differ(head, &LineFigures::tag)) return false;
  std::map<std::pair<std::string_view, int>, double> last;  // by tag and GPU
  std::map<int, double> last_of_all;
  double way = 0;
  double way_of_all = 0;
  for (const HeadLine& line : head.lines)
    for (const MemoryFigure& f : line.found.figures) {
      if (f.percent || f.role == Meaning::total || !plan.takes(f)) continue;
      const auto bytes = static_cast<double>(f.bytes(1));
      const auto [mine, is_my_first] = last.emplace(std::pair(line.found.tag, f.gpu), bytes);
      const auto [any, is_first] = last_of_all.emplace(f.gpu, bytes);
      way += std::abs(bytes - mine->second);
      way_of_all += std::abs(bytes - any->second);
      mine->second = any->second = bytes;
      break;
    }
  return way_of_all > 2 * way;
}

/// Whether "pid 4242" tells processes apart: each reading has one, there are several, and each one repeats. GPUs that
/// lines name say more.
bool pids_differ(const Head& head, const WordPlan& plan) {
  std::map<std::uint32_t, std::size_t> seen;
  std::size_t readings = 0;
  for (const HeadLine& line : head.lines) {
    if (std::none_of(line.found.figures.begin(), line.found.figures.end(),
                     [&](const MemoryFigure& f) { return plan.takes(f); }))
      continue;
    if (!line.found.pid) return false;
    ++seen[*line.found.pid];
    ++readings;
  }
  return seen.size() >= 2 && seen.size() * 3 <= readings &&
         std::all_of(seen.begin(), seen.end(), [](const auto& p) { return p.second >= 2; });
}

}  // namespace

void settle_readings(const Head& all, WordPlan& plan) {
  std::size_t unnamed = 0;
  for (const HeadLine& line : all.lines)
    for (const MemoryFigure& f : line.found.figures) unnamed += plan.takes(f) && f.gpu < 0 ? 1U : 0U;
  plan.heads_name_gpu = all.heads >= 2 && unnamed >= all.heads;
  plan.prefix_is_gpu = names_differ(all, &LineFigures::prefix);
  plan.tag_is_gpu = !plan.prefix_is_gpu && tags_tell_apart(all, plan);
  plan.pid_is_process = !plan.prefix_is_gpu && !plan.tag_is_gpu && pids_differ(all, plan);

  std::set<std::set<Meaning>> kinds;
  for (const HeadLine& line : all.lines) {
    std::set<Meaning> roles;
    for (const MemoryFigure& f : line.found.figures)
      if (plan.takes(f)) roles.insert(f.role);
    if (!roles.empty()) kinds.insert(roles);
  }
  plan.in_blocks = kinds.size() > 1;
}

Status settle_phases(const Head& all, const WordPlan& plan, std::size_t places) {
  if (places < 2) return {};
  std::vector<const HeadLine*> of_time;
  std::set<std::string> shapes;
  std::size_t times = 0;
  std::size_t unlike = 0;
  const HeadLine* first = nullptr;
  const HeadLine* other = nullptr;
  const auto end_time = [&] {
    if (of_time.size() == places) {
      ++times;
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
    if (std::none_of(line.found.figures.begin(), line.found.figures.end(),
                     [&](const MemoryFigure& f) { return plan.takes(f); }))
      continue;
    const std::string& time = plan.counted ? line.count : line.stamp;
    if (time != last) end_time();
    last = time;
    of_time.push_back(&line);
  }
  end_time();
  // With more first lines than a program has phases, the words are names or other free text.
  constexpr std::size_t kFewShapes = 3;
  if (times < 3 || unlike * 10 < times * 9 || shapes.size() > kFewShapes) return {};
  return fail(fmt::format(
      "lines such as {} '{}' and {} '{}' have one time, but differ in their words: they may be readings of "
      "two GPUs, or of two phases of one program; {}",
      first->number, excerpt(first->text, 80), other->number, excerpt(other->text, 80), how_to_say(*first, {other})));
}

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
        std::string gpu(plan.origin(line.found));
        if (f.gpu >= 0)
          gpu += (gpu.empty() ? "" : "/") + std::to_string(f.gpu);
        else if (plan.heads_name_gpu && gpu.empty())
          gpu = std::to_string(line.head_gpu);
        if (plan.pid_is_process && line.found.pid) gpu += fmt::format("pid {}", *line.found.pid);
        readings.push_back({plan.counted ? line.count : line.stamp, f.number, line.number, gpu});
      }
  }
  return readings;
}

}  // namespace vramtrack
