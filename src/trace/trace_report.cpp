#include "trace/trace_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>

#include "core/format.hpp"
#include "core/order.hpp"
#include "trace/call_category.hpp"
#include "trace/keepers.hpp"

namespace vramtrack::trace {
namespace {

constexpr std::uint64_t kNever = ~std::uint64_t{0};

/// The probe does not search a process that holds fewer (kMoreBlocks in probe/kept.cpp).
constexpr std::int64_t kLeastAsked = 16;

/// In measurements, an interpreter's atexit handlers took up to 1.1 times as long as its teardown.
constexpr std::uint64_t kMostTeardowns = 4;

/// Prefers the variable that keeps most blocks in the look. One block of many is what the last step used.
bool keeps_more(const FoundKeeper& a, const std::optional<FoundKeeper>& b) {
  return !b || std::pair(a.is_rooted, a.blocks) > std::pair(b->is_rooted, b->blocks);
}

bool is_keeper(const ReportSite& site) {
  return site.keeper && site.keeper->is_rooted && (site.keeper->blocks > 1 || site.live.blocks <= 2);
}

/// The keeper of a line's blocks, over all its call sites.
struct LineKeeper {
  FoundKeeper found;
  StackId stack = kNoStack;  ///< the stack of the call site of which it keeps the most
  std::int64_t of_stack = 0;
};

/// The call sites of one line in one process.
struct Line {
  ReportSite site;
  std::vector<LineKeeper> keepers;
  std::vector<std::size_t> members;
  std::uint64_t oldest_us = kNever;
  std::uint64_t returned = 0;
  std::uint64_t first_us = kNever, last_us = 0;  ///< times of the first and the last allocation
  std::vector<Floor> fine_stretches, stretches, epochs;
  std::size_t group = 0;    ///< the process's group (lines with one keeper); 0: neither a leak nor suspected
  std::size_t in_step = 0;  ///< its position in the order of a step's allocations
  std::uint64_t steps = 0;  ///< number of steps of the group
  bool is_result = false;   ///< allocates what a step of the group computes; see find_result()
};

/// Judges by time a line that rises over the events of a run. A leak must also rise in the second half of the run by
/// the clock, because all the events may fill a cache that is then used. The time after the last allocation may be the
/// program's final work (a checkpoint, an evaluation), so less than half proves nothing.
SiteShape shape_in_time(const Line& line, const ProcessTrace& process) {
  std::uint64_t end_us = process.shown_us();
  if (process.names().is_python() && !process.goes_on()) {
    // The atexit handlers run between a program's last line and the interpreter's end, and no record shows for how
    // long. The teardown that follows is recorded, and a busy machine slows both.
    if (process.end_us() == 0 || process.exit_us() < process.end_us()) return SiteShape::leak;
    const std::uint64_t handlers_us = kMostTeardowns * (process.exit_us() - process.end_us());
    end_us = std::min(end_us, process.end_us() - std::min(process.end_us(), handlers_us));
  } else if (!process.has_exit()) {
    end_us = std::max(end_us, process.exit_us());
  }
  const bool is_quiet = end_us > line.last_us && 2 * (end_us - line.last_us) > end_us - line.first_us;
  return is_quiet ? SiteShape::warm_up : SiteShape::leak;
}

void add(std::vector<Floor>& sum, const std::vector<Floor>& floors) {
  if (sum.size() < floors.size()) sum.resize(floors.size());
  for (std::size_t i = 0; i < floors.size(); ++i) {
    sum[i].bytes += floors[i].bytes;
    sum[i].blocks += floors[i].blocks;
  }
}

/// Growth that began shortly before the end covers few stretches, and slow growth shows in each only if they are long.
/// So the floors of a run are examined at their known resolution, and joined.
bool rises_late_at_any_scale(const Line& line) {
  const std::span<const Floor> fine(line.fine_stretches);
  for (std::size_t parts = fine.size(); parts > line.stretches.size(); parts /= 2)
    if (rises_late(joined_floors(fine, parts))) return true;
  return rises_late(line.stretches);
}

/// What a line gained in the second half of the run.
Floor gained_lately(const Line& line) {
  const std::vector<Floor>& floors = line.fine_stretches.empty() ? line.stretches : line.fine_stretches;
  if (floors.empty()) return {};
  const Floor& middle = floors[floors.size() / 2];
  return {std::max<std::int64_t>(0, floors.back().bytes - middle.bytes),
          std::max<std::int64_t>(0, floors.back().blocks - middle.blocks)};
}

/// Whether a line that is not a leak began to grow late, and grows to the end.
bool grows_late(const Line& line, const ProcessTrace& process, bool has_epochs) {
  return line.site.shape != SiteShape::leak && line.site.space != MemorySpace::mapped && process.lost_records() == 0 &&
         gained_lately(line).bytes > 0 && (has_epochs ? rises_late(line.epochs) : rises_late_at_any_scale(line)) &&
         shape_in_time(line, process) == SiteShape::leak;
}

/// The site rose, but no more than chance or too few blocks allow, and it has most of all growth, which is a notable
/// share of what it holds. Calling that healthy would claim more than is known.
bool is_undecided(const ReportSite& site) {
  constexpr std::int64_t kLeastShareOneIn = 100;
  return site.shape == SiteShape::unsure && site.share > 0.5 && kLeastShareOneIn * site.growth_bytes >= site.live.bytes;
}

/// Whether lines that grow late and have one keeper gained most of their memory space's recent growth, and enough of
/// it: a share of live memory, or many blocks, however small. What the program loaded earlier, weights above all, does
/// not matter.
bool is_suspected(const Floor& gained, std::int64_t all_gained, std::int64_t live_bytes) {
  constexpr std::int64_t kLeastShareOneIn = 100;
  constexpr std::int64_t kManyBlocks = 24;
  return 2 * gained.bytes > all_gained &&
         (kLeastShareOneIn * gained.bytes >= live_bytes || gained.blocks >= kManyBlocks);
}

SiteBlocks blocks_of(const Line& line, const ProcessTrace& process) {
  SiteBlocks all;
  for (const std::size_t member : line.members) {
    const SiteBlocks& its = process.blocks()[member];
    all.births_us.insert(all.births_us.end(), its.births_us.begin(), its.births_us.end());
    all.deaths.insert(all.deaths.end(), its.deaths.begin(), its.deaths.end());
  }
  std::sort(all.births_us.begin(), all.births_us.end());
  std::sort(all.deaths.begin(), all.deaths.end());
  return all;
}

/// Puts the lines that `belongs` accepts into groups with one keeper each, in one memory space; calls `see` for each.
template <typename Belongs, typename See>
void group_lines(std::vector<Line>& lines, const ProcessTrace& process, std::size_t& groups, Belongs belongs, See see) {
  for (std::size_t space = 0; space < kMemorySpaces; ++space) {
    std::vector<Line*> members;
    std::vector<SiteBlocks> blocks;
    for (Line& line : lines) {
      if (line.site.space != static_cast<MemorySpace>(space) || !belongs(line)) continue;
      members.push_back(&line);
      blocks.push_back(blocks_of(line, process));
    }
    for (const LockstepGroup& group : lockstep_groups(blocks, process.passing())) {
      ++groups;
      std::vector<Line*> its;
      for (std::size_t i = 0; i < group.sites.size(); ++i) {
        Line& line = *its.emplace_back(members[group.sites[i]]);
        line.group = groups;
        line.in_step = i;
        line.steps = group.steps;
      }
      see(its);
    }
  }
}

/// Of the containers that keep the memory of two lines, those with fewer items than this do not hold their steps.
std::uint64_t items_of_steps(std::int64_t blocks, std::int64_t other_blocks) {
  return static_cast<std::uint64_t>(std::max<std::int64_t>(kLeastSteps, std::min(blocks, other_blocks) / 2));
}

/// The same for what two lines held when their keepers were found and the items in the text were counted.
std::uint64_t items_of_steps(const FoundKeeper& keeper, const FoundKeeper& other) {
  return items_of_steps(keeper.live_blocks, other.live_blocks);
}

void add_keeper(std::vector<LineKeeper>& all, const FoundKeeper& keeper, StackId stack) {
  const std::string words = without_items(keeper.words);
  const auto known = std::find_if(all.begin(), all.end(), [&](const LineKeeper& each) {
    return each.found.is_rooted == keeper.is_rooted && without_items(each.found.words) == words;
  });
  if (known == all.end()) {
    all.push_back({keeper, stack, keeper.stands_for.blocks});
    return;
  }
  FoundKeeper& found = known->found;
  if (keeper.blocks > found.blocks) found.words = keeper.words, found.middle_us = keeper.middle_us;
  found.has_graphs = found.has_graphs || keeper.has_graphs;
  found.blocks += keeper.blocks;
  found.looked_us = std::max(found.looked_us, keeper.looked_us);
  found.live_blocks += keeper.live_blocks;
  found.stands_for.bytes += keeper.stands_for.bytes;
  found.stands_for.blocks += keeper.stands_for.blocks;
  found.first_us = std::min(found.first_us, keeper.first_us);
  found.last_us = std::max(found.last_us, keeper.last_us);
  if (keeper.stands_for.blocks <= known->of_stack) return;
  known->stack = stack;
  known->of_stack = keeper.stands_for.blocks;
}

/// Whether the keeper keeps ever more of what the line allocates: blocks from all the time up to the look. Data loaded
/// at first does not match, nor does a window of the last steps.
bool keeps_ever_more(const FoundKeeper& keeper, const Line& line) {
  constexpr std::uint64_t kPartOneIn = 4;
  const std::uint64_t end_us = std::min(line.last_us, keeper.looked_us);
  if (!keeper.is_rooted || keeper.blocks < kLeastSteps || end_us <= line.first_us) return false;
  const std::uint64_t part_us = (end_us - line.first_us) / kPartOneIn, its_us = keeper.last_us - keeper.first_us;
  return keeper.last_us + part_us >= end_us && its_us >= part_us &&
         keeper.middle_us >= keeper.first_us + its_us / (2 * kPartOneIn) &&
         keeper.middle_us + its_us / (2 * kPartOneIn) <= keeper.last_us;
}

/// The separate keepers of a line, with what they keep of it.
std::vector<LineKeeper> parts_of(const Line& line) {
  std::vector<LineKeeper> all = line.keepers, out;
  order(all, [](const LineKeeper& a, const LineKeeper& b) { return a.found.blocks > b.found.blocks; });
  for (const LineKeeper& keeper : all) {
    if (!keeps_ever_more(keeper.found, line)) continue;
    const auto part = std::find_if(out.begin(), out.end(), [&](const LineKeeper& other) {
      const auto items = items_of_steps(keeper.found.stands_for.blocks, other.found.stands_for.blocks);
      return !are_apart(keeper.found.words, other.found.words, items) ||
             are_two_keys(keeper.found.words, other.found.words);
    });
    if (part == out.end()) {
      out.push_back(keeper);
      continue;
    }
    part->found.stands_for.bytes += keeper.found.stands_for.bytes;
    part->found.stands_for.blocks += keeper.found.stands_for.blocks;
  }
  return out;
}

/// A `share` of the memory of `site`.
ReportSite part_of(const ReportSite& site, double share) {
  ReportSite part = site;
  for (std::int64_t* each : {&part.live.bytes, &part.live.blocks, &part.at_exit.bytes, &part.at_exit.blocks,
                             &part.growth_bytes, &part.growth_blocks, &part.look.live_blocks})
    *each = std::llround(static_cast<double>(*each) * share);
  part.growth_bytes_per_s *= share;
  return part;
}

/// If several variables keep ever more blocks of a line, the line becomes one line per variable.
void part_lines(std::vector<Line>& lines) {
  constexpr std::size_t kMostParts = 8;
  const std::size_t count = lines.size();
  for (std::size_t i = 0; i < count; ++i) {
    if (lines[i].group == 0) continue;
    const std::vector<LineKeeper> parts = parts_of(lines[i]);
    if (parts.size() < 2 || parts.size() > kMostParts) continue;
    double all = 0, blocks = 0;
    for (const LineKeeper& part : parts) {
      all += static_cast<double>(part.found.stands_for.bytes);
      blocks += static_cast<double>(part.found.stands_for.blocks);
    }
    if (all <= 0 || blocks <= 0) continue;
    const Line whole = lines[i];
    for (std::size_t p = 0; p < parts.size(); ++p) {
      const FoundKeeper& keeper = parts[p].found;
      Line part = whole;
      part.site = part_of(whole.site, static_cast<double>(keeper.stands_for.bytes) / all);
      part.site.live.blocks = std::llround(static_cast<double>(whole.site.live.blocks) *
                                           static_cast<double>(keeper.stands_for.blocks) / blocks);
      part.site.keeper = keeper;
      part.site.keeper->live_blocks = std::llround(static_cast<double>(keeper.live_blocks) *
                                                   static_cast<double>(keeper.stands_for.blocks) / blocks);
      part.site.stack = parts[p].stack;
      part.site.part = without_items(keeper.words);
      if (p == 0)
        lines[i] = std::move(part);
      else
        lines.push_back(std::move(part));
    }
  }
}

/// Of the lines of a group with a known keeper, the one that holds what `line` allocates: one that comes after it in a
/// step and keeps graphs, else any that keeps graphs, else the next one.
const Line& holder_of(const Line& line, const std::vector<const Line*>& kept) {
  const auto rank = [&](const Line* each) {
    const bool is_later = each->in_step >= line.in_step;
    const auto distance =
        static_cast<std::int64_t>(is_later ? each->in_step - line.in_step : line.in_step - each->in_step);
    return std::tuple(each->site.keeper->has_graphs, is_later, -distance);
  };
  return **std::max_element(kept.begin(), kept.end(), [&](const Line* a, const Line* b) { return rank(a) < rank(b); });
}

/// Lines that hold blocks of the same steps are as many leaks as there are variables that keep the blocks.
void part_groups(std::vector<Line>& lines, std::size_t& groups) {
  std::map<std::size_t, std::vector<Line*>> by_group;
  for (Line& line : lines)
    if (line.group != 0) by_group[line.group].push_back(&line);
  for (auto& [group, its] : by_group) {
    std::vector<const Line*> kept, firsts;  // the first line of each keeper
    std::map<const Line*, std::size_t> place;
    for (const Line* line : its) {
      if (!is_keeper(line->site)) continue;
      kept.push_back(line);
      const auto same = std::find_if(firsts.begin(), firsts.end(), [&](const Line* other) {
        const auto items = items_of_steps(*line->site.keeper, *other->site.keeper);
        return !are_apart(line->site.keeper->words, other->site.keeper->words, items);
      });
      place[line] = static_cast<std::size_t>(same - firsts.begin());
      if (same == firsts.end()) firsts.push_back(line);
    }
    if (firsts.size() < 2) continue;
    for (Line* line : its) {
      const std::size_t at = place.at(is_keeper(line->site) ? line : &holder_of(*line, kept));
      if (at > 0) line->group = groups + at;
    }
    groups += firsts.size() - 1;
  }
}

/// Lines with blocks in one container are one leak, whatever the order of their allocations and frees.
void join_by_keeper(std::vector<Line>& lines) {
  for (Line& line : lines)
    for (Line& other : lines) {
      if (&line == &other || line.group == 0 || other.group == 0 || line.group == other.group ||
          line.site.space != other.site.space || !is_keeper(line.site) || !is_keeper(other.site))
        continue;
      const auto items = items_of_steps(*line.site.keeper, *other.site.keeper);
      if (!have_one_container(line.site.keeper->words, other.site.keeper->words, items)) continue;
      const std::size_t from = other.group;
      std::vector<Line*> joined;
      for (Line& each : lines)
        if (each.group == from || each.group == line.group) joined.push_back(&each);
      std::stable_sort(joined.begin(), joined.end(),
                       [](const Line* a, const Line* b) { return a->first_us < b->first_us; });
      const std::uint64_t steps = std::min(line.steps, other.steps);
      for (std::size_t i = 0; i < joined.size(); ++i) {
        joined[i]->group = line.group;
        joined[i]->in_step = i;
        joined[i]->steps = steps;
      }
    }
}

/// The user's own functions in a stack, the outermost first.
std::vector<std::pair<StringId, StringId>> own_functions(const ProbeNames& names, StackId stack) {
  std::vector<std::pair<StringId, StringId>> out;
  for (const FrameId frame : names.symbols().stack(stack))
    if (names.is_own(frame)) out.emplace_back(names.symbols().frame(frame).name, names.symbols().frame(frame).file);
  std::reverse(out.begin(), out.end());
  return out;
}

/// Finds the line in each group that allocates what its steps compute, such as a loss: the last of a step, if it is in
/// the function that runs the steps, in one that calls that of another line of the group, or in its own. If it shares a
/// function that the steps call, such as a module's __init__ or forward, there is none. The function that runs the
/// steps is the innermost one common to everything that the threads of these lines allocate equally often.
void find_result(std::vector<Line>& lines, const ProcessTrace& process, ProbeNames& names) {
  std::map<std::size_t, std::vector<Line*>> groups;
  for (Line& line : lines)
    if (line.group != 0) groups[line.group].push_back(&line);
  for (auto& [number, group] : groups) {
    std::set<std::uint16_t> threads;
    for (const Line* line : group)
      for (const std::size_t member : line->members) threads.insert(process.sites()[member].thread);
    std::optional<std::vector<std::pair<StringId, StringId>>> common;
    for (const CallSite& call : process.sites()) {
      if (!threads.contains(call.thread) || 10 * call.allocations < 9 * group.front()->steps) continue;
      auto functions = own_functions(names, names.stack(process, call.stack));
      if (functions.empty()) continue;
      if (common)
        functions.erase(std::mismatch(functions.begin(), functions.end(), common->begin(), common->end()).first,
                        functions.end());
      common = std::move(functions);
    }
    Line* last = nullptr;
    std::size_t deepest = 0, depth_of_last = 0;
    for (Line* line : group) {
      if (!line->site.line.is_own) continue;
      const std::size_t depth = own_functions(names, line->site.stack).size();
      deepest = std::max(deepest, depth);
      if (last != nullptr && line->in_step < last->in_step) continue;
      last = line;
      depth_of_last = depth;
    }
    if (last == nullptr) continue;
    const auto innermost = [&](const Line& line) { return own_functions(names, line.site.stack).back(); };
    const bool has_a_function_alone = std::ranges::none_of(group, [&](const Line* line) {
      return line != last && line->site.line.is_own && innermost(*line) == innermost(*last);
    });
    last->is_result = depth_of_last < deepest || (common && depth_of_last <= common->size()) ||
                      (group.size() > 1 && has_a_function_alone);
  }
}

/// The judged lines of a process. `groups`: the last group number so far.
std::vector<Line> lines_of(const ProcessTrace& process, ProbeNames& names, std::size_t& groups) {
  std::vector<Line> lines;
  std::map<std::tuple<MemorySpace, std::uint32_t, std::uint32_t>, std::size_t> place;
  std::vector<std::int64_t> best;  // per line: the growth of its chosen stack, and what it holds
  const bool has_epochs = process.floors().epoch_count() >= kLeastEpochs;
  for (std::size_t i = 0; i < process.sites().size(); ++i) {
    const CallSite& call = process.sites()[i];
    // Pure churn: there is nothing to judge or show, so its names need not be looked up.
    if (call.stretches.empty() && call.epochs.empty() && call.live.blocks <= 0 && process.held_at_exit()[i].blocks <= 0)
      continue;
    const StackId stack = names.stack(process, call.stack);
    const SiteLine line = names.line(stack);
    const auto key = std::tuple(call.space, line.is_known ? index_of(line.frame) : IdTable::kNone,
                                line.is_known ? 0U : static_cast<std::uint32_t>(call.call));
    const auto [at, is_new] = place.try_emplace(key, lines.size());
    if (is_new) {
      lines.emplace_back();
      lines.back().site.line = line;
      lines.back().site.space = call.space;
      best.push_back(std::numeric_limits<std::int64_t>::min());
    }
    Line& its = lines[at->second];
    const std::vector<Floor> floors = process.floors().stretches(call);
    const std::int64_t rise = floors.empty() ? 0 : floors.back().bytes - floors[floors.size() / 6].bytes;
    if (const std::int64_t rank = rise * 1024 + call.live.bytes / 1024; rank > best[at->second]) {
      best[at->second] = rank;
      its.site.stack = stack;
      const probe::CallInfo* const info = probe::info_of(call.call);
      its.site.call = info == nullptr ? std::string_view{} : info->name;
      if (!line.is_own) its.site.thread = printable(process.names().thread_name(call.thread));
    }
    ++its.site.stacks;
    if (call.allocations > 0) {
      its.first_us = std::min(its.first_us, call.first_us);
      its.last_us = std::max(its.last_us, call.last_us);
    }
    its.members.push_back(i);
    its.site.live.bytes += call.live.bytes;
    its.site.live.blocks += call.live.blocks;
    its.site.at_exit.bytes += process.held_at_exit()[i].bytes;
    its.site.at_exit.blocks += process.held_at_exit()[i].blocks;
    if (const auto found = process.looks().keepers().find(static_cast<std::uint32_t>(i));
        found != process.looks().keepers().end())
      for (const FoundKeeper& keeper : found->second) add_keeper(its.keepers, keeper, stack);
    const SiteLook look = process.looks().of_site(i);
    its.site.look.live_blocks += look.live_blocks;
    its.site.look.unheld += look.unheld;
    its.site.look.unasked += look.unasked;
    if (call.live.blocks > 0) its.oldest_us = std::min(its.oldest_us, call.oldest_us);
    its.returned += call.returned;
    add(its.stretches, floors);
    add(its.fine_stretches, process.floors().fine_stretches(call));
    if (has_epochs) add(its.epochs, process.floors().epochs(call));
  }
  std::vector<std::vector<Floor>> stretches, epochs;
  std::vector<std::uint64_t> returned;
  for (Line& line : lines) {
    for (const LineKeeper& keeper : line.keepers)
      if (keeps_more(keeper.found, line.site.keeper)) line.site.keeper = keeper.found;
    stretches.push_back(line.stretches);
    epochs.push_back(line.epochs);
    returned.push_back(line.returned);
  }
  const auto by_stretches = judge_stretches(stretches);
  const auto by_epochs = has_epochs ? judge_epochs(epochs, returned) : by_stretches;
  std::map<MemorySpace, std::int64_t> gained;
  for (const Line& line : lines) gained[line.site.space] += gained_lately(line).bytes;
  const double judged_s = process.floors().judged_s();
  const double run_s = static_cast<double>(process.shown_us()) * 1e-6;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    ReportSite& site = lines[i].site;
    // The program's own epochs are a better division than equal parts of the run.
    const SiteJudgement& judged = by_epochs[i];
    site.shape = judged.shape;
    if (site.shape == SiteShape::leak && process.lost_records() > 0) site.shape = SiteShape::unsure;
    if (site.shape == SiteShape::leak && !has_epochs) site.shape = shape_in_time(lines[i], process);
    site.leak = site.shape == SiteShape::leak;
    site.p_value = judged.p_value;
    const SiteJudgement& run = by_stretches[i];
    const bool use_run = run.growth_bytes > 0 && judged_s > 0;
    site.growth_bytes = use_run ? run.growth_bytes : judged.growth_bytes;
    site.growth_blocks = use_run ? run.growth_blocks : judged.growth_blocks;
    const double over_s = use_run ? judged_s : run_s;
    if (over_s > 0) site.growth_bytes_per_s = static_cast<double>(site.growth_bytes) / over_s;
    if (lines[i].oldest_us != kNever && process.shown_us() >= lines[i].oldest_us)
      site.oldest_s = static_cast<double>(process.shown_us() - lines[i].oldest_us) * 1e-6;
    site.pids = {process.process().pid};
  }
  // A line with too few blocks to judge belongs to the leak with which it keeps step.
  group_lines(
      lines, process, groups, [](const Line& line) { return line.site.leak || line.site.shape == SiteShape::unsure; },
      [](std::vector<Line*>& group) {
        const bool leaks = std::any_of(group.begin(), group.end(), [](const Line* line) { return line->site.leak; });
        for (Line* line : group) {
          line->site.leak = leaks;
          if (leaks)
            line->site.shape = SiteShape::leak;
          else
            line->group = 0;
        }
      });
  group_lines(
      lines, process, groups, [&](const Line& line) { return grows_late(line, process, has_epochs); },
      [&](std::vector<Line*>& group) {
        const MemorySpace space = group.front()->site.space;
        Floor its_gain;
        for (const Line* line : group) {
          its_gain.bytes += gained_lately(*line).bytes;
          its_gain.blocks = std::max(its_gain.blocks, gained_lately(*line).blocks);
        }
        const bool suspected = is_suspected(its_gain, gained[space], process.live_bytes(space));
        for (Line* line : group) {
          line->site.suspected = suspected;
          if (suspected)
            line->site.shape = SiteShape::late;
          else
            line->group = 0;
        }
      });
  part_lines(lines);
  part_groups(lines, groups);
  join_by_keeper(lines);
  find_result(lines, process, names);
  return lines;
}

void merge(ReportSite& into, const ReportSite& other) {
  if (std::tuple(other.leak, other.suspected, other.growth_bytes) >
      std::tuple(into.leak, into.suspected, into.growth_bytes)) {
    into.stack = other.stack;
    into.shape = other.shape;
    into.call = other.call;
  }
  into.leak = into.leak || other.leak;
  into.suspected = !into.leak && (into.suspected || other.suspected);
  into.stacks = std::max(into.stacks, other.stacks);
  into.live.bytes += other.live.bytes;
  into.live.blocks += other.live.blocks;
  into.at_exit.bytes += other.at_exit.bytes;
  into.at_exit.blocks += other.at_exit.blocks;
  into.growth_bytes += other.growth_bytes;
  into.growth_blocks += other.growth_blocks;
  into.growth_bytes_per_s += other.growth_bytes_per_s;
  into.p_value = std::min(into.p_value, other.p_value);
  into.oldest_s = std::max(into.oldest_s, other.oldest_s);
  if (other.keeper && keeps_more(*other.keeper, into.keeper)) into.keeper = other.keeper;
  into.look.live_blocks += other.look.live_blocks;
  into.look.unheld += other.look.unheld;
  into.look.unasked += other.look.unasked;
  into.pids.insert(into.pids.end(), other.pids.begin(), other.pids.end());
}

void report_residual(const ProbeTrace& trace, TraceReport& report) {
  for (const auto& process : trace.processes()) {
    const auto& readings = process->readings();
    if (readings.empty()) continue;
    const ResidualReading& last = readings.back();
    // A negative value counts as none: memory from before the trace was freed.
    report.residual_bytes =
        report.residual_bytes.value_or(0) +
        std::max<std::int64_t>(0, static_cast<std::int64_t>(last.process_bytes) - last.tracked_bytes);
    std::vector<std::vector<Floor>> floors(1);
    for (std::size_t i = 0; i < readings.size(); ++i)
      floors[0].push_back({static_cast<std::int64_t>(readings[i].process_bytes) - readings[i].tracked_bytes,
                           static_cast<std::int64_t>(i)});
    const SiteJudgement judged = judge_stretches(floors).front();
    if (judged.shape != SiteShape::leak) continue;
    report.residual_grows = true;
    const std::size_t first = readings.size() / 6;  // the part that judge_stretches() leaves out
    const auto over_us = static_cast<double>(last.realtime_us - readings[first].realtime_us);
    if (over_us > 0) report.residual_bytes_per_s += static_cast<double>(judged.growth_bytes) * 1e6 / over_us;
  }
}

void note_process(const ProcessTrace& process, std::vector<std::string>& notes) {
  const std::string who = fmt::format("process {}", process.process().pid);
  if (process.most_interval_bytes() > 0)
    notes.push_back(
        fmt::format("{}: sampled: at its busiest one block in about {} was recorded; bytes and counts are estimates",
                    who, format_size(process.most_interval_bytes())));
  if (process.lost_records() > 0)
    notes.push_back(
        fmt::format("{}: {} found no room in the ring: bytes and counts of sites may be too high or too low, and none "
                    "is called a leak",
                    who, format_count(process.lost_records(), "record")));
  if (const Held& before = process.freed_of_before(); before.blocks > 0)
    notes.push_back(fmt::format("{}: {} of memory from before the tracing, or whose allocation it did not see: {}", who,
                                format_count(static_cast<std::uint64_t>(before.blocks), "free"),
                                before.bytes > 0
                                    ? fmt::format("{}, by the calls that tell a size", format_size(before.bytes))
                                    : "these calls tell no size"));
  if (process.replaced() > 0)
    notes.push_back(fmt::format("{}: {} at an address that was still live: a free was not seen", who,
                                format_count(process.replaced(), "allocation")));
  if (process.failures().refused() > 0)
    notes.push_back(
        fmt::format("{}: a limit refused {}", who, format_count(process.failures().refused(), "allocation")));
  if (process.failures().failed() > 0)
    notes.push_back(fmt::format("{}: {} failed: the device was out of memory", who,
                                format_count(process.failures().failed(), "allocation")));
}

/// Whether JAX or TensorFlow holds its tensors in a pool. `vramtrack run --exact` makes them work without one.
bool has_pool(const TraceReport& report, const Symbols& symbols) {
  return std::any_of(report.sites.begin(), report.sites.end(), [&](const ReportSite& site) {
    const auto frames = symbols.stack(site.stack);
    return site.live.blocks > 0 && std::any_of(frames.begin(), frames.end(), [&](FrameId frame) {
             return symbols.name(frame).find("BFCAllocator::Extend") != std::string_view::npos;
           });
  });
}

}  // namespace

