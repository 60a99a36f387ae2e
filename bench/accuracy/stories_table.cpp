// Plays recordings of several runs and compares what is said with what was so.
#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <map>

#include "bench.hpp"
#include "core/format.hpp"
#include "engine/engine.hpp"
#include "stories.hpp"
#include "tables_text.hpp"

namespace vramtrack::accuracy {
namespace {

double seconds_of(Timestamp time) {
  return seconds_between(Timestamp{}, time);
}

/// Of a run's first and last sample.
constexpr double kNearPeriods = 2.5;
/// Shorter runs are counted and not told one by one.
constexpr double kTold_s = 60;

struct PlayedStory {
  Story story;
  SeriesView device;
  std::vector<SeriesView> processes;
  std::vector<Alarm> alarms;         ///< of the device
  std::vector<std::string> because;  ///< of each
};

PlayedStory play(Story story, const Config& config) {
  Catalog catalog;
  DeviceInfo info;
  info.id = "GPU-a";
  info.index = 0;
  if (story.capacity_is_known) info.capacity_bytes = static_cast<std::uint64_t>(story.capacity_bytes);
  catalog.describe(info);
  catalog.clock_is_relative = true;
  catalog.processes_are_listed = !story.processes.empty();
  const SeriesId device = catalog.intern({Metric::device_used, info.id, 0, 0});
  std::multimap<double, Sample> listed;
  for (const Story::Listed& process : story.processes) {
    ProcessInfo its;
    its.pid = process.pid;
    its.command = process.command;
    catalog.describe(its);
    const SeriesId id = catalog.intern({Metric::process_used, info.id, process.pid, 0});
    for (const Point& p : process.points)
      listed.emplace(p.t_s, Sample{Timestamp{from_seconds(p.t_s)}, id, static_cast<std::uint64_t>(p.used_bytes)});
  }
  PlayedStory played;
  Engine engine(config, catalog);
  engine.on_alert([&](const AlertChange& change) {
    if (change.alert.series != device) return;
    if (change.news == AlertNews::raised) played.alarms.push_back({seconds_of(change.alert.raised), -1});
    if (change.news == AlertNews::raised) played.because.push_back(change.alert.finding.because);
    if (change.news == AlertNews::cleared) played.alarms.back().cleared_s = seconds_of(*change.alert.cleared);
  });
  for (const Point& p : story.points) {
    Batch batch;
    batch.samples.push_back({Timestamp{from_seconds(p.t_s)}, device, static_cast<std::uint64_t>(p.used_bytes)});
    for (auto [at, end] = listed.equal_range(p.t_s); at != end; ++at) batch.samples.push_back(at->second);
    const std::vector<double>& reported = story.reported_end_s;
    if (std::find(reported.begin(), reported.end(), p.t_s) != reported.end()) {
      Event end;
      end.time = Timestamp{from_seconds(p.t_s)} + Duration{1};
      end.kind = Event::Kind::process_ended;
      batch.events.push_back(end);
    }
    engine.ingest(batch);
  }
  engine.end_of_recording();
  for (Alarm& alarm : played.alarms)
    if (alarm.cleared_s < 0) alarm.cleared_s = story.points.back().t_s;
  const auto view = engine.view();
  for (const SeriesView& s : view->series)
    if (s.key.metric == Metric::device_used)
      played.device = s;
    else if (s.key.pid != 0)
      played.processes.push_back(s);
  played.story = std::move(story);
  return played;
}

const Alarm* first_in(const PlayedStory& played, const StoryRun& run) {
  const auto at = std::find_if(played.alarms.begin(), played.alarms.end(), [&](const Alarm& a) {
    return a.raised_s >= run.begin_s && a.raised_s <= run.end_s + played.story.period_s;
  });
  return at == played.alarms.end() ? nullptr : &*at;
}

/// What is wrong with what is said of a story; all empty: nothing.
struct Wrong {
  std::string runs;
  std::string ends;
  std::string leads;
  std::string verdict;

