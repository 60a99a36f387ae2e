// FaultVfs: SQLite's file system with failures on demand, and with a record of what a loss of power would leave.
#pragma once

#include <cstdint>
#include <functional>
#include <random>
#include <string>

#include "fault_plan.hpp"

namespace vramtrack::testing {

/// Kinds of calls, as bits. `full` fails a write as a full disk does, `write` as a broken one.
namespace vfs_call {
inline constexpr std::uint32_t open = 1, read = 2, write = 4, full = 8, truncate = 16, sync = 32, size = 64, lock = 128,
                               remove = 256, access = 512, memory = 1024, all = 0xffff & ~full;
}  // namespace vfs_call

/// Registers itself as SQLite's default file system while it lives. One at a time, and no database open across its
/// begin or end.
class FaultVfs {
 public:
  FaultVfs();
  ~FaultVfs();
  FaultVfs(const FaultVfs&) = delete;
  FaultVfs& operator=(const FaultVfs&) = delete;

  FaultPlan& plan();

  /// From now on each change is kept until it is synced, so that lose_power() can undo it. What is there now is safe.
  /// The power goes with the `last`th change: what is done later is done in vain.
  void record(std::int64_t last);
  /// Whether the power is gone.
  [[nodiscard]] bool is_dark() const;
  /// Called at each sync of a file while there is power: what was reported until then has to survive.
  void on_sync(std::function<void(const std::string& path)> heard);
  /// Writes into the folder what would be left of it: of each file what was synced, and of what was written since then
  /// any part. Each sector holds one of the states that it has had since, or (one loss in two) whole writes are there
  /// or not; a file's length and its removal are as uncertain. Ends the record. REQUIRES: all databases are closed.
  void lose_power(std::mt19937& random);
};

}  // namespace vramtrack::testing