bool matches_pattern(std::string_view pattern, std::string_view text) {
  std::size_t p = 0, t = 0, star = std::string_view::npos, from = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      from = t;
    } else if (p < pattern.size() && pattern[p] == text[t]) {
      ++p;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++from;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

Suppressions Suppressions::parse(std::string_view text) {
  Suppressions out;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    while (!line.empty() && (line.back() == '\r' || line.back() == ' ' || line.back() == '\t')) line.remove_suffix(1);
    while (!line.empty() && (line.front() == ' ' || line.front() == '\t')) line.remove_prefix(1);
    if (line.starts_with("leak:")) line.remove_prefix(5);
    if (!line.empty() && !line.starts_with('#')) out.patterns_.emplace_back(line);
  }
  return out;
}

bool Suppressions::matches(const Symbols& symbols, StackId stack) const {
  if (patterns_.empty()) return false;
  for (const FrameId frame : symbols.stack(stack))
    for (const std::string& pattern : patterns_)
      if (matches_pattern(pattern, symbols.name(frame)) || matches_pattern(pattern, symbols.file(frame))) return true;
  return false;
}

namespace {

/// What is known about a site's group while the sites of the processes are merged.
struct Membership {
  std::size_t group = 0;
  std::size_t in_step = 0;
  std::uint64_t steps = 0;
  bool is_result = false;
};

/// Whether the library is the driver, its runtime, or what Python calls them through.
bool is_of_driver(std::string_view library) {
  constexpr std::string_view kBegins[] = {"libcuda.",  "libcudart", "libamdhip64", "libhsa-",       "libOpenCL",
                                          "libvulkan", "libze_",    "libffi",      "_cffi_backend", "libvramtrack"};
  return std::any_of(std::begin(kBegins), std::end(kBegins),
                     [&](std::string_view b) { return library.starts_with(b); });
}

/// The library that called the driver: that of the innermost native frame outside the driver. The interpreter stands
/// for the Python code that it ran (ctypes): the frames below it started the program.
std::string_view library_of(const ProcessTrace& process, const CallSite& site) {
  for (const RawFrame& frame : process.names().stack(site.stack)) {
    if (frame.is_python) break;
    const MappedModule* const module = process.names().module_at(frame.address);
    if (module == nullptr) continue;
    if (is_cpython(module->path)) break;
    const std::string_view name = std::string_view(module->path).substr(module->path.rfind('/') + 1);
    if (!is_of_driver(name)) return name;
  }
  return "Python";
}

/// The live bytes of the device grouped by `key` of a process's site, the most first. Empty keys are left out.
template <class Key>
std::vector<std::pair<std::string_view, Held>> held_by(const ProbeTrace& trace, Key key) {
  std::map<std::string_view, Held> by_key;
  for (const auto& process : trace.processes())
    for (const CallSite& site : process->sites()) {
      if (site.space != MemorySpace::device || site.live.blocks <= 0) continue;
      const std::string_view name = key(*process, site);
      if (name.empty()) continue;
      by_key[name].bytes += site.live.bytes;
      by_key[name].blocks += site.live.blocks;
    }
  std::vector<std::pair<std::string_view, Held>> out(by_key.begin(), by_key.end());
  std::stable_sort(out.begin(), out.end(),
                   [](const auto& a, const auto& b) { return a.second.bytes > b.second.bytes; });
  return out;
}

std::string_view call_of(const ProcessTrace&, const CallSite& site) {
  const probe::CallInfo* const info = probe::info_of(site.call);
  return info == nullptr ? std::string_view{} : info->name;
}

const probe::CallInfo* call_named(std::string_view name) {
  const auto call = std::find_if(probe::kCalls.begin(), probe::kCalls.end(),
                                 [&](const probe::CallInfo& each) { return each.name == name; });
  return call == probe::kCalls.end() ? nullptr : &*call;
}

std::size_t root_of(std::vector<std::size_t>& joined, std::size_t group) {
  while (joined.size() <= group) joined.push_back(joined.size());
  while (joined[group] != group) group = joined[group] = joined[joined[group]];
  return group;
}

/// Builds the findings, and orders the sites by them. The line that keeps a group is the one with blocks kept by a
/// found variable, with the fewest places between; else an own line that allocates what a step computes (the loss comes
/// after the activations that it holds); else the one that holds the most.
void find_leaks(TraceReport& report, const std::vector<Membership>& members, std::vector<std::size_t>& joined) {
  std::map<std::size_t, Finding> by_group;
  for (std::size_t i = 0; i < report.sites.size(); ++i) {
    const ReportSite& site = report.sites[i];
    if (!site.leak && !site.suspected) continue;
    Finding& finding = by_group[root_of(joined, members[i].group)];
    finding.sites.push_back(i);
    finding.leak = finding.leak || site.leak;
    finding.live.bytes += site.live.bytes;
    finding.live.blocks += site.live.blocks;
    finding.steps = std::max(finding.steps, members[i].steps);
    finding.growth_bytes_per_s += site.growth_bytes_per_s;
    finding.share += site.share;
    finding.oldest_s = std::max(finding.oldest_s, site.oldest_s);
  }
  for (auto& [group, finding] : by_group) {
    const auto keeps = [&](std::size_t a, std::size_t b) {
      const auto rank = [&](std::size_t i) {
        const ReportSite& site = report.sites[i];
        const std::size_t between = is_keeper(site) ? referrers_between(site.keeper->words) : 0;
        return std::tuple(is_keeper(site), -static_cast<std::int64_t>(between), site.line.is_own, members[i].is_result,
                          site.live.bytes, members[i].in_step);
      };
      return rank(a) < rank(b);
    };
    std::iter_swap(finding.sites.begin(), std::max_element(finding.sites.begin(), finding.sites.end(), keeps));
    std::sort(finding.sites.begin() + 1, finding.sites.end(), [&](std::size_t a, std::size_t b) {
      const auto rank = [&](std::size_t i) { return std::pair(-report.sites[i].live.bytes, i); };
      return rank(a) < rank(b);
    });
    if (finding.sites.size() == 1) finding.steps = 0;
    if (const ReportSite& first = report.sites[finding.sites.front()]; is_keeper(first)) finding.keeper = first.keeper;
    report.findings.push_back(std::move(finding));
  }
  order(report.findings, [](const Finding& a, const Finding& b) {
    if (a.leak != b.leak) return a.leak;
    if (a.leak && a.growth_bytes_per_s != b.growth_bytes_per_s) return a.growth_bytes_per_s > b.growth_bytes_per_s;
    return a.live.bytes > b.live.bytes;
  });
  std::vector<ReportSite> sites;
  for (std::size_t i = 0; i < report.findings.size(); ++i)
    for (std::size_t& site : report.findings[i].sites) {
      report.sites[site].finding = i;
      sites.push_back(report.sites[site]);
      site = sites.size() - 1;
    }
  const std::size_t found = sites.size();
  for (ReportSite& site : report.sites)
    if (!site.finding && (site.live.blocks > 0 || site.at_exit.blocks > 0)) sites.push_back(std::move(site));
  std::stable_sort(sites.begin() + static_cast<std::ptrdiff_t>(found), sites.end(),
                   [](const ReportSite& a, const ReportSite& b) { return a.live.bytes > b.live.bytes; });
  report.sites = std::move(sites);
}

/// The findings as text: "1 site", "2 sites", "1 leak of 4 sites".
std::string findings_words(const TraceReport& report) {
  std::uint64_t findings = 0, sites = 0;
  for (const Finding& finding : report.findings)
    if (finding.leak == report.leak) ++findings, sites += finding.sites.size();
  if (findings == sites) return format_count(sites, "site");
  return fmt::format("{} of {}", format_count(findings, report.leak ? "leak" : "suspected leak"),
                     format_count(sites, "site"));
}

/// The reason why no variable is named for a site of a finding.
std::string why_no_keeper(const ProbeTrace& trace, const ReportSite& site) {
  const auto process = std::find_if(trace.processes().begin(), trace.processes().end(), [&](const auto& each) {
    return !site.pids.empty() && each->process().pid == site.pids.front();
  });
  if (process == trace.processes().end()) return "the process is not in the trace";
  const std::optional<KeptLook>& look = (*process)->looks().last();
  if (!look && !(*process)->names().is_python()) return "no Python runs in the process, and only Python can be asked";
  if (!look && (*process)->goes_on())
    return fmt::format("tracing from outside asks Python nothing; 'vramtrack attach {} --kept' does",
                       (*process)->process().pid);
  std::int64_t blocks = 0;
  for (const CallSite& call : (*process)->sites()) blocks += call.live.blocks;
  if (!look && blocks < kLeastAsked)
    return fmt::format("Python is asked only about a process that holds {} blocks", kLeastAsked);
  if (!look && (*process)->end_us() > (*process)->shown_us())
    return "it was given back before Python was first asked: the function or the thread that kept it had ended";
  if (!look) return "the program ended before Python was asked";
  const std::string after = format_span(static_cast<double>(look->time_us) * 1e-6);
  if (!look->was_made) return fmt::format("Python was not asked: {}", look->why);
  const double oldest_at_s = static_cast<double>((*process)->shown_us()) * 1e-6 - site.oldest_s;
  if (site.live.blocks > 0 && static_cast<double>(look->time_us) * 1e-6 < oldest_at_s)
    return fmt::format("it was allocated after Python was last asked, after {}", after);
  if (2 * site.look.live_blocks < site.live.blocks && look->time_us >= (*process)->shown_us())
    return fmt::format(
        "it had been given back when Python was asked, after {}: the function or the thread that kept it had ended",
        after);
  if (!look->why.empty()) return fmt::format("the last search, after {}, is not complete: {}", after, look->why);
  if (!site.keeper && site.look.unheld > 0)
    return fmt::format("Python has objects for it, and after {} no object referred to them: C or C++ code keeps them",
                       after);
  if (!site.keeper && site.look.unasked > 0)
    return fmt::format("the search after {} asked about a sample of Python's objects, and these were not in it", after);
  if (!site.keeper)
    return fmt::format("after {} Python had no object for it: C or C++ code keeps it, as autograd keeps a graph",
                       after);
  if (!site.keeper->is_rooted) return fmt::format("no variable leads to {}", site.keeper->words);
  return fmt::format("{} has one of its blocks only, as what the last step used", site.keeper->words);
}

}  // namespace

