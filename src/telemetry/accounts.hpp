// Accounts: one ProcessAccount per followed program.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/lifetimes.hpp"
#include "core/result.hpp"
#include "core/traced_categories.hpp"
#include "telemetry/follower.hpp"
#include "telemetry/kernel_memory.hpp"
#include "telemetry/process_account.hpp"

namespace vramtrack::telemetry {

/// Not thread-safe, except for wait().
class Accounts {
 public:
  /// Blocks of a process that are reported per second, each with its stack. If a process allocates more, they are
  /// sampled by size: each block that is not sampled saves about 8 us in the program and 6 us here.
  static constexpr std::uint64_t kBlocksPerSecond = 500;

  /// Errors: as for Tracer::open().
  static Result<std::unique_ptr<Accounts>> open(Follower::Select select);

  /// Looks for new processes and libraries. Call it every second.
  Status find_targets() { return follower_->find_targets(); }
  /// Processes events for up to `timeout_ms`.
  Status poll(int timeout_ms) { return follower_->poll(timeout_ms); }
  /// Waits up to `timeout_ms` until poll() has something to do. Thread-safe.
  void wait(int timeout_ms) const { follower_->wait(timeout_ms); }
  /// The living processes with something to report now (ProcessAccount::report).
  std::vector<trace::ProcessLifetimes> report();
  /// The memory each living process holds now, by category.
  [[nodiscard]] TracedCategories::ByProcess categories() const;

  [[nodiscard]] std::uint64_t lost() const { return follower_->lost(); }
  std::vector<std::string> take_warnings();

 private:
  Accounts() = default;

  std::map<std::uint64_t, ProcessAccount> accounts_;  ///< by the follower's number; only processes that have allocated
  std::optional<KernelMemory> kernel_;
  std::vector<std::string> warnings_;
  std::unique_ptr<Follower> follower_;  ///< last, so that it is destroyed first
};

}  // namespace vramtrack::telemetry
