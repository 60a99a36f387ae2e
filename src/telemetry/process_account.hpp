// ProcessAccount: what each line of one followed program holds, and how much of it survives, in bounded memory.
#pragma once

#include <optional>
#include <vector>

#include "core/lifetimes.hpp"
#include "telemetry/follower.hpp"
#include "telemetry/site_names.hpp"
#include "trace/survival_ledger.hpp"

namespace vramtrack::telemetry {

/// Counts device memory; what an allocator takes from the driver to hand out in blocks is counted as these blocks. Not
/// thread-safe. Memory: at most 8 MiB (trace::SurvivalLedger, SiteNames).
class ProcessAccount {
 public:
  void allocated(FollowedProcess& process, const telemetry_event& event, const FollowedStack& stack);
  void freed(const telemetry_event& event);

  /// What is to be told now, if anything: the lines that hold most, and those that allocated most lately of what is
  /// live. Nothing before it holds kLeastBytes; then at most every kPace_s, every kRetell_s while nothing happens, and
  /// not at all once that is so for kForget_s. `now_s`: on the clock of the events.
  std::optional<std::vector<SiteLifetimes>> tell(double now_s);

  static constexpr double kLeastBytes = 8 << 20;
  static constexpr double kPace_s = 30;  ///< as other facts beside memory
  static constexpr double kRetell_s = 90;
  static constexpr double kForget_s = 3600;

 private:
  SiteNames names_;
  trace::SurvivalLedger ledger_;
  double changed_s_ = 0, told_s_ = -1;
};

}  // namespace vramtrack::telemetry
