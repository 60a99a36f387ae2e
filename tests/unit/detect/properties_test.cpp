// Properties of every series, whatever its shape, for the judge and, where stated, for every detector. The comment
// before each property states what is exact, what is promised only for the verdict, and why.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "detect/detector.hpp"
#include "detect/scales.hpp"

namespace vramtrack {
namespace {

constexpr double kMiB = 1048576;
constexpr double kGiB = 1024 * kMiB;

struct Point {
  double t_s = 0;
  double bytes = 0;
};
using Series = std::vector<Point>;

/// A raised or cleared alert, with the number of the sample at which it occurred.
struct Change {
  std::size_t at = 0;
  bool raised = false;
  friend bool operator==(const Change&, const Change&) = default;
};
std::ostream& operator<<(std::ostream& out, const Change& c) {
  return out << (c.raised ? "+" : "-") << c.at;
}

struct Told {
  std::vector<Change> changes;
  std::vector<Finding> asked;  ///< after every `ask_every`th sample, and after the last
};

struct Setting {
  std::string detector = "judge";
  std::optional<double> limit_bytes = 400 * kGiB;
  DetectionConfig config = {};
};

Told watch(const Series& series, const Setting& setting, std::size_t ask_every = 50) {
  const auto detector = find_detector(setting.detector)->make(setting.config, kSecondsAndBytes);
  detector->set_limit(setting.limit_bytes);
  Told told;
  bool stands = false;
  for (std::size_t i = 0; i < series.size(); ++i) {
    detector->observe(Timestamp{from_seconds(series[i].t_s)}, series[i].bytes);
    if (detector->alerting() != stands) told.changes.push_back({i, stands = !stands});
    if (i % ask_every == 0) told.asked.push_back(detector->finding());
  }
  told.asked.push_back(detector->finding());
  return told;
}

/// Every figure and word, exact to the last bit.
std::string in_full(const Finding& f, Duration shift = {}) {
  const auto interval = [](const Interval& i) { return fmt::format("{:a} {:a} {:a}", i.low, i.mid, i.high); };
  return fmt::format("{} {} {} {} {} {:a} [{}] {:a} {} {} {}", f.detector, f.leak, to_string(f.state),
                     to_string(f.pattern), to_string(f.spike), f.confidence, interval(f.growth_bytes_per_s),
                     f.r_squared, f.oom_in_s ? interval(*f.oom_in_s) : "no end",
                     f.onset ? iso8601(*f.onset - shift) : "no onset", f.because);
}

/// The findings of both that are leaks. Both must alert at the same times, with equal confidence.
std::vector<std::pair<Finding, Finding>> same_leaks(const Told& a, const Told& b) {
  RC_ASSERT(a.changes == b.changes);
  RC_CLASSIFY(!a.changes.empty(), "alerts");
  std::vector<std::pair<Finding, Finding>> leaks;
  for (std::size_t i = 0; i < a.asked.size(); ++i) {
    RC_ASSERT(a.asked[i].leak == b.asked[i].leak);
    if (!a.asked[i].leak) continue;
    RC_ASSERT(a.asked[i].confidence == b.asked[i].confidence);
    leaks.emplace_back(a.asked[i], b.asked[i]);
  }
  return leaks;
}

/// Uses the full range from the first case on.
int any(int from, int to) {
  return *rc::gen::resize(rc::kNominalSize, rc::gen::inRange(from, to));
}

/// A stretch of a life, which continues where the previous one ended: straight up (kinds 0 to 2), stairs, a sawtooth
/// with a rising floor, a walk, a rise that levels off, flat, a drop.
struct Stretch {
  int kind = 0;
  int samples = 0;
  double rate = 0;
  double size = 0;
  double noise = 0;
};

/// Whole MiB, as reported by drivers.
Series life_through(double low_mib, double high_mib, double period_s, std::uint32_t seed, double level,
                    const std::vector<Stretch>& stretches) {
  std::mt19937_64 random(seed);
  const auto jitter = [&] { return std::uniform_real_distribution<double>(-1, 1)(random); };
  Series series;
  for (const Stretch& s : stretches) {
    const double base = level;
    if (s.kind == 8) level = low_mib;
    for (int i = 0; i < s.samples; ++i) {
      double tooth = 0;
      if (s.kind <= 2) level += s.rate;
      if (s.kind == 3 && i % 20 == 19) level += 0.2 * s.size;
      if (s.kind == 4) tooth = s.size * (i % 12) / 12, level += 0.5 * s.rate;
      if (s.kind == 5) level += 8 * jitter();
      if (s.kind == 6) level = base + s.size * (1 - std::exp(-i / 60.0));
      level = std::clamp(level, low_mib, high_mib);
      const double mib = std::clamp(std::floor(level + tooth + s.noise * jitter()), low_mib, high_mib);
      series.push_back({static_cast<double>(series.size()) * period_s, mib * kMiB});
    }
  }
  return series;
}

/// One to four stretches. Half of all lives raise an alert.
Series any_life(double low_mib, double high_mib, std::optional<double> given_period_s = std::nullopt) {
  const int count = any(1, 5);
  const double period_s = given_period_s ? *given_period_s : *rc::gen::element(1.0, 2.0, 5.0, 10.0, 15.0, 60.0);
  const auto seed = *rc::gen::arbitrary<std::uint32_t>();
  const double level = low_mib + any(0, 8000);
  std::vector<Stretch> stretches;
  for (int i = 0; i < count; ++i) {
    Stretch& s = stretches.emplace_back();
    s.kind = any(0, 9);
    s.samples = any(60, 900);
    s.rate = 0.1 * any(5, 100);
    s.size = any(100, 4000);
    s.noise = *rc::gen::element(0.0, 2.0, 20.0);
  }
  return life_through(low_mib, high_mib, period_s, seed, level, stretches);
}

Series changed(Series series, const std::function<void(Point&)>& change) {
  for (Point& point : series) change(point);
  return series;
}

// --- a constant series ---

// Any level, capacity (or none, or below the level), period, gaps, repeated stamps and thresholds; every detector.
RC_GTEST_PROP(Property, AConstantSeriesNeverHasAnEndNorAnAlert, ()) {
  const auto bytes = static_cast<double>(*rc::gen::inRange<std::int64_t>(0, 200LL << 30));
  const auto limit =
      *rc::gen::element<std::optional<double>>(std::nullopt, bytes, 0.5 * bytes, bytes + 1, 24 * kGiB, 192 * kGiB);
  const double period_s = 0.1 * any(1, 36000);
  const int gap_at = any(0, 600);
  const double gap_s = any(0, 1'000'000);
  DetectionConfig config;
  config.confidence_threshold = *rc::gen::element(0.0, 0.01, 0.75);
  config.min_growth_mb = *rc::gen::element(0.0, 64.0);
  config.min_slope_mb_per_sec = *rc::gen::element(0.0, 1.0);
  config.minimum_duration_minutes = *rc::gen::element(0.0, 5.0);
  for (const DetectorInfo* info : detectors()) {
    const auto detector = info->make(config, kSecondsAndBytes);
    detector->set_limit(limit);
    double t_s = 0;
    for (int i = 0; i < 600; ++i) {
      t_s += (i % 7 == 3 ? 0 : period_s) + (i == gap_at ? gap_s : 0);
      detector->observe(Timestamp{from_seconds(t_s)}, bytes);
      RC_ASSERT(!detector->alerting());
      if (i % 20 != 0 && i != 599) continue;
      const Finding f = detector->finding();
      RC_ASSERT(!f.oom_in_s);
      RC_ASSERT(!f.leak);
      RC_ASSERT(f.state != State::leaking && f.state != State::growing && f.state != State::slow_growth);
      RC_ASSERT(f.growth_bytes_per_s == Interval{});
    }
  }
}

TEST(Property, AConstantSeriesIsSteadyToEveryDetector) {
  for (const DetectorInfo* info : detectors())
    for (const double bytes : {0.0, 1.0, 5 * kMiB, 23.9 * kGiB}) {
      Series series;
      for (int i = 0; i < 600; ++i) series.push_back({i * 5.0, bytes});
      const Finding f = watch(series, {.detector = std::string(info->name), .limit_bytes = 24 * kGiB}).asked.back();
      EXPECT_EQ(f.state, State::steady) << info->name << " at " << bytes << ": " << f.because;
    }
}

// --- figures ---

RC_GTEST_PROP(Property, FiguresAreInRange, ()) {
  const Series series = any_life(0, 80 * 1024);
  for (const DetectorInfo* info : detectors())
    for (const Finding& f : watch(series, {.detector = std::string(info->name), .limit_bytes = 24 * kGiB}).asked) {
      RC_ASSERT(f.confidence >= 0 && f.confidence <= 1);
      RC_ASSERT(f.r_squared >= 0 && f.r_squared <= 1);
      const Interval& g = f.growth_bytes_per_s;
      RC_ASSERT(g.low <= g.mid && g.mid <= g.high);
      RC_ASSERT(!f.because.empty());
      if (!f.oom_in_s) continue;
      RC_ASSERT(f.leak || f.state == State::slow_growth);
      RC_ASSERT(f.oom_in_s->low >= 0 && f.oom_in_s->low <= f.oom_in_s->mid && f.oom_in_s->mid <= f.oom_in_s->high);
    }
}

// --- scale ---

/// `setting` with every number of bytes multiplied by `factor`.
Setting scaled(Setting setting, double factor) {
  if (setting.limit_bytes) *setting.limit_bytes *= factor;
  setting.config.min_growth_mb *= factor;
  setting.config.min_slope_mb_per_sec *= factor;
  return setting;
}

// Exact for powers of two, with which no rounding changes: alerts come and go at the same samples, and each active one
// has the same confidence and end, and a proportional rate. The words that are not alerts keep two fixed floors, for
// allocator granularity rather than as shares of anything: "growing" takes 8 MiB, a step 32 MiB. So do jumps between
// which a series creeps: here, no series stands still between its jumps, and none is judged by its creep.
RC_GTEST_PROP(Property, ScaleWithLimitAndFloorsScaledChangesNoAlert, ()) {
  Series series = any_life(64, 300 * 1024);
  constexpr std::array kRestless{0.0, 5.0, 1.0};
  for (std::size_t i = 0; i < series.size(); ++i) series[i].bytes += kRestless[i % kRestless.size()] * kMiB;
  const double factor = std::ldexp(1.0, any(-6, 7));
  const Setting plain{.limit_bytes = *rc::gen::element<std::optional<double>>(std::nullopt, 12 * kGiB, 400 * kGiB)};
  const Told a = watch(series, plain);
  const Told b = watch(changed(series, [&](Point& p) { p.bytes *= factor; }), scaled(plain, factor));
  for (const auto& [x, y] : same_leaks(a, b)) {
    RC_ASSERT(x.oom_in_s == y.oom_in_s);
    RC_ASSERT(x.onset == y.onset);
    RC_ASSERT(x.growth_bytes_per_s.mid * factor == y.growth_bytes_per_s.mid);
  }
}

// --- shift ---

// Exact: nothing depends on the date. Compares the whole finding, including its words, for every detector.
RC_GTEST_PROP(Property, AShiftInTimeShiftsTheOnsetAndNothingElse, ()) {
  const Series series = any_life(1024, 300 * 1024);
  const double shift_s = any(0, 2'000'000'000);
  const Series later = changed(series, [&](Point& p) { p.t_s += shift_s; });
  for (const DetectorInfo* info : detectors()) {
    const Setting setting{.detector = std::string(info->name)};
    const Told a = watch(series, setting, 200);
    const Told b = watch(later, setting, 200);
    RC_ASSERT(a.changes == b.changes);
    for (std::size_t i = 0; i < a.asked.size(); ++i)
      RC_ASSERT(in_full(a.asked[i]) == in_full(b.asked[i], from_seconds(shift_s)));
  }
}

// Exact while the series stays above four fifths of its highest level before the shift: a fall below that is a new
// regime or a restart, and by nature a share of the level. Levels are whole MiB below 16 TiB, which the judge's floats
// hold exactly; it compares differences of levels, which round alike at any level. Patterns and the words for idle
// series are shares of the level, too, and may change; alerts, their confidence, rate, onset and end do not.
struct Shifted {
  std::string plain, shifted;
};
Shifted shifted(const Series& series, double shift_bytes) {
  const auto alerts = [&](double by_bytes) {
    const Told told =
        watch(changed(series, [&](Point& p) { p.bytes += by_bytes; }), {.limit_bytes = 400 * kGiB + by_bytes});
    std::string out;
    for (const Change& c : told.changes) out += fmt::format("{}{} ", c.raised ? "+" : "-", c.at);
    for (std::size_t i = 0; i < told.asked.size(); ++i)
      if (const Finding& f = told.asked[i]; f.leak)
        out += fmt::format("\n{}: confidence {:a} rate {:a} R^2 {:a} onset {} end {:a}", i, f.confidence,
                           f.growth_bytes_per_s.mid, f.r_squared, iso8601(*f.onset), f.oom_in_s ? f.oom_in_s->mid : 0);
    return out;
  };
  return {alerts(0), alerts(shift_bytes)};
}

RC_GTEST_PROP(Property, AShiftOfLevelAndLimitChangesNoAlert, ()) {
  const Shifted alerts = shifted(any_life(152 * 1024, 188 * 1024), any(0, 200 * 1024) * kMiB);
  RC_CLASSIFY(!alerts.plain.empty(), "alerts");
  RC_ASSERT(alerts.plain == alerts.shifted);
}

// Found by the property. The floors of a sawtooth may read the same from both ends, so that two kinks explain them
// equally well, and a threshold may be so close to a level that a float's last digit decides.
TEST(Property, AShiftOfLevelChangesNoTie) {
  const std::vector<Stretch> stairs{
      {7, 224, 0.5, 100, 2}, {4, 118, 0.9, 2951, 0}, {7, 60, 0.5, 100, 0}, {3, 757, 1.5, 1319, 2}};
  const std::vector<Stretch> walk{{4, 206, 6.9, 2834, 2}, {5, 720, 3.9, 2654, 0}, {3, 162, 9, 3863, 2}};
  constexpr double kLow = 152 * 1024;
  const Shifted kink = shifted(life_through(kLow, 188 * 1024, 5, 0, kLow + 1, stairs), 133720 * kMiB);
  EXPECT_EQ(kink.plain, kink.shifted);
  EXPECT_FALSE(kink.plain.empty());
  const Shifted high = shifted(life_through(kLow, 188 * 1024, 60, 2477068241, kLow + 1994, walk), 116804 * kMiB);
  EXPECT_EQ(high.plain, high.shifted);
  EXPECT_FALSE(high.plain.empty());
}

// --- the unit of time ---

// Exact: a life that is 2^m times slower, sampled 2^m times less often, has at scale k + m what the original has at
// scale k: floors, peaks and evidence. Scales begin with the series, so there is no alignment that could differ.
RC_GTEST_PROP(Property, TimeStretchedByAPowerOfTwoIsTheSameSomeScalesUp, ()) {
  const Series series = any_life(64, 300 * 1024);
  const auto m = static_cast<std::size_t>(any(1, 4));
  Scales plain;
  Scales slow;
  for (const Point& p : series) {
    plain.observe(Timestamp{from_seconds(p.t_s)}, static_cast<float>(p.bytes));
    slow.observe(Timestamp{from_seconds(std::ldexp(p.t_s, static_cast<int>(m)))}, static_cast<float>(p.bytes));
  }
  for (std::size_t k = 0; k + m < Scales::kLevels; ++k) {
    const Level& a = plain.level(k);
    const Level& b = slow.level(k + m);
    RC_ASSERT(a.size() == b.size());
    for (std::size_t i = 0; i < a.size(); ++i) {
      RC_ASSERT(a[i].slot == b[i].slot);
      RC_ASSERT(a[i].floor_bytes == b[i].floor_bytes);
      RC_ASSERT(a[i].peak_bytes == b[i].peak_bytes);
      RC_ASSERT(a[i].gain_nats == b[i].gain_nats);
    }
    RC_ASSERT(a.drift().nats() == b.drift().nats());
  }
}

struct Shape {
  const char* name;
  bool leak;
  std::function<double(double)> mib;  ///< memory over a life of one unit of time, 0..1
};

/// Lives that end in the same verdict, whatever their unit of time, scale and sampling; 1 h in seconds.
std::vector<Shape> clear_cases() {
  const auto wave = [](double x) { return x - std::floor(x); };
  return {
      {"constant", false, [](double) { return 9000.0; }},
      {"settled early", false, [](double u) { return 4000 + 8000 * (1 - std::exp(-u * 20)); }},
      {"logarithm", false, [](double u) { return 4000 + 900 * std::log1p(u * 3600 / 30); }},
      {"sawtooth", false, [=](double u) { return 6000 + 5000 * wave(u * 40); }},
      {"load", false, [](double u) { return u < 0.1 ? 800.0 : 15000.0; }},
      {"fall", false, [](double u) { return 16000 - 9000 * u; }},
      {"line", true, [](double u) { return 6000 + 9000 * u; }},
      {"late line", true, [](double u) { return 6000 + 12000 * std::max(0.0, u - 0.3); }},
      {"accelerating", true, [](double u) { return 6000 + 12000 * u * u; }},
      {"stairs", true, [](double u) { return 6000 + 400 * std::floor(u * 24); }},
      {"rising sawtooth", true, [=](double u) { return 4000 + 6000 * u + 3000 * wave(u * 40); }},
  };
}

Series life_of(const Shape& shape, double duration_s, std::size_t samples, double factor = 1) {
  Series series;
  for (std::size_t i = 0; i < samples; ++i) {
    const double u = static_cast<double>(i) / static_cast<double>(samples);
    series.push_back({u * duration_s, std::floor(shape.mib(u)) * kMiB * factor});
  }
  return series;
}

// For the verdict only: the judge's durations of loads, collections and warm-ups are in seconds (a straight rise of two
// minutes is a load, one of twenty is not; a rise on the first day that takes hours may be its morning), so a stretched
// life need not have the same confidence. Clear cases keep their verdict, at least suspected, from half an hour to
// eight; the rate is divided and the time to the end multiplied by the stretch.
TEST(Property, StretchedTimeKeepsTheVerdictAndStretchesTheEnd) {
  for (const Shape& shape : clear_cases()) {
    std::optional<Finding> hour;
    for (const double stretch : {1.0, 0.5, 1.5, 2.0, 3.0, 4.0, 8.0}) {
      Setting setting{.limit_bytes = 24 * kGiB};
      setting.config.minimum_duration_minutes *= stretch;
      setting.config.horizon_days *= stretch;
      const Finding f = watch(life_of(shape, 3600 * stretch, 1200), setting, 10000).asked.back();
      EXPECT_EQ(f.leak || (shape.leak && f.stage == Stage::suspected), shape.leak)
          << shape.name << " x " << stretch << ": " << f.because;
      if (!hour) hour = f;
      if (!f.leak || !shape.leak) continue;
      ASSERT_TRUE(f.oom_in_s) << shape.name;
      const double tolerance = shape.name == std::string("accelerating") ? 0.6 : 0.2;  // its rate: as far as one looks
      EXPECT_NEAR(f.growth_bytes_per_s.mid * stretch / hour->growth_bytes_per_s.mid, 1, tolerance)
          << shape.name << " x " << stretch;
      EXPECT_NEAR(f.oom_in_s->mid / stretch / hour->oom_in_s->mid, 1, 0.25) << shape.name << " x " << stretch;
    }
  }
}

// For the verdict, at any scale: rounding may move an alert by one sample if a figure is at its threshold.
TEST(Property, AnyScaleKeepsTheVerdict) {
  for (const Shape& shape : clear_cases())
    for (const double factor : {0.003, 0.1, 1 / 3.0, 1.7, 5.9, 100.0}) {
      const Setting setting = scaled({.limit_bytes = 24 * kGiB}, factor);
      const Finding f = watch(life_of(shape, 3600, 1200, factor), setting, 10000).asked.back();
      EXPECT_EQ(f.leak, shape.leak) << shape.name << " x " << factor << ": " << f.because;
    }
}

// --- repeated stamps ---

// Exact, for every detector: a repeated sample changes nothing.
RC_GTEST_PROP(Property, ARepeatedSampleChangesNothing, ()) {
  const Series series = any_life(64, 300 * 1024);
  const auto every = static_cast<std::size_t>(any(1, 6));
  Series twice;
  for (std::size_t i = 0; i < series.size(); ++i) twice.insert(twice.end(), i % every == 0 ? 3 : 1, series[i]);
  for (const DetectorInfo* info : detectors()) {
    const auto once = info->make({}, kSecondsAndBytes);
    const auto again = info->make({}, kSecondsAndBytes);
    std::size_t j = 0;
    for (std::size_t i = 0; i < series.size(); ++i) {
      const Timestamp time{from_seconds(series[i].t_s)};
      once->observe(time, series[i].bytes);
      for (; j < twice.size() && twice[j].t_s == series[i].t_s; ++j) again->observe(time, twice[j].bytes);
      RC_ASSERT(once->alerting() == again->alerting());
      if (i % 100 == 0 || i + 1 == series.size()) RC_ASSERT(in_full(once->finding()) == in_full(again->finding()));
    }
  }
}

// --- a coarser look ---

// For the verdict, at least suspected: the answer is the same for 3600 samples of a life and for 200.
TEST(Property, ACoarserPeriodKeepsTheVerdictDownToTwoHundredSamples) {
  for (const Shape& shape : clear_cases())
    for (const double duration_s : {3600.0, 6 * 3600.0})
      for (const std::size_t samples : {3600U, 1200U, 720U, 400U, 200U}) {
        const Finding f = watch(life_of(shape, duration_s, samples), {.limit_bytes = 24 * kGiB}, 10000).asked.back();
        EXPECT_EQ(f.leak || (shape.leak && f.stage == Stage::suspected), shape.leak)
            << shape.name << " of " << duration_s << " s in " << samples << ": " << f.because;
      }
}

// --- a restart ---

// A program has ended (its memory fell almost to nothing) and another one runs: none of the first one's evidence
// remains, whatever it was. The second life is judged as if the judge had never seen the first. Exact if the idle
// stretch between the two begins on a bucket of the coarsest scale, since scales begin with the series.
RC_GTEST_PROP(Property, AfterARestartNothingOfTheOldLifeRemains, ()) {
  const double period_s = *rc::gen::element(1.0, 2.0, 5.0, 10.0, 20.0);
  const double coarsest_s = Scales::width_s(Scales::kLevels - 1);
  const double begin_s = 2 * coarsest_s;
  Series old = any_life(2048, 300 * 1024, period_s);
  const double late_s = begin_s - period_s - old.back().t_s;
  for (Point& p : old) p.t_s += p.t_s == 0 ? 0 : late_s;  // the series begins at zero, and its life ends at begin_s
  Series fresh;
  for (double t_s = 0; t_s < 1280; t_s += period_s) fresh.push_back({begin_s + t_s, 16 * kMiB});
  const Series second = any_life(2048, 300 * 1024, period_s);
  for (const Point& p : second) fresh.push_back({begin_s + 1280 + p.t_s, p.bytes});
  Series both = old;
  both.insert(both.end(), fresh.begin(), fresh.end());

  const Told alone = watch(fresh, {}, 1'000'000);
  const Told after = watch(both, {}, 1'000'000);
  std::vector<Change> changes;
  for (const Change& c : after.changes) {
    if (c.at < old.size() + 40) continue;  // the end of an alert from the old life
    changes.push_back({c.at - old.size(), c.raised});
  }
  RC_CLASSIFY(!changes.empty(), "alerts");
  RC_LOG() << in_full(alone.asked.back()) << "\n" << in_full(after.asked.back()) << "\n";
  RC_ASSERT(changes == alone.changes);
  const Finding& a = alone.asked.back();
  const Finding& b = after.asked.back();
  RC_ASSERT(a.leak == b.leak);
  RC_ASSERT(a.state == b.state);
  // The strongest evidence so far: full levels are checked only now and then, and not at the same bucket ends.
  RC_ASSERT(std::abs(a.confidence - b.confidence) <= 0.01);
  RC_ASSERT(a.growth_bytes_per_s == b.growth_bytes_per_s);
  RC_ASSERT(a.oom_in_s == b.oom_in_s);
  RC_ASSERT(a.onset == b.onset);
}

// --- the future ---

// A hundred random points: the answer there equals that for a series that ends there. Asking changes nothing.
RC_GTEST_PROP(Property, WhatIsSaidAtAMomentIsWhatATruncatedSeriesSays, ()) {
  const Series series = any_life(64, 300 * 1024);
  const auto end = static_cast<std::size_t>(any(1, static_cast<int>(series.size())));
  for (const DetectorInfo* info : detectors()) {
    const Setting setting{.detector = std::string(info->name)};
    const Told full = watch(series, setting, end);
    const Told cut =
        watch(Series(series.begin(), series.begin() + static_cast<std::ptrdiff_t>(end) + 1), setting, 1'000'000);
    RC_ASSERT(in_full(full.asked[1]) == in_full(cut.asked.back()));
    std::vector<Change> until;
    for (const Change& c : full.changes)
      if (c.at <= end) until.push_back(c);
    RC_ASSERT(until == cut.changes);
  }
}

}  // namespace
}  // namespace vramtrack
