// Times as this machine's clock shows them, for people at its terminal. Files, JSON, notifications and everything sent
// to other machines have UTC.
#pragma once

#include <string>

#include "core/time.hpp"

namespace vramtrack {

/// While one with `on` exists, format_moment() and clock_time() of this thread write local times. May be nested.
class LocalTimes {
 public:
  explicit LocalTimes(bool on);
  ~LocalTimes();
  LocalTimes(const LocalTimes&) = delete;
  LocalTimes& operator=(const LocalTimes&) = delete;

 private:
  const bool was_;
};

/// "2026-01-02T03:04:05" in UTC, or in local time.
std::string clock_time(Timestamp time);
/// "UTC"; within a LocalTimes the short name of the local zone at `time`, "CET", which then counts as named.
std::string zone_name(Timestamp time);
/// How far the clock of clock_time() is ahead of UTC at `time`; 0 in UTC.
double zone_offset_s(Timestamp time);
/// "2026-01-02 04:04:05" within a LocalTimes, which must exist. The zone is not written: see unnamed_zone().
std::string local_moment(Timestamp time);

/// A sentence that names the zone of the local moments, if some were written since the program began and it has not
/// been named yet: "times are local, CET (UTC+01:00)". Empty otherwise. Called by whatever writes to the terminal.
std::string unnamed_zone();

bool writes_local_times();

}  // namespace vramtrack
