#include "engine/endings.hpp"

#include <algorithm>

#include "core/end_words.hpp"
#include "core/units.hpp"
#include "engine/device_state.hpp"
#include "engine/end_kind.hpp"
#include "engine/series_table.hpp"

namespace vramtrack {
namespace {

/// A smaller fall is not the end of the process that explains a device's growth: that one holds more than this share.
constexpr double kLeastFall = 0.1;
/// A process that has given back all it held, except for less than this, has ended: a living one keeps at least its
/// context, and no CUDA context is that small.
constexpr double kLeastContext_bytes = 128 * kMiB;
/// A process that held this share of the used memory is the run of its total.
constexpr double kMostOfIt = 0.5;
/// The share of the limit that no program can allocate, because it is fragmented or the driver needs it.
constexpr double kUnusable = 0.03;
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

/// A sawtooth stops below the limit; a program that runs out of memory stops where its next allocation does not fit.
bool next_rise_does_not_fit(const SeriesState& total, const LastFigures& last) {
  if (!last.limit_bytes) return false;
  const auto rise = static_cast<double>(total.device->runs.largest_rise_bytes());
  return *last.limit_bytes - last.used_bytes <= kUnusable * *last.limit_bytes + rise;
}

/// A living process keeps its context, so the use does not fall to what it was before the process began.
bool all_taken_is_gone(const SeriesState& total, double used_bytes, double left_bytes) {
  if (!total.device->runs.goes_on() || !total.device->runs.rest_bytes()) return false;
  const auto rest = static_cast<double>(*total.device->runs.rest_bytes());
  return left_bytes <= rest + kLeastContext_bytes / 2 && used_bytes > rest + kLeastContext_bytes;
}

/// Finds the first alert of the run that is over.
void take_first_alert(SeriesState& total) {
  total.device->runs.set_first_alert(first_alert_of(total.device->runs.all().back(), total.alerts));
}

}  // namespace

WhyOver with_its_run(const End& end) {
  return {AlertEnd::process_ended, reason_of_end(end), end.how};
}

/// A program's own report is better evidence than any level. If its device leaked, the leak ended there: what continues
/// is judged anew.
void Endings::hear_out_of_memory(const Event& event) {
  const auto hear = [&](SeriesState& s) {
    if (!s.is_total() || s.samples == 0 || !s.detector) return;
    s.device->said_out_of_memory = event.time;
    if (!s.device->used) hear_beside(s);
    const Verdict v = engine_.verdict(s);
    if (!v.finding.leak) return;
    end_said(s, v);
  };
  if (event.device_id.empty()) {
    said_of_any_ = event.time;
    return table_.for_host(event.host, hear);
  }
  table_.for_device({event.device_id, event.host}, hear);
}

/// The other series of the program whose allocator stands in for its device.
void Endings::hear_beside(const SeriesState& total) {
  table_.for_device(device_key(total.key), [&](SeriesState& s) {
    if (s.id == total.id || !is_of_allocator(s.key.metric) || !s.detector || s.samples == 0) return;
    const Verdict v = engine_.verdict(s);
    if (!v.finding.leak) return;
    s.said_end = end_out_of_memory(s, v);
    if (s.alerting) engine_.clear(s, with_its_run(*s.said_end));
    s.judge_anew(config_.detection);
  });
}

End Endings::end_out_of_memory(const SeriesState& s, const Verdict& v) const {
  End end = end_at(s);
  end.how = EndKind::out_of_memory;
  take_growth(end, s, v.finding);
  return end;
}

void Endings::end_said(SeriesState& total, const Verdict& v) {
  End end = end_out_of_memory(total, v);
  std::uint64_t process_bytes = total.last_bytes;
  table_.for_device(device_key(total.key), [&](const SeriesState& process) {
    if (!process.is(v.suspect)) return;
    name(end, process);
    process_bytes = process.last_bytes;
  });
  device_ends(total, std::move(end), process_bytes);
}

void Endings::end_of_recording() {
  is_last_ = true;
  conclude_falls();
  table_.for_each([&](SeriesState& total) {
    const DeviceState& device = *total.device;
    if (!total.is_total() || !total.detector || !device.said_out_of_memory) return;
    if (total.samples == 0 || total.last_time > *device.said_out_of_memory) return;
    const bool is_told = device.last_end && device.last_end->time >= total.last_time;
    if (!is_told && device.said_out_of_memory == said_of_any_) return;  // it may be another device's
    if (!is_told) end_said(total, engine_.verdict(total));
    close_run(total);
  });
}

void Endings::notice_fall(SeriesState& s, const Sample& sample) {
  if (sample.bytes >= s.last_bytes || !s.is_total() || !s.detector) return;
  if (s.samples == 0 || sample.time <= s.last_time) return;
  End end = end_at(s);
  if (static_cast<double>(sample.bytes) >= (1 - kLeastFall) * static_cast<double>(end.used_bytes)) return;
  if (is_falling(s)) return;  // part of a fall that is already followed
  Fall fall;
  fall.total = s.id;
  fall.seen = sample.time;
  fall.lowest_bytes = sample.bytes;
  fall.end = std::move(end);
  if (is_rest_of_release(s, sample.time)) {
    if (s.device->last_end->growth_bytes_per_s) close_run(s);
    fall.told = true;
    fall.last.used_bytes = static_cast<double>(fall.end.used_bytes);
    falls_.push_back(std::move(fall));
    return;
  }
  // A program frees tensors and goes on: without a word from it, such a fall is no end.
  if (s.key.metric != Metric::device_used) return;
  fall.before = engine_.verdict(s);
  take_growth(fall.end, s, fall.before.finding);
  fall.last = last_figures(s, fall.end);
  falls_.push_back(std::move(fall));
}

/// The level from which the series has fallen in its last samples, and when that was.
End Endings::end_at(const SeriesState& s) const {
  const bool has_fallen = s.top_bytes > s.last_bytes + no_growth_bytes();
  End end;
  end.time = has_fallen ? s.top_time : s.last_time;
  end.used_bytes = has_fallen ? s.top_bytes : s.last_bytes;
  return end;
}

/// Whether a fall at `time` was already reported, with its process's end or as the start of the same release.
bool Endings::is_rest_of_release(const SeriesState& total, Timestamp time) const {
  if (!total.device->last_end) return false;
  const bool has_risen = total.last_bytes > total.device->floor_since_end + no_growth_bytes();
  return total.device->held_since_end(no_growth_bytes()) ||
         (!has_risen && seconds_between(total.device->last_end->time, time) <= total.release_s());
}

bool Endings::is_falling(const SeriesState& total) const {
  return std::any_of(falls_.begin(), falls_.end(),
                     [&](const Fall& fall) { return fall.total == total.id && !fall.over; });
}

void Endings::conclude_falls() {
  for (Fall& fall : falls_) conclude(fall);
  std::erase_if(falls_, [](const Fall& fall) { return fall.over; });
}

void Endings::conclude(Fall& fall) {
  SeriesState* total = table_.find(fall.total);
  if (total != nullptr && !total->is_total()) total = nullptr;  // something else speaks for its device now
  if (total != nullptr) fall.lowest_bytes = std::min(fall.lowest_bytes, total->last_bytes);
  End end = fall.end;
  const Means means = total == nullptr ? Means::no_end : fall.told ? Means::an_end : meaning_of(fall, *total, end);
  fall.over = means != Means::not_known_yet;
  if (total == nullptr) return;
  if (means == Means::no_end) total->device->last_fall = fall.seen;
  if (means != Means::an_end) return;
  if (!fall.told) device_ends(*total, std::move(end), 0);
  end_the_gone(fall, *total);
}

/// Whether a process is no longer listed. REQUIRES: the tick is complete. `unexplained_bytes`: the rest of the fall.
bool Endings::is_gone(const SeriesState& process, const Fall& fall, double unexplained_bytes) const {
  if (process.ended) return true;
  if (process.last_time == now_) return false;
  // It was listed together with the device and is due again with this reading; or it is overdue.
  const double period_s = process.period.median_s();
  const double silent_s = seconds_between(process.last_time, now_);
  if (period_s > 0 && silent_s > kOverduePeriods * period_s) return true;
  if (period_s > 0 && silent_s > kDuePeriods * period_s && process.last_time == fall.end.time) return true;
  // All that it held, less a context, is gone. For a process that is no larger than a context, a fall proves nothing.
  // Its figure may be later than the device's before the fall, and it may have grown in between.
  const double later_s = std::max(0.0, seconds_between(fall.end.time, process.last_time));
  const double grown_bytes = std::max(0.0, fall.end.growth_bytes_per_s.value_or(0)) * later_s;
  const double given_back_bytes = static_cast<double>(process.last_bytes) - grown_bytes - kLeastContext_bytes;
  return given_back_bytes > 0 && unexplained_bytes >= given_back_bytes;
}

/// The process whose end the fall would be: the suspect, else the one that held most of it; nullptr if no visible
/// process explains it.
const SeriesState* Endings::whose_end(const Fall& fall, const SeriesState& total) const {
  const SeriesState* suspect = nullptr;
  const SeriesState* most = nullptr;
  table_.for_device(device_key(total.key), [&](const SeriesState& s) {
    if (s.key.metric != Metric::process_used || s.key.pid == 0) return;
    if (s.is(fall.before.suspect)) suspect = &s;
    // A process that ended earlier, or that came later, did not cause this fall.
    const bool was_there = s.first_time <= fall.end.time &&
                           (!s.ended || (s.final_verdict.end && s.final_verdict.end->time >= fall.end.time));
    if (was_there && (most == nullptr || s.last_bytes > most->last_bytes)) most = &s;
  });
  if (suspect != nullptr || most == nullptr) return suspect;
  return static_cast<double>(most->last_bytes) >= kMostOfIt * fall.last.used_bytes ? most : nullptr;
}

/// If the fall is an end, `end` receives how it ended and whose end it was.
Endings::Means Endings::meaning_of(const Fall& fall, const SeriesState& total, End& end) const {
  if (total.device->last_end && total.device->last_end->time >= fall.end.time)
    return Means::no_end;  // reported with its process
  const auto left = static_cast<double>(total.last_bytes);
  const double fallen = fall.last.used_bytes - left;
  if (left >= (1 - kLeastFall) * fall.last.used_bytes) return Means::no_end;  // it rose again
  const bool said = total.device->said_out_of_memory &&
                    seconds_between(*total.device->said_out_of_memory, fall.seen) <= total.release_s();
  end.how = said ? EndKind::out_of_memory : end_kind(fall.last);
  const Means open = seconds_between(fall.seen, now_) <= total.release_s() ? Means::not_known_yet : Means::no_end;

  const SeriesState* const who = whose_end(fall, total);
  if (who != nullptr) {
    if (is_gone(*who, fall, fallen)) {
      name(end, *who);
      // Its own figures may say more. They must be heard before the alert of the device ends and is told.
      if (!who->ended) end.how = std::max(end.how, end_of_process(*who, false).how);
      return Means::an_end;
    }
    // Its last figure is more than the device still has in use: it is about to end.
    const bool stale = static_cast<double>(who->last_bytes) > left;
    if (stale && is_last_) {
      name(end, *who);
      return Means::an_end;
    }
    return who->last_time < now_ || stale ? open : Means::no_end;
  }
  // No visible process explains it: no more than a driver keeps must be left, or the run must have ended at the limit.
  const double idle = total.device->idle_bytes();
  const bool all_gone =
      (left <= idle && fall.last.used_bytes > idle) || all_taken_is_gone(total, fall.last.used_bytes, left);
  // If the run met the limit, losing most of what it had taken suffices: the next run may be there at once.
  const bool at_limit = said || (end.how == EndKind::out_of_memory && next_rise_does_not_fit(total, fall.last));
  const double taken = fall.last.used_bytes - static_cast<double>(total.device->runs.lowest_bytes());
  const bool growth_gone = fall.last.onset_bytes && left <= *fall.last.onset_bytes;
  if (all_gone || (at_limit && (growth_gone || fallen >= kMostOfIt * taken))) return Means::an_end;
  // Memory that rises is no longer being released.
  return total.last_bytes > fall.lowest_bytes + no_growth_bytes() ? Means::no_end : open;
}

/// Ends the processes of a device that ended with it: they are no longer listed. A log of processes shows that late, or
/// never if nothing is left to be listed.
void Endings::end_the_gone(const Fall& fall, const SeriesState& total) {
  std::vector<SeriesState*> processes;
  table_.for_device(device_key(total.key), [&](SeriesState& s) {
    if (s.key.metric == Metric::process_used && s.key.pid != 0 && !s.ended) processes.push_back(&s);
  });
  const End& end = *total.device->last_end;
  const auto is_whose = [&](const SeriesState* s) {
    return s->key.pid == end.pid && s->key.pid_start_ticks == end.pid_start_ticks;
  };
  // First the one whose end it was, then by size: each explains a part of the fall.
  std::sort(processes.begin(), processes.end(), [&](const SeriesState* a, const SeriesState* b) {
    return is_whose(a) != is_whose(b) ? is_whose(a) : a->last_bytes > b->last_bytes;
  });
  double unexplained_bytes = fall.last.used_bytes - static_cast<double>(total.last_bytes);
  for (SeriesState* const s : processes) {
    if (!is_gone(*s, fall, unexplained_bytes) && !(is_last_ && is_whose(s))) continue;
    unexplained_bytes -= static_cast<double>(s->last_bytes);
    engine_.end(*s, {});
  }
}

void Endings::name(End& end, const SeriesState& process) const {
  end.pid = process.key.pid;
  end.pid_start_ticks = process.key.pid_start_ticks;
  if (const ProcessInfo* info = catalog_.process(process_key(process.key)))
    end.command = info->command.empty() ? info->name : info->command;
}

/// From the process's own figures. `ran_out`: the source reported that its memory ran out.
End Endings::end_of_process(const SeriesState& s, bool ran_out) const {
  End end = end_at(s);
  name(end, s);
  if (s.detector) take_growth(end, s, s.detector->finding());
  end.how = ran_out ? EndKind::out_of_memory : end_kind(last_figures(s, end));
  return end;
}

void Endings::process_ends(SeriesState& s, bool ran_out) {
  End its = end_of_process(s, ran_out);
  SeriesState* const total = table_.device_of(s).used;
  if (total != nullptr && s.key.metric == Metric::process_used) {
    const auto is_its_end = [&] {
      return total->device->last_end && total->device->last_end->pid == its.pid &&
             total->device->last_end->pid_start_ticks == its.pid_start_ticks &&
             total->device->last_end->time >= s.first_time;
    };
    if (!is_its_end()) end_device_with(*total, s, its);
    // How much the device had left is better evidence than how much the process had left.
    if (is_its_end()) its.how = total->device->last_end->how = std::max(its.how, total->device->last_end->how);
  }
  s.end(std::move(its));
}

/// The process's end is also its device's if it is the process that grew or that held most. REQUIRES: it is not yet
/// marked as ended.
void Endings::end_device_with(SeriesState& total, const SeriesState& process, const End& its) {
  if (!total.detector || total.samples == 0 || total.last_bytes < process.last_bytes) return;
  // Several processes that end in one reading count as one end.
  if (total.device->last_end && seconds_between(total.device->last_end->time, its.time) < total.period.median_s())
    return;
  End end = end_at(total);
  end.how = its.how;
  name(end, process);
  if (total.alerting || engine_.wants_alert(total)) {
    const Verdict before = engine_.verdict(total);
    if (!process.is(before.suspect)) return;
    take_growth(end, total, before.finding);
    end.how = std::max(its.how, end_kind(last_figures(total, end)));
  } else if (static_cast<double>(process.last_bytes) < kMostOfIt * static_cast<double>(total.last_bytes)) {
    return;
  }
  device_ends(total, std::move(end), its.used_bytes);
}

std::uint64_t Endings::no_growth_bytes() const {
  return static_cast<std::uint64_t>(config_.detection.min_growth_mb * kMiB);
}

LastFigures Endings::last_figures(const SeriesState& s, const End& end) const {
  LastFigures last;
  last.used_bytes = static_cast<double>(end.used_bytes);
  last.limit_bytes = s.limit_bytes;
  last.growth_bytes_per_s = end.growth_bytes_per_s;
  if (end.growth_bytes_per_s)
    if (const auto then = s.history.at(end.onset.value_or(s.first_time)))
      last.onset_bytes = static_cast<double>(then->min_bytes);
  last.unseen_s = std::min(seconds_between(end.time, now_), kMostUnseenPeriods * s.period.median_s());
  return last;
}

void Endings::device_ends(SeriesState& total, End end, std::uint64_t process_bytes) {
  total.device->last_end = std::move(end);
  // It counts as released only when half of what its process held is gone.
  total.device->released_below_bytes = total.device->last_end->used_bytes - process_bytes / 2;
  const bool has_fallen = total.last_bytes < total.device->last_end->used_bytes;
  total.device->floor_since_end = has_fallen ? total.last_bytes : total.device->last_end->used_bytes;
  total.device->samples_since_end = has_fallen ? 1 : 0;
  // A run that grew until its end is reported by itself, even if other programs continue beside it.
  const End& how = *total.device->last_end;
  const bool run_is_over =
      has_fallen && (how.growth_bytes_per_s || all_taken_is_gone(total, static_cast<double>(how.used_bytes),
                                                                 static_cast<double>(total.last_bytes)));
  if (total.alerting) engine_.clear(total, with_its_run(how));
  if (run_is_over) close_run(total);
}

/// Called after a reading of the total.
void Endings::note_run(SeriesState& total) {
  const bool went_on = total.device->runs.goes_on();
  // No driver's share is in what a program allocates.
  const double idle_bytes = total.key.metric == Metric::device_used ? total.device->idle_bytes() : 0;
  // How a run ended that left the device idle is known when its fall is.
  if (went_on && static_cast<double>(total.last_bytes) <= idle_bytes && is_falling(total)) return;
  const bool begins = total.device->runs.read(
      total.last_time, total.last_bytes, {idle_bytes, no_growth_bytes(), total.release_s()}, total.device->last_end);
  if (went_on && !total.device->runs.goes_on()) take_first_alert(total);
  if (begins) know_precedent(total);
  const std::vector<Run>& all = total.device->runs.all();
  if (!begins || total.samples == 1) return;
  // A run that begins again sooner is one program that gives its memory back and takes it again.
  const double cycle_s = 2 * config_.detection.minimum_duration_minutes * kSecondsPerMinute;
  if (all.size() < 2 || seconds_between(all[all.size() - 2].begin, all.back().begin) >= cycle_s) judge_anew(total);
}

/// Compares the processes of a run that has begun with those of earlier runs that had the same command.
void Endings::know_precedent(const SeriesState& total) {
  const auto precedent = total.device->runs.precedent();
  if (!precedent || !total.device->last_end || total.device->last_end->command.empty()) return;
  table_.for_device(device_key(total.key), [&](SeriesState& s) {
    if (s.key.metric != Metric::process_used || !s.detector || s.first_time < total.device->runs.all().back().begin)
      return;
    End its;
    name(its, s);
    if (its.command == total.device->last_end->command) s.detector->set_precedent(precedent);
  });
}

void Endings::close_run(SeriesState& total) {
  if (!total.device->last_end || !total.device->runs.close(*total.device->last_end, total.last_time, total.last_bytes))
    return;
  take_first_alert(total);
  judge_anew(total);
}

/// A run is judged by itself: what an earlier one, or the time between, left in the detectors says nothing about it.
void Endings::judge_anew(SeriesState& total) {
  if (!total.detector) return;
  total.judge_anew(config_.detection);
  total.detector->set_precedent(total.device->runs.precedent());
  // What it had taken is gone: an alert about its own total no longer has a subject.
  if (total.alerting && !engine_.wants_alert(total))
    engine_.clear(total, {AlertEnd::released, "the memory was released"});
  total.reviewed.reset();
  engine_.queue(total);
}

}  // namespace vramtrack
