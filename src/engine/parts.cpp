// Judges a device's growth from its parts where they are known: its processes and the memory that none of them holds
// (docs/design/0015-parts.md).
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/format.hpp"
#include "core/printable.hpp"
#include "core/program.hpp"
#include "core/units.hpp"
#include "engine/engine_core.hpp"

namespace vramtrack {
namespace {

/// Whether `a` runs out of memory before `b` does, or else grows faster.
bool worse(const Finding& a, const Finding& b) {
  if (a.oom_in_s.has_value() != b.oom_in_s.has_value()) return a.oom_in_s.has_value();
  if (a.oom_in_s && a.oom_in_s->mid != b.oom_in_s->mid) return a.oom_in_s->mid < b.oom_in_s->mid;
  return a.growth_bytes_per_s.mid > b.growth_bytes_per_s.mid;
}

Interval scaled(const Interval& of, double factor) {
  return {of.low * factor, of.mid * factor, of.high * factor};
}

std::string name_of(const SeriesState& part) {
  if (part.key.pid == 0) return "the memory that no visible process holds";
  return fmt::format("{}pid {}", is_of_host(part.key.metric) ? "host memory of " : "", part.key.pid);
}

/// A run that has lived for this many times as long as it grew has settled.
constexpr double kSettled = 2;

/// The onsets of a device and its part are one if they differ by no more than this, or this share of the growth's age.
constexpr double kSameOnset_s = 2 * kSecondsPerMinute;
constexpr double kSameOnsetShare = 0.1;

/// A part that explains this share of its device's growth has the device's curve; it keeps that while it explains the
/// second share.
constexpr double kExplains = 0.8;
constexpr double kStillExplains = 0.6;
/// A part with readings this many times further apart has shown less than its device.
constexpr double kRarely = 2;
/// A program that started while the device was watched may load for this long, whatever the device shows of that.
constexpr double kMayLoad_s = 36 * kSecondsPerMinute;
/// The second half of a growth is examined separately if it brought this share.
constexpr double kLateShare = 0.2;

/// Growth by less than this share of the free memory is small: waiting costs nothing.
constexpr double kSmall = 0.05;

ProgramRun run_of(const SeriesState& s) {
  return {seconds_between(s.first_time, s.last_time),
          seconds_between(s.first_time, std::max(s.peak_time, s.first_time)),
          static_cast<double>(s.peak_bytes),
          s.leaks(),
          false,
          s.first_time};
}

}  // namespace

/// Called once the tick is complete: derives the remainder of each device that was read in it.
void Engine::Core::derive_remainders() {
  for (std::size_t i = 0, n = touched.size(); i < n; ++i) {
    const SeriesState* const s = series.find(touched[i]);
    if (s == nullptr || s->device->derived == tick || is_of_host(s->key.metric)) continue;
    DeviceState& device = *s->device;
    device.derived = tick;
    const DeviceKey key = device_key(s->key);
    // Some of its memory belongs to processes of its instances, or to processes whose memory is not reported.
    if (series.has_instances(key) || (key.host.empty() && catalog.devices_withholding.contains(key.id))) continue;
    const std::optional<std::uint64_t> bytes = device.remainder.close(tick);
    if (!bytes) continue;
    const SeriesId id = device.unattributed != nullptr
                            ? device.unattributed->id
                            : catalog.intern({Metric::device_unattributed, key.id, 0, 0, key.host});
    SeriesState& rest = state(id);
    if (!rest.observe({tick, id, *bytes})) continue;
    unreleased.take(rest, tick, announcer());
    touched.push_back(id);
    if (rest.alerting() != rest.leaks() || rest.suspecting() != rest.leaks()) queue(rest);
  }
}

/// Whether the device is judged from its parts at present.
bool Engine::Core::knows_parts(const SeriesState& device) const {
  return device.device->unattributed != nullptr && device.device->remainder.known(tick);
}

/// Whether the series is a part of its device's memory: held by a process, or by none; or host memory of processes, if
/// the device uses that.
bool Engine::Core::is_part(const SeriesState& s) const {
  return s.key.metric == Metric::process_used || s.key.metric == Metric::device_unattributed ||
         (s.key.metric == Metric::host_anonymous && s.is_in_device());
}

bool Engine::Core::is_part_of(const SeriesState& s, const std::optional<Suspect>& suspect) const {
  return suspect && suspect->pid != 0 && s.key.pid == suspect->pid &&
         s.key.pid_start_ticks == suspect->pid_start_ticks && is_part(s);
}

/// The suspicion or the alert of a part was raised or has ended: decides its device again.
void Engine::Core::part_changes(SeriesState& part) {
  DeviceState& device = *part.device;
  if (part.key.metric == Metric::allocator_allocated) allocator_changes(part);
  // The series may have ceased to be a part since.
  const bool was_leaking = device.leaking.erase(part.id) > 0;
  if (!is_part(part) && !was_leaking) return;
  if (part.leaks() && is_part(part)) device.leaking.insert(part.id);
  if (device.used == nullptr) return;
  device.used->reviewed.reset();
  queue(*device.used);
}

/// Whether, as far as the device's total shows, others release what the part takes: it is not suspected, or moves
/// within its band, on a device that several programs share. The end of a process releases once, which shows nothing
/// about what comes next.
bool Engine::Core::others_give_back(const SeriesState& part) const {
  const SeriesState* const total = part.device->used;
  if (!is_part(part) || is_of_host(part.key.metric) || part.device->living.size() < 2 || total == nullptr ||
      !total->detector || total->samples == 0)
    return false;
  const auto onset = part.finding().onset;
  if (!onset || (part.device->process_ended && *part.device->process_ended >= *onset)) return false;
  return !total->detector->suspecting() || band(*total, *onset).has_value();
}

/// For a device, the hold of one of its leaking parts.
const Engine::Core::Hold* Engine::Core::hold_of(const SeriesState& s) const {
  if (held.empty()) return nullptr;
  if (s.key.metric == Metric::device_used)
    for (const SeriesId id : s.device->leaking)
      if (const SeriesState* part = series.find(id); part != nullptr && part != &s)
        if (const Hold* hold = hold_of(*part); hold != nullptr) return hold;
  if (is_of_device(s.key.metric)) return nullptr;
  const auto at = held.find(process_key(s.key));
  return at == held.end() ? nullptr : &at->second;
}

/// Whether an alert of the series should be raised or continue, apart from what its verdict adds.
bool Engine::Core::wants_leak(const SeriesState& s) const {
  if (!s.detector) return false;
  if (s.alert() != nullptr && hold_of(s) != nullptr) return true;
  if (s.key.metric == Metric::process_used) return s.alerting() || live_memory_leaks(s);
  if (s.key.metric != Metric::device_used || !knows_parts(s)) return s.alerting();
  if (!s.device->leaking.empty()) return true;
  return s.alerting() && (s.device->pile || !leaking_parts(s).empty());
}

/// The same for a suspicion: of the series itself, or of one of its parts.
bool Engine::Core::wants_suspicion(const SeriesState& s) const {
  if (!s.detector) return false;
  if (s.runs_trend) return true;
  if (s.key.metric != Metric::device_used || !knows_parts(s)) return s.suspecting();
  return suspected_part(s) != nullptr || (s.device->pile && s.suspecting());
}

/// The share of its device's growth that the part explains, if the total's curve shows more of the part than its own:
/// the part is read more rarely, most of the growth, to its end, is the part's, and nothing known of the part denies
/// that it leaks. What its allocator reports is better evidence than the total.
std::optional<double> Engine::Core::share_of_growth(const SeriesState& part, const Finding& of_total) const {
  if (of_total.stage == Stage::none || !of_total.onset || part.ended || !part.detector) return std::nullopt;
  const SeriesState& total = *part.device->used;
  if (part.period.median_s() < kRarely * total.period.median_s()) return std::nullopt;
  const Allocator allocator = allocator_of(part);
  if (allocator.allocated != nullptr || allocator.reserved != nullptr || is_past(total, part, of_total))
    return std::nullopt;
  const Timestamp from = std::max(*of_total.onset, part.first_time);
  const Timestamp to = std::min(part.last_time, total.last_time);
  if (to <= from) return std::nullopt;
  const bool came = part.key.pid != 0 && seconds_between(part.device->unattributed->first_time, part.first_time) >
                                             part.period.median_s() / 2;
  if (came && seconds_between(part.first_time, to) < kMayLoad_s) return std::nullopt;
  const double rise_bytes = part.rise_between(from, to);
  double of_device_bytes = total.rise_between(*of_total.onset, to);
  if (const auto rise = total.detector->rise(); rise && rise->since <= *of_total.onset)
    of_device_bytes = std::min(of_device_bytes, static_cast<double>(total.last_bytes) - rise->from_bytes);
  if (rise_bytes <= 0 || of_device_bytes <= 0) return std::nullopt;
  const Timestamp middle = from + (to - from) / 2;
  const double late_bytes = total.rise_between(middle, to);
  double share = rise_bytes / of_device_bytes;
  if (late_bytes > kLateShare * of_device_bytes) share = std::min(share, part.rise_between(middle, to) / late_bytes);
  if (share < (part.explains ? kStillExplains : kExplains) || part.detector->denies(from, rise_bytes))
    return std::nullopt;
  return share;
}

/// Finds what the curve of a device's total that rises like a leak belongs to: processes that pile up, none of which
/// grows by itself; or a part that is read more rarely, which is then judged by it.
void Engine::Core::review_total(const SeriesState& s) {
  constexpr Duration kReview = std::chrono::seconds{60};
  if (s.key.metric != Metric::device_used || !s.detector) return;
  DeviceState& device = *s.device;
  if (!s.suspecting() || !knows_parts(s)) {
    device.pile.reset();
    if (!s.suspecting()) device.total_reviewed.reset();
    return;
  }
  if (device.total_reviewed && tick - *device.total_reviewed < kReview) return;
  const bool is_new = !device.total_reviewed;
  device.total_reviewed = tick;
  device.pile = attribution(s, s.finding()).pile;
  Finding alone = found(s).finding;
  leave_to_band(s, alone);
  const auto look = [&](SeriesState& part) {
    if (is_new) part.explains.reset();  // it belonged to an earlier growth
    const bool followed = part.explains.has_value();
    part.explains = share_of_growth(part, alone);
    if (followed != part.explains.has_value()) queue(part);
  };
  for (const SeriesId id : device.living)
    if (SeriesState* const part = series.find(id); part != nullptr) look(*part);
  look(*device.unattributed);
}

const SeriesState* Engine::Core::suspected_part(const SeriesState& device) const {
  const SeriesState* found = device.device->unattributed;
  if (found != nullptr && (!found->detector || !found->is_suspected())) found = nullptr;
  series.for_device(device_key(device.key), [&](const SeriesState& s) {
    if (s.key.pid != 0 && is_part(s) && s.detector && s.is_suspected()) found = &s;
  });
  return found;
}

/// How and why the growth that the alert of `s` is about ended.
WhyOver Engine::Core::why_over(const SeriesState& s) const {
  for (const SeriesState* line : {&s.last_line(), &s})
    if (s.detector && !s.alerting() && !line->detector->last_end_reason().empty())
      return {line->detector->last_end(), line->detector->last_end_reason()};
  if (const SeriesState* const allocated = allocator_of(s).allocated; allocated != nullptr && allocated != &s)
    return why_over(*allocated);
  for (const std::vector<Alert>* list : {&s.alerts, &s.suspicions})
    if (!list->empty() && list->back().cleared && list->back().finding.leak)
      return {list->back().ended, list->back().end_reason, list->back().end_kind};
  return {AlertEnd::withdrawn, "neither its processes nor the memory outside them grow"};
}

/// The parts that leak by their own detectors, the worst first. A process that matches an ignore pattern never alerts;
/// its device does if the device's total leaks, too.
std::vector<const SeriesState*> Engine::Core::leaking_parts(const SeriesState& device) const {
  std::vector<std::pair<Finding, const SeriesState*>> found;
  for (const SeriesId id : device.device->leaking)
    if (const SeriesState* s = series.find(id); s != nullptr && s->detector && wants_leak(*s))
      found.emplace_back(verdict(*s).finding, s);
  if (found.empty() && device.detector && device.detector->alerting() && !config.detection.ignore_patterns.empty())
    series.for_device(device_key(device.key), [&](const SeriesState& s) {
      if (s.ignored && s.detector && s.key.metric == Metric::process_used && s.alerting())
        found.emplace_back(s.finding(), &s);
    });
  std::erase_if(found, [&](const auto& one) { return !one.first.leak || is_past(device, *one.second, one.first); });
  std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return worse(a.first, b.first); });
  std::vector<const SeriesState*> out;
  for (const auto& one : found) out.push_back(one.second);
  return out;
}

