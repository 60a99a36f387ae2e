// Note: what became of one alert, as whoever sends notifications needs it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/series.hpp"
#include "core/time.hpp"
#include "core/verdict.hpp"

namespace vramtrack::act {

/// A plain value. Texts may hold any bytes: whoever writes them somewhere escapes them.
struct Note {
  AlertNews news = AlertNews::raised;
  AlertKind kind = AlertKind::leak;
  SeriesKey key;
  std::uint32_t suspect_pid = 0;  ///< of a device's alert: the process whose growth explains it; 0: none known
  std::uint64_t suspect_start_ticks = 0;
  Severity severity = Severity::watch;  ///< as it is now
  Timestamp time;                       ///< of the change, by the samples' clock
  bool silenced = false;                ///< nobody is to hear of it now; see live/silences.hpp
  std::string text;                     ///< for people; its first line alone must make sense
  /// Of a message of a policy, which is no alert's: the act's id. It is sent once, whatever else is known of the
  /// series.
  std::string act_id;
  std::string json;  ///< one JSON object (vramtrack.alert.v1) for programs; empty: none
};

}  // namespace vramtrack::act
