#include "engine/run_memory.hpp"

#include <algorithm>
#include <utility>

#include "core/units.hpp"

namespace vramtrack {
namespace {

/// Shorter runs, or runs with fewer samples, show nothing.
constexpr double kLeastRun_s = 10;
constexpr std::uint64_t kLeastSamples = 3;
/// A run stood still if it did so for at least this long.
constexpr double kStood_s = kSecondsPerHour / 2;
/// A process that existed when watching began has only just begun if it held at most this share of its later maximum.
constexpr double kBeginsShare = 0.1;
/// Between its beginning and its first memory, a program loads its libraries.
constexpr double kStarts_s = 2 * kSecondsPerMinute;
/// A process that holds this share of the device's used memory determines what the device does.
constexpr double kFillsShare = 0.8;

}  // namespace

RunMemory::Seen& RunMemory::begin(SeriesState& s, Timestamp time, double bytes) {
  if (index_of(s.id) >= seen_.size()) seen_.resize(index_of(s.id) + 1);
  auto& seen = seen_[index_of(s.id)];
  if (seen && seen->remembered) --remembered_;
  s.set_experience(nullptr);
  seen = std::make_unique<Seen>();
  seen->begin = time;
  seen->first_bytes = bytes;
  if (s.key.pid != 0 && s.facts) seen->born = s.facts->begin();
  // If processes are listed from the beginning, one that comes later began at that moment.
  const auto first = catalog_.processes_are_listed || s.key.pid == 0 ? first_time_ : first_process_time_;
  seen->maybe_older = time <= first.value_or(time);
  if (const auto known = days_.find(index_of(s.id)); known != days_.end()) {
    seen->experience.days() = std::move(known->second);
    days_.erase(known);
  }
  return *seen;
}

void RunMemory::observe(SeriesState& s, const Sample& sample) {
  const auto bytes = static_cast<double>(sample.bytes);
  if (!first_time_) first_time_ = sample.time;
  if (!s.is_process()) {
    if (s.key.metric != Metric::device_used) return;
    Seen* seen = find(s.id);
    if (seen == nullptr || s.samples == 1) {
      seen = &begin(s, sample.time, bytes);
      s.set_experience(&seen->experience);
    }
    seen->experience.days().observe(sample.time, bytes);
    if (memory_.program_on) seen->curve.observe(seconds_between(seen->begin, sample.time), bytes);
    return;
  }
  if (!first_process_time_) first_process_time_ = sample.time;
  Seen* seen = find(s.id);
  if (seen == nullptr || s.samples == 1) {
    seen = &begin(s, sample.time, bytes);
    s.set_experience(&seen->experience);
    ask(s, *seen);
  }
  seen->experience.days().observe(sample.time, bytes);
  seen->curve.observe(seconds_between(seen->begin, sample.time), bytes);
}

void RunMemory::set_past_days(SeriesId id, const std::vector<std::pair<Timestamp, double>>& hour_floors) {
  Seen* const seen = find(id);
  Days days;
  for (const auto& [hour, floor_bytes] : hour_floors) days.add_hour(hour, floor_bytes);
  if (seen != nullptr)
    seen->experience.days().prepend(days);
  else
    days_[index_of(id)] = std::move(days);
}

void RunMemory::describe(SeriesState& s) {
  Seen* const seen = find(s.id);
  if (seen != nullptr && !s.ended && s.is_process() && !seen->remembered) ask(s, *seen);
}

void RunMemory::ask(SeriesState& s, Seen& seen) {
  if (s.is_process()) {
    const ProcessInfo* const process = catalog_.process(process_key(s.key));
    if (process == nullptr) return;
    ProgramIdentity identity = program_identity(*process);
    if (identity.text == seen.identity.text) return;
    seen.identity = std::move(identity);
  } else {
    const std::string program = memory_.program_on(s.key, seen.begin);
    seen.identity = {ProgramMemory::kOnDevice + s.key.host + '\n' + s.key.device_id + '\n' + program,
                     "runs of " + s.key.device_id,
                     {}};
    seen.is_nobodys = program.empty();
    if (seen.is_nobodys) return;
  }
  const auto program = memory_.find(seen.identity);
  if (!program) return;
  seen.remembered = true;
  ++remembered_;
  seen.experience.set_program(std::make_shared<const ProgramExperience>(*program));
  for (const FinishedRun& run : program->recent)
    seen.peaks.push_back({run.begin - memory_.shift, run.peak_bytes, run.peak_bytes});
  for (const FinishedRun& run : program->recent) {
    seen.settled_bytes = std::max(seen.settled_bytes, run.settled_bytes);
    if (run.outcome == RunOutcome::settled && run.duration_s() - run.warm_up_s >= kStood_s)
      seen.stood_bytes = std::max(seen.stood_bytes.value_or(0), run.settled_bytes);
  }
  seen.experience.set_begin(begin_of(seen));
}

/// The beginning of the run from which its age is counted; nullopt: unknown.
std::optional<Timestamp> RunMemory::begin_of(const Seen& seen) {
  if (seen.maybe_older && seen.born) return seen.born;
  return seen_from_start(seen, seen.settled_bytes) ? std::optional(seen.begin) : std::nullopt;
}

/// Whether its first memory was seen. For a process that is known to be old, holding little does not show that.
bool RunMemory::seen_from_start(const Seen& seen, double settled_bytes) {
  if (!seen.maybe_older) return true;
  if (seen.born && seconds_between(*seen.born, seen.begin) > kStarts_s) return false;
  return seen.first_bytes <= kBeginsShare * settled_bytes;
}

void RunMemory::update_begin(SeriesState& s) {
  Seen* const seen = find(s.id);
  if (seen == nullptr || !s.is_process() || !s.facts) return;
  seen->born = s.facts->begin();
  if (seen->remembered) seen->experience.set_begin(begin_of(*seen));
}

void RunMemory::complete_tick(const std::vector<SeriesId>& touched) {
  for (const SeriesId id : touched) {
    SeriesState* const s = table_.find(id);
    if (s == nullptr || s->ended) continue;
    if (s->key.metric == Metric::device_used) {
      if (memory_.program_on) note_device_run(*s);
      forget_days_of_leak(*s);
      continue;
    }
    SeriesState* const device = s->device->used;
    if (remembered_ == 0 || device == nullptr || !s->is_process()) continue;
    const double in_use = static_cast<double>(device->last_bytes) - s->device->idle_bytes();
    Seen* const its = find(device->id);
    if (its == nullptr) continue;
    const Seen* const seen = find(id);
    if (seen->remembered && static_cast<double>(s->last_bytes) >= kFillsShare * in_use)
      follow(*device, s);
    else if (its->follows == seen)
      follow(*device, nullptr);
  }
}

/// A fall at the end of a leak was not the end of a day.
void RunMemory::forget_days_of_leak(const SeriesState& device) {
  Seen* const seen = find(device.id);
  if (seen == nullptr || !device.device->last_end || !device.device->last_end->growth_bytes_per_s) return;
  if (seen->last_end == device.device->last_end->time) return;
  seen->last_end = device.device->last_end->time;
  seen->experience.days().clear();
}

void RunMemory::follow(SeriesState& device, const SeriesState* process) {
  Seen* const its = find(device.id);
  if (its == nullptr) return;
  const Seen* const seen = process != nullptr ? find(process->id) : nullptr;
  its->follows = seen;
  its->experience.follow(
      seen != nullptr ? &seen->experience : nullptr,
      process != nullptr ? static_cast<double>(device.last_bytes) - static_cast<double>(process->last_bytes) : 0);
}

/// DeviceState::runs is already up to date.
void RunMemory::note_device_run(SeriesState& device) {
  Seen* const seen = find(device.id);
  if (seen == nullptr || device.device->runs.all().empty()) return;
  const bool lists_processes = std::any_of(device.device->series.begin(), device.device->series.end(),
                                           [](const auto& entry) { return entry.second->key.pid != 0; });
  if (lists_processes) return;
  const Run& run = device.device->runs.all().back();
  if (run.end) {
    if (!seen->identity.text.empty() && !seen->is_nobodys) store(seen->identity, run_of(device, *seen));
    seen->identity = {};
    seen->curve = {};
    return;
  }
  if (!seen->identity.text.empty()) return;
  Seen& begun = begin(device, run.begin, static_cast<double>(run.peak_bytes));
  device.set_experience(&begun.experience);
  begun.curve.observe(seconds_between(run.begin, device.last_time), static_cast<double>(device.last_bytes));
  ask(device, begun);
}

FinishedRun RunMemory::run_of(const SeriesState& s, const Seen& seen) const {
  const bool is_device = s.key.pid == 0;
  const bool has_runs = s.key.metric == Metric::device_used && !s.device->runs.all().empty();
  const Run* const device_run = has_runs ? &s.device->runs.all().back() : nullptr;
  const Timestamp end = device_run != nullptr ? device_run->end.value_or(s.last_time) : s.last_time;
  const auto is_leak = [&](const Alert& alert) {
    return alert.raised >= seen.begin && alert.finding.leak && alert.ended != AlertEnd::withdrawn;
  };
  const bool alerted = std::any_of(s.alerts.begin(), s.alerts.end(), is_leak) ||
                       std::any_of(s.suspicions.begin(), s.suspicions.end(), is_leak);
  const Finding last = s.detector ? s.finding() : s.last_found.finding;
  const EndKind how = device_run != nullptr ? device_run->how
                      : s.last_found.end    ? s.last_found.end->how
                                            : EndKind::ended;
  const bool leaked = alerted || (last.leak && !is_device);
  FinishedRun run = seen.curve.run(seen.begin, end, leaked, false, true);
  const bool from_start = seen_from_start(seen, run.settled_bytes);
  if (how == EndKind::out_of_memory) {
    // A process that ran out of memory without growing was crowded out: that is no evidence about its program.
    const bool grew = leaked || grows(last) || run.outcome != RunOutcome::settled;
    run = seen.curve.run(seen.begin, end, leaked, grew, from_start);
    if (!grew) run.outcome = RunOutcome::rising;
    return run;
  }
  return seen.curve.run(seen.begin, end, leaked, false, from_start);
}

void RunMemory::ended(const SeriesState& s) {
  Seen* const seen = find(s.id);
  if (seen == nullptr || !s.is_process()) return;
  if (SeriesState* const device = s.device->used)
    if (const Seen* const its = find(device->id); its != nullptr && its->follows == seen) follow(*device, nullptr);
  if (seen->curve.samples() >= kLeastSamples && !seen->identity.text.empty()) {
    const FinishedRun run = run_of(s, *seen);
    const auto [known, is_new] = ending_.try_emplace(process_key(s.key), Ended{seen->identity, run});
    if (!is_new) {
      const RunOutcome worst = std::max(known->second.run.outcome, run.outcome);
      if (run.settled_bytes > known->second.run.settled_bytes) known->second.run = run;
      known->second.run.outcome = worst;
    }
  }
  bool goes_on = false;
  table_.for_process(process_key(s.key),
                     [&](const SeriesState& other) { goes_on |= other.is_process() && !other.ended; });
  if (!goes_on) {
    if (const auto it = ending_.find(process_key(s.key)); it != ending_.end()) {
      store(it->second.identity, it->second.run);
      ending_.erase(it);
    }
  }
  forget(s.id);
}

void RunMemory::store(const ProgramIdentity& identity, const FinishedRun& run) {
  if (run.duration_s() < kLeastRun_s) return;
  Program program = memory_.find(identity).value_or(Program{});
  program.name = identity.name;
  program.user = identity.user;
  FinishedRun shifted = run;
  shifted.begin += memory_.shift;
  shifted.end += memory_.shift;
  add_run(program, shifted);
  memory_.put(identity, program);
}

void RunMemory::end_all() {
  table_.for_each([&](SeriesState& s) {
    Seen* const seen = find(s.id);
    if (seen == nullptr || s.ended || seen->identity.text.empty() || seen->is_nobodys) return;
    if (seen->curve.samples() < kLeastSamples) return;
    store(seen->identity, run_of(s, *seen));
  });
}

void RunMemory::forget(SeriesId id) {
  Seen* const seen = find(id);
  if (seen == nullptr) return;
  if (SeriesState* const s = table_.find(id); s != nullptr) s->set_experience(nullptr);
  if (seen->remembered) --remembered_;
  seen_[index_of(id)].reset();
}

std::optional<double> RunMemory::stood_bytes(const SeriesState& series) const {
  const Seen* const seen = find(series.id);
  return seen != nullptr ? seen->stood_bytes : std::nullopt;
}

std::optional<RunMemory::Needed> RunMemory::needed(const SeriesState& process, std::size_t at_most) const {
  const Seen* const seen = find(process.id);
  if (seen == nullptr || seen->peaks.empty()) return std::nullopt;
  const std::size_t runs = std::min(at_most, seen->peaks.size());
  const auto highest = std::max_element(seen->peaks.end() - static_cast<std::ptrdiff_t>(runs), seen->peaks.end(),
                                        [](const Trough& a, const Trough& b) { return a.bytes < b.bytes; });
  return Needed{highest->bytes, static_cast<std::uint32_t>(runs)};
}

std::vector<Trough> RunMemory::earlier(const SeriesState& process) const {
  const Seen* const seen = find(process.id);
  return seen == nullptr ? std::vector<Trough>{} : seen->peaks;
}

void RunMemory::add_advice(const SeriesState& s, Verdict& v) const {
  if (!s.is_process() || v.finding.leak || v.finding.state != State::growing) return;
  const Seen* const seen = find(s.id);
  if (seen == nullptr || seen->remembered || seen->identity.text.empty()) return;
  v.finding.because += "; this is the first known run of the program: a second one will show more";
}

}  // namespace vramtrack
