#include "engine/endings.hpp"

#include <fmt/format.h>

#include <algorithm>

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
/// Of the limit: what no program can allocate, because it is in pieces or the driver needs it.
constexpr double kUnusable = 0.03;
constexpr double kNearLimit = 0.1;    ///< of the limit, was free
constexpr double kOutOfMemory = 0.1;  ///< of what was free at the onset, is still free
/// A process of which nothing was heard for so many of its periods is not listed any more. One is the rule, and two
/// programs that list at the same period do not do so at the same moment.
constexpr double kOverduePeriods = 1.5;
constexpr double kDuePeriods = 0.9;  ///< of a process that is listed at the moments of its device's readings
/// A run that is missing for longer than so many periods was not watched: what it did then is nobody's guess.
constexpr double kMostUnseenPeriods = 2;

void take_growth(End& end, const SeriesState& series, const Finding& finding) {
  if (!grows(finding)) return;
  end.growth_bytes_per_s = finding.growth_bytes_per_s.mid;
  end.onset = finding.onset;
  // The onset is estimated anew with each sample; the alert did not come before it.
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

/// A program's own words are better evidence than any level. Where its device leaked, the leak ended there: what goes
/// on is judged anew.
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
  if (is_falling(s)) return;  // it goes on
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

/// Whether a fall at `time` was told already, with its process's end or as the beginning of the same release.
bool Engine::Core::is_rest_of_release(const SeriesState& device, Timestamp time) const {
  if (!device.last_end) return false;
  const bool has_risen = device.last_bytes > device.floor_since_end + no_growth_bytes();
  return held_since_end(device) || (!has_risen && seconds_between(device.last_end->time, time) <= device.release_s());
}

bool Engine::Core::is_falling(const SeriesState& device) const {
  return std::any_of(falls.begin(), falls.end(),
                     [&](const Fall& fall) { return fall.device == device.id && !fall.over; });
}

/// Once the tick is whole: which processes are still listed is known then.
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

/// Whether a process is listed no more. REQUIRES: the tick is whole. `unexplained_bytes`: of the fall.
bool Engine::Core::is_gone(const SeriesState& process, const Fall& fall, double unexplained_bytes) const {
  if (process.ended) return true;
  if (process.last_time == tick) return false;
  // It was listed together with the device and is due again with this reading; or it is overdue.
  const double period_s = process.period.median_s();
  const double silent_s = seconds_between(process.last_time, tick);
  if (period_s > 0 && silent_s > kOverduePeriods * period_s) return true;
  if (period_s > 0 && silent_s > kDuePeriods * period_s && process.last_time == fall.end.time) return true;
  // All that it held but for less than a context went. Of what is no larger, a fall tells nothing.
  const double given_back_bytes = static_cast<double>(process.last_bytes) - kLeastContext_bytes;
  return given_back_bytes > 0 && unexplained_bytes >= given_back_bytes;
}

/// `end` becomes the end's, with its process, where it is one.
FallMeans Engine::Core::meaning_of(const Fall& fall, const SeriesState& device, End& end) const {
  if (device.last_end && device.last_end->time >= fall.end.time) return FallMeans::no_end;  // told with its process
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
    // Who ended earlier did not make this fall, nor did who came after it.
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
    // What it is said to hold is more than the device has: it is about to end.
    const bool stale = static_cast<double>(who->last_bytes) > left;
    return who->last_time < tick || stale ? open : FallMeans::no_end;
  }
  // Nobody visible: what is left must be no more than a driver keeps, or the run ended where memory does.
  const double idle = device.device->idle_bytes();
  const bool all_gone =
      (left <= idle && fall.last.used_bytes > idle) || all_taken_is_gone(device, fall.last.used_bytes, left);
  // Where the run met the limit, most of what it had taken is enough: the next one may be there at once.
  const bool at_limit = said || (end.how == EndKind::out_of_memory && next_rise_does_not_fit(device, fall.last));
  const double taken = fall.last.used_bytes - static_cast<double>(device.runs.lowest_bytes());
  const bool growth_gone = fall.last.onset_bytes && left <= *fall.last.onset_bytes;
  if (all_gone || (at_limit && (growth_gone || fallen >= kMostOfIt * taken))) return FallMeans::an_end;
  // What rises is not being released any more.
  return device.last_bytes > fall.lowest_bytes + no_growth_bytes() ? FallMeans::no_end : open;
}

/// The processes of a device that ended with it: they are not listed any more. A log of processes says so late, or not
/// at all where nothing is left to be listed.
void Engine::Core::end_the_gone(const Fall& fall, const SeriesState& device) {
  std::vector<SeriesState*> processes;
  series.for_device(device_key(device.key), [&](SeriesState& s) {
    if (s.key.metric == Metric::process_used && s.key.pid != 0 && !s.ended) processes.push_back(&s);
  });
  const End& end = *device.last_end;
  const auto is_whose = [&](const SeriesState* s) {
    return s->key.pid == end.pid && s->key.pid_start_ticks == end.pid_start_ticks;
  };
  // Whose end it was first, then the largest: each explains a part of the fall.
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

/// By the process's own figures. `ran_out`: the source says that its memory ran out.
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
    // How much the device had left tells more than what was left to the process.
    if (is_its_end()) its.how = device->last_end->how = std::max(its.how, device->last_end->how);
  }
  s.end(std::move(its));
}

