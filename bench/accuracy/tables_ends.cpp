// What was said of the end, by class and share of life.
#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <utility>

#include "tables.hpp"
#include "tables_text.hpp"

namespace vramtrack::accuracy {
namespace {

bool accelerates(const Run& run) {
  return run.trace.family.find("accelerating") != std::string::npos;
}

using Member = bool (*)(const Run&);
constexpr std::array<std::pair<std::string_view, Member>, 6> kClasses{{
    {kConstantRates,
     [](const Run& run) {
       const std::string& family = run.trace.family;
       return family == "linear" || family == "from_start" || family == "late";
     }},
    {"gradual", [](const Run& run) { return run.trace.label.pattern == Pattern::gradual_leak && !accelerates(run); }},
    {"cyclic", [](const Run& run) { return run.trace.label.pattern == Pattern::cyclic; }},
    {"stairs", [](const Run& run) { return run.trace.label.pattern == Pattern::step_increase; }},
    {"accelerating", accelerates},
    {"all", [](const Run&) { return true; }},
}};

}  // namespace

std::vector<EndsCell> ends_cells(const std::vector<Run>& runs) {
  std::vector<EndsCell> cells;
  for (const auto& [name, member] : kClasses)
    for (std::size_t i = 0; i < kLifeShares.size(); ++i) {
      EndsCell cell{name, kLifeShares[i]};
      for (const Run& run : runs) {
        if (!run.trace.label.leak || !member(run) || !run.played.ours.ends[i]) continue;
        ++cell.leaks;
        const EndForetold& end = *run.played.ours.ends[i];
        if (!end.said) continue;
        ++cell.given;
        cell.errors.push_back(std::abs(end.said->mid - end.true_in_s) / end.true_in_s);
        cell.covered += end.said->low <= end.true_in_s && end.true_in_s <= end.said->high ? 1 : 0;
        cell.widths.push_back(end.said->high / std::max(end.said->low, 1e-9));
      }
      if (cell.leaks > 0) cells.push_back(std::move(cell));
    }
  return cells;
}

std::string ends_table(const std::vector<Run>& runs) {
  std::string out =
      "| class | share of life | leaks | ends given | of them, % | median relative error, % | 90th, % | 80 % interval "
      "covers, % | median high/low |\n|---|---|---|---|---|---|---|---|---|\n";
  for (const EndsCell& cell : ends_cells(runs))
    out += fmt::format("| {} | {:.0f} % | {} | {} | {} | {} | {} | {} | {} |\n", cell.name, 100 * cell.life_share,
                       cell.leaks, cell.given, number(100.0 * share(cell.given, cell.leaks), 0),
                       number(100 * quantile(cell.errors, 0.5), 1), number(100 * quantile(cell.errors, 0.9), 0),
                       number(100 * share(cell.covered, cell.given), 0), number(quantile(cell.widths, 0.5)));
  return out + "\n";
}

}  // namespace vramtrack::accuracy
