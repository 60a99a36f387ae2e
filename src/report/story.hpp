// One leak is one story for people, though two series show it: the device's and its part's, which is a process's or
// that of the memory that no process holds.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "core/series.hpp"
#include "core/verdict.hpp"
#include "core/view.hpp"

namespace vramtrack {

/// An alert and whose it is. Both must outlive it.
struct AlertOf {
  const SeriesKey& key;
  const Alert& alert;
};

/// Of each alert of a part the place of the alert of its device that tells the same leak, because they stood at the
/// same time; the place itself for all others. An alert that stands is never told with one that has ended. Pure; O(n)
/// for the alerts of parts, times the alerts of their device.
std::vector<std::size_t> told_with(const std::vector<AlertOf>& alerts);

/// How many leaks and other alerts stand, as people count them: told_with() of those of `series`. Pure.
std::size_t standing_count(const std::vector<const SeriesView*>& series);

/// The same as alerts change, for those who tell each change as it comes. Forgets a leak when its last alert has ended.
/// Not thread-safe.
class Stories {
 public:
  /// What people are to be told of this change: that a leak was found, that it is worse or that it is over; nullopt
  /// where another series of the same leak has told it. Cost: O(leaks that stand).
  std::optional<AlertNews> news(const SeriesKey& key, const Alert& alert, AlertNews news);
  void clear() { standing_.clear(); }

 private:
  /// One leak that stands, or several of a device that leaks as a whole.
  struct Story {
    DeviceKey device;
    std::vector<SeriesId> members;  ///< whose alerts stand
    bool has_device = false;        ///< the device's own series has been one
    bool leak = false;              ///< others are stories of one series
    AlertKind kind = AlertKind::leak;
    Severity severity = Severity::watch;
  };
  std::optional<AlertNews> begin(const SeriesKey& key, const Alert& alert);

  std::vector<Story> standing_;
};

}  // namespace vramtrack
