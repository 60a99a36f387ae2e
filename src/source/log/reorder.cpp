#include "source/log/reorder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "source/log/recognise.hpp"
#include "source/log/text.hpp"

namespace vramtrack {
namespace {

/// A record is held in memory; no dump from a real machine is larger.
constexpr std::size_t kMostRecordBytes = 16 * kBytesPerMiB;

/// A log that its own parser reads only for its times.
struct TimesReader {
  Catalog catalog;
  DeviceRoster roster;
  std::unique_ptr<LogParser> parser;
  LogRows rows;

  TimesReader(const PlannedFile& file, std::string_view head, LogRows::Observer observer)
      : rows(catalog, roster, file.shown, std::nullopt) {
    rows.observe(std::move(observer));
    auto made = file.detected.format->make({head, file.shown, &file.options, &file.zone});
    if (made) parser = std::move(*made);
  }
};

std::string during(const PlannedFile& file, const Error& error) {
  return error.message.starts_with(file.shown) ? error.message : file.shown + ": " + error.message;
}

/// Passes every time of the log to `observer`. `done` gets the parser, which has read the whole log by then.
Status read_times(const PlannedFile& file, LogRows::Observer observer,
                  const std::function<void(const LogParser&, const DeviceRoster&)>& done) {
  auto lines = open_lines(file);
  if (!lines) return fail(std::move(lines.error()));
  TimesReader reader(file, file.head(**lines), std::move(observer));
  if (reader.parser == nullptr) return fail("the log changed while it was being read");
  while (true) {
    auto stretch = (*lines)->next(reader.rows);
    if (!stretch) return fail(std::move(stretch.error()));
    if (stretch->text.empty()) break;
    const std::uint64_t line = reader.parser->parse(stretch->text, stretch->first_line, stretch->complete, reader.rows);
    if (stretch->complete) (*lines)->set_line(line);
    reader.rows.events.clear();
    if (!reader.rows.refusal().empty()) return fail(reader.rows.refusal());
  }
  reader.parser->finish(reader.rows);
  done(*reader.parser, reader.roster);
  return {};
}

/// Decides what the first pass leaves open: whether the order of the rows or a clock explains the backward steps.
Result<LogOrder> judge_steps(const PlannedFile& file, const OrderSurvey& survey) {
  StretchSurvey stretches(survey.period(), !file.detected.relative);
  const auto see = [&](std::uint64_t, Timestamp time, SeriesId series) {
    if (series != LogRows::kNoSeries) stretches.see(time, series);
  };
  if (auto ok = read_times(file, see, [](const LogParser&, const DeviceRoster&) {}); !ok)
    return fail(std::move(ok.error()));
  const LogOrder order = stretches.order();
  if (order == LogOrder::unclear)
    return fail(fmt::format(
        "{}:{}: time goes back, here or further on, and neither a clock that was set nor the order of the rows "
        "explains it; sort the log by its time column if it is one recording, or analyse its parts one by one",
        file.shown, survey.line()));
  return order;
}

/// Splits chunks of lines into records.
class RecordCutter {
 public:
  using Take = std::function<Status(const LogRecord& record)>;
  RecordCutter(const DetectedLog& detected, Take take)
      : format_(*detected.format), has_long_lines_(detected.has_long_lines), take_(std::move(take)) {}

  /// Returns the number of the line after the last.
  Result<std::uint64_t> cut(std::string_view lines, std::uint64_t line, bool complete) {
    std::string whole;
    if (has_long_lines_) {
      // Incomplete text is part of a line; the rest follows.
      part_ += lines;
      if (part_.size() > kMostRecordBytes + lines.size()) return fail(too_long(line));
      if (!complete) return line;
      whole.swap(part_);
      lines = whole;
    }
    while (!lines.empty()) {
      const std::size_t newline = lines.find('\n');
      const std::size_t length = newline == std::string_view::npos ? lines.size() : newline + 1;
      std::string_view rest = lines.substr(0, length);
      const std::string_view text = logtext::take_line(rest);
      if (text_.empty() || format_.begins_record(text, before_)) {
        if (auto ok = flush(true); !ok) return fail(std::move(ok.error()));
        line_ = line;
      }
      text_ += lines.substr(0, length);
      if (text_.size() > kMostRecordBytes) return fail(too_long(line_));
      if (!logtext::trim(text).empty()) before_ = text;
      lines.remove_prefix(length);
      ++line;
    }
    if (!complete)
      if (auto ok = flush(false); !ok) return fail(std::move(ok.error()));
    return line;
  }
  /// Processes the remaining text at the end of the log.
  Status finish(std::uint64_t line) {
    std::string last;
    last.swap(part_);
    has_long_lines_ = false;
    if (!last.empty()) {
      last += '\n';  // another record may follow it
      if (auto ok = cut(last, line, false); !ok) return fail(std::move(ok.error()));
    }
    return flush(true);
  }

