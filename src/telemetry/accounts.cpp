#include "telemetry/accounts.hpp"

#include <utility>

namespace vramtrack::telemetry {

Result<std::unique_ptr<Accounts>> Accounts::open(Follower::Select select) {
  std::unique_ptr<Accounts> accounts(new Accounts());
  auto& by_number = accounts->accounts_;
  Follower::Listener listener;
  listener.allocated = [&by_number](FollowedProcess& from, const telemetry_event& event, const FollowedStack& stack) {
    by_number[from.number].allocated(from, event, stack);
  };
  listener.freed = [&by_number](FollowedProcess& from, const telemetry_event& event) {
    if (const auto known = by_number.find(from.number); known != by_number.end()) known->second.freed(event);
  };
  listener.failed = [](FollowedProcess&, const telemetry_event&) {};
  listener.ended = [&by_number](FollowedProcess& from, const telemetry_event&) { by_number.erase(from.number); };
  auto follower = Follower::open(std::move(select), std::move(listener), kBlocksPerSecond);
  if (!follower) return fail(follower.error());
  accounts->follower_ = std::move(*follower);
  return accounts;
}

std::vector<trace::ToldProcess> Accounts::tell() {
  const double now_s = static_cast<double>(monotonic_ns()) / 1e9;
  std::vector<trace::ToldProcess> told;
  for (const auto& [pid, process] : follower_->running()) {
    const auto known = accounts_.find(process->number);
    if (known == accounts_.end()) continue;
    if (auto sites = known->second.tell(now_s)) told.push_back({pid, process->known.start_ticks, std::move(*sites)});
  }
  return told;
}

TracedCategories::ByProcess Accounts::categories() const {
  TracedCategories::ByProcess out;
  for (const auto& [pid, process] : follower_->running())
    if (const auto known = accounts_.find(process->number); known != accounts_.end())
      if (auto held = known->second.categories(); !held.empty()) out.emplace(pid, std::move(held));
  return out;
}

}  // namespace vramtrack::telemetry
