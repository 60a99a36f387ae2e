#include "forecast.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <mutex>
#include <vector>

#include "bench.hpp"
#include "core/units.hpp"
#include "detect/detector.hpp"
#include "draw.hpp"
#include "session.hpp"
#include "tables_text.hpp"

namespace vramtrack::accuracy {
namespace {

constexpr std::array kMinutes{37.0, 40.0, 43.0, 46.0, 49.0, 52.0, 55.0, 58.0, 61.0, 64.0, 70.0, 80.0};

/// What was said at one time, and when the end came.
struct Said {
  double true_in_s = 0;
  Interval end;
};

bool missed(const Said& said) {
  return said.true_in_s < said.end.low || said.true_in_s > said.end.high;
}

double error_of(const Said& said) {
  return std::abs(said.end.mid / said.true_in_s - 1);
}

/// At each of kMinutes.
std::array<std::optional<Said>, kMinutes.size()> follow_demo(std::uint64_t seed, const Config& config) {
  auto scenario = sim::parse_scenario(sim::builtin_scenarios().front().toml, "demo");
  scenario->seed = seed;
  scenario->start.reset();  // times are minutes since its beginning
  std::array<std::optional<Interval>, kMinutes.size()> ends;
  double end_s = 0;
  Catalog catalog;
  Engine engine(config, catalog);
  const auto source = sim::make_simulation(*scenario, catalog);
  std::size_t next = 0;
  for (bool more = true; more && end_s == 0;) {
    Batch batch;
    const auto progress = source->poll({}, batch);
    more = progress && *progress != Progress::end;
    engine.ingest(batch);
    for (const Event& e : batch.events)
      if (e.kind == Event::Kind::process_ended && e.ran_out_of_memory) end_s = seconds_of(e.time);
    if (batch.samples.empty() || next == kMinutes.size()) continue;
    if (seconds_of(batch.samples.front().time) < 60 * kMinutes[next]) continue;
    const auto view = engine.view();
    for (const SeriesView& s : view->series)
      if (s.key.metric == Metric::device_used && s.verdict.finding.oom_in_s) ends[next] = s.verdict.finding.oom_in_s;
    ++next;
  }
  std::array<std::optional<Said>, kMinutes.size()> said;
  for (std::size_t i = 0; i < kMinutes.size(); ++i)
    if (ends[i] && end_s > 60 * kMinutes[i]) said[i] = Said{end_s - 60 * kMinutes[i], *ends[i]};
  return said;
}

/// What the detector says along a line that is flat and then straight up to its end, by fifths of the rise.
std::array<std::vector<Said>, 5> follow_line(Draw draw, bool noisy, const Config& config) {
  const double capacity = kGiB * draw.pick({16.0, 24.0, 48.0, 80.0});
  const double base = capacity * draw.uniform(0.1, 0.6);
  const double period_s = draw.pick({1.0, 5.0, 15.0, 30.0});
  const double flat_s = period_s * draw.log_uniform(10, 300);
  const double life_s = period_s * draw.log_uniform(120, 1500);
  const double sigma = noisy ? draw.log_uniform(1, 60) * kMiB : 0;
  const auto detector = find_detector(config.detection.detector)->make(config.detection, kSecondsAndBytes);
  detector->set_limit(capacity);
  std::array<std::vector<Said>, 5> said;
  double next_s = 0;
  for (double t = 0; t < flat_s + life_s; t += period_s) {
    const double grown_s = std::max(0.0, t - flat_s);
    detector->observe(Timestamp{from_seconds(t)},
                      std::min(capacity, base + (capacity - base) * grown_s / life_s + sigma * draw.random.normal()));
    if (grown_s < next_s || grown_s >= 0.98 * life_s) continue;
    next_s = grown_s + 0.02 * life_s;
    const Finding finding = detector->finding();
    if (grown_s > 0 && finding.oom_in_s)
      said[static_cast<std::size_t>(5 * grown_s / life_s)].push_back({life_s - grown_s, *finding.oom_in_s});
  }
  return said;
}

std::string demo_table(const std::vector<std::array<std::optional<Said>, kMinutes.size()>>& runs,
                       ForecastFigures& figures) {
  std::string out = fmt::format(
      "The built-in demo, {} seeds. Minutes to the end, medians.\n\n| minute | said | true | ends given | of these "
      "outside the 80 % interval |\n|---|---|---|---|---|\n",
      runs.size());
  for (std::size_t i = 0; i < kMinutes.size(); ++i) {
    std::vector<double> mids;
    std::vector<double> truths;
    int outside = 0;
    for (const auto& run : runs) {
      if (!run[i]) continue;
      mids.push_back(run[i]->end.mid / 60);
      truths.push_back(run[i]->true_in_s / 60);
      outside += missed(*run[i]) ? 1 : 0;
    }
    figures.looks += static_cast<int>(mids.size());
    figures.missed += outside;
    out += fmt::format("| {:.0f} | {} | {} | {} | {} |\n", kMinutes[i], number(quantile(mids, 0.5), 0),
                       number(quantile(truths, 0.5), 0), mids.size(), outside);
  }
  return out + "\n";
}

}  // namespace

ForecastFigures measure_forecast(std::size_t seeds, std::size_t lines, std::uint64_t seed, const Config& config,
                                 unsigned jobs) {
  ForecastFigures figures;
  std::vector<std::array<std::optional<Said>, kMinutes.size()>> demos(seeds);
  in_parallel(seeds, jobs, [&](std::size_t i) { demos[i] = follow_demo(i + 1, config); });
  figures.tables = demo_table(demos, figures);
  std::vector<std::array<std::vector<Said>, 5>> kinked(lines);
  in_parallel(lines, jobs, [&](std::size_t i) {
    Draw draw{sim::Random(sim::substream(sim::substream(seed, "kinked line"), i)), Split::tune};
    kinked[i] = follow_line(draw, i % 2 == 1, config);
  });
  figures.tables += fmt::format(
      "{} lines that are flat and then straight up to the end, looked at fifty times.\n\n| lines | fifth of the rise | "
      "lines with an end | looks | within 5 %, % | median error, % | 80 % interval covers, % |\n"
      "|---|---|---|---|---|---|---|\n",
      lines);
  int within = 0;
  int clean = 0;
  std::vector<double> noisy_errors;
  for (const bool noisy : {false, true})
    for (std::size_t fifth = 0; fifth < 5; ++fifth) {
      std::vector<double> errors;
      int covered = 0;
      int with_end = 0;
      for (std::size_t i = noisy ? 1 : 0; i < lines; i += 2) {
        with_end += kinked[i][fifth].empty() ? 0 : 1;
        for (const Said& said : kinked[i][fifth]) {
          errors.push_back(error_of(said));
          covered += missed(said) ? 0 : 1;
        }
      }
      const auto close = std::count_if(errors.begin(), errors.end(), [](double e) { return e <= 0.05; });
      if (noisy) {
        noisy_errors.insert(noisy_errors.end(), errors.begin(), errors.end());
      } else {
        within += static_cast<int>(close);
        clean += static_cast<int>(errors.size());
      }
      const auto all = static_cast<double>(errors.size());
      figures.tables +=
          fmt::format("| {} | {} | {} | {} | {} | {} | {} |\n", noisy ? "noisy" : "without noise", fifth + 1, with_end,
                      errors.size(), number(100 * share(static_cast<double>(close), all), 1),
                      number(100 * quantile(errors, 0.5), 1), number(100 * share(covered, all), 1));
    }
  figures.tables += "\n";
  figures.clean_within = share(within, clean);
  figures.noisy_error = quantile(noisy_errors, 0.5);
  return figures;
}

}  // namespace vramtrack::accuracy
