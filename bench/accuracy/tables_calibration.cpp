// How right the confidence is, and what each bar on it would give: the frontier.
#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "tables.hpp"
#include "tables_text.hpp"

namespace vramtrack::accuracy {
namespace {

struct Bins {
  std::array<int, 10> count{};
  std::array<double, 10> said{};
  std::array<double, 10> so{};
  double brier = 0;
  int all = 0;

  [[nodiscard]] double ece() const {
    double sum = 0;
    for (std::size_t i = 0; i < count.size(); ++i) sum += std::abs(said[i] - so[i]);
    return share(sum, all);
  }
};

Bins bins_of(const std::vector<Run>& runs, bool rising_only) {
  Bins bins;
  for (const Run& run : runs)
    for (const Look& look : run.played.ours.looks) {
      if (rising_only && !look.rising) continue;
      const auto bin = std::min<std::size_t>(9, static_cast<std::size_t>(look.confidence * 10));
      const double truth = look.leaking ? 1 : 0;
      ++bins.count[bin];
      bins.said[bin] += look.confidence;
      bins.so[bin] += truth;
      bins.brier += (look.confidence - truth) * (look.confidence - truth);
      ++bins.all;
    }
  return bins;
}

/// What an alert at one bar would have been.
struct AtBar {
  int found = 0;
  int alarmed = 0;
  std::vector<double> delay_share;
  std::vector<double> lead_min;
};

std::string frontier_line(std::string_view bar, const AtBar& at, int leaks, int healthy) {
  const double recall = share(at.found, leaks);
  const double wrong = share(at.alarmed, healthy);
  return fmt::format("| {} | {} | {} | {} | {} | {} | {} |\n", bar, number(recall, 3),
                     number(share(recall, recall + wrong), 3), number(wrong, 3),
                     number(100 * quantile(at.delay_share, 0.5), 1), number(quantile(at.lead_min, 0.5), 0),
                     number(quantile(at.lead_min, 0.1), 0));
}

void add(AtBar& at, const Scored& s) {
  if (!s.trace->label.leak) {
    at.alarmed += s.false_episodes > 0 ? 1 : 0;
  } else if (s.detected) {
    ++at.found;
    at.delay_share.push_back(s.delay_s / s.life_s);
    at.lead_min.push_back((s.life_s - s.delay_s) / 60);
  }
}

}  // namespace

double calibration_error(const std::vector<Run>& runs, bool rising_only) {
  return bins_of(runs, rising_only).ece();
}

/// Looks are spread evenly over every trace. Expected calibration error: Naeini et al. 2015, ten bins.
std::string reliability_table(const std::vector<Run>& runs, bool rising_only) {
  const Bins bins = bins_of(runs, rising_only);
  if (bins.all == 0) return {};
  std::string out = fmt::format(
      "Confidence, {}:\n\n| confidence | looks | mean confidence | share that leaked |\n|---|---|---|---|\n",
      rising_only ? "looks at a rise (growing, leaking, slow_growth)" : "all looks");
  for (std::size_t i = 0; i < bins.count.size(); ++i)
    if (bins.count[i] > 0)
      out += fmt::format("| {:.1f}-{:.1f} | {} | {:.3f} | {:.3f} |\n", 0.1 * static_cast<double>(i),
                         0.1 * static_cast<double>(i + 1), bins.count[i], bins.said[i] / bins.count[i],
                         bins.so[i] / bins.count[i]);
  return out + fmt::format("\nExpected calibration error {:.3f}, Brier score {:.3f}, {} looks.\n\n", bins.ece(),
                           bins.brier / bins.all, bins.all);
}

std::string frontier_table(const std::vector<Run>& runs) {
  int leaks = 0;
  int healthy = 0;
  std::array<AtBar, kBars.size()> bars;
  std::array<AtBar, kMarks.size()> marked;
  for (const Run& run : runs) {
    if (beyond_half(run.trace)) continue;
    (run.trace.label.leak ? leaks : healthy) += 1;
    for (std::size_t i = 0; i < kMarks.size(); ++i) add(marked[i], run.at(kMarks[i]));
    for (std::size_t i = 0; i < kBars.size(); ++i) {
      const Reached& reached = run.played.ours.bars[i];
      if (!run.trace.label.leak) {
        bars[i].alarmed += reached.while_healthy ? 1 : 0;
      } else if (reached.leaking_s) {
        ++bars[i].found;
        const double delay_s = *reached.leaking_s - run.trace.label.onset_s;
        bars[i].delay_share.push_back(delay_s / run.ours.life_s);
        bars[i].lead_min.push_back((run.ours.life_s - delay_s) / 60);
      }
    }
  }
  std::string out =
      "| threshold | recall | precision 1:1 | healthy traces alarmed | delay, % of life (median) | minutes left "
      "(median) | minutes left (10th percentile) |\n|---|---|---|---|---|---|---|\n";
  for (std::size_t i = 0; i < kBars.size(); ++i)
    out += frontier_line(fmt::format("{:.2f}", kBars[i]), bars[i], leaks, healthy);
  for (std::size_t i = kMarks.size(); i-- > 0;)
    out += frontier_line(fmt::format("**{}**", name_of(kMarks[i])), marked[i], leaks, healthy);
  return out + "\n";
}

}  // namespace vramtrack::accuracy
