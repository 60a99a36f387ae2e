#include "live/progress_rounds.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "host/process.hpp"

namespace vramtrack {
namespace {

/// The time between two rounds if stalls are not detected.
constexpr double kFactsPace_s = 30;

std::uint64_t busy_value(double ratio) {
  return static_cast<std::uint64_t>(std::llround(std::clamp(ratio, 0.0, 1.0) * kBusyWhole));
}

}  // namespace

double ProgressRounds::pace_s() const {
  return config_.minutes > 0 ? config_.look_s() : kFactsPace_s;
}

void ProgressRounds::collect_busy(const Catalog& catalog, const Batch& batch) {
  ++polls_;
  for (const DeviceReading& reading : batch.readings)
    if (reading.gpu_utilisation_ratio && reading.host.empty()) {
      Busy& busy = device_busy_[reading.device_id];
      busy.sum += *reading.gpu_utilisation_ratio;
      busy.reported = true;
    }
  for (const ProcessReading& reading : batch.loads)
    if (reading.load.gpu_ratio && catalog.holds(reading.series)) {
      Busy& busy = process_busy_[index_of(reading.series)];
      busy.sum += *reading.load.gpu_ratio;
      busy.reported = true;
    }
}

/// A driver that once reported how busy a process is does not list it while it does nothing.
void ProgressRounds::add_busy(Catalog& catalog, Timestamp now, Batch& batch) {
  const auto polls = static_cast<double>(std::max<std::size_t>(polls_, 1));
  for (auto& [device_id, busy] : device_busy_) {
    if (busy.reported)
      batch.samples.push_back(
          {now, catalog.intern({Metric::device_busy, device_id, 0, 0}), busy_value(busy.sum / polls)});
    busy = {};
  }
  for (auto it = process_busy_.begin(); it != process_busy_.end();) {
    const auto memory = static_cast<SeriesId>(it->first);
    if (!catalog.holds(memory)) {
      it = process_busy_.erase(it);
      continue;
    }
    const SeriesKey key = catalog.key(memory);
    if (holds_.contains({key.pid, key.pid_start_ticks}))
      batch.samples.push_back({now, catalog.intern({Metric::process_busy, key.device_id, key.pid, key.pid_start_ticks}),
                               busy_value(it->second.sum / polls)});
    (it++)->second = {};
  }
  polls_ = 0;
}

void ProgressRounds::add_age(Catalog& catalog, Timestamp now, Batch& batch) {
  std::erase_if(aged_, [this](const Process& process) { return !holds_.contains(process); });
  std::optional<double> up_s;
  for (const auto& [process, holding] : holds_) {
    if (aged_.contains(process)) continue;
    if (!up_s) up_s = machine_uptime_s(proc_root_);
    if (!up_s) return;
    aged_.insert(process);
    batch.samples.push_back({now,
                             catalog.intern({Metric::process_age, holding.device_id, process.first, process.second}),
                             static_cast<std::uint64_t>(process_age_s(*up_s, process.second))});
  }
}

void ProgressRounds::add_read(Catalog& catalog, const ProgressReading& reading, Batch& batch) {
  const auto held = holds_.find({reading.pid, reading.pid_start_ticks});
  if (held == holds_.end()) return;
  const auto add = [&](Metric metric, std::uint64_t value) {
    const SeriesKey key{metric, held->second.device_id, reading.pid, reading.pid_start_ticks};
    batch.samples.push_back({reading.time, catalog.intern(key), value});
  };
  if (reading.progress.read_bytes) add(Metric::process_read, *reading.progress.read_bytes);
  if (const auto& listening = reading.progress.listening; listening && !listening->ports.empty())
    add(Metric::process_clients, listening->clients);
}

void ProgressRounds::add_held(Timestamp now, Batch& batch) {
  if (!held_) return;
  HeldProcesses held = held_();
  const auto add = [&](Event::Kind kind, const Process& process, std::string text) {
    batch.events.push_back(Event{
        .time = now, .kind = kind, .pid = process.first, .pid_start_ticks = process.second, .text = std::move(text)});
  };
  for (const auto& [process, words] : reported_held_)
    if (!held.contains(process))
      add(Event::Kind::let_go, process, fmt::format("pid {} is no longer held by a policy", process.first));
  for (const auto& [process, words] : held)
    if (!reported_held_.contains(process)) add(Event::Kind::held, process, words);
  reported_held_ = std::move(held);
}

bool ProgressRounds::add(Catalog& catalog, Timestamp now, Batch& batch) {
  collect_busy(catalog, batch);
  add_held(now, batch);
  // The clock may have been set back.
  if (now < next_ && now >= last_) return false;
  holds_.clear();
  for (const Sample& sample : batch.samples) {
    const SeriesKey& key = catalog.key(sample.series);
    if (key.metric != Metric::process_used || key.pid == 0 || key.pid_start_ticks == 0 || !key.host.empty()) continue;
    Holding& holding = holds_[{key.pid, key.pid_start_ticks}];
    holding.bytes += sample.bytes;
    if (holding.device_id.empty() || key.device_id < holding.device_id) holding.device_id = key.device_id;
  }
  const double least_bytes = config_.min_memory_bytes();
  asked_.clear();
  for (const auto& [process, holding] : holds_) {
    const ProcessInfo* const info = catalog.process(process.first, process.second);
    if (info != nullptr && static_cast<double>(holding.bytes) >= least_bytes) asked_.push_back(*info);
  }
  readings_.clear();
  reader_.read(asked_, now, readings_);
  add_busy(catalog, now, batch);
  add_age(catalog, now, batch);
  for (ProgressReading& reading : readings_) {
    reading.progress.held_by_policy = reported_held_.contains({reading.pid, reading.pid_start_ticks});
    add_read(catalog, reading, batch);
  }
  if (config_.minutes > 0)
    batch.progress.insert(batch.progress.end(), std::make_move_iterator(readings_.begin()),
                          std::make_move_iterator(readings_.end()));
  last_ = now;
  next_ = now + from_seconds(pace_s());
  return true;
}

}  // namespace vramtrack
