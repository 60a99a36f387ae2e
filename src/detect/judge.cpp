#include "detect/judge.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "detect/calibration.hpp"
#include "detect/forecast.hpp"
#include "detect/rivals.hpp"

namespace vramtrack {
namespace {

// Raising and withdrawing. Each number was chosen on the traces that docs/ACCURACY.md sets aside for that.

/// Levels with less drift evidence (nats) than this are not weighed: even at best, chance would weigh 5 x 3 e^-2 = 2
/// (five starts, a mix of three bets), twice as much as a leak.
constexpr float kLeastNats = 2;
/// The confidence that confirms a suspicion, and the lower one that does so when little time is left: at most
/// lead-time, or this share of the growth's life, whichever is longer.
constexpr double kConfirmed = 0.95;
constexpr double kConfirmedLate = 0.83;
/// At the end of a recording, there is no more evidence to wait for.
constexpr double kConfirmedAtEnd = 0.9;
constexpr double kLateLeft_s = kSecondsPerHour;
constexpr double kLateLifeShare = 0.25;
/// If a rise's siblings stand still and give it these odds, it is not part of a daily load; three siblings are enough.
constexpr double kNoDayOdds = 2;
/// While there is time, nothing is suspected if more than one in ten such rises is healthy: with more evidence, half of
/// what would be suspected at confidence-threshold is not.
constexpr double kEarlyNews = 0.9;
/// A growth begins with this share of min-growth-mb.
constexpr double kGrowthShare = 0.125;
/// A growth continues unchanged if, since its evidence was strongest, it has risen at no less than this share of its
/// rate then. A slower one is slowing down.
constexpr double kSameRate = 0.5;
/// Peaks that keep less than this share of the growth end the alert at once.
constexpr double kHalfKept = 0.5;
/// A rise beyond this share of the limit is not taken for a load only because of its age, or before the first work.
constexpr double kFullShare = 0.98;
/// If peaks fall below this share of the growth's first level, or kNothingShare of the highest level, all was released.
constexpr double kReleasedShare = 0.5;

/// A rise resembles those of earlier runs if its rate is within this factor of theirs. The rates of unrelated rises
/// spread over two orders of magnitude: one in ten is this close by chance.
constexpr double kAlikeRate = 1.25;
constexpr double kAlikeByChance = 0.1;

// What is derived from the series.

/// Loads come in jumps: a creep that first stood still for this many times as long as it has grown is not a load.
constexpr double kStoodStill = 3;
/// Smaller shifts of the quantiles are ordinary differences between blocks of one load.
constexpr double kLeastShift = 512 * kMiB;

// A program that ends or restarts.

constexpr const char* kAllReleased = "the memory was released";

/// A peak below this share of the highest since the last restart begins a new epoch.
constexpr float kRestartShare = 0.2F;
/// Up to this share of the limit, or of the highest level, counts as nothing: a driver's context, a desktop.
constexpr double kNothingShare = 0.05;
/// A program has not begun to fill the memory while it holds no more than this share of it above its first level.
constexpr double kStartShare = 0.2;
/// A program that fell from this share of the limit had reached the limit: its level then is not held against the
/// next program.
constexpr double kAtLimitShare = 0.9;

// Which windows are weighed, and how their results combine.

/// A coarser level sees a rise from further back if its window starts earlier than the finer one's by this share of
/// the finer one's length.
constexpr double kFurtherBack = 0.5;
/// A rise is separate if the floor was flat before it for this share of its duration: that an earlier rise settled
/// does not bear on it.
constexpr double kOwnQuiet = 0.5;
/// If one step makes up this share of a window's rise, the window is a jump and its aftermath: it cannot show settling.
constexpr double kJumpShare = 0.4;
/// From this probability on, an alarm may be near, and a level is weighed at every close.
constexpr double kNearAlarm = 0.3;
/// Otherwise size / kSizePerSkip closes are skipped: a full level (48 buckets) is weighed at every fifth close, and at
/// every ninth while its window does not pass the gates and nothing stands that it could support.
constexpr std::size_t kSizePerSkip = 12;
constexpr std::size_t kSizePerLongSkip = 6;
/// Windows whose probability is within this of the highest count as about equally probable.
constexpr double kAboutAsProbable = 0.03;

}  // namespace

EvidenceContext Judge::context() const {
  EvidenceContext out{
      limit_bytes_, config_.leak_prior, min_duration_s(), min_growth_bytes(), static_cast<double>(epoch_first_), {}};
  if (growth_.lives() && growth_.follows_another()) out.regime = growth_.onset();
  return out;
}

/// The coarsest level in which each bucket still holds one sample, else the finest of all: finer ones show the same.
std::size_t Judge::finest_useful() const {
  const double period_s = period_.median_s();
  std::size_t k = 0;
  while (k + 1 < Scales::kLevels && Scales::width_s(k + 1) <= period_s) ++k;
  return k;
}

bool Judge::worth_weighing(std::size_t k) const {
  return scales_.level(k).drift().nats() >= kLeastNats;
}

bool Judge::beyond_horizon(const Evidence& e) const {
  return e.oom_in_s && *e.oom_in_s > config_.horizon_days * kSecondsPerDay;
}

/// Whether little of its life is left: anything likelier than not is then worth reporting.
bool Judge::is_late(const Evidence& e) const {
  if (!e.oom_in_s) return false;
  const double life_s = e.duration_s + *e.oom_in_s;
  return *e.oom_in_s <= std::max({kLateLeft_s, config_.lead_time_minutes * kSecondsPerMinute, kLateLifeShare * life_s});
}

/// Whether a growth is news: if it is likely enough, which requires more while there is time. A rise that may be
/// a load is not news until that can be ruled out.
bool Judge::is_news(const Evidence& e) const {
  if (e.most_confidence <= kMayBeLoad) return false;
  const bool has_time = e.oom_in_s && !e.decided && !is_late(e);
  return confidence_in(e) >= std::max(config_.confidence_threshold, has_time ? kEarlyNews : 0);
}

/// Evidence held from before does not help a window that shows none itself: it belongs to another, steeper rise.
bool Judge::suspects(const Evidence& e) const {
  return e.probability >= kKeepProbability && e.material && e.admissible() && !beyond_horizon(e) && is_news(e) &&
         samples_ >= static_cast<std::uint64_t>(config_.minimum_samples);
}

/// Waiting for more evidence is only worthwhile while there is time. A jump is not confirmed together with its
/// aftermath: the aftermath alone must do that. A shift that all quantiles share is suspected but not confirmed: a day
/// whose load never lets up moves them all, too.
bool Judge::confirms(const Evidence& e) const {
  if (of_ == Of::shift || e.largest_step >= kJumpShare || !suspects(e)) return false;
  const double confidence = confidence_in(e);
  if (confidence >= kConfirmed) return true;
  return confidence >= kConfirmedLate && is_late(e);
}

bool Judge::confirm_at_end() {
  // The end of the file does not turn an uncertain creep into a leak.
  if (alerting() || !suspicion_.stands()) return false;
  const auto e = best();
  if (!e || may_be_loading() || confidence_in(*e) < kConfirmedAtEnd || pause_of_rise(e->start, e->net_bytes).is_long())
    return false;
  alert_ = suspicion_;
  at_end_ = true;
  return true;
}

std::optional<double> Judge::most_left_bytes() const {
  if (spokesman() != nullptr) return std::nullopt;
  auto e = whole_growth();
  if (!e) e = best();
  return e ? most_left_of_slowing(scales_, *e) : std::nullopt;
}

bool Judge::may_be_loading() const {
  auto e = whole_growth();
  if (!e) e = best();
  if (!e || is_decided(*e, of_siblings(*e))) return false;
  return (facts_ != nullptr && facts_->load(life().begin, e->start, e->end, e->net_bytes, false)) ||
         most_of_load(*e) < 1;
}

bool Judge::denies(Timestamp start, double net_bytes) const {
  if (load_of(start, last_, net_bytes)) return true;
  Evidence e;
  e.start = start;
  e.end = last_;
  e.duration_s = seconds_between(start, last_);
  e.start_bytes = static_cast<double>(last_bytes_) - net_bytes;
  e.net_bytes = net_bytes;
  const SiblingsWord siblings = of_siblings(e);
  if (experienced(e).explains() || siblings.explains()) return true;
  if (!is_decided(e, siblings) && !is_full() && most_of_load(e) < 1) return true;
  return facts_ != nullptr && facts_->lifetimes().word(start, last_, net_bytes, e.duration_s).denies();
}

/// Earlier runs that ran out of memory, or that this one has left behind, and siblings that stand still.
Basis Judge::basis() const {
  const auto e = best();
  if (!e || of_ != Of::series || spokesman() != nullptr) return Basis::curve;
  if (lifetimes_of(*e).kind == LifetimesWord::Kind::stays) return Basis::lifetimes;
  const auto known = experienced(*e).kind;
  if (known == ExperienceWord::Kind::left || known == ExperienceWord::Kind::leaked || precedent_odds(*e) > 0)
    return Basis::runs;
  return of_siblings(*e).odds >= kNoDayOdds ? Basis::siblings : Basis::curve;
}

/// The window's own probability, or the one held from before while the growth continues. A jump is not that growth.
double Judge::confidence_in(const Evidence& e) const {
  const double held = e.largest_step < kJumpShare ? held_.probability : 0;
  return std::min(calibrated_rise(std::max(e.probability, held)), e.most_confidence);
}

/// Whether earlier runs, or siblings, show that the rise is not a load.
bool Judge::is_decided(const Evidence& e, const SiblingsWord& siblings) const {
  const auto known = experienced(e).kind;
  return known == ExperienceWord::Kind::left || known == ExperienceWord::Kind::leaked || siblings.odds >= kNoDayOdds;
}

/// 1, unless the rise may be a load, or the first morning of a daily load, and earlier runs say nothing about such
/// days.
double Judge::most_confidence(const Evidence& e, const SiblingsWord& siblings) const {
  const double load = is_decided(e, siblings) || is_full() ? 1 : most_of_load(e);
  if (load < 1) return load;
  if (!e.oom_in_s || (of_ == Of::creep && e.quiet_s >= kStoodStill * e.duration_s)) return 1;
  if (experience_ && experience_->knows_days({e.start, e.end, e.start_bytes, e.net_bytes})) return 1;
  const double most = most_of_first_morning(e, e.duration_s + *e.oom_in_s, seconds_between(program_first_, last_),
                                            facts_ ? facts_->kind() : ProgramKind::unknown);
  // A daily load would raise all ranks.
  return siblings.odds >= kNoDayOdds ? 1 : most;
}

void Judge::observe(Timestamp time, double used_bytes) {
  if (samples_ > 0 && time <= last_) {  // the same time again: the later value counts
    last_bytes_ = static_cast<float>(used_bytes);
    scales_.replace_last(last_bytes_);
    if (samples_ == 1) epoch_first_ = last_bytes_;
    return;
  }
  if (samples_ == 0) {
    first_ = program_first_ = life_ = time;
    epoch_first_ = static_cast<float>(used_bytes);
    going_.fill(Going{time, 1});
  } else {
    period_.observe(seconds_between(last_, time));
  }
  // Only now is the previous sample final: until here, a later value for the same time could replace it.
  if (samples_ > 0 && of_ == Of::series) {
    observe_derived();
    observe_steps();
  }
  ++samples_;
  before_ = last_;
  before_bytes_ = last_bytes_;
  last_ = time;
  last_bytes_ = static_cast<float>(used_bytes);
  const double nothing = kNothingShare * limit_bytes_.value_or(0);
  if (samples_ == 1 || (used_bytes <= nothing && used_bytes <= epoch_first_ + kStartShare * nothing)) {
    life_ = time;
    life_bytes_ = last_bytes_;
  }
  const std::uint32_t mask = scales_.observe(time, last_bytes_, finest_useful());
  if (mask != 0) on_close(mask);
}

/// A derived series has the same free memory as the series itself, but only a share of a growth shows as creep.
void Judge::observe_derived() {
  creep_.observe(static_cast<double>(last_bytes_));
  // The limit of a process falls when another process takes memory; its earlier high says nothing then.
  const auto high = static_cast<double>(limit_bytes_ && epoch_high_ >= *limit_bytes_ ? last_bytes_ : epoch_high_);
  const auto limit = [&](double bytes, double share) {
    return limit_bytes_ ? std::optional(bytes + std::floor(share * std::max(0.0, *limit_bytes_ - high))) : std::nullopt;
  };
  const auto free_bytes = limit_bytes_ ? std::optional(*limit_bytes_ - creep_.first_bytes()) : std::nullopt;
  const bool separable = creep_.separable(free_bytes);
  if (separable && !creeping_.has_begun()) creeping_.begin(std::make_unique<Judge>(config_, figures_, Of::creep));
  if (creeping_.has_begun()) {
    const bool stood = creeping_.alerts();
    creeping_.observe(last_, creep_.bytes(), limit(creep_.bytes(), creep_.share_seen()), separable);
    if (stood && !creeping_.alerts()) {
      end_ = creeping_.judge().last_end();
      end_reason_ = creeping_.judge().last_end_reason();
    }
  }
  const auto shift = distributions_.observe(last_, static_cast<double>(last_bytes_));
  if (!shift || !creep_.is_busy(free_bytes)) return;
  if (!shifting_.has_begun()) shifting_.begin(std::make_unique<Judge>(config_, figures_, Of::shift));
  shifting_.observe(last_, *shift, limit(*shift, 1), *shift - distributions_.reference_bytes() >= kLeastShift);
}

/// What the series does at its large falls, and at its large steps.
void Judge::observe_steps() {
  if (!cycling_.has_begun()) cycling_.begin(std::make_unique<CycleJudge>(config_, figures_));
  if (!doubling_.has_begun()) doubling_.begin(std::make_unique<DoublingJudge>(config_, figures_));
  for (Derived* derived : {&cycling_, &doubling_}) {
    const bool stood = derived->alerts();
    derived->observe(last_, static_cast<double>(last_bytes_), limit_bytes_, true);
    if (!stood || derived->alerts()) continue;
    end_ = AlertEnd::withdrawn;
    end_reason_ = derived->judge().last_end_reason();
  }
}

/// The series' own alert comes before that of a derived series, and so does its own suspicion.
const Derived* Judge::spokesman() const {
  if (alert_.stands()) return nullptr;
  for (const Derived* derived : {&creeping_, &doubling_, &cycling_})
    if (derived->alerts()) return derived;
  if (suspicion_.stands()) return nullptr;
  for (const Derived* derived : {&creeping_, &doubling_, &cycling_, &shifting_})
    if (derived->suspects()) return derived;
  return nullptr;
}

void Judge::on_close(std::uint32_t mask) {
  if ((mask & 1U) != 0) on_finest();
  if (!goes_on_as_held()) held_ = {};
  growth_.check(scales_, finest_useful(), alert_.stands() || suspicion_.stands(), last_);
  if (held_.probability <= 0) was_slow_ = false;
  const std::size_t from = finest_useful();
  for (std::size_t k = from; k < Scales::kLevels; ++k)
    if ((mask & (1U << k)) != 0) weigh_level(k);
  is_held_.reset();
  decide(suspicion_);
  decide(alert_);
  // A confirmed growth is also a suspected one.
  if (alert_.stands() && !suspicion_.stands()) suspicion_ = alert_;
}

void Judge::decide(Standing& standing) {
  if (!standing.stands()) {
    if (!standing.wanted()) return;
    const auto e = best();
    // Coarse scales may still show a growth that has ended at the finer ones.
    if (e && pause_of_rise(e->start, e->net_bytes).is_long()) return;
    return standing.raise(last_, e.value_or(Evidence{}));
  }
  if (load_of(standing.start(), last_, static_cast<double>(last_bytes_) - standing.start_bytes()))
    return end(standing, AlertEnd::withdrawn, "the program is loading: its growth is not a leak", true);
  if (const LifetimesWord word = lifetimes_of(standing); word.kind == LifetimesWord::Kind::dies)
    return end(standing, AlertEnd::withdrawn, "what is allocated is released: " + word.describe(figures_), true);
  if (is_held()) return standing.hold(last_);
  const Level& level = scales_.level(standing.level());
  const double paused_s = seconds_between(standing.held_until(), last_);
  // No scale keeps it alive once the growth has stood still for too long.
  if (const Pause pause = pause_of_rise(standing.start(), standing.net_bytes()); pause.has_ended())
    return end(standing, AlertEnd::withdrawn,
               fmt::format("the growth ended: memory has not grown for {}", figures_.span(pause.still_s)));
  if (paused_s < standing.patience_s(level)) return;
  end(standing, AlertEnd::withdrawn,
      standing.is_given_back(level)
          ? "the program is releasing the growth"
          : fmt::format("the growth did not continue: no time scale has shown evidence of a leak for {}",
                        figures_.span(paused_s)));
}

Pause Judge::pause_of_rise(Timestamp start, double net_bytes) const {
  return pause_of(scales_, finest_useful(), start, net_bytes, last_);
}

/// Whether a window whose own rise has not stood still for too long supports what stands.
bool Judge::is_held() {
  if (!is_held_) is_held_ = finds_held();
  return *is_held_;
}

bool Judge::finds_held() const {
  if (held_.probability >= kKeepProbability && held_.ends_in_sight &&
      !pause_of_rise(held_.start, held_.net_bytes).has_ended())
    return true;
  for (std::size_t k = 0; k < Scales::kLevels; ++k)
    if (probability_[k] >= kKeepProbability && !pause_of_rise(rises_[k].start, rises_[k].net_bytes).has_ended())
      return true;
  return false;
}

void Judge::on_finest() {
  const Bucket& closed = scales_.level(0).back();
  const auto peak = static_cast<double>(closed.peak_bytes);
  for (Standing* standing : {&suspicion_, &alert_}) {
    if (!standing->stands() || peak - standing->start_bytes() >= kHalfKept * standing->net_bytes()) continue;
    // If all of it is gone, the program ended or was restarted; if only the growth is gone, it was a cycle after all.
    const bool all =
        peak < kReleasedShare * standing->start_bytes() || peak < kNothingShare * static_cast<double>(epoch_high_);
    end(*standing, all ? AlertEnd::released : AlertEnd::withdrawn,
        all ? kAllReleased : "the program released the growth by itself: a cycle, not a leak");
  }
  if (closed.peak_bytes < kRestartShare * epoch_high_) {
    const bool at_limit = limit_bytes_ && static_cast<double>(epoch_high_) >= kAtLimitShare * *limit_bytes_;
    const bool idle = peak < kNothingShare * (limit_bytes_ ? std::min(*limit_bytes_, static_cast<double>(epoch_high_))
                                                           : static_cast<double>(epoch_high_));
    restart(!at_limit && !idle);
    return;
  }
  epoch_high_ = std::max(epoch_high_, closed.peak_bytes);
  jumps_.on_close(scales_, config_.spike_percent / 100, min_growth_bytes(), limit_bytes_);
}

void Judge::restart(bool keep_highs) {
  scales_.restart(keep_highs);
  // What showed it is the beginning of the new life.
  const Bucket& first = scales_.level(0).back();
  life_ = scales_.start_of(0, first.slot);
  life_bytes_ = first.floor_bytes;
  again_ = true;
  if (!keep_highs) program_first_ = life_;
  if (creeping_.alerts() || doubling_.alerts() || (!keep_highs && cycling_.alerts())) {
    end_ = AlertEnd::released;
    end_reason_ = kAllReleased;
  }
  creep_.clear();
  creeping_.clear();
  doubling_.clear();
  if (!keep_highs) cycling_.clear();
  distributions_.clear();
  shifting_.clear();
  epoch_first_ = first.floor_bytes;
  epoch_high_ = first.peak_bytes;
  probability_.fill(0);
  loads_.fill(false);
  loaded_until_.reset();
  held_ = {};
  growth_.end();
  suspicion_.forget_looks();
  alert_.forget_looks();
  skip_.fill(0);
  going_.fill(Going{last_, 1});
  jumps_.reset();
}

/// Whether the growth has gone on, at about its rate, since the evidence for it was strongest.
bool Judge::goes_on_as_held() const {
  if (held_.probability <= 0 || scales_.level(0).size() == 0) return false;
  const double expected_s = std::max(0.0, seconds_between(held_.time, last_) - held_.gap_s);
  // The finest floor may dip within a cycle, so any floor over the length of one gap counts.
  return scales_.reaches_since(last_ - from_seconds(held_.gap_s),
                               held_.floor_bytes + kSameRate * held_.rate_bytes_per_s * expected_s);
}

/// The tail of a settling rise looks straight from close up. Where a coarser scale sees the same rise from further
/// back, its judgement on whether the rise continues is therefore binding. A leak after a warm-up is not the same
/// rise.
std::optional<Evidence> Judge::weigh_in_context(std::size_t k) const {
  auto e = weigh(scales_, k, context());
  if (!e) return e;
  const bool of_its_own = e->quiet_s >= kOwnQuiet * e->duration_s;
  // Nor is what follows a faster rise at its own rate: a window that reaches back over the change binds nothing.
  const auto is_of_another = [&](Timestamp start) {
    return growth_.lives() && growth_.follows_another() && e->start >= growth_.onset() && start < growth_.onset();
  };
  // Nor is a load that facts show what its program does once it is over.
  const auto reaches_into_load = [&](Timestamp start) {
    return loaded_until_ && e->start >= *loaded_until_ && start < *loaded_until_;
  };
  for (std::size_t j = k + 1; !of_its_own && j < Scales::kLevels; ++j)
    if (!is_of_another(going_[j].start) && !reaches_into_load(going_[j].start) &&
        seconds_between(going_[j].start, e->start) > kFurtherBack * e->duration_s)
      e->probability = std::min(e->probability, going_[j].probability);
  if (load_of(e->start, e->end, e->net_bytes)) {
    e->loads = e->denied = true;
    e->probability = e->most_confidence = 0;
    return e;
  }
  const LifetimesWord lifetimes = lifetimes_of(*e);
  if (lifetimes.denies()) {
    e->denied = true;
    e->probability = e->most_confidence = 0;
    return e;
  }
  const SiblingsWord siblings = of_siblings(*e);
  e->most_confidence = most_confidence(*e, siblings);
  const double known = with_experience(e->probability, e->noise, with_siblings(experienced(*e), siblings));
  e->probability = e->admissible() ? known : std::min(e->probability, known);
  if (const double odds = std::max(precedent_odds(*e), lifetimes.odds()); odds > 0) {
    e->probability = std::max(e->probability, 1 / (1 + e->noise + 1 / odds));
    e->most_confidence = 1;
    e->decided = true;
  }
  return e;
}

/// Odds that a rise continues until memory runs out because similar earlier rises did, whatever else may explain it; 0:
/// it does not resemble them. If k of n runs ran out of memory, the odds of the next are (k + 1) / (n - k + 1) by
/// Laplace's rule of succession; a rate like theirs multiplies these odds.
double Judge::precedent_odds(const Evidence& e) const {
  if (!precedent_ || !e.admissible() || e.duration_s < min_duration_s()) return 0;
  const double ratio = e.net_bytes / e.duration_s / precedent_->growth_bytes_per_s;
  if (!(ratio > 1 / kAlikeRate && ratio < kAlikeRate)) return 0;
  return (precedent_->ran_out + 1.0) / (precedent_->ended - precedent_->ran_out + 1.0) / kAlikeByChance;
}

/// What the program's lines allocate says nothing against a load, of which all stays.
LifetimesWord Judge::lifetimes_of(const Evidence& e) const {
  if (facts_ == nullptr || of_ != Of::series) return {};
  LifetimesWord word = facts_->lifetimes().word(e.start, last_, e.net_bytes, e.longest_gap_s);
  const bool confirms = e.admissible() && e.duration_s >= min_duration_s() && most_of_load(e) == 1;
  if (word.kind == LifetimesWord::Kind::stays && !confirms) return {};
  return word;
}

LifetimesWord Judge::lifetimes_of(const Standing& standing) const {
  if (facts_ == nullptr || of_ != Of::series) return {};
  return facts_->lifetimes().word(standing.start(), last_, static_cast<double>(last_bytes_) - standing.start_bytes(),
                                  seconds_between(standing.start(), last_));
}

/// As seen, or as facts show if that was not its beginning: what it held may have been there for long, and a program
/// that is old when it is first seen with next to nothing began earlier.
Judge::Life Judge::life() const {
  const Life seen{life_, static_cast<double>(life_bytes_),
                  began_ || !(static_cast<double>(life_bytes_) > kNothingShare * limit_bytes_.value_or(0))};
  const auto begin = facts_ != nullptr && of_ == Of::series && !began_ && !again_ ? facts_->begin() : std::nullopt;
  if (!begin || *begin > life_ || (seen.known && seconds_between(*begin, life_) <= kLongestLoad_s)) return seen;
  return {*begin, 0, true};
}

/// The load that a rise is, as far as facts show.
std::optional<Load> Judge::load_of(Timestamp start, Timestamp end, double net_bytes) const {
  if (facts_ == nullptr || of_ != Of::series) return std::nullopt;
  return facts_->load(life().begin, start, end, net_bytes, is_full());
}

bool Judge::is_full() const {
  return limit_bytes_ && static_cast<double>(last_bytes_) >= kFullShare * *limit_bytes_;
}

/// The longest window that shows a load which continues.
std::optional<Evidence> Judge::loading() const {
  std::optional<Evidence> found;
  for (std::size_t k = finest_useful(); k < Scales::kLevels; ++k) {
    if (!loads_[k]) continue;  // as of the level's last look: a finding must stay cheap where nothing loads
    const auto e = weigh_in_context(k);
    if (!e || !e->loads || e->stopped || (found && e->net_bytes <= found->net_bytes)) continue;
    if (load_of(e->start, e->end, e->net_bytes)->goes_on) found = e;
  }
  return found;
}

/// Where nothing but the curve is known, a rise at the beginning of a life may be a load, straight or in stages: 1 if
/// it cannot be.
double Judge::most_of_load(const Evidence& e) const {
  if (of_ != Of::series || !limit_bytes_) return 1;
  // A recording that begins in the middle of a life does not show how old the program is.
  const Life its = life();
  if (!its.known) return 1;
  return most_of_young_load(e, *limit_bytes_,
                            {seconds_between(its.begin, e.start), e.start_bytes - its.bytes,
                             seconds_between(its.begin, last_), facts_ != nullptr && facts_->worked(e.start, e.end)});
}

ExperienceWord Judge::experienced(const Evidence& e) const {
  return experience_ ? experience_->word({e.start, e.end, e.start_bytes, e.net_bytes}) : ExperienceWord();
}

SiblingsWord Judge::of_siblings(const Evidence& e) const {
  return siblings_ ? siblings_->word({e.start, e.end, e.start_bytes, e.net_bytes}) : SiblingsWord();
}

void Judge::weigh_level(std::size_t k) {
  if (worth_weighing(k) && skip_[k] > 0) {
    --skip_[k];
    return;
  }
  probability_[k] = 0;
  loads_[k] = false;
  going_[k] = Going{last_, 1};
  const auto e = worth_weighing(k) ? weigh_in_context(k) : std::nullopt;
  if (e) {
    loads_[k] = e->loads;
    if (e->loads && load_of(e->start, e->end, e->net_bytes)->goes_on) loaded_until_ = last_;
    // That a program settled before it rose above all its predecessors says nothing about what it does there.
    const bool left = experienced(*e).kind == ExperienceWord::Kind::left;
    if (e->largest_step < kJumpShare && !left && !e->denied) going_[k] = Going{e->start, 1 / (1 + e->warm_up + e->day)};
    rises_[k] = {e->start, e->net_bytes};
    // A growth that would fill the memory only beyond the horizon does not keep an alert standing.
    probability_[k] = beyond_horizon(*e) ? 0 : static_cast<float>(e->probability);
    // That the rise of the siblings ended is new evidence, not something that a window forgot.
    if (siblings_ && held_.probability > e->probability && of_siblings(*e).explains()) {
      held_ = {};
      growth_.doubt();
    }
    if (e->denied && held_.start >= e->start) held_ = {};
    if (e->denied && growth_.lives() && growth_.onset() >= e->start) growth_.end();
    if (!e->denied && e->admissible() && e->probability >= held_.probability)
      held_ = {e->probability,
               e->start,
               e->net_bytes,
               e->end,
               e->start_bytes + e->net_bytes,
               e->net_bytes / e->duration_s,
               kStoppedGaps * std::max(e->longest_gap_s, Scales::width_s(k)),
               !beyond_horizon(*e)};
    follow_growth(*e);
    // A full window changes little from one bucket to the next.
    const bool near = !alert_.stands() && e->probability >= kNearAlarm && !beyond_horizon(*e);
    // A growth that waits for a morning to be over waits for hours: every other close is soon enough.
    const bool waits = near && suspicion_.stands() && e->most_confidence < kConfirmed;
    const std::size_t skipped =
        scales_.level(k).size() / (suspicion_.stands() || e->admissible() ? kSizePerSkip : kSizePerLongSkip);
    skip_[k] = near ? static_cast<std::uint8_t>(waits) : static_cast<std::uint8_t>(skipped);
  }
  if (e && e->material && e->admissible() && beyond_horizon(*e) && confidence_in(*e) >= config_.confidence_threshold)
    was_slow_ = true;
  suspicion_.look(k, e && suspects(*e) ? &*e : nullptr);
  alert_.look(k, e && confirms(*e) ? &*e : nullptr);
}

void Judge::follow_growth(const Evidence& e) {
  if (e.loads || !rises(e) || e.net_bytes < kGrowthShare * min_growth_bytes()) return;
  growth_.see(scales_, finest_useful(), e, confidence_in(e), last_);
  if (growth_.confidence() < config_.confidence_threshold || !growth_.wants_forecast(last_)) return;
  const auto whole = whole_growth();
  growth_.foretell(whole ? forecast(scales_, *whole, limit_bytes_).oom_in_s : std::nullopt, last_);
}

/// The present growth from its onset on, at the finest level that reaches back to it.
std::optional<Evidence> Judge::whole_growth() const {
  if (!growth_.lives()) return std::nullopt;
  return weigh_from(scales_, growth_.level(scales_, finest_useful()), growth_.onset(), context());
}

void Judge::end(Standing& standing, AlertEnd end, std::string reason, bool is_sure) {
  standing.end();
  if (&standing != &alert_) return;
  end_ = end;
  end_reason_ = std::move(reason);
  end_is_sure_ = is_sure;
}

/// The most probable window; among about equally probable ones, the one that sees most of the growth.
std::optional<Evidence> Judge::best() const {
  std::array<std::optional<Evidence>, Scales::kLevels> all;
  double highest = 0;
  for (std::size_t k = finest_useful(); k < Scales::kLevels; ++k) {
    if (!worth_weighing(k)) continue;
    all[k] = weigh_in_context(k);
    if (all[k]) highest = std::max(highest, all[k]->probability);
  }
  std::optional<Evidence> best;
  for (const auto& e : all)
    if (e && e->probability >= highest - kAboutAsProbable && (!best || e->net_bytes > best->net_bytes)) best = e;
  return best;
}

const DetectorInfo judge_detector{
    "judge", "floors and peaks at twelve time scales, rival explanations weighed, first-passage forecast (default)",
    [](const DetectionConfig& config, const Scale& figures) -> std::unique_ptr<Detector> {
      return std::make_unique<Judge>(config, figures);
    }};

}  // namespace vramtrack
