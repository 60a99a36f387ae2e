// Timeline: live bytes over a device's trace, by site, and the content of its peaks.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "trace/category.hpp"
#include "trace/live_set.hpp"
#include "trace/profile.hpp"
#include "trace/snapshot.hpp"

namespace vramtrack::trace {

struct TimelineOptions {
  std::size_t points = 60;  ///< stretches of equally many events; each shows its highest moment
  std::size_t peaks = 3;
  std::size_t sites = 10;  ///< those that held the most at the peaks
};

struct Peak {
  Moment at;
  Profile sites;                    ///< everything live at the peak
  std::vector<std::string> inside;  ///< open annotations, the innermost last
};

struct Timeline {
  std::uint32_t device = 0;
  std::uint64_t event_count = 0;
  Moment begin;  ///< before the first event
  Moment end;
  std::vector<Moment> points;
  std::vector<StackId> sites;
  std::vector<std::vector<std::int64_t>> site_bytes;  ///< [point][site]
  std::vector<CategoryTotals> categories;             ///< the categories of each point, by stacks
  std::vector<Peak> peaks;                            ///< the highest first
  std::vector<Moment> valleys;                        ///< between the peaks, in order of time: quiet moments
  std::vector<std::int64_t> fall_bytes;               ///< from the preceding peak to each valley
  std::uint64_t mismatch_count = 0;
  StackId before_trace = kNoStack;  ///< stands for memory allocated before the trace
};

/// The devices with a trace, in the file's order; only `device`, if given.
std::vector<std::uint32_t> traced_devices(const Snapshot& snapshot, std::optional<std::uint32_t> device = {});

/// Two replays of the trace. Empty (event_count 0) if the device has no trace or it was not kept.
Timeline timeline_of(const Snapshot& snapshot, std::uint32_t device, Symbols& symbols,
                     const TimelineOptions& options = {});

/// One timeline for each device with samples in a heap profile: their totals without sites, and for the highest the
/// blocks of the profile.
std::vector<Timeline> timelines_of_samples(const Snapshot& snapshot, std::optional<std::uint32_t> device,
                                           const TimelineOptions& options);

}  // namespace vramtrack::trace
