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

/// A plain value. Texts may contain any bytes: code that writes them somewhere must escape them.
struct Note {
  AlertNews news = AlertNews::raised;
  AlertKind kind = AlertKind::leak;
  SeriesKey key;
  std::string incident;                 ///< the alert's (core/incident.hpp)
  std::vector<std::string> also;        ///< incidents that have proved to be this one
  bool incident_is_over = true;         ///< for an alert that has ended: no other of its incident stands
  std::uint32_t suspect_pid = 0;        ///< for a device's alert: the process whose growth explains it; 0: none known
  Severity severity = Severity::watch;  ///< as it is now
  Timestamp time;                       ///< the time of the change, by the samples' clock
  bool ran_out = false;                 ///< for an alert that has ended: its program ran out of memory
  bool silenced = false;                ///< nobody is to be notified now; see live/silences.hpp
  std::string text;                     ///< for people; its first line alone must make sense
  /// For a message of a policy rather than an alert: the act's id. It is sent once, whatever else is known about the
  /// series.
  std::string act_id;
  bool is_always_sent = false;  ///< for an act: notify.max-per-hour does not hold it back
  std::string json;             ///< one JSON object (vramtrack.alert.v1) for programs; empty: none
};

}  // namespace vramtrack::act
