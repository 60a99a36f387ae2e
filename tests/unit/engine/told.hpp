// A scenario as recorded ticks, and everything that an engine reports about ticks, in full: the basis on which
// properties and the ways in (live, store, log) are compared.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "engine/engine.hpp"
#include "paths.hpp"
#include "source/sim/sim.hpp"

namespace vramtrack {

inline std::vector<std::string> scenario_files() {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(tests_dir() + "/scenarios"))
    if (entry.path().extension() == ".toml") files.push_back(entry.path().string());
  std::sort(files.begin(), files.end());
  return files;
}

struct Recorded {
  sim::Scenario scenario;
  std::shared_ptr<Catalog> catalog;  ///< complete: it has every series of the ticks
  std::vector<Batch> ticks;
};

inline sim::Scenario load(const std::string& path) {
  auto scenario = sim::load_scenario(path);
  EXPECT_TRUE(scenario) << scenario.error().message;
  return scenario ? *scenario : sim::Scenario{};
}

inline Recorded record(const sim::Scenario& scenario) {
  Recorded recorded{scenario, std::make_shared<Catalog>(), {}};
  const auto source = sim::make_simulation(recorded.scenario, *recorded.catalog);
  for (bool more = true; more;) {
    Batch tick;
    const auto progress = source->poll({}, tick);
    more = progress && *progress == Progress::more;
    if (!tick.samples.empty() || !tick.events.empty()) recorded.ticks.push_back(std::move(tick));
  }
  return recorded;
}

struct Telling {
  Timestamp time;
  AlertChange change;
};

struct Played {
  std::shared_ptr<Catalog> catalog;
  std::unique_ptr<Engine> engine;
  std::shared_ptr<std::vector<Telling>> told = std::make_shared<std::vector<Telling>>();
};

inline Played begin(std::shared_ptr<Catalog> catalog, const Config& config = {}) {
  Played played;
  played.catalog = std::move(catalog);
  played.engine = std::make_unique<Engine>(config, *played.catalog);
  played.engine->on_alert([told = played.told, engine = played.engine.get()](const AlertChange& change) {
    told->push_back({engine->view()->time, change});
  });
  return played;
}
inline Played begin(const Recorded& recorded) {
  return begin(recorded.catalog);
}

/// Feeds one tick, like a watch.
inline void feed(Played& played, const Batch& tick) {
  played.engine->ingest(tick);
  played.engine->finish();
}

inline Played play(const Recorded& recorded, const std::vector<Batch>& batches) {
  Played played = begin(recorded);
  for (const Batch& batch : batches) played.engine->ingest(batch);
  played.engine->finish();
  return played;
}

inline Batch joined(const std::vector<Batch>& ticks) {
  Batch all;
  for (const Batch& tick : ticks) {
    all.samples.insert(all.samples.end(), tick.samples.begin(), tick.samples.end());
    all.events.insert(all.events.end(), tick.events.begin(), tick.events.end());
  }
  return all;
}

/// A leak, with or without an alert, that was not withdrawn: `analyze` exits with 1 for it.
inline bool claimed(const View& view) {
  for (const SeriesView& s : view.series)
    for (const std::vector<Alert>* all : {&s.alerts, &s.suspicions})
      for (const Alert& alert : *all)
        if (alert.finding.leak && alert.ended != AlertEnd::withdrawn) return true;
  return false;
}

/// Every figure and word, exact to the last bit.
inline std::string in_full(const Finding& f) {
  const auto interval = [](const Interval& i) { return fmt::format("{:a} {:a} {:a}", i.low, i.mid, i.high); };
  return fmt::format("{} leak={} {} {} {} confidence={:a} growth=[{}] r2={:a} oom=[{}] onset={} because={}", f.detector,
                     f.leak, to_string(f.state), to_string(f.pattern), to_string(f.spike), f.confidence,
                     interval(f.growth_bytes_per_s), f.r_squared, f.oom_in_s ? interval(*f.oom_in_s) : "none",
                     f.onset ? iso8601(*f.onset) : "none", f.because);
}

inline std::string in_full(const Alert& a) {
  return fmt::format("raised {} {} {} cleared {} {} {}; {}", iso8601(a.raised), to_string(a.severity),
                     in_full(a.finding), a.cleared ? iso8601(*a.cleared) : "never", to_string(a.ended), a.end_reason,
                     a.paged_because);
}

/// The identity of a series, apart from its number in a catalog.
inline std::string name_of(const SeriesKey& key) {
  return fmt::format("{} {} {} {}", static_cast<int>(key.metric), key.device_id, key.pid, key.pid_start_ticks);
}

/// The reports until `time`: raises, escalations and clears, each as it was then. One line each.
inline std::string told_until(const Played& played, Timestamp time) {
  std::string out;
  for (const Telling& telling : *played.told) {
    if (telling.time > time) continue;
    const AlertChange& change = telling.change;
    out += fmt::format("{} {}{} {}: {}\n", iso8601(telling.time), change.news == AlertNews::cleared ? '-' : '+',
                       change.news == AlertNews::escalated ? "!" : "",
                       name_of(played.catalog->key(change.alert.series)), in_full(change.alert));
  }
  return out;
}

/// When which series had alerts, and their present state, without the figures.
inline std::string in_short(const Played& played) {
  std::string out;
  for (const Telling& telling : *played.told)
    out += fmt::format("{} {} {}\n", iso8601(telling.time), telling.change.news == AlertNews::cleared ? '-' : '+',
                       name_of(played.catalog->key(telling.change.alert.series)));
  const auto view = played.engine->view();
  for (const SeriesView& s : view->series)
    out += fmt::format("{}: {} {} {} {:.4f}\n", name_of(s.key), to_string(s.verdict.severity),
                       to_string(s.verdict.finding.state), to_string(s.verdict.finding.pattern),
                       s.verdict.finding.confidence);
  return out;
}

/// Every present verdict, and every alert from first to last.
inline std::string in_full(const Played& played) {
  const auto view = played.engine->view();
  std::string out;
  for (const SeriesView& s : view->series) {
    const Verdict& v = s.verdict;
    out += fmt::format("{}: {} used {} peak {} {}\n", name_of(s.key), to_string(v.severity), s.used_bytes, s.peak_bytes,
                       in_full(v.finding));
    for (const Finding& f : v.dissent) out += "  dissent " + in_full(f) + "\n";
    if (v.suspect) out += fmt::format("  suspect {} {} {:.6f}\n", v.suspect->pid, v.suspect->command, v.suspect->share);
    for (const std::vector<Alert>* all : {&s.alerts, &s.suspicions})
      for (const Alert& a : *all) out += "  " + in_full(a) + "\n";
  }
  return out + told_until(played, Timestamp::max());
}

}  // namespace vramtrack
