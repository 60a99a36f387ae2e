// The columns of `nvidia-smi dmon` and `pmon`, which have the same layout.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/result.hpp"
#include "source/log/dumps.hpp"

namespace vramtrack {

/// Positions of the words in a row, by the "# gpu ..." line.
struct MonitorColumns {
  int date = -1, time = -1, gpu = -1, fb = -1, pid = -1, type = -1, command = -1;
  std::size_t count = 0;
};

/// Reads a "# gpu   pwr ..." header; false for the units line and anything else.
bool read_monitor_header(std::string_view line, MonitorColumns& columns);

/// Cuts a row into words (separated by spaces, tabs or commas); the command, which comes last, keeps its spaces.
void cut_monitor_row(std::string_view line, const MonitorColumns& columns, std::vector<std::string_view>& words);

/// The header and clock of a head.
struct MonitorHead {
  MonitorColumns columns;
  StampReader stamp;
  std::vector<std::string> assumptions;
};
/// An Error when there is no header or no fb column; it names the option that records it.
Result<MonitorHead> read_monitor_head(const LogHead& head, std::string_view tool);

/// The first header line of a head, for recognising.
bool find_monitor_header(std::string_view head, MonitorColumns& columns);

/// A parser of rows with such columns; separates the rounds when there is no clock.
class MonitorParser : public LineParser {
 public:
  explicit MonitorParser(MonitorHead head) : LineParser(std::move(head.stamp)), columns_(head.columns) {
    assumptions_ = std::move(head.assumptions);
  }

  [[nodiscard]] std::optional<std::string> misfit() const final;

 protected:
  void read_line(std::string_view line, std::uint64_t number, bool whole, LogRows& rows) final;
  /// One row's words, at `time_`, of GPU `gpu_`.
  virtual void read_row(std::uint64_t number, LogRows& rows) = 0;
  /// All GPUs of one round have been read.
  virtual void end_round(LogRows& /*rows*/) {}
  [[nodiscard]] std::string_view word(int column) const {
    return column >= 0 && static_cast<std::size_t>(column) < words_.size() ? words_[static_cast<std::size_t>(column)]
                                                                           : std::string_view{};
  }
  std::size_t device(LogRows& rows);

  MonitorColumns columns_;
  std::vector<std::string_view> words_;
  Timestamp time_{};
  std::uint64_t round_ = 0;
  int gpu_ = -1;

 private:
  /// Whether the row just cut begins a new round, if there is no clock: the GPUs start over, or a process repeats.
  bool begins_round();

  std::vector<std::size_t> device_of_;  ///< by GPU index
  std::vector<std::uint32_t> round_pids_;
  std::string stamp_text_;
  std::uint64_t fit_ = 0, unfit_ = 0;  ///< lines with the header's columns, and others
  std::string first_unfit_;
  bool started_ = false;
};

}  // namespace vramtrack
