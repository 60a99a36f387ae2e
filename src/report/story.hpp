// For people, one leak is one story, although two series show it: that of the device and that of its part, which is a
// process or the memory that no process holds.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "core/series.hpp"
#include "core/verdict.hpp"
#include "core/view.hpp"

namespace vramtrack {

/// An alert and the series it belongs to. Both must outlive it.
struct AlertOf {
  const SeriesKey& key;
  const Alert& alert;
};

/// For each alert of a part: the index of the device's alert that reports the same leak, because they stood at the same
/// time; for all others, their own index. A standing alert is never told with one that has ended. Pure; O(n) for the
/// alerts of parts, times the alerts of their device.
std::vector<std::size_t> told_with(const std::vector<AlertOf>& alerts);

/// How many leaks and other alerts stand, as people count them: told_with() applied to those of `series`. Pure.
std::size_t standing_count(const std::vector<const SeriesView*>& series);

/// The same while alerts change, for code that reports each change as it comes. Forgets a leak when its last alert has
/// ended. Not thread-safe.
class Stories {
 public:
  /// What people should be told about this change: that a leak was found, got worse or is over; nullopt if another
  /// series of the same leak has reported it. Cost: O(leaks that stand).
  std::optional<AlertNews> news(const SeriesKey& key, const Alert& alert, AlertNews news);
  void clear() { standing_.clear(); }

 private:
  /// One standing leak, or several of a device that leaks as a whole.
  struct Story {
    DeviceKey device;
    std::vector<SeriesId> members;  ///< the series whose alerts stand
    bool has_device = false;        ///< the device's own series has been a member
    bool leak = false;              ///< other alerts are stories of a single series
    AlertKind kind = AlertKind::leak;
    Severity severity = Severity::watch;
  };
  std::optional<AlertNews> begin(const SeriesKey& key, const Alert& alert);

  std::vector<Story> standing_;
};

}  // namespace vramtrack
