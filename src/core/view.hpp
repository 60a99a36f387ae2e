// View: the immutable read model. The engine builds it; every surface renders it and nothing else.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/gauges.hpp"
#include "core/headroom.hpp"
#include "core/health.hpp"
#include "core/lifetimes.hpp"
#include "core/series.hpp"
#include "core/stall.hpp"
#include "core/verdict.hpp"
#include "core/wall.hpp"

namespace vramtrack {

/// Everything a surface may show about one series.
struct SeriesView {
  // Out of line; otherwise each file that has one would generate them.
  SeriesView();
  SeriesView(const SeriesView&);
  SeriesView& operator=(const SeriesView&);
  SeriesView(SeriesView&&) noexcept;
  SeriesView& operator=(SeriesView&&) noexcept;
  ~SeriesView();

  SeriesId id{};
  SeriesKey key;
  DeviceInfo device;
  std::optional<ProcessInfo> process;  ///< for process series
  std::uint64_t samples = 0;
  std::optional<Timestamp> first;
  std::optional<Timestamp> last;
  double interval_s = 0;         ///< median sampling period so far; 0 with fewer than two samples
  std::uint64_t used_bytes = 0;  ///< the last sample
  std::uint64_t peak_bytes = 0;
  /// For a series with an onset: the value at `last` of its growth's line through the samples since the onset. Used
  /// bytes swing around that line, which report/trend.hpp draws.
  std::optional<double> level_bytes;
  bool ended = false;                       ///< its process has ended
  bool paused = false;                      ///< its device does not answer
  bool ignored = false;                     ///< its process matches an ignore pattern: never alerts
  std::optional<double> utilisation_ratio;  ///< for a device, 0..1, if the driver reports it
  DeviceGauges gauges;                      ///< for a device that answers
  ProcessLoad load;                         ///< for a process
  std::optional<Stall> stall;               ///< for a process, on each of its devices: no progress for stall.minutes
  /// For a process that is alive, and for a device, if the capacity is known.
  std::optional<Headroom> headroom;
  std::optional<MemoryWall> wall;         ///< for a live process, or one whose memory has ended at it
  std::optional<HostHolding> host;        ///< for a live process
  std::optional<StillHolds> still_holds;  ///< for a live process
  std::optional<MarkGrowth> mark_growth;  ///< for a process that makes marks
  /// For memory that no process of a device holds: the bytes held by processes that have since ended; 0: none.
  std::uint64_t unreleased_bytes = 0;
  /// For a process whose allocations are seen: the lines that hold or grew most, as last reported.
  std::vector<SiteLifetimes> sites;
  std::optional<DeviceHealth> health;  ///< for a device that answers, if the driver reports it
  std::optional<LastXid> last_xid;     ///< for a device, since the watch (or the recording) began
  Verdict verdict;
  std::string paging;         ///< for a leak without an alert: why nobody is notified yet, in words
  std::vector<Alert> alerts;  ///< all, in the order raised; at most the last 256
  /// Suspicions that nobody was notified of, in the order raised; at most the last 64. Those whose finding is a leak
  /// were confirmed while there was time left.
  std::vector<Alert> suspicions;
  std::vector<Run> runs;             ///< for a device, in order; at most the last 256
  std::vector<std::string> explain;  ///< only on request
};

/// One message for people: a source's warning, an XID, a lost device.
struct Notice {
  Timestamp time;
  std::string text;
};

struct View {
  Timestamp time;                  ///< the time of the last sample taken in
  bool clock_is_relative = false;  ///< times are offsets from zero, not dates
  Scale scale;                     ///< of a recording: its functions format the figures below
  std::vector<std::string> files;  ///< of a recording; empty when live
  /// Devices first (by index), then processes by device: live before ended, then leaking ones, then larger ones.
  std::vector<SeriesView> series;
  std::vector<Notice> notices;  ///< at most the last 64
  std::uint64_t skipped_lines = 0;
  std::vector<std::string> first_skipped;
  std::vector<std::string> warnings;

  /// The moment as people read it.
  [[nodiscard]] std::string moment(Timestamp at) const { return scale.moment(at, clock_is_relative); }
  /// For each process that has a Stall with that judgement, its series that holds most; in the order of `series`.
  [[nodiscard]] std::vector<const SeriesView*> stalls(StallJudgement judgement) const {
    std::vector<const SeriesView*> out;
    for (const SeriesView& s : series) {
      if (!s.stall || s.stall->judgement != judgement || s.ended) continue;
      const auto same = [&](const SeriesView* o) { return process_key(o->key) == process_key(s.key); };
      const auto known = std::find_if(out.begin(), out.end(), same);
      if (known == out.end())
        out.push_back(&s);
      else if (s.used_bytes > (*known)->used_bytes)
        *known = &s;
    }
    return out;
  }
};

}  // namespace vramtrack