/// What a process did before its device's run ended with it belongs to the past.
bool Engine::Core::is_past(const SeriesState& device, const SeriesState& process, const Finding& f) const {
  const auto& end = device.device->last_end;
  return end && end->pid != 0 && process.key.pid == end->pid && process.key.pid_start_ticks == end->pid_start_ticks &&
         (!f.onset || *f.onset <= end->time) &&
         (device.last_bytes < end->used_bytes || device.device->held_since_end(endings.no_growth_bytes()));
}

/// A leak of a part is a leak of the device; nothing else is.
void Engine::Core::judge_by_parts(const SeriesState& device, Attributed& v) const {
  const std::vector<const SeriesState*> parts = leaking_parts(device);
  if (!parts.empty()) {
    take_figures_of_parts(parts, device, v);
    return;
  }
  if (const auto& pile = device.device->pile; pile && grows(v.finding)) {
    v.finding.because =
        fmt::format("{} processes like {} started one after another and are still running; they hold {}; {}",
                    pile->processes, printable(pile->command), scale.bytes(pile->bytes), v.finding.because);
    v.suspect.reset();
    if (v.finding.leak) return;
    v.finding.stage = Stage::suspected;
    v.finding.state = State::growing;
    v.finding.oom_in_s.reset();
    return;
  }
  if (const SeriesState* const loads = loader(device); loads != nullptr && suspected_part(device) == nullptr) {
    v.finding = loads->detector->finding();
    v.finding.because = fmt::format("pid {}: {}", loads->key.pid, v.finding.because);
    return;
  }
  if (!grows(v.finding)) {
    // The total may stand still, or have just jumped: a process that grows is then all there is to report.
    if (const SeriesState* grower = fastest_grower(device)) return take_figures_of_parts({grower}, device, v);
    const SeriesState* const part = suspected_part(device);
    if (part == nullptr || !part->runs_trend) return;
    v.finding = verdict(*part).finding;
    v.finding.because = fmt::format("pid {}: {}", part->key.pid, v.finding.because);
    return;
  }
  const Attribution a = attribution(device, v.finding);
  const SeriesState* const rest = device.device->unattributed;
  const bool rest_grows = rest->detector && grows(rest->finding());
  bool process_grows = false;
  series.for_device(device_key(device.key), [&](const SeriesState& s) {
    if (is_part_of(s, a.suspect) && s.detector) process_grows = process_grows || grows(s.finding());
  });
  Finding& f = v.finding;
  const bool was_leak = f.leak;
  f.leak = false;
  f.stage = suspected_part(device) != nullptr ? Stage::suspected : Stage::none;
  f.oom_in_s.reset();
  if (process_grows || rest_grows) {
    // It may be a leak; the part will show whether it is.
    v.suspect = process_grows ? a.suspect : std::optional(Suspect{0, 0, "no visible process", 1.0});
    // More is known of the part than of the total, such as how earlier runs of its program ended.
    if (process_grows)
      series.for_device(device_key(device.key), [&](const SeriesState& s) {
        if (is_part_of(s, a.suspect) && s.detector && grows(s.finding()))
          f.confidence = std::min(f.confidence, verdict(s).finding.confidence);
      });
    if (!was_leak) return;
    f.state = State::growing;
    f.because = fmt::format(
        "{} grows, and it is too early to tell whether it leaks; the device's total: {}",
        process_grows ? fmt::format("pid {}", a.suspect->pid) : std::string("what no visible process holds"),
        f.because);
    return;
  }
  f.state = State::steady;
  f.stage = Stage::none;
  f.pattern = Pattern::none;
  f.confidence = std::min(f.confidence * (1 - a.churn_share), 0.1);
  f.because = fmt::format(
      "neither its processes nor the memory outside them grow like a leak; processes that started in the "
      "meantime explain {} of the rise; of the device's total: {}",
      format_percent(a.churn_share), f.because);
}

