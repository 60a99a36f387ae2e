#include "trace/recent_growth.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace vramtrack::trace {
namespace {

constexpr std::size_t kScales[] = {1, 2, 4};  ///< numbers of windows that are joined into one
constexpr std::int64_t kSteadyOneIn = 3;
/// The last two windows of a rise must bring this much of what its first two brought.
constexpr double kSlow = 0.6;
constexpr std::int64_t kLeastShareOneIn = 100;
/// This share of the sites that allocated before must still do so. A site counts if it did in this many windows.
constexpr double kStillRuns = 0.8;
constexpr std::size_t kOften = 4;

std::int64_t window_at(double time_s) {
  return static_cast<std::int64_t>(std::floor(time_s / RecentGrowth::kWindow_s));
}

}  // namespace

/// Fills the windows up to and including `window`, during which nothing changed.
void RecentGrowth::fill(Site& site, std::int64_t window) {
  for (std::int64_t next = std::max(site.window + 1, window - static_cast<std::int64_t>(kWindows) + 1); next <= window;
       ++next)
    site.windows[static_cast<std::size_t>(next) % kWindows] = {site.bytes, site.blocks, 0, 0};
  site.window = std::max(site.window, window);
}

RecentGrowth::Window& RecentGrowth::touch(Site& site, double time_s) {
  const std::int64_t window = std::max(window_at(time_s), site.window);
  if (begin_ < 0) begin_ = window;
  if (site.window < 0) site.first = window;
  fill(site, window);
  return site.windows[static_cast<std::size_t>(window) % kWindows];
}

void RecentGrowth::change(SiteNumber number, std::int64_t bytes, int blocks, double time_s) {
  live_bytes_ += bytes;
  if (number >= kMostSites) return;
  if (number >= sites_.size()) sites_.resize(number + 1);
  Site& site = sites_[number];
  Window& window = touch(site, time_s);
  site.bytes += bytes;
  site.blocks += blocks;
  window.bytes = std::min(window.bytes, site.bytes);
  window.blocks = std::min(window.blocks, site.blocks);
  if (blocks < 0) return;
  if (window.allocations++ == 0)
    window.first_s = static_cast<float>(time_s - std::floor(time_s / kWindow_s) * kWindow_s);
}

void RecentGrowth::allocate(std::uint64_t address, std::uint64_t bytes, SiteNumber site, double time_s) {
  if (is_over_) return;
  free(address, time_s);
  if (blocks_.size() >= kMostBlocks) {
    is_over_ = true;
    blocks_ = {};
    sites_ = {};
    return;
  }
  blocks_.put({address, bytes, site, true});
  change(site, static_cast<std::int64_t>(bytes), 1, time_s);
}

void RecentGrowth::free(std::uint64_t address, double time_s) {
  Block* const known = blocks_.find(address);
  if (known == nullptr) return;
  const Block block = *known;
  blocks_.erase(known);
  change(block.site, -static_cast<std::int64_t>(block.bytes), -1, time_s);
}

/// The last windows up to `last`, oldest first, each joined from `joined` ones; none older than the site.
std::vector<RecentGrowth::Window> RecentGrowth::joined_windows(const Site& site, std::size_t joined,
                                                               std::int64_t last) const {
  std::vector<Window> out;
  const auto step = static_cast<std::int64_t>(joined);
  const std::int64_t oldest = std::max(begin_, last - static_cast<std::int64_t>(kWindows) + 2);
  for (std::int64_t end = last; end - step + 1 >= oldest; end -= step) {
    Window sum;
    for (std::int64_t at = end - step + 1; at <= end; ++at) {
      // Before its first allocation, a site held nothing.
      const Window each = at < site.first ? Window{} : site.windows[static_cast<std::size_t>(at) % kWindows];
      const bool is_first = at == end - step + 1;
      sum.bytes = is_first ? each.bytes : std::min(sum.bytes, each.bytes);
      sum.blocks = is_first ? each.blocks : std::min(sum.blocks, each.blocks);
      if (each.allocations > 0 && sum.allocations == 0)
        sum.first_s = each.first_s + static_cast<float>(static_cast<double>(at - (end - step + 1)) * kWindow_s);
      sum.allocations += each.allocations;
    }
    out.push_back(sum);
  }
  std::reverse(out.begin(), out.end());
  return out;
}

