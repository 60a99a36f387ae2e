// Common parts of the line-by-line formats.
#pragma once

#include <functional>
#include <string_view>

#include "source/log/format.hpp"
#include "source/log/messages.hpp"
#include "source/log/recording.hpp"
#include "source/log/rows.hpp"
#include "source/log/stamp.hpp"
#include "source/log/text.hpp"

namespace vramtrack {

/// A parser that reads one line at a time.
class LineReader : public LogParser {
 public:
  std::uint64_t parse(std::string_view lines, std::uint64_t number, bool complete, LogRows& rows) final {
    for (; !lines.empty(); ++number) {
      const bool last_is_cut = !complete && lines.find('\n') == std::string_view::npos;
      const std::string_view line = logtext::take_line(lines);
      rows.line = number;
      if (reports_out_of_memory(line)) {
        end_reading(rows);
        rows.out_of_memory(line);
        continue;
      }
      if (reports_lost_gpu(line)) {
        end_reading(rows);
        rows.device_lost(line);
        continue;
      }
      if (reports_end(line)) {
        end_reading(rows);
        rows.program_ended(line);
      }
      read_line(line, number, !last_is_cut, rows);
    }
    return number;
  }

 protected:
  /// `whole` is false for a last line without a newline, which may be truncated anywhere.
  virtual void read_line(std::string_view line, std::uint64_t number, bool whole, LogRows& rows) = 0;
  /// A message follows: the values read so far make a reading.
  virtual void end_reading(LogRows& /*rows*/) {}
};

/// A line reader with a clock that may be missing (table, dmon, pmon, tegrastats).
class LineParser : public LineReader {
 public:
  explicit LineParser(StampReader stamp) : stamp_(std::move(stamp)) {}
  [[nodiscard]] bool clock_is_relative() const final { return stamp_.is_relative(); }
  [[nodiscard]] bool clock_wraps() const final { return stamp_.wraps(); }
  [[nodiscard]] Scale scale() const override { return stamp_.scale(); }

 protected:
  StampReader stamp_;
};

}  // namespace vramtrack
