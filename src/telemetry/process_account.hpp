// ProcessAccount: what each line of one followed program holds, and how much of it survives, in bounded memory.
#pragma once

#include <optional>
#include <vector>

#include "core/lifetimes.hpp"
#include "telemetry/follower.hpp"
#include "telemetry/site_names.hpp"
#include "trace/lifetimes_account.hpp"

namespace vramtrack::telemetry {

/// Counts device memory; what an allocator takes from the driver to hand out in blocks is counted as these blocks. Not
/// thread-safe. Memory: at most 8 MiB (trace::SurvivalLedger, SiteNames).
class ProcessAccount {
 public:
  void allocated(FollowedProcess& process, const telemetry_event& event, const FollowedStack& stack);
  void freed(const telemetry_event& event);

  /// As LifetimesAccount::tell().
  std::optional<std::vector<SiteLifetimes>> tell(double now_s);

 private:
  SiteNames names_;
  trace::LifetimesAccount account_;
};

}  // namespace vramtrack::telemetry