std::optional<RecentRise> RecentGrowth::rise_of(SiteNumber number, std::size_t joined, std::int64_t last) const {
  const std::vector<Window> windows = joined_windows(sites_[number], joined, last);
  const std::size_t n = windows.size();
  if (n < 2 * kRises + 1) return std::nullopt;
  std::size_t onset = n - 1;  // the last window before the rise
  while (onset > 0 && windows[onset - 1].bytes < windows[onset].bytes &&
         windows[onset - 1].blocks < windows[onset].blocks)
    --onset;
  if (n - 1 - onset < kRises || onset < kRises) return std::nullopt;
  std::int64_t least = std::numeric_limits<std::int64_t>::max(), most = 0;
  for (std::size_t i = onset + 2; i < n; ++i) {  // the first rise covers only part of a window
    const std::int64_t rise = windows[i].bytes - windows[i - 1].bytes;
    least = std::min(least, rise);
    most = std::max(most, rise);
  }
  const auto early = static_cast<double>(windows[onset + 3].bytes - windows[onset + 1].bytes);
  const auto late = static_cast<double>(windows[n - 1].bytes - windows[n - 3].bytes);
  if (least * kSteadyOneIn < most || late < kSlow * early) return std::nullopt;
  RecentRise out;
  out.site = number;
  out.bytes = windows[n - 1].bytes - windows[onset].bytes;
  out.blocks = windows[n - 1].blocks - windows[onset].blocks;
  if (out.blocks < kManyBlocks && kLeastShareOneIn * out.bytes < live_bytes_) return std::nullopt;
  std::int64_t highest = windows[0].bytes, fall = 0;
  for (std::size_t i = 0; i <= onset; ++i) {
    highest = std::max(highest, windows[i].bytes);
    fall = std::max(fall, highest - windows[i].bytes);
  }
  if (2 * fall > out.bytes) return std::nullopt;
  // Count the sites that allocated in the windows before the rise, and those of them that still do in the last.
  std::size_t before = 0, still = 0;
  for (const Site& site : sites_) {
    if (site.window < 0) continue;
    const std::vector<Window> its = joined_windows(site, joined, last);
    const auto runs = [&](std::size_t from) {
      return static_cast<std::size_t>(std::count_if(its.begin() + static_cast<std::ptrdiff_t>(from),
                                                    its.begin() + static_cast<std::ptrdiff_t>(from + kRises),
                                                    [](const Window& each) { return each.allocations > 0; })) >= kOften;
    };
    if (!runs(onset - kRises)) continue;
    ++before;
    still += runs(n - kRises) ? 1U : 0U;
  }
  if (before == 0 || static_cast<double>(still) < kStillRuns * static_cast<double>(before)) return std::nullopt;
  const double window_s = kWindow_s * static_cast<double>(joined);
  const double end_s = static_cast<double>(last + 1) * kWindow_s;
  const double onset_s = end_s - static_cast<double>(n - onset) * window_s;
  out.since_s = out.first_s = onset_s + windows[onset].first_s;
  // The floors of the windows rise by the growth in each window.
  out.bytes_per_s = static_cast<double>(windows[n - 1].bytes - windows[onset + 1].bytes) /
                    (static_cast<double>(n - 2 - onset) * window_s);
  return out;
}

std::vector<RecentRise> RecentGrowth::rises(double now_s) {
  std::vector<RecentRise> out;
  const std::int64_t last = window_at(now_s) - 1;  // the last completed window
  if (is_over_ || begin_ < 0 || last <= looked_) return out;
  looked_ = last;
  for (Site& site : sites_)
    if (site.window >= 0) fill(site, last + 1);
  for (SiteNumber number = 0; number < sites_.size(); ++number) {
    Site& site = sites_[number];
    if (site.window < 0 || site.is_reported || site.blocks < static_cast<std::int64_t>(kRises)) continue;
    for (const std::size_t joined : kScales) {
      const auto rise = rise_of(number, joined, last);
      if (!rise) continue;
      site.is_reported = true;
      out.push_back(*rise);
      break;
    }
  }
  return out;
}

}  // namespace vramtrack::trace
