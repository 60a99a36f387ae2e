// FaultVfs: SQLite's file system with failures on demand, and with a record of what a power loss would leave.
#pragma once

#include <cstdint>
#include <functional>
#include <random>
#include <string>

#include "fault_plan.hpp"

namespace vramtrack::testing {

/// Kinds of calls, as bits. `full` fails a write like a full disk, `write` like a broken one.
namespace vfs_call {
inline constexpr std::uint32_t open = 1, read = 2, write = 4, full = 8, truncate = 16, sync = 32, size = 64, lock = 128,
                               remove = 256, access = 512, memory = 1024, all = 0xffff & ~full;
}  // namespace vfs_call

/// Registers itself as SQLite's default file system while it lives. One at a time, and no database may be open when it
/// is created or destroyed.
class FaultVfs {
 public:
  FaultVfs();
  ~FaultVfs();
  FaultVfs(const FaultVfs&) = delete;
  FaultVfs& operator=(const FaultVfs&) = delete;

  FaultPlan& plan();

  /// From now on, each change is kept until it is synced, so that lose_power() can undo it. The present state is safe.
  /// The power fails at the `last`th change: later calls have no effect.
  void record(std::int64_t last);
  /// Whether the power has failed.
  [[nodiscard]] bool is_dark() const;
  /// Called at each sync of a file while there is power: everything reported until then must survive.
  void on_sync(std::function<void(const std::string& path)> heard);
  /// Writes the remains to the folder: for each file the synced part, and any part of what was written since. Each
  /// sector has one of its states since then, or (in one loss out of two) each whole write is present or absent; a
  /// file's length and its removal are just as uncertain. Ends the record. REQUIRES: all databases are closed.
  void lose_power(std::mt19937& random);
};

}  // namespace vramtrack::testing
