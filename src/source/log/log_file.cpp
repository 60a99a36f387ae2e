#include "source/log/log_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace vramtrack {
namespace {

/// A log that lists series one after another is sorted in memory; 24 bytes a sample make this 768 MiB.
constexpr std::size_t kMostSorted = 32 * 1024 * 1024;
/// A character of UTF-16 may need four bytes: TextInput must never be asked for less.
constexpr std::size_t kRoom = 4;

bool earlier(const Sample& a, const Sample& b) {
  return a.time < b.time;
}
bool earlier_event(const Event& a, const Event& b) {
  return a.time < b.time;
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
  auto n = input_->read(buffer_.data() + end_, buffer_.size() - end_);
  if (!n) return fail(std::move(n.error()));
  end_ += *n;
  done_ = *n == 0;
  return {};
}

std::string_view LineInput::head() const {
  const std::string_view all(buffer_.data() + begin_, end_ - begin_);
  if (done_) return all;
  const std::size_t newline = all.rfind('\n');
  return newline == std::string_view::npos ? all : all.substr(0, newline + 1);
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
        // NULs at the front of a line: what follows them is a line of its own.
        const std::size_t after = std::min(available.find_first_not_of('\0'), stretch.text.size());
        rows.skip(line_, fmt::format("{} NUL bytes (the writer crashed?)", after));
        begin_ += after;
        // What follows up to the newline still belongs to this line number.
        continue;
      }
      if (nul != std::string_view::npos) {
        // The lines before the one with NULs first, then that one up to them.
        const std::size_t before = stretch.text.rfind('\n', nul);
        stretch.text =
            before != std::string_view::npos ? stretch.text.substr(0, before + 1) : stretch.text.substr(0, nul);
        stretch.complete = before != std::string_view::npos;
      }
      begin_ += stretch.text.size();
      return stretch;
    }
    if (done_) return Stretch{{}, line_, true};
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

LogFile::LogFile(std::unique_ptr<LineInput> input, std::unique_ptr<LogParser> parser, std::unique_ptr<LogRows> rows,
                 const Probe& probe)
    : input_(std::move(input)),
      parser_(std::move(parser)),
      rows_(std::move(rows)),
      blocks_(probe.blocks),
      hold_(probe.disorder) {
  if (blocks_) rows_->expect_blocks();
  for (const std::string& text : parser_->assumptions()) rows_->warn(text);
}

Status LogFile::fill() {
  samples.erase(samples.begin(), samples.begin() + static_cast<std::ptrdiff_t>(taken_samples));
  events.erase(events.begin(), events.begin() + static_cast<std::ptrdiff_t>(taken_events));
  taken_samples = taken_events = 0;
  while (samples.empty() && !ended_) {
    auto stretch = input_->next(*rows_);
    if (!stretch) return fail(std::move(stretch.error()));
    if (stretch->text.empty()) {
      parser_->finish(*rows_);
      if (const auto wrong = parser_->misfit()) return fail(fmt::format("{}: {}", rows_->file(), *wrong));
      if (!input_->bytes().warning().empty()) rows_->warn(input_->bytes().warning());
      ended_ = true;
    } else {
      const std::uint64_t line = parser_->parse(stretch->text, stretch->first_line, stretch->complete, *rows_);
      if (stretch->complete) input_->set_line(line);
    }
    if (blocks_ && waiting_.size() + rows_->samples.size() > kMostSorted)
      return fail(
          "the log lists one series after another and is too large to sort by time in memory; sort it by "
          "its time column first");
    order();
  }
  return {};
}

/// Moves what is settled from the parser's rows to `samples`.
void LogFile::order() {
  LogRows& rows = *rows_;
  if (!blocks_ && hold_ == Duration{} && rows.disorder() == Duration{} && waiting_.empty()) {
    // In order throughout, the usual case; events may lead or trail the rows around them.
    if (!std::is_sorted(rows.events.begin(), rows.events.end(), earlier_event))
      std::stable_sort(rows.events.begin(), rows.events.end(), earlier_event);
    if (samples.empty())
      samples.swap(rows.samples);
    else
      samples.insert(samples.end(), rows.samples.begin(), rows.samples.end());
    rows.samples.clear();
    events.insert(events.end(), std::make_move_iterator(rows.events.begin()),
                  std::make_move_iterator(rows.events.end()));
    rows.events.clear();
    settled_ = rows.newest();
    return;
  }
  waiting_.insert(waiting_.end(), rows.samples.begin(), rows.samples.end());
  rows.samples.clear();
  waiting_events_.insert(waiting_events_.end(), std::make_move_iterator(rows.events.begin()),
                         std::make_move_iterator(rows.events.end()));
  rows.events.clear();
  if (blocks_ && !ended_) return;
  std::stable_sort(waiting_.begin(), waiting_.end(), earlier);
  std::stable_sort(waiting_events_.begin(), waiting_events_.end(), earlier_event);
  if (rows.series_follow_one_another() && !blocks_) {
    rows.warn(
        "the log lists one series after another beyond its first 256 KiB: its series are analysed one after another, "
        "too; sort it by its time column to analyse them together");
  } else {
    hold_ = std::max(hold_, rows.disorder());
  }
  const Timestamp until = ended_ ? Timestamp::max() : rows.newest() - hold_;
  const auto cut = std::upper_bound(waiting_.begin(), waiting_.end(), until,
                                    [](Timestamp t, const Sample& s) { return t < s.time; });
  for (auto it = waiting_.begin(); it != cut; ++it) {
    // A straggler beyond what was held for: a little late, it gets the time of what went out before it.
    if (it->time < settled_ && settled_ - it->time <= std::chrono::seconds{60}) it->time = settled_;
    samples.push_back(*it);
  }
  waiting_.erase(waiting_.begin(), cut);
  const auto event_cut = std::upper_bound(waiting_events_.begin(), waiting_events_.end(), until,
                                          [](Timestamp t, const Event& e) { return t < e.time; });
  events.insert(events.end(), std::make_move_iterator(waiting_events_.begin()), std::make_move_iterator(event_cut));
  waiting_events_.erase(waiting_events_.begin(), event_cut);
  settled_ = std::max(settled_, std::min(until, rows.newest()));
}

}  // namespace vramtrack
