// Renders analyses of snapshots as text for a terminal and as JSON (docs/snapshot.md). The functions are pure: the same
// input gives the same bytes.
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

/// Selects what is shown.
struct Shown {
  std::optional<std::uint32_t> device;  ///< only this one; none: all, and pinned host memory
  std::size_t sites = 10;               ///< at most this many lines (or pools) per device
};

/// The use of the reserved memory of each snapshot, by device, pool and stream; then the pinned host memory. The
/// snapshots are unchanged on return.
std::string summary_text(std::span<Snapshot> snapshots, const Symbols& symbols, const Shown& shown);
/// "vramtrack.snapshot.summary.v1"
std::string summary_json(std::span<Snapshot> snapshots, const Symbols& symbols, const Shown& shown);

/// The growth from the first snapshot to the last. `growths`: the result of compare_devices(); the first is shown in
/// full. REQUIRES: `snapshots` are those that were compared; `growths` is not empty. `host`: the same for pinned host
/// memory, if the snapshots have any; it follows the devices.
std::string leaks_text(std::span<const Snapshot> snapshots, const Symbols& symbols,
                       std::span<const DeviceGrowth> growths, const SnapshotGrowth* host, std::size_t sites);
/// "vramtrack.snapshot.leaks.v1"
std::string leaks_json(std::span<const Snapshot> snapshots, const Symbols& symbols,
                       std::span<const DeviceGrowth> growths, const SnapshotGrowth* host, std::size_t sites);

/// Live bytes over the trace as a bar chart, and the content of the peaks. One block of text per device.
std::string timeline_text(const Snapshot& snapshot, std::span<const Timeline> timelines, const Symbols& symbols,
                          std::size_t sites);
/// "vramtrack.snapshot.timeline.v1"
std::string timeline_json(const Snapshot& snapshot, std::span<const Timeline> timelines, const Symbols& symbols,
                          std::size_t sites);

/// What filled each device of each snapshot; `reports[i]` belongs to `snapshots[i]`. Times count from the beginning of
/// the trace. Several snapshots are shown with their names.
std::string oom_text(std::span<const Snapshot> snapshots, std::span<const std::vector<OomReport>> reports,
                     const Symbols& symbols, std::size_t sites);
/// "vramtrack.snapshot.oom.v1"
std::string oom_json(std::span<const Snapshot> snapshots, std::span<const std::vector<OomReport>> reports,
                     const Symbols& symbols, std::size_t sites);

/// The holders of the live bytes, with a title.
struct NamedProfile {
  Profile profile;
  std::string title;
  LineOf line_of;  ///< empty: site_of()
};

/// The profile of the snapshot's live blocks; with `at_peak`, that of the moment in the trace (of any device, or of
/// `device`) at which most was live. Errors: --peak without a trace.
Result<NamedProfile> named_profile(const Snapshot& snapshot, Symbols& symbols, std::optional<std::uint32_t> device,
                                   bool at_peak);

/// flamegraph_html() of the profile, with the file and the total below the title. Errors: nothing is live.
Result<std::string> flamegraph_page(const Snapshot& snapshot, const NamedProfile& named, const Symbols& symbols);

}  // namespace vramtrack::trace
