#include "growths.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <stdexcept>

#include "bench.hpp"
#include "engine/engine.hpp"
#include "families.hpp"
#include "families_tables.hpp"
#include "session.hpp"
#include "source/sim/sim.hpp"

namespace vramtrack::accuracy {
namespace {

constexpr double kCut_s = 60;
/// An onset that this many cuts in a row repeat is stable.
constexpr std::size_t kStableCuts = 5;
constexpr double kHeldLeast_s = 120;
constexpr double kHeldShare = 0.03;
constexpr double kRightShare = 0.05;
constexpr double kMostSunk = 0.05;
constexpr double kWider = 1.3;

/// The device's verdict now.
Told told_at(const Engine& engine, double now_s, const std::string& device) {
  Told told;
  told.at_s = now_s;
  const auto view = engine.view();
  for (const SeriesView& s : view->series) {
    if (s.key.metric != Metric::device_used || s.key.device_id != device) continue;
    const Finding& f = s.verdict.finding;
    told.rises = grows(f) && f.onset && f.growth_bytes_per_s.mid > 0;  // an alert may outlive its growth
    if (f.onset) told.onset_s = seconds_of(*f.onset);
    told.probability = f.confidence;
    if (f.leak) told.end_in_s = f.oom_in_s;
  }
  return told;
}

double tolerance_s(double age_s, double share) {
  return std::max(kHeldLeast_s, share * age_s);
}

/// Cuts [from, to) of one story.
void add_story(const std::vector<Told>& told, std::size_t from, std::size_t to, double true_onset_s, GrowthSums& sums) {
  ++sums.stories;
  std::optional<double> stable_s;
  std::size_t same = 0;
  double highest = 0;
  double narrowest = 0;
  bool sank = false;
  for (std::size_t i = from; i < to; ++i) {
    const Told& t = told[i];
    const double age_s = t.at_s - t.onset_s;
    ++sums.cuts;
    if (!stable_s) {
      same = i > from && std::abs(t.onset_s - told[i - 1].onset_s) <= kHeldLeast_s ? same + 1 : 1;
      if (same == kStableCuts) stable_s = told[i + 1 - kStableCuts].onset_s;
    }
    // It has not moved until it is stable.
    if (!stable_s || std::abs(t.onset_s - *stable_s) <= tolerance_s(age_s, kHeldShare)) ++sums.onset_held;
    if (std::abs(t.onset_s - true_onset_s) <= tolerance_s(age_s, kRightShare)) ++sums.onset_right;
    if (t.probability < highest - kMostSunk) {
      ++sums.sunk;
      sank = true;
    }
    highest = std::max(highest, t.probability);
    if (!t.end_in_s || !(t.end_in_s->low > 0)) continue;
    const double width = std::log(t.end_in_s->high / t.end_in_s->low);
    if (narrowest > 0 && width > kWider * narrowest) ++sums.wider;
    narrowest = narrowest > 0 ? std::min(narrowest, width) : width;
  }
  sums.sunken_stories += sank ? 1 : 0;
}

std::vector<Told> look_at_points(const Trace& trace, const Config& config) {
  Catalog catalog;
  DeviceInfo device;
  device.id = "gpu";
  device.index = 0;
  device.capacity_bytes = static_cast<std::uint64_t>(trace.capacity_bytes);
  catalog.describe(device);
  catalog.clock_is_relative = true;
  const SeriesId series = catalog.intern({Metric::device_used, "gpu", 0, 0});
  Engine engine(config, catalog);
  std::vector<Told> told;
  double next_s = kCut_s;
  for (const Point& p : trace.points) {
    Batch batch;
    batch.samples.push_back({Timestamp{from_seconds(p.t_s)}, series, static_cast<std::uint64_t>(p.used_bytes)});
    engine.ingest(batch);
    if (p.t_s < next_s) continue;
    next_s = p.t_s + kCut_s;
    told.push_back(told_at(engine, p.t_s, "gpu"));
  }
  return told;
}

/// `end_s` gets the time at which the leaking program ended.
std::vector<Told> look_at_scenario(const Trace& trace, const Config& config, std::optional<double>& end_s) {
  auto scenario = sim::parse_scenario(trace.toml, trace.family);
  if (!scenario) throw std::runtime_error(scenario.error().message + "\n" + trace.toml);
  scenario->start.reset();
  Catalog catalog;
  Engine engine(config, catalog);
  const auto source = sim::make_simulation(*scenario, catalog);
  const std::string device = catalog.devices()[trace.label.device].id;
  std::vector<Told> told;
  double next_s = kCut_s;
  for (bool more = true; more && !end_s;) {
    Batch batch;
    const auto progress = source->poll({}, batch);
    more = progress && *progress != Progress::end;
    for (const Event& e : batch.events)
      if (e.kind == Event::Kind::process_ended && trace.label.suspect_pid && e.pid == *trace.label.suspect_pid)
        end_s = seconds_of(e.time);
    if (end_s) break;
    engine.ingest(batch);
    if (batch.samples.empty()) continue;
    const double now_s = seconds_of(batch.samples.back().time);
    if (now_s < next_s) continue;
    next_s = now_s + kCut_s;
    told.push_back(told_at(engine, now_s, device));
  }
  return told;
}

}  // namespace

GrowthSums& GrowthSums::operator+=(const GrowthSums& other) {
  for (auto member :
       {&GrowthSums::cuts, &GrowthSums::onset_held, &GrowthSums::onset_right, &GrowthSums::sunk, &GrowthSums::stories,
        &GrowthSums::sunken_stories, &GrowthSums::ends, &GrowthSums::ends_right, &GrowthSums::wider})
    this->*member += other.*member;
  return *this;
}

GrowthSums sums_of(const std::vector<Told>& told, double onset_s, std::optional<double> end_s) {
  GrowthSums sums;
  for (std::size_t i = 0; i < told.size();) {
    if (!told[i].rises || told[i].at_s < onset_s) {
      ++i;
      continue;
    }
    const std::size_t from = i;
    while (i < told.size() && told[i].rises) ++i;
    add_story(told, from, i, onset_s, sums);
    for (std::size_t k = from; k < i && end_s; ++k) {
      if (!told[k].end_in_s || told[k].at_s >= *end_s) continue;
      const double true_in_s = *end_s - told[k].at_s;
      ++sums.ends;
      sums.ends_right += true_in_s >= told[k].end_in_s->low && true_in_s <= told[k].end_in_s->high ? 1U : 0U;
    }
  }
  return sums;
}

std::string moves_of(const std::vector<Told>& told) {
  std::string out;
  for (std::size_t i = 1; i < told.size(); ++i) {
    const Told& was = told[i - 1];
    const Told& is = told[i];
    if (was.rises != is.rises || (is.rises && std::abs(is.onset_s - was.onset_s) > kHeldLeast_s))
      out += fmt::format("  {:7.0f} min: {}\n", is.at_s / kCut_s,
                         is.rises
                             ? fmt::format("since {:.0f} min, probability {:.2f}", is.onset_s / kCut_s, is.probability)
                             : std::string("nothing rises"));
    else if (is.rises && is.probability < was.probability - kMostSunk)
      out += fmt::format("  {:7.0f} min: probability {:.2f} after {:.2f}\n", is.at_s / kCut_s, is.probability,
                         was.probability);
  }
  return out;
}

GrowthSums follow_growth(const Trace& trace, const Config& config, std::string* moves) {
  std::optional<double> end_s;
  std::vector<Told> told;
  if (trace.points.empty()) {
    told = look_at_scenario(trace, config, end_s);
  } else {
    told = look_at_points(trace, config);
    if (trace.label.life_s == 0) end_s = trace.points.back().t_s;
  }
  if (moves != nullptr) *moves = moves_of(told);
  return sums_of(told, trace.label.onset_s, end_s);
}

std::vector<Trace> growing_traces(Split split, std::uint64_t seed, std::uint64_t each) {
  std::vector<Trace> traces;
  for (const Family& family : leaking_families())
    for (std::uint64_t i = 0; i < each && family.leak; ++i) traces.push_back(make_trace(family, split, seed, i));
  return traces;
}

std::vector<Trace> leaking_scenarios(const std::string& folder) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.path().extension() == ".toml") files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  std::vector<Trace> traces;
  for (const std::filesystem::path& file : files) {
    std::ifstream in(file);
    Trace trace;
    trace.family = "scenarios";
    trace.source = file.stem().string();
    trace.toml.assign(std::istreambuf_iterator<char>(in), {});
    const auto scenario = sim::parse_scenario(trace.toml, file.string());
    if (!scenario) throw std::runtime_error(scenario.error().message);
    if (!scenario->truth || !scenario->truth->leak || !scenario->truth->onset_s) continue;
    trace.label.leak = true;
    trace.label.onset_s = *scenario->truth->onset_s;
    trace.label.suspect_pid = scenario->truth->suspect_pid;
    trace.label.device = scenario->truth->device;
    traces.push_back(std::move(trace));
  }
  return traces;
}