/// The process's end is its device's where it is the one that grew or held most. REQUIRES: it is not marked as ended
/// yet.
void Engine::Core::end_device_with(SeriesState& device, const SeriesState& process, const End& its) {
  if (!device.detector || device.samples == 0 || device.last_bytes < process.last_bytes) return;
  // Several that end in one reading are one end.
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

/// Less is no growth, as for the detectors.
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

/// A driver may free the memory of a process long after its end, or never: what is held by nobody does not grow.
bool Engine::Core::held_since_end(const SeriesState& device) const {
  return device.last_end && device.floor_since_end > device.released_below_bytes &&
         device.last_bytes <= device.last_end->used_bytes + no_growth_bytes();
}

void Engine::Core::device_ends(SeriesState& device, End end, std::uint64_t process_bytes) {
  device.last_end = std::move(end);
  // Half of what its process held has to go before it counts as released.
  device.released_below_bytes = device.last_end->used_bytes - process_bytes / 2;
  const bool has_fallen = device.last_bytes < device.last_end->used_bytes;
  device.floor_since_end = has_fallen ? device.last_bytes : device.last_end->used_bytes;
  device.samples_since_end = has_fallen ? 1 : 0;
  // A run that grew until its end is told by itself, though other programs go on beside it.
  const End& how = *device.last_end;
  const bool run_is_over =
      has_fallen && (how.growth_bytes_per_s || all_taken_is_gone(device, static_cast<double>(how.used_bytes),
                                                                 static_cast<double>(device.last_bytes)));
  if (device.alerting) clear(device, AlertEnd::process_ended, reason_of(how));
  if (run_is_over) close_run(device);
}

/// A sawtooth stops below the limit; what runs out of memory stops where its next allocation does not fit.
bool Engine::Core::next_rise_does_not_fit(const SeriesState& device, const LastFigures& last) const {
  if (!last.limit_bytes) return false;
  const auto rise = static_cast<double>(device.runs.largest_rise_bytes());
  return *last.limit_bytes - last.used_bytes <= kUnusable * *last.limit_bytes + rise;
}

/// A living process keeps its context: it does not fall to what was in use before it began.
bool Engine::Core::all_taken_is_gone(const SeriesState& device, double used_bytes, double left_bytes) const {
  if (!device.runs.goes_on() || !device.runs.rest_bytes()) return false;
  const auto rest = static_cast<double>(*device.runs.rest_bytes());
  return left_bytes <= rest + kLeastContext_bytes / 2 && used_bytes > rest + kLeastContext_bytes;
}

/// After a reading of the device.
void Engine::Core::note_run(SeriesState& device) {
  const bool went_on = device.runs.goes_on();
  const bool begins =
      device.runs.read(device.last_time, device.last_bytes,
                       {device.device->idle_bytes(), no_growth_bytes(), device.release_s()}, device.last_end);
  if (went_on && !device.runs.goes_on()) take_first_alert(device);
  if (begins) know_precedent(device);
  const std::vector<Run>& all = device.runs.all();
  if (!begins || device.samples == 1) return;
  // What comes back sooner is one program that gives its memory back and takes it again.
  const double cycle_s = 2 * config.detection.minimum_duration_minutes * kSecondsPerMinute;
  if (all.size() < 2 || seconds_between(all[all.size() - 2].begin, all.back().begin) >= cycle_s) judge_anew(device);
}

/// The processes of a run that has begun are compared with those of earlier ones that had the same command.
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

/// Of the run that is over: which of its alerts was the first.
void Engine::Core::take_first_alert(SeriesState& device) {
  device.runs.set_first_alert(first_alert_of(device.runs.all().back(), device.alerts));
}

/// A run is judged by itself: what an earlier one, or the time between, left in the detectors is no evidence about it.
void Engine::Core::judge_anew(SeriesState& device) {
  if (!device.detector) return;
  device.judge_anew(config.detection);
  device.detector->set_precedent(device.runs.precedent());
  // What it had taken is gone: an alert of its own total has nothing left to be about.
  if (device.alerting && !wants_alert(device)) clear(device, AlertEnd::released, "the memory was released");
  device.reviewed.reset();
  queue(device);
}

/// What was concluded from growth before the end is about a run that is over, until the series is higher than it was.
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
    now.because = fmt::format("the growth ended with the run that made it; {}",
                              now.state == State::steady ? "memory has not grown since"
                                                         : "too little has been seen since to tell what comes");
    f = std::move(now);
  };
  // The swings and the levels of a run that grew are past, too.
  if (is_past(v.finding) || (!grows(v.finding) && end.growth_bytes_per_s && flat)) {
    forget(v.finding);
    v.severity = Severity::ok;
  }
  for (Finding& dissent : v.dissent)
    if (is_past(dissent)) forget(dissent);
  if (!v.finding.leak) v.end = end;
}

}  // namespace vramtrack
