// The judge: vramtrack's own detector. Floors and peaks at twelve time scales, an e-process for drift, rival
// explanations weighed against a leak, a first-passage forecast. Mathematics: docs/detectors/judge.md.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/format.hpp"
#include "core/units.hpp"
#include "detect/detector.hpp"
#include "detect/evidence.hpp"
#include "detect/forecast.hpp"
#include "detect/period.hpp"
#include "detect/rest.hpp"
#include "detect/scales.hpp"
#include "detect/shape.hpp"

namespace vramtrack {

extern const DetectorInfo judge_detector;

namespace {

// Raising and withdrawing. Each number was chosen on the traces that docs/ACCURACY.md sets aside for that.

/// A level whose drift evidence (nats) is below this is not weighed: chance would weigh 5 x 3 e^-2 = 2 at best (five
/// starts, three bets mixed), twice as much as a leak.
constexpr float kLeastNats = 2;
/// Time left, in windows, from which on waiting for more evidence costs more than it is worth: nearly half of the
/// growth's life is over. Then this share of the usual bar is enough, unless the weights of chance and of churn
/// together exceed kLateRivals: more time would tell those apart.
constexpr double kLateWindows = 1.2;
constexpr double kLateBar = 0.8;
constexpr double kLateRivals = 0.2;
/// An alert is raised after this many looks in a row at one level, or at this many levels at once: a single look is
/// one of hundreds a day.
constexpr int kLooksInARow = 2;
constexpr std::ptrdiff_t kLevelsAtOnce = 2;
/// Looks in a row are counted up to here; more say nothing new, and the counter is a byte.
constexpr int kMostLooks = 200;
/// Probability that some level must hold for an alert to stand. Far below the bar: raising and withdrawing at the same
/// level would flicker.
constexpr double kKeepProbability = 0.4;
/// A pause is not an end: an alert that no level holds stands for this share of the growth's duration, within bounds.
constexpr double kPatienceShare = 0.25;
constexpr double kLeastPatience_s = 2 * kSecondsPerMinute;
constexpr double kMostPatience_s = 6 * kSecondsPerHour;
/// Peaks below this share of the growth mean that the program gives it back: no patience then.
constexpr double kKeptShare = 0.8;
/// Peaks below this share of the growth end the alert at once.
constexpr double kHalfKept = 0.5;
/// Peaks below this share of where the growth began, or below kNothingShare of the highest level: all was released.
constexpr double kReleasedShare = 0.5;

// A program that ends, or starts anew.

/// A peak below this share of the highest since the last restart begins a new epoch.
constexpr float kRestartShare = 0.2F;
/// This share of the limit, or of the highest level, is as good as nothing: a driver's context, a desktop.
constexpr double kNothingShare = 0.05;
/// A program that fell from this share of the limit has met the limit: what it had reached is not held against the
/// next.
constexpr double kAtLimitShare = 0.9;

// Which windows are weighed, and how their words combine.

/// A coarser level sees a rise from further back when its window starts earlier by this share of the finer one's
/// length.
constexpr double kFurtherBack = 0.5;
/// A window of which one step makes this share of the rise is a jump and what followed: it has no word on settling.
constexpr double kJumpShare = 0.4;
/// Probability from which on an alarm may be near, and a level is weighed at every close.
constexpr double kNearAlarm = 0.3;
/// Otherwise a full level (48 buckets) is weighed at every fifth close: its size over this many closes are skipped.
constexpr std::size_t kSizePerSkip = 12;
/// Windows whose probability is within this of the highest are about as probable.
constexpr double kAboutAsProbable = 0.03;

// What a finding says.

/// Without an alert, nothing is said before the series is this old, or minimum-duration-minutes where that is less.
constexpr double kSpeaksAfter_s = 5 * kSecondsPerMinute;
/// A rise of at least this probability and size is called growing; below that, the series is at rest, and its
/// confidence says no more than this.
constexpr double kGrowingProbability = 0.3;
constexpr double kGrowingBytes = 8 * kMiB;
/// Changes smaller than this share of the highest level (and than min-growth-mb) do not matter to a series at rest.
constexpr double kMattersShare = 0.02;
/// Chances smaller than one in this many are not spelled out.
constexpr double kMillion = 1e6;

std::string chance_words(double nats) {
  if (nats > std::log(kMillion)) return "less than 1 in a million";
  return fmt::format("1 in {:.0f}", std::exp(nats));
}

class Judge final : public Detector {
 public:
  explicit Judge(const DetectionConfig& config) : config_(config) {}

