// Plain streams of allocations and frees, with no final state to check against: malloc and free, cudaMalloc and
// cudaFree. Live memory follows from the events alone.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/result.hpp"
#include "trace/diff.hpp"
#include "trace/live_set.hpp"
#include "trace/profile.hpp"
#include "trace/snapshot.hpp"
#include "trace/timeline.hpp"

namespace vramtrack::trace {

/// Takes the events in order: the actions alloc and free_completed; size and stack of the latter are ignored.
/// AllocEvent::origin is ignored, `stream` is used. An Error ends the reading; the caller adds file and line.
using EventVisit = std::function<Status(std::uint32_t device, std::int64_t stream, const AllocEvent& event)>;

/// Far more than a machine has; each costs memory. Code that keeps data per device refuses more.
inline constexpr std::size_t kMostStreamDevices = 4096;
Status refuse_devices(std::size_t count);

/// The live memory of one device. Counts frees of empty addresses and allocations at occupied ones: in such cases the
/// stream began in the middle, or lost events.
class StreamLive {
 public:
  /// Applies `event`, and returns the change. Errors: impossible sizes.
  Result<Change> take(const AllocEvent& event);

  [[nodiscard]] const LiveSet& blocks() const { return blocks_; }
  [[nodiscard]] const DeviceTrace& counts() const { return counts_; }  ///< its events are empty
  [[nodiscard]] std::uint64_t unknown_frees() const { return unknown_frees_; }
  [[nodiscard]] std::uint64_t replaced() const { return replaced_; }
  /// Notes for the user about the two counts.
  [[nodiscard]] std::vector<std::string> notes(std::uint32_t device) const;

 private:
  LiveSet blocks_;
  DeviceTrace counts_;
  std::uint64_t moved_bytes_ = 0;
  std::uint64_t unknown_frees_ = 0;
  std::uint64_t replaced_ = 0;
};

/// Bytes by site, now and at one earlier moment: keeps the changes since then, so that moving that moment to now takes
/// time proportional to the changes, and an event O(1).
class SitesSince {
 public:
  void add(const Change& change);
  /// Moves the moment to now.
  void mark();
  /// The profile at that moment, given `now`, which has every site that has changed. O(sites).
  [[nodiscard]] Profile profile(const std::vector<StackBytes>& now) const;

 private:
  struct Cell {
    std::int64_t bytes = 0;
    std::int64_t blocks = 0;
    bool is_touched = false;
  };
  std::vector<Cell> changed_;  ///< by stack
  std::vector<std::size_t> touched_;
};

/// Replays one device's stream as it arrives: live bytes by site, growth and timeline.
///
///   |--------|--------|--------|----   stretches of equally many events, at most `points`: if there are more,
///     ^   v    ^    v                  neighbours are joined. Each keeps its highest and its lowest moment,
///   high low                           with everything that was live then.
///
/// Memory: 80 bytes per live block, 100 per site, 40 per stretch and site, whatever the number of events. Cost: some
/// 100 ns per event.
class StreamReplay {
 public:
  explicit StreamReplay(std::uint32_t device, const TimelineOptions& options = {});

  Status take(const AllocEvent& event);

  [[nodiscard]] std::uint32_t device() const { return device_; }
  [[nodiscard]] const StreamLive& live() const { return live_; }
  /// The profile of what is live now.
  [[nodiscard]] Profile sites() const;
  /// The timeline up to now. Peaks are those of the stretches; valleys are left out.
  [[nodiscard]] Timeline timeline(const Symbols& symbols) const;
  /// The growth between quiet moments: the lowest one of each sixth of the events, without the first sixth, which is
  /// the program's start. Short streams have fewer; with fewer than two, there is no result and `usage` is empty.
  [[nodiscard]] SnapshotGrowth growth(std::uint64_t least_bytes = GrowthOptions{}.least_bytes) const;
  /// The moments that growth() compares.
  [[nodiscard]] std::vector<Moment> quiet_moments() const;

 private:
  struct Stretch {
    Moment high, low;
    Profile at_high, at_low;
  };
  [[nodiscard]] Stretch open_stretch() const;
  [[nodiscard]] std::vector<Stretch> all_stretches() const;
  [[nodiscard]] std::vector<const Stretch*> quiet(const std::vector<Stretch>& all) const;
  void join_stretches();

  std::uint32_t device_;
  TimelineOptions options_;
  StreamLive live_;
  std::vector<StackBytes> by_stack_;  ///< live now
  Moment now_;
  Moment begin_;
  std::vector<Stretch> stretches_;
  std::uint64_t stretch_events_ = 1;  ///< events per stretch
  std::uint64_t open_events_ = 0;     ///< in the incomplete stretch
  Moment high_, low_;                 ///< of the incomplete stretch
  SitesSince since_high_, since_low_;
};

/// The final state of a stream as a Snapshot.
class StreamSnapshot {
 public:
  explicit StreamSnapshot(bool keep_events) : keep_events_(keep_events) { origins_.intern({}); }
  Status take(std::uint32_t device, std::int64_t stream, const AllocEvent& event);
  /// Call once, at the end.
  Snapshot finish();

 private:
  struct Device {
    StreamLive live;
    Paged<AllocEvent> events;
  };
  bool keep_events_;
  std::map<std::uint32_t, Device> devices_;
  Origins origins_;
};

}  // namespace vramtrack::trace
