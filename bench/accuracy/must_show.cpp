#include "must_show.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "tables_text.hpp"

namespace vramtrack::accuracy {
namespace {

/// One row; `reached` is unset where nothing was measured.
struct Row {
  std::string requirement;
  std::string figure;
  std::optional<bool> reached;
};

std::string text_of(const std::vector<Row>& rows) {
  if (rows.empty()) return {};
  std::string out = "| requirement | figure | |\n|---|---|---|\n";
  for (const Row& row : rows)
    out += fmt::format("| {} | {} | {} |\n", row.requirement, row.figure,
                       !row.reached   ? "not measured"
                       : *row.reached ? "reached"
                                      : "**missed**");
  return out + "\n";
}

struct Scores {
  std::vector<Scored> paged;
  std::vector<Scored> confirmed;  ///< told as leaks
  std::vector<Scored> suspected;
};

Scores of_runs(const std::vector<Run>& runs, auto&& member) {
  Scores group;
  for (const Run& run : runs) {
    if (!member(run)) continue;
    group.paged.push_back(run.ours);
    group.confirmed.push_back(run.told);
    group.suspected.push_back(run.suspected);
  }
  return group;
}

void add_first(const Everything& all, std::vector<Row>& rows) {
  if (all.first.empty()) return;
  const Scores group = of_runs(all.first, [](const Run& run) { return !beyond_half(run.trace); });
  const Summary c = summarise(group.confirmed);
  const Summary s = summarise(group.suspected);
  const double found = share(c.detected + c.slow, c.leaks);
  const Summary p = summarise(group.paged);
  rows.push_back({"first run ever: precision of notifications at least .97 (straight rises beyond half apart)",
                  number(p.precision(1), 3), p.precision(1) >= 0.97});
  rows.push_back({"first run ever: notified of at least .96 of the leaks that are due",
                  fmt::format("{} ({} of {})", number(p.due_recall(), 3), p.due_detected, p.due),
                  p.due_recall() >= 0.96});
  rows.push_back({"first run ever: confirmed precision at least .97 (straight rises beyond half apart)",
                  number(c.precision(1), 3), c.precision(1) >= 0.97});
  rows.push_back({"first run ever: recall at least .96 with slow growth counted as found",
                  fmt::format("{} ({} as slow growth alone)", number(found, 3), c.slow), found >= 0.96});
  const double delay = quantile(s.delay_share, 0.5);
  rows.push_back({"first run ever: suspected recall at least .985", number(s.recall(), 3), s.recall() >= 0.985});
  rows.push_back({"first run ever: median delay until suspected at most 15 % of life", number(100 * delay, 1) + " %",
                  delay <= 0.15});
}

void add_beside(const Everything& all, std::vector<Row>& rows) {
  if (all.beside.empty()) return;
  const BesideFigures three = beside_figures(all.beside, Known::three);
  const Summary& told = three.at(Mark::told);
  const double found = share(told.detected + told.slow, told.leaks);
  const double delay = quantile(told.delay_share, 0.5);
  rows.push_back({"seen before (3 runs): confirmed precision at least .99", number(told.precision(1), 3),
                  told.precision(1) >= 0.99});
  rows.push_back({"seen before (3 runs): recall at least .98", number(found, 3), found >= 0.98});
  rows.push_back(
      {"seen before (3 runs): median delay at most 8 % of life", number(100 * delay, 1) + " %", delay <= 0.08});
}

void add_recordings(const Everything& all, std::vector<Row>& rows) {
  if (all.recordings.empty()) return;
  const Scores healthy = of_runs(all.recordings, [](const Run& run) { return !run.trace.label.leak; });
  const Summary c = summarise(healthy.confirmed);
  const Summary s = summarise(healthy.suspected);
  const double per_50_days = share(50.0 * s.episodes, s.healthy_days);
  rows.push_back({"real healthy recordings: none confirmed",
                  fmt::format("{} of {} in {:.1f} GPU-days", c.alarmed, c.healthy, c.healthy_days), c.alarmed == 0});
  rows.push_back({"real healthy recordings: at most one suspicion in 50 GPU-days",
                  fmt::format("{} in {:.1f}: {} in 50", s.episodes, s.healthy_days, number(per_50_days, 1)),
                  per_50_days <= 1});
  for (const auto& [kind, bar] : {std::pair{"serving", 0.5}, std::pair{"training", 0.97}}) {
    const Scores leaks = of_runs(all.recordings, [kind = std::string(kind)](const Run& run) {
      return run.trace.label.leak && run.trace.family.starts_with(kind);
    });
    const Summary added = summarise(leaks.confirmed);
    const std::string requirement = fmt::format("leaks added to {} recordings: recall at least {}", kind, bar);
    if (added.leaks == 0)
      rows.push_back({requirement, "none in this split", {}});
    else
      rows.push_back(
          {requirement,
           fmt::format("{} ({} suspected)", number(added.recall(), 3), number(summarise(leaks.suspected).recall(), 3)),
           added.recall() >= bar});
  }
}

void add_days(const Everything& all, std::vector<Row>& rows) {
  const DayCount days = count_days(all.first);
  if (days.traces == 0) return;
  rows.push_back({"day and night: the first day suspected at most, never confirmed",
                  fmt::format("{} of {} confirmed, {} suspected, {} notified", days.at(Mark::told).on_first,
                              days.traces, days.at(Mark::suspected).on_first, days.at(Mark::paged).on_first),
                  days.at(Mark::told).on_first == 0});
  const DayCount::Marked& of_suspicions = days.at(Mark::suspected);
  const double suspected = share(of_suspicions.days, days.later_days);
  rows.push_back({"day and night: from the second day on at most 2 % of the days suspected",
                  fmt::format("{} % ({} of {:.0f} days, in {} of {} traces)", number(100 * suspected, 1),
                              of_suspicions.days, days.later_days, of_suspicions.later, days.traces),
                  suspected <= 0.02});
}

void add_calibration(const Everything& all, std::vector<Row>& rows) {
  if (all.first.empty()) return;
  const double over_all = calibration_error(all.first, false);
  const double rising = calibration_error(all.first, true);
  rows.push_back({"expected calibration error at most .03 over all looks", number(over_all, 3), over_all <= 0.03});
  rows.push_back({"expected calibration error at most .04 while rising", number(rising, 3), rising <= 0.04});
}

void add_ends(const Everything& all, std::vector<Row>& rows) {
  if (all.ends.empty()) return;
  int cells = 0;
  int right = 0;
  std::string wrong;
  for (const EndsCell& cell : ends_cells(all.ends)) {
    if (cell.given == 0) continue;
    ++cells;
    const double covered = share(cell.covered, cell.given);
    if (covered >= 0.75 && covered <= 0.85) {
      ++right;
      continue;
    }
    wrong += fmt::format("{}{} {:.0f} %: {:.0f} of {}", wrong.empty() ? "" : "; ", cell.name, 100 * cell.life_share,
                         100 * covered, cell.given);
  }
  rows.push_back({"the 80 % interval of the end covers 75 to 85 % in each fifth of life and each class",
                  fmt::format("{} of {} cells{}{}", right, cells, wrong.empty() ? "" : ". Not: ", wrong),
                  right == cells});
  std::vector<double> errors;
  for (const EndsCell& cell : ends_cells(all.ends))
    if (cell.name == kConstantRates) errors.insert(errors.end(), cell.errors.begin(), cell.errors.end());
  const double error = quantile(errors, 0.5);
  rows.push_back(
      {"median error of the end at most 5 % for constant rates", number(100 * error, 1) + " %", error <= 0.05});
}

void add_parts(const Everything& all, std::vector<Row>& rows) {
  if (all.parts.empty()) return;
  const PartFigures p = part_figures(all.parts);
  rows.push_back({"suspect process right in at least 99 of 100", fmt::format("{} of {}", p.seen_right, p.seen),
                  share(p.seen_right, p.seen) >= 0.99});
  rows.push_back({"\"no visible process\" right in at least 95 of 100",
                  fmt::format("{} of {}", p.unseen_right, p.unseen), share(p.unseen_right, p.unseen) >= 0.95});
  rows.push_back({"healthy churn confirmed in none of 200 scenes",
                  fmt::format("{} of {}, notified of {}", p.healthy_told, p.healthy, p.healthy_alarmed),
                  p.healthy_told == 0});
}

void add_forecast(const Everything& all, std::vector<Row>& rows) {
  if (!all.forecast) return;
  const ForecastFigures& f = *all.forecast;
  const double covered = share(f.looks - f.missed, f.looks);
  rows.push_back({"the demo's end within the 80 % interval", fmt::format("{} of {} looks", f.looks - f.missed, f.looks),
                  covered >= 0.75});
  rows.push_back({"kinked lines without noise: the middle within 5 % of headroom / rate at every look",
                  number(100 * f.clean_within, 1) + " % of looks", f.clean_within >= 0.9999});
  rows.push_back(
      {"noisy kinked lines: median error at most 5 %", number(100 * f.noisy_error, 1) + " %", f.noisy_error <= 0.05});
}

void add_cost(const Everything& all, std::vector<Row>& rows) {
  double fast_s = 0;
  double fast = 0;
  double slow_s = 0;
  double slow = 0;
  for (const Run& run : all.first) {
    const double period_s = share(run.played.end_s, static_cast<double>(run.samples));
    (period_s < 1.5 ? fast_s : slow_s) += period_s < 1.5 || period_s >= 9 ? run.played.ours.seconds_spent : 0;
    (period_s < 1.5 ? fast : slow) += period_s < 1.5 || period_s >= 9 ? static_cast<double>(run.samples) : 0;
  }
  if (fast == 0 || slow == 0) return;
  rows.push_back({"the detector takes at most 150 ns a sample at 1 Hz (this run, loaded machine)",
                  number(1e9 * fast_s / fast, 0) + " ns", fast_s / fast <= 150e-9});
  rows.push_back({"the detector takes at most 500 ns a sample at 10 to 60 s (this run, loaded machine)",
                  number(1e9 * slow_s / slow, 0) + " ns", slow_s / slow <= 500e-9});
}

}  // namespace

std::string must_show_table(const Everything& all) {
  std::vector<Row> rows;
  add_recordings(all, rows);
  add_first(all, rows);
  add_beside(all, rows);
  add_days(all, rows);
  add_calibration(all, rows);
  add_ends(all, rows);
  add_parts(all, rows);
  add_forecast(all, rows);
  add_cost(all, rows);
  return text_of(rows);
}

}  // namespace vramtrack::accuracy
