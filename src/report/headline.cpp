#include "report/headline.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <limits>
#include <unordered_map>

#include "core/format.hpp"
#include "report/total.hpp"
#include "report/words.hpp"

// A new matter without words must be a compile error here.
#pragma GCC diagnostic error "-Wswitch"

namespace vramtrack {
namespace {

using Devices = std::vector<const SeriesView*>;

/// A device, summarised from its series.
struct Device {
  const SeriesView* face = nullptr;    ///< its total; without one, its most relevant series
  const SeriesView* leaker = nullptr;  ///< its total if that leaks, else its worst leaking series
  bool has_total = false;
  bool is_past = false;
};

/// The more severe one first, then the one that runs out of memory sooner.
bool worse(const SeriesView* a, const SeriesView* b) {
  const auto end_s = [](const SeriesView* s) {
    return s->verdict.finding.oom_in_s ? s->verdict.finding.oom_in_s->mid : std::numeric_limits<double>::infinity();
  };
  if (a->verdict.severity != b->verdict.severity) return a->verdict.severity > b->verdict.severity;
  return end_s(a) < end_s(b);
}

/// In the order of the series.
std::vector<Device> devices_of(const std::vector<SeenSeries>& series, Timestamp now) {
  std::vector<Device> out;
  std::unordered_map<DeviceKey, std::size_t, KeyHash> index;
  for (const auto& [s, is_past] : series) {
    const auto [at, is_new] = index.try_emplace(device_key(s->key), out.size());
    if (is_new) out.emplace_back();
    Device& device = out[at->second];
    const bool of_total = is_total(*s);
    if (!is_past && !s->ended && s->verdict.finding.leak &&
        (device.leaker == nullptr || of_total || (!is_total(*device.leaker) && worse(s, device.leaker))))
      device.leaker = s;
    if (device.face != nullptr && !of_total && (device.has_total || concern(*s, now) <= concern(*device.face, now)))
      continue;
    device.face = s;
    device.has_total = of_total;
    device.is_past = is_past;
  }
  return out;
}

template <class Pick>
Devices faces(const std::vector<Device>& devices, Pick pick) {
  Devices out;
  for (const Device& device : devices)
    if (pick(device)) out.push_back(device.face);
  return out;
}

/// How these ended, if all ended in the same way.
std::string_view ends_of(const Devices& ended) {
  const std::string_view first = end_words(*ended.front());
  const bool alike = std::all_of(ended.begin(), ended.end(), [&](const auto* s) { return end_words(*s) == first; });
  return alike ? first : "ended badly";
}

/// A leak that no device total shows, for example because only the processes were recorded.
std::string part_words(const SeriesView& part) {
  if (is_of_host(part.key.metric)) return "the host memory of a process leaks";
  return part.key.pid != 0 ? "a process leaks" : "the memory of an allocator leaks";
}

std::string leak_words(const Devices& leaking, std::size_t devices) {
  if (std::none_of(leaking.begin(), leaking.end(), [](const auto* s) { return is_total(*s); }))
    return part_words(*leaking.front());
  return fmt::format("{} leak{}", which_devices(leaking, devices), leaking.size() == 1 ? "s" : "");
}

Machine machine_about(Matter matter, Tone tone, std::size_t devices, Devices subjects) {
  Machine out{matter, tone, {}, devices, std::move(subjects)};
  const std::string which = out.subjects.empty() ? std::string() : which_devices(out.subjects, devices);
  const bool one = out.subjects.size() == 1;
  switch (matter) {
    case Matter::no_device:
      out.words = "no GPU";
      break;
    case Matter::unknown:
      out.words = "not known yet: too few samples";
      break;
    case Matter::healthy:
      out.words = out.subjects.empty() ? "no leak" : "no leak so far";
      break;
    case Matter::growing:
      out.words = fmt::format("{} {}, too early to tell why", which, one ? "grows" : "grow");
      break;
    case Matter::suspected:
      out.words = fmt::format("{} {} suspected of a leak", which, one ? "is" : "are");
      break;
    case Matter::lost:
      out.words = fmt::format("{} {} lost", which, one ? "was" : "were");
      break;
    case Matter::ended:
      out.words = fmt::format("{} {}", which, ends_of(out.subjects));
      break;
    case Matter::leaking:
      out.words = leak_words(out.subjects, devices);
      break;
  }
  return out;
}

/// "pid 4242 python train.py", as far as the client may see it.
std::string who(const View& view, const SeriesView& series, std::uint32_t pid, std::uint64_t start_ticks,
                const std::string& command, const MaySeeCommand& may_see) {
  return fmt::format("pid {} {}", pid,
                     printable(visible_command(view, series.key.host, pid, start_ticks, command, may_see)));
}

std::string short_names(const Devices& devices) {
  std::string out;
  for (const SeriesView* s : devices) out += (out.empty() ? "" : ", ") + short_device_words(*s);
  return out;
}

std::string of_leak(const Machine& machine, const View& view, const MaySeeCommand& may_see) {
  const SeriesView& worst = *machine.subjects.front();
  const auto& suspect = worst.verdict.suspect;
  const ConclusionWords words = conclusion_words(view, worst);
  std::string text = machine.subjects.size() > 1 ? fmt::format(", {} first", short_device_words(worst)) : std::string();
  if (suspect && suspect->pid == 0) text += ": " + words.by;
  if (suspect && suspect->pid != 0)
    text += ": " + who(view, worst, suspect->pid, suspect->pid_start_ticks, suspect->command, may_see);
  else if (worst.process)
    text += ": " + who(view, worst, worst.key.pid, worst.key.pid_start_ticks, worst.process->command, may_see);
  if (!words.forecast.empty()) text += "; " + words.forecast;
  return text;
}

std::string of_end(const Machine& machine, const View& view, const MaySeeCommand& may_see) {
  const SeriesView& last = *machine.subjects.front();
  const End& end = *last.verdict.end;
  std::string text = machine.subjects.size() > 1 ? fmt::format(", {} last,", short_device_words(last)) : std::string();
  text += " at " + view.moment(end.time);
  if (end.pid != 0) text += ": " + who(view, last, end.pid, end.pid_start_ticks, end.command, may_see);
  return text;
}

std::string of_loss(const Machine& machine, const View& view) {
  const SeriesView& first = *machine.subjects.front();
  if (!first.last) return {};
  return fmt::format("{} at {}: readings stopped then",
                     machine.subjects.size() > 1 ? ", " + short_device_words(first) : std::string(),
                     view.moment(*first.last));
}

std::string of_health(const Machine& machine) {
  if (!machine.subjects.empty()) return fmt::format("; too few samples of {} to tell", short_names(machine.subjects));
  return machine.devices == 1 ? std::string() : fmt::format(" on {} GPUs", machine.devices);
}

std::string text_of(const Machine& machine, const View& view, const MaySeeCommand& may_see) {
  std::string text = machine.words;
  switch (machine.matter) {
    case Matter::no_device:
      text += " is being watched";
      break;
    case Matter::unknown:
      break;
    case Matter::healthy:
      text += of_health(machine);
      break;
    case Matter::growing:
    case Matter::suspected:
      if (machine.subjects.size() > 1) text += ": " + short_names(machine.subjects);
      break;
    case Matter::lost:
      text += of_loss(machine, view);
      break;
    case Matter::ended:
      text += of_end(machine, view, may_see);
      break;
    case Matter::leaking:
      text += of_leak(machine, view, may_see);
      break;
  }
  text.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(text.front())));
  return text + '.';
}

}  // namespace

