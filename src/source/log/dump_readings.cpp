#include "source/log/dump_readings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/scale.hpp"
#include "core/units.hpp"
#include "source/log/memory_words.hpp"
#include "source/log/text.hpp"
#include "source/log/unit.hpp"

namespace vramtrack {
namespace {

using logtext::is_ascii_letter;
using logtext::is_digit;
using logtext::trim;

constexpr std::size_t kSamples = 400;

/// `text` without the marks around it, as in "==== 10:00 ====", "[10:00]", "# 10:00".
std::string_view without_marks(std::string_view text) {
  while (!text.empty() && !is_digit(text.front()) && !is_ascii_letter(text.front())) text.remove_prefix(1);
  while (!text.empty() && !is_digit(text.back()) && !is_ascii_letter(text.back())) text.remove_suffix(1);
  return text;
}

bool is_date(std::string_view text) {
  const auto civil = whole_civil(text);
  return civil && civil->has_date;
}

/// Whether `text` is in seconds or milliseconds since 1970, and in the years 2001 to 2099.
bool is_epoch(std::string_view text) {
  logtext::Decimal number;
  if (!logtext::read_decimal(text, number) || number.length != text.size() || number.negative) return false;
  const std::size_t digits = std::min(text.find('.'), text.size());
  return (digits == 10 && number.whole < 4'100'000'000) || (digits == 13 && number.whole < 4'100'000'000'000);
}

}  // namespace

std::string_view dated_text(std::string_view line) {
  constexpr std::size_t kLongest = 120;
  std::string_view text = trim(line);
  // A cell of a table or a member of a JSON object does not date a dump, even if it contains a time.
  constexpr std::string_view kOfOthers = "|+\"{}";
  if (text.empty() || text.size() > kLongest || kOfOthers.find(text.front()) != std::string_view::npos) return {};
  text = without_marks(text);
  if (is_date(text) || is_epoch(text)) return text;
  for (const std::string_view sign : {": ", " at "}) {  // "Date: 2026-03-01 10:00:00", "scraped at 1772359200"
    const std::size_t before = text.find(sign);
    if (before == std::string_view::npos) continue;
    const std::string_view time = without_marks(text.substr(before + sign.size()));
    if (is_date(time) || (sign == " at " && is_epoch(time))) return time;
  }
  return {};
}

std::vector<std::string_view> bar_cells(std::string_view line) {
  constexpr std::size_t kMost = 8;
  std::vector<std::string_view> cells;
  line = trim(line);
  if (line.starts_with('|')) line.remove_prefix(1);
  while (!line.empty() && cells.size() < kMost) {
    const std::size_t end = line.find('|');
    cells.push_back(trim(line.substr(0, end)));
    if (end == std::string_view::npos) break;
    line.remove_prefix(end + 1);
  }
  return cells;
}

Result<DumpClock> DumpClock::detect(const LogHead& head, std::vector<std::string>& assumptions,
                                    const DumpTimes& times) {
  std::vector<std::string> texts;
  const DumpTimes::Find* used = &times.find;
  for (const DumpTimes::Find* const find : {&times.find, &times.otherwise}) {
    if (!texts.empty() || !*find) break;
    used = find;
    const DumpTimes::Find look = *find;  // it may remember lines
    for (std::string_view rest = head.text; !rest.empty() && texts.size() < kSamples;)
      if (const std::string_view text = look(logtext::take_line(rest)); !text.empty()) texts.emplace_back(text);
  }
  if (texts.empty() && !times.example.empty()) texts.emplace_back(times.example);
  const std::vector<std::string_view> samples(texts.begin(), texts.end());
  if (samples.empty() && times.has_period)
    return DumpClock(StampReader::without_clock(*head.options, assumptions), *used);
  auto stamp = StampReader::detect(samples, {}, *head.options, *head.zone, assumptions, times.order);
  if (!stamp) return fail(std::move(stamp.error()));
  return DumpClock(std::move(*stamp), *used);
}

bool DumpClock::take(std::string_view text) {
  Timestamp time;
  if (text.empty() || counts() || !stamp_.read(text, time)) return false;
  time_ = time;
  return true;
}

std::optional<Timestamp> DumpClock::next() {
  if (counts()) return stamp_.at_round(round_++);
  std::optional<Timestamp> time;
  time.swap(time_);
  return time;
}

DumpReadings::Gpu& DumpReadings::gpu_of(const LogDevice& named) {
  const auto [it, fresh] = gpu_of_.try_emplace(device_id(named), gpus_.size());
  if (fresh) {
    gpus_.emplace_back();
    gpus_.back().named = named;
  }
  return gpus_[it->second];
}

void DumpReadings::begin(Gpu& gpu, LogRows& rows) {
  if (gpu.is_open) return;
  if (open_.empty()) line_ = rows.line;
  gpu.line = rows.line;
  gpu.is_open = true;
  open_.push_back(static_cast<std::size_t>(&gpu - gpus_.data()));
}

void DumpReadings::set(const LogDevice& named, Field field, std::uint64_t bytes, LogRows& rows) {
  Gpu& gpu = gpu_of(named);
  if (gpu.values[static_cast<std::size_t>(field)]) end_dump(rows);
  begin(gpu, rows);
  gpu.values[static_cast<std::size_t>(field)] = bytes;
}

void DumpReadings::set(const std::optional<Timestamp>& time, const LogDevice& gpu, Field field, std::uint64_t bytes,
                       LogRows& rows) {
  time ? set_at(*time, gpu, field, bytes, rows) : set(gpu, field, bytes, rows);
}

bool DumpReadings::set_pair(const std::optional<Timestamp>& time, const LogDevice& gpu, std::string_view text,
                            LogRows& rows) {
  const std::size_t slash = text.find('/');
  if (slash == std::string_view::npos) return false;
  const std::string_view used = trim(text.substr(0, slash));
  const std::string_view total = trim(text.substr(slash + 1));
  logtext::Decimal number;
  const std::uint64_t bytes =
      logtext::read_decimal(total, number) ? written_unit(trim(total.substr(number.length))) : 0;
  std::uint64_t ignored = 0;
  if ((bytes == 0 && !logtext::is_missing(total)) ||
      logtext::read_amount(used, kBytesPerMiB, ignored) == logtext::Amount::bad)
    return false;
  if (!time) see(gpu, rows);
  set_text(time, gpu, Field::used, used, bytes != 0 ? bytes : kBytesPerMiB, rows.line, rows);
  set_text(time, gpu, Field::total, total, bytes, rows.line, rows);
  return true;
}

void DumpReadings::set_text(const std::optional<Timestamp>& time, const LogDevice& gpu, Field field,
                            std::string_view text, std::uint64_t unit_bytes, std::uint64_t line, LogRows& rows) {
  std::uint64_t bytes = 0;
  const logtext::Amount amount = logtext::read_amount(logtext::trim(text), unit_bytes, bytes);
  if (amount == logtext::Amount::bad)
    return rows.skip(line, fmt::format("no amount of memory in '{}'", logtext::excerpt(text)));
  if (amount == logtext::Amount::read) set(time, gpu, field, bytes, rows);
}

void DumpReadings::set_busy(const std::optional<Timestamp>& time, const LogDevice& gpu, std::string_view text,
                            LogRows& rows) {
  if (const auto busy = busy_of_percent(text)) set(time, gpu, Field::busy, *busy, rows);
}

void DumpReadings::put(const LogDevice& named, Field field, std::uint64_t bytes, LogRows& rows) {
  Gpu& gpu = gpu_of(named);
  begin(gpu, rows);
  place(gpu, field, bytes);
}

void DumpReadings::place(Gpu& gpu, Field field, std::uint64_t bytes) {
  auto& value = gpu.values[static_cast<std::size_t>(field)];
  if (field == Field::used) {
    ++placed_;
    replaced_ += value && *value != bytes ? 1U : 0U;
  }
  value = bytes;
}

void DumpReadings::set_percent(const LogDevice& named, double percent, LogRows& rows) {
  if (percent >= 0 && percent <= 100)
    set(named, Field::percent, static_cast<std::uint64_t>(std::llround(percent * Scale::kPercentBytes)), rows);
}

void DumpReadings::list_process(const LogDevice& named, DumpedProcess process, LogRows& rows) {
  Gpu& gpu = gpu_of(named);
  begin(gpu, rows);
  gpu.processes.push_back(std::move(process));
}

void DumpReadings::list_is_complete(const LogDevice& named, LogRows& rows) {
  Gpu& gpu = gpu_of(named);
  begin(gpu, rows);
  gpu.lists_all = true;
}

bool DumpReadings::take(std::string_view text, LogRows& rows) {
  if (text.empty() || clock_.counts()) return false;
  end_dump(rows);
  interrupted_.clear();
  return clock_.take(text);
}

void DumpReadings::begin_at(Timestamp time, LogRows& rows) {
  if (row_time_ != time) {
    end_dump(rows);
    interrupted_.clear();
  }
  row_time_ = time;
  rows.row_time(time);
}

void DumpReadings::interrupt(LogRows& rows) {
  std::vector<std::size_t> present = open_;
  end_dump(rows);
  if (!present.empty()) interrupted_ = std::move(present);
}

void DumpReadings::end_dump(LogRows& rows) {
  if (open_.empty()) return;
  // Values after an interruption belong to the same dump as long as they are for other GPUs.
  const bool goes_on = !interrupted_.empty() && std::none_of(open_.begin(), open_.end(), [this](std::size_t at) {
    return std::find(interrupted_.begin(), interrupted_.end(), at) != interrupted_.end();
  });
  interrupted_.clear();
  if (!goes_on) dump_time_ = row_time_ ? row_time_ : clock_.next();
  if (!dump_time_)
    rows.skip(line_, "no time before this dump (other dumps have one); print the time in each turn of the loop");
  else if (!goes_on)
    ++dump_;
  const std::uint64_t line = rows.line;
  for (const std::size_t at : open_) {
    Gpu& gpu = gpus_[at];
    rows.line = gpu.line;
    if (dump_time_) deliver(gpu, *dump_time_, rows);
    gpu.clear();
    gpu.is_open = false;
  }
  rows.line = line;
  // A process may have moved from one GPU to another.
  for (const std::size_t at : open_) {
    Gpu& gpu = gpus_[at];
    if (std::exchange(gpu.lists_all, false) && dump_time_)
      rows.end_unseen(gpu.device, static_cast<double>(dump_), *dump_time_);
  }
  open_.clear();
}

/// False: these values are stale, since the exporter repeats them until the GPU returns.
bool DumpReadings::begin_at(Gpu& gpu, Timestamp time, LogRows& rows) {
  if (gpu.time && *gpu.time != time) {
    deliver(gpu, *gpu.time, rows);
    gpu.clear();
  }
  if (gpu.delivered == time) return false;
  gpu.time = time;
  return true;
}

void DumpReadings::see_time(Timestamp time, LogRows& rows) {
  if (time <= newest_) return;
  newest_ = time;
  deliver_late(rows);
}

void DumpReadings::set_at(Timestamp time, const LogDevice& named, Field field, std::uint64_t bytes, LogRows& rows) {
  Gpu& gpu = gpu_of(named);
  if (!begin_at(gpu, time, rows)) return;
  place(gpu, field, bytes);
  see_time(time, rows);
}

void DumpReadings::set_of_process(const std::optional<Timestamp>& time, const LogDevice& named,
                                  const DumpedProcess& process, Field field, std::uint64_t bytes, LogRows& rows) {
  Gpu& gpu = gpu_of(named);
  if (!time)
    begin(gpu, rows);
  else if (!begin_at(gpu, *time, rows))
    return;
  auto its = std::find_if(gpu.processes.begin(), gpu.processes.end(),
                          [&](const DumpedProcess& known) { return known.pid == process.pid; });
  if (its == gpu.processes.end()) its = gpu.processes.insert(its, process);
  GpuMemory& memory = its->memory;
  if (field == Field::percent)
    memory.percent = static_cast<double>(bytes) / Scale::kPercentBytes;
  else
    (field == Field::free        ? memory.free
     : field == Field::allocated ? memory.allocated
     : field == Field::reserved  ? memory.reserved
                                 : memory.used) = bytes;
  if (time) see_time(*time, rows);
}

/// A lost GPU has no next time. Its last values must not wait until the end of the log, far behind the others.
void DumpReadings::deliver_late(LogRows& rows) {
  for (Gpu& gpu : gpus_) {
    if (!gpu.time || newest_ - *gpu.time < kInterleaving) continue;
    deliver(gpu, *gpu.time, rows);
    gpu.clear();
    gpu.delivered = std::exchange(gpu.time, std::nullopt);
  }
}

void DumpReadings::finish(LogRows& rows) {
  constexpr std::uint64_t kFewest = 3;
  constexpr std::uint64_t kOften = 3;
  if (replaced_ >= kFewest && replaced_ * kOften >= placed_ - replaced_)
    rows.warn(
        "samples of one GPU at one time often have different amounts, of which only the last is read: they may be of "
        "several GPUs or programs that no label tells apart");
  end_dump(rows);
  for (Gpu& gpu : gpus_)
    if (gpu.time) {
      deliver(gpu, *gpu.time, rows);
      gpu.time.reset();
      gpu.clear();
    }
}

/// Sets its memory in use from the figures that are given one by one.
void DumpReadings::complete(DumpedProcess& process, std::size_t device, Timestamp time, LogRows& rows) const {
  GpuMemory& memory = process.memory;
  const bool has_allocator = memory.allocated && memory.reserved;
  if (!memory.used && !has_allocator) memory.used = memory.allocated ? memory.allocated : memory.reserved;
  if (has_allocator) rows.add_allocator(time, device, memory, process.pid);
  memory.most_free_bytes = most_free_bytes_;
  memory.total.reset();
  if (!has_allocator && (memory.used || memory.free || memory.percent))
    if (const char* const why = rows.complete(time, device, memory)) rows.skip(rows.line, why);
  if (!has_allocator) process.bytes = memory.used;
}

void DumpReadings::deliver(Gpu& gpu, Timestamp time, LogRows& rows) {
  auto& [used, free, total, busy, received, allocated, reserved, percent] = gpu.values;
  const bool has_allocator = allocated && reserved;
  if (!used && !has_allocator) used = allocated ? allocated : reserved;
  if (!used && !free && !total && !percent && !has_allocator && gpu.processes.empty() && !gpu.lists_all) return;
  if (gpu.device == SIZE_MAX) gpu.device = rows.device(gpu.named);
  GpuMemory memory{.used = used, .free = free, .total = total, .most_free_bytes = most_free_bytes_};
  if (percent) memory.percent = static_cast<double>(*percent) / Scale::kPercentBytes;
  if (has_allocator) memory.allocated = allocated, memory.reserved = reserved;
  if (const char* const why = rows.complete(time, gpu.device, memory)) rows.skip(rows.line, why);
  rows.add(time, gpu.device, memory, 0);
  if (busy) rows.add(time, rows.further_series(gpu.device, Metric::device_busy, 0), *busy);
  if (received) rows.add(time, rows.further_series(gpu.device, Metric::device_received, 0), *received);
  for (DumpedProcess& process : gpu.processes) {
    if (!process.bytes) complete(process, gpu.device, time, rows);
    if (rows.is_in_percent(gpu.device)) process.bytes.reset();  // of an unknown size
    const std::string& command = process.command.empty() ? process.name : process.command;
    const std::size_t listed = rows.process(gpu.device, process.pid, process.name, process.kind, process.user, command,
                                            process.bytes.has_value());
    rows.seen(listed, static_cast<double>(dump_));
    if (process.bytes) rows.add(time, rows.process_series(listed), *process.bytes);
    if (process.bytes && process.age_s)
      rows.add(time, rows.further_series(gpu.device, Metric::process_age, process.pid), *process.age_s);
  }
}

}  // namespace vramtrack
