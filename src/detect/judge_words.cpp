// The judge's words: the finding, and every figure behind it.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/format.hpp"
#include "detect/calibration.hpp"
#include "detect/forecast.hpp"
#include "detect/judge.hpp"
#include "detect/rest.hpp"
#include "detect/rivals.hpp"

namespace vramtrack {
namespace {

/// Without an alert, nothing is reported before the series is this old, or minimum-duration-minutes if that is less.
constexpr double kSpeaksAfter_s = 5 * kSecondsPerMinute;
/// A rise of at least this probability and size is called growing; below that, the series is at rest, and its reported
/// confidence is at most this.
constexpr double kGrowingProbability = 0.3;
constexpr double kGrowingBytes = 8 * kMiB;
/// A rise that is likelier than chance (1 is a leak's own weight) is reported, whatever else may explain it.
constexpr double kReportedNoise = 1;
/// Changes smaller than this share of the highest level (and than min-growth-mb) do not matter to a series at rest.
constexpr double kMattersShare = 0.02;
/// Chances smaller than one in this many are not spelled out.
constexpr double kMillion = 1e6;

std::string chance_words(double nats) {
  if (nats > std::log(kMillion)) return "less than 1 in a million";
  // Two digits: more would be noise.
  const double odds = std::exp(nats);
  const double unit = std::pow(10.0, std::max(0.0, std::floor(std::log10(odds)) - 1));
  return fmt::format("1 in {}", format_number(static_cast<std::uint64_t>(std::round(odds / unit) * unit)));
}

}  // namespace

Finding Judge::finding() const {
  if (const Derived* derived = spokesman()) return derived_finding(*derived);
  Finding f;
  f.detector = judge_detector.name;
  f.confidence = kUnknownConfidence;
  if (alert_.stands())
    f.stage = at_end_ ? Stage::confirmed_at_end : Stage::confirmed;
  else if (suspicion_.stands())
    f.stage = Stage::suspected;
  const auto e = best();
  const bool given_back = e && e->denied && !e->loads;
  const bool reports = e && !given_back && is_reported(*e);
  if (!alert_.stands())
    if (const auto load = loading(); load && load->net_bytes >= min_growth_bytes()) {
      describe_load(f, *load);
      return f;
    }
  if (f.stage == Stage::none && !reports &&
      (samples_ < static_cast<std::uint64_t>(config_.minimum_samples) ||
       seconds_between(first_, last_) < std::min(min_duration_s(), kSpeaksAfter_s))) {
    f.because = fmt::format("{} sample{} over {}: a verdict needs at least {} samples and {}", samples_,
                            samples_ == 1 ? "" : "s", figures_.span(seconds_between(first_, last_)),
                            config_.minimum_samples, figures_.span(min_duration_s()));
    // These are a few figures pasted from a report: each stands for a long time, and there will be no more.
    const double rise = static_cast<double>(last_bytes_) - static_cast<double>(before_bytes_);
    if (figures_.counts_steps() && samples_ > 1 && limit_bytes_ && rise > 0) {
      const double step_s = seconds_between(before_, last_);
      f.because +=
          fmt::format("; if it continues as in the last {}, memory will be full in {}", figures_.span(step_s),
                      figures_.span(std::max(0.0, *limit_bytes_ - static_cast<double>(last_bytes_)) / rise * step_s));
    }
    return f;
  }
  if (alert_.stands() && (!e || std::max(e->probability, held_.probability) < kKeepProbability)) {
    describe_pause(f, e);
    return f;
  }
  const bool familiar = e && (experienced(*e).explains() || of_siblings(*e).explains());
  const bool settling = e && !given_back && e->co_moving && !e->stopped && e->net_bytes >= min_growth_bytes() &&
                        (e->warm_up > e->cycle || familiar);
  if (e && (alert_.stands() || (reports && (e->probability >= kGrowingProbability || !settling)))) {
    describe_rise(f, *e);
    return f;
  }
  f.confidence = calibrated_rest(e ? std::min(e->probability, kGrowingProbability) : kUnknownConfidence);
  if (settling) {
    describe_settling(f, *e);
  } else {
    const double matters = std::max(min_growth_bytes(), kMattersShare * static_cast<double>(epoch_high_));
    describe_rest(f, scales_, jumps_, {last_, static_cast<double>(last_bytes_), matters, finest_useful(), figures_});
    // What rests now is not the reason for the suspicion.
    if (f.stage == Stage::suspected) f.because = pause_words(suspicion_, "the suspicion will be dropped");
    if (const LifetimesWord word = given_back ? lifetimes_of(*e) : LifetimesWord{}; word.denies())
      f.because = fmt::format("rose {} in {}, but {}", figures_.bytes(e->net_bytes), figures_.span(e->duration_s),
                              word.kind == LifetimesWord::Kind::dies
                                  ? "what is allocated is released: " + word.describe(figures_)
                                  : word.describe(figures_));
  }
  return f;
}

/// Why something stands although nothing supports it at this moment.
std::string Judge::pause_words(const Standing& standing, std::string_view otherwise) const {
  return fmt::format("rose {} over {}, but has not grown for {}: {} unless it grows again",
                     figures_.bytes(standing.net_bytes()), figures_.span(standing.duration_s()),
                     figures_.span(seconds_between(standing.held_until(), last_)), otherwise);
}

Finding Judge::derived_finding(const Derived& derived) const {
  Finding f = derived.judge().finding();
  if (f.leak && !derived.alerts()) {  // confirmed by its own judge while it had no meaning for the series
    f.leak = false;
    f.stage = Stage::suspected;
    f.state = State::growing;
    f.pattern = Pattern::none;
    if (f.oom_in_s) f.oom_if_growth_continues_s = f.oom_in_s->mid;
    f.oom_in_s.reset();
  }
  if (&derived == &cycling_ || &derived == &doubling_) return f;
  // It is the same growth, seen beneath the load.
  if (growth_.lives() && f.onset) f.onset = growth_.onset();
  if (&derived == &shifting_) {
    f.because = "low, middle and high levels all rise (quantiles of blocks of ten minutes): " + f.because;
    return f;
  }
  // The creep is only a share of a steady growth: the share of increments that are not jumps.
  for (double* rate : {&f.growth_bytes_per_s.low, &f.growth_bytes_per_s.mid, &f.growth_bytes_per_s.high})
    *rate /= creep_.share_seen();
  f.because = fmt::format("grows beneath {} jumps that cancel out: {}; without interruptions the rate would be {}",
                          creep_.jumps(), f.because, figures_.scaled_rate(f.growth_bytes_per_s.mid));
  return f;
}

/// Whether the series is still rising, for whatever reason, and chance is the less likely explanation.
bool Judge::rises(const Evidence& e) {
  return e.admissible() && (e.probability >= kGrowingProbability || e.noise <= kReportedNoise);
}

bool Judge::is_reported(const Evidence& e) {
  return rises(e) && e.net_bytes >= kGrowingBytes;
}

void Judge::describe_settling(Finding& f, const Evidence& e) const {
  const Forecast forecasted = forecast(scales_, e, std::nullopt);
  f.state = State::warming_up;
  f.growth_bytes_per_s = forecasted.growth_bytes_per_s;
  f.r_squared = forecasted.r_squared;
  f.onset = e.start;
  f.because = fmt::format("rose {} in {} and is slowing (centroid of the growth {:.2f}; 0.50 is steady)",
                          figures_.bytes(e.net_bytes), figures_.span(e.duration_s), e.centroid);
  if (e.plateau_bytes) f.because += fmt::format("; settling near {}", figures_.bytes(*e.plateau_bytes));
  if (experienced(e).explains())
    f.because = experience_->because({e.start, e.end, e.start_bytes, e.net_bytes}, figures_);
  else if (of_siblings(e).explains())
    f.because = fmt::format("rose {} in {}", figures_.bytes(e.net_bytes), figures_.span(e.duration_s));
  f.because += of_siblings(e).describe();
}

void Judge::describe_load(Finding& f, const Evidence& e) const {
  const Forecast forecasted = forecast(scales_, e, std::nullopt);
  f.stage = Stage::none;
  f.state = State::loading;
  f.growth_bytes_per_s = forecasted.growth_bytes_per_s;
  f.r_squared = forecasted.r_squared;
  f.onset = e.start;
  const Load load = load_of(e.start, e.end, e.net_bytes).value_or(Load{});
  // Stages with pauses between them are one load, if nothing but loading has happened in this life.
  const Life its = life();
  const double so_far = static_cast<double>(last_bytes_) - its.bytes;
  const bool of_this_life = load_of(its.begin, last_, so_far).has_value();
  const auto read = facts_->read_since(of_this_life ? its.begin : e.start);
  f.because = fmt::format("loading, {} so far", figures_.bytes(of_this_life ? so_far : e.net_bytes));
  if (load.read_bytes && read)
    f.because += fmt::format("; {} read", figures_.bytes(*read));
  else if (load.idle)
    f.because += "; the GPU has not begun to work";
  else
    f.because += "; as much is received over the bus";
}

/// An alert is active, but nothing grows at this moment: neither a rate nor an end can be given.
void Judge::describe_pause(Finding& f, const std::optional<Evidence>& e) const {
  f.leak = true;
  f.state = State::leaking;
  f.pattern = Pattern::unknown;
  if (e) {
    f.confidence = calibrated_rest(e->probability);
    f.onset = growth_.lives() ? growth_.onset() : e->start;
    f.pattern = shape_of(scales_, *e, forecast(scales_, *e, std::nullopt).r_squared);
  }
  f.because = pause_words(alert_, "the alert will be withdrawn");
}

/// `shown`: the window that shows it best. The words describe the whole growth.
void Judge::describe_rise(Finding& f, const Evidence& shown) const {
  const auto whole = whole_growth();
  const Evidence& e = whole ? *whole : shown;
  const Forecast forecasted = forecast(scales_, e, limit_bytes_);
  f.leak = alert_.stands();
  f.confidence = confidence_in(shown);
  if (whole) f.confidence = std::max(f.confidence, growth_.confidence());
  f.growth_bytes_per_s = forecasted.growth_bytes_per_s;
  f.r_squared = forecasted.r_squared;
  f.onset = whole ? growth_.onset() : e.start + from_seconds(forecasted.begins_s);
  if (alert_.stands())
    f.state = State::leaking;
  else if (e.net_bytes >= min_growth_bytes() && f.confidence >= config_.confidence_threshold && beyond_horizon(shown))
    f.state = State::slow_growth;
  else
    f.state = State::growing;
  // The forecast starts at the window's end, and some of that time has passed since.
  std::optional<Interval> oom_in_s = forecasted.oom_in_s;
  if (oom_in_s)
    for (double* at : {&oom_in_s->low, &oom_in_s->mid, &oom_in_s->high})
      *at = std::max(0.0, *at - seconds_between(e.end, last_));
  if (oom_in_s && whole) oom_in_s = growth_.narrowed(*oom_in_s, last_);
  if (alert_.stands() || f.state == State::slow_growth) {
    f.pattern =
        shape_of(scales_, shown, whole ? forecast(scales_, shown, std::nullopt).r_squared : forecasted.r_squared);
    f.oom_in_s = oom_in_s;
    if (f.pattern == Pattern::sudden_spike) f.spike = SpikeOutcome::still_growing;
  }
  f.because = fmt::format(
      "floor rose {} in {} ({}{}), {} new highs in {} spans of {}; odds of this by chance: {}; {}; {}",
      figures_.bytes(e.net_bytes), figures_.span(e.duration_s), figures_.scaled_rate(f.growth_bytes_per_s.mid),
      forecasted.rate_for_s ? " for the last " + figures_.span(*forecasted.rate_for_s) : "", e.rises, e.buckets,
      figures_.span(Scales::width_s(e.level)), chance_words(e.nats),
      e.centroid >= 0.495 ? "not slowing"
                          : fmt::format("slightly slowing (centroid {:.2f}; 0.50 is steady)", e.centroid),
      e.co_moving ? "peaks rise with it" : "peaks do not rise with it");
  if (shown.new_high) f.because += ", to new highs";
  if (experience_) f.because += experience_->describe(experienced(shown), figures_);
  f.because += of_siblings(shown).describe();
  if (precedent_odds(shown) > 0)
    f.because +=
        precedent_->ran_out == 1
            ? "; an earlier run grew at about this rate and ran out of memory"
            : fmt::format("; {} earlier runs grew at about this rate and ran out of memory", precedent_->ran_out);
  if (const LifetimesWord word = lifetimes_of(e); word.kind == LifetimesWord::Kind::stays)
    f.because += "; " + word.describe(figures_);
  // While it waits for that, and if the end of a recording has decided.
  if (shown.most_confidence < 1 && (f.state == State::growing || f.stage == Stage::confirmed_at_end))
    f.because += shown.most_confidence <= kMayBeLoad ? "; it may still be loading"
                                                     : "; it may be the morning of a daily load: another day will show";
  if (f.state == State::growing) {
    f.because += f.stage == Stage::suspected ? "; suspected, not confirmed yet" : "; not yet decidable";
    if (oom_in_s) {
      f.oom_if_growth_continues_s = oom_in_s->mid;
      f.because += fmt::format("; if the growth continues, memory runs out in {}", figures_.duration(oom_in_s->mid));
    }
  }
  if (f.state == State::slow_growth)
    f.because += fmt::format("; memory lasts more than {:.0f} days: no alert", config_.horizon_days);
  if (alert_.stands() && was_slow_)
    f.because += fmt::format("; it counted as slow growth until memory was predicted to run out within {:.0f} days",
                             config_.horizon_days);
  if (alert_.stands() && !limit_bytes_)
    f.because += "; capacity unknown: the time to out-of-memory cannot be predicted";
}

std::vector<std::string> Judge::explain() const {
  std::vector<std::string> lines;
  lines.push_back(fmt::format("{} samples, period {:.3g} s, highest since the last restart {}, limit {}", samples_,
                              period_.median_s(), figures_.bytes(static_cast<double>(epoch_high_)),
                              limit_bytes_ ? figures_.bytes(*limit_bytes_) : "unknown"));
  if (creeping_.has_begun())
    lines.push_back(fmt::format("creep: {} between {} jumps, {:.0f} % of the samples; {}",
                                figures_.bytes(creep_.bytes()), creep_.jumps(), 100 * creep_.share_seen(),
                                creeping_.suspects() ? "suspected" : "not suspected"));
  for (std::size_t k = finest_useful(); k < Scales::kLevels; ++k) {
    const Level& level = scales_.level(k);
    if (level.size() == 0) continue;
    const auto e = weigh_in_context(k);
    if (!e) {
      lines.push_back(fmt::format("scale {}: {} spans, no rising window ({:.1f} nats)",
                                  figures_.span(Scales::width_s(k)), level.size(), level.drift().nats()));
      continue;
    }
    lines.push_back(fmt::format(
        "scale {}: +{} in {} ({} spans, {} new highs), {:.1f} nats, centroid {:.3f} +- {:.3f}, rivals "
        "noise {:.3f} warm-up {:.3f} cycle {:.3f} churn {:.2f} day {:.2f}, clockwork {:.3g}, "
        "quiet {} before, P {:.3f}; peaks +{} {}, {}, {}, {}",
        figures_.span(Scales::width_s(k)), figures_.bytes(e->net_bytes), figures_.span(e->duration_s), e->buckets,
        e->rises, e->nats, e->centroid, e->centroid_se, e->noise, e->warm_up, e->cycle, e->churn, e->day, e->clockwork,
        figures_.span(e->quiet_s), e->probability, figures_.bytes(e->peak_rise_bytes),
        e->co_moving ? "move along" : "do not move along", e->new_high ? "new territory" : "seen before",
        e->stopped ? "stopped" : "goes on", e->material ? "material" : "not (yet) material"));
    if (const int falls = level.regimes().falls(); falls > 0)
      lines.back() += fmt::format(", {} fall{} before", falls, falls == 1 ? "" : "s");
  }
  return lines;
}

}  // namespace vramtrack
