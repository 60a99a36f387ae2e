#include "actuate/evidence.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

#include "core/format.hpp"
#include "core/meaning.hpp"
#include "core/printable.hpp"

namespace vramtrack::actuate {
namespace {

constexpr std::array<std::string_view, 7> kRefusalWords = {"bad_label",   "not_listed", "no_agent", "not_current",
                                                           "no_evidence", "mismatch",   "no_policy"};

/// How far an agent's time may be from ours: several of its periods, plus time for a request and for clock differences.
/// An agent that reports a long period is not trusted for longer than Prometheus' lookback.
constexpr double kPeriods = 3;
constexpr double kSlack_s = 10;
constexpr double kMostAge_s = 300;

/// The first of these labels that the alert has; empty if it has none of them.
std::string label_of(const Labels& labels, std::initializer_list<const char*> names) {
  for (const char* name : names)
    if (const auto at = labels.find(name); at != labels.end() && !at->second.empty()) return at->second;
  return {};
}

/// The claims of the alert that do not apply to `subject`; empty if all do.
std::string difference(const Labels& labels, const act::Subject& subject) {
  const std::string pid = label_of(labels, {"pid"});
  if (!pid.empty() && pid != std::to_string(subject.process.pid))
    return fmt::format("the alert is about pid {}, but the agent's alert is about pid {}", printable(pid),
                       subject.process.pid);
  const std::string ticks = label_of(labels, {"pid_start_ticks"});
  if (!ticks.empty() && ticks != std::to_string(subject.process.start_ticks))
    return fmt::format("pid {} is no longer the process of the alert: it started at tick {}, not {}",
                       subject.process.pid, subject.process.start_ticks, printable(ticks));
  const std::string job = label_of(labels, {"slurm_job_id", "hpc_job"});
  if (!job.empty() && act::job_number(job) != act::job_number(subject.job))
    return fmt::format("the alert is about Slurm job {}, but pid {} belongs to {}", printable(job), subject.process.pid,
                       subject.job.empty() ? "none" : "job " + printable(subject.job));
  const std::string pod = label_of(labels, {"pod_uid"});
  if (!pod.empty() && pod != subject.pod)
    return fmt::format("the alert is about the pod {}, but pid {} belongs to {}", printable(pod), subject.process.pid,
                       subject.pod.empty() ? "none" : printable(subject.pod));
  return {};
}

bool is_on_device(const Labels& labels, const act::Subject& subject) {
  const std::string uuid = label_of(labels, {"UUID", "uuid", "gpu_uuid"});
  if (!uuid.empty()) return uuid == subject.device_id || "GPU-" + uuid == subject.device_id;
  const std::string index = label_of(labels, {"gpu"});
  return index.empty() || (subject.device_index && index == std::to_string(*subject.device_index));
}

std::string device_words(const Labels& labels) {
  const std::string uuid = label_of(labels, {"UUID", "uuid", "gpu_uuid"});
  return uuid.empty() ? label_of(labels, {"gpu"}) : uuid;
}

bool is_worse(const act::Subject& one, const act::Subject& other) {
  const bool has = one.process.pid != 0;
  if (has != (other.process.pid != 0)) return has;
  if (one.severity != other.severity) return one.severity > other.severity;
  return one.growth_bytes_per_s.mid > other.growth_bytes_per_s.mid;
}

Evidence refused(Refusal refusal, std::string why) {
  return {std::nullopt, refusal, std::move(why)};
}

Evidence with_labels(act::Subject subject, const act::Climb& one, const std::string& node) {
  subject.node = node;
  subject.claim = one.id;
  for (const auto& [name, value] : one.claim->labels) subject.labels.emplace(name, value);
  return {std::move(subject), {}, {}};
}

}  // namespace

std::string_view to_string(Refusal refusal) {
  return kRefusalWords.at(static_cast<std::size_t>(refusal));
}

bool is_same_host(const std::string& one, const std::string& other) {
  const std::string a = lowered_word(one);
  const std::string b = lowered_word(other);
  return a == b || a.starts_with(b + '.') || b.starts_with(a + '.');
}

Status check_current(Witness& witness, Timestamp now) {
  View& view = witness.view;
  if (!witness.simulated.empty())
    return fail(
        fmt::format("the agent simulates the scenario '{}': its data is not real", printable(witness.simulated)));
  if (view.clock_is_relative) return fail("the agent's clock has no date: its data may not be current");
  double period_s = 0;
  for (const SeriesView& series : view.series)
    if (!series.ended) period_s = std::max(period_s, series.interval_s);
  const double most_s = std::min(kPeriods * period_s + kSlack_s, kMostAge_s);
  const double age_s = seconds_between(view.time, now);
  if (age_s > most_s)
    return fail(fmt::format("the agent's last sample is {} old: it has stopped, or its clock is behind",
                            format_duration(age_s)));
  if (age_s < -most_s)
    return fail(fmt::format("the agent's clock is {} ahead of this machine's", format_duration(-age_s)));
  for (SeriesView& series : view.series)
    series.paused = series.paused || !series.last || seconds_between(*series.last, now) > most_s;
  return {};
}

void put_on_node(View& view, const std::string& node) {
  for (SeriesView& series : view.series) series.key.host = node;
}

act::Observation observation_of(Witness witness, const std::string& node) {
  put_on_node(witness.view, node);
  return act::observe(witness.view);
}

Evidence evidence_of(const act::Climb& one, const std::string& node, const std::string& witness_host,
                     const act::Observation& seen) {
  const std::string host = label_of(one.claim->labels, {"Hostname", "hostname"});
  if (!host.empty() && !witness_host.empty() && !is_same_host(host, witness_host))
    return refused(Refusal::mismatch, fmt::format("the alert is about host {}, but the agent that was asked is on {}",
                                                  printable(host), printable(witness_host)));
  if (one.has_subject()) {
    for (const act::Subject& subject : seen.subjects)
      if (act::subject_key(subject) == act::subject_key(one.subject)) return with_labels(subject, one, node);
    return refused(Refusal::no_evidence,
                   fmt::format("no alert about pid {} is active on {} any more", one.subject.process.pid, node));
  }
  const act::Subject* best = nullptr;
  std::string different;
  for (const act::Subject& subject : seen.subjects) {
    if (!is_on_device(one.claim->labels, subject)) continue;
    if (std::string why = difference(one.claim->labels, subject); !why.empty())
      different = std::move(why);
    else if (best == nullptr || is_worse(subject, *best))
      best = &subject;
  }
  if (best != nullptr) return with_labels(*best, one, node);
  if (!different.empty()) return refused(Refusal::mismatch, different);
  const std::string device = device_words(one.claim->labels);
  return refused(Refusal::no_evidence, fmt::format("no alert is active on {}{}", node,
                                                   device.empty() ? std::string() : " of GPU " + printable(device)));
}

Result<ProcessInfo> same_process(const act::Subject& subject, const View& view) {
  const std::string key = act::subject_key(subject);
  const std::vector<act::Subject> now = act::subjects_of(view);
  const auto at =
      std::find_if(now.begin(), now.end(), [&key](const act::Subject& s) { return act::subject_key(s) == key; });
  if (at == now.end()) return fail(fmt::format("no alert about {} is active any more", act::subject_words(subject)));
  if (at->user != subject.user || act::job_number(at->job) != act::job_number(subject.job))
    return fail(fmt::format("{} now belongs to user {} and job {}: not the same work", act::subject_words(subject),
                            printable(at->user), at->job.empty() ? "none" : printable(at->job)));
  for (const SeriesView& series : view.series)
    if (series.process && process_key(series.key).pid == subject.process.pid &&
        series.key.pid_start_ticks == subject.process.start_ticks)
      return *series.process;
  return ProcessInfo{};  // a device: there is no process
}

}  // namespace vramtrack::actuate
