// ProcessAccount: what each line of one followed program holds, how much of it survives, and what it is for, in bounded
// memory.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/lifetimes.hpp"
#include "telemetry/follower.hpp"
#include "telemetry/kernel_memory.hpp"
#include "telemetry/site_names.hpp"
#include "trace/lifetimes_account.hpp"
#include "trace/survival_ledger.hpp"

namespace vramtrack::telemetry {

/// Counts device memory; what an allocator takes from the driver to hand out in blocks is counted as these blocks. Not
/// thread-safe. Memory: at most 10 MiB (trace::SurvivalLedger, SiteNames).
class ProcessAccount {
 public:
  void allocated(FollowedProcess& process, const telemetry_event& event, const FollowedStack& stack);
  void freed(const telemetry_event& event);

  /// As LifetimesAccount::report(). `held`: what the kernel says that the process holds, where it does; of that, what
  /// no library was asked for comes last, as a line of its own without ages.
  std::optional<std::vector<SiteLifetimes>> report(double now_s, const std::optional<KernelHeld>& held = {});
  /// What it holds now, by the name of its category.
  [[nodiscard]] std::vector<std::pair<std::string, double>> categories() const;

 private:
  SiteNames names_;
  trace::LifetimesAccount account_;
  trace::SurvivalLedger by_category_{{.blocks = 1U << 15, .sites = 32, .top_sites = 16}};
  trace::SurvivalLedger of_driver_{
      {.blocks = 1U << 15, .sites = 1, .top_sites = 1}};  ///< all that drivers were asked for
};

}  // namespace vramtrack::telemetry
