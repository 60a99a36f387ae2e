#include "source/log/text_lines.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/option.hpp"
#include "source/log/unnamed_gpus.hpp"

namespace vramtrack {
namespace {

constexpr std::string_view kNoTime = "no line with a time before it";
constexpr std::string_view kAbove = "used memory above the total";

bool is_same_gpu(const TextFigures& a, const TextFigures& b) {
  return a.gpu.uuid == b.gpu.uuid && a.gpu.index == b.gpu.index && a.gpu.text == b.gpu.text && a.pid == b.pid;
}

template <class T>
bool both(const std::optional<T>& a, const std::optional<T>& b) {
  return a.has_value() && b.has_value();
}

/// Whether the later of two repeats a field that the earlier one gave: then it belongs to the next reading.
bool comes_again(const TextFigures& a, const TextFigures& b) {
  return both(a.used, b.used) || both(a.total, b.total) || both(a.free, b.free) || both(a.allocated, b.allocated) ||
         both(a.reserved, b.reserved) || both(a.percent, b.percent);
}

template <class T>
void add(std::optional<T>& to, const std::optional<T>& from) {
  if (from) to = from;
}

}  // namespace

void TextLines::read_time(std::string_view text, LogRows& rows) {
  is_own_ = false;
  Timestamp time;
  if (stamp_.kind() == StampReader::Kind::none || !stamp_.read(text, time)) return;
  if (time != time_) flush(rows);
  time_ = time;
  stamped_ = is_own_ = true;
  rows.row_time(time);
}

/// Without a clock, the next reading begins when a series repeats.
bool TextLines::has_time(std::size_t device, std::uint32_t pid) {
  if (stamp_.kind() != StampReader::Kind::none) return stamped_;
  const std::pair<std::size_t, std::uint32_t> series{device, pid};
  if (std::find(in_round_.begin(), in_round_.end(), series) != in_round_.end()) {
    ++round_;
    in_round_.clear();
  }
  in_round_.push_back(series);
  time_ = stamp_.at_round(round_);
  return true;
}

/// The index of a GPU that its line does not name: its position among the readings of one time. nullopt: too many.
std::optional<int> TextLines::next_unnamed_index() {
  if (unnamed_gpus_ <= 1) return 0;
  unnamed_index_ = time_ == unnamed_time_ ? unnamed_index_ + 1 : 0;
  unnamed_time_ = time_;
  if (unnamed_index_ >= unnamed_gpus_) return std::nullopt;
  return static_cast<int>(unnamed_index_);
}

void TextLines::take(TextFigures figures, LogRows& rows) {
  figures.is_timed = is_own_;
  if (!in_blocks_) return emit(figures, rows);
  for (TextFigures& known : pending_) {
    if (!is_same_gpu(known, figures)) continue;
    if (comes_again(known, figures)) {
      flush(rows);
      break;
    }
    add(known.used, figures.used);
    add(known.total, figures.total);
    add(known.free, figures.free);
    add(known.allocated, figures.allocated);
    add(known.reserved, figures.reserved);
    add(known.percent, figures.percent);
    return;
  }
  pending_.push_back(std::move(figures));
}

void TextLines::flush(LogRows& rows) {
  const std::uint64_t line = rows.line;
  for (TextFigures& figures : pending_) {
    rows.line = figures.line;
    emit(figures, rows);
  }
  rows.line = line;
  pending_.clear();
}

void TextLines::emit(TextFigures& f, LogRows& rows) {
  if (!f.used && f.free && f.total && *f.free <= *f.total) f.used = *f.total - *f.free;
  if (!f.total && f.used && f.free) f.total = *f.used + *f.free;
  if (f.used && f.total && *f.total > 0 && *f.used > *f.total + *f.total / 20) return rows.skip(f.line, kAbove);
  if (!f.is_named && !f.pid) {
    // A line that has only a total is not part of a reading.
    if (f.has_use() || (f.free && capacity_bytes_ > 0)) {
      f.gpu.index = next_unnamed_index();
      if (!f.gpu.index) return rows.skip(f.line, "one GPU more than at other times");
    } else {
      f.gpu.index = 0;
    }
  }
  const std::size_t device = rows.device(f.gpu);
  std::uint64_t& total = totals_[device];  // the last one; it may come before the first time
  if (f.total) total = *f.total;
  if (const auto known = index_totals_.find(f.gpu.index.value_or(-1)); total == 0 && known != index_totals_.end())
    total = known->second;
  if (f.free && !f.has_use() && total == 0) total = capacity_bytes_;
  if (!f.has_use() && !(f.free && total > 0)) {
    if (f.total && (stamped_ || stamp_.kind() == StampReader::Kind::none)) rows.total(time_, device, total);
    return;
  }
  borrows_time_ |= stamp_.kind() != StampReader::Kind::none && !f.is_timed;
  if (!has_time(device, f.pid.value_or(0))) return rows.skip(f.line, kNoTime);
  if (!f.used && f.free && total > 0 && (*f.free <= total || !f.total)) f.used = total - std::min(total, *f.free);
  if (total > 0) rows.total(time_, device, total);
  if (!f.used && !f.allocated && !f.reserved && f.percent)
    f.used = static_cast<std::uint64_t>(
        std::llround(*f.percent * (total > 0 ? static_cast<double>(total) / 100 : percent_bytes_)));
  if (f.allocated)
    rows.add(time_, rows.further_series(device, Metric::allocator_allocated, f.pid.value_or(0)), *f.allocated);
  if (f.reserved)
    rows.add(time_, rows.further_series(device, Metric::allocator_reserved, f.pid.value_or(0)), *f.reserved);
  if (!f.pid) {
    if (f.used) rows.add(time_, rows.device_series(device), *f.used);
    return;
  }
  const std::size_t process = rows.process(device, *f.pid, f.name, {}, f.user, f.name, f.used.has_value());
  if (f.used) rows.add(time_, rows.process_series(process), *f.used);
}

namespace {

/// Whether every `n`th value is the same: a program repeating itself in each round.
bool repeats_exactly(const std::vector<double>& values, std::size_t n) {
  for (std::size_t i = n; i < values.size(); ++i)
    if (values[i] != values[i - n]) return false;
  return true;
}

}  // namespace

Result<std::size_t> count_unnamed_gpus(const std::vector<HeadReading>& readings, StampReader stamp, bool by_pattern,
                                       std::vector<std::string>& assumptions) {
  const std::string record =
      fmt::format("pass {} with a group gpu that says which, or record the index or uuid of each GPU",
                  name_of(Option::line_pattern));
  const bool has_times = stamp.kind() != StampReader::Kind::none;
  std::map<std::string_view, UnnamedReadings> series;
  std::map<std::string_view, std::vector<double>> used;
  for (const HeadReading& reading : readings) {
    Timestamp time;
    if (has_times && !stamp.read(reading.stamp, time)) continue;
    series[reading.gpu].add(seconds_between(Timestamp{}, time), reading.used, reading.line);
    used[reading.gpu].push_back(reading.used);
  }
  if (!has_times) {
    // The load of one GPU may repeat exactly every few readings, but its name shows that it is one.
    const auto unnamed = used.find({});
    const std::size_t n = unnamed == used.end() ? 1 : count_interleaved(unnamed->second);
    if (n == 1) return 1;
    if (by_pattern && repeats_exactly(unnamed->second, n)) {
      assumptions.push_back(fmt::format(
          "the figures go through the same {} values again and again: they are assumed to be of one GPU; if "
          "they are of several, name them in a group gpu of {}",
          n, name_of(Option::line_pattern)));
      return 1;
    }
    return fail(fmt::format("the lines seem to alternate between {} GPUs, but nothing names them or gives a time; {}",
                            n, record));
  }
  std::size_t unnamed_gpus = 1;
  const bool counts = stamp.kind() == StampReader::Kind::step;
  for (auto& [gpu, its] : series) {
    ReadingWords words;
    words.rows = "lines";
    words.of = gpu.empty() ? "name no GPU" : fmt::format("name the GPU '{}'", logtext::excerpt(gpu, 24));
    words.record = record;
    words.grain_s = counts ? 1 : grain_of_stamp(readings.front().stamp);
    const OrderEvidence order = counts
                                    ? stamp.scale().step == "epoch" ? OrderEvidence::if_two : OrderEvidence::if_in_turn
                                : gpu.empty() ? OrderEvidence::may
                                              : OrderEvidence::never;
    const auto n = count_gpus_by_order(std::move(its), order, stamp.is_relative() && !stamp.wraps(), words);
    if (!n) return fail(n.error());
    if (*n > 1) {
      unnamed_gpus = *n;
      assumptions.push_back(fmt::format(
          "{} lines per time and no GPU index: they are assumed to be {} GPUs in that order; name them in a "
          "group gpu of {}",
          *n, *n, name_of(Option::line_pattern)));
    }
  }
  return unnamed_gpus;
}

}  // namespace vramtrack
