#include "detect/experience.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/median.hpp"
#include "core/units.hpp"

namespace vramtrack {
namespace {

/// Runs that began within this time of each other belong to one job.
constexpr double kTogether_s = 120;

// The prior: how probable it is that the next run leaks, judged by the earlier runs.

/// A Beta distribution of this weight and mean, before any run was seen: detection.leak-prior's default.
constexpr double kPriorRuns = 2;
constexpr double kPriorLeaks = 0.1;
/// Each run counts this much less than the one after it: a program may have been fixed, or broken.
constexpr double kForgetting = 0.85;
/// Bounds of the Bayes factor by the prior alone, and of all factors together.
constexpr double kLeastOdds = 1.0 / 8;
constexpr double kMostPriorOdds = 8;
constexpr double kMostOdds = 16;
/// If no earlier run reached the age, healthy predecessors count this much for health, and no more.
constexpr double kLeastOddsAtUnknownAge = 0.5;

// The envelope.

/// Its tolerance: this many standard deviations of the runs' levels, this share of the level (more if there is only one
/// run), or this many bytes, whichever is largest.
constexpr double kDeviations = 2;
constexpr double kLevelShare = 0.03;
constexpr double kLevelShareOfOne = 0.05;
constexpr double kLeastTolerance_bytes = 64 * kMiB;
/// A rise that begins before this many times the longest warm-up of the predecessors is a warm-up.
constexpr double kStillWarmingUp = 1.5;
/// A run may be this far ahead of earlier ones; its floor is then compared with the floor of a longer span.
constexpr double kAhead = 1.25;
/// The weight of "as always" per odds against a leak: in half of the cases, a leak may hide below the envelope.
constexpr double kHides = 0.5;
constexpr double kMostFamiliar = 16;
/// Below the envelope, at an age at which no run rose: a slight weight, because the same work may come later.
constexpr double kBelow = 0.25;
/// Weight of a day like earlier ones, per odds of one more by Laplace's rule of succession.
constexpr double kDayWeight = 3;
/// Above the envelope by more than this many tolerances, an exponential tail shows no more.
constexpr double kMostExcess = 2;

double mean_of(const std::vector<double>& values) {
  double sum = 0;
  for (const double v : values) sum += v;
  return values.empty() ? 0 : sum / static_cast<double>(values.size());
}

double tolerance_of(const std::vector<double>& levels) {
  if (levels.empty()) return 0;
  const double highest = *std::max_element(levels.begin(), levels.end());
  const double share = (levels.size() == 1 ? kLevelShareOfOne : kLevelShare) * highest;
  const double mean = mean_of(levels);
  double squares = 0;
  for (const double v : levels) squares += (v - mean) * (v - mean);
  const auto n = static_cast<double>(levels.size());
  const double deviation = n > 1 ? std::sqrt(squares / (n - 1) * (1 + 1 / n)) : 0;
  return std::max({kDeviations * deviation, share, kLeastTolerance_bytes});
}

bool leaked(const FinishedRun& run) {
  return run.outcome == RunOutcome::leaked || run.outcome == RunOutcome::out_of_memory;
}

/// The first age that is not below `age_s`; kPoints if it is beyond all of them.
std::size_t point_at(double age_s) {
  std::size_t point = 0;
  while (point < FinishedRun::kPoints && FinishedRun::age_s(point) < age_s) ++point;
  return point;
}

/// Merges `run` into `into`.
void merge(FinishedRun& into, const FinishedRun& run) {
  into.begin = std::min(into.begin, run.begin);
  into.end = std::max(into.end, run.end);
  into.outcome = std::max(into.outcome, run.outcome);
  into.seen_from_start = into.seen_from_start && run.seen_from_start;
  into.warm_up_s = std::max(into.warm_up_s, run.warm_up_s);
  into.settled_bytes = std::max(into.settled_bytes, run.settled_bytes);
  into.peak_bytes = std::max(into.peak_bytes, run.peak_bytes);
  for (std::size_t i = 0; i < run.points; ++i)
    into.floor_bytes[i] =
        std::max(i < into.points || i == 0 ? into.floor_bytes[i] : into.floor_bytes[i - 1], run.floor_bytes[i]);
  for (std::size_t i = std::max<std::size_t>(run.points, 1); i < into.points; ++i)
    into.floor_bytes[i] = std::max(into.floor_bytes[i], into.floor_bytes[i - 1]);
  into.points = std::max(into.points, run.points);
}

}  // namespace

void add_run(Program& program, const FinishedRun& run) {
  const bool is_first = program.runs == 0;
  program.first = is_first ? run.begin : std::min(program.first, run.begin);
  program.last = is_first ? run.end : std::max(program.last, run.end);
  const auto together = std::find_if(program.recent.begin(), program.recent.end(), [&](const FinishedRun& other) {
    return std::abs(seconds_between(other.begin, run.begin)) <= kTogether_s;
  });
  const RunOutcome before = together == program.recent.end() ? RunOutcome::settled : together->outcome;
  RunOutcome after = run.outcome;
  if (together != program.recent.end()) {
    merge(*together, run);
    after = together->outcome;
  } else {
    ++program.runs;
    const auto later = std::find_if(program.recent.begin(), program.recent.end(),
                                    [&](const FinishedRun& other) { return other.end > run.end; });
    program.recent.insert(later, run);
    if (program.recent.size() > Program::kMostRuns) program.recent.erase(program.recent.begin());
  }
  if (before < RunOutcome::leaked && after >= RunOutcome::leaked) ++program.leaked;
  if (before < RunOutcome::out_of_memory && after == RunOutcome::out_of_memory) ++program.out_of_memory;
}

std::optional<Program> as_known_at(const Program& program, Timestamp time) {
  if (program.last <= time) return program;
  Program known = program;
  std::erase_if(known.recent, [&](const FinishedRun& run) {
    if (run.end <= time) return false;
    --known.runs;
    known.leaked -= leaked(run) ? 1U : 0U;
    known.out_of_memory -= run.outcome == RunOutcome::out_of_memory ? 1U : 0U;
    return true;
  });
  if (known.recent.empty()) return std::nullopt;
  known.last = known.recent.back().end;
  return known;
}

double with_experience(double probability, double chance, const ExperienceWord& word) {
  if (word.familiar == 0 && word.odds == 1) return probability;
  if (!(probability > 0)) return probability;
  const double rivals = 1 / probability - 1;
  const double by_chance = std::clamp(chance, 0.0, rivals);
  return 1 / (1 + by_chance + (rivals - by_chance) / word.odds + word.familiar);
}

ProgramExperience::ProgramExperience(const Program& program) : runs_(static_cast<int>(program.recent.size())) {
  double leaks = 0;
  double counted = 0;
  double weight = 1;
  std::vector<double> settled;
  std::vector<double> warm_ups;
  std::array<std::vector<double>, FinishedRun::kPoints> levels;
  const auto count = [&](const FinishedRun& run) {
    if (run.outcome == RunOutcome::rising) return;  // what it would have become is unknown
    counted += weight;
    leaks += leaked(run) ? weight : 0;
    weight *= kForgetting;
    if (leaked(run)) {
      ++leaked_;
      return;
    }
    ++healthy_;
    settled.push_back(run.settled_bytes);
    if (!run.seen_from_start) return;
    warm_ups.push_back(run.warm_up_s);
    for (std::size_t i = 0; i < run.points; ++i) levels[i].push_back(static_cast<double>(run.floor_bytes[i]));
  };
  std::for_each(program.recent.rbegin(), program.recent.rend(), count);
  leak_probability_ = (leaks + kPriorRuns * kPriorLeaks) / (counted + kPriorRuns);
  for (std::size_t i = 0; i < levels.size(); ++i) {
    if (levels[i].empty()) continue;
    points_[i] = {*std::max_element(levels[i].begin(), levels[i].end()), tolerance_of(levels[i]),
                  static_cast<int>(levels[i].size())};
  }
  if (!settled.empty()) highest_bytes_ = *std::max_element(settled.begin(), settled.end());
  highest_tolerance_bytes_ = tolerance_of(settled);
  if (!settled.empty()) usual_settled_bytes_ = upper_median(std::span(settled));
  if (warm_ups.empty()) return;
  usual_warm_up_s_ = upper_median(std::span(warm_ups));
  longest_warm_up_s_ = *std::max_element(warm_ups.begin(), warm_ups.end());
}

ExperienceWord ProgramExperience::word(const Rise& rise, std::optional<Timestamp> begin) const {
  using Kind = ExperienceWord::Kind;
  ExperienceWord w;
  if (healthy_ + leaked_ == 0) return w;
  const double p = leak_probability_;
  const double prior = std::clamp(p / (1 - p) * (1 - kPriorLeaks) / kPriorLeaks, kLeastOdds, kMostPriorOdds);
  const double level = rise.start_bytes + rise.net_bytes;
  const double age_s = begin ? seconds_between(*begin, rise.end) : 0;
  const std::size_t at = begin ? point_at(age_s) : FinishedRun::kPoints;
  const int reached = at < FinishedRun::kPoints ? points_[at].runs : 0;
  const std::size_t soon = std::min(point_at(kAhead * age_s), FinishedRun::kPoints - 1);
  const Point& there = begin && points_[soon].runs > 0 ? points_[soon] : points_[std::min(at, soon)];
  const bool above_all = healthy_ > 0 && level > highest_bytes_ + highest_tolerance_bytes_;
  if (above_all && (reached > 0 || !begin)) {
    // By chance, the next of n + 1 similar runs is the highest in one case of n + 1. How far above it is means less the
    // fewer they are: with n runs, Student's t of n degrees has a tail of power n + 1, exponential only for large n.
    const int n = begin ? reached : healthy_;
    const double excess = (level - highest_bytes_ - highest_tolerance_bytes_) / highest_tolerance_bytes_;
    w.kind = Kind::left;
    w.runs = healthy_;
    const double tail = std::pow(1 + std::min(excess, kMostExcess) / (n + 1), n + 1);
    w.odds = std::clamp(prior * (n + 1) * tail, kLeastOdds, kMostOdds);
    return w;
  }
  if (prior > 1) {
    w.kind = Kind::leaked;
    w.runs = healthy_ + leaked_;
    w.odds = prior;
  }
  if (healthy_ == 0) return w;
  if (reached == 0) {
    if (w.kind == Kind::none) w.odds = std::max(prior, kLeastOddsAtUnknownAge);
    if (begin || level > highest_bytes_ + highest_tolerance_bytes_) return w;
  }
  const int n = reached > 0 ? reached : healthy_;
  const double share = static_cast<double>(n) / (n + 1);
  double explained = 0;
  if (reached > 0 && level <= there.highest_bytes + there.tolerance_bytes) {
    const double start_age_s = std::max(0.0, seconds_between(*begin, rise.start));
    const std::size_t from = point_at(start_age_s);
    const double before = from > 0 ? points_[from - 1].highest_bytes : 0;
    explained = std::clamp((there.highest_bytes + there.tolerance_bytes - before) / rise.net_bytes, 0.0, 1.0);
    if (start_age_s <= kStillWarmingUp * longest_warm_up_s_) explained = 1;
    // All but half of it: the rest belongs to the tolerance.
    explained = std::max(0.0, 2 * explained - 1);
  } else if (reached > 0) {
    // Earlier than the other runs, but not higher than they went.
    return w;
  }
  w.familiar = share * std::max(kBelow, explained * std::min(kMostFamiliar, kHides * (1 - p) / p));
  if (explained > 0 && w.kind == Kind::none) {
    w.kind = Kind::inside;
  } else if (w.kind == Kind::none) {
    w.kind = Kind::below;
  }
  if (w.kind != Kind::leaked) w.odds = 1;  // evidence for health is in `familiar`
  if (w.runs == 0) w.runs = n;
  return w;
}

std::string ProgramExperience::describe(const ExperienceWord& word, const Scale& scale) const {
  const auto runs = [](int n) { return fmt::format("{} earlier run{} of this program", n, n == 1 ? "" : "s"); };
  switch (word.kind) {
    case ExperienceWord::Kind::inside:
      return fmt::format("; {} settled at {} after {}", runs(word.runs), scale.bytes(usual_settled_bytes_),
                         scale.span(usual_warm_up_s_));
    case ExperienceWord::Kind::left:
      return fmt::format("; {} went no higher than {}", runs(word.runs), scale.bytes(highest_bytes_));
    case ExperienceWord::Kind::leaked:
      return fmt::format("; {} of {} leaked", leaked_, runs(word.runs));
    default:
      return {};
  }
}

std::string Experience::because(const Rise& rise, const Scale& scale) const {
  return fmt::format("rose {} in {}{}", scale.bytes(rise.net_bytes), scale.span(seconds_between(rise.start, rise.end)),
                     describe(word(rise), scale));
}

ExperienceWord Experience::word(const Rise& rise) const {
  ExperienceWord w;
  if (process_ != nullptr) {
    Rise its = rise;
    its.start_bytes -= offset_bytes_;
    w = process_->word(its);
  } else if (program_) {
    w = program_->word(rise, begin_);
  }
  if (w.kind == ExperienceWord::Kind::leaked || w.kind == ExperienceWord::Kind::inside) return w;
  const Days::Seen days = days_.like(rise);
  if (days.alike == 0) return w;
  const double familiar = std::min(kMostFamiliar, kDayWeight * (days.alike + 1) / (days.known - days.alike + 1));
  if (familiar <= w.familiar) return w;
  return {ExperienceWord::Kind::like_days, familiar, 1, days.alike};
}

bool Experience::knows_days(const Rise& rise) const {
  const ExperienceWord::Kind kind = word(rise).kind;
  return kind == ExperienceWord::Kind::left || kind == ExperienceWord::Kind::leaked || days_.like(rise).known > 0;
}

std::string Experience::describe(const ExperienceWord& word, const Scale& scale) const {
  if (word.kind == ExperienceWord::Kind::like_days)
    return fmt::format("; it rose like this at this time on {} day{} before, and fell again", word.runs,
                       word.runs == 1 ? "" : "s");
  if (process_ != nullptr) return process_->describe(word, scale);
  return program_ ? program_->describe(word, scale) : std::string();
}

}  // namespace vramtrack