  void observe(Timestamp time, double used_bytes) override;
  void set_limit(std::optional<double> limit_bytes) override { limit_bytes_ = limit_bytes; }
  [[nodiscard]] bool alerting() const override { return alerting_; }
  [[nodiscard]] Finding finding() const override;
  [[nodiscard]] AlertEnd last_end() const override { return end_; }
  [[nodiscard]] std::string last_end_reason() const override { return end_reason_; }
  [[nodiscard]] std::vector<std::string> explain() const override;

 private:
  void on_close(std::uint32_t mask);
  void on_finest();
  void weigh_level(std::size_t k);
  [[nodiscard]] bool worth_weighing(std::size_t k) const { return scales_.level(k).drift().nats() >= kLeastNats; }
  [[nodiscard]] double min_growth_bytes() const { return config_.min_growth_mb * kMiB; }
  [[nodiscard]] double min_duration_s() const { return config_.minimum_duration_minutes * kSecondsPerMinute; }
  [[nodiscard]] std::optional<Evidence> weigh_in_context(std::size_t k) const;
  void restart(bool keep_highs);
  void end_alert(AlertEnd end, std::string reason);
  [[nodiscard]] EvidenceContext context() const;
  [[nodiscard]] bool alarming(const Evidence& e) const;
  [[nodiscard]] double bar(const Evidence& e) const;
  [[nodiscard]] bool beyond_horizon(const Evidence& e) const;
  [[nodiscard]] std::optional<Evidence> best() const;
  [[nodiscard]] std::size_t finest_useful() const;
  void describe_rise(Finding& f, const Evidence& e) const;
  void describe_pause(Finding& f, const std::optional<Evidence>& e) const;

