// Note: a change of one alert, in the form needed to send notifications.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/series.hpp"
#include "core/time.hpp"
#include "core/verdict.hpp"

namespace vramtrack::act {

/// A plain value. Texts may contain any bytes: whatever writes them must escape them.
struct Note {
  AlertNews news = AlertNews::raised;
  AlertKind kind = AlertKind::leak;
  SeriesKey key;
  std::string incident;                 ///< of the alert (core/incident.hpp)
  std::vector<std::string> also;        ///< incidents that turned out to be this one
  bool incident_is_over = true;         ///< for an alert that has ended: no other alert of its incident is active
  std::uint32_t suspect_pid = 0;        ///< for a device's alert: the process whose growth explains it; 0: unknown
  Severity severity = Severity::watch;  ///< the current one
  Timestamp time;                       ///< the time of the change, by the samples' clock
  bool ran_out = false;                 ///< for an alert that has ended: its program ran out of memory
  bool silenced = false;                ///< notify nobody now; see live/silences.hpp
  std::string text;                     ///< for people; its first line must be understandable alone
  /// For a message of a policy rather than an alert: the act's id. Sent once, regardless of other notes about the
  /// series.
  std::string act_id;
  bool is_always_sent = false;  ///< for an act: exempt from notify.max-per-hour
  std::string json;             ///< one JSON object (vramtrack.alert.v1) for programs; empty: none
};

}  // namespace vramtrack::act