/// The process of the device that is loading, the one that holds most; nullptr if none is.
const SeriesState* Engine::Core::loader(const SeriesState& device) const {
  const SeriesState* found = nullptr;
  for (const SeriesId id : device.device->living) {
    const SeriesState* const s = series.find(id);
    if (s == nullptr || !s->detector || !s->facts || (found != nullptr && s->last_bytes <= found->last_bytes)) continue;
    if (s->finding().state == State::loading) found = s;
  }
  return found;
}

/// The live process of the device that grows fastest; nullptr if none grows.
const SeriesState* Engine::Core::fastest_grower(const SeriesState& device) const {
  const SeriesState* found = nullptr;
  double fastest = 0;
  series.for_device(device_key(device.key), [&](const SeriesState& s) {
    if (s.key.pid == 0 || !is_part(s) || s.ended || s.ignored || !s.detector) return;
    const Finding f = s.finding();
    if (!grows(f) || f.growth_bytes_per_s.mid <= fastest || is_past(device, s, f)) return;
    found = &s;
    fastest = f.growth_bytes_per_s.mid;
  });
  return found;
}

void take_what_the_total_shows(const Finding& total, Timestamp now, Finding& part) {
  if (!grows(total) || !grows(part) || !total.onset || !part.onset) return;
  const double age_s = seconds_between(std::min(*total.onset, *part.onset), now);
  if (std::abs(seconds_between(*total.onset, *part.onset)) > std::max(kSameOnset_s, kSameOnsetShare * age_s)) return;
  part.onset = std::min(*total.onset, *part.onset);
  part.confidence = std::max(part.confidence, total.confidence);
}