  [[nodiscard]] bool any() const { return !(runs + ends + leads + verdict).empty(); }
};

std::string verdict_wrong(const PlayedStory& played) {
  const StoryRun& last = played.story.runs.back();
  const Verdict& v = played.device.verdict;
  const std::string said(to_string(v.finding.state));
  if (v.finding.state == State::cycling && (last.how || last.leaks)) return said;
  const bool stands = std::any_of(played.device.alerts.begin(), played.device.alerts.end(),
                                  [](const Alert& a) { return a.ended == AlertEnd::standing; });
  if (last.how)
    return !v.end || v.end->how != EndKind::out_of_memory || v.finding.leak ? said + ", no end out of memory" : "";
  if (!last.leaks) return v.finding.leak || stands ? "healthy: " + said : "";
  return v.finding.leak ? "" : "leaks: " + said;
}

Wrong compare(const PlayedStory& played) {
  Wrong wrong;
  const double near_s = kNearPeriods * played.story.period_s;
  std::vector<vramtrack::Run> said;
  for (const vramtrack::Run& run : played.device.runs)
    if (!run.end || seconds_between(run.begin, *run.end) >= kTold_s) said.push_back(run);
  const std::vector<StoryRun>& runs = played.story.runs;
  if (said.size() != runs.size()) {
    wrong.runs = fmt::format("{} runs of {}", said.size(), runs.size());
    for (const vramtrack::Run& run : said)
      wrong.runs += fmt::format(" [{:.0f}-{:.0f}]", seconds_of(run.begin), run.end ? seconds_of(*run.end) : -1.0);
    wrong.verdict = verdict_wrong(played);
    return wrong;
  }
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const StoryRun& run = runs[i];
    if (std::abs(seconds_of(said[i].begin) - run.begin_s) > near_s)
      wrong.runs += fmt::format(" run {} began {:.0f}, not {:.0f}", i + 1, seconds_of(said[i].begin), run.begin_s);
    if (said[i].end.has_value() != run.how.has_value()) {
      wrong.ends += fmt::format(" run {} {}", i + 1, said[i].end ? "ended" : "goes on");
    } else if (run.how) {
      if (std::abs(seconds_of(*said[i].end) - run.end_s) > near_s)
        wrong.ends += fmt::format(" run {} ended {:.0f}, not {:.0f}", i + 1, seconds_of(*said[i].end), run.end_s);
      if (said[i].how != *run.how) wrong.ends += fmt::format(" run {} {}", i + 1, to_string(said[i].how));
    }
    const Alarm* const alarm = first_in(played, run);
    if (run.leaks && run.how && alarm == nullptr) wrong.leads += fmt::format(" run {} without an alert", i + 1);
    if (!run.leaks && alarm != nullptr) wrong.leads += fmt::format(" run {} is healthy", i + 1);
    if (alarm != nullptr && run.how && std::abs(alarm->cleared_s - run.end_s) > near_s + kTold_s)
      wrong.leads += fmt::format(" run {}'s alert ended {:.0f}", i + 1, alarm->cleared_s);
  }
  wrong.verdict = verdict_wrong(played);
  return wrong;
}

/// The stories of one kind, and what is wrong with each.
std::string ends_rows(const std::string& name, const std::vector<PlayedStory>& all, bool each) {
  int runs = 0;
  int ends = 0;
  int leads = 0;
  int verdicts = 0;
  int right = 0;
  std::string examples;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Wrong wrong = compare(all[i]);
    runs += wrong.runs.empty() ? 1 : 0;
    ends += wrong.runs.empty() && wrong.ends.empty() ? 1 : 0;
    leads += wrong.runs.empty() && wrong.ends.empty() && wrong.leads.empty() ? 1 : 0;
    verdicts += wrong.verdict.empty() ? 1 : 0;
    right += wrong.any() ? 0 : 1;
    if (each && wrong.any())
      examples += fmt::format("{} {}: {} |{} |{} | {}\n", name, i, wrong.runs, wrong.ends, wrong.leads, wrong.verdict);
  }
  const auto of = [&](int n) { return number(share(n, static_cast<double>(all.size())), 3); };
  return fmt::format("| {} | {} | {} | {} | {} | {} | {} |\n", name, all.size(), of(runs), of(ends), of(leads),
                     of(verdicts), of(right)) +
         examples;
}

std::string falls_row(const std::string& name, const std::vector<PlayedStory>& all, bool each) {
  int ended = 0;
  std::string examples;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const bool wrong = all[i].device.verdict.end || all[i].device.runs.size() != 1;
    ended += wrong ? 1 : 0;
    if (wrong && each) examples += fmt::format("{} {}: {} runs\n", name, i, all[i].device.runs.size());
  }
  return fmt::format("\nFalls that are no end ({}): {} of {} called an end\n", name, ended, all.size()) + examples;
}