std::string which_devices(const std::vector<const SeriesView*>& subjects, std::size_t devices) {
  if (subjects.size() == 1) return short_device_words(*subjects.front());
  return fmt::format("{} of {} GPUs", subjects.size(), devices);
}

Machine machine_of(const std::vector<SeenSeries>& series, Timestamp now) {
  const std::vector<Device> devices = devices_of(series, now);
  const auto about = [&](Matter matter, Tone tone, Devices subjects = {}) {
    return machine_about(matter, tone, devices.size(), std::move(subjects));
  };
  if (devices.empty()) return about(Matter::no_device, Tone::faint);
  Devices leaking;
  for (const Device& device : devices)
    if (device.leaker != nullptr) leaking.push_back(device.leaker);
  if (!leaking.empty()) {
    std::stable_sort(leaking.begin(), leaking.end(), worse);
    const Tone tone = tone_of(*leaking.front(), now);
    return about(Matter::leaking, tone, std::move(leaking));
  }
  // A run that ended badly in the last day: users who look in the morning need to see that first.
  Devices ended = faces(devices, [&](const Device& d) { return ended_badly(*d.face, now); });
  if (!ended.empty()) {
    std::stable_sort(ended.begin(), ended.end(),
                     [](const auto* a, const auto* b) { return a->verdict.end->time > b->verdict.end->time; });
    return about(Matter::ended, Tone::warning, std::move(ended));
  }
  Devices lost = faces(devices, [](const Device& d) { return !d.is_past && d.face->paused; });
  if (!lost.empty()) return about(Matter::lost, Tone::warning, std::move(lost));
  const auto goes_on = [](const Device& d) { return !d.is_past && !d.face->ended; };
  Devices suspected =
      faces(devices, [&](const Device& d) { return goes_on(d) && d.face->verdict.finding.stage == Stage::suspected; });
  if (!suspected.empty()) return about(Matter::suspected, Tone::notice, std::move(suspected));
  Devices growing = faces(devices, [&](const Device& d) { return goes_on(d) && concern(*d.face, now) == 1; });
  if (!growing.empty()) return about(Matter::growing, Tone::notice, std::move(growing));
  // A GPU with too few samples is not known to be healthy.
  Devices young = faces(devices, [](const Device& d) { return d.face->verdict.finding.state == State::too_short; });
  if (young.size() == devices.size()) return about(Matter::unknown, Tone::faint, std::move(young));
  return about(Matter::healthy, Tone::ok, std::move(young));
}

Machine machine_of(const View& view) {
  std::vector<SeenSeries> series;
  for (const SeriesView& s : view.series) series.push_back({&s});
  return machine_of(series, view.time);
}

Headline headline(const View& view, const MaySeeCommand& may_see) {
  const Machine machine = machine_of(view);
  return {machine.tone, text_of(machine, view, may_see)};
}

}  // namespace vramtrack