void Engine::Core::take_figures_of_parts(const std::vector<const SeriesState*>& parts, const SeriesState& device,
                                         Attributed& v) const {
  const SeriesState& worst = *parts.front();
  Finding f = worst.ignored ? worst.finding() : verdict(worst).finding;
  take_what_the_total_shows(v.finding, device.last_time, f);
  // A suspected one fills the memory, too, as does one that would be suspected were it not young enough to be loading;
  // if one grows faster than the confirmed ones, it is the one to look into.
  std::vector<const SeriesState*> growers = parts;
  const SeriesState* named = &worst;
  double fastest = worst.finding().growth_bytes_per_s.mid;
  series.for_device(device_key(device.key), [&](const SeriesState& s) {
    if (s.key.pid == 0 || !is_part(s) || s.ended || s.ignored || !s.detector || s.leaks()) return;
    if (!s.is_suspected() && !s.detector->rise()) return;
    const Finding its = s.finding();
    if (!s.is_suspected() && (!grows(its) || its.confidence < config.detection.confidence_threshold)) return;
    growers.push_back(&s);
    const double rate = its.growth_bytes_per_s.mid;
    if (rate <= fastest) return;
    fastest = rate;
    named = &s;
  });
  const double rise = f.onset ? named->rise_since(*f.onset) : 0;
  const double risen = f.onset ? std::max(device.rise_since(*f.onset), rise) : 0;
  double share = risen > 0 ? std::clamp(rise / risen, 0.0, 1.0) : 1.0;
  if (growers.size() > 1 && f.growth_bytes_per_s.mid > 0) {
    // Several grow, and together they fill the memory.
    Interval together;
    for (const SeriesState* part : growers) {
      const Finding its = part->finding();
      together.low += its.growth_bytes_per_s.low;
      together.mid += its.growth_bytes_per_s.mid;
      together.high += its.growth_bytes_per_s.high;
    }
    if (f.oom_in_s && together.mid > 0) {
      double sooner = std::min(1.0, f.growth_bytes_per_s.mid / together.mid);
      // A part that ends at its own wall is not filled by the others; if all fill the host's memory, its end says so.
      if ((wall(worst) || device.device->shares_host_memory) && device.limit_bytes && f.oom_in_s->mid > 0)
        sooner = std::min(1.0, std::max(0.0, *device.limit_bytes - static_cast<double>(device.last_bytes)) /
                                   together.mid / f.oom_in_s->mid);
      f.oom_in_s = scaled(*f.oom_in_s, sooner);
    }
    f.growth_bytes_per_s = together;
    // Of that rate: one that was restarted has risen for less time, and what its last run held has fallen.
    if (together.mid > 0) share = std::clamp(fastest / together.mid, 0.0, 1.0);
  }
  if (hold_of(worst) == nullptr) f.because = fmt::format("{} grows: {}", name_of(worst), f.because);
  // The reason begins with the one that is named.
  if (named != &worst)
    f.because = fmt::format("{} grows fastest, by {}, and {}; {}", name_of(*named),
                            scale.scaled_rate(named->finding().growth_bytes_per_s.mid),
                            named->is_suspected() ? "is suspected" : "is not suspected yet", f.because);
  if (named->key.pid == 0) {
    v.suspect = Suspect{0, 0, "no visible process", share};
  } else {
    const ProcessInfo* const info = catalog.process(process_key(named->key));
    v.suspect = Suspect{named->key.pid, named->key.pid_start_ticks,
                        info == nullptr         ? std::string()
                        : info->command.empty() ? info->name
                                                : info->command,
                        share};
  }
  if (parts.size() > 1)
    f.because +=
        parts.size() == 2 ? "; one more process leaks" : fmt::format("; {} more processes leak", parts.size() - 1);
  v.finding = std::move(f);
}

