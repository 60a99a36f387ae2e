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
  listener.moved = [](FollowedProcess&, const telemetry_event&, const MappedMemory::Change&) {};
  listener.failed = [](FollowedProcess&, const telemetry_event&) {};
  listener.ended = [&by_number](FollowedProcess& from, const telemetry_event&) { by_number.erase(from.number); };
  auto follower = Follower::open(std::move(select), std::move(listener), kBlocksPerSecond);
  if (!follower) return fail(follower.error());
  accounts->follower_ = std::move(*follower);
  if (auto kernel = KernelMemory::open({}))
    accounts->kernel_ = std::move(*kernel);
  else
    accounts->warnings_.push_back(kernel.error().message);
  return accounts;
}

std::vector<trace::ProcessLifetimes> Accounts::report() {
  const double now_s = static_cast<double>(monotonic_ns()) / 1e9;
  std::vector<trace::ProcessLifetimes> processes;
  for (const auto& [pid, process] : follower_->running()) {
    const auto known = accounts_.find(process->number);
    if (known == accounts_.end()) continue;
    const auto held = kernel_ ? kernel_->held(pid) : std::nullopt;
    if (auto sites = known->second.report(now_s, held))
      processes.push_back({pid, process->known.start_ticks, std::move(*sites)});
  }
  return processes;
}

std::vector<std::string> Accounts::take_warnings() {
  std::vector<std::string> warnings = std::exchange(warnings_, {});
  for (std::string& warning : follower_->take_warnings()) warnings.push_back(std::move(warning));
  return warnings;
}

TracedCategories::ByProcess Accounts::categories() const {
  TracedCategories::ByProcess out;
  for (const auto& [pid, process] : follower_->running())
    if (const auto known = accounts_.find(process->number); known != accounts_.end())
      if (auto held = known->second.categories(); !held.empty()) out.emplace(pid, std::move(held));
  return out;
}

}  // namespace vramtrack::telemetry
