#include "act/subject.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <set>
#include <tuple>

#include "core/printable.hpp"

namespace vramtrack::act {
namespace {

constexpr std::size_t kMostCommand = 120;  ///< bytes of a command in a sentence

const Alert* standing_alert(const SeriesView& series, AlertKind kind) {
  const auto stands = [kind](const Alert& alert) {
    return alert.kind == kind && alert.ended == AlertEnd::standing && !alert.cleared;
  };
  const auto last = std::find_if(series.alerts.rbegin(), series.alerts.rend(), stands);
  return last == series.alerts.rend() ? nullptr : &*last;
}

void label(Subject& subject, const char* name, const std::string& value) {
  if (!value.empty()) subject.labels[name] = value;
}

void describe(Subject& subject, const ProcessInfo& process) {
  subject.user = process.user;
  subject.command = process.command.empty() ? process.name : process.command;
  subject.container = process.container;
  subject.pod = process.pod;
  subject.job = process.slurm_job;
  subject.job_name = process.job_name;
  label(subject, "image", process.image);
  label(subject, "framework", process.framework);
  label(subject, "cgroup", process.cgroup);
  label(subject, "name", process.name);
}

Subject subject_of(const View& view, const SeriesView& series, const Alert& alert) {
  Subject subject;
  subject.process = process_key(series.key);
  subject.process.host = series.key.host;
  if (series.process) describe(subject, *series.process);
  label(subject, "host", series.key.host);
  subject.incident = alert.incident;
  subject.device_id = series.key.device_id;
  subject.device_index = series.device.index;
  subject.device_name = series.device.name;
  subject.used_bytes = series.used_bytes;
  subject.held_s = std::max(0.0, seconds_between(alert.raised, view.time));
  if (alert.kind == AlertKind::stall) {
    // The verdict is about the memory, which does not change.
    subject.trouble = Trouble::stalled;
    subject.severity = alert.severity;
    subject.confidence = series.stall ? series.stall->confidence : alert.finding.confidence;
    subject.because = alert.finding.because;
    return subject;
  }
  const Finding& finding = series.verdict.finding;
  subject.severity = std::max(series.verdict.severity, alert.severity);
  subject.pattern = finding.pattern;
  subject.confidence = finding.confidence;
  subject.growth_bytes_per_s = finding.growth_bytes_per_s;
  subject.ends_in_s = finding.oom_in_s;
  subject.because = finding.because;
  return subject;
}

double ends_first_s(const Subject& subject) {
  return subject.ends_in_s ? subject.ends_in_s->low : std::numeric_limits<double>::infinity();
}

bool is_worse(const Subject& one, const Subject& other) {
  if (one.trouble != other.trouble) return one.trouble == Trouble::leak;
  if (one.severity != other.severity) return one.severity > other.severity;
  return ends_first_s(one) < ends_first_s(other);
}

/// Whether a step may be based on this series at all.
bool counts(const SeriesView& series) {
  return !series.ignored && !series.ended && !series.paused;
}

}  // namespace

std::string_view to_string(Trouble trouble) {
  return kTroubleWords.at(static_cast<std::size_t>(trouble));
}

std::string subject_key(const Subject& subject) {
  const ProcessKey& process = subject.process;
  if (process.pid == 0) return fmt::format("device/{}/{}", process.host, subject.device_id);
  return fmt::format("process/{}/{}/{}", process.host, process.pid, process.start_ticks);
}

std::string subject_words(const Subject& subject) {
  if (subject.process.pid == 0 && !subject.device_index && subject.device_id.empty()) return printable(subject.node);
  const std::string where = subject.node.empty() ? std::string() : " on " + printable(subject.node);
  if (subject.process.pid == 0)
    return (subject.device_index ? fmt::format("GPU {}", *subject.device_index)
                                 : "GPU " + printable(subject.device_id)) +
           where;
  std::string command = subject.command;
  if (command.size() > kMostCommand) command.replace(kMostCommand, std::string::npos, "...");
  std::string within = printable(command);
  if (!subject.user.empty()) within += (within.empty() ? "user " : ", user ") + printable(subject.user);
  return fmt::format("pid {}{}{}", subject.process.pid, within.empty() ? "" : " (" + within + ")", where);
}

std::vector<Subject> subjects_of(const View& view) {
  std::vector<Subject> subjects;
  std::set<DeviceKey, decltype([](const DeviceKey& a, const DeviceKey& b) {
             return std::tie(a.host, a.id) < std::tie(b.host, b.id);
           })>
      explained;
  const auto add = [&](Subject subject) {
    for (Subject& known : subjects) {
      if (subject_key(known) != subject_key(subject)) continue;
      if (is_worse(subject, known)) known = std::move(subject);
      return;
    }
    subjects.push_back(std::move(subject));
  };
  for (const SeriesView& series : view.series) {
    // Steps free only the memory of devices.
    if (is_of_device(series.key.metric) || is_of_host(series.key.metric) || series.key.pid == 0 || !counts(series))
      continue;
    if (const Alert* leak = standing_alert(series, AlertKind::leak)) {
      explained.insert(device_key(series.key));
      add(subject_of(view, series, *leak));
    } else if (const Alert* stall = standing_alert(series, AlertKind::stall);
               stall != nullptr && !(series.stall && series.stall->cause == StallCause::exited)) {
      add(subject_of(view, series, *stall));
    }
  }
  for (const SeriesView& series : view.series) {
    if (!is_of_device(series.key.metric) || !counts(series) || explained.contains(device_key(series.key))) continue;
    if (const Alert* leak = standing_alert(series, AlertKind::leak)) add(subject_of(view, series, *leak));
  }
  return subjects;
}

}  // namespace vramtrack::act