  DetectionConfig config_;
  Scales scales_;
  Jumps jumps_;
  PeriodEstimate period_;
  std::optional<double> limit_bytes_;
  Timestamp first_{};
  Timestamp last_{};
  Timestamp held_until_{};  ///< while alerting: the last time some level held the alert
  std::uint64_t samples_ = 0;
  float last_bytes_ = 0;
  float epoch_first_ = 0;  ///< the first sample since the last restart
  float epoch_high_ = 0;   ///< highest peak since the last restart
  std::array<float, Scales::kLevels> probability_{};
  /// Of each level's window: where it starts, and how probable it is that the rise goes on, by its shape alone.
  struct Going {
    Timestamp start{};
    double probability = 1;
  };
  std::array<Going, Scales::kLevels> going_{};
  std::array<std::uint8_t, Scales::kLevels> skip_{};    ///< closes until the level is weighed again
  std::array<std::uint8_t, Scales::kLevels> streak_{};  ///< closes in a row at which the level would alarm
  bool alerting_ = false;
  std::size_t alert_level_ = 0;
  double alert_start_bytes_ = 0;
  double alert_net_bytes_ = 0;
  double alert_duration_s_ = 0;
  AlertEnd end_ = AlertEnd::withdrawn;
  std::string end_reason_;
};

EvidenceContext Judge::context() const {
  return {limit_bytes_, config_.leak_prior, min_duration_s(), min_growth_bytes(), static_cast<double>(epoch_first_)};
}

/// The coarsest level whose buckets still hold one sample each, or the finest of all: finer ones say the same.
std::size_t Judge::finest_useful() const {
  const double period_s = period_.median_s();
  std::size_t k = 0;
  while (k + 1 < Scales::kLevels && Scales::width_s(k + 1) <= period_s) ++k;
  return k;
}

bool Judge::beyond_horizon(const Evidence& e) const {
  return e.oom_in_s && *e.oom_in_s > config_.horizon_days * kSecondsPerDay;
}

/// Waiting for more evidence is worth something only while there is time.
double Judge::bar(const Evidence& e) const {
  const bool late = e.oom_in_s && *e.oom_in_s <= kLateWindows * e.duration_s && e.noise + e.churn <= kLateRivals;
  return config_.confidence_threshold * (late ? kLateBar : 1.0);
}

bool Judge::alarming(const Evidence& e) const {
  return e.material && e.admissible() && !beyond_horizon(e) && e.probability >= bar(e) &&
         samples_ >= static_cast<std::uint64_t>(config_.minimum_samples);
}

void Judge::observe(Timestamp time, double used_bytes) {
  if (samples_ > 0 && time <= last_) {  // said again: the later word counts
    last_bytes_ = static_cast<float>(used_bytes);
    scales_.replace_last(last_bytes_);
    if (samples_ == 1) epoch_first_ = last_bytes_;
    return;
  }
  if (samples_ == 0) {
    first_ = time;
    epoch_first_ = static_cast<float>(used_bytes);
    going_.fill(Going{time, 1});
  } else {
    period_.observe(seconds_between(last_, time));
  }
  ++samples_;
  last_ = time;
  last_bytes_ = static_cast<float>(used_bytes);
  const std::uint32_t mask = scales_.observe(time, last_bytes_);
  if (mask != 0) on_close(mask);
}

void Judge::on_close(std::uint32_t mask) {
  if ((mask & 1U) != 0) on_finest();
  const std::size_t from = finest_useful();
  for (std::size_t k = from; k < Scales::kLevels; ++k)
    if ((mask & (1U << k)) != 0) weigh_level(k);
  const bool held =
      std::any_of(probability_.begin(), probability_.end(), [](float p) { return p >= kKeepProbability; });
  if (!alerting_) {
    const bool again = std::any_of(streak_.begin(), streak_.end(), [](std::uint8_t s) { return s >= kLooksInARow; });
    const auto levels = std::count_if(streak_.begin(), streak_.end(), [](std::uint8_t s) { return s >= 1; });
    if (again || levels >= kLevelsAtOnce) {
      alerting_ = true;
      held_until_ = last_;
      alert_net_bytes_ = alert_duration_s_ = 0;
      alert_level_ = 0;
      if (const auto e = best()) {
        alert_level_ = e->level;
        alert_start_bytes_ = e->start_bytes;
        alert_net_bytes_ = e->net_bytes;
        alert_duration_s_ = e->duration_s;
      }
    }
    return;
  }
  if (held) held_until_ = last_;
  const bool giving_back = static_cast<double>(scales_.level(alert_level_).back().peak_bytes) <
                           alert_start_bytes_ + kKeptShare * alert_net_bytes_;
  const double patience_s =
      giving_back ? 0 : std::clamp(kPatienceShare * alert_duration_s_, kLeastPatience_s, kMostPatience_s);
  if (!held && seconds_between(held_until_, last_) >= patience_s)
    end_alert(AlertEnd::withdrawn,
              giving_back
                  ? "the program is releasing the growth"
                  : fmt::format("the growth did not continue: no time scale has shown evidence of a leak for {}",
                                format_span(seconds_between(held_until_, last_))));
}

void Judge::on_finest() {
  const Bucket& closed = scales_.level(0).back();
  const auto peak = static_cast<double>(closed.peak_bytes);
  if (alerting_ && peak < alert_start_bytes_ + kHalfKept * alert_net_bytes_) {
    // All of it gone: the program ended or was restarted. Back to where the growth began: a cycle after all.
    const bool all =
        peak < kReleasedShare * alert_start_bytes_ || peak < kNothingShare * static_cast<double>(epoch_high_);
    end_alert(all ? AlertEnd::released : AlertEnd::withdrawn,
              all ? "the memory was released" : "the program released the growth by itself: a cycle, not a leak");
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
  const float now = last_bytes_;
  scales_.restart(keep_highs);
  scales_.observe(last_, now);
  epoch_first_ = epoch_high_ = now;
  probability_.fill(0);
  streak_.fill(0);
  skip_.fill(0);
  going_.fill(Going{last_, 1});
  jumps_.reset();
}

/// The tail of a settling rise looks straight when it is looked at from near: where a coarser scale sees the
/// same rise from further back, its word on whether the rise goes on binds.
std::optional<Evidence> Judge::weigh_in_context(std::size_t k) const {
  auto e = weigh(scales_, k, context());
  if (!e) return e;
  for (std::size_t j = k + 1; j < Scales::kLevels; ++j)
    if (seconds_between(going_[j].start, e->start) > kFurtherBack * e->duration_s)
      e->probability = std::min(e->probability, going_[j].probability);
  return e;
}

void Judge::weigh_level(std::size_t k) {
  if (worth_weighing(k) && skip_[k] > 0) {
    --skip_[k];
    return;
  }
  probability_[k] = 0;
  going_[k] = Going{last_, 1};
  if (worth_weighing(k)) {
    if (const auto e = weigh_in_context(k)) {
      if (e->largest_step < kJumpShare) going_[k] = Going{e->start, 1 / (1 + e->warm_up + e->day)};
      probability_[k] = static_cast<float>(e->probability);
      // A full window changes little from one bucket to the next.
      const bool near = !alerting_ && e->probability >= kNearAlarm && !beyond_horizon(*e);
      skip_[k] = near ? std::uint8_t{0} : static_cast<std::uint8_t>(scales_.level(k).size() / kSizePerSkip);
      if (alarming(*e)) {
        streak_[k] = static_cast<std::uint8_t>(std::min(streak_[k] + 1, kMostLooks));
        if (alerting_ && e->net_bytes > alert_net_bytes_) {
          alert_net_bytes_ = e->net_bytes;
          alert_level_ = e->level;
          alert_start_bytes_ = e->start_bytes;
          alert_duration_s_ = e->duration_s;
        }
        return;
      }
    }
  }
  streak_[k] = 0;
}

void Judge::end_alert(AlertEnd end, std::string reason) {
  alerting_ = false;
  end_ = end;
  end_reason_ = std::move(reason);
  streak_.fill(0);
}

/// The most probable window; of those that are about as probable the one that sees most of the growth.
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

Finding Judge::finding() const {
  Finding f;
  f.detector = judge_detector.name;
  f.confidence = kUnknownConfidence;
  if (!alerting_ && (samples_ < static_cast<std::uint64_t>(config_.minimum_samples) ||
                     seconds_between(first_, last_) < std::min(min_duration_s(), kSpeaksAfter_s))) {
    f.because = fmt::format("{} sample{} over {}: a verdict needs at least {} samples and {}", samples_,
                            samples_ == 1 ? "" : "s", format_span(seconds_between(first_, last_)),
                            config_.minimum_samples, format_span(min_duration_s()));
    return f;
  }
  const auto e = best();
  if (alerting_ && (!e || e->probability < kKeepProbability)) {
    describe_pause(f, e);
    return f;
  }
  const bool rising =
      e && (alerting_ || (e->admissible() && e->probability >= kGrowingProbability && e->net_bytes >= kGrowingBytes));
  if (rising) {
    describe_rise(f, *e);
  } else {
    if (e) f.confidence = std::min(e->probability, kGrowingProbability);
    const bool settling =
        e && e->co_moving && !e->stopped && e->net_bytes >= min_growth_bytes() && e->warm_up > e->cycle;
    if (settling) {
      const Forecast forecasted = forecast(scales_, *e, std::nullopt);
      f.state = State::warming_up;
      f.growth_bytes_per_s = forecasted.growth_bytes_per_s;
      f.r_squared = forecasted.r_squared;
      f.onset = e->start;
      f.because =
          fmt::format("rose {} in {} and slows down (centre of growth at {:.2f} of the span; 0.50 means steady growth)",
                      format_bytes(e->net_bytes), format_span(e->duration_s), e->centroid);
      if (e->plateau_bytes) f.because += fmt::format("; settling near {}", format_bytes(*e->plateau_bytes));
    } else {
      const double matters = std::max(min_growth_bytes(), kMattersShare * static_cast<double>(epoch_high_));
      describe_rest(f, scales_, jumps_, {last_, static_cast<double>(last_bytes_), matters, finest_useful()});
    }
  }
  return f;
}

/// An alert stands, and at this moment nothing grows: no rate and no end can be told.
void Judge::describe_pause(Finding& f, const std::optional<Evidence>& e) const {
  f.leak = true;
  f.state = State::leaking;
  f.pattern = Pattern::unknown;
  if (e) {
    f.confidence = e->probability;
    f.onset = e->start;
    f.pattern = shape_of(scales_, *e, forecast(scales_, *e, std::nullopt).r_squared);
  }
  f.because = fmt::format(
      "rose {} over {}, but has not grown for {}: the alert will be withdrawn unless it grows again",
      format_bytes(alert_net_bytes_), format_span(alert_duration_s_), format_span(seconds_between(held_until_, last_)));
}

void Judge::describe_rise(Finding& f, const Evidence& e) const {
  const Forecast forecasted = forecast(scales_, e, limit_bytes_);
  f.leak = alerting_;
  f.confidence = e.probability;
  f.growth_bytes_per_s = forecasted.growth_bytes_per_s;
  f.r_squared = forecasted.r_squared;
  f.onset = e.start;
  if (alerting_)
    f.state = State::leaking;
  else if (e.probability >= config_.confidence_threshold && beyond_horizon(e))
    f.state = State::slow_growth;
  else
    f.state = State::growing;
  if (alerting_ || f.state == State::slow_growth) {
    f.pattern = shape_of(scales_, e, forecasted.r_squared);
    f.oom_in_s = forecasted.oom_in_s;
    if (f.oom_in_s) {  // foretold at the window's end: some of it has passed since
      const double age_s = seconds_between(e.end, last_);
      for (double* at : {&f.oom_in_s->low, &f.oom_in_s->mid, &f.oom_in_s->high}) *at = std::max(0.0, *at - age_s);
    }
    if (f.pattern == Pattern::sudden_spike) f.spike = SpikeOutcome::still_growing;
  }
  f.because =
      fmt::format("floor rose {} in {} ({}), {} new highs in {} spans of {}; the odds that this is chance: {}; {}; {}",
                  format_bytes(e.net_bytes), format_span(e.duration_s), format_scaled_rate(f.growth_bytes_per_s.mid),
                  e.rises, e.buckets, format_span(Scales::width_s(e.level)), chance_words(e.nats),
                  e.centroid >= 0.5 ? "not slowing" : fmt::format("centre of growth at {:.2f} of the span", e.centroid),
                  e.co_moving ? "peaks rise with it" : "peaks do not rise with it");
  if (e.new_high) f.because += ", above all seen before";
  if (f.state == State::growing) f.because += "; not yet decidable";
  if (f.state == State::slow_growth)
    f.because += fmt::format("; the memory lasts more than {:.0f} days: no alert", config_.horizon_days);
  if (alerting_ && !limit_bytes_) f.because += "; capacity unknown: the time to out-of-memory cannot be predicted";
}

std::vector<std::string> Judge::explain() const {
  std::vector<std::string> lines;
  lines.push_back(fmt::format("{} samples, period {:.3g} s, highest since the last restart {}, limit {}", samples_,
                              period_.median_s(), format_bytes(static_cast<double>(epoch_high_)),
                              limit_bytes_ ? format_bytes(*limit_bytes_) : "unknown"));
  for (std::size_t k = finest_useful(); k < Scales::kLevels; ++k) {
    const Level& level = scales_.level(k);
    if (level.size() == 0) continue;
    const auto e = weigh_in_context(k);
    if (!e) {
      lines.push_back(fmt::format("scale {}: {} spans, no rising window ({:.1f} nats)", format_span(Scales::width_s(k)),
                                  level.size(), level.drift().nats()));
      continue;
    }
    lines.push_back(
        fmt::format("scale {}: +{} in {} ({} spans, {} new highs), {:.1f} nats, centroid {:.3f} +- {:.3f}, rivals "
                    "noise {:.3f} warm-up {:.3f} cycle {:.3f} churn {:.2f} day {:.2f}, clockwork {:.3g}, "
                    "quiet {} before, P {:.3f}; peaks +{} {}, {}, {}, {}",
                    format_span(Scales::width_s(k)), format_bytes(e->net_bytes), format_span(e->duration_s), e->buckets,
                    e->rises, e->nats, e->centroid, e->centroid_se, e->noise, e->warm_up, e->cycle, e->churn, e->day,
                    e->clockwork, format_span(e->quiet_s), e->probability, format_bytes(e->peak_rise_bytes),
                    e->co_moving ? "move along" : "do not move along", e->new_high ? "new territory" : "seen before",
                    e->stopped ? "stopped" : "goes on", e->material ? "material" : "not (yet) material"));
  }
  return lines;
}

}  // namespace

const DetectorInfo judge_detector{
    "judge", "floors and peaks at twelve time scales, rival explanations weighed, first-passage forecast (default)",
    [](const DetectionConfig& config) -> std::unique_ptr<Detector> { return std::make_unique<Judge>(config); }};

}  // namespace vramtrack
