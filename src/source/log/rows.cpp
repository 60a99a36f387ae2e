#include "source/log/rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <set>
#include <utility>

#include "core/format.hpp"
#include "core/framework.hpp"
#include "core/option.hpp"
#include "explain/reader.hpp"
#include "source/log/messages.hpp"
#include "source/log/text.hpp"

namespace vramtrack {
namespace {

constexpr std::size_t kQuoted = 200;  ///< bytes of a message that an event quotes
constexpr std::size_t kNamedSkips = 8;
constexpr std::size_t kWarnings = 16;
/// The limit for the sum of all shifts, which keeps times far from the limits of 64 bits.
constexpr Duration kLongestShift = std::chrono::hours{24 * 365 * 100};
constexpr std::size_t kCommandBytes = 256;

constexpr const char* kAboveTotal = "used memory above the total";

/// Whether `used` exceeds `total` by more than rounding explains; false if the total is unknown (0).
bool is_above(std::uint64_t used, std::uint64_t total) {
  return total > 0 && used > total + total / 20;
}

/// The program's name without its folder. The arguments of a command line may also be paths and are ignored; a space
/// alone does not begin an argument, since nvidia-smi prints folders and names that contain spaces.
std::string short_name(std::string_view command) {
  command = command.substr(0, std::min(command.find(" -"), command.find(" /")));
  const std::size_t slash = command.find_last_of("/\\");
  return std::string(slash == std::string_view::npos ? command : command.substr(slash + 1));
}

/// The device's total memory according to an out-of-memory message.
std::optional<std::uint64_t> total_of_message(std::string_view line) {
  for (const explain::Message& message : explain::read_messages(line))
    if (const auto total = message.figures.get(explain::Figure::total);
        total && message.wording->role == explain::Role::device && *total >= 1)
      return static_cast<std::uint64_t>(*total);
  return std::nullopt;
}

}  // namespace

SeriesId LogRows::intern(const SeriesKey& key) {
  const SeriesId id = catalog_.intern(key);
  keeps_text(0);
  if (series_.size() <= index_of(id)) series_.resize(index_of(id) + 1);
  return id;
}

void LogRows::keeps_text(std::size_t bytes_of_text) {
  name_bytes_ += bytes_of_text;
  const std::size_t all = std::max(catalog_.size(), devices_.size() + processes_.size());
  const std::size_t living = devices_.size() + alive_.size();
  const std::size_t bytes =
      all * SeriesBudget::kSeriesBytes + living * SeriesBudget::kLivingBytes + name_bytes_ * SeriesBudget::kCopies;
  if (bytes <= SeriesBudget::kBytes || !refusal_.empty()) return;
  refuse(
      fmt::format("{}:{}: {} GPUs and processes up to here, {} of them at once, with {} KiB of names, are more than "
                  "can be analysed together; if a column of other numbers or texts is read as their ids or names, "
                  "remove it, otherwise split the log",
                  file_, line, all, living, name_bytes_ / 1024));
}

std::size_t LogRows::device(const LogDevice& device) {
  const std::size_t at = roster_.resolve(device);
  const LogDevice& known = roster_.device(at);
  const std::string& id = roster_.id(at);
  if (device_of_.size() <= at) device_of_.resize(at + 1, SIZE_MAX);
  if (device_of_[at] == SIZE_MAX) {
    device_of_[at] = devices_.size();
    devices_.push_back({id, std::nullopt, 0});
    keeps_text(id.size() + known.name.size() + known.text.size());
  }
  DeviceInfo info;
  info.id = id;
  info.index = known.index;
  info.name = known.name;
  info.pci_bus_id = known.pci_bus_id;
  info.parent_id = device.parent_id;
  const DeviceInfo* before = catalog_.device(id);
  if (before == nullptr || !before->capacity_bytes) info.capacity_bytes = default_capacity_;
  catalog_.describe(info);
  return device_of_[at];
}

SeriesId LogRows::device_series(std::size_t device) {
  Device& d = devices_[device];
  if (!d.used) {
    d.used = intern({Metric::device_used, d.id, 0, 0});
    device_series_.push_back(*d.used);
  }
  return *d.used;
}

bool LogRows::has_samples(std::size_t device) const {
  const auto sampled = [this](SeriesId series) { return series_[index_of(series)].last != kNever; };
  const Device& d = devices_[device];
  return (d.used && sampled(*d.used)) || std::any_of(processes_.begin(), processes_.end(), [&](const Process& p) {
           return p.device == device && p.has_series && sampled(p.series);
         });
}

/// The time that add() will give a sample of the device in the same row.
Timestamp LogRows::event_time(Timestamp time, std::size_t device) const {
  const Device& d = devices_[device];
  const Timestamp last = d.used ? series_[index_of(*d.used)].last : kNever;
  time += shift_;
  if (time >= last) return time;
  return last - time <= kClockJitter ? last : newest_ + step_;
}

bool GpuMemory::take(const GpuMemory& more) {
  constexpr std::array kAmounts = {&GpuMemory::used, &GpuMemory::free, &GpuMemory::total, &GpuMemory::allocated,
                                   &GpuMemory::reserved};
  if (percent && more.percent) return false;
  if (std::any_of(kAmounts.begin(), kAmounts.end(), [&](auto amount) { return this->*amount && more.*amount; }))
    return false;
  for (const auto amount : kAmounts)
    if (more.*amount) this->*amount = more.*amount;
  if (more.percent) percent = more.percent;
  grain_bytes = std::max(grain_bytes, more.grain_bytes);
  most_free_bytes = std::max(most_free_bytes, more.most_free_bytes);
  waits_for_total |= more.waits_for_total;
  return true;
}

const char* LogRows::complete(Timestamp time, std::size_t device, GpuMemory& f) {
  Device& d = devices_[device];
  const bool has_amounts = f.used || f.allocated || f.reserved;
  if (d.in_percent && has_amounts) {
    f.used = f.allocated = f.reserved = std::nullopt;
    return "an amount in a log of percentages";
  }
  if (f.total) {
    total(time, device, *f.total);
    d.total_is_sum = false;
  } else if (f.used && f.free && (d.total_bytes == 0 || d.total_is_sum)) {
    // Both are rounded, so their sum varies although the total does not change.
    constexpr std::uint64_t kWavers = 1000;
    const std::uint64_t sum = *f.used + *f.free;
    const std::uint64_t apart = std::max(sum, d.total_bytes) - std::min(sum, d.total_bytes);
    if (apart > std::max(2 * f.grain_bytes, d.total_bytes / kWavers)) total(time, device, sum);
    d.total_is_sum = true;
  }
  if (f.free && !f.used) {
    if (d.total_bytes == 0 && f.most_free_bytes > 0) total(time, device, f.most_free_bytes);
    const std::uint64_t whole = d.total_bytes > 0 ? d.total_bytes : default_capacity_.value_or(0);
    if (f.most_free_bytes == 0 && is_above(*f.free, whole)) return "free memory above the total";
    if (whole > 0) f.used = whole - std::min(whole, *f.free);
  }
  if (!f.used && !has_amounts && f.percent && (!f.waits_for_total || knows_total(device)))
    f.used = used_of_percent(time, device, *f.percent);
  if (!f.used || !is_above(*f.used, d.total_bytes)) return nullptr;
  f.used.reset();
  return kAboveTotal;
}

/// The used memory; nullopt if it is omitted, which is reported.
std::optional<std::uint64_t> LogRows::used_of_percent(Timestamp time, std::size_t device, double percent) {
  constexpr double kMostPercent = 105;  // the tolerance of is_above()
  Device& d = devices_[device];
  if (!(percent >= 0 && percent <= kMostPercent)) {
    skip(line, kAboveTotal);
    return std::nullopt;
  }
  const auto of = [percent](std::uint64_t whole_bytes) {
    return static_cast<std::uint64_t>(std::llround(percent / 100 * static_cast<double>(whole_bytes)));
  };
  if (d.total_bytes > 0) return of(d.total_bytes);
  if (default_capacity_) return of(*default_capacity_);
  if (scale_ && scale_->unit != AmountUnit::percent) {
    warn(
        fmt::format("of GPU {} there is only the percentage of memory in use, beside amounts in bytes: it is not read; "
                    "give the size of its memory with {}",
                    d.id, name_of(Option::capacity)));
    return std::nullopt;
  }
  total(time, device, Scale::kWholeBytes);
  d.in_percent = true;
  return of(Scale::kWholeBytes);
}

bool LogRows::counts_percent() const {
  bool has_any = false;
  for (std::size_t i = 0; i < series_.size(); ++i) {
    const SeriesKey& key = catalog_.key(SeriesId{static_cast<std::uint32_t>(i)});
    if (series_[i].last == kNever || is_fact(key.metric)) continue;
    const auto on =
        std::find_if(devices_.begin(), devices_.end(), [&](const Device& d) { return d.id == key.device_id; });
    if (on == devices_.end() || !on->in_percent) return false;
    has_any = true;
  }
  return has_any;
}

void LogRows::set_total(Timestamp time, std::size_t device, std::uint64_t bytes) {
  if (bytes > kMostBytes) return;
  if (bytes == 0 || devices_[device].in_percent) return;
  const bool first = devices_[device].total_bytes == 0 && !has_samples(device);
  devices_[device].total_bytes = bytes;
  if (!first) {
    Event event;
    event.time = event_time(time, device);
    event.kind = Event::Kind::capacity;
    event.device_id = devices_[device].id;
    event.capacity_bytes = bytes;
    events.push_back(std::move(event));
    return;
  }
  DeviceInfo info;
  info.id = devices_[device].id;
  info.capacity_bytes = bytes;
  catalog_.describe(info);
}

std::size_t LogRows::process(std::size_t device, std::uint32_t pid, std::string_view name, std::string_view kind,
                             std::string_view user, std::string_view command, bool has_bytes) {
  const auto make_series = [&](Process& p) {
    p.series = intern({Metric::process_used, devices_[p.device].id, p.pid, p.ticks});
    p.has_series = true;
  };
  const auto [it, fresh] = pids_.try_emplace(pid);
  Pid& known = it->second;
  for (const std::size_t at : known.listed) {
    Process& p = processes_[at];
    if (p.device == device && p.name == name) {
      if (has_bytes && !p.has_series) make_series(p);
      return at;
    }
  }
  // Ticks distinguish processes that had the same pid: a new one has another name, or starts after the last one ended.
  if (fresh) {
    known.name = name;
  } else if (known.name != name || known.alive == 0) {
    ++known.ticks;
    known.alive = 0;
    known.name = name;
  }
  ++known.alive;

  Process p;
  p.device = device;
  p.pid = pid;
  p.ticks = known.ticks;
  p.name = name;
  if (has_bytes) {
    make_series(p);
  } else {
    bytes_withheld_ = true;
    catalog_.devices_withholding.insert(devices_[device].id);
  }
  ProcessInfo info;
  info.pid = pid;
  info.start_ticks = known.ticks;
  info.user = user;
  info.command = std::string((command.empty() ? name : command).substr(0, kCommandBytes));
  info.name = short_name(name);
  info.kind = kind;
  info.framework = recognise_framework(info.command, info.name, {});
  catalog_.describe(info);
  processes_.push_back(std::move(p));
  alive_.push_back(processes_.size() - 1);
  known.listed.push_back(processes_.size() - 1);
  keeps_text(name.size() + user.size() + kind.size());
  return processes_.size() - 1;
}

void LogRows::no_reading(std::size_t device, std::string_view cell) {
  const CellError error = cell_error(cell);
  if (error == CellError::none) return;
  if (unread_++ == 0) first_unread_ = fmt::format("{}:{}: '{}'", file_, line, logtext::excerpt(cell, kQuoted));
  if (error == CellError::gpu_lost && newest_ != kNever) end_readings({devices_[device].id}, cell);
}

void LogRows::exceeds_capacity(SeriesId series, std::uint64_t bytes) {
  for (Device& d : devices_)
    if (d.used == series && d.total_bytes == 0) d.over_bytes = std::max(d.over_bytes, bytes);
}

bool LogRows::SeriesState::is_merged(bool counts) const {
  constexpr std::uint64_t kFewest = 3;
  constexpr std::uint64_t kOften = 3;
  constexpr std::uint64_t kSeldom = 10;
  constexpr double kMostly = 0.6;
  constexpr double kAsMuch = 0.75;
  if (shared < kFewest || shared * kOften < times || times < kFewest) return false;
  const bool has_direction = std::abs(within) >= kMostly * path;
  if (has_direction && within * between < 0) {  // it goes back from one time to the next by as much as forth at each
    const double back = std::abs(between / within);
    if (back > kAsMuch && back < 1 / kAsMuch) return true;
  }
  if (has_direction && within * between >= 0) return false;  // it goes on: one GPU that grows
  if (counts) return true;
  using std::chrono::seconds;
  constexpr std::array kGrains = {seconds{86'400}, seconds{3600}, seconds{300}, seconds{60}};
  const auto grain = std::find_if(kGrains.begin(), kGrains.end(), [&](Duration one) {
    return first.time_since_epoch() % one == Duration{} && last.time_since_epoch() % one == Duration{};
  });
  return grain == kGrains.end() ? close * kSeldom <= times : shortest >= grain->count() * kSureGap;
}

std::string LogRows::merged(MergedOf of) const {
  if (are_events_) return {};
  const bool counts = scale_ && scale_->counts_steps();
  for (std::size_t i = 0; i < series_.size(); ++i) {
    const SeriesKey& key = catalog_.key(SeriesId{static_cast<std::uint32_t>(i)});
    if (is_fact(key.metric) || (of == MergedOf::gpus && key.metric == Metric::process_used)) continue;
    if (!series_[i].is_merged(counts)) continue;
    return fmt::format(
        "the readings of '{}'{} often have several amounts at one {}: they are of several GPUs or programs that cannot "
        "be told apart{}; record what names each, such as the index or uuid of its GPU, its host or its pod",
        key.device_id, key.pid != 0 ? fmt::format(", pid {},", key.pid) : std::string(), counts ? scale_->step : "time",
        counts ? ", or of phases of one" : "");
  }
  return {};
}

void LogRows::warn_at_end() {
  if (std::string why = merged(); !why.empty()) warn(std::move(why));
  for (const Device& d : devices_)
    if (d.over_bytes > 0)
      warn(fmt::format("{}{}: up to {} are in use, more than the {} that {} says; give the memory of the whole GPU",
                       d.id.starts_with("GPU") ? "" : "GPU ", d.id, format_bytes(static_cast<double>(d.over_bytes)),
                       format_bytes(static_cast<double>(*default_capacity_)), name_of(Option::capacity)));
  if (unread_ > 0)
    warn(fmt::format("{} row{} not read, because {} an error in place of the used memory; the first: {}", unread_,
                     unread_ == 1 ? " was" : "s were", unread_ == 1 ? "it has" : "they have", first_unread_));
  const auto withheld =
      std::count_if(processes_.begin(), processes_.end(), [](const Process& p) { return !p.has_series; });
  if (withheld == 0) return;
  warn(
      fmt::format("memory of {} process{} was not available ([N/A]), as on WSL, with Windows' WDDM and of MIG "
                  "instances: what {} is not known",
                  withheld, withheld == 1 ? "" : "es", withheld == 1 ? "it holds" : "they hold"));
}

void LogRows::end_unseen(std::size_t device, double clock_s, Timestamp time) {
  catalog_.processes_are_listed = !bytes_withheld_;
  for (std::size_t i = 0; i < alive_.size();) {
    Process& p = processes_[alive_[i]];
    if ((device != kEveryDevice && p.device != device) || p.seen_s >= clock_s) {
      ++i;
      continue;
    }
    p.ended = true;
    const auto pid = pids_.find(p.pid);
    if (pid != pids_.end()) {
      if (pid->second.ticks == p.ticks && pid->second.alive > 0) --pid->second.alive;
      std::erase(pid->second.listed, alive_[i]);
    }
    if (p.has_series) {
      Event event;
      event.time = std::max(time + shift_, newest_);
      event.kind = Event::Kind::process_ended;
      event.device_id = devices_[p.device].id;
      event.pid = p.pid;
      event.pid_start_ticks = p.ticks;
      event.ran_out_of_memory = p.ran_out_s == p.seen_s;
      event.killed_by_host = p.killed_s == p.seen_s;
      events.push_back(std::move(event));
    }
    alive_[i] = alive_.back();
    alive_.pop_back();
  }
}

/// The log's only device, else the one with the index that the message names; empty if unknown.
std::string LogRows::device_of_message(std::string_view message) const {
  if (devices_.size() == 1) return devices_.front().id;
  const std::optional<int> index = gpu_of_message(message);
  for (const Device& device : devices_)
    if (const DeviceInfo* info = catalog_.device(device.id); index && info != nullptr && info->index == index)
      return device.id;
  return {};
}

/// A time after the newest reading, because an event must not precede its samples.
Timestamp LogRows::time_of_message() const {
  return std::max(message_, newest_ + Duration{1});
}

void LogRows::out_of_memory(std::string_view message) {
  if (newest_ == kNever) return;
  if (newest_ != out_of_memory_) reported_out_of_memory_.clear();
  out_of_memory_ = newest_;
  std::string device = device_of_message(message);
  // If the log does not give the device's total memory, the message may.
  const auto named = std::find_if(devices_.begin(), devices_.end(), [&](const Device& d) { return d.id == device; });
  if (named != devices_.end() && named->total_bytes == 0 && !default_capacity_)
    if (const auto bytes = total_of_message(message))
      set_total(newest_ - shift_, static_cast<std::size_t>(named - devices_.begin()), *bytes);
  Process* const failed = process_of_message(message, device);
  limit_of_program(message, device, failed);
  if (std::find(reported_out_of_memory_.begin(), reported_out_of_memory_.end(), device) !=
      reported_out_of_memory_.end())
    return;
  reported_out_of_memory_.push_back(device);
  Event event;
  event.time = time_of_message();
  event.kind = Event::Kind::out_of_memory;
  event.device_id = std::move(device);
  if (failed != nullptr) {
    event.pid = failed->pid;
    event.pid_start_ticks = failed->ticks;
    failed->ran_out_s = failed->seen_s;
  }
  const std::string why = why_out_of_memory(message);
  event.text = fmt::format("{}:{}: the memory of a GPU ran out: {}{}{}", file_, line, why,
                           why.empty() ? "" : "; it said: ", logtext::excerpt(logtext::trim(message), kQuoted));
  events.push_back(std::move(event));
}

/// The process that the message names as failed, else the only one that is listed on the device and not named as
/// another; nullptr: unknown.
LogRows::Process* LogRows::process_of_message(std::string_view message, const std::string& device_id) {
  const NamedProcesses named = processes_of_message(message);
  Process* only = nullptr;
  std::size_t count = 0;
  for (const std::size_t at : alive_) {
    Process& p = processes_[at];
    if (!p.has_series || (!device_id.empty() && devices_[p.device].id != device_id)) continue;
    if (p.pid == named.own) return &p;
    if (std::find(named.others.begin(), named.others.end(), p.pid) != named.others.end()) continue;
    only = &p;
    ++count;
  }
  return count == 1 ? only : nullptr;
}

/// If a log lists no processes, the limit applies to the program that the log is about.
void LogRows::limit_of_program(std::string_view message, const std::string& device_id, const Process* failed) {
  const auto limit = device_id.empty() ? std::nullopt : limit_of_message(message);
  if (!limit) return;
  const auto device =
      std::find_if(devices_.begin(), devices_.end(), [&](const Device& d) { return d.id == device_id; });
  if (device == devices_.end() || device->in_percent) return;
  const auto is_on_it = [&](std::size_t at) {
    return processes_[at].has_series && devices_[processes_[at].device].id == device_id;
  };
  if (failed == nullptr && std::any_of(alive_.begin(), alive_.end(), is_on_it)) return;
  Event wall;
  wall.time = time_of_message();
  wall.kind = Event::Kind::capacity;
  wall.device_id = device_id;
  wall.text = limit->name;
  wall.capacity_bytes = limit->bytes;
  std::optional<SeriesId> counted;
  if (failed != nullptr) {
    wall.pid = failed->pid;
    wall.pid_start_ticks = failed->ticks;
    counted = failed->series;
  } else if (!device->has_allocator) {
    counted = device->used;
  }
  // Memory that the limit does not count comes on top: a process has a context, and a device has other programs.
  if (counted) {
    const std::uint64_t bytes = series_[index_of(*counted)].bytes;
    wall.capacity_bytes += bytes - std::min(bytes, limit->held_bytes);
  }
  // A traceback repeats its message.
  for (auto reported = events.rbegin(); reported != events.rend() && reported->time == wall.time; ++reported)
    if (reported->kind == wall.kind && reported->pid == wall.pid && reported->device_id == device_id &&
        reported->text == wall.text)
      return;
  std::erase_if(limits_, [&wall](const Event& known) {
    return known.pid == wall.pid && known.pid_start_ticks == wall.pid_start_ticks &&
           known.device_id == wall.device_id && known.text == wall.text;
  });
  limits_.push_back(wall);
  events.push_back(std::move(wall));
}

/// A process above its limit shows that the limit no longer applies: its program was restarted with another one.
void LogRows::exceeds_limit(Timestamp time, SeriesId series, std::uint64_t bytes) {
  constexpr double kExceeds = 1.01;
  const SeriesKey& key = catalog_.key(series);
  const auto is_counted = [&](const Event& limit) {
    if (key.device_id != limit.device_id) return false;
    if (limit.pid != 0)
      return key.metric == Metric::process_used && key.pid == limit.pid && key.pid_start_ticks == limit.pid_start_ticks;
    const bool is_allocator = key.metric == Metric::allocator_allocated || key.metric == Metric::allocator_reserved;
    if (is_allocator) return true;
    const auto device =
        std::find_if(devices_.begin(), devices_.end(), [&](const Device& d) { return d.id == key.device_id; });
    return key.metric == Metric::device_used && device != devices_.end() && !device->has_allocator;
  };
  std::erase_if(limits_, [&](Event& limit) {
    if (static_cast<double>(bytes) <= kExceeds * static_cast<double>(limit.capacity_bytes) || !is_counted(limit))
      return false;
    limit.time = time;
    limit.capacity_bytes = 0;
    events.push_back(std::move(limit));
    return true;
  });
}

void LogRows::program_ended(std::string_view message) {
  if (newest_ == kNever) return;
  const bool by_host = reports_host_kill(message);
  const std::string device = device_of_message(message);
  if (by_host) host_killed(message);
  if (newest_ == program_ended_ && (ended_by_host_ || !by_host)) return;
  program_ended_ = newest_;
  ended_by_host_ = by_host;
  Event event;
  event.device_id = device;
  event.time = time_of_message();
  event.kind = Event::Kind::process_ended;
  event.killed_by_host = by_host;
  event.text =
      fmt::format("{}:{}: a program ended: {}", file_, line, logtext::excerpt(logtext::trim(message), kQuoted));
  events.push_back(std::move(event));
}

void LogRows::host_killed(std::string_view message) {
  const std::uint32_t pid = pid_killed(message);
  std::set<std::uint32_t> listed;
  for (const std::size_t at : alive_) listed.insert(processes_[at].pid);
  for (const std::size_t at : alive_)
    if (processes_[at].pid == pid || (pid == 0 && listed.size() == 1)) processes_[at].killed_s = processes_[at].seen_s;
}

void LogRows::device_lost(std::string_view message) {
  if (newest_ == kNever) return;
  std::vector<std::string> device_ids;
  const std::string low = logtext::lower(message);
  const auto names = [&](const Device& device) {
    constexpr std::size_t kBusDigits = std::string_view("0000:01:00.0").size();  // the domain has 4 or 8 digits
    const DeviceInfo* const info = catalog_.device(device.id);
    if (info == nullptr || info->pci_bus_id.size() < kBusDigits) return false;
    return low.find(logtext::lower(info->pci_bus_id).substr(info->pci_bus_id.size() - kBusDigits)) != std::string::npos;
  };
  for (const Device& device : devices_)
    if (names(device)) device_ids.push_back(device.id);
  if (const std::string known = device_ids.empty() ? device_of_message(message) : std::string(); !known.empty())
    device_ids.push_back(known);
  if (device_ids.empty())
    for (const Device& device : devices_) device_ids.push_back(device.id);
  end_readings(std::move(device_ids), message);
}

void LogRows::end_readings(std::vector<std::string> devices, std::string_view message) {
  std::string text = fmt::format("{}:{}: readings stopped because a GPU was lost: {}", file_, line,
                                 logtext::excerpt(logtext::trim(message), kQuoted));
  for (std::string& id : devices) {
    if (std::find(lost_.begin(), lost_.end(), id) != lost_.end()) continue;
    Event event;
    event.time = time_of_message();
    event.kind = Event::Kind::device_lost;
    event.device_id = id;
    event.text = std::exchange(text, {});
    events.push_back(std::move(event));
    lost_.push_back(std::move(id));
  }
}

void LogRows::resume(Timestamp time, SeriesId series) {
  const std::string& id = catalog_.key(series).device_id;
  const auto lost = std::find(lost_.begin(), lost_.end(), id);
  if (lost == lost_.end()) return;
  Event event;
  event.time = std::max(time + shift_, newest_);
  event.kind = Event::Kind::device_resumed;
  event.device_id = id;
  event.text = fmt::format("{}:{}: it is read again", file_, line);
  events.push_back(std::move(event));
  lost_.erase(lost);
}

Timestamp LogRows::out_of_order(Timestamp time, SeriesId series) {
  const Timestamp last = series_[index_of(series)].last;
  if (time >= last) {
    // Another series was ahead: the rows interleave loosely, or the file lists one series after another.
    disorder_ = std::max(disorder_, newest_ - time);
    if (newest_ - time > kInterleaving && !blocks_) {
      blocks_ = true;
      if (watch_)
        refuse(fmt::format(
            "{}:{}: one series is listed after another, and input that is read only once cannot be sorted; write "
            "{} to a file and analyse that, or sort it by its time column",
            file_, line, file_));
    }
    return time;
  }
  if (last - time <= kClockJitter) return last;
  if (++steps_back_ == 1) first_step_back_ = line;
  // Each check sorts all stretches, so check only at the 1st, 2nd, 4th, 8th... step, and at the end of the log.
  if (watch_ && std::has_single_bit(steps_back_)) refuse_other_order();
  if (newest_ - time > kLongestShift - shift_) {
    warn(fmt::format("{}:{}: time goes back by more than a lifetime; such rows get the time of the row before", file_,
                     line));
    return newest_;
  }
  const double back_s = seconds_between(time, last);
  if (scale_ && scale_->counts_steps())
    warn(
        fmt::format("{}:{}: the count of {}s goes back by {:.0f}, as if another run began: its rows follow those "
                    "before it; analyse "
                    "each run separately to have a verdict of it alone",
                    file_, line, scale_->step, back_s / scale_->step_s));
  else
    warn(fmt::format(
        "{}:{}: time goes back by {:.0f} s (a clock was set, or recordings were joined): the rows that follow are read "
        "as continuing from there; if the log was written in another time zone, name it with {}",
        file_, line, back_s, name_of(Option::timezone)));
  const Duration by = (newest_ - time) + step_;
  shift_ += by;
  time += by;
  newest_ = time;
  return time;
}

/// Refuses the log unless a clock that was set explains the backward steps so far, as it must in a log read as written.
void LogRows::refuse_other_order() {
  if (StretchSurvey(*watch_).order() == LogOrder::as_written) return;
  refuse(
      fmt::format("{}:{}: time goes back, here or further on, but not as if a clock was set: the rows are not in order "
                  "of time, and input that is read only once cannot be sorted; write {} to a file and analyse that, or "
                  "sort it by its time column",
                  file_, first_step_back_, file_));
}

void LogRows::continue_in(std::string file) {
  file_ = std::move(file);
  line = 0;
  for (const std::size_t at : alive_) processes_[at].seen_s = 0;
}

void LogRows::skip(std::uint64_t at_line, std::string_view reason) {
  ++notes_.skipped_lines;
  if (notes_.first_skipped.size() < kNamedSkips)
    notes_.first_skipped.push_back(fmt::format("{}:{}: {}", file_, at_line, reason));
}

void LogRows::warn(std::string text) {
  if (notes_.warnings.size() >= kWarnings) return;
  if (std::find(notes_.warnings.begin(), notes_.warnings.end(), text) == notes_.warnings.end())
    notes_.warnings.push_back(std::move(text));
}

}  // namespace vramtrack