std::string advice_on(const Finding& finding) {
  std::string out = "look at what keeps the memory that this line allocates: a list, a cache, a graph, a handle";
  if (finding.keeper)
    out = fmt::format(
        "bound what is in {}, or clear it; if it needs numbers only, keep those, not the memory (.item(), .detach())",
        finding.keeper->words);
  if (finding.sites.size() > 1) out += "; what it holds of other lines goes with it";
  return out;
}

TraceReport report_of(const ProbeTrace& trace, ProbeNames& names, const Suppressions& suppressions) {
  TraceReport report;
  report.program = trace.program();
  report.duration_s = trace.duration_s();
  report.notes = trace.losses();
  std::map<std::tuple<MemorySpace, std::uint32_t, std::string_view, std::string>, std::size_t> place;
  std::size_t groups = 0;
  std::vector<Membership> members;  // per site
  std::vector<std::size_t> joined;  // groups that have a site in common
  for (const auto& process : trace.processes()) {
    ReportProcess& reported = report.processes.emplace_back();
    reported.pid = process->process().pid;
    reported.command = process->command();
    reported.events = process->events();
    reported.peak_bytes = process->peak_bytes();
    reported.cached_bytes = process->cached_bytes();
    reported.freed_of_before = process->freed_of_before();
    reported.epochs = process->floors().epoch_count();
    reported.epoch_name = process->floors().epoch_name();
    reported.can_tell =
        process->floors().stretch_count() >= kLeastParts + 2 || process->floors().epoch_count() >= kLeastEpochs;
    report.can_tell = report.can_tell || reported.can_tell;
    report.cached_bytes += reported.cached_bytes;
    const std::optional<ProbeEnd>& end = process->end() ? process->end() : trace.end();
    if (end && end->signal == 0 && !process->names().is_python() && !process->goes_on()) report.has_native_exit = true;
    for (std::size_t i = 0; i < kMemorySpaces; ++i) {
      reported.live_bytes[i] = process->live_bytes(static_cast<MemorySpace>(i));
      report.live_bytes[i] += reported.live_bytes[i];
    }
    for (Line& line : lines_of(*process, names, groups)) {
      ReportSite& site = line.site;
      if (suppressions.matches(names.symbols(), site.stack)) {
        ++report.suppressed_sites;
        continue;
      }
      if (site.leak) ++reported.leaking_sites;
      const auto key = std::tuple(site.space, site.line.is_known ? index_of(site.line.frame) : IdTable::kNone,
                                  site.line.is_known ? std::string_view{} : site.call, site.part);
      const auto [at, is_new] = place.try_emplace(key, report.sites.size());
      const Membership its{line.group, line.in_step, line.steps, line.is_result};
      if (is_new) {
        report.sites.push_back(std::move(site));
        members.push_back(its);
        continue;
      }
      Membership& before = members[at->second];
      if (before.group != 0 && its.group != 0) joined[root_of(joined, its.group)] = root_of(joined, before.group);
      if (before.group == 0 || its.steps > before.steps)
        before = {before.group == 0 ? its.group : before.group, its.in_step, its.steps, its.is_result};
      merge(report.sites[at->second], site);
    }
    note_process(*process, report.notes);
  }
  std::array<double, kMemorySpaces> growth{};  // per second, because runs in several files may differ in length
  for (const ReportSite& site : report.sites)
    growth[static_cast<std::size_t>(site.space)] += std::max(0.0, site.growth_bytes_per_s);
  for (ReportSite& site : report.sites) {
    const double all = growth[static_cast<std::size_t>(site.space)];
    if (site.growth_bytes_per_s > 0) site.share = site.growth_bytes_per_s / all;
    report.suspected = report.suspected || site.suspected;
    if (!site.leak) continue;
    report.leak = true;
    report.growth_bytes_per_s += site.growth_bytes_per_s;
  }
  find_leaks(report, members, joined);
  for (Finding& finding : report.findings)
    if (!finding.keeper) finding.why_no_keeper = why_no_keeper(trace, report.sites[finding.sites.front()]);
  report_residual(trace, report);
  StackCategories stacks(names.symbols());
  report.categories = categories_of(trace, names, stacks);
  report.calls = held_by(trace, call_of);
  report.libraries = held_by(trace, library_of);
  for (ReportSite& site : report.sites) site.category = category_of(call_named(site.call), stacks.of(site.stack));
  report.suspected = report.suspected && !report.leak;
  report.undecided = !report.leak && !report.suspected && report.can_tell &&
                     std::any_of(report.sites.begin(), report.sites.end(), is_undecided);
  std::uint64_t events = 0;
  for (const ReportProcess& process : report.processes) events += process.events;
  if (report.leak) {
    report.because =
        fmt::format("{} kept growing to the end of {}", findings_words(report), format_count(events, "event"));
    report.next_step = advice_on(report.findings.front());
  } else if (report.suspected) {
    report.because =
        fmt::format("{} that gained most of the memory of the second half began to grow late in {} and grew to the end",
                    findings_words(report), format_count(events, "event"));
    report.next_step = "run the program for longer: a leak keeps growing, the memory of a last step does not";
  } else if (report.undecided) {
    const auto risen = std::count_if(report.sites.begin(), report.sites.end(), is_undecided);
    report.because =
        fmt::format("{} rose over {}, but by too little to tell growth from chance",
                    format_count(static_cast<std::uint64_t>(risen), "site"), format_count(events, "event"));
    report.next_step = "run the program for longer: a leak keeps growing";
  } else if (report.can_tell) {
    report.because = fmt::format("no site kept growing over {}", format_count(events, "event"));
  } else {
    report.because = fmt::format("{} are too few to tell a leak from a warm-up", format_count(events, "event"));
    report.next_step = "let the program run for more of its iterations, or mark its epochs with vramtrack.mark()";
  }
  if (!report.leak && has_pool(report, names.symbols())) {
    report.because += "; what lies in the pool of JAX or TensorFlow is not seen";
    report.next_step = "if memory grows within the pool, 'vramtrack run --exact' shows the line";
  }
  for (std::string& note : report.notes) note = printable(note);  // they name files
  if (report.residual_grows) report.because += "; memory that the probe does not see grows, too";
  return report;
}