std::string staged_row(const std::string& name, const std::vector<PlayedStory>& all, bool each) {
  int alarmed = 0;
  int suspected = 0;
  std::vector<double> outlives;
  int in_time = 0;
  std::string examples;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const StoryRun& last = all[i].story.runs.back();
    const auto in_last = [&](const Alarm& a) { return a.raised_s >= last.begin_s; };
    const bool any = std::any_of(all[i].alarms.begin(), all[i].alarms.end(), in_last);
    alarmed += any ? 1 : 0;
    suspected += any || std::any_of(all[i].device.suspicions.begin(), all[i].device.suspicions.end(),
                                    [&](const Alert& a) { return seconds_of(a.raised) >= last.begin_s; })
                     ? 1
                     : 0;
    for (std::size_t k = 0; k < all[i].alarms.size(); ++k) {
      const Alarm& a = all[i].alarms[k];
      if (!in_last(a)) continue;
      outlives.push_back(std::max(0.0, a.cleared_s - std::max(a.raised_s, last.onset_s)));
      in_time += a.cleared_s - last.onset_s <= last.withdrawn_in_s ? 1 : 0;
      if (each)
        examples += fmt::format("{} {}: raised {:.0f} min after the last growth, stood {:.0f} min: {}\n", name, i,
                                (a.raised_s - last.onset_s) / 60, (a.cleared_s - a.raised_s) / 60, all[i].because[k]);
    }
  }
  return fmt::format("| {} | {} | {} | {} | {} | {} | {} of {} |\n", name, all.size(), alarmed, suspected,
                     number(quantile(outlives, 0.5) / 60, 0), number(quantile(outlives, 0.9) / 60, 0), in_time,
                     outlives.size()) +
         examples;
}

std::string leak_row(const std::string& name, const std::vector<PlayedStory>& all, double& first) {
  std::vector<double> delays;
  double sum = 0;
  int found = 0;
  for (const PlayedStory& played : all) {
    const StoryRun& last = played.story.runs.back();
    const Alarm* const alarm = first_in(played, last);
    found += alarm != nullptr ? 1 : 0;
    // What is not found counts with all of its life.
    const double delay =
        alarm == nullptr ? 1 : std::max(0.0, alarm->raised_s - last.onset_s) / (last.end_s - last.onset_s);
    delays.push_back(delay);
    sum += delay / static_cast<double>(all.size());
  }
  if (first == 0) first = sum;
  return fmt::format("| {} | {} | {} | {} | {} | {} |\n", name, all.size(), found, number(quantile(delays, 0.5), 3),
                     number(sum, 3), number(share(sum, first), 2));
}

}  // namespace

std::string stories_table(Split split, std::uint64_t seed, std::uint64_t each, const Config& config, unsigned jobs,
                          bool examples) {
  const auto all = [&](const std::string& name) {
    std::vector<PlayedStory> played(each);
    in_parallel(each, jobs, [&](std::size_t i) {
      played[i] = play(story_named(name, split, seed, i), config);
      played[i].story.points.clear();
    });
    return played;
  };
  std::string out =
      "| recordings | number | runs right | and ends | and leads | verdict right | all right |\n"
      "|---|---|---|---|---|---|---|\n";
  for (const char* name : {"crash", "crash_listed", "killed", "killed_reported"})
    out += ends_rows(name, all(name), examples);
  for (const char* name : {"falls", "refilled"}) out += falls_row(name, all(name), examples);
  out +=
      "\n| loads in stages | number | alarmed | suspected | an alert outlives the growth by, min | 90th, min | "
      "withdrawn in time |\n|---|---|---|---|---|---|---|\n";
  for (const char* name : {"staged", "staged_idle", "staged_later", "ramped", "ramped_idle", "ramped_later"})
    out += staged_row(name, all(name), examples);
  out +=
      "\n| leak of | number | found | delay, median share of life | mean | to that of first runs "
      "|\n|---|---|---|---|---|---|\n";
  double first = 0;
  for (const char* name : {"leak", "leak_second", "leak_third"}) out += leak_row(name, all(name), first);
  return out + "\n";
}

}  // namespace vramtrack::accuracy
