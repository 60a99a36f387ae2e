// For people, one leak is one story, although several series show it: that of the device, those of its parts, which are
// its processes and the memory that no process holds, and what a process's allocator reports (core/incident.hpp).
//
// What is shown groups the alerts of a View: told_with(). What is reported as it happens, in a terminal or by a
// notification, groups them as they come: Stories. Nothing else decides which alerts are one.
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

/// For each alert, the index of the alert that reports the same leak, because both stood at the same time: the device's
/// for its parts; else the process's for what its allocator reports; else that of what is allocated for what is
/// reserved. For all others, their own index. A standing alert is never told with one that has ended. Pure; O(n) for
/// the alerts, times those of their device and of their process.
std::vector<std::size_t> told_with(const std::vector<AlertOf>& alerts);

/// How many leaks and other alerts stand, as people count them: told_with() applied to those of `series`. Pure.
std::size_t standing_count(const std::vector<const SeriesView*>& series);

/// What one change of an alert means for people.
struct StoryNews {
  /// That a leak was found, got worse or is over; nullopt: another series of the same leak has reported it.
  std::optional<AlertNews> news;
  std::vector<SeriesKey> series;  ///< every series that has shown this leak, the alert's included
};

/// The same while alerts change, for code that reports each change as it comes. Forgets a leak when its last alert has
/// ended. Not thread-safe.
class Stories {
 public:
  /// Cost: O(leaks that stand).
  StoryNews news(const SeriesKey& key, const Alert& alert, AlertNews news);
  void clear() { standing_.clear(); }

 private:
  /// One standing leak, or several of a device that leaks as a whole.
  struct Story {
    std::vector<SeriesKey> keys;    ///< of every series that has been a member
    std::vector<SeriesId> members;  ///< the series whose alerts stand
    bool leak = false;              ///< other alerts are stories of a single series
    AlertKind kind = AlertKind::leak;
    Severity severity = Severity::watch;
  };
  StoryNews begin(const SeriesKey& key, const Alert& alert);

  std::vector<Story> standing_;
};

}  // namespace vramtrack
