// LifetimesAccount: what the judge gets about one running program's allocations, and when.
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

/// What is to be reported of one process.
struct ProcessLifetimes {
  std::uint32_t pid = 0;
  std::uint64_t start_ticks = 0;
  std::vector<SiteLifetimes> sites;
};

/// As the judge takes it.
Event event_of(ProcessLifetimes process, Timestamp time);

/// Not thread-safe. Memory: that of a SurvivalLedger.
class LifetimesAccount {
 public:
  /// As in SurvivalLedger.
  void allocate(std::uint64_t address, std::uint64_t bytes, SiteNumber site, double time_s,
                std::uint64_t sampled_below = 0);
  void free(std::uint64_t address, double time_s);

  /// What is to be reported now, if anything: the lines that hold most, and those that allocated most lately of what is
  /// live. Nothing before it holds kLeastBytes; then at most every kPace_s, every kRetell_s while nothing happens, and
  /// not at all once that is so for kForget_s. `now_s`: on the clock of the events. `name`: of a site.
  std::optional<std::vector<SiteLifetimes>> report(double now_s, const std::function<std::string(SiteNumber)>& name);

  static constexpr double kLeastBytes = 8 << 20;
  static constexpr double kPace_s = 30;  ///< as other facts beside memory
  static constexpr double kRetell_s = 90;
  static constexpr double kForget_s = 3600;

 private:
  SurvivalLedger ledger_;
  double changed_s_ = 0, reported_s_ = -1;
};

}  // namespace vramtrack::trace
