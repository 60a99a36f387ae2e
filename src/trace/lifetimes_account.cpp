#include "trace/lifetimes_account.hpp"

#include <algorithm>
#include <utility>

namespace vramtrack::trace {
namespace {

/// How many sites to report: those that hold the most, and those that hold the most recent memory.
constexpr std::size_t kMostByBytes = 3, kMostByGrowth = 3;
constexpr double kLately_s = 3600;

}  // namespace

Event event_of(ProcessLifetimes process, Timestamp time) {
  Event event;
  event.time = time;
  event.kind = Event::Kind::lifetimes;
  event.pid = process.pid;
  event.pid_start_ticks = process.start_ticks;
  event.sites = std::move(process.sites);
  return event;
}

void LifetimesAccount::allocate(std::uint64_t address, std::uint64_t bytes, SiteNumber site, double time_s,
                                std::uint64_t sampled_below) {
  changed_s_ = time_s;
  ledger_.allocate(address, bytes, site, time_s, sampled_below);
}

void LifetimesAccount::free(std::uint64_t address, double time_s) {
  changed_s_ = time_s;
  ledger_.free(address);
}

std::optional<std::vector<SiteLifetimes>> LifetimesAccount::report(double now_s,
                                                                   const std::function<std::string(SiteNumber)>& name) {
  const double pace_s = changed_s_ > reported_s_ ? kPace_s : kRetell_s;
  if (reported_s_ < 0 ? ledger_.live_bytes() < kLeastBytes
                      : now_s - reported_s_ < pace_s || now_s - changed_s_ > kForget_s)
    return std::nullopt;
  reported_s_ = now_s;
  std::vector<SiteAccount> sites = ledger_.accounts();  // the most bytes first
  const auto lately = [&](const SiteAccount& site) {
    double bytes = 0;
    for (const Cohort& cohort : site.cohorts)
      if (now_s - cohort.end_s < kLately_s) bytes += cohort.live_bytes;
    return bytes;
  };
  const auto rest = sites.begin() + static_cast<std::ptrdiff_t>(std::min(kMostByBytes, sites.size()));
  std::stable_sort(rest, sites.end(), [&](const auto& a, const auto& b) { return lately(a) > lately(b); });
  if (sites.size() > kMostByBytes + kMostByGrowth) sites.resize(kMostByBytes + kMostByGrowth);
  std::vector<SiteLifetimes> reported;
  for (const SiteAccount& site : sites) reported.push_back(lifetimes_of(site, name(site.site), now_s));
  return reported;
}

}  // namespace vramtrack::trace
