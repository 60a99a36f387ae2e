// The parts of `vramtrack snapshot`: one function a verb. Each prints or writes its result and returns the exit code.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/console.hpp"
#include "cli/options.hpp"
#include "core/result.hpp"
#include "trace/event_stream.hpp"
#include "trace/snapshot.hpp"
#include "trace/symbols.hpp"

namespace vramtrack::cli {

constexpr int kSnapshotDone = 0;
constexpr int kSnapshotFound = 1;  ///< leaks: a leak
constexpr int kSnapshotFailed = 2;

/// What a verb has to work with. `snapshots` in the order of the files, all read into `symbols`. Of a plain stream of
/// events that timeline or leaks replays there is its name only, and `streams` has its devices.
struct SnapshotWork {
  const Options& options;
  Console& console;
  trace::Symbols symbols;
  std::vector<trace::Snapshot> snapshots;
  std::vector<trace::StreamReplay> streams;

  /// All of `text` to --output (a file beside it first, then renamed), or to standard output.
  [[nodiscard]] Status write(std::string_view text) const;
  /// Says why, names the verb, returns kSnapshotFailed.
  [[nodiscard]] int fail(const std::string& why) const;
  /// write(), then `exit_code`; or fail().
  [[nodiscard]] int finish(std::string_view text, int exit_code) const;
  /// --device, or none for all.
  [[nodiscard]] std::optional<std::uint32_t> device() const { return options.snapshot.device; }
};

/// A file that is written in parts: to --output through a new file that replaces it at the end, or to standard output.
class SnapshotOutput {
 public:
  SnapshotOutput(Console& console, std::string path);
  ~SnapshotOutput();
  SnapshotOutput(const SnapshotOutput&) = delete;
  SnapshotOutput& operator=(const SnapshotOutput&) = delete;
  /// False once it cannot be written (or nobody reads): stop, and let close() say why.
  bool write(std::string_view text);
  Status close();

 private:
  Console& console_;
  std::string path_;
  int fd_ = -1;
  int error_ = 0;
};

/// As timeline shows it: so many points, so many sites.
trace::TimelineOptions timeline_options(const Options& options);

int snapshot_summary(SnapshotWork& work);
int snapshot_leaks(SnapshotWork& work);
int snapshot_timeline(SnapshotWork& work);
int snapshot_oom(SnapshotWork& work);
int snapshot_flamegraph(SnapshotWork& work);
int snapshot_export(SnapshotWork& work);

}  // namespace vramtrack::cli
