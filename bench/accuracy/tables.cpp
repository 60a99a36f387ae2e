#include "tables.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <iterator>
#include <map>

namespace vramtrack::accuracy {
namespace {

std::string number(double value, int digits = 2) {
  return std::isnan(value) ? "-" : fmt::format("{:.{}f}", value, digits);
}

std::string contender_line(std::string_view name, const Summary& s, double ns) {
  const Interval rate = poisson_rate(s.episodes, s.healthy_days);
  return fmt::format("| {} | {} | {} | {} | {} | {} ({}-{}) | {} | {} | {} |\n", name, number(s.precision(1), 3),
                     number(s.recall(), 3), number(s.f1(), 3), number(s.precision(50), 3), number(rate.mid, 3),
                     number(rate.low, 3), number(rate.high, 3), number(quantile(s.delay_s, 0.5) / 60, 1),
                     number(100 * quantile(s.delay_share, 0.5), 1), number(ns, 0));
}

std::string contenders(const std::vector<Run>& runs, std::span<const RivalInfo> rivals) {
  std::string out =
      "| rule | precision 1:1 | recall | F1 | precision 50:1 | false alarms per GPU-day (95 %) | median minutes to "
      "detect | "
      "of life, % | ns per sample |\n|---|---|---|---|---|---|---|---|---|\n";
  std::vector<Scored> ours;
  double seconds = 0;
  double samples = 0;
  for (const Run& run : runs) {
    ours.push_back(run.ours);
    seconds += run.played.ours.seconds_spent;
    samples += static_cast<double>(run.samples);
  }
  out += contender_line("**vramtrack**", summarise(ours), seconds / samples * 1e9);
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

std::string by_family(const std::vector<Run>& runs) {
  std::map<std::pair<bool, std::string>, std::vector<const Run*>> families;
  for (const Run& run : runs) families[{!run.trace.label.leak, run.trace.family}].push_back(&run);
  std::string out =
      "| family | traces | right | alarms while healthy | healthy GPU-days | median minutes to detect | of life, % | "
      "late |\n"
      "|---|---|---|---|---|---|---|---|\n";
  for (const auto& [key, members] : families) {
    std::vector<Scored> scored;
    for (const Run* run : members) scored.push_back(run->ours);
    const Summary s = summarise(scored);
    out += fmt::format("| {}{} | {} | {} | {} | {} | {} | {} | {} |\n", key.first ? "healthy: " : "leak: ", key.second,
                       members.size(), number(key.first ? 1 - s.false_rate() : s.recall(), 3), s.episodes,
                       number(s.healthy_days, 1), number(quantile(s.delay_s, 0.5) / 60, 1),
                       number(100 * quantile(s.delay_share, 0.5), 1), s.late);
  }
  return out + "\n";
}

std::string detection_time(const std::vector<Run>& runs) {
  std::vector<Scored> ours;
  for (const Run& run : runs) ours.push_back(run.ours);
  const Summary s = summarise(ours);
  return fmt::format(
      "Time to detect over the larger of 5 % of life, 5 minutes and 20 samples: median {}, 75th percentile {}, 90th "
      "{}. "
      "Leaks of more than 1 % of capacity an hour not found in the first half of their life: {} of {}.\n\n",
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

std::string ends(const std::vector<Run>& runs) {
  std::string out =
      "| class | share of life | leaks | end given, % | median relative error, % | 90th, % | 80 % interval covers, % | "
      "median high/low |\n|---|---|---|---|---|---|---|---|\n";
  const std::array<std::pair<const char*, std::function<bool(const Run&)>>, 5> classes{{
      {"gradual",
       [](const Run& r) {
         return r.trace.label.pattern == Pattern::gradual_leak &&
                r.trace.family.find("accelerating") == std::string::npos;
       }},
      {"cyclic", [](const Run& r) { return r.trace.label.pattern == Pattern::cyclic; }},
      {"stairs", [](const Run& r) { return r.trace.label.pattern == Pattern::step_increase; }},
      {"accelerating", [](const Run& r) { return r.trace.family.find("accelerating") != std::string::npos; }},
      {"all", [](const Run&) { return true; }},
  }};
  for (const auto& [name, member] : classes)
    for (std::size_t i = 0; i < kLifeShares.size(); ++i) {
      int all = 0;
      int given = 0;
      int covered = 0;
      std::vector<double> errors;
      std::vector<double> widths;
      for (const Run& run : runs) {
        if (!run.trace.label.leak || !member(run) || !run.played.ours.ends[i]) continue;
        ++all;
        const EndForetold& end = *run.played.ours.ends[i];
        if (!end.said) continue;
        ++given;
        errors.push_back(std::abs(end.said->mid - end.true_in_s) / end.true_in_s);
        covered += end.said->low <= end.true_in_s && end.true_in_s <= end.said->high ? 1 : 0;
        widths.push_back(end.said->high / std::max(end.said->low, 1e-9));
      }
      if (all == 0) continue;
      out += fmt::format("| {} | {:.0f} % | {} | {} | {} | {} | {} | {} |\n", name, 100 * kLifeShares[i], all,
                         number(100.0 * given / all, 0), number(100 * quantile(errors, 0.5), 1),
                         number(100 * quantile(errors, 0.9), 0),
                         number(given == 0 ? std::nan("") : 100.0 * covered / given, 0), number(quantile(widths, 0.5)));
    }
  return out + "\n";
}

/// Reliability of `confidence` over looks spread evenly over every trace. ECE: Naeini et al. 2015, ten bins.
std::string reliability(const std::vector<Run>& runs, bool rising_only) {
  std::array<int, 10> count{};
  std::array<double, 10> said{};
  std::array<double, 10> so{};
  double brier = 0;
  int all = 0;
  for (const Run& run : runs)
    for (const Look& look : run.played.ours.looks) {
      if (rising_only && !look.rising) continue;
      const auto bin = std::min<std::size_t>(9, static_cast<std::size_t>(look.confidence * 10));
      ++count[bin];
      said[bin] += look.confidence;
      so[bin] += look.leaking ? 1 : 0;
      brier += (look.confidence - (look.leaking ? 1 : 0)) * (look.confidence - (look.leaking ? 1 : 0));
      ++all;
    }
  if (all == 0) return {};
  double ece = 0;
  std::string out = fmt::format(
      "Confidence, {}:\n\n| confidence | looks | mean confidence | share that leaked |\n|---|---|---|---|\n",
      rising_only ? "looks at a rise (growing, leaking, slow_growth)" : "all looks");
  for (std::size_t i = 0; i < 10; ++i) {
    if (count[i] == 0) continue;
    ece += std::abs(said[i] - so[i]) / all;
    out += fmt::format("| {:.1f}-{:.1f} | {} | {:.3f} | {:.3f} |\n", 0.1 * static_cast<double>(i),
                       0.1 * static_cast<double>(i + 1), count[i], said[i] / count[i], so[i] / count[i]);
  }
  return out +
         fmt::format("\nExpected calibration error {:.3f}, Brier score {:.3f}, {} looks.\n\n", ece, brier / all, all);
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

std::string tables(const std::vector<Run>& all, std::span<const RivalInfo> rivals) {
  std::vector<Run> runs;
  std::copy_if(all.begin(), all.end(), std::back_inserter(runs), [](const Run& run) { return !run.trace.apart; });
  return contenders(runs, rivals) + equal_recall(runs, rivals) + detection_time(runs) + by_family(all) +
         patterns(runs) + ends(runs) + reliability(runs, false) + reliability(runs, true) + the_rest(runs);
}

std::string each_line(const std::vector<Run>& runs) {
  std::string out =
      "family\tsource\tseed\tleak\tcapacity_gib\tsamples\tend_min\tonset_min\tlife_min\tdetected\tdelay_min\tlimit_"
      "min\t"
      "false_episodes\talarms\tpattern\thighest_confidence\teta25\teta50\teta75\teta90\tbecause\n";
  for (const Run& run : runs) {
    std::string alarms;
    for (const Alarm& a : run.played.ours.alarms)
      alarms += fmt::format("{:.0f}-{:.0f} ", a.raised_s / 60, a.cleared_s / 60);
    out += fmt::format(
        "{}\t{}\t{}\t{}\t{:.0f}\t{}\t{:.0f}\t{:.1f}\t{:.0f}\t{}\t{:.1f}\t{:.1f}\t{}\t{}\t{}\t{:.3f}", run.trace.family,
        run.trace.source, run.trace.seed, run.trace.label.leak ? 1 : 0, run.trace.capacity_bytes / 1073741824,
        run.samples, run.played.end_s / 60, run.trace.label.onset_s / 60, run.ours.life_s / 60,
        run.ours.detected ? 1 : 0, run.ours.delay_s / 60, run.ours.limit_s / 60, run.ours.false_episodes, alarms,
        run.played.ours.pattern ? to_string(*run.played.ours.pattern) : "-", run.played.ours.highest_confidence);
    for (const auto& end : run.played.ours.ends)
      out += end && end->said ? fmt::format("\t{:.2f}", end->said->mid / end->true_in_s) : "\t-";
    out += "\t" + run.played.ours.because + "\n";
  }
  return out;
}

}  // namespace vramtrack::accuracy
