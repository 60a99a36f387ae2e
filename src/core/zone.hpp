// A time zone, with the current offset cached: converting costs a comparison and a subtraction, except within a day of
// a clock change.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "core/result.hpp"

namespace vramtrack {

class TimeZone;

/// Converts the wall-clock time of one place to UTC. Copies share the zone's table; not thread-safe (the cache).
class Zone {
 public:
  /// The zone named `name` ("Europe/Berlin", "UTC"); empty: $TZ if it names a zone, else this machine's, else UTC. An
  /// Error names the unknown zone.
  static Result<Zone> open(const std::string& name);

  /// UTC seconds of the wall-clock time `local_s` (seconds since 1970-01-01T00:00 on that wall clock).
  /// A time that occurs twice is read as the first one not before `not_before_s` (UTC), with a tolerance of a
  /// minute; a time that does not occur is read with the offset before the change.
  std::int64_t to_utc(std::int64_t local_s, std::int64_t not_before_s) {
    if (has_fixed_offset(local_s)) return local_s - offset_s_;
    return look_up(local_s, not_before_s);
  }

  /// True if the clocks do not change within a day of `local_s`, as far as the last conversion found.
  [[nodiscard]] bool has_fixed_offset(std::int64_t local_s) const {
    return local_s >= safe_from_s_ && local_s < safe_until_s_;
  }

  [[nodiscard]] const std::string& name() const { return name_; }

 private:
  std::int64_t look_up(std::int64_t local_s, std::int64_t not_before_s);

  std::shared_ptr<const TimeZone> zone_;  ///< nullptr: UTC
  std::string name_ = "UTC";
  std::int64_t offset_s_ = 0;
  std::int64_t safe_from_s_ = 1;  ///< local times in [from, until) have offset_s_; initially empty
  std::int64_t safe_until_s_ = 0;
};

}  // namespace vramtrack
