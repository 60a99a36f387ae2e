#include "source/log/csv_rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "core/pci_address.hpp"
#include "source/log/owners.hpp"
#include "source/log/unit.hpp"

namespace vramtrack {
namespace {

using logtext::Amount;
using logtext::trim;

/// A process that is not listed for this many periods has ended.
constexpr double kEndedAfterPeriods = 3.0;

}  // namespace

void CsvRows::adopt(ColumnPlan plan) {
  plan_ = std::move(plan);
  comma_ = plan_.delimiter != ',';
  int last = 0;
  for (const int c :
       {plan_.time, plan_.date, plan_.outer_count, plan_.used, plan_.free, plan_.total, plan_.index, plan_.uuid,
        plan_.pci, plan_.partition, plan_.pid, plan_.process_name, plan_.device_name, plan_.process_kind, plan_.user})
    last = std::max(last, c);
  for (const auto* const columns : {&plan_.series, &plan_.distinguishing})
    for (const int c : *columns) last = std::max(last, c);
  for (const ColumnPlan::Further& further : plan_.further) last = std::max(last, further.column);
  for (const ColumnPlan::Wide& wide : plan_.wide) {
    last = std::max({last, wide.used, wide.total});
    for (const ColumnPlan::Further& further : wide.further) last = std::max(last, further.column);
  }
  needed_ = static_cast<std::size_t>(last) + 1;
  // The key uses only the strongest identifier of the GPU: a UUID makes the index redundant, but not the host name.
  key_columns_.clear();
  if (plan_.uuid >= 0)
    key_columns_.push_back(plan_.uuid);
  else if (plan_.pci >= 0)
    key_columns_.push_back(plan_.pci);
  else if (plan_.index >= 0)
    key_columns_.push_back(plan_.index);
  if (plan_.partition >= 0) key_columns_.push_back(plan_.partition);
  key_columns_.insert(key_columns_.end(), plan_.series.begin(), plan_.series.end());
  key_columns_.insert(key_columns_.end(), plan_.distinguishing.begin(), plan_.distinguishing.end());
  if (plan_.pid >= 0) key_columns_.push_back(plan_.pid);
  if (plan_.pid >= 0 && plan_.process_name >= 0) key_columns_.push_back(plan_.process_name);
  entries_.clear();
  entry_of_.clear();
  last_ = 0;
  apply_units();
}

void CsvRows::apply_units() {
  used_unit_ = plan_.used_unit != 0 ? plan_.used_unit : default_unit_;
  free_unit_ = plan_.free_unit != 0 ? plan_.free_unit : used_unit_;
  total_unit_ = plan_.total_unit != 0 ? plan_.total_unit : used_unit_;
}

CsvRows::Cut CsvRows::cut(const char* p, const char* end) {
  const char delimiter = plan_.delimiter;
  std::size_t n = 0;
  while (true) {
    while (p != end && *p == ' ') ++p;
    if (p != end && *p == '"') return Cut::odd;
    const auto* stop = static_cast<const char*>(std::memchr(p, delimiter, static_cast<std::size_t>(end - p)));
    const char* field_end = stop == nullptr ? end : stop;
    while (field_end != p && field_end[-1] == ' ') --field_end;
    fields_[n++] = {p, static_cast<std::size_t>(field_end - p)};
    if (n == needed_) {
      // A row that does not fit its header must not be read with it; a quoted field may contain a delimiter, or
      // continue on the next line.
      if (stop != nullptr && std::memchr(stop, '"', static_cast<std::size_t>(end - stop)) != nullptr) return Cut::odd;
      const std::size_t rest = stop == nullptr ? 0 : static_cast<std::size_t>(std::count(stop, end, delimiter));
      return n + rest == plan_.count ? Cut::done : Cut::odd;
    }
    if (stop == nullptr) return Cut::short_line;
    p = stop + 1;
  }
}

/// Handles quoted fields and process names that contain the delimiter (nvidia-smi does not quote them).
CsvRows::Cut CsvRows::cut_oddly(std::string_view line) {
  std::vector<std::string_view> all;
  split_fields(line, plan_.delimiter, all);
  if (plan_.process_name >= 0 && all.size() > plan_.count) {
    const auto name = static_cast<std::size_t>(plan_.process_name);
    const std::size_t extra = all.size() - plan_.count;
    const char* const begin = all[name].data();
    const std::string_view& tail = all[name + extra];
    all[name] = {begin, static_cast<std::size_t>(tail.data() + tail.size() - begin)};
    all.erase(all.begin() + static_cast<std::ptrdiff_t>(name) + 1,
              all.begin() + static_cast<std::ptrdiff_t>(name + extra) + 1);
  }
  drop_surplus(all, plan_.count);
  cut_ = all.size();
  if (cut_ < plan_.count) return Cut::short_line;
  if (cut_ > plan_.count) return Cut::long_line;
  std::copy_n(all.begin(), needed_, fields_.begin());
  return Cut::done;
}

std::uint64_t CsvRows::parse(std::string_view lines, std::uint64_t line, bool complete, LogRows& rows) {
  fields_.resize(std::max(needed_, std::size_t{1}));
  const char* p = lines.data();
  const char* const end = p + lines.size();
  for (; p < end; ++line) {
    const auto* newline = static_cast<const char*>(std::memchr(p, '\n', static_cast<std::size_t>(end - p)));
    const char* stop = newline == nullptr ? end : newline;
    const char* const next = newline == nullptr ? end : newline + 1;
    while (stop != p && (stop[-1] == '\r' || stop[-1] == ' ')) --stop;
    rows.line = line;
    const bool whole = newline != nullptr || complete;
    const std::string_view text{p, static_cast<std::size_t>(stop - p)};
    p = next;
    if (!quoted_.empty()) {
      go_on_in_quotes(text, line, whole, rows);
    } else if (whole && cut(text.data(), text.data() + text.size()) == Cut::done && read_row(rows, true) == nullptr) {
      fits();
    } else if (whole && text.find('"') != std::string_view::npos && ends_in_quotes(text, plan_.delimiter)) {
      quoted_ = text;
      quoted_line_ = line;
      quotes_ = static_cast<std::uint64_t>(std::count(text.begin(), text.end(), '"'));
    } else {
      read_line(text, line, whole, rows);
    }
  }
  return line;
}

/// Reads the fields that were cut; returns nullptr on success, else the reason for the failure.
const char* CsvRows::read_row(LogRows& rows, bool last_is_whole) {
  Timestamp time;
  if (const char* const why = read_time(time)) return why;
  if (plan_.time >= 0) rows.row_time(time);
  if (!plan_.wide.empty()) return read_wide_row(time, last_is_whole, rows);

  GpuMemory memory;
  if (const char* const why = read_memory(last_is_whole, memory)) return why;
  if (!last_is_whole) return "truncated last line";

  if (held_.gpus() > 1) {
    hold_row(time, memory, rows);
    return nullptr;
  }
  CsvEntry* const e = entry(rows);
  if (e == nullptr) return "no readable identity (gpu, pid)";
  return add_row(*e, time, memory, rows);
}

const char* CsvRows::add_row(CsvEntry& e, Timestamp time, GpuMemory& memory, LogRows& rows) {
  if (plan_.time < 0 && !plan_.clock_lines) {
    // Without a clock, the next reading begins when a GPU appears again.
    if (e.round == round_ + 1) ++round_;
    e.round = round_ + 1;
    time = stamp_.at_round(round_);
  }
  if (const char* const why = read_total(e, plan_.total, memory, rows)) return why;
  if (const char* const why = rows.complete(time, e.device, memory)) return why;
  const bool has_bytes = memory.used && plan_.metric == Metric::device_used;
  if (plan_.pid >= 0 && !follow_process(e, time, has_bytes, rows)) return kNoPid.data();
  if (memory.used)
    rows.add(time, e.series, *memory.used);
  else if (plan_.used >= 0)
    rows.no_reading(e.device, field(plan_.used));
  if (!e.further.empty()) add_further(time, e, plan_.further, rows);
  return nullptr;
}

void CsvRows::hold_row(Timestamp time, const GpuMemory& memory, LogRows& rows) {
  if (begins_reading_ || (plan_.time >= 0 && held_.is_of_other_reading(time))) end_reading(rows);
  begins_reading_ = false;
  HeldRow& held = held_.reading().emplace_back();
  held.fields.assign(fields_.begin(), fields_.end());
  held.time = time;
  held.memory = memory;
  held.line = rows.line;
}

/// `at_end`: the log has ended.
void CsvRows::end_reading(LogRows& rows, bool at_end) {
  if (!at_end && !held_.holds_any()) return;
  const std::vector<std::string_view> present = fields_;
  held_.end(rows, at_end, [&](HeldRow& held, std::size_t position) {
    position_ = position;
    fields_.assign(held.fields.begin(), held.fields.end());
    if (const char* const why = add_row(*entry(rows), held.time, held.memory, rows)) rows.skip(held.line, why);
  });
  fields_ = present;
}

/// The series for a process's used memory is left to follow_process().
void CsvRows::begin_series(CsvEntry& e, const std::vector<ColumnPlan::Further>& further, std::uint32_t pid,
                           LogRows& rows) const {
  if (plan_.metric != Metric::device_used)
    e.series = rows.further_series(e.device, plan_.metric, pid);
  else if (plan_.pid < 0)
    e.series = rows.device_series(e.device);
  e.has_series = plan_.pid < 0;
  for (const ColumnPlan::Further& one : further) e.further.push_back(rows.further_series(e.device, one.metric, pid));
}

void CsvRows::add_further(Timestamp time, const CsvEntry& e, const std::vector<ColumnPlan::Further>& further,
                          LogRows& rows) {
  for (std::size_t i = 0; i < further.size(); ++i) {
    if (further[i].metric == Metric::device_busy) {
      const std::string_view text = field(further[i].column);
      if (const auto busy = further[i].unit == 1 ? busy_of_ratio(text) : busy_of_percent(text))
        rows.add(time, e.further[i], *busy);
      continue;
    }
    GpuMemory memory;
    const std::uint64_t unit = further[i].unit != 0 ? further[i].unit : used_unit_;
    if (read_used(field(further[i].column), unit, memory) != Amount::read) continue;
    if (plan_.percent) rows.complete(time, e.device, memory);
    if (memory.used) rows.add(time, e.further[i], *memory.used);
  }
}

const char* CsvRows::read_time(Timestamp& time) {
  if (plan_.date >= 0) {
    stamp_buffer_.assign(trim(field(plan_.date)));
    stamp_buffer_ += ' ';
    stamp_buffer_ += trim(field(plan_.time));
    return stamp_.read(stamp_buffer_, time) ? nullptr : "no readable time";
  }
  std::string_view text = plan_.time >= 0 ? field(plan_.time) : std::string_view{};
  if (plan_.outer_count >= 0) {
    const auto count = logtext::whole_number<std::uint64_t>(text);
    const auto epoch = logtext::number_in(field(plan_.outer_count), comma_);
    if (count && epoch && *epoch >= 0)
      text = stamp_buffer_ = std::to_string(counter_.next(*count, static_cast<std::uint64_t>(*epoch)));
  }
  if (plan_.time >= 0 && !stamp_.read(text, time)) return "no readable time";
  if (plan_.clock_lines) {
    if (!line_time_) return "no line with a date before it";
    time = *line_time_;
  }
  return nullptr;
}

/// Reads the used memory, or the value that it follows from: a percentage, or the free memory.
const char* CsvRows::read_memory(bool last_is_whole, GpuMemory& out) {
  if (plan_.pair) {
    std::uint64_t used = 0;
    std::uint64_t total = 0;
    if (read_amount_pair(field(plan_.used), used_unit_, used, total))
      out.used = used, out.total = total;
    else if (!logtext::is_missing(field(plan_.used)))
      return "no readable pair of used and total memory";
  } else if (plan_.used >= 0) {
    if (read_used(field(plan_.used), used_unit_, out) == Amount::bad)
      return plan_.percent ? "no readable percentage" : "no readable amount of used memory";
    if (!last_is_whole) return "truncated last line";
    value_length_ = field(plan_.used).size();
  }
  if (plan_.free < 0 || plan_.percent || (plan_.used >= 0 && plan_.total >= 0)) return nullptr;
  std::uint64_t free = 0;
  const Amount amount = logtext::read_amount(field(plan_.free), free_unit_, free, comma_);
  if (plan_.used < 0 && amount == Amount::bad) return "no readable amount of free memory";
  if (amount == Amount::read) out.free = free;
  out.grain_bytes = std::max(used_unit_, free_unit_);
  out.most_free_bytes = most_free_;
  return nullptr;
}

/// Reads the total in `column` (-1: none) if its text differs from that of the previous row.
const char* CsvRows::read_total(CsvEntry& e, int column, GpuMemory& out, LogRows& rows) const {
  if (column < 0 || field(column) == e.total_text) return nullptr;
  e.total_text = field(column);
  std::uint64_t total = 0;
  if (logtext::read_amount(e.total_text, total_unit_, total, comma_) != Amount::read) return nullptr;
  if (!plan_.has_header && rows.total_of(e.device) != 0 && total != rows.total_of(e.device)) {
    e.total_text.clear();
    return "a changed total, so the column is not the total memory,";
  }
  out.total = total;
  return nullptr;
}

/// Reads used memory in `unit`, or its percentage.
Amount CsvRows::read_used(std::string_view text, std::uint64_t unit, GpuMemory& out) const {
  if (!plan_.percent) {
    std::uint64_t bytes = 0;
    const Amount amount = logtext::read_amount(text, unit, bytes, comma_);
    if (amount == Amount::read) out.used = bytes;
    return amount;
  }
  text = trim(text);
  logtext::Decimal number;
  if (!logtext::read_decimal(text, number, comma_)) return logtext::is_missing(text) ? Amount::missing : Amount::bad;
  const std::string_view rest = trim(text.substr(number.length));
  if ((!rest.empty() && rest != "%") || number.negative || number.whole > 100'000) return Amount::bad;
  out.percent = number.value();
  out.waits_for_total = plan_.total >= 0;
  return Amount::read;
}

/// Marks the row's process as alive, creating it if it is new; false if its pid cannot be read.
bool CsvRows::follow_process(CsvEntry& e, Timestamp time, bool has_bytes, LogRows& rows) {
  advance_process_clock(time, rows);
  if (e.process == SIZE_MAX || rows.ended(e.process) || (has_bytes && !e.has_series)) {
    const auto pid = pid_of(field(plan_.pid));
    if (!pid) return false;
    const auto text = [&](int column) { return column >= 0 ? trim(field(column)) : std::string_view{}; };
    e.process = rows.process(e.device, *pid, text(plan_.process_name), text(plan_.process_kind), text(plan_.user), {},
                             has_bytes);
    e.has_series = has_bytes;
    if (has_bytes) e.series = rows.process_series(e.process);
  }
  const double before_s = rows.seen_s(e.process);
  if (before_s > 0 && process_clock_s_ > before_s) {
    const double gap_s = process_clock_s_ - before_s;
    process_period_s_ += process_period_s_ <= 0 ? gap_s : (gap_s - process_period_s_) / 16;
  }
  rows.seen(e.process, process_clock_s_);
  return true;
}

/// The clock that measures how long a process has been absent runs only while the log is being written: a pause of the
/// logger itself counts as at most one and a half periods, so that it does not end any process.
void CsvRows::advance_process_clock(Timestamp time, LogRows& rows) {
  if (process_time_ == LogRows::kNever) {
    process_time_ = time;
    process_clock_s_ = 1e-9;
    return;
  }
  if (time <= process_time_) return;
  const double step_s = seconds_between(process_time_, time);
  process_time_ = time;
  process_clock_s_ += process_period_s_ > 0 ? std::min(step_s, 1.5 * process_period_s_) : step_s;
  if (process_period_s_ <= 0 || process_clock_s_ - checked_s_ < 0.5 * process_period_s_) return;
  checked_s_ = process_clock_s_;
  rows.end_unseen(LogRows::kEveryDevice, process_clock_s_ - kEndedAfterPeriods * process_period_s_, time);
}

/// The entry for the current row; nullptr if its identity cannot be read.
CsvEntry* CsvRows::entry(LogRows& rows) {
  if (held_.gpus() > 1) return make_entry(rows);
  if (key_columns_.empty()) return entries_.empty() ? make_entry(rows) : entries_.front().get();
  if (key_columns_.size() == 1) {
    // Rows of several GPUs usually repeat in order: try the entry after the last one, then the last one itself.
    const std::string_view key = field(key_columns_[0]);
    if (!entries_.empty()) {
      const std::size_t following = last_ + 1 < entries_.size() ? last_ + 1 : 0;
      if (entries_[following]->key == key) {
        last_ = following;
        return entries_[following].get();
      }
      if (entries_[last_]->key == key) return entries_[last_].get();
    }
    key_buffer_.assign(key);
  } else {
    key_buffer_.clear();
    for (const int c : key_columns_) {
      key_buffer_ += field(c);
      key_buffer_ += '\n';
    }
    if (!entries_.empty()) {
      const std::size_t following = last_ + 1 < entries_.size() ? last_ + 1 : 0;
      if (entries_[following]->key == key_buffer_) {
        last_ = following;
        return entries_[following].get();
      }
    }
  }
  const auto found = entry_of_.find(key_buffer_);
  if (found != entry_of_.end()) {
    last_ = found->second;
    return entries_[last_].get();
  }
  return make_entry(rows);
}

CsvEntry* CsvRows::make_entry(LogRows& rows) {
  std::optional<std::size_t> position_of_row;
  if (held_.gpus() > 1) {
    // Without an id, the GPUs of a reading are identified by their order.
    if (position_ < entries_.size()) return entries_[position_].get();
    position_of_row = position_ = entries_.size();
  }
  OwnerIds ids;
  std::string origin, share;
  for (const int c : plan_.series) add_part(origin, trim(field(c)));
  for (const int c : plan_.distinguishing) add_part(share, trim(field(c)));
  ids.origin = origin;
  ids.share = share;
  const auto text = [&](int column) { return column >= 0 ? trim(field(column)) : std::string_view{}; };
  ids.uuid = text(plan_.uuid);
  const std::string pci = pci_address_of(text(plan_.pci));
  ids.pci_bus_id = pci;
  ids.index = text(plan_.index);
  ids.name = text(plan_.device_name);
  std::string partition;
  if (plan_.partition >= 0)
    partition = partition_named(titles_of(plan_)[static_cast<std::size_t>(plan_.partition)], text(plan_.partition));
  ids.partition = partition;
  const std::string position = position_of_row ? std::to_string(*position_of_row) : std::string();
  if (position_of_row) ids.index = position;

  auto e = std::make_unique<CsvEntry>();
  e->key = key_columns_.size() == 1 ? std::string(field(key_columns_[0])) : key_buffer_;
  e->device = rows.device(device_of(ids));
  const auto pid = plan_.pid >= 0 ? pid_of(field(plan_.pid)) : std::nullopt;
  begin_series(*e, plan_.further, pid.value_or(0), rows);
  entries_.push_back(std::move(e));
  last_ = entries_.size() - 1;
  rows.keeps_text(entries_.back()->key.size());
  if (held_.gpus() <= 1 && !key_columns_.empty()) entry_of_.emplace(entries_.back()->key, last_);
  return entries_.back().get();
}

}  // namespace vramtrack