/// A job that grows no longer and no higher than earlier, harmless runs of its program is one of them.
void Engine::Core::leave_to_jobs(const SeriesState& process, Explained& v) const {
  if (v.finding.stage == Stage::none || !process.detector) return;
  const ProcessInfo* const info = catalog.process(process_key(process.key));
  if (info == nullptr) return;
  const Finding& f = v.finding;
  const std::string program = program_identity(*info).text;
  if (program.empty()) return;
  std::vector<ProgramRun> settled;
  series.for_device(device_key(process.key), [&](const SeriesState& s) {
    if (s.ended || s.key.metric != Metric::process_used || s.id == process.id || s.leaks()) return;
    const ProcessInfo* const its = catalog.process(process_key(s.key));
    if (its == nullptr || program_identity(*its).text != program) return;
    const ProgramRun run = run_of(s);
    if (run.lived_s >= kSettled * run.grew_s) settled.push_back(run);
  });
  const double lived_s = seconds_between(process.first_time, process.last_time);
  const double free_bytes = process.limit_bytes.value_or(0) - static_cast<double>(process.last_bytes);
  const bool small = f.onset && process.rise_since(*f.onset) <= kSmall * free_bytes;
  const auto word =
      programs.against_leak(program, {lived_s, lived_s, static_cast<double>(process.peak_bytes), false, small},
                            f.oom_in_s ? std::optional(f.oom_in_s->mid) : std::nullopt, settled);
  if (!word) return;
  const std::string why =
      word->ended_long
          ? fmt::format(
                "{} earlier runs of the same program lived as long, and most ended long before memory would have run "
                "out",
                word->runs)
          : fmt::format("{} earlier runs of the same program grew for as long and as high, and did not leak",
                        word->runs);
  v.finding.leak = false;
  v.finding.stage = Stage::none;
  v.finding.state = State::growing;
  v.finding.oom_in_s.reset();
  v.finding.confidence = std::min(v.finding.confidence, 1.0 / (word->runs + 2));
  v.finding.because = why + "; " + v.finding.because;
}

