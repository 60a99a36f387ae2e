// Reads lines of free text as planned: finds their figures, and assigns them to a time and a series.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "source/log/dumps.hpp"
#include "source/log/text_plan.hpp"

namespace vramtrack {

class TextLines final : public LineParser {
 public:
  /// `capacity`: of GPUs whose lines do not give their total.
  TextLines(PlannedText planned, LineCutter cutter, const std::optional<std::uint64_t>& capacity,
            std::vector<std::string> assumptions);

  void finish(LogRows& rows) override;
  [[nodiscard]] bool processes_only() const override { return plan_.pid_is_process; }
  [[nodiscard]] std::string_view needs_file_order() const override {
    if (unnamed_gpus_ > 1) return "its rows do not name the GPU";
    if (plan_.in_blocks) return "several lines make a reading";
    return borrows_time_ ? "some of its rows have no time of their own" : std::string_view{};
  }
  [[nodiscard]] Scale scale() const override;

 private:
  void read_line(std::string_view raw, std::uint64_t number, bool whole, LogRows& rows) override;
  void end_reading(LogRows& rows) override { flush(rows); }
  std::string count_of_line();
  void read_clock(LogRows& rows);
  void read_time(std::string_view text, LogRows& rows);
  void name(TextFigures& out, int gpu) const;
  void skip_line(std::string_view line, std::uint64_t number);
  void take(TextFigures figures, LogRows& rows);
  void flush(LogRows& rows);
  bool has_time(std::size_t device, std::uint32_t pid);
  std::optional<int> next_unnamed_index();
  void emit(TextFigures& figures, LogRows& rows);

  WordPlan plan_;
  LineCutter cutter_;
  LineFigures found_;
  int head_gpu_ = -1;
  EpochCounter counter_;
  std::uint64_t epoch_ = 0;  ///< as last given
  std::uint64_t skipped_ = 0;
  std::uint64_t last_read_ = 0;
  std::uint64_t otherwise_ = 0;  ///< lines after the last reading that give memory in use in other words
  std::uint64_t first_otherwise_ = 0;
  std::string first_otherwise_text_;
  std::uint64_t doubled_ = 0, first_doubled_ = 0;  ///< figures of one kind next to another in their line

  Timestamp time_{};
  std::vector<TextFigures> pending_;
  std::map<std::size_t, std::uint64_t> totals_;  ///< by device, as last given; 0: not yet
  std::map<int, std::uint64_t> index_totals_;    ///< by index, from lines without a reading
  double percent_bytes_ = 0;
  std::uint64_t capacity_bytes_ = 0;  ///< 0: not given
  std::size_t unnamed_gpus_ = 1;
  std::size_t unnamed_index_ = 0;
  Timestamp unnamed_time_ = LogRows::kNever;
  bool stamped_ = false;
  bool is_own_ = false;        ///< the time is in the line being read
  bool borrows_time_ = false;  ///< some line had no time of its own
  std::uint64_t round_ = 0;
  std::vector<std::pair<std::size_t, std::uint32_t>> in_round_;
};

}  // namespace vramtrack