 private:
  static std::string too_long(std::uint64_t line) {
    return fmt::format("line {}: a record of more than 16 MiB cannot be put in order", line);
  }
  Status flush(bool complete) {
    if (text_.empty()) return {};
    Status ok = take_({0, line_, complete, text_});
    text_.clear();
    return ok;
  }

  const LogFormatInfo& format_;
  bool has_long_lines_ = false;
  Take take_;
  std::string part_;  ///< start of a line whose end has not arrived yet
  std::string text_;
  std::string before_;
  std::uint64_t line_ = 1;
};

/// Sets the key of each record to the time of its first row. Records without a time (headers, comments) stay with the
/// record that follows them.
class TimeKeys {
 public:
  TimeKeys(const PlannedFile& file, std::string_view head, bool is_shuffled, RecordSorter& sorter)
      : reader_(file, head,
                [this](std::uint64_t, Timestamp time, SeriesId series) {
                  if (!time_ || series != LogRows::kNoSeries) see(time, series);
                }),
        is_shuffled_(is_shuffled),
        sorter_(sorter) {}

  Status take(const LogRecord& record) {
    time_.reset();
    has_series_ = false;
    if (reader_.parser != nullptr) {
      reader_.parser->parse(record.text, record.line, record.complete, reader_.rows);
      reader_.parser->finish(reader_.rows);  // no record can follow
    }
    reader_.rows.events.clear();
    if (pending_.empty()) line_ = record.line;
    pending_ += record.text;
    return time_ ? add(time_->time_since_epoch().count(), record.complete) : Status{};
  }
  /// Text after the last row stays at the end.
  Status finish() { return pending_.empty() ? Status{} : add(INT64_MAX, true); }

 private:
  Status add(std::int64_t key, bool complete) {
    Status ok = sorter_.add({key, line_, complete, pending_});
    pending_.clear();
    return ok;
  }

  /// Jitter within a series is left to the row reader, as in a log that is in order.
  void see(Timestamp time, SeriesId series) {
    if (series != LogRows::kNoSeries && !is_shuffled_) {
      if (index_of(series) >= last_.size()) last_.resize(index_of(series) + 1, LogRows::kNever);
      Timestamp& last = last_[index_of(series)];
      if (time < last && last - time <= kClockJitter) time = last;
      last = time;
    }
    if (!time_ || !has_series_) time_ = time;
    has_series_ |= series != LogRows::kNoSeries;
  }

