// Lines that are not plain rows: quoted line breaks, repeated headers, dates, and lines that do not fit. Also rows of a
// table with one column per series: see find_wide().
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/option.hpp"
#include "source/log/cells.hpp"
#include "source/log/csv_rows.hpp"
#include "source/log/messages.hpp"

namespace vramtrack {
namespace {

using logtext::excerpt;
using logtext::trim;

/// A record with quoted line breaks is at most this long.
constexpr std::size_t kLongestRecord = 64 * kBytesPerKiB;

/// Whether it is a line of dashes, or the time of a loop iteration although the rows have their own times.
bool separates_readings(std::string_view line) {
  return !clock_lines(line).empty() || std::none_of(line.begin(), line.end(), [](char c) {
    return logtext::is_digit(c) || logtext::is_ascii_letter(c);
  });
}

}  // namespace

void CsvRows::finish(LogRows& rows) {
  if (!quoted_.empty()) unquote(rows);
  end_reading(rows, true);
  ended_ = true;
}

/// Appends a line to the record with line breaks in a quoted field.
void CsvRows::go_on_in_quotes(std::string_view text, std::uint64_t line, bool whole, LogRows& rows) {
  quoted_ += '\n';
  quoted_ += text;
  if (quoted_.size() > kLongestRecord) return unquote(rows);
  const auto more = std::count(text.begin(), text.end(), '"');
  quotes_ += static_cast<std::uint64_t>(more);
  // A complete record has an even number of quotes, so most lines need no scan of the record from its beginning.
  if (more == 0 || quotes_ % 2 != 0 || ends_in_quotes(quoted_, plan_.delimiter)) return;
  const std::string record = std::exchange(quoted_, {});
  spans_lines_ = true;
  rows.line = quoted_line_;
  read_line(record, quoted_line_, whole, rows);
  rows.line = line;
}

/// Handles a quote that was never closed: its line is malformed, and the lines after it are read separately.
void CsvRows::unquote(LogRows& rows) {
  const std::string text = std::exchange(quoted_, {});
  std::string_view rest = text;
  std::uint64_t number = quoted_line_;
  for (; !rest.empty(); ++number) {
    const std::string_view line = logtext::take_line(rest);
    rows.line = number;
    read_line(line, number, true, rows);
  }
}

/// The column in a later header with the title of the current clock, which was found by its values; -1 if none.
int CsvRows::column_titled_as_clock(const ColumnPlan& later) const {
  if (!plan_.has_header || plan_.time < 0) return -1;
  std::vector<std::string_view> titles;
  split_fields(plan_.header, plan_.delimiter, titles);
  const std::string_view clock = titles[static_cast<std::size_t>(plan_.time)];
  std::vector<std::string_view> later_titles;
  split_fields(later.header, later.delimiter, later_titles);
  const auto found = std::find(later_titles.begin(), later_titles.end(), clock);
  return found == later_titles.end() ? -1 : static_cast<int>(found - later_titles.begin());
}

void CsvRows::read_line(std::string_view line, std::uint64_t number, bool complete, LogRows& rows) {
  if (trim(line).empty() || trim(line).front() == '#' || line.starts_with("sep=")) return;
  if (plan_.delimiter == '|' && is_drawn(line)) return;
  const Cut result = cut_oddly(line);
  const char* reason = nullptr;
  if (result == Cut::done) {
    // A last line without a newline may be truncated anywhere: it counts only if it has all its fields.
    const bool used_is_last = plan_.used >= 0 && static_cast<std::size_t>(plan_.used) + 1 == plan_.count;
    const bool last_is_whole = complete || !used_is_last || field(plan_.used).size() >= value_length_;
    reason = read_row(rows, last_is_whole);
    if (reason == nullptr) return fits();
  }
  const bool is_message = reports_out_of_memory(line) || reports_lost_gpu(line);
  if (is_message && held_.is_complete()) end_reading(rows);  // the message comes after the rows that were read
  if (reports_out_of_memory(line)) return rows.out_of_memory(line);
  if (reports_lost_gpu(line)) return rows.device_lost(line);
  if (plan_.clock_lines && read_clock_line(line)) return;
  // Not a row: a repeated header (possibly with other columns), or a malformed line.
  if (looks_like_header(line, plan_.delimiter)) {
    if (auto plan = plan_header(line, plan_.delimiter)) {
      if (plan->time < 0 || plan->time_title.step)
        if (const int clock = column_titled_as_clock(*plan); clock >= 0) plan->time = clock;
      const bool same_clock = (plan->time >= 0) == (stamp_.kind() != StampReader::Kind::none) || plan_.clock_lines;
      header_seen_ = true;
      begins_reading_ = plan_.time < 0;
      if (same_clock) {
        plan->clock_lines = plan_.clock_lines;
        if (plan_.has_header && plan->header != plan_.header && plan->header != plan_.written_header) {
          columns_change_ = true;
          adopt(std::move(*plan));
        }
        fields_.resize(std::max(fields_.size(), needed_));
        return;
      }
    }
  }
  if (reports_end(line)) return rows.program_ended(line);
  if (result == Cut::short_line && cut_ == 1 && complete && separates_readings(line)) return;
  std::string why;
  if (result == Cut::done)
    why = fmt::format("{} in '{}'", reason, excerpt(line));
  else if (!complete)
    why = fmt::format("truncated last line: '{}'", excerpt(line));
  else
    why = fmt::format("not a row: '{}' has {} fields, and {} has {}", excerpt(line), cut_,
                      plan_.has_header ? "the header" : "the first rows' layout", plan_.count);
  if (complete) does_not_fit(line, number, why);
  rows.skip(number, why);
}

/// Counts a line that is not a row, except for a preamble and the tool's own messages instead of readings.
void CsvRows::does_not_fit(std::string_view line, std::uint64_t number, const std::string& why) {
  if (plan_.has_header && !header_seen_ && fit_ == 0) return;
  for (const std::string_view message : {"NVIDIA-SMI has failed", "Unable to determine", "No devices", "Failed to ini",
                                         "No running", "Unable to query", "Error"})
    if (line.find(message) != std::string_view::npos) return;
  if (unfit_ + unfit_since_ == 0) first_unfit_ = fmt::format("line {}: {}", number, why);
  ++unfit_since_;
  const bool row_like =
      line.find(plan_.delimiter) != std::string_view::npos && std::any_of(line.begin(), line.end(), logtext::is_digit);
  if (!row_like) return;
  ++unfit_rows_since_;
  if (cut_ != other_rows_.fields) other_rows_ = {cut_, 0, fmt::format("line {}: {}", number, why)};
  ++other_rows_.rows;
}

std::optional<std::string> CsvRows::misfit() const {
  constexpr std::uint64_t kFew = 4;
  // More rows of another layout at the end of the log are never ignored, however much was read before.
  constexpr std::uint64_t kFewAtTheEnd = 8;
  if (ended_ && other_rows_.rows > kFewAtTheEnd && other_rows_.fields != plan_.count)
    return refuse_rows(other_rows_.rows, other_rows_.first);
  // Text after the last row that fits (from a crash or another program) does not count against the layout; rows do.
  const std::uint64_t unfit = unfit_ + (fit_ == 0 ? unfit_since_ : unfit_rows_since_);
  if (unfit == 0 || (fit_ > 0 && (unfit < kFew || unfit * 2 < fit_))) return std::nullopt;
  return refuse_rows(unfit, first_unfit_);
}

std::string CsvRows::refuse_rows(std::uint64_t rows, const std::string& first) const {
  return fmt::format(
      "{} of the lines are not rows of the layout that was recognised, {} are ({}); {}; keep one kind of row in the "
      "file, correct the header so that it names every column, or describe a line with {}",
      rows, fit_, describe(plan_), first, name_of(Option::line_pattern));
}

/// "Thu Oct  9 23:47:45 2025" on its own line.
bool CsvRows::read_clock_line(std::string_view line) {
  Timestamp time;
  if (!stamp_.read(clock_.take(line), time)) return false;
  line_time_ = time;
  begins_reading_ = true;
  return true;
}

/// A row with a column for each GPU. A missing value affects only its GPU; an unreadable one makes the row malformed.
const char* CsvRows::read_wide_row(Timestamp time, bool last_is_whole, LogRows& rows) {
  if (!last_is_whole) return "truncated last line";
  wide_.assign(plan_.wide.size(), {});
  for (std::size_t i = 0; i < plan_.wide.size(); ++i) {
    std::string_view text = field(plan_.wide[i].used);
    if (const int part = plan_.wide[i].part; part >= 0) {
      const auto parts = parts_of_list(text);
      if (parts.empty() && !text.empty()) return "no list of amounts of used memory";
      if (parts.size() > plan_.wide.size()) return "a longer list than in the first rows";
      text = static_cast<std::size_t>(part) < parts.size() ? parts[static_cast<std::size_t>(part)] : std::string_view{};
    }
    if (read_used(text, used_unit_, wide_[i]) == logtext::Amount::bad)
      return plan_.percent ? "no readable percentage" : "no readable amount of used memory";
  }
  if (plan_.time < 0 && !plan_.clock_lines) time = stamp_.at_round(round_++);
  if (entries_.empty())
    for (const ColumnPlan::Wide& wide : plan_.wide) {
      LogDevice device;
      if (wide.label.starts_with("GPU-"))
        device.uuid = wide.label;
      else if (!wide.label.empty())
        device.text = wide.label + (wide.gpu >= 0 ? "/" + std::to_string(wide.gpu) : "");
      if (wide.gpu >= 0) device.index = wide.gpu;
      auto e = std::make_unique<CsvEntry>();
      e->device = rows.device(device);
      begin_series(*e, wide.further, 0, rows);
      entries_.push_back(std::move(e));
    }
  for (std::size_t i = 0; i < plan_.wide.size(); ++i) {
    CsvEntry& e = *entries_[i];
    GpuMemory& memory = wide_[i];
    if (const char* const why = read_total(e, plan_.wide[i].total, memory, rows)) return why;
    if (const char* const why = rows.complete(time, e.device, memory)) return why;
    if (memory.used) rows.add(time, e.series, *memory.used);
    if (!e.further.empty()) add_further(time, e, plan_.wide[i].further, rows);
  }
  return nullptr;
}

}  // namespace vramtrack
