// Accounts: a ProcessAccount of every followed program.
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
  /// Tensors of a process that are looked at in a second, its stack and all. Of one that allocates more of them, they
  /// are sampled by their bytes: some 8 us in the program and 6 us here are saved of each of the others.
  static constexpr std::uint64_t kBlocksPerSecond = 500;

  /// Errors: those of Tracer::open().
  static Result<std::unique_ptr<Accounts>> open(Follower::Select select);

  /// Looks for processes and libraries that are new. Call it every second.
  Status find_targets() { return follower_->find_targets(); }
  /// Takes in what happens in up to `timeout_ms`.
  Status poll(int timeout_ms) { return follower_->poll(timeout_ms); }
  /// Waits up to `timeout_ms` until poll() has something to do. Thread-safe.
  void wait(int timeout_ms) const { follower_->wait(timeout_ms); }
  /// The living processes with something to report now (ProcessAccount::report).
  std::vector<trace::ProcessLifetimes> report();
  /// What each living process holds now, by what it is for.
  [[nodiscard]] TracedCategories::ByProcess categories() const;

  [[nodiscard]] std::uint64_t lost() const { return follower_->lost(); }
  std::vector<std::string> take_warnings();

 private:
  Accounts() = default;

  std::map<std::uint64_t, ProcessAccount> accounts_;  ///< of those that allocated, by the follower's number
  std::optional<KernelMemory> kernel_;
  std::vector<std::string> warnings_;
  std::unique_ptr<Follower> follower_;  ///< last: it goes first
};

}  // namespace vramtrack::telemetry