CategoryTotals categories_of(const ProbeTrace& trace, ProbeNames& names, StackCategories& stacks) {
  const Profile profile = profile_of(trace, names, MemorySpace::device);
  std::vector<ReportedBytes> reported;
  for (const auto& process : trace.processes())
    for (const LiveReports::BlockReport& each : process->reported()) {
      const CallSite& site = process->sites()[each.place];
      if (site.space != MemorySpace::device) continue;
      const StringId name = each.name == 0 ? kNoText : names.symbols().intern(process->names().text(each.name));
      reported.push_back({names.stack(*process, site.stack), each.category, name, each.bytes, each.blocks});
    }
  CategoryTotals totals = categorize(profile, reported, stacks);
  for (const auto& process : trace.processes()) {
    std::map<std::uint32_t, Held> reported_of;  // by call site
    for (const LiveReports::BlockReport& each : process->reported()) {
      reported_of[each.place].bytes += each.bytes;
      reported_of[each.place].blocks += each.blocks;
    }
    for (std::uint32_t i = 0; i < process->sites().size(); ++i) {
      const CallSite& site = process->sites()[i];
      if (site.space != MemorySpace::device || site.live.blocks == 0) continue;
      const Category of_stack = stacks.of(names.stack(*process, site.stack));
      const Category by_call = category_of(probe::info_of(site.call), of_stack);
      if (by_call == of_stack) continue;
      const Held reported_here = reported_of[i];
      const Held rest{site.live.bytes - reported_here.bytes, site.live.blocks - reported_here.blocks};
      totals.add(of_stack, -rest.bytes, -rest.blocks);
      totals.add(by_call, rest.bytes, rest.blocks);
    }
  }
  totals.sort();
  return totals;
}

Profile profile_of(const ProbeTrace& trace, ProbeNames& names, MemorySpace space, std::optional<std::size_t> moment) {
  ProfileBuilder builder;
  for (const auto& process : trace.processes()) {
    if (moment && !process->moments()[*moment]) continue;
    for (std::size_t i = 0; i < process->sites().size(); ++i) {
      const CallSite& call = process->sites()[i];
      if (call.space != space) continue;
      Held held = call.live;
      if (moment) {
        const auto& then = process->moments()[*moment]->sites;
        held = i < then.size() ? then[i] : Held{};
      }
      if (held.bytes != 0 || held.blocks != 0) builder.add(names.stack(*process, call.stack), held.bytes, held.blocks);
    }
  }
  return builder.profile();
}

Profile difference(const Profile& from, const Profile& to) {
  ProfileBuilder builder;
  for (const StackBytes& held : to) builder.add(held.stack, held.bytes, held.blocks);
  for (const StackBytes& held : from) builder.add(held.stack, -held.bytes, -held.blocks);
  return builder.profile();
}

}  // namespace vramtrack::trace
