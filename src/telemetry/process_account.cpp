#include "telemetry/process_account.hpp"

#include <algorithm>

#include "probe/wire.hpp"
#include "trace/probe_trace.hpp"

namespace vramtrack::telemetry {
namespace {

/// Those that hold most, and those that hold most of what is younger than this.
constexpr std::size_t kToldByBytes = 3, kToldByGrowth = 3;
constexpr double kLately_s = 3600;

double time_s(const telemetry_event& event) {
  return static_cast<double>(event.time_ns) / 1e9;
}

/// The first block of an allocator lies where the driver's memory begins that it is part of.
std::uint64_t key_of(const telemetry_event& event) {
  const bool is_block = static_cast<probe::Call>(event.call) == probe::Call::torch_block;
  return event.address ^ (is_block ? 1ULL << 63U : 0);
}

}  // namespace

void ProcessAccount::allocated(FollowedProcess& process, const telemetry_event& event, const FollowedStack& stack) {
  const probe::CallInfo* const call = probe::info_of(static_cast<probe::Call>(event.call));
  if (call == nullptr || trace::ledger_of(call->memory) != trace::Ledger::device) return;
  if (call->level == probe::Level::driver && is_of_traced_allocator(process.unwinder->files(), stack.native)) return;
  changed_s_ = time_s(event);
  ledger_.allocate(key_of(event), event.bytes, names_.number_of(process, stack), changed_s_);
}

void ProcessAccount::freed(const telemetry_event& event) {
  changed_s_ = time_s(event);
  ledger_.free(key_of(event));
}

std::optional<std::vector<SiteLifetimes>> ProcessAccount::tell(double now_s) {
  const double pace_s = changed_s_ > told_s_ ? kPace_s : kRetell_s;
  if (told_s_ < 0 ? ledger_.live_bytes() < kLeastBytes : now_s - told_s_ < pace_s || now_s - changed_s_ > kForget_s)
    return std::nullopt;
  told_s_ = now_s;
  std::vector<trace::SiteAccount> sites = ledger_.accounts();  // the most bytes first
  const auto lately = [&](const trace::SiteAccount& site) {
    double bytes = 0;
    for (const trace::Cohort& cohort : site.cohorts)
      if (now_s - cohort.end_s < kLately_s) bytes += cohort.live_bytes;
    return bytes;
  };
  const auto rest = sites.begin() + static_cast<std::ptrdiff_t>(std::min(kToldByBytes, sites.size()));
  std::stable_sort(rest, sites.end(), [&](const auto& a, const auto& b) { return lately(a) > lately(b); });
  if (sites.size() > kToldByBytes + kToldByGrowth) sites.resize(kToldByBytes + kToldByGrowth);
  std::vector<SiteLifetimes> told;
  for (const trace::SiteAccount& site : sites) told.push_back(trace::lifetimes_of(site, names_.name(site.site), now_s));
  return told;
}

}  // namespace vramtrack::telemetry
