// What the verbs of `vramtrack snapshot` have in common.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/commands.hpp"
#include "core/output_file.hpp"
#include "core/result.hpp"
#include "trace/event_stream.hpp"
#include "trace/snapshot.hpp"
#include "trace/symbols.hpp"

namespace vramtrack::cli {

constexpr int kSnapshotDone = 0;
constexpr int kSnapshotFound = 1;  ///< exit code of `leaks`: there is a leak
constexpr int kSnapshotFailed = 2;

/// Options that a verb does not declare keep their defaults.
struct SnapshotOptions {
  std::vector<std::string> files;
  std::optional<std::uint32_t> device;  ///< empty: all
  std::string output;                   ///< empty: standard output
  bool host = false;                    ///< pinned host memory instead of the devices
  bool json = false;
  std::uint32_t top = 10;                       ///< sites to show
  std::vector<std::uint64_t> used_bytes;        ///< the memory used by the device at each snapshot
  std::optional<std::uint64_t> capacity_bytes;  ///< the capacity of the device
  bool at_peak = false;
  std::string format;  ///< format of an export
};

/// The input of a verb. `snapshots` are in the order of the files, all read into `symbols`. A plain stream of events
/// that timeline or leaks replays has only its name here; its devices are in `streams`.
struct SnapshotWork {
  const SnapshotOptions& options;
  Console& console;
  trace::Symbols symbols;
  std::vector<trace::Snapshot> snapshots;
  std::vector<trace::StreamReplay> streams;

  /// Writes all of `text` to --output (a file next to it first, then renamed), or to standard output.
  [[nodiscard]] Status write(std::string_view text) const;
  /// Prints the error with the verb's name; returns kSnapshotFailed.
  [[nodiscard]] int fail(const std::string& why) const;
  /// Calls write() and returns `exit_code`, or calls fail().
  [[nodiscard]] int finish(std::string_view text, int exit_code) const;
  /// The argument of --device; nullopt: all devices.
  [[nodiscard]] std::optional<std::uint32_t> device() const { return options.device; }
};

/// Output that is written in parts: to a new file that replaces --output at the end, or to standard output.
class SnapshotOutput {
 public:
  SnapshotOutput(Console& console, const std::string& path);
  /// Returns false once writing fails (or nobody reads any more): stop, and let close() report why.
  bool write(std::string_view text);
  Status close();

 private:
  Console& console_;
  std::optional<Result<OutputFile>> file_;  ///< empty: standard output
};

extern const CommandInfo snapshot_summary_verb;
extern const CommandInfo snapshot_leaks_verb;
extern const CommandInfo snapshot_timeline_verb;
extern const CommandInfo snapshot_oom_verb;
extern const CommandInfo snapshot_flamegraph_verb;
extern const CommandInfo snapshot_page_verb;
extern const CommandInfo snapshot_export_verb;

/// How a verb reads its files, and the function that prints or writes its result and returns the exit code.
struct SnapshotVerb {
  const char* name;
  int (*run)(SnapshotWork& work);
  bool keeps_events = false;
  std::size_t least_files = 1;
  bool replays_streams = false;  ///< a single stream is replayed in bounded memory, whatever its length
};

/// The numbers of points and sites that timeline shows.
trace::TimelineOptions timeline_options(const SnapshotOptions& options);

/// The operand FILE (or FILE ...), --device and --output, which every verb has.
void add_snapshot_files(Arguments& arguments, SnapshotOptions& into);
void add_snapshot_file(Arguments& arguments, SnapshotOptions& into);
void add_snapshot_json(Arguments& arguments, SnapshotOptions& into);
/// --top
void add_snapshot_sites(Arguments& arguments, SnapshotOptions& into);
/// Creates options with FILE ..., --json and --top declared.
std::shared_ptr<SnapshotOptions> snapshot_sites_options(Arguments& arguments);
/// --format, which is required: the format of the export.
void add_export_format(Arguments& arguments, std::string& into);
/// Reads the files, then runs the verb. Reads no configuration, because no setting applies to a snapshot.
Runner snapshot_runner(std::shared_ptr<const SnapshotOptions> options, SnapshotVerb verb);
/// `snapshot leaks`, for the commands that take snapshots themselves.
Runner leaks_runner(std::shared_ptr<const SnapshotOptions> options);

}  // namespace vramtrack::cli
