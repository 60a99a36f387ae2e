// Chooses the clock of a log from its head: the field of its records (a column, a key of JSON objects or a place in
// lines of text) that gives their time, or a count in place of it. StampReader reads the values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.hpp"
#include "source/log/stamp.hpp"

namespace vramtrack {

/// The evidence, besides its values, that a field gives the time of its record.
enum class ClockHint : std::uint8_t {
  none,      ///< its name means something else
  values,    ///< only its values
  untitled,  ///< likewise, and no name contradicts that its numbers are dates
  name,      ///< its name: "timestamp"; or "epoch", which may also be a count
  count,     ///< its name counts the progress of the program: "step"
  word,      ///< a word of a line counts the progress: "step 17"
  place,     ///< it stands where lines of text have their time
  heading,   ///< the last time on a line without figures
  minutes,   ///< hours and minutes where lines have their time
  elapsed    ///< a duration in a line
};

/// A value of a field.
struct ClockValue {
  enum class Form : std::uint8_t { missing, other, carried, number, time_of_day, minutes, date };
  Form form = Form::missing;  ///< `carried`: from an earlier record; `minutes`: a time of day without seconds
  double at = 0;              ///< the number, or seconds since midnight or 1970
};
ClockValue read_clock_value(std::string_view text);

struct ClockField {
  std::string label;  ///< name in messages: "column 1 'when'", "times such as '10:00'"
  ClockHint hint = ClockHint::none;
  int rank = 0;               ///< rank of its name, the highest is chosen: see Column
  std::string_view counts{};  ///< the thing it counts: see counted_by(); empty: nothing
  std::int64_t unit_ns = 0;   ///< unit of its numbers; 0: not given
};
/// A field with this title or key.
ClockField named_field(std::string label, std::string_view name);

/// The fields of a head. Thread-compatible.
struct ClockRecords {
  std::vector<ClockField> fields;
  std::vector<std::size_t> series;  ///< series of each record: within one, a clock only advances
  std::function<ClockValue(std::size_t field, std::size_t record)> value;
};

struct ClockChoice {
  int time = -1;                ///< index of the field; -1: none
  int outer_count = -1;         ///< the field that counts the epochs in which `time` begins again; -1: none
  bool begins_anew = false;     ///< `time` does start again with each epoch
  bool refuses_stamps = false;  ///< the text at ClockHint::place, or in a heading, is not the time
  StampReader::Title title{};   ///< title of `time`
};

/// Chooses by name, else by place, else by values; a count is the clock if there is no time, or if the field named as a
/// time is a duration. `assumptions` reports fields that are not taken for the clock. An Error names two fields that
/// could both be it. O(fields hinted at x records).
Result<ClockChoice> choose_clock(const ClockRecords& head, std::vector<std::string>& assumptions);

}  // namespace vramtrack
