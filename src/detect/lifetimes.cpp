#include "detect/lifetimes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace vramtrack {
namespace {

/// Anything reported longer ago than this is out of date.
constexpr double kStale_s = 180;
/// The lines must explain this share of a rise.
constexpr double kExplains = 0.5;
/// The first half of the rise must have brought this share of it: what came later cannot have been released yet.
constexpr double kFirstHalf = 0.15;
/// It stays if this share of what the first half brought is still live, and if as much, within kAlike, of what was
/// allocated then is live as of what was allocated in the second half.
constexpr double kStays = 0.75;
constexpr double kAlike = 0.9;
/// It dies if no more than this share is still live.
constexpr double kDies = 0.25;
/// Younger memory may be temporary.
constexpr double kYoung_s = 60;
/// A shorter rise may be the temporary memory of a step.
constexpr double kShortest_s = 240;
/// A line has stopped if it has allocated nothing for this long, for three of the rise's pauses, and for a quarter of
/// the rise.
constexpr double kStopped_s = 120;
constexpr double kStoppedPauses = 3;
constexpr double kStoppedShare = 0.25;
/// As for experience: odds that only the observation of thousands of runs could exceed.
constexpr double kOdds = 16;

constexpr std::size_t kMostPoints = 256;
constexpr std::size_t kMostLines = 24;

/// What a line allocated between two ages, and the live part of it: stretches count as far as they overlap.
struct Born {
  double allocated_bytes = 0, live_bytes = 0;
  [[nodiscard]] double share() const { return allocated_bytes > 0 ? live_bytes / allocated_bytes : 0; }
};

Born born_between(const SiteLifetimes& site, double youngest_s, double oldest_s) {
  Born sum;
  for (const AgedBytes& age : site.ages) {
    const double overlap_s = std::min(oldest_s, age.oldest_s) - std::max(youngest_s, age.youngest_s);
    if (overlap_s <= 0) continue;
    const double part = overlap_s / (age.oldest_s - age.youngest_s);
    sum.allocated_bytes += part * age.allocated_bytes;
    sum.live_bytes += part * age.live_bytes;
  }
  return sum;
}

}  // namespace

double LifetimesWord::odds() const {
  return kind == Kind::stays ? kOdds : 0;
}

std::string LifetimesWord::describe(const Scale& scale) const {
  if (kind == Kind::none) return {};
  if (kind == Kind::stopped) return fmt::format("{} has allocated nothing for {}", site, scale.span(stopped_s));
  return fmt::format("of what {} allocated {} ago {:.0f} % is still live", site, scale.span(age_s), 100 * share);
}

Lifetimes::Point Lifetimes::Line::at(Timestamp time) const {
  const auto after =
      std::lower_bound(points.begin(), points.end(), time, [](const Point& p, Timestamp t) { return p.time < t; });
  if (after == points.end()) return points.back();
  if (after == points.begin() || after->time == time) return *after;
  const Point& before = *std::prev(after);
  const double part = seconds_between(before.time, time) / seconds_between(before.time, after->time);
  return {time, before.live_bytes + part * (after->live_bytes - before.live_bytes),
          before.settled_bytes + part * (after->settled_bytes - before.settled_bytes)};
}

void Lifetimes::take(Timestamp time, const std::vector<SiteLifetimes>& sites) {
  time_ = time;
  sites_ = sites;
  for (const SiteLifetimes& site : sites) {
    auto line = std::find_if(lines_.begin(), lines_.end(), [&](const Line& each) { return each.site == site.site; });
    if (line == lines_.end()) {
      if (lines_.size() == kMostLines)
        lines_.erase(std::min_element(lines_.begin(), lines_.end(), [](const Line& a, const Line& b) {
          return a.points.back().time < b.points.back().time;
        }));
      line = lines_.insert(lines_.end(), {site.site, {}});
    }
    std::vector<Point>& points = line->points;
    if (!points.empty() && points.back().time >= time) points.pop_back();
    const double young_bytes = born_between(site, 0, kYoung_s).live_bytes;
    points.push_back({time, site.live_bytes, std::max(0.0, site.live_bytes - young_bytes)});
    if (points.size() <= kMostPoints) continue;
    // Older points are kept more coarsely: every second point of the older half is dropped.
    std::size_t kept = 0;
    for (std::size_t i = 0; i < points.size(); ++i)
      if (i % 2 == 0 || i >= kMostPoints / 2) points[kept++] = points[i];
    points.resize(kept);
  }
}

LifetimesWord Lifetimes::word(Timestamp start, Timestamp end, double net_bytes, double gap_s) const {
  const double since_report_s = seconds_between(time_, end);
  const double duration_s = seconds_between(start, time_);
  if (sites_.empty() || since_report_s > kStale_s || duration_s < kShortest_s || net_bytes <= 0) return {};
  const Timestamp middle = start + from_seconds(duration_s / 2);
  LifetimesWord word;
  double grown = 0, most = 0;
  Point first_half;  // what that brought
  double idle_s = seconds_between(start, end);
  Born first, second;
  for (const SiteLifetimes& site : sites_) {
    if (site.ages.empty()) continue;
    const auto line =
        std::find_if(lines_.begin(), lines_.end(), [&](const Line& each) { return each.site == site.site; });
    if (line == lines_.end()) continue;
    const Point then = line->at(start), between = line->at(middle);
    const double growth = site.live_bytes - then.live_bytes;
    if (growth <= 0) continue;
    grown += growth;
    first_half.live_bytes += std::max(0.0, between.live_bytes - then.live_bytes);
    first_half.settled_bytes += std::max(0.0, between.settled_bytes - then.settled_bytes);
    const Born older = born_between(site, duration_s / 2, duration_s);
    const Born younger = born_between(site, kYoung_s, duration_s / 2);
    first.allocated_bytes += older.allocated_bytes;
    first.live_bytes += older.live_bytes;
    second.allocated_bytes += younger.allocated_bytes;
    second.live_bytes += younger.live_bytes;
    idle_s = std::min(idle_s, site.idle_s + since_report_s);
    if (growth <= most) continue;
    most = growth;
    word.site = site.site;
    word.age_s = 3 * duration_s / 4;
    word.share = older.share();
  }
  if (grown < kExplains * net_bytes) return {};
  if (idle_s >= std::max({kStopped_s, kStoppedPauses * gap_s, kStoppedShare * seconds_between(start, end)})) {
    word.kind = LifetimesWord::Kind::stopped;
    word.stopped_s = idle_s;
    return word;
  }
  if (first.allocated_bytes <= 0 || first_half.live_bytes < kFirstHalf * grown) return {};
  if (first.live_bytes <= kDies * first_half.live_bytes) word.kind = LifetimesWord::Kind::dies;
  if (first_half.settled_bytes >= kFirstHalf * grown && first.live_bytes >= kStays * first_half.settled_bytes &&
      first.share() >= kAlike * second.share())
    word.kind = LifetimesWord::Kind::stays;
  return word;
}

}  // namespace vramtrack
