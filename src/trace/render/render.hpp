// What is known of snapshots as text for a terminal and as JSON (docs/snapshot.md). Pure functions: analyses in, a
// document out; the same input gives the same bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/result.hpp"
#include "trace/compare.hpp"
#include "trace/oom.hpp"
#include "trace/profile.hpp"
#include "trace/snapshot.hpp"
#include "trace/symbols.hpp"
#include "trace/timeline.hpp"

namespace vramtrack::trace {

/// What is shown of what is there.
struct Shown {
  std::optional<std::uint32_t> device;  ///< this one only; none: all, and the pinned host memory
  std::size_t sites = 10;               ///< at most this many lines (or pools) of each device
};

/// What the reserved memory of each snapshot is, by device, pool and stream; then the pinned host memory. The snapshots
/// are as they were when it returns.
std::string summary_text(std::span<Snapshot> snapshots, const Symbols& symbols, const Shown& shown);
/// "vramtrack.snapshot.summary.v1"
std::string summary_json(std::span<Snapshot> snapshots, const Symbols& symbols, const Shown& shown);

/// What grew from the first snapshot to the last. `growths` as compare_devices() gives them; the first is shown in
/// full. REQUIRES: `snapshots` are those that were compared; `growths` is not empty. `host`: the same for pinned host
/// memory, if the snapshots have any; it follows the devices.
std::string leaks_text(std::span<const Snapshot> snapshots, const Symbols& symbols,
                       std::span<const DeviceGrowth> growths, const SnapshotGrowth* host, std::size_t sites);
/// "vramtrack.snapshot.leaks.v1"
std::string leaks_json(std::span<const Snapshot> snapshots, const Symbols& symbols,
                       std::span<const DeviceGrowth> growths, const SnapshotGrowth* host, std::size_t sites);

/// Live bytes over the trace as a bar chart, and what the peaks were made of. One block of text a device.
std::string timeline_text(const Snapshot& snapshot, std::span<const Timeline> timelines, const Symbols& symbols,
                          std::size_t sites);
/// "vramtrack.snapshot.timeline.v1"
std::string timeline_json(const Snapshot& snapshot, std::span<const Timeline> timelines, const Symbols& symbols,
                          std::size_t sites);

/// What filled each device of each snapshot, `reports[i]` those of `snapshots[i]`. Times count from the beginning of
/// the trace. With more than one snapshot each is named.
std::string oom_text(std::span<const Snapshot> snapshots, std::span<const std::vector<OomReport>> reports,
                     const Symbols& symbols, std::size_t sites);
/// "vramtrack.snapshot.oom.v1"
std::string oom_json(std::span<const Snapshot> snapshots, std::span<const std::vector<OomReport>> reports,
                     const Symbols& symbols, std::size_t sites);

/// Who held the live bytes, and what that is called.
struct NamedProfile {
  Profile profile;
  std::string title;
  LineOf line_of;  ///< empty: site_of()
};

/// Of the blocks that are live in the snapshot; or with `at_peak`, of the moment of the trace (of any device, or of
/// `device`) when most was live. Errors: --peak without a trace.
Result<NamedProfile> named_profile(const Snapshot& snapshot, Symbols& symbols, std::optional<std::uint32_t> device,
                                   bool at_peak);

/// flamegraph_html() of it, with the file and the total below the title. Errors: nothing is live.
Result<std::string> flamegraph_page(const Snapshot& snapshot, const NamedProfile& named, const Symbols& symbols);

}  // namespace vramtrack::trace
