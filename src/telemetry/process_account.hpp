// ProcessAccount: how much memory each line of a followed program holds, how much of it survives, and its category, in
// bounded memory.
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

/// Counts device memory; for memory that an allocator hands out in blocks, it counts these blocks. Not thread-safe.
/// Memory: at most 10 MiB (trace::SurvivalLedger, SiteNames).
class ProcessAccount {
 public:
  void allocated(FollowedProcess& process, const telemetry_event& event, const FollowedStack& stack);
  void freed(const telemetry_event& event);

  /// Like LifetimesAccount::report(). `held`: the bytes the process holds according to the kernel, if known; the part
  /// that no library was asked for comes last, as a line of its own without ages.
  std::optional<std::vector<SiteLifetimes>> report(double now_s, const std::optional<KernelHeld>& held = {});
  /// The bytes it holds now, by category.
  [[nodiscard]] std::vector<std::pair<std::string, double>> categories() const;

 private:
  SiteNames names_;
  trace::LifetimesAccount account_;
  trace::SurvivalLedger by_category_{{.blocks = 1U << 15, .sites = 32, .top_sites = 16}};
  trace::SurvivalLedger of_driver_{
      {.blocks = 1U << 15, .sites = 1, .top_sites = 1}};  ///< everything requested from drivers
};

}  // namespace vramtrack::telemetry