/// Checks whether each of the last runs of the process's program peaked higher than the one before, including this one.
void Engine::Core::follow_runs(SeriesState& s) {
  const auto least = static_cast<std::uint64_t>(config.detection.min_growth_mb * kMiB);
  if (s.ended || s.peak_bytes < s.trend_at_bytes + least) return;
  s.trend_at_bytes = s.peak_bytes;
  std::vector<Trough> peaks;
  if (runs) {
    peaks = runs->earlier(s);
  } else if (const ProcessInfo* const info = catalog.process(process_key(s.key))) {
    if (const auto* known = programs.of(program_identity(*info).text))
      for (const ProgramRun& run : *known) peaks.push_back({run.begin, run.peak_bytes, run.peak_bytes});
  }
  if (peaks.empty()) return;
  const auto peak = static_cast<double>(s.peak_bytes);
  peaks.push_back({s.first_time, peak, peak});
  s.runs_trend = cycle_trend_of(peaks, static_cast<double>(least), true);
  if (s.runs_trend && s.runs_trend->probability < config.detection.confidence_threshold) s.runs_trend.reset();
  if (s.runs_trend || s.suspicion() != nullptr) queue(s);
}

/// What several runs of the program show together, but no single run shows.
void Engine::Core::suspect_by_runs(const SeriesState& s, Explained& v) const {
  if (!s.runs_trend || v.finding.stage != Stage::none) return;
  const CycleTrend& trend = *s.runs_trend;
  Finding& f = v.finding;
  const double left = s.limit_bytes ? (*s.limit_bytes - static_cast<double>(s.peak_bytes)) / trend.step_bytes : 0;
  f.stage = Stage::suspected;
  f.state = State::growing;
  f.confidence = std::max(f.confidence, trend.probability);
  f.onset = trend.onset;
  f.growth_bytes_per_s = {};
  f.because = fmt::format(
      "each of the last {} runs of the program peaked higher than the one before, by {} on average and by {} in "
      "all{}; "
      "odds of this by chance: 1 in {:.0f}; this run: {}",
      trend.cycles, scale.bytes(trend.step_bytes), scale.bytes(trend.net_bytes),
      !s.limit_bytes ? std::string()
      : left < 1     ? std::string("; the next one will not fit")
                     : fmt::format("; {:.0f} more fit", std::floor(left)),
      1 / trend.chance, f.because);
}

void Engine::Core::remember_run(const SeriesState& s) {
  const ProcessInfo* const info = catalog.process(process_key(s.key));
  if (info == nullptr || s.ended || s.samples == 0) return;
  programs.add(program_identity(*info).text, run_of(s));
}

}  // namespace vramtrack
