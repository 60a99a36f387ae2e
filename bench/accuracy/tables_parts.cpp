// The table of the scenes of several programs.
#include <algorithm>

#include "families.hpp"
#include "tables.hpp"
#include "tables_text.hpp"

namespace vramtrack::accuracy {
namespace {

struct Count {
  int scenes = 0;
  int alarmed = 0;  ///< while nothing leaked
  int told = 0;     ///< likewise, as a leak
  int found = 0;
  int named = 0;  ///< a suspect was told at the first alarm
  int right = 0;
  std::vector<double> delay_share;

  void add(const Run& run) {
    ++scenes;
    alarmed += run.ours.false_episodes > 0 ? 1 : 0;
    told += run.told.false_episodes > 0 ? 1 : 0;
    if (run.told.detected) {
      ++found;
      delay_share.push_back(run.told.delay_s / run.told.life_s);
    }
    if (!run.played.ours.suspect_right) return;
    ++named;
    right += *run.played.ours.suspect_right ? 1 : 0;
  }
};

std::string line(std::string_view name, const Count& c, const Count& total, bool leak) {
  if (!leak)
    return fmt::format("| {} | {} | - | - | - | {} | {} | - | - | {} | {} |\n", name, c.scenes, c.told, c.alarmed,
                       total.told, total.alarmed);
  return fmt::format("| {} | {} | {} | {} | {} of {} | {} | {} | {} | {} | {} | {} |\n", name, c.scenes, c.found,
                     number(100 * quantile(c.delay_share, 0.5), 0), c.right, c.named, c.told, c.alarmed, total.found,
                     number(100 * quantile(total.delay_share, 0.5), 0), total.told, total.alarmed);
}

}  // namespace

PartFigures part_figures(const std::vector<Run>& with_processes) {
  Count seen;
  Count unseen;
  Count healthy;
  for (const Run& run : with_processes)
    (!run.trace.label.leak ? healthy : run.trace.label.suspect_is_seen ? seen : unseen).add(run);
  return {seen.named, seen.right, unseen.named, unseen.right, healthy.scenes, healthy.alarmed, healthy.told};
}

std::string parts_table(const std::vector<Run>& with_processes, const std::vector<Run>& total_only) {
  std::string out =
      "| family | scenes | reported as a leak | of life, % | right one named | reported while healthy | notified while "
      "healthy | total only: reported | of life, % | reported while healthy | notified while healthy "
      "|\n|---|---|---|---|---|---|---|---|---|---|---|\n";
  Count all[2];
  Count all_total[2];
  for (const Family& family : part_families()) {
    Count with;
    Count total;
    for (std::size_t i = 0; i < with_processes.size(); ++i) {
      if (with_processes[i].trace.family != family.name) continue;
      with.add(with_processes[i]);
      total.add(total_only[i]);
      all[family.leak ? 1 : 0].add(with_processes[i]);
      all_total[family.leak ? 1 : 0].add(total_only[i]);
    }
    if (with.scenes > 0) out += line(fmt::format("{}: {}", family.name, family.help), with, total, family.leak);
  }
  out += line("**a leak**", all[1], all_total[1], true);
  out += line("**healthy churn**", all[0], all_total[0], false);
  return out + "\n";
}

}  // namespace vramtrack::accuracy
