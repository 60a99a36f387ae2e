// LifetimesAccount: what is reported to the judge about a running program's allocations, and when.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/lifetimes.hpp"
#include "core/sample.hpp"
#include "trace/survival_ledger.hpp"

namespace vramtrack::trace {

/// The report about one process.
struct ProcessLifetimes {
  std::uint32_t pid = 0;
  std::uint64_t start_ticks = 0;
  std::vector<SiteLifetimes> sites;
};

/// The report as the event that the judge takes.
Event event_of(ProcessLifetimes process, Timestamp time);

/// Not thread-safe. Memory: that of a SurvivalLedger.
class LifetimesAccount {
 public:
  /// As in SurvivalLedger.
  void allocate(std::uint64_t address, std::uint64_t bytes, SiteNumber site, double time_s,
                std::uint64_t sampled_below = 0);
  void free(std::uint64_t address, double time_s);

  /// The report that is due now, if any: the lines that hold the most, and those with the most recent live memory.
  /// There is none before the process holds kLeastBytes. Then at most one every kPace_s, one every kRetell_s while
  /// nothing happens, and none after kForget_s of that. `now_s`: on the clock of the events. `name`: names a site.
  std::optional<std::vector<SiteLifetimes>> report(double now_s, const std::function<std::string(SiteNumber)>& name);

  static constexpr double kLeastBytes = 8 << 20;
  static constexpr double kPace_s = 30;  ///< as for other facts besides memory
  static constexpr double kRetell_s = 90;
  static constexpr double kForget_s = 3600;

 private:
  SurvivalLedger ledger_;
  double changed_s_ = 0, reported_s_ = -1;
};

}  // namespace vramtrack::trace
