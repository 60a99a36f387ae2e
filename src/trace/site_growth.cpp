#include "trace/site_growth.hpp"

#include <algorithm>
#include <numeric>

#include "core/statistics.hpp"

namespace vramtrack::trace {
namespace {

constexpr std::size_t kMostFloors = 64;
constexpr double kSlowErrorRate = 0.1;

/// Whether the last third rises by less than the first third, and not by chance.
bool slows_down(std::span<const Floor> floors) {
  const std::size_t third = (floors.size() - 1) / 3;
  if (third == 0) return false;
  const std::size_t last = floors.size() - 1;
  const auto early_bytes = static_cast<double>(floors[third].bytes - floors[0].bytes);
  const auto late_bytes = static_cast<double>(floors[last].bytes - floors[last - third].bytes);
  if (!is_slowing(early_bytes, late_bytes)) return false;
  const std::int64_t early = floors[third].blocks - floors[0].blocks;
  const std::int64_t late = floors[last].blocks - floors[last - third].blocks;
  if (early <= 0 || late < 0 || early + late > 10'000) return true;
  // Blocks that arrive at a constant rate are equally likely to fall into either third.
  return late < early &&
         binomial_cdf(static_cast<std::size_t>(late), static_cast<std::size_t>(late + early), 0.5) < kSlowErrorRate;
}

/// The largest fall from one floor to a later one.
std::int64_t largest_fall(std::span<const Floor> floors) {
  std::int64_t fall = 0;
  std::int64_t highest = floors.front().bytes;
  for (const Floor& floor : floors) {
    highest = std::max(highest, floor.bytes);
    fall = std::max(fall, highest - floor.bytes);
  }
  return fall;
}

/// The limit on epochs, for a program that marks each of thousands of steps.
constexpr std::size_t kMostEpochParts = 24;

bool rises_every_time(std::span<const Floor> floors) {
  return std::adjacent_find(floors.begin(), floors.end(),
                            [](const Floor& a, const Floor& b) { return b.bytes <= a.bytes; }) == floors.end();
}

/// Judges everything but the error rate: a `leak` is confirmed only if its p-value holds among all sites.
SiteJudgement shape_of(std::span<const Floor> floors) {
  SiteJudgement out;
  const std::size_t n = floors.size();
  if (n < 2) return out;
  out.growth_bytes = floors.back().bytes - floors.front().bytes;
  out.growth_blocks = floors.back().blocks - floors.front().blocks;
  if (n > kMostFloors || n < kLeastEpochs) {
    out.shape = out.growth_bytes > 0 ? SiteShape::unsure : SiteShape::flat;
    return out;
  }
  out.p_value = kendall_p(n, kendall_score(n, [&](std::size_t i) { return floors[i].bytes; }));
  const std::size_t half = n / 2;
  out.least_growth_bytes =
      std::min(floors[n - 2].bytes, floors[n - 1].bytes) -
      (n < kLeastParts ? floors[half - 1].bytes : std::max(floors[half - 1].bytes, floors[half].bytes));
  const std::int64_t fall = largest_fall(floors);
  if (fall > 0 && 2 * fall > out.growth_bytes)
    out.shape = SiteShape::given_back;
  else if (out.growth_bytes <= 0)
    out.shape = SiteShape::flat;
  else if (out.least_growth_bytes <= 0)
    out.shape = SiteShape::warm_up;
  else if (slows_down(floors))
    out.shape = SiteShape::filling;
  else if (out.growth_blocks < static_cast<std::int64_t>(n) - (n < kLeastParts ? 1 : 0) && !rises_every_time(floors))
    out.shape = SiteShape::unsure;
  else
    out.shape = SiteShape::leak;
  // Churn: the floor is no higher at the end than at some earlier time.
  if (out.shape == SiteShape::given_back && 4 * out.growth_bytes < fall) out.shape = SiteShape::flat;
  return out;
}

/// Applies Holm's step-down over all sites; a site that does not pass is not a leak.
void hold_error_rate(std::vector<SiteJudgement>& sites) {
  std::vector<std::size_t> order(sites.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(),
            [&sites](std::size_t a, std::size_t b) { return sites[a].p_value < sites[b].p_value; });
  bool passes = true;
  for (std::size_t i = 0; i < order.size(); ++i) {
    SiteJudgement& site = sites[order[i]];
    passes = passes && site.p_value * static_cast<double>(order.size() - i) <= kSiteErrorRate;
    if (!passes && site.shape == SiteShape::leak) site.shape = SiteShape::unsure;
  }
}

}  // namespace

std::string_view shape_name(SiteShape shape) {
  switch (shape) {
    case SiteShape::flat:
      return "flat";
    case SiteShape::warm_up:
      return "warm-up";
    case SiteShape::filling:
      return "filling";
    case SiteShape::given_back:
      return "given back";
    case SiteShape::unsure:
      return "unsure";
    case SiteShape::late:
      return "late";
    case SiteShape::leak:
      return "leak";
  }
  return "";
}

bool rises_late(std::span<const Floor> floors) {
  const std::size_t n = floors.size();
  if (n < kLeastParts + 2) return false;
  std::size_t onset = n - 1;
  while (onset > 0 && floors[onset - 1].bytes < floors[onset].bytes) --onset;
  if (n - 1 - onset < kLeastLateRises || 2 * onset < n) return false;
  const std::int64_t rise = floors[n - 1].bytes - floors[onset].bytes;
  return floors[n - 1].blocks - floors[onset].blocks >= static_cast<std::int64_t>(kLeastParts) &&
         rise > floors[onset].bytes - floors[n / 6].bytes && rise > 2 * largest_fall(floors);
}

std::vector<Floor> joined_floors(std::span<const Floor> floors, std::size_t parts) {
  parts = std::min(parts, floors.size());
  std::vector<Floor> out;
  for (std::size_t part = 0; part < parts; ++part) {
    const std::size_t from = floors.size() * part / parts;
    const std::size_t to = floors.size() * (part + 1) / parts;
    Floor least = floors[from];
    for (std::size_t i = from; i < to; ++i) {
      least.bytes = std::min(least.bytes, floors[i].bytes);
      least.blocks = std::min(least.blocks, floors[i].blocks);
    }
    out.push_back(least);
  }
  return out;
}

std::vector<SiteJudgement> judge_stretches(std::span<const std::vector<Floor>> sites) {
  std::vector<SiteJudgement> out;
  for (const std::vector<Floor>& all : sites) {
    if (all.empty()) {
      out.emplace_back();
      continue;
    }
    const std::vector<Floor> floors = joined_floors(all, kRunParts);
    const std::size_t start = floors.size() / 6;
    out.push_back(shape_of(std::span(floors).subspan(start)));
    if (floors.size() - start < kLeastParts && out.back().shape == SiteShape::leak)
      out.back().shape = SiteShape::unsure;
  }
  hold_error_rate(out);
  return out;
}

std::vector<SiteJudgement> judge_epochs(std::span<const std::vector<Floor>> sites,
                                        std::span<const std::uint64_t> returned) {
  std::vector<SiteJudgement> out;
  bool are_few = true;
  for (std::size_t i = 0; i < sites.size(); ++i) {
    // Join many epochs into parts of equal length, no more than the exact test can handle quickly.
    const std::vector<Floor> all = joined_floors(sites[i], kMostEpochParts);
    // If there are many, the first is the program's start.
    const std::size_t start = all.size() > kLeastParts ? std::max<std::size_t>(1, all.size() / 6) : 0;
    const auto floors = std::span(all).subspan(std::min(start, all.size()));
    are_few = floors.size() < kLeastParts;
    SiteJudgement its = shape_of(floors);
    if (are_few && its.shape == SiteShape::leak &&
        (!rises_every_time(floors) || its.growth_blocks < static_cast<std::int64_t>(returned[i])))
      its.shape = SiteShape::unsure;
    out.push_back(its);
  }
  if (!are_few) hold_error_rate(out);
  return out;
}

}  // namespace vramtrack::trace