std::string growths_table(const std::vector<Trace>& traces, const Config& config, unsigned jobs, bool examples) {
  std::vector<GrowthSums> of(traces.size());
  std::vector<std::string> moves(examples ? traces.size() : 0);
  in_parallel(traces.size(), jobs,
              [&](std::size_t i) { of[i] = follow_growth(traces[i], config, examples ? &moves[i] : nullptr); });
  std::map<std::string, std::pair<std::size_t, GrowthSums>> families;
  std::pair<std::size_t, GrowthSums> all;
  for (std::size_t i = 0; i < traces.size(); ++i)
    for (auto* into : {&families[traces[i].family], &all}) {
      ++into->first;
      into->second += of[i];
    }
  std::string out =
      "| family | leaks | cuts | onset held | onset right | cuts with a sunken probability | growths with one | end "
      "within "
      "its interval | interval wider again |\n|---|---|---|---|---|---|---|---|---|\n";
  const auto percent = [](std::size_t part, std::size_t whole) {
    return whole == 0 ? std::string("–")
                      : fmt::format("{:.1f} %", 100 * static_cast<double>(part) / static_cast<double>(whole));
  };
  const auto row = [&](const std::string& name, std::size_t leaks, const GrowthSums& s) {
    out += fmt::format("| {} | {} | {} | {} | {} | {} | {} of {} | {} of {} | {} |\n", name, leaks, s.cuts,
                       percent(s.onset_held, s.cuts), percent(s.onset_right, s.cuts), percent(s.sunk, s.cuts),
                       s.sunken_stories, s.stories, percent(s.ends_right, s.ends), s.ends, percent(s.wider, s.ends));
  };
  for (const auto& [name, sums] : families) row(name, sums.first, sums.second);
  row("**all**", all.first, all.second);
  for (std::size_t i = 0; i < moves.size(); ++i)
    out += fmt::format("\n{} {}: true onset {:.0f} min; {} of {} cuts held, {} right\n{}", traces[i].family,
                       traces[i].source, traces[i].label.onset_s / kCut_s, of[i].onset_held, of[i].cuts,
                       of[i].onset_right, moves[i]);
  return out;
}

}  // namespace vramtrack::accuracy
