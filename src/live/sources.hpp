// The live sources that have something to read here, and one poll of each.
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/config.hpp"
#include "source/source.hpp"

namespace vramtrack {

/// Receives one text for people.
using Warn = std::function<void(const std::string&)>;

/// The name of the source that reports what running programs allocate.
inline constexpr std::string_view kTelemetrySource = "telemetry";

/// A source that is polled repeatedly.
struct LiveSource {
  std::string_view name;
  std::unique_ptr<Source> source;
  std::string error;               ///< the last one reported; empty while it works
  std::set<std::string> reported;  ///< its warnings that were reported
};

/// The sources that have something to read; the reasons why the others have nothing go to `reasons`, in one line.
std::vector<LiveSource> open_live_sources(const SourcesConfig& config, Catalog& catalog, std::string& reasons);

/// Why `vramtrack COMMAND` has nothing to watch, and the two ways out: what to do on this machine, and a simulation.
std::string no_gpu_to_watch(std::string_view command, const std::string& reasons);

/// Polls one source into `batch`; `warn` is called when it begins or ceases to fail, and once for each new warning. A
/// source that fails continues: Progress::more.
Progress poll_live(LiveSource& live, Timestamp now, Batch& batch, const Warn& warn);

/// The current problems of `sources`: why one fails, and its warnings.
std::vector<std::string> standing_warnings(const std::vector<LiveSource>& sources);

/// Calls `warn` with each warning of `notes` that is not in `reported`, and remembers the current ones.
void report_new(const SourceNotes& notes, std::set<std::string>& reported, const Warn& warn);

}  // namespace vramtrack
