#include "engine/endings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "core/format.hpp"
#include "core/units.hpp"
#include "engine/engine_core.hpp"

namespace vramtrack {
namespace {

/// Smaller falls are no end of what explains a device's growth: such a process holds more than this share of it.
constexpr double kLeastFall = 0.1;
/// A process that has given back all it held but for less than this has ended: a living one keeps at least its context,
/// and no CUDA context is as small.
constexpr double kLeastContext_bytes = 128 * kMiB;
/// A process that held this share of what was used is the run of its device.
constexpr double kMostOfIt = 0.5;
constexpr double kNearLimit = 0.1;    ///< of the limit, was free
constexpr double kOutOfMemory = 0.1;  ///< of what was free at the onset, is still free
/// A run that is missing for longer than so many periods was not watched: what it did then is nobody's guess.
constexpr double kMostUnseenPeriods = 2;

/// Whether the device's process is still listed after the fall.
bool lives(const SeriesState& process, Timestamp tick) {
  return !process.ended && process.last_time == tick && process.last_bytes > 0;
}

void take_growth(End& end, const Finding& finding) {
  if (!grows(finding)) return;
  end.growth_bytes_per_s = finding.growth_bytes_per_s.mid;
  end.onset = finding.onset;
}

std::string reason_of(const End& end) {
  const std::string who = end.pid != 0 ? fmt::format("pid {}", end.pid) : "its process";
  switch (end.how) {
    case EndKind::out_of_memory:
      return fmt::format("memory ran out at {}, and {} ended", format_bytes(static_cast<double>(end.used_bytes)), who);
    case EndKind::ended_near_limit:
      return fmt::format("{} ended near the limit, at {}", who, format_bytes(static_cast<double>(end.used_bytes)));
    case EndKind::ended:
      break;
  }
  return who + " ended, and its memory was released";
}

}  // namespace

EndKind end_kind(const LastFigures& last) {
  if (!last.limit_bytes || *last.limit_bytes <= 0) return EndKind::ended;
  const double free_bytes = *last.limit_bytes - last.used_bytes;
  if (last.growth_bytes_per_s && last.onset_bytes) {
    const double unseen_bytes = std::max(0.0, *last.growth_bytes_per_s) * last.unseen_s;
    if (free_bytes - unseen_bytes <= kOutOfMemory * (*last.limit_bytes - *last.onset_bytes))
      return EndKind::out_of_memory;
  }
  return free_bytes <= kNearLimit * *last.limit_bytes ? EndKind::ended_near_limit : EndKind::ended;
}

void Engine::Core::notice_fall(const SeriesState& s, const Sample& sample) {
  if (s.key.metric != Metric::device_used || s.samples == 0 || !s.detector || sample.time <= s.last_time) return;
  if (static_cast<double>(sample.bytes) >= (1 - kLeastFall) * static_cast<double>(s.last_bytes)) return;
  Fall fall;
  fall.device = s.id;
  fall.before = verdict(s);
  fall.end.time = s.last_time;
  fall.end.used_bytes = s.last_bytes;
  take_growth(fall.end, fall.before.finding);
  fall.last = last_figures(s, fall.end);
  falls.push_back(std::move(fall));
}

/// Once the tick is whole: whether a process is still listed is known then.
void Engine::Core::conclude_falls() {
  for (const Fall& fall : falls)
    if (SeriesState* device = series.find(fall.device); device != nullptr)
      if (auto found = end_by_fall(*device, fall)) {
        device_ends(*device, std::move(*found));
        // It is not listed any more; a log of processes may say so much later, or end before.
        const End& its = *device->last_end;
        if (its.pid != 0)
          series.for_process({its.pid, its.pid_start_ticks, device->key.host}, [&](SeriesState& s) {
            if (!s.ended && s.key.device_id == device->key.device_id) end(s, {});
          });
      }
  falls.clear();
}

std::optional<End> Engine::Core::end_by_fall(const SeriesState& device, const Fall& fall) const {
  if (device.last_end && device.last_end->time >= fall.end.time) return std::nullopt;  // told with its process's end
  End end = fall.end;
  end.how = end_kind(fall.last);
  const double fallen = fall.last.used_bytes - static_cast<double>(device.last_bytes);

  const SeriesState* suspect = nullptr;
  const SeriesState* most = nullptr;
  series.for_device(device_key(device.key), [&](const SeriesState& s) {
    if (s.key.metric != Metric::process_used || s.key.pid == 0) return;
    if (fall.before.suspect && s.key.pid == fall.before.suspect->pid &&
        s.key.pid_start_ticks == fall.before.suspect->pid_start_ticks)
      suspect = &s;
    // Who ended earlier did not make this fall.
    const bool was_there = !s.ended || (s.final_verdict.end && s.final_verdict.end->time >= fall.end.time);
    if (was_there && (most == nullptr || s.last_bytes > most->last_bytes)) most = &s;
  });
  const SeriesState* who = suspect;
  if (who == nullptr && most != nullptr && static_cast<double>(most->last_bytes) >= kMostOfIt * fall.last.used_bytes)
    who = most;
  if (who != nullptr) {
    if (lives(*who, tick)) return std::nullopt;  // it gave the memory back
    if (!who->ended && fallen < static_cast<double>(who->last_bytes) - kLeastContext_bytes) return std::nullopt;
    name(end, *who);
    return end;
  }
  // Nobody visible: what is left must be no more than a driver keeps, or the run ended where memory does.
  const double idle = device.device->idle_bytes();
  const auto left = static_cast<double>(device.last_bytes);
  const bool all_gone = left <= idle && fall.last.used_bytes > idle;
  const bool growth_gone = end.how != EndKind::ended && fall.last.onset_bytes && left <= *fall.last.onset_bytes;
  if (all_gone || growth_gone) return end;
  return std::nullopt;
}

void Engine::Core::name(End& end, const SeriesState& process) const {
  end.pid = process.key.pid;
  end.pid_start_ticks = process.key.pid_start_ticks;
  if (const ProcessInfo* info = catalog.process(process_key(process.key)))
    end.command = info->command.empty() ? info->name : info->command;
}

/// By the process's own figures. `said`: what the source says of how it ended.
End Engine::Core::end_of_process(const SeriesState& s, const std::string& said) const {
  End end;
  end.time = s.last_time;
  end.used_bytes = s.last_bytes;
  name(end, s);
  if (s.detector) take_growth(end, s.detector->finding());
  end.how = said == Event::kOutOfMemory ? EndKind::out_of_memory : end_kind(last_figures(s, end));
  return end;
}

void Engine::Core::process_ends(SeriesState& s, const std::string& said) {
  End its = end_of_process(s, said);
  SeriesState* const device = series.device_of(s).used;
  if (device != nullptr && s.key.metric == Metric::process_used) {
    const auto is_its_end = [&] {
      return device->last_end && device->last_end->pid == its.pid &&
             device->last_end->pid_start_ticks == its.pid_start_ticks;
    };
    if (!is_its_end()) end_device_with(*device, s, its);
    // How much the device had left tells more than what was left to the process.
    if (is_its_end()) its.how = device->last_end->how = std::max(its.how, device->last_end->how);
  }
  s.end(std::move(its));
}

/// The process's end is its device's where it is the one that grew or held most. REQUIRES: it is not marked as ended
/// yet.
void Engine::Core::end_device_with(SeriesState& device, const SeriesState& process, const End& its) {
  if (!device.detector || device.samples == 0 || device.last_bytes < process.last_bytes) return;
  End end = its;
  end.time = device.last_time;
  end.used_bytes = device.last_bytes;
  end.growth_bytes_per_s.reset();
  end.onset.reset();
  if (device.alerting || device.detector->alerting()) {
    const Verdict before = verdict(device);
    if (!before.suspect || before.suspect->pid != its.pid || before.suspect->pid_start_ticks != its.pid_start_ticks)
      return;
    take_growth(end, before.finding);
    end.how = std::max(its.how, end_kind(last_figures(device, end)));
  } else if (static_cast<double>(process.last_bytes) < kMostOfIt * static_cast<double>(device.last_bytes)) {
    return;
  }
  device_ends(device, std::move(end));
}

LastFigures Engine::Core::last_figures(const SeriesState& s, const End& end) const {
  LastFigures last;
  last.used_bytes = static_cast<double>(end.used_bytes);
  last.limit_bytes = s.limit_bytes;
  last.growth_bytes_per_s = end.growth_bytes_per_s;
  if (end.growth_bytes_per_s)
    if (const auto then = s.history.at(end.onset.value_or(s.first_time)))
      last.onset_bytes = static_cast<double>(then->min_bytes);
  last.unseen_s = std::min(seconds_between(end.time, tick), kMostUnseenPeriods * s.period.median_s());
  return last;
}

void Engine::Core::device_ends(SeriesState& device, End end) {
  device.last_end = std::move(end);
  const bool has_fallen = device.last_bytes < device.last_end->used_bytes;
  device.floor_since_end = has_fallen ? device.last_bytes : std::numeric_limits<std::uint64_t>::max();
  device.samples_since_end = has_fallen ? 1 : 0;
  if (device.alerting) clear(device, AlertEnd::process_ended, reason_of(*device.last_end));
}

/// What was concluded from growth before the end is about a run that is over, until the series is as high again.
void Engine::Core::leave_the_past(const SeriesState& device, Verdict& v) const {
  if (!device.last_end) return;
  const End& end = *device.last_end;
  const auto is_past = [&](const Finding& f) {
    return grows(f) && (!f.onset || *f.onset <= end.time) && device.last_bytes < end.used_bytes;
  };
  const auto forget = [&](Finding& f) {
    const DetectionConfig& c = config.detection;
    const bool flat = device.last_bytes <= device.floor_since_end + static_cast<std::uint64_t>(c.min_growth_mb * kMiB);
    const bool long_enough = device.samples_since_end >= static_cast<std::uint64_t>(c.minimum_samples) &&
                             seconds_between(end.time, device.last_time) >= c.minimum_duration_minutes * 60;
    Finding now;
    now.detector = f.detector;
    now.confidence = kUnknownConfidence;
    now.state = flat && long_enough ? State::steady : State::too_short;
    now.because = fmt::format("the growth ended with the run that made it; {}",
                              now.state == State::steady ? "memory has not grown since"
                                                         : "too little has been seen since to tell what comes");
    f = std::move(now);
  };
  if (is_past(v.finding)) {
    forget(v.finding);
    v.severity = Severity::ok;
  }
  for (Finding& dissent : v.dissent)
    if (is_past(dissent)) forget(dissent);
  if (!v.finding.leak) v.end = end;
}

}  // namespace vramtrack
