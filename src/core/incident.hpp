// Incident: one problem as people see it, however many alerts report it. A leak shows in its device, in its
// process, in the memory that no process holds and in what an allocator reports; each of these raises an alert, and all
// of them are one incident. The engine names the incident of each alert as it raises it (Alert::incident); terminals,
// `top`, the page, reports, metrics, notifications and records group alerts by that name and by nothing else
// (docs/design/0030-incidents.md).
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "core/series.hpp"
#include "core/time.hpp"
#include "core/verdict.hpp"
#include "core/view.hpp"

namespace vramtrack {

/// Whether the leak that `whole` shows includes the one that `part` shows: a device covers its parts, a process what
/// its allocator reports, and allocated memory the memory reserved for it. Pure.
bool speaks_for(const SeriesKey& whole, const SeriesKey& part);

/// An alert and the series it belongs to. Both must outlive it.
struct AlertOf {
  const SeriesKey& key;
  const Alert& alert;
};

/// Indices refer to the list that it was made from.
struct Incident {
  std::string id;  ///< Alert::incident; it lives as long as the incident does
  AlertKind kind = AlertKind::leak;
  Severity severity = Severity::watch;  ///< the highest
  Timestamp begin;
  std::optional<Timestamp> end;      ///< of its last alert; nullopt: one of them stands
  std::size_t speaks = 0;            ///< the alert that covers most of it; a standing one, if there is any
  std::vector<std::size_t> members;  ///< all its alerts, in the order given
};

/// The incidents of the alerts, in the order of their main alerts. Alerts from before incidents existed are grouped as
/// they would have been. Pure; O(alerts), times the alerts of the same device for those.
std::vector<Incident> incidents_of(const std::vector<AlertOf>& alerts);
std::vector<Incident> incidents_of(const std::vector<const SeriesView*>& series);
/// How many of them stand.
std::size_t standing(const std::vector<Incident>& incidents);

/// What one change of an alert means for its incident.
struct IncidentChange {
  std::string id;
  /// Names of incidents that were separate until an alert showed that they belong to this one.
  std::vector<std::string> also;
  /// That the incident began, got worse or is over; nullopt: another of its alerts has already reported that.
  std::optional<AlertNews> news;
};

/// Tracks which incidents stand while alerts change. The id of an incident is that of its first alert, so an engine
/// that replays the same samples gives the same ids. Not thread-safe. Each call costs O(incidents that stand).
class Incidents {
 public:
  /// For this long after an incident ends, a leak of the same work is the same incident: the work was restarted.
  static constexpr double kSameWork_s = 3600;

  /// Names the incident of an alert that has just been raised. `work`: what leaks there, the same text for all its
  /// ranks and runs, on any device; empty: unknown. Returns the other series whose standing alerts belong to it
  /// from now on, although they had another one.
  std::vector<SeriesKey> raise(const SeriesKey& key, Alert& alert, const std::string& work = {});
  /// What the change means. REQUIRES: the alert was passed to raise() or adopt(). An incident is forgotten when its
  /// last alert has ended, unless its work is known, because that may be restarted.
  IncidentChange report(const SeriesKey& key, const Alert& alert, AlertNews news);
  /// `alert` stood in the record of an earlier watch: its incident continues under its name. `stands`: an alert of its
  /// series also stands here; otherwise alerts raised for that leak by `until` belong to it. Returns as raise() does.
  /// REQUIRES: the alert names its incident.
  std::vector<SeriesKey> adopt(const SeriesKey& key, Alert& alert, bool stands, Timestamp until,
                               const std::string& work = {});

 private:
  struct Open {
    std::string id;
    std::vector<std::string> also;
    AlertKind kind = AlertKind::leak;
    std::vector<SeriesKey> keys;       ///< every series that has been a member
    std::vector<SeriesKey> standing;   ///< those whose alerts stand
    std::optional<Severity> reported;  ///< the highest that report() has returned
    bool adopted = false;
    std::optional<Timestamp> until = {};  ///< if none of its alerts stands here: how long it is remembered
    std::vector<std::string> works = {};
  };
  [[nodiscard]] static bool belongs(const Open& open, const Open& news, const SeriesKey& key);
  std::vector<SeriesKey> join(const SeriesKey& key, Alert& alert, Open&& incident);

  std::vector<Open> open_;
};

}  // namespace vramtrack
