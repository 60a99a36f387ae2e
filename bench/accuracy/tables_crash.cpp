// Leaks that come to their end, life after life.
#include <algorithm>
#include <array>
#include <vector>

#include "tables.hpp"
#include "tables_text.hpp"

namespace vramtrack::accuracy {
namespace {

/// An alert that still stands this long after the process is gone is wrong.
constexpr double kGrace_s = 600;

struct Count {
  int lives = 0;
  int found = 0;
  int told = 0;
  int suspected = 0;
  int stood = 0;    ///< of lives after which nothing leaked for the grace: an alert that outlived it
  int watched = 0;  ///< lives after which nothing leaked for as long
  std::vector<double> delay_share;
};

const Alarm* first_within(const std::vector<Alarm>& alarms, const Life& life) {
  const auto at = std::find_if(alarms.begin(), alarms.end(),
                               [&](const Alarm& a) { return a.raised_s <= life.end_s && a.cleared_s > life.onset_s; });
  return at == alarms.end() ? nullptr : &*at;
}

}  // namespace

std::string crash_table(const std::vector<Run>& runs) {
  constexpr std::array kNames{"first", "second", "third and later"};
  std::array<Count, kNames.size()> counts;
  for (const Run& run : runs) {
    const std::vector<Life>& lives = run.played.lives;
    for (std::size_t i = 0; i < lives.size(); ++i) {
      Count& c = counts[std::min(i, kNames.size() - 1)];
      ++c.lives;
      if (const Alarm* alarm = first_within(run.played.ours.alarms, lives[i])) {
        ++c.found;
        c.delay_share.push_back(std::max(0.0, alarm->raised_s - lives[i].onset_s) /
                                std::max(1.0, lives[i].end_s - lives[i].onset_s));
      }
      c.told += first_within(run.played.ours.told, lives[i]) != nullptr ? 1 : 0;
      c.suspected += first_within(run.played.ours.suspicions, lives[i]) != nullptr ? 1 : 0;
      const double until_s = i + 1 < lives.size() ? lives[i + 1].onset_s : run.played.end_s;
      if (until_s < lives[i].end_s + kGrace_s) continue;
      ++c.watched;
      c.stood += std::any_of(run.played.ours.alarms.begin(), run.played.ours.alarms.end(), [&](const Alarm& a) {
        return a.raised_s <= lives[i].end_s && a.cleared_s > lives[i].end_s + kGrace_s;
      });
    }
  }
  std::string out =
      "| life | lives | notified | reported as a leak | suspected | notified after, % of life | alerts that stood ten "
      "minutes after its end |\n"
      "|---|---|---|---|---|---|---|\n";
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    const Count& c = counts[i];
    out += fmt::format("| {} | {} | {} | {} | {} | {} | {} of {} |\n", kNames[i], c.lives,
                       number(share(c.found, c.lives), 3), number(share(c.told, c.lives), 3),
                       number(share(c.suspected, c.lives), 3), number(100 * quantile(c.delay_share, 0.5), 1), c.stood,
                       c.watched);
  }
  return out + "\n";
}

}  // namespace vramtrack::accuracy
