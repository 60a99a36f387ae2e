#include "source/log/log_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <iterator>

#include "core/order.hpp"
#include "source/log/recognise.hpp"
#include "source/log/run_file.hpp"

namespace vramtrack {
namespace {

/// Records of a sorted log are read in batches of this size.
constexpr std::size_t kRecordsAtOnce = 4096;
/// Samples and events that may be held for earlier rows.
constexpr std::size_t kMostWaiting = 1U << 17;
/// A UTF-16 character may need four bytes; never ask TextInput for less.
constexpr std::size_t kRoom = 8;

bool earlier(const Sample& a, const Sample& b) {
  return a.time < b.time;
}
bool earlier_event(const Event& a, const Event& b) {
  return a.time < b.time;
}

/// Moves `rows` to `waiting`, which stays in order.
template <class T>
void merge_in(std::vector<T>& waiting, std::vector<T>& rows, bool (*is_earlier)(const T&, const T&)) {
  std::stable_sort(rows.begin(), rows.end(), is_earlier);
  const auto old = static_cast<std::ptrdiff_t>(waiting.size());
  waiting.insert(waiting.end(), std::make_move_iterator(rows.begin()), std::make_move_iterator(rows.end()));
  rows.clear();
  std::inplace_merge(waiting.begin(), waiting.begin() + old, waiting.end(), is_earlier);
}

}  // namespace

Result<std::unique_ptr<LineInput>> LineInput::open(const std::string& path) {
  auto input = TextInput::open(path);
  if (!input) return fail(std::move(input.error()));
  auto lines = std::make_unique<LineInput>();
  lines->input_ = std::move(*input);
  lines->buffer_.resize(kHeadBytes);
  while (lines->end_ + kRoom <= lines->buffer_.size() && !lines->done_)
    if (auto ok = lines->fill(); !ok) return fail(std::move(ok.error()));
  return lines;
}

Status LineInput::fill() {
  if (prefix_) return fill_without_prefix();
  auto n = input_->read(buffer_.data() + end_, buffer_.size() - end_);
  if (!n) return fail(std::move(n.error()));
  end_ += *n;
  done_ = *n == 0;
  return {};
}

Status LineInput::take_off(LinePrefix prefix) {
  prefix_ = std::move(prefix);
  const std::string_view all(buffer_.data() + begin_, end_ - begin_);
  const std::size_t whole = done_ ? all.size() : all.rfind('\n') + 1;  // 0 if there is none
  begun_ = all.substr(whole);
  const std::string lines = prefix_->strip_lines(all.substr(0, whole));
  std::copy(lines.begin(), lines.end(), buffer_.begin());
  begin_ = 0;
  end_ = lines.size();
  return {};
}

Status LineInput::fill_without_prefix() {
  const std::size_t before = begun_.size();
  begun_.resize(before + kHeadBytes / 4);
  auto n = input_->read(begun_.data() + before, begun_.size() - before);
  if (!n) return fail(std::move(n.error()));
  begun_.resize(before + *n);
  done_ = *n == 0;
  const std::size_t newline = begun_.rfind('\n');
  const bool is_long = begun_.size() > kLongestLine;
  const std::size_t whole = done_ || is_long ? begun_.size() : newline == std::string::npos ? 0 : newline + 1;
  const std::string lines = prefix_->strip_lines(std::string_view(begun_).substr(0, whole));
  begun_.erase(0, whole);
  buffer_.resize(std::max(buffer_.size(), end_ + lines.size()));
  std::copy(lines.begin(), lines.end(), buffer_.begin() + static_cast<std::ptrdiff_t>(end_));
  end_ += lines.size();
  return {};
}

std::string_view LineInput::head() {
  std::string_view all(buffer_.data() + begin_, end_ - begin_);
  if (const std::size_t newline = all.rfind('\n'); !done_ && newline != std::string_view::npos)
    all = all.substr(0, newline + 1);
  if (all.find('\0') == std::string_view::npos) return all;
  head_.clear();
  std::unique_copy(all.begin(), all.end(), std::back_inserter(head_),
                   [](char a, char b) { return a == '\0' && b == '\0'; });
  std::replace(head_.begin(), head_.end(), '\0', '\n');
  return head_;
}

Result<LineInput::Stretch> LineInput::next(LogRows& rows) {
  while (true) {
    const char* const start = buffer_.data() + begin_;
    std::string_view available(start, end_ - begin_);
    if (dropping_) {
      const std::size_t newline = available.find('\n');
      if (newline == std::string_view::npos && !done_) {
        begin_ = end_ = 0;
        if (auto ok = fill(); !ok) return fail(std::move(ok.error()));
        continue;
      }
      dropping_ = false;
      ++line_;
      begin_ = newline == std::string_view::npos ? end_ : begin_ + newline + 1;
      continue;
    }
    const std::size_t newline = available.rfind('\n');
    if (newline != std::string_view::npos || (done_ && !available.empty())) {
      Stretch stretch;
      stretch.text = newline != std::string_view::npos ? available.substr(0, newline + 1) : available;
      stretch.complete = newline != std::string_view::npos;
      stretch.first_line = line_;
      const std::size_t nul = stretch.text.find('\0');
      if (nul == 0) {
        // The NULs are at the start of a line; the text after them is a separate line.
        const std::size_t after = std::min(available.find_first_not_of('\0'), stretch.text.size());
        rows.skip(line_, fmt::format("{} NUL bytes (the writer crashed?)", after));
        begin_ += after;
        // The text up to the newline still belongs to this line number.
        continue;
      }
      if (nul != std::string_view::npos) {
        // Pass on the lines before the one with NULs first, then that line up to the NULs.
        const std::size_t before = stretch.text.rfind('\n', nul);
        stretch.text =
            before != std::string_view::npos ? stretch.text.substr(0, before + 1) : stretch.text.substr(0, nul);
        stretch.complete = before != std::string_view::npos;
      }
      begin_ += stretch.text.size();
      return stretch;
    }
    if (done_) return Stretch{{}, line_, true};
    if (available.size() >= kLongestLine && cuts_long_lines_) {
      const std::size_t nul = std::min(available.find('\0'), available.size());
      const std::size_t after = std::min(available.find_first_not_of('\0', nul), available.size());
      if (nul < after) rows.skip(line_, fmt::format("{} NUL bytes (the writer crashed?)", after - nul));
      begin_ += after;
      if (nul > 0) return Stretch{available.substr(0, nul), line_, false};
      continue;
    }
    if (available.size() >= kLongestLine) {
      rows.skip(line_, "a line of more than 1 MiB");
      dropping_ = true;
      begin_ = end_ = 0;
      continue;
    }
    if (begin_ > 0) {
      std::memmove(buffer_.data(), start, available.size());
      end_ -= begin_;
      begin_ = 0;
    }
    if (end_ + kRoom > buffer_.size()) buffer_.resize(buffer_.size() * 2);
    if (auto ok = fill(); !ok) return fail(std::move(ok.error()));
  }
}

Status LineInput::copy_to(Spool& spool) {
  do {
    if (auto ok = spool.append({buffer_.data() + begin_, end_ - begin_}); !ok) return ok;
    begin_ = end_ = 0;
    if (!done_)
      if (auto ok = fill(); !ok) return ok;
  } while (end_ > 0);
  return {};
}

LogFile::LogFile(std::vector<std::unique_ptr<PlannedFile>> parts, std::unique_ptr<LogRows> rows)
    : parts_(std::move(parts)), rows_(std::move(rows)) {}
LogFile::~LogFile() = default;

Result<std::unique_ptr<LogFile>> LogFile::open(std::vector<std::unique_ptr<PlannedFile>> parts,
                                               std::unique_ptr<LogRows> rows) {
  std::unique_ptr<LogFile> file(new LogFile(std::move(parts), std::move(rows)));
  if (auto ok = file->begin_part(); !ok) return fail(std::move(ok.error()));
  return file;
}

Status LogFile::begin_part() {
  PlannedFile& part = *parts_[part_];
  if (part_ > 0) rows_->continue_in(part.shown);
  hold_ = std::max(hold_, part.detected.disorder);
  auto text = open_text(part, *rows_);
  if (!text) return fail(std::move(text.error()));
  text_ = std::make_unique<LogText>(std::move(*text));
  return {};
}

/// Reads the next lines of a log in written order; returns false at its end.
Result<bool> LogFile::read_lines() {
  auto stretch = text_->lines->next(*rows_);
  if (!stretch) return fail(std::move(stretch.error()));
  if (stretch->text.empty()) return false;
  const std::uint64_t line = text_->parser->parse(stretch->text, stretch->first_line, stretch->complete, *rows_);
  if (stretch->complete) text_->lines->set_line(line);
  return true;
}

/// Reads the next records of a log that was sorted; returns false at its end.
Result<bool> LogFile::read_records() {
  LogRecord record;
  for (std::size_t i = 0; i < kRecordsAtOnce; ++i) {
    auto more = text_->records->next(record);
    if (!more || !*more) return more;
    text_->parser->parse(record.text, record.line, record.complete, *rows_);
  }
  return true;
}

Status LogFile::read_some() {
  const auto more = text_->records != nullptr ? read_records() : read_lines();
  if (!more) return fail(more.error());
  if (!*more) {
    text_->parser->finish(*rows_);
    rows_->judge_order();
    if (!parts_[part_]->logs.empty()) read_end(parts_[part_]->logs, *rows_);
    if (const auto wrong = text_->parser->misfit())
      return fail(Error{fmt::format("{}: {}", rows_->file(), *wrong), true});
    if (text_->lines != nullptr && !text_->lines->bytes().warning().empty())
      rows_->warn(text_->lines->bytes().warning());
    ended_ = ++part_ == parts_.size();
    if (ended_) rows_->warn_at_end();
    if (!ended_)
      if (auto ok = begin_part(); !ok) return ok;
  }
  if (!rows_->refusal().empty()) return fail(Error{rows_->refusal(), true});
  return {};
}

Status LogFile::fill() {
  samples.erase(samples.begin(), samples.begin() + static_cast<std::ptrdiff_t>(taken_samples));
  events.erase(events.begin(), events.begin() + static_cast<std::ptrdiff_t>(taken_events));
  taken_samples = taken_events = 0;
  while (samples.empty() && !ended_) {
    if (auto ok = read_some(); !ok) return ok;
    order();
  }
  return {};
}

/// Moves the rows in final order from the parser's rows to `samples`.
void LogFile::order() {
  LogRows& rows = *rows_;
  if (hold_ == Duration{} && rows.disorder() == Duration{} && waiting_.empty()) {
    // Usually everything is already in order; events may be slightly earlier or later than the rows around them.
    if (!std::is_sorted(rows.events.begin(), rows.events.end(), earlier_event))
      vramtrack::order(rows.events, earlier_event);
    if (samples.empty())
      samples.swap(rows.samples);
    else
      samples.insert(samples.end(), rows.samples.begin(), rows.samples.end());
    rows.samples.clear();
    events.insert(events.end(), std::make_move_iterator(rows.events.begin()),
                  std::make_move_iterator(rows.events.end()));
    rows.events.clear();
    complete_until_ = rows.newest();
    return;
  }
  merge_in(waiting_, rows.samples, earlier);
  merge_in(waiting_events_, rows.events, earlier_event);
  if (rows.series_follow_one_another()) {
    rows.warn(
        "the log lists one series after another: its series are analysed one after another, too; sort it by its time "
        "column to analyse them together");
  } else {
    hold_ = std::max(hold_, rows.disorder());
  }
  Timestamp until = ended_ ? Timestamp::max() : rows.newest() - hold_;
  // Rows arrive faster than from any GPU log: the older half is no longer held for late rows.
  if (waiting_.size() > kMostWaiting) until = std::max(until, waiting_[waiting_.size() / 2].time);
  if (waiting_events_.size() > kMostWaiting) until = std::max(until, waiting_events_[kMostWaiting / 2].time);
  const auto cut = std::upper_bound(waiting_.begin(), waiting_.end(), until,
                                    [](Timestamp t, const Sample& s) { return t < s.time; });
  for (auto it = waiting_.begin(); it != cut; ++it) {
    // A sample beyond the hold, if only slightly late, gets the time up to which samples were delivered.
    if (it->time < complete_until_ && complete_until_ - it->time <= std::chrono::seconds{60})
      it->time = complete_until_;
    samples.push_back(*it);
  }
  waiting_.erase(waiting_.begin(), cut);
  const auto event_cut = std::upper_bound(waiting_events_.begin(), waiting_events_.end(), until,
                                          [](Timestamp t, const Event& e) { return t < e.time; });
  events.insert(events.end(), std::make_move_iterator(waiting_events_.begin()), std::make_move_iterator(event_cut));
  waiting_events_.erase(waiting_events_.begin(), event_cut);
  complete_until_ = std::max(complete_until_, std::min(until, rows.newest()));
}

}  // namespace vramtrack
