// One time zone's changes of the clock, read from the system's zone database (TZif files, RFC 8536).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.hpp"

namespace vramtrack {

/// When and by how much local time differs from UTC. Immutable once read; copyable; any thread may use it.
class TimeZone {
 public:
  /// A stretch of UTC seconds [begin_s, end_s) during which local time is UTC + offset_s.
  struct Span {
    std::int64_t begin_s = 0;
    std::int64_t end_s = 0;
    std::int32_t offset_s = 0;
  };

  /// Bounds of the times that this class handles: about +-12,600 years. Spans that never end are cut here, so that
  /// sums of a bound and an offset cannot overflow.
  static constexpr std::int64_t kFarS = 400'000'000'000;

  /// Reads the bytes of a TZif file, version 1 to 4. An Error names the byte offset and what was expected there.
  static Result<TimeZone> parse(std::string_view bytes);

  /// The zone `name` ("Europe/Berlin") of the database in $TZDIR, else /usr/share/zoneinfo. An Error gives the reason.
  static Result<TimeZone> load(const std::string& name);

  /// This machine's zone, /etc/localtime; an Error if there is none.
  static Result<TimeZone> machine();

  /// The stretch that contains the UTC second `utc_s` (clamped to +-kFarS). Cost: a binary search, or, past the
  /// file's table, the arithmetic of its yearly rule.
  [[nodiscard]] Span at(std::int64_t utc_s) const;

  /// "Europe/Berlin"; "local time" for a machine zone without a known name; empty after parse().
  [[nodiscard]] const std::string& name() const { return name_; }

 private:
  /// One of the two yearly changes: at `time_s` after local midnight of the day that the other fields select.
  struct Change {
    enum class Kind : std::uint8_t { month_week_day, day_without_leap, day_with_leap };
    Kind kind = Kind::month_week_day;
    int month = 0;
    int week = 0;
    int day = 0;
    std::int32_t time_s = 7200;
  };
  struct Rule {
    bool known = false;
    std::int32_t standard_s = 0;
    bool has_summer = false;
    std::int32_t summer_s = 0;
    Change begin;  ///< of summer time, on the standard clock
    Change end;    ///< of summer time, on the summer clock
  };
  class RuleReader;

  [[nodiscard]] Span by_rule(std::int64_t utc_s) const;
  static std::int64_t local_seconds(const Change& change, std::int64_t year);

  std::string name_;
  std::vector<std::int64_t> changes_s_;  ///< UTC, ascending
  std::vector<std::int32_t> offsets_s_;  ///< from changes_s_[i] on; as many as changes_s_
  std::int32_t before_s_ = 0;            ///< offset before the first change
  Rule rule_;                            ///< after the last change
};

}  // namespace vramtrack