  std::optional<Timestamp> time_;
  bool has_series_ = false;
  std::vector<Timestamp> last_;  ///< per series
  TimesReader reader_;
  bool is_shuffled_;
  RecordSorter& sorter_;
  std::string pending_;
  std::uint64_t line_ = 1;
};

}  // namespace

Timestamp begin_of_day_times(const OrderSurvey& survey, LogOrder order) {
  // When a log is read from its end, midnights are counted from there; the day of its rows in this pass is irrelevant.
  if (order != LogOrder::newest_first) return survey.earliest();
  return Timestamp{survey.last().time_since_epoch() % std::chrono::days{1}};
}

Result<LogTimes> survey_log(const PlannedFile& file) {
  LogTimes times;
  OrderSurvey survey;
  bool wraps = false;
  std::string reason;
  std::optional<std::string> misfit;
  const auto see = [&](std::uint64_t line, Timestamp time, SeriesId series) {
    if (series != LogRows::kNoSeries) survey.see(line, time, series);
  };
  auto read = read_times(file, see, [&](const LogParser& parser, const DeviceRoster& roster) {
    wraps = parser.clock_wraps();
    misfit = parser.misfit();
    reason = parser.needs_file_order();
    for (std::size_t i = 0; i < roster.size(); ++i) times.devices.push_back(roster.device(i));
  });
  if (!read) return fail(during(file, read.error()));
  if (misfit) return fail(fmt::format("{}: {}", file.shown, *misfit));
  times.has_samples = survey.samples() > 0;
  if (!times.has_samples) return times;
  times.earliest = survey.earliest();
  times.latest = survey.latest();
  times.line = survey.line();
  if (!survey.steps_back()) {
    if (survey.in_blocks()) times.order = LogOrder::by_time;
  } else if (survey.newest_first(wraps)) {
    times.order = survey.in_blocks_from_end() ? LogOrder::by_time : LogOrder::newest_first;
  } else {
    auto order = judge_steps(file, survey);
    if (!order) return fail(during(file, order.error()));
    times.order = *order;
  }
  times.is_shuffled = survey.is_shuffled();
  if (wraps) times.begins_at = begin_of_day_times(survey, times.order);
  if (times.order == LogOrder::as_written) return times;
  // Without dates, only the order of the file shows which rows are before a midnight and which after it.
  if (times.order == LogOrder::by_time && wraps && times.latest - times.earliest > std::chrono::hours{12})
    reason = "its times have no dates";
  if (file.detected.format->begins_record == nullptr)
    reason = fmt::format("it is not known where one reading of a {} log ends and the next begins",
                         file.detected.format->name);
  if (reason.empty()) return times;
  return fail(
      fmt::format("{}:{}: the rows are not in order of time, and they cannot be sorted: {}; write the log in order "
                  "of time",
                  file.shown, std::max<std::uint64_t>(times.line, 1), reason));
}

OrderSurvey survey_head(const PlannedFile& file, std::string_view head) {
  OrderSurvey survey;
  TimesReader reader(file, head, [&](std::uint64_t line, Timestamp time, SeriesId series) {
    if (series != LogRows::kNoSeries) survey.see(line, time, series);
  });
  if (reader.parser != nullptr) reader.parser->parse(head, 1, false, reader.rows);
  return survey;
}

Result<std::unique_ptr<RecordSorter>> sort_log(const PlannedFile& file, const LogTimes& times, LogRows& rows) {
  auto lines = open_lines(file);
  if (!lines) return fail(std::move(lines.error()));
  auto sorter = std::make_unique<RecordSorter>();
  std::optional<TimeKeys> by_time;
  if (times.order == LogOrder::by_time) by_time.emplace(file, file.head(**lines), times.is_shuffled, *sorter);
  RecordCutter cutter(file.detected, [&](const LogRecord& record) -> Status {
    if (by_time) return by_time->take(record);
    LogRecord last = record;
    last.key = -static_cast<std::int64_t>(sorter->size());
    return sorter->add(last);
  });
  std::uint64_t last_line = 1;
  while (true) {
    auto stretch = (*lines)->next(rows);
    if (!stretch) return fail(during(file, stretch.error()));
    last_line = stretch->first_line;
    if (stretch->text.empty()) break;
    const auto line = cutter.cut(stretch->text, stretch->first_line, stretch->complete);
    if (!line) return fail(during(file, line.error()));
    if (stretch->complete) (*lines)->set_line(*line);
  }
  if (auto ok = cutter.finish(last_line); !ok) return fail(during(file, ok.error()));
  if (by_time)
    if (auto ok = by_time->finish(); !ok) return fail(during(file, ok.error()));
  if (!(*lines)->bytes().warning().empty()) rows.warn((*lines)->bytes().warning());
  if (sorter->size() == 1)
    return fail(
        fmt::format("{}: the rows are not in order of time, and it is not known where one reading ends and the next "
                    "begins; write one reading per line",
                    file.shown));
  return sorter;
}

}  // namespace vramtrack
