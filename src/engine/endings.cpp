#include "engine/endings.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/format.hpp"
#include "core/units.hpp"
#include "engine/engine_core.hpp"

namespace vramtrack {
namespace {

/// A smaller fall is not the end of the process that explains a device's growth: that one holds more than this share.
constexpr double kLeastFall = 0.1;
/// A process that has given back all it held, except for less than this, has ended: a living one keeps at least its
/// context, and no CUDA context is that small.
constexpr double kLeastContext_bytes = 128 * kMiB;
/// A process that held this share of the used memory is the run of its device.
constexpr double kMostOfIt = 0.5;
/// The share of the limit that no program can allocate, because it is fragmented or the driver needs it.
constexpr double kUnusable = 0.03;
constexpr double kNearLimit = 0.1;    ///< at most this share of the limit was free
constexpr double kOutOfMemory = 0.1;  ///< at most this share of what was free at the onset is still free
/// A process that has been silent for this many of its periods is no longer listed. One period is normal, and two
/// programs that list with the same period do not do so at the same moment.
constexpr double kOverduePeriods = 1.5;
constexpr double kDuePeriods = 0.9;  ///< for a process that is listed at the moments of its device's readings
/// A run that is missing for longer than this many periods was not watched: what it did then is unknown.
constexpr double kMostUnseenPeriods = 2;

void take_growth(End& end, const SeriesState& series, const Finding& finding) {
  if (!grows(finding)) return;
  end.growth_bytes_per_s = finding.growth_bytes_per_s.mid;
  end.onset = finding.onset;
  // The onset is estimated anew with each sample; it cannot be later than the alert.
  if (end.onset && series.alerting) end.onset = std::min(*end.onset, series.alerts.back().raised);
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

/// A program's own report is better evidence than any level. If its device leaked, the leak ended there: what continues
/// is judged anew.
void Engine::Core::hear_out_of_memory(const Event& event) {
  const auto hear = [&](SeriesState& s) {
    if (s.key.metric != Metric::device_used || s.samples == 0 || !s.detector) return;
    s.said_out_of_memory = event.time;
    const Verdict v = verdict(s);
    if (!v.finding.leak) return;
    End end = end_at(s);
    end.how = EndKind::out_of_memory;
    take_growth(end, s, v.finding);
    std::uint64_t process_bytes = s.last_bytes;
    series.for_device(device_key(s.key), [&](const SeriesState& process) {
      if (!process.is(v.suspect)) return;
      name(end, process);
      process_bytes = process.last_bytes;
    });
    device_ends(s, std::move(end), process_bytes);
  };
  if (event.device_id.empty())
    series.for_host(event.host, hear);
  else
    series.for_device({event.device_id, event.host}, hear);
}

void Engine::Core::notice_fall(SeriesState& s, const Sample& sample) {
  if (sample.bytes >= s.last_bytes || s.key.metric != Metric::device_used || !s.detector) return;
  if (s.samples == 0 || sample.time <= s.last_time) return;
  End end = end_at(s);
  if (static_cast<double>(sample.bytes) >= (1 - kLeastFall) * static_cast<double>(end.used_bytes)) return;
  if (is_falling(s)) return;  // part of a fall that is already followed
  Fall fall;
  fall.device = s.id;
  fall.seen = sample.time;
  fall.lowest_bytes = sample.bytes;
  fall.end = std::move(end);
  if (is_rest_of_release(s, sample.time)) {
    if (s.last_end->growth_bytes_per_s) close_run(s);
    fall.told = true;
    fall.last.used_bytes = static_cast<double>(fall.end.used_bytes);
    falls.push_back(std::move(fall));
    return;
  }
  fall.before = verdict(s);
  take_growth(fall.end, s, fall.before.finding);
  fall.last = last_figures(s, fall.end);
  falls.push_back(std::move(fall));
}

/// The level from which the series has fallen in its last samples, and when that was.
End Engine::Core::end_at(const SeriesState& s) const {
  const bool has_fallen = s.top_bytes > s.last_bytes + no_growth_bytes();
  End end;
  end.time = has_fallen ? s.top_time : s.last_time;
  end.used_bytes = has_fallen ? s.top_bytes : s.last_bytes;
  return end;
}

/// Whether a fall at `time` was already reported, with its process's end or as the start of the same release.
bool Engine::Core::is_rest_of_release(const SeriesState& device, Timestamp time) const {
  if (!device.last_end) return false;
  const bool has_risen = device.last_bytes > device.floor_since_end + no_growth_bytes();
  return held_since_end(device) || (!has_risen && seconds_between(device.last_end->time, time) <= device.release_s());
}

bool Engine::Core::is_falling(const SeriesState& device) const {
  return std::any_of(falls.begin(), falls.end(),
                     [&](const Fall& fall) { return fall.device == device.id && !fall.over; });
}

/// Called once the tick is complete: only then is it known which processes are still listed.
void Engine::Core::conclude_falls() {
  for (Fall& fall : falls) conclude(fall);
  std::erase_if(falls, [](const Fall& fall) { return fall.over; });
}

void Engine::Core::conclude(Fall& fall) {
  SeriesState* const device = series.find(fall.device);
  if (device != nullptr) fall.lowest_bytes = std::min(fall.lowest_bytes, device->last_bytes);
  End end = fall.end;
  const FallMeans means = device == nullptr ? FallMeans::no_end
                          : fall.told       ? FallMeans::an_end
                                            : meaning_of(fall, *device, end);
  fall.over = means != FallMeans::not_known_yet;
  if (device == nullptr) return;
  if (means == FallMeans::no_end) device->last_fall = fall.seen;
  if (means != FallMeans::an_end) return;
  if (!fall.told) device_ends(*device, std::move(end), 0);
  end_the_gone(fall, *device);
}

/// Whether a process is no longer listed. REQUIRES: the tick is complete. `unexplained_bytes`: the rest of the fall.
bool Engine::Core::is_gone(const SeriesState& process, const Fall& fall, double unexplained_bytes) const {
  if (process.ended) return true;
  if (process.last_time == tick) return false;
  // It was listed together with the device and is due again with this reading; or it is overdue.
  const double period_s = process.period.median_s();
  const double silent_s = seconds_between(process.last_time, tick);
  if (period_s > 0 && silent_s > kOverduePeriods * period_s) return true;
  if (period_s > 0 && silent_s > kDuePeriods * period_s && process.last_time == fall.end.time) return true;
  // All that it held, less a context, is gone. For a process that is no larger than a context, a fall proves nothing.
  const double given_back_bytes = static_cast<double>(process.last_bytes) - kLeastContext_bytes;
  return given_back_bytes > 0 && unexplained_bytes >= given_back_bytes;
}

/// If the fall is an end, `end` receives how it ended and whose end it was.
FallMeans Engine::Core::meaning_of(const Fall& fall, const SeriesState& device, End& end) const {
  if (device.last_end && device.last_end->time >= fall.end.time) return FallMeans::no_end;  // reported with its process
  const auto left = static_cast<double>(device.last_bytes);
  const double fallen = fall.last.used_bytes - left;
  if (left >= (1 - kLeastFall) * fall.last.used_bytes) return FallMeans::no_end;  // it rose again
  const bool said =
      device.said_out_of_memory && seconds_between(*device.said_out_of_memory, fall.seen) <= device.release_s();
  end.how = said ? EndKind::out_of_memory : end_kind(fall.last);
  const FallMeans open =
      seconds_between(fall.seen, tick) <= device.release_s() ? FallMeans::not_known_yet : FallMeans::no_end;

  const SeriesState* suspect = nullptr;
  const SeriesState* most = nullptr;
  series.for_device(device_key(device.key), [&](const SeriesState& s) {
    if (s.key.metric != Metric::process_used || s.key.pid == 0) return;
    if (s.is(fall.before.suspect)) suspect = &s;
    // A process that ended earlier, or that came later, did not cause this fall.
    const bool was_there = s.first_time <= fall.end.time &&
                           (!s.ended || (s.final_verdict.end && s.final_verdict.end->time >= fall.end.time));
    if (was_there && (most == nullptr || s.last_bytes > most->last_bytes)) most = &s;
  });
  const SeriesState* who = suspect;
  if (who == nullptr && most != nullptr && static_cast<double>(most->last_bytes) >= kMostOfIt * fall.last.used_bytes)
    who = most;
  if (who != nullptr) {
    if (is_gone(*who, fall, fallen)) {
      name(end, *who);
      return FallMeans::an_end;
    }
    // Its last figure is more than the device still has in use: it is about to end.
    const bool stale = static_cast<double>(who->last_bytes) > left;
    return who->last_time < tick || stale ? open : FallMeans::no_end;
  }
  // No visible process explains it: no more than a driver keeps must be left, or the run must have ended at the limit.
  const double idle = device.device->idle_bytes();
  const bool all_gone =
      (left <= idle && fall.last.used_bytes > idle) || all_taken_is_gone(device, fall.last.used_bytes, left);
  // If the run met the limit, losing most of what it had taken suffices: the next run may be there at once.
  const bool at_limit = said || (end.how == EndKind::out_of_memory && next_rise_does_not_fit(device, fall.last));
  const double taken = fall.last.used_bytes - static_cast<double>(device.runs.lowest_bytes());
  const bool growth_gone = fall.last.onset_bytes && left <= *fall.last.onset_bytes;
  if (all_gone || (at_limit && (growth_gone || fallen >= kMostOfIt * taken))) return FallMeans::an_end;
  // Memory that rises is no longer being released.
  return device.last_bytes > fall.lowest_bytes + no_growth_bytes() ? FallMeans::no_end : open;
}

/// Ends the processes of a device that ended with it: they are no longer listed. A log of processes shows that late, or
/// never if nothing is left to be listed.
void Engine::Core::end_the_gone(const Fall& fall, const SeriesState& device) {
  std::vector<SeriesState*> processes;
  series.for_device(device_key(device.key), [&](SeriesState& s) {
    if (s.key.metric == Metric::process_used && s.key.pid != 0 && !s.ended) processes.push_back(&s);
  });
  const End& end = *device.last_end;
  const auto is_whose = [&](const SeriesState* s) {
    return s->key.pid == end.pid && s->key.pid_start_ticks == end.pid_start_ticks;
  };
  // First the one whose end it was, then by size: each explains a part of the fall.
  std::sort(processes.begin(), processes.end(), [&](const SeriesState* a, const SeriesState* b) {
    return is_whose(a) != is_whose(b) ? is_whose(a) : a->last_bytes > b->last_bytes;
  });
  double unexplained_bytes = fall.last.used_bytes - static_cast<double>(device.last_bytes);
  for (SeriesState* const s : processes) {
    if (!is_gone(*s, fall, unexplained_bytes)) continue;
    unexplained_bytes -= static_cast<double>(s->last_bytes);
    this->end(*s, {});
  }
}

void Engine::Core::name(End& end, const SeriesState& process) const {
  end.pid = process.key.pid;
  end.pid_start_ticks = process.key.pid_start_ticks;
  if (const ProcessInfo* info = catalog.process(process_key(process.key)))
    end.command = info->command.empty() ? info->name : info->command;
}

/// From the process's own figures. `ran_out`: the source reported that its memory ran out.
End Engine::Core::end_of_process(const SeriesState& s, bool ran_out) const {
  End end = end_at(s);
  name(end, s);
  if (s.detector) take_growth(end, s, s.detector->finding());
  end.how = ran_out ? EndKind::out_of_memory : end_kind(last_figures(s, end));
  return end;
}

void Engine::Core::process_ends(SeriesState& s, bool ran_out) {
  End its = end_of_process(s, ran_out);
  SeriesState* const device = series.device_of(s).used;
  if (device != nullptr && s.key.metric == Metric::process_used) {
    const auto is_its_end = [&] {
      return device->last_end && device->last_end->pid == its.pid &&
             device->last_end->pid_start_ticks == its.pid_start_ticks && device->last_end->time >= s.first_time;
    };
    if (!is_its_end()) end_device_with(*device, s, its);
    // How much the device had left is better evidence than how much the process had left.
    if (is_its_end()) its.how = device->last_end->how = std::max(its.how, device->last_end->how);
  }
  s.end(std::move(its));
}

/// The process's end is also its device's if it is the process that grew or that held most. REQUIRES: it is not yet
/// marked as ended.
void Engine::Core::end_device_with(SeriesState& device, const SeriesState& process, const End& its) {
  if (!device.detector || device.samples == 0 || device.last_bytes < process.last_bytes) return;
  // Several processes that end in one reading count as one end.
  if (device.last_end && seconds_between(device.last_end->time, its.time) < device.period.median_s()) return;
  End end = end_at(device);
  end.how = its.how;
  name(end, process);
  if (device.alerting || wants_alert(device)) {
    const Verdict before = verdict(device);
    if (!process.is(before.suspect)) return;
    take_growth(end, device, before.finding);
    end.how = std::max(its.how, end_kind(last_figures(device, end)));
  } else if (static_cast<double>(process.last_bytes) < kMostOfIt * static_cast<double>(device.last_bytes)) {
    return;
  }
  device_ends(device, std::move(end), its.used_bytes);
}

/// A smaller rise does not count as growth, as in the detectors.
std::uint64_t Engine::Core::no_growth_bytes() const {
  return static_cast<std::uint64_t>(config.detection.min_growth_mb * kMiB);
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

/// A driver may free the memory of a process long after its end, or never: memory that nobody holds does not grow.
bool Engine::Core::held_since_end(const SeriesState& device) const {
  return device.last_end && device.floor_since_end > device.released_below_bytes &&
         device.last_bytes <= device.last_end->used_bytes + no_growth_bytes();
}

void Engine::Core::device_ends(SeriesState& device, End end, std::uint64_t process_bytes) {
  device.last_end = std::move(end);
  // It counts as released only when half of what its process held is gone.
  device.released_below_bytes = device.last_end->used_bytes - process_bytes / 2;
  const bool has_fallen = device.last_bytes < device.last_end->used_bytes;
  device.floor_since_end = has_fallen ? device.last_bytes : device.last_end->used_bytes;
  device.samples_since_end = has_fallen ? 1 : 0;
  // A run that grew until its end is reported by itself, even if other programs continue beside it.
  const End& how = *device.last_end;
  const bool run_is_over =
      has_fallen && (how.growth_bytes_per_s || all_taken_is_gone(device, static_cast<double>(how.used_bytes),
                                                                 static_cast<double>(device.last_bytes)));
  if (device.alerting) clear(device, AlertEnd::process_ended, reason_of(how));
  if (run_is_over) close_run(device);
}

/// A sawtooth stops below the limit; a program that runs out of memory stops where its next allocation does not fit.
bool Engine::Core::next_rise_does_not_fit(const SeriesState& device, const LastFigures& last) const {
  if (!last.limit_bytes) return false;
  const auto rise = static_cast<double>(device.runs.largest_rise_bytes());
  return *last.limit_bytes - last.used_bytes <= kUnusable * *last.limit_bytes + rise;
}

/// A living process keeps its context, so the use does not fall to what it was before the process began.
bool Engine::Core::all_taken_is_gone(const SeriesState& device, double used_bytes, double left_bytes) const {
  if (!device.runs.goes_on() || !device.runs.rest_bytes()) return false;
  const auto rest = static_cast<double>(*device.runs.rest_bytes());
  return left_bytes <= rest + kLeastContext_bytes / 2 && used_bytes > rest + kLeastContext_bytes;
}

/// Called after a reading of the device.
void Engine::Core::note_run(SeriesState& device) {
  const bool went_on = device.runs.goes_on();
  const bool begins =
      device.runs.read(device.last_time, device.last_bytes,
                       {device.device->idle_bytes(), no_growth_bytes(), device.release_s()}, device.last_end);
  if (went_on && !device.runs.goes_on()) take_first_alert(device);
  if (begins) know_precedent(device);
  const std::vector<Run>& all = device.runs.all();
  if (!begins || device.samples == 1) return;
  // A run that begins again sooner is one program that gives its memory back and takes it again.
  const double cycle_s = 2 * config.detection.minimum_duration_minutes * kSecondsPerMinute;
  if (all.size() < 2 || seconds_between(all[all.size() - 2].begin, all.back().begin) >= cycle_s) judge_anew(device);
}

/// Compares the processes of a run that has begun with those of earlier runs that had the same command.
void Engine::Core::know_precedent(const SeriesState& device) {
  const auto precedent = device.runs.precedent();
  if (!precedent || !device.last_end || device.last_end->command.empty()) return;
  series.for_device(device_key(device.key), [&](SeriesState& s) {
    if (s.key.metric != Metric::process_used || !s.detector || s.first_time < device.runs.all().back().begin) return;
    End its;
    name(its, s);
    if (its.command == device.last_end->command) s.detector->set_precedent(precedent);
  });
}

void Engine::Core::close_run(SeriesState& device) {
  if (!device.last_end || !device.runs.close(*device.last_end, device.last_time, device.last_bytes)) return;
  take_first_alert(device);
  judge_anew(device);
}

/// Finds the first alert of the run that is over.
void Engine::Core::take_first_alert(SeriesState& device) {
  device.runs.set_first_alert(first_alert_of(device.runs.all().back(), device.alerts));
}

/// A run is judged by itself: what an earlier one, or the time between, left in the detectors says nothing about it.
void Engine::Core::judge_anew(SeriesState& device) {
  if (!device.detector) return;
  device.judge_anew(config.detection);
  device.detector->set_precedent(device.runs.precedent());
  // What it had taken is gone: an alert about its own total no longer has a subject.
  if (device.alerting && !wants_alert(device)) clear(device, AlertEnd::released, "the memory was released");
  device.reviewed.reset();
  queue(device);
}

/// Conclusions from growth before the end are about a run that is over, until the series is higher than it was then.
void Engine::Core::leave_the_past(const SeriesState& device, Verdict& v) const {
  if (!device.last_end) return;
  const End& end = *device.last_end;
  const bool higher = device.last_bytes >= end.used_bytes && !held_since_end(device);
  const bool flat = device.last_bytes <= device.floor_since_end + no_growth_bytes();
  const auto is_past = [&](const Finding& f) { return grows(f) && (!f.onset || *f.onset <= end.time) && !higher; };
  const auto forget = [&](Finding& f) {
    const DetectionConfig& c = config.detection;
    const bool long_enough = device.samples_since_end >= static_cast<std::uint64_t>(c.minimum_samples) &&
                             seconds_between(end.time, device.last_time) >= c.minimum_duration_minutes * 60;
    Finding now;
    now.detector = f.detector;
    now.confidence = kUnknownConfidence;
    now.state = flat && long_enough ? State::steady : State::too_short;
    now.because = fmt::format("the growth ended with the run that caused it; {}",
                              now.state == State::steady ? "memory has not grown since"
                                                         : "too few samples since then to tell what comes next");
    f = std::move(now);
  };
  // The swings and the levels of a run that grew belong to the past, too.
  if (is_past(v.finding) || (!grows(v.finding) && end.growth_bytes_per_s && flat)) {
    forget(v.finding);
    v.severity = Severity::ok;
  }
  for (Finding& dissent : v.dissent)
    if (is_past(dissent)) forget(dissent);
  if (!v.finding.leak) v.end = end;
}

}  // namespace vramtrack
