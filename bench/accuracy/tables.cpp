#include "tables.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <iterator>
#include <map>

#include "tables_text.hpp"

namespace vramtrack::accuracy {
namespace {

std::string contender_line(std::string_view name, const Summary& s, double ns) {
  const Interval rate = poisson_rate(s.episodes, s.healthy_days);
  return fmt::format("| {} | {} | {} | {} | {} | {} | {} | {} ({}-{}) | {} | {} | {} |\n", name,
                     number(s.precision(1), 3), number(s.recall(), 3), number(s.f1(), 3), number(s.due_recall(), 3),
                     number(s.due_f1(), 3), number(s.precision(50), 3), number(rate.mid, 3), number(rate.low, 3),
                     number(rate.high, 3), number(quantile(s.delay_s, 0.5) / 60, 1),
                     number(100 * quantile(s.delay_share, 0.5), 1), number(ns, 0));
}

std::string contenders(const std::vector<Run>& runs, std::span<const RivalInfo> rivals) {
  std::string out =
      "| rule | precision 1:1 | recall | F1 | recall, due | F1, due | precision 50:1 | false alarms per GPU-day (95 %) "
      "| median minutes to detect | of life, % | ns per sample |\n|---|---|---|---|---|---|---|---|---|---|---|\n";
  std::array<std::vector<Scored>, kMarks.size()> ours;
  double seconds = 0;
  double samples = 0;
  for (const Run& run : runs) {
    for (std::size_t i = 0; i < kMarks.size(); ++i) ours[i].push_back(run.at(kMarks[i]));
    seconds += run.played.ours.seconds_spent;
    samples += static_cast<double>(run.samples);
  }
  for (std::size_t i = 0; i < kMarks.size(); ++i)
    out += contender_line(fmt::format("**vramtrack**, {}", name_of(kMarks[i])), summarise(ours[i]),
                          seconds / samples * 1e9);
  for (std::size_t r = 0; r < rivals.size(); ++r) {
    std::vector<Scored> theirs;
    seconds = 0;
    for (const Run& run : runs) {
      theirs.push_back(run.rivals[r]);
      seconds += run.rival_seconds[r];
    }
    out += contender_line(rivals[r].name, summarise(theirs), seconds / samples * 1e9);
  }
  return out + "\n";
}

/// vramtrack's false alarms at each rival's recall: by the highest confidence it ever gave a trace.
std::string equal_recall(const std::vector<Run>& runs, std::span<const RivalInfo> rivals) {
  std::vector<double> leaks;
  std::vector<double> healthy;
  for (const Run& run : runs) (run.trace.label.leak ? leaks : healthy).push_back(run.played.ours.highest_confidence);
  if (rivals.empty() || leaks.empty() || healthy.empty()) return {};
  std::sort(leaks.begin(), leaks.end(), std::greater<>());
  std::string out =
      "At equal recall: the share of healthy traces with an alarm. vramtrack's threshold finds as many leaks.\n\n"
      "| rule | its recall | its false alarms | vramtrack's |\n|---|---|---|---|\n";
  for (std::size_t r = 0; r < rivals.size(); ++r) {
    std::vector<Scored> theirs;
    for (const Run& run : runs) theirs.push_back(run.rivals[r]);
    const Summary s = summarise(theirs);
    double ours = 0;
    if (s.detected > 0) {
      const double threshold = leaks[static_cast<std::size_t>(s.detected) - 1];
      ours =
          static_cast<double>(std::count_if(healthy.begin(), healthy.end(), [&](double c) { return c >= threshold; })) /
          static_cast<double>(healthy.size());
    }
    out += fmt::format("| {} | {} | {} | {} |\n", rivals[r].name, number(s.recall(), 3), number(s.false_rate(), 3),
                       number(ours, 3));
  }
  return out + "\n";
}

std::string detection_time(const std::vector<Run>& runs) {
  std::vector<Scored> ours;
  for (const Run& run : runs) ours.push_back(run.told);
  const Summary s = summarise(ours);
  const double found = s.leaks == 0 ? std::nan("") : static_cast<double>(s.detected + s.slow) / s.leaks;
  return fmt::format("Leaks reported, with {} as slow growth: {} of {} ({}).\n\n", s.slow, s.detected + s.slow, s.leaks,
                     number(found, 3)) +
         fmt::format(
             "Time to report, divided by the largest of 5 % of life, 5 minutes and 20 samples: median {}, 75th "
             "percentile {}, "
             "90th "
             "{}. "
             "Leaks of more than 1 % of capacity an hour not reported in the first half of their life: {} of {}.\n\n",
             number(quantile(s.delay_over_limit, 0.5)), number(quantile(s.delay_over_limit, 0.75)),
             number(quantile(s.delay_over_limit, 0.9)), s.late, s.fast);
}

bool pattern_right(const Label& label, Pattern said) {
  return said == label.pattern || (label.also != Pattern::none && said == label.also);
}

std::string patterns(const std::vector<Run>& runs) {
  constexpr std::array kPatterns{Pattern::gradual_leak, Pattern::step_increase, Pattern::cyclic, Pattern::sudden_spike,
                                 Pattern::unknown};
  std::map<Pattern, std::map<Pattern, int>> counts;
  int right = 0;
  int all = 0;
  for (const Run& run : runs) {
    if (!run.trace.label.leak || !run.played.ours.pattern) continue;
    ++counts[run.trace.label.pattern][*run.played.ours.pattern];
    ++all;
    right += pattern_right(run.trace.label, *run.played.ours.pattern) ? 1 : 0;
  }
  if (all == 0) return {};
  std::string out =
      "| true pattern \\ reported | gradual | step | cyclic | spike | unknown |\n|---|---|---|---|---|---|\n";
  for (const Pattern truth : kPatterns) {
    if (!counts.contains(truth)) continue;
    out += fmt::format("| {} |", to_string(truth));
    for (const Pattern said : kPatterns) out += fmt::format(" {} |", counts[truth][said]);
    out += "\n";
  }
  return out +
         fmt::format(
             "\nPattern right (or the other one that is right for its family): {:.1f} % of {} detected leaks.\n\n",
             100.0 * right / all, all);
}

std::string the_rest(const std::vector<Run>& runs) {
  std::vector<double> errors;
  int suspects = 0;
  int right = 0;
  for (const Run& run : runs) {
    if (run.trace.label.growth_bytes_per_s && run.played.ours.growth_bytes_per_s)
      errors.push_back(std::abs(*run.played.ours.growth_bytes_per_s / *run.trace.label.growth_bytes_per_s - 1));
    if (run.played.ours.suspect_right) {
      ++suspects;
      right += *run.played.ours.suspect_right ? 1 : 0;
    }
  }
  std::string out;
  if (!errors.empty())
    out += fmt::format(
        "Growth rate, at the last look: median relative error {:.1f} %, 90th percentile {:.0f} %, {} leaks.\n\n",
        100 * quantile(errors, 0.5), 100 * quantile(errors, 0.9), errors.size());
  if (suspects > 0)
    out += fmt::format("Suspect process right at the first alarm: {} of {} ({:.1f} %).\n\n", right, suspects,
                       100.0 * right / suspects);
  return out;
}

}  // namespace

std::string_view name_of(Mark mark) {
  return mark == Mark::paged ? "notified" : mark == Mark::told ? "reported as a leak" : "suspected";
}

std::string contender_tables(const std::vector<Run>& all, std::span<const RivalInfo> rivals) {
  std::vector<Run> runs;
  std::copy_if(all.begin(), all.end(), std::back_inserter(runs),
               [](const Run& run) { return !beyond_half(run.trace); });
  return contenders(runs, rivals) + equal_recall(runs, rivals) + detection_time(runs) + patterns(runs) + the_rest(runs);
}

std::string each_line(const std::vector<Run>& runs) {
  std::string out =
      "family\tsource\tseed\tleak\tcapacity_gib\tsamples\tend_min\tonset_min\tlife_min\tdetected\tdelay_min\tlimit_"
      "min\t"
      "due\treported\treported_after_min\tfalse_reports\tsuspected\tfalse_suspicions\tfalse_"
      "episodes\talarms\tpattern\thighest_confidence\teta10\teta30\teta50\teta70\teta90\tbecause\n";
  for (const Run& run : runs) {
    std::string alarms;
    for (const Alarm& a : run.played.ours.alarms)
      alarms += fmt::format("{:.0f}-{:.0f} ", a.raised_s / 60, a.cleared_s / 60);
    out += fmt::format(
        "{}\t{}\t{}\t{}\t{:.0f}\t{}\t{:.0f}\t{:.1f}\t{:.0f}\t{}\t{:.1f}\t{:.1f}\t{}\t{}\t{:.1f}\t{}\t{}\t{}\t{}\t{}\t{}"
        "\t{:.3f}",
        run.trace.family, run.trace.source, run.trace.seed, run.trace.label.leak ? 1 : 0,
        run.trace.capacity_bytes / 1073741824, run.samples, run.played.end_s / 60, run.trace.label.onset_s / 60,
        run.ours.life_s / 60, run.ours.detected ? 1 : 0, run.ours.delay_s / 60, run.ours.limit_s / 60,
        run.ours.due ? 1 : 0, run.told.detected ? 1 : 0, run.told.delay_s / 60, run.told.false_episodes,
        run.suspected.detected ? 1 : 0, run.suspected.false_episodes, run.ours.false_episodes, alarms,
        run.played.ours.pattern ? to_string(*run.played.ours.pattern) : "-", run.played.ours.highest_confidence);
    for (const auto& end : run.played.ours.ends)
      out += end && end->said ? fmt::format("\t{:.2f}", end->said->mid / end->true_in_s) : "\t-";
    out += "\t" + run.played.ours.because + "\n";
  }
  return out;
}

std::string look_lines(const std::vector<Run>& runs) {
  std::string out = "family\tsource\tseed\tconfidence\tleaking\trising\n";
  for (const Run& run : runs)
    for (const Look& look : run.played.ours.looks)
      out += fmt::format("{}\t{}\t{}\t{:.6f}\t{}\t{}\n", run.trace.family, run.trace.source, run.trace.seed,
                         look.confidence, look.leaking ? 1 : 0, look.rising ? 1 : 0);
  return out;
}

}  // namespace vramtrack::accuracy
