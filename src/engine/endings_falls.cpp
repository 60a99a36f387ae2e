// The meaning of a fall of a device's memory: the end of a process, a restart, or neither.
#include <algorithm>
#include <cmath>
#include <utility>

#include "core/units.hpp"
#include "engine/device_state.hpp"
#include "engine/endings.hpp"
#include "engine/series_table.hpp"

namespace vramtrack {
namespace {

/// A smaller fall is not the end of the process that explains a device's growth: that one holds more than this share.
constexpr double kLeastFall = 0.1;
/// A process that has released all it held, except for less than this, has ended: a live one keeps at least its
/// context, and no CUDA context is that small.
constexpr double kLeastContext_bytes = 128 * kMiB;
/// The share of the limit that no program can allocate, because it is fragmented or the driver needs it.
constexpr double kUnusable = 0.03;
/// A process that has been silent for this many of its periods is no longer listed. One period is normal, and two
/// programs that list with the same period do not do so at the same moment.
constexpr double kOverduePeriods = 1.5;
constexpr double kDuePeriods = 0.9;  ///< for a process that is listed at the moments of its device's readings
/// While the device still uses as much as a process may hold, one reading of the process may be missing.
constexpr double kMissingPeriods = 2.5;
/// Two levels that differ by this share differ clearly; the same level is reached within half of it, because a program
/// does not hold exactly the same amount at every start.
constexpr double kClearly = 0.2;
/// A rise this much faster than the run's growth is a start, not growth.
constexpr double kStartOverGrowth = 5;

/// A sawtooth stops below the limit; a program that runs out of memory stops where its next allocation does not fit.
bool next_rise_does_not_fit(const SeriesState& total, const LastFigures& last) {
  if (!last.limit_bytes) return false;
  const auto rise = static_cast<double>(total.device->runs.largest_rise_bytes());
  return *last.limit_bytes - last.used_bytes <= kUnusable * *last.limit_bytes + rise;
}

}  // namespace

/// A live process keeps its context, so the use does not fall to what it was before the process began.
bool Endings::all_taken_is_gone(const SeriesState& total, double used_bytes, double left_bytes) {
  if (!total.device->runs.goes_on() || !total.device->runs.rest_bytes()) return false;
  const auto rest = static_cast<double>(*total.device->runs.rest_bytes());
  return left_bytes <= rest + kLeastContext_bytes / 2 && used_bytes > rest + kLeastContext_bytes;
}

void Endings::notice_fall(SeriesState& s, const Sample& sample) {
  if (sample.bytes >= s.last_bytes || !s.is_total() || !s.detector) return;
  if (s.samples == 0 || sample.time <= s.last_time) return;
  // Memory that moves falls at every other sample: how it may have ended is looked at only where it fell far.
  if (static_cast<double>(sample.bytes) >= (1 - kLeastFall) * static_cast<double>(level_of(s).bytes)) return;
  if (is_falling(s)) return;  // part of a fall that is already followed
  Fall fall;
  fall.total = s.id;
  fall.seen = fall.lowest_at = sample.time;
  fall.lowest_bytes = sample.bytes;
  fall.prior = fall.latest = {sample.time, sample.bytes};
  fall.end = end_at(s);
  if (is_rest_of_release(s, sample.time)) {
    if (s.device->last_end->growth_bytes_per_s) close_run(s, s.last_time);
    fall.is_rest = true;
    fall.last.used_bytes = static_cast<double>(fall.end.used_bytes);
    falls_.push_back(std::move(fall));
    return;
  }
  // A program frees tensors and continues: without a report, such a fall is not an end.
  if (s.key.metric != Metric::device_used && !is_reported(s, sample.time)) return;
  const DeviceRuns& runs = s.device->runs;
  fall.kept_load =
      static_cast<double>(runs.lowest_loaded_bytes()) >= (1 - kClearly) * static_cast<double>(runs.loaded_bytes());
  fall.before = engine_.verdict(s);
  take_growth(fall.end, s, fall.before.finding);
  fall.last = last_figures(s, fall.end);
  falls_.push_back(std::move(fall));
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
  if (total != nullptr && !total->is_total()) total = nullptr;  // something else represents its device now
  if (total != nullptr && total->last_time > fall.latest.time) {
    fall.prior = std::exchange(fall.latest, {total->last_time, total->last_bytes});
    if (total->last_bytes < fall.lowest_bytes) {
      fall.lowest_bytes = total->last_bytes;
      fall.lowest_at = total->last_time;
    }
  }
  End end = fall.end;
  const Means means = total == nullptr ? Means::no_end : fall.is_rest ? Means::an_end : meaning_of(fall, *total, end);
  fall.over = means != Means::not_known_yet;
  if (total == nullptr) return;
  if (means == Means::no_end) total->device->last_fall = fall.seen;
  if (means != Means::an_end && means != Means::a_restart) return;
  if (!fall.is_rest) {
    const EndKind how = end.how;
    const bool was_reported = is_reported(*total, fall.seen);
    device_ends(*total, std::move(end), 0, fall.lowest_at);
    if (was_reported) use_report(*total, how);
  }
  DeviceRuns& runs = total->device->runs;
  if (means == Means::a_restart && !runs.goes_on()) runs.begin(fall.lowest_at, total->last_bytes);
  end_the_gone(fall, *total);
}

/// Whether more is in use on the device than before the run and by others that are listed since the fall: a live
/// process keeps at least a context.
bool Endings::may_still_hold(const SeriesState& process, const Fall& fall, const SeriesState& total) const {
  const double rest = static_cast<double>(total.device->runs.rest_bytes().value_or(0));
  double explained = std::max(rest, total.device->idle_bytes());
  table_.for_device(device_key(total.key), [&](const SeriesState& s) {
    if (s.key.metric == Metric::process_used && s.id != process.id && !s.ended && s.last_time >= fall.seen)
      explained += static_cast<double>(s.last_bytes);
  });
  return static_cast<double>(total.last_bytes) >= explained + kLeastContext_bytes;
}

/// Whether a process is no longer listed. REQUIRES: the tick is complete. `unexplained_bytes`: the rest of the fall.
bool Endings::is_gone(const SeriesState& process, const Fall& fall, const SeriesState& total,
                      double unexplained_bytes) const {
  if (process.ended) return true;
  if (process.last_time == now_) return false;
  // It was listed together with the device and is due again with this reading; or it is overdue.
  const double period_s = process.period.median_s();
  const double silent_s = seconds_between(process.last_time, now_);
  const bool is_due = silent_s > kDuePeriods * period_s && process.last_time == fall.end.time;
  if (period_s > 0 && (is_due || silent_s > kOverduePeriods * period_s))
    if (silent_s > kMissingPeriods * period_s || !may_still_hold(process, fall, total)) return true;
  // All that it held, less a context, is gone. For a process that is no larger than a context, a fall proves nothing.
  // Its figure may be later than the device's before the fall, and it may have grown in between.
  const double later_s = std::max(0.0, seconds_between(fall.end.time, process.last_time));
  const double grown_bytes = std::max(0.0, fall.end.growth_bytes_per_s.value_or(0)) * later_s;
  const double given_back_bytes = static_cast<double>(process.last_bytes) - grown_bytes - kLeastContext_bytes;
  return given_back_bytes > 0 && unexplained_bytes >= given_back_bytes;
}

/// The process that the fall would be the end of: the suspect, else the one that held most of it; nullptr if no visible
/// process explains it.
const SeriesState* Endings::ended_process(const Fall& fall, const SeriesState& total) const {
  const SeriesState* suspect = nullptr;
  const SeriesState* most = nullptr;
  table_.for_device(device_key(total.key), [&](const SeriesState& s) {
    if (s.key.metric != Metric::process_used || s.key.pid == 0) return;
    if (s.is(fall.before.suspect)) suspect = &s;
    // A process that ended earlier, or that came later, did not cause this fall.
    const bool was_there =
        s.first_time <= fall.end.time && (!s.ended || (s.last_found.end && s.last_found.end->time >= fall.end.time));
    if (was_there && (most == nullptr || s.last_bytes > most->last_bytes)) most = &s;
  });
  if (suspect != nullptr || most == nullptr) return suspect;
  return static_cast<double>(most->last_bytes) >= kMostOfIt * fall.last.used_bytes ? most : nullptr;
}

/// Whether a run that leaked has, for the first time, lost more than its growth: a good part of what it had loaded
/// at its start is gone, too. A program that releases what it has collected keeps that.
bool Endings::lost_its_load(const Fall& fall, const SeriesState& total) {
  const auto loaded = static_cast<double>(total.device->runs.loaded_bytes());
  return fall.kept_load && fall.before.finding.leak && fall.end.growth_bytes_per_s &&
         fall.last.used_bytes > (1 + kClearly) * loaded &&
         static_cast<double>(fall.lowest_bytes) < (1 - kClearly) * loaded;
}

/// Whether it has been loaded again, to the same level and too fast for growth, and stays there: the program has
/// started again.
bool Endings::began_anew(const Fall& fall, const SeriesState& total) const {
  if (!lost_its_load(fall, total)) return false;
  const auto loaded = static_cast<double>(total.device->runs.loaded_bytes());
  const auto level = static_cast<double>(fall.latest.bytes);
  const auto prior = static_cast<double>(fall.prior.bytes);
  if (std::abs(level - loaded) > kClearly / 2 * loaded) return false;
  const double start_bytes_per_s = kStartOverGrowth * *fall.end.growth_bytes_per_s;
  const bool stays = level - prior <= start_bytes_per_s * seconds_between(fall.prior.time, fall.latest.time) +
                                          static_cast<double>(no_growth_bytes());
  return stays && prior - static_cast<double>(fall.lowest_bytes) >=
                      start_bytes_per_s * seconds_between(fall.seen, fall.prior.time);
}

/// Whether it was reported just before a fall seen at `seen`, or since, that some program had ended. The next reading
/// shows its end, or a driver takes up to a minute to free the memory.
bool Endings::is_reported(const SeriesState& total, Timestamp seen) {
  const auto& report = total.device->end_report;
  return report && seconds_between(report->time, seen) <= total.release_s() - total.period.median_s();
}

/// If the fall is an end, `end` receives how it ended and whose end it was.
Endings::Means Endings::meaning_of(const Fall& fall, const SeriesState& total, End& end) const {
  if (total.device->last_end && total.device->last_end->time >= fall.end.time)
    return Means::no_end;  // reported with its process
  const auto left = static_cast<double>(total.last_bytes);
  const double fallen = fall.last.used_bytes - left;
  if (left >= (1 - kLeastFall) * fall.last.used_bytes) return Means::no_end;  // it rose again
  const bool is_reported_now = total.device->reported_out_of_memory &&
                               seconds_between(*total.device->reported_out_of_memory, fall.seen) <= total.release_s();
  const EndKind by_figures = is_reported_now ? EndKind::out_of_memory : kind_of(total, fall.last);
  const bool by_host = is_reported(total, fall.seen) && total.device->end_report->by_host;
  end.how = by_host ? EndKind::host_out_of_memory : by_figures;
  const Means open = seconds_between(fall.seen, now_) <= total.release_s() ? Means::not_known_yet : Means::no_end;

  const SeriesState* const who = ended_process(fall, total);
  if (who != nullptr) {
    if (is_gone(*who, fall, total, fallen)) {
      name(end, *who);
      // Its own figures may show more. They must be read before the alert of the device ends and is reported.
      if (!who->ended) {
        const End its = end_of_process(*who, {});
        end.how = std::max(end.how, its.how);
        end.while_loading = its.while_loading;
      }
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
  // If the run reached the limit, losing most of what it had taken suffices: the next run may be there at once.
  const bool at_limit =
      is_reported_now || (by_figures >= EndKind::out_of_memory && next_rise_does_not_fit(total, fall.last));
  const double taken = fall.last.used_bytes - static_cast<double>(total.device->runs.lowest_bytes());
  const bool growth_gone = fall.last.onset_bytes && left <= *fall.last.onset_bytes;
  if (all_gone || (at_limit && (growth_gone || fallen >= kMostOfIt * taken))) return Means::an_end;
  // Some program ended: this one, if all that it had taken since it was loaded is gone.
  const double loaded = (1 + kClearly / 2) * static_cast<double>(total.device->runs.loaded_bytes());
  if (is_reported(total, fall.seen) && fall.end.growth_bytes_per_s && left <= loaded) return Means::an_end;
  if (began_anew(fall, total)) return Means::a_restart;
  // Memory that rises is no longer being released.
  const bool rises = total.last_bytes > fall.lowest_bytes + no_growth_bytes();
  return rises && !lost_its_load(fall, total) ? Means::no_end : open;
}

/// Ends the processes of a device that ended with it: they are no longer listed. A log of processes shows that late, or
/// never if nothing is left to be listed.
void Endings::end_the_gone(const Fall& fall, const SeriesState& total) {
  std::vector<SeriesState*> processes;
  table_.for_device(device_key(total.key), [&](SeriesState& s) {
    if (s.key.metric == Metric::process_used && s.key.pid != 0 && !s.ended) processes.push_back(&s);
  });
  const End& end = *total.device->last_end;
  const auto is_subject = [&](const SeriesState* s) {
    return s->key.pid == end.pid && s->key.pid_start_ticks == end.pid_start_ticks;
  };
  // First the one whose end it was, then by size: each explains a part of the fall.
  std::sort(processes.begin(), processes.end(), [&](const SeriesState* a, const SeriesState* b) {
    return is_subject(a) != is_subject(b) ? is_subject(a) : a->last_bytes > b->last_bytes;
  });
  double unexplained_bytes = fall.last.used_bytes - static_cast<double>(total.last_bytes);
  for (SeriesState* const s : processes) {
    if (!is_gone(*s, fall, total, unexplained_bytes) && !(is_last_ && is_subject(s))) continue;
    unexplained_bytes -= static_cast<double>(s->last_bytes);
    engine_.end(*s, {});
  }
}

}  // namespace vramtrack
