#include "engine/endings.hpp"

#include <algorithm>

#include "core/end_words.hpp"
#include "core/units.hpp"
#include "engine/device_state.hpp"
#include "engine/end_kind.hpp"
#include "engine/series_table.hpp"

namespace vramtrack {
namespace {

/// A run that is missing for longer than this many periods was not watched: its behaviour then is unknown.
constexpr double kMostUnseenPeriods = 2;

/// Finds the first alert of the run that is over.
void take_first_alert(SeriesState& total) {
  total.device->runs.set_first_alert(first_alert_of(total.device->runs.all().back(), total.alerts));
}

}  // namespace

/// A program that did not fit has not leaked: an alert that took its load for a leak is withdrawn.
WhyOver with_its_run(const End& end, const Scale& scale) {
  if (end.while_loading) return {AlertEnd::withdrawn, reason_of_end(end, scale), end.how};
  return {AlertEnd::process_ended, reason_of_end(end, scale), end.how};
}

/// Copies rate and onset of the growth to the end; does nothing if there was none.
void Endings::take_growth(End& end, const SeriesState& series, const Finding& finding) {
  if (!grows(finding)) return;
  end.growth_bytes_per_s = finding.growth_bytes_per_s.mid;
  end.onset = finding.onset;
  end.confidence = finding.confidence;
  end.r_squared = finding.r_squared;
  // The onset is estimated again with each sample; it cannot be later than the time when it was first shown as a leak.
  if (end.onset && series.leaks()) end.onset = std::min(*end.onset, *series.leaks_since);
}

/// A program's own report is better evidence than any level. If its device leaked, the leak ended there: growth that
/// continues is judged again.
void Endings::take_out_of_memory(const Event& event) {
  const auto take = [&](SeriesState& s) {
    if (!s.is_total() || s.samples == 0 || !s.detector) return;
    s.device->reported_out_of_memory = event.time;
    if (s.device->used == nullptr) end_beside(s, EndKind::out_of_memory);
    const Verdict v = engine_.verdict(s);
    if (!v.finding.leak) return;
    end_reported(s, v);
  };
  if (event.device_id.empty()) {
    out_of_memory_of_any_ = event.time;
    return table_.for_host(event.host, take);
  }
  table_.for_device({event.device_id, event.host}, take);
}

void Endings::take_end(const Event& event) {
  const auto take = [&](SeriesState& s) {
    if (!s.is_total()) return;
    // A launcher reports an end that the kernel has already reported.
    const bool by_host = event.killed_by_host || (s.device->end_report && s.device->end_report->by_host);
    s.device->end_report = EndReport{event.time, event.text, by_host};
  };
  if (event.device_id.empty()) return table_.for_host(event.host, take);
  table_.for_device({event.device_id, event.host}, take);
}

/// One report explains one end, and the notification names it.
void Endings::use_report(SeriesState& total, EndKind how) {
  engine_.add_notice({now_, std::move(total.device->end_report->text)});
  total.device->end_report.reset();
  if (total.device->used == nullptr) end_beside(total, how);
}

/// Ends the other series of the program whose allocator represents its device.
void Endings::end_beside(const SeriesState& total, EndKind how) {
  table_.for_device(device_key(total.key), [&](SeriesState& s) {
    if (s.id == total.id || !is_of_allocator(s.key.metric) || !s.detector || s.samples == 0) return;
    const Verdict v = engine_.verdict(s);
    if (!v.finding.leak) return;
    s.reported_end = end_of_leak(s, v, how);
    engine_.clear(s, with_its_run(*s.reported_end, catalog_.scale));
    s.judge_anew(config_.detection, catalog_.scale);
  });
}

End Endings::end_of_leak(const SeriesState& s, const Verdict& v, EndKind how) const {
  End end = end_at(s);
  end.how = how;
  take_growth(end, s, v.finding);
  return end;
}

void Endings::end_reported(SeriesState& total, const Verdict& v) {
  End end = end_of_leak(total, v, EndKind::out_of_memory);
  std::uint64_t process_bytes = total.last_bytes;
  table_.for_device(device_key(total.key), [&](const SeriesState& process) {
    if (!process.is(v.suspect)) return;
    name(end, process);
    process_bytes = process.last_bytes;
  });
  device_ends(total, std::move(end), process_bytes, total.last_time);
}

void Endings::end_of_recording() {
  is_last_ = true;
  conclude_falls();
  table_.for_each([&](SeriesState& total) {
    const DeviceState& device = *total.device;
    if (!total.is_total() || !total.detector || !device.reported_out_of_memory) return;
    if (total.samples == 0 || total.last_time > *device.reported_out_of_memory) return;
    const bool is_known = device.last_end && device.last_end->time >= total.last_time;
    if (!is_known && device.reported_out_of_memory == out_of_memory_of_any_) return;  // it may concern another device
    if (device.used == nullptr) end_beside(total, EndKind::out_of_memory);
    if (!is_known) end_reported(total, engine_.verdict(total));
    close_run(total, total.last_time);
  });
}

Endings::Reading Endings::level_of(const SeriesState& s) const {
  const bool has_fallen = s.top_bytes > s.last_bytes + no_growth_bytes();
  return has_fallen ? Reading{s.top_time, s.top_bytes} : Reading{s.last_time, s.last_bytes};
}

End Endings::end_at(const SeriesState& s) const {
  const Reading level = level_of(s);
  End end;
  end.time = level.time;
  end.used_bytes = level.bytes;
  end.while_loading = s.detector && s.detector->may_be_loading();
  return end;
}

void Endings::name(End& end, const SeriesState& process) const {
  end.pid = process.key.pid;
  end.pid_start_ticks = process.key.pid_start_ticks;
  if (const ProcessInfo* info = catalog_.process(process_key(process.key)))
    end.command = info->command.empty() ? info->name : info->command;
}

/// Based on the process's own figures, unless it was reported. One memory ran out, not both.
End Endings::end_of_process(const SeriesState& s, std::optional<EndKind> reported) const {
  End end = end_at(s);
  name(end, s);
  if (s.detector) take_growth(end, s, s.finding());
  if (!reported)
    end.how = kind_of(s, last_figures(s, end));
  else if (!is_of_host(s.key.metric) || *reported == EndKind::host_out_of_memory)
    end.how = *reported;
  return end;
}

/// Which memory ran out, if one did.
EndKind Endings::kind_of(const SeriesState& s, const LastFigures& last) {
  const EndKind how = end_kind(last);
  const bool is_host = is_of_host(s.key.metric) || s.device->shares_host_memory;
  return how == EndKind::out_of_memory && is_host ? EndKind::host_out_of_memory : how;
}

bool Endings::host_ran_out(const SeriesState& s) const {
  return is_of_host(s.key.metric) && s.detector && !s.ended && end_of_process(s, {}).how == EndKind::host_out_of_memory;
}

void Endings::process_ends(SeriesState& s, std::optional<EndKind> reported) {
  End its = end_of_process(s, reported);
  its.while_loading = its.while_loading && its.how == EndKind::out_of_memory;
  s.conclude();  // before its device's run ends with it
  SeriesState* const total = table_.device_of(s).used;
  if (total != nullptr && s.key.metric == Metric::process_used) {
    const auto is_its_end = [&] {
      return total->device->last_end && total->device->last_end->pid == its.pid &&
             total->device->last_end->pid_start_ticks == its.pid_start_ticks &&
             total->device->last_end->time >= s.first_time;
    };
    if (!is_its_end()) end_device_with(*total, s, its);
    // How much the device had left is better evidence than how much the process had left.
    if (is_its_end()) {
      End& of_device = *total->device->last_end;
      its.how = of_device.how = std::max(its.how, of_device.how);
      its.while_loading = of_device.while_loading;
    }
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
  if (total.leaks() || engine_.wants_leak(total)) {
    const Verdict before = engine_.verdict(total);
    if (!process.is(before.suspect)) return;
    take_growth(end, total, before.finding);
    end.how = std::max(its.how, kind_of(total, last_figures(total, end)));
  } else if (static_cast<double>(process.last_bytes) < kMostOfIt * static_cast<double>(total.last_bytes)) {
    return;
  }
  device_ends(total, std::move(end), its.used_bytes, total.last_time);
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

/// `gone_at`: the first reading without it.
void Endings::device_ends(SeriesState& total, End end, std::uint64_t process_bytes, Timestamp gone_at) {
  end.while_loading = end.while_loading && end.how == EndKind::out_of_memory;
  total.device->last_end = std::move(end);
  // It counts as released only when half of what its process held is gone.
  total.device->released_below_bytes = total.device->last_end->used_bytes - process_bytes / 2;
  const bool has_fallen = total.last_bytes < total.device->last_end->used_bytes;
  total.device->floor_since_end = has_fallen ? total.last_bytes : total.device->last_end->used_bytes;
  total.device->samples_since_end = has_fallen ? 1 : 0;
  // A run that grew until its end is reported separately, even if other programs continue beside it.
  const End& how = *total.device->last_end;
  const bool run_is_over =
      has_fallen && (how.growth_bytes_per_s || all_taken_is_gone(total, static_cast<double>(how.used_bytes),
                                                                 static_cast<double>(total.last_bytes)));
  engine_.clear(total, with_its_run(how, catalog_.scale));
  if (run_is_over) close_run(total, gone_at);
}

/// Called after a reading of the total.
void Endings::note_run(SeriesState& total) {
  const bool went_on = total.device->runs.goes_on();
  // No driver's share is in what a program allocates.
  const double idle_bytes = total.key.metric == Metric::device_used ? total.device->idle_bytes() : 0;
  // How a run that left the device idle ended is known once its fall is understood.
  if (went_on && static_cast<double>(total.last_bytes) <= idle_bytes && is_falling(total)) return;
  const bool begins = total.device->runs.read(
      total.last_time, total.last_bytes, {idle_bytes, no_growth_bytes(), total.release_s()}, total.device->last_end);
  if (went_on && !total.device->runs.goes_on()) take_first_alert(total);
  if (begins) set_precedent(total);
  const std::vector<Run>& all = total.device->runs.all();
  if (!begins || total.samples == 1) return;
  // A run that begins again sooner is one program that releases its memory and takes it again.
  const double cycle_s = 2 * config_.detection.minimum_duration_minutes * kSecondsPerMinute;
  if (all.size() < 2 || seconds_between(all[all.size() - 2].begin, all.back().begin) >= cycle_s) judge_anew(total);
  // The reading that shows that a run has begun may come long after its first.
  if (const auto rest_bytes = total.device->runs.rest_bytes(); rest_bytes && total.detector)
    total.detector->set_begin(all.back().begin, static_cast<double>(*rest_bytes));
}

/// Compares the processes of a run that has begun with those of earlier runs that had the same command.
void Endings::set_precedent(const SeriesState& total) {
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

void Endings::close_run(SeriesState& total, Timestamp gone_at) {
  if (!total.device->last_end || !total.device->runs.close(*total.device->last_end, gone_at, total.last_bytes)) return;
  take_first_alert(total);
  judge_anew(total);
}

/// A run is judged separately: the state that an earlier run, or the time between, left in the detectors is irrelevant.
void Endings::judge_anew(SeriesState& total) {
  if (!total.detector) return;
  total.judge_anew(config_.detection, catalog_.scale);
  total.detector->set_precedent(total.device->runs.precedent());
  // The memory it had taken is gone: a leak of its own total no longer has a subject.
  if (!engine_.wants_leak(total)) engine_.clear(total, {AlertEnd::released, "the memory was released"});
  total.reviewed.reset();
  engine_.queue(total);
}

}  // namespace vramtrack
