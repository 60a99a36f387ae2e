// Reads delimited rows according to a ColumnPlan: the engine of the query-gpu, compute-apps and csv formats, and the
// fast path of the whole program (about 100 ns per line). Also logs that are recognised but have nothing to judge.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/result.hpp"
#include "core/units.hpp"
#include "source/log/columns.hpp"
#include "source/log/csv_clock.hpp"
#include "source/log/format.hpp"
#include "source/log/positioned_rows.hpp"
#include "source/log/rows.hpp"
#include "source/log/stamp.hpp"
#include "source/log/text.hpp"

namespace vramtrack {

/// Data shared by the rows of one series, so that most rows cost only a comparison.
struct CsvEntry {
  std::string key;  ///< the identifying fields as written
  std::size_t device = 0;
  SeriesId series{};
  bool has_series = false;
  std::size_t process = SIZE_MAX;
  std::string total_text;         ///< the total column as last written
  std::vector<SeriesId> further;  ///< series of ColumnPlan::further
  std::uint64_t round = 0;        ///< the reading it was last seen in, for logs without a clock
};

/// A parser of rows. make_csv_parser() sets its columns, clock and units.
class CsvRows final : public LogParser {
 public:
  CsvRows(ColumnPlan plan, StampReader stamp, std::vector<std::string> assumptions) : stamp_(std::move(stamp)) {
    assumptions_ = std::move(assumptions);
    adopt(std::move(plan));
  }

  /// Sets the unit of used memory that the titles did not give.
  void set_unit(std::uint64_t used) {
    default_unit_ = used;
    apply_units();
  }
  /// The log does not give the unit of its amounts: the one passed to set_unit() is a guess.
  void set_unit_unknown() { unit_unknown_ = true; }
  /// The log gives only free memory: see most_free_of().
  void set_most_free(std::uint64_t bytes) { most_free_ = bytes; }
  /// The `n` GPUs of a reading are identified by the positions of their rows in it.
  void set_positions(std::size_t n) { held_ = PositionedRows<HeldRow>(n); }

  std::uint64_t parse(std::string_view lines, std::uint64_t line, bool complete, LogRows& rows) override;

  void finish(LogRows& rows) override;

  [[nodiscard]] std::optional<std::string> misfit() const override;
  [[nodiscard]] bool clock_is_relative() const override { return stamp_.is_relative(); }
  [[nodiscard]] bool clock_wraps() const override { return stamp_.wraps(); }
  [[nodiscard]] Scale scale() const override {
    Scale scale = stamp_.scale();
    if (unit_unknown_) scale.count(AmountUnit::unknown, static_cast<double>(default_unit_));
    return scale;
  }
  [[nodiscard]] std::string_view needs_file_order() const override {
    if (held_.gpus() > 1) return "its rows do not name the GPU";
    if (plan_.clock_lines) return "the times are on lines of their own";
    if (plan_.outer_count >= 0) return "its steps begin again in each epoch";
    if (spans_lines_) return "some of its rows span several lines";
    return columns_change_ ? "its columns change partway" : std::string_view{};
  }
  [[nodiscard]] bool processes_only() const override { return plan_.pid >= 0; }

 private:
  enum class Cut : std::uint8_t { done, short_line, long_line, odd };

  void adopt(ColumnPlan plan);
  void apply_units();
  Cut cut(const char* p, const char* end);
  Cut cut_oddly(std::string_view line);
  /// A row of a reading in which rows do not name their GPUs.
  struct HeldRow {
    std::vector<std::string> fields;
    Timestamp time;
    GpuMemory memory;
    std::uint64_t line = 0;
  };
  // The steps of read_row() return the same values as it does.
  const char* read_row(LogRows& rows, bool last_is_whole);
  const char* read_time(Timestamp& time);
  const char* read_memory(bool last_is_whole, GpuMemory& out);
  const char* add_row(CsvEntry& e, Timestamp time, GpuMemory& memory, LogRows& rows);
  const char* read_total(CsvEntry& e, int column, GpuMemory& out, LogRows& rows) const;
  void read_line(std::string_view line, std::uint64_t number, bool complete, LogRows& rows);
  void go_on_in_quotes(std::string_view text, std::uint64_t line, bool whole, LogRows& rows);
  void unquote(LogRows& rows);
  bool read_clock_line(std::string_view line);
  [[nodiscard]] int column_titled_as_clock(const ColumnPlan& later) const;
  void fits() {
    ++fit_;
    unfit_ += unfit_since_;
    unfit_since_ = unfit_rows_since_ = 0;
    other_rows_ = {};
  }
  /// Consecutive rows in another layout.
  struct OtherRows {
    std::size_t fields = 0;  ///< in each row
    std::uint64_t rows = 0;
    std::string first;  ///< why the first row does not fit
  };
  void does_not_fit(std::string_view line, std::uint64_t number, const std::string& why);
  [[nodiscard]] std::string refuse_rows(std::uint64_t rows, const std::string& first) const;
  CsvEntry* entry(LogRows& rows);
  CsvEntry* make_entry(LogRows& rows);
  logtext::Amount read_used(std::string_view text, std::uint64_t unit, GpuMemory& out) const;
  void begin_series(CsvEntry& e, const std::vector<ColumnPlan::Further>& further, std::uint32_t pid,
                    LogRows& rows) const;
  void add_further(Timestamp time, const CsvEntry& e, const std::vector<ColumnPlan::Further>& further, LogRows& rows);
  const char* read_wide_row(Timestamp time, bool last_is_whole, LogRows& rows);
  bool follow_process(CsvEntry& e, Timestamp time, bool has_bytes, LogRows& rows);
  void advance_process_clock(Timestamp time, LogRows& rows);
  [[nodiscard]] std::string_view field(int column) const { return fields_[static_cast<std::size_t>(column)]; }

