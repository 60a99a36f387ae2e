#include "trace/lockstep.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

namespace vramtrack::trace {
namespace {

/// The share of steps that must be regular; the first and the last of a program often are not.
constexpr double kRegularShare = 0.9;
/// The share of additional blocks that a line of the group may hold, mostly from the start.
constexpr double kBesidesShare = 0.1;
/// Several blocks per step are a burst if they leave this share of it free, and more than their number alone would.
constexpr double kLeastPause = 0.25;
constexpr double kPausePerBlock = 1.5;
/// Two stretches of a program with this share of their sites in common are the same code, run twice; with less, they
/// are two parts of one step.
constexpr double kSameCode = 0.8;
/// CPython frees deeply nested objects in batches of up to 50 (its trashcan), so fewer blocks may be freed site by site
/// even though one owner had them all.
constexpr std::size_t kLeastSeparate = 100;
/// All blocks of one site, then all of the other, and perhaps those held by local variables of the last step.
constexpr std::size_t kMostSeparateRuns = 3;

struct Births {
  std::size_t in_step = 0;  ///< the most frequent number between two births of the rare site
  std::size_t regular = 0;  ///< steps with that number
  std::size_t before = 0, after = 0;
};

/// `with_ties`: births in the same microsecond count as earlier.
Births births_between(std::span<const std::uint64_t> site, std::span<const std::uint64_t> rare, bool with_ties) {
  Births out;
  std::size_t at = 0;
  const auto up_to = [&](std::uint64_t us) {
    const std::size_t from = at;
    while (at < site.size() && (site[at] < us || (with_ties && site[at] == us))) ++at;
    return at - from;
  };
  out.before = up_to(rare.front());
  std::map<std::size_t, std::size_t> steps;  // by the number of births
  for (std::size_t i = 1; i < rare.size(); ++i) ++steps[up_to(rare[i])];
  out.after = site.size() - at;
  for (const auto& [number, count] : steps)
    if (count > out.regular) out.in_step = number, out.regular = count;
  return out;
}

Births births_between(std::span<const std::uint64_t> site, std::span<const std::uint64_t> rare) {
  const Births with_ties = births_between(site, rare, true), without = births_between(site, rare, false);
  return with_ties.regular > without.regular ? with_ties : without;
}

/// The longest pause between births of the site within a step, as a share of the step; the median over the steps.
double longest_pause(std::span<const std::uint64_t> site, std::span<const std::uint64_t> rare) {
  std::vector<double> pauses;
  for (std::size_t i = 1; i < rare.size(); ++i) {
    const auto from = std::upper_bound(site.begin(), site.end(), rare[i - 1]);
    // The first birth of the next step ends the pause at the end of this one.
    const auto to = std::upper_bound(from, site.end(), rare[i]);
    const auto end = to == site.end() ? to : to + 1;
    if (end - from < 2 || *(end - 1) == *from) continue;
    std::uint64_t longest = 0;
    for (auto at = from + 1; at != end; ++at) longest = std::max(longest, *at - *(at - 1));
    pauses.push_back(static_cast<double>(longest) / static_cast<double>(*(end - 1) - *from));
  }
  if (pauses.empty()) return 0;
  const auto middle = pauses.begin() + static_cast<std::ptrdiff_t>(pauses.size() / 2);
  std::nth_element(pauses.begin(), middle, pauses.end());
  return *middle;
}

using PassingRange = std::span<const Passing>;

PassingRange between(PassingRange passing, std::uint64_t after_us, std::uint64_t before_us) {
  const auto by_time = [](const Passing& each, std::uint64_t us) { return each.time_us < us; };
  const auto from = std::lower_bound(passing.begin(), passing.end(), after_us + 1, by_time);
  const auto to = std::lower_bound(from, passing.end(), before_us, by_time);
  return {from, to};
}

/// Whether the same code runs between an allocation of the site and one of the rare site, and from there to the next
/// one of the site; if so, these are two steps. Code that runs only occasionally (logging, evaluation) is ignored.
bool are_in_other_steps(std::span<const std::uint64_t> site, std::span<const std::uint64_t> rare,
                        PassingRange passing) {
  if (passing.empty()) return false;
  std::size_t looked = 0;
  std::map<std::uint32_t, std::pair<std::size_t, std::size_t>> seen;  // number of steps: before and after
  for (std::size_t i = rare.size(); i-- > 0 && rare[i] > passing.front().time_us;) {
    const auto next = std::upper_bound(site.begin(), site.end(), rare[i]);
    if (next == site.begin() || next == site.end() || *(next - 1) < passing.front().time_us) continue;
    ++looked;
    std::set<std::uint32_t> before, after;
    for (const Passing& each : between(passing, *(next - 1), rare[i])) before.insert(each.site);
    for (const Passing& each : between(passing, rare[i], *next)) after.insert(each.site);
    for (const std::uint32_t each : before) ++seen[each].first;
    for (const std::uint32_t each : after) ++seen[each].second;
  }
  std::size_t common = 0, all = 0;
  for (const auto& [each, steps] : seen) {
    const bool is_before = 2 * steps.first > looked, is_after = 2 * steps.second > looked;
    common += is_before && is_after ? 1U : 0U;
    all += is_before || is_after ? 1U : 0U;
  }
  return common > 0 && static_cast<double>(common) >= kSameCode * static_cast<double>(all);
}

/// The number of runs in which the blocks of one site are released after those of the other.
std::size_t runs_of(std::span<const std::uint32_t> a, std::span<const std::uint32_t> b) {
  std::size_t runs = 0, i = 0, j = 0;
  int last = 0;
  while (i < a.size() || j < b.size()) {
    const int next = j == b.size() || (i < a.size() && a[i] < b[j]) ? 1 : 2;
    runs += next != last ? 1U : 0U;
    last = next;
    next == 1 ? ++i : ++j;
  }
  return runs;
}

}  // namespace

Lockstep lockstep_of(const SiteBlocks& site, const SiteBlocks& rare, std::span<const Passing> passing) {
  Lockstep out;
  const std::size_t steps = rare.births_us.size();
  if (steps < kLeastSteps) return out;
  const Births births = births_between(site.births_us, rare.births_us);
  const std::size_t in_step = births.in_step;
  if (in_step == 0 || static_cast<double>(births.regular) < kRegularShare * static_cast<double>(steps - 1)) return out;
  const double besides = kBesidesShare * static_cast<double>(site.births_us.size()) + static_cast<double>(2 * in_step);
  if (static_cast<double>(births.before) > besides || static_cast<double>(births.after) > besides) return out;
  out.in_step = in_step;
  out.follows = births.before < in_step;
  const std::size_t fewest = std::min(site.deaths.size(), rare.deaths.size());
  // If most deaths were not recorded, those that were show nothing about the others.
  const bool has_deaths =
      static_cast<double>(rare.deaths.size()) >= kRegularShare * static_cast<double>(steps) &&
      static_cast<double>(site.deaths.size()) >= kRegularShare * static_cast<double>(site.births_us.size());
  const std::size_t runs = has_deaths ? runs_of(site.deaths, rare.deaths) : 0;
  if (fewest >= kLeastSeparate && has_deaths && runs <= kMostSeparateRuns) return out;
  const bool die_by_step = has_deaths && runs >= fewest;
  if (in_step > 1 && !die_by_step &&
      longest_pause(site.births_us, rare.births_us) <
          std::max(kLeastPause, kPausePerBlock / static_cast<double>(in_step)))
    return out;
  out.is_together = die_by_step || !are_in_other_steps(site.births_us, rare.births_us, passing);
  return out;
}

std::vector<LockstepGroup> lockstep_groups(std::span<const SiteBlocks> sites, std::span<const Passing> passing) {
  std::vector<std::size_t> order(sites.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return sites[a].births_us.size() < sites[b].births_us.size(); });
  // Sites are compared with the rarest one of their group: similarity is not transitive.
  struct Member {
    std::size_t site = 0;
    std::uint64_t last_us = 0;  ///< time of its last birth in the first step
  };
  struct Open {
    std::size_t rarest = 0;
    std::vector<Member> members;
  };
  std::vector<Open> open;
  for (const std::size_t site : order) {
    const std::vector<std::uint64_t>& births_us = sites[site].births_us;
    bool is_in = false;
    for (Open& group : open) {
      const Lockstep found = lockstep_of(sites[site], sites[group.rarest], passing);
      if (!found.is_together) continue;
      const std::uint64_t first_us = sites[group.rarest].births_us.front();
      const auto after = std::upper_bound(births_us.begin(), births_us.end(), first_us);
      const std::uint64_t last_us =
          found.follows ? *(after + static_cast<std::ptrdiff_t>(std::min<std::size_t>(
                                        found.in_step - 1, static_cast<std::size_t>(births_us.end() - after) - 1)))
                        : *(after - 1);
      group.members.push_back({site, last_us});
      is_in = true;
      break;
    }
    if (!is_in) open.push_back({site, {{site, births_us.empty() ? 0 : births_us.front()}}});
  }
  std::vector<LockstepGroup> out;
  for (Open& group : open) {
    std::stable_sort(group.members.begin(), group.members.end(),
                     [](const Member& a, const Member& b) { return a.last_us < b.last_us; });
    LockstepGroup& its = out.emplace_back();
    its.steps = sites[group.rarest].births_us.size();
    for (const Member& member : group.members) its.sites.push_back(member.site);
  }
  return out;
}

}  // namespace vramtrack::trace
