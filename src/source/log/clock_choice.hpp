// Chooses the clock of a log from its head: which field of its records, be it a column, a key of JSON objects or a
// place in lines of text, gives their time, or counts in place of it. The values are read by StampReader.
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

/// What suggests, besides its values, that a field gives the time of its record.
enum class ClockHint : std::uint8_t {
  none,      ///< its name means something else
  values,    ///< only its values
  untitled,  ///< likewise, and no name contradicts that numbers are dates
  name,      ///< its name: "timestamp"; or "epoch", which may also be a count
  count,     ///< its name counts the progress of the program: "step"
  word,      ///< a word of a line counts it: "step 17"
  place,     ///< it is where lines of text have their time
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
  std::string label;  ///< for messages: "column 1 'when'", "times such as '10:00'"
  ClockHint hint = ClockHint::none;
  int rank = 0;               ///< of names, the highest is chosen: see Column
  std::string_view counts{};  ///< what it counts: see counted_by(); empty: nothing
  std::int64_t unit_ns = 0;   ///< of its numbers; 0: not given
};
/// A field with a title or key.
ClockField named_field(std::string label, std::string_view name);

/// The fields of a head. Thread-compatible.
struct ClockRecords {
  std::vector<ClockField> fields;
  std::vector<std::size_t> series;  ///< of each record: within a series, a clock goes on
  std::function<ClockValue(std::size_t field, std::size_t record)> value;
};

struct ClockChoice {
  int time = -1;                ///< index of the field; -1: none
  int outer_count = -1;         ///< the field that counts the epochs in which `time` begins again; -1: none
  bool begins_anew = false;     ///< `time` does begin again with an epoch
  bool refuses_stamps = false;  ///< what stands at ClockHint::place, or in a heading, is not the time
  StampReader::Title title{};   ///< of `time`
};

/// Chooses by name, else by place, else by values; a count is the clock if there is no time, or if the time named so is
/// a duration. `assumptions` gets what is not taken for the clock. An Error names two fields that both may be it.
/// O(fields hinted at x records).
Result<ClockChoice> choose_clock(const ClockRecords& head, std::vector<std::string>& assumptions);

}  // namespace vramtrack