  ColumnPlan plan_;
  StampReader stamp_;
  std::uint64_t default_unit_ = kBytesPerMiB;
  std::uint64_t used_unit_ = 0, free_unit_ = 0, total_unit_ = 0;
  bool unit_unknown_ = false;
  std::uint64_t most_free_ = 0;  ///< 0: the log has more than free memory
  bool comma_ = false;           ///< decimal commas may occur
  bool columns_change_ = false;  ///< a later header had other columns

  std::size_t needed_ = 0;  ///< fields that must be cut from a line
  std::vector<int> key_columns_;
  std::vector<std::string_view> fields_;

  std::vector<std::unique_ptr<CsvEntry>> entries_;
  std::unordered_map<std::string, std::size_t> entry_of_;
  std::size_t last_ = 0;  ///< entry of the previous row, which the next one usually follows
  std::string key_buffer_;

  std::size_t cut_ = 0;            ///< number of fields in the line that cut_oddly() cut last
  std::string quoted_;             ///< text so far of a record with a line break in a quoted field
  std::uint64_t quotes_ = 0;       ///< quotation marks in quoted_
  std::uint64_t quoted_line_ = 0;  ///< line in which quoted_ begins
  bool spans_lines_ = false;       ///< some record had a line break in a quoted field
  ClockLines clock_;
  std::optional<Timestamp> line_time_;  ///< the time on the last line that had one instead of a row
  EpochCounter counter_;                ///< used if the steps start again in each epoch
  bool header_seen_ = false;
  std::uint64_t fit_ = 0, unfit_ = 0;   ///< lines that are rows; other lines before the last row
  std::uint64_t unfit_rows_since_ = 0;  ///< those of unfit_since_ that look like rows
  std::uint64_t unfit_since_ = 0;       ///< other lines after the last row
  std::string first_unfit_;
  OtherRows other_rows_;  ///< after the last row that fits
  bool ended_ = false;

  std::vector<GpuMemory> wide_;
  void hold_row(Timestamp time, const GpuMemory& memory, LogRows& rows);
  void end_reading(LogRows& rows, bool at_end = false);

  std::size_t position_ = 0;  ///< position of the row being read
  PositionedRows<HeldRow> held_;
  bool begins_reading_ = false;  ///< a line with a time, or a header, precedes the row
  std::uint64_t round_ = 0;
  std::size_t value_length_ = 0;  ///< length of the last used field, to detect a truncated one
  std::string stamp_buffer_;

  double process_clock_s_ = 0;  ///< time during which the log was being written
  double process_period_s_ = 0;
  Timestamp process_time_ = LogRows::kNever;
  double checked_s_ = 0;
};

/// Finds the header of a CSV log in its first lines, or infers the columns, and decides units and clock. `strict`: the
/// log comes from nvidia-smi, in which numbers without a unit are MiB. Errors say what is missing.
Result<std::unique_ptr<LogParser>> make_csv_parser(const LogHead& head, bool strict);

/// Columns of the first header among the first lines of `head`; nullopt if there is none.
std::optional<ColumnPlan> find_header(std::string_view head);
/// Whether the first line of `head` is the header `plan` with a time, and nearly all others are its rows. Text with
/// tabs has no such lines, even if a third of them seem to contain memory figures.
bool is_all_rows(std::string_view head, const ColumnPlan& plan);

/// Whether the first line of `head` has titles and the next ones have as many fields: a table of any kind.
bool has_titles(std::string_view head);
/// Whether the rows of a head without a header have a column of amounts of memory, with their units.
bool has_column_of_amounts(std::string_view head);

/// Columns inferred from the values of a head without a header.
Result<ColumnPlan> infer_from_head(std::string_view head, std::vector<std::string>& assumptions);

/// Makes no samples: the log of a card that does not report its memory adds nothing to a list of processes, which has
/// figures (recording.cpp); neither does a list in which no process was visible.
class RowsWithoutFigures final : public LogParser {
 public:
  explicit RowsWithoutFigures(std::string why, bool processes_only = false)
      : why_(std::move(why)), processes_only_(processes_only) {}

  std::uint64_t parse(std::string_view lines, std::uint64_t first_line, bool, LogRows&) override {
    return first_line + static_cast<std::uint64_t>(std::count(lines.begin(), lines.end(), '\n'));
  }
  [[nodiscard]] bool clock_is_relative() const override { return false; }
  [[nodiscard]] bool processes_only() const override { return processes_only_; }
  /// The reason, with advice on what to record instead.
  [[nodiscard]] const std::string& why() const { return why_; }

 private:
  std::string why_;
  bool processes_only_;
};

}  // namespace vramtrack
