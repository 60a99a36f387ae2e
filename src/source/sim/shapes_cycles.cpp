// Shapes that rise and fall: sawteeth, garbage collection, evaluations, day and night.
#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "source/sim/shape.hpp"

namespace vramtrack::sim {
namespace {

constexpr std::array kSawtooth{
    Parameter{"low_bytes", Unit::bytes, 0},
    Parameter{"amplitude_bytes", Unit::bytes},
    Parameter{"period_s", Unit::interval_s},
    Parameter{"form", Unit::word, 0, 0, 0, "ramp|triangle|square|sine"},
    Parameter{"duty", Unit::ratio, 0.5, 0.01, 0.99},
    Parameter{"period_spread", Unit::ratio, 0, 0, 0.9},
    Parameter{"period_drift", Unit::ratio, 0, 0, 0.5},
    Parameter{"amplitude_spread", Unit::ratio, 0, 0, 1},
    Parameter{"modulation", Unit::ratio, 0, 0, 1},
    Parameter{"modulation_s", Unit::seconds, 3600, 1},
    Parameter{"leak_bytes_per_s", Unit::bytes_per_s, 0, -1e15, 1e15},
    Parameter{"floor_bytes_per_s", Unit::bytes_per_s, 0, -1e15, 1e15},
};
constexpr std::array kGc{
    Parameter{"keep_bytes", Unit::bytes, 0},
    Parameter{"threshold_bytes", Unit::bytes},
    Parameter{"rate_bytes_per_s", Unit::bytes_per_s, kRequired, 1},
    Parameter{"threshold_spread", Unit::ratio, 0.1, 0, 0.9},
    Parameter{"rate_spread", Unit::ratio, 0.1, 0, 0.9},
    Parameter{"leak_bytes", Unit::bytes, 0},
};
constexpr std::array kEvaluation{Parameter{"bytes", Unit::bytes}, Parameter{"every_s", Unit::interval_s},
                                 Parameter{"lasts_s", Unit::seconds}, Parameter{"spread", Unit::ratio, 0, 0, 1},
                                 Parameter{"leak_bytes", Unit::bytes, 0}};
constexpr std::array kDiurnal{Parameter{"low_bytes", Unit::bytes, 0}, Parameter{"high_bytes", Unit::bytes},
                              Parameter{"day_s", Unit::seconds, 86400, 1}, Parameter{"peak_s", Unit::seconds, 43200},
                              Parameter{"sharpness", Unit::ratio, 1, 0.1, 10}};

/// floor and peak are linear in time; one cycle rises from the floor to the peak.
///
///   peak  -----/|----/|     slope: leak
///             / |   / |
///   floor ---/--|--/--|     slope: leak + floor
struct Sawtooth {
  enum Form { ramp, triangle, square, sine };
  double low, amplitude, period_s, duty, period_spread, period_drift, amplitude_spread, modulation, modulation_s, leak,
      floor;
  int form;
  Random random;
  double cycle_start_s = 0;
  double cycle_s = 0;
  double cycle_factor = 1;
  double drift = 1;

  void begin_cycle() {
    drift = std::clamp(drift * std::exp(period_drift * random.normal()), 0.5, 2.0);
    cycle_s = period_s * drift * random.around_one(period_spread);
    cycle_factor = random.around_one(amplitude_spread);
  }
  [[nodiscard]] double height(double phase) const {
    switch (form) {
      case triangle:
        return phase < duty ? phase / duty : (1 - phase) / (1 - duty);
      case square:
        return phase < duty ? 1 : 0;
      case sine:
        return 0.5 - 0.5 * std::cos(2 * std::numbers::pi * phase);
      default:
        return phase;
    }
  }
  double operator()(double t_s) {
    while (t_s >= cycle_start_s + cycle_s) {
      cycle_start_s += cycle_s;
      begin_cycle();
    }
    const double swing = 1 + modulation * std::sin(2 * std::numbers::pi * t_s / modulation_s);
    const double peak = low + amplitude * cycle_factor * swing + leak * t_s;
    const double bottom = std::min(low + (leak + floor) * t_s, peak);
    return bottom + (peak - bottom) * height((t_s - cycle_start_s) / cycle_s);
  }
};

/// Garbage grows up to a threshold, then is collected down to the memory that is kept (which a leak raises each time).
struct Gc {
  double keep, threshold, rate, threshold_spread, rate_spread, leak;
  Random random;
  double cycle_start_s = 0;
  double cycle_rate = 1;
  double cycle_s = 0;

  void begin_cycle() {
    cycle_rate = rate * random.around_one(rate_spread);
    // A threshold below the kept memory means a collection at almost every allocation.
    cycle_s = std::max((threshold * random.around_one(threshold_spread) - keep) / cycle_rate, 0.1);
  }
  double operator()(double t_s) {
    while (t_s >= cycle_start_s + cycle_s) {
      cycle_start_s += cycle_s;
      keep += leak;
      begin_cycle();
    }
    return keep + cycle_rate * (t_s - cycle_start_s);
  }
};

/// A burst of `lasts_s` at the end of every `every_s`; a leaking one leaves `leak` behind.
struct Evaluation {
  double bytes, every_s, lasts_s, spread, leak;
  Random random;
  double index = 0;
  double height = 0;
  double leaked = 0;

  double operator()(double t_s) {
    for (; t_s >= (index + 1) * every_s; ++index) {
      leaked += leak;
      height = bytes * random.around_one(spread);
    }
    return leaked + (t_s >= (index + 1) * every_s - lasts_s ? height : 0);
  }
};

Curve make_sawtooth(const ShapeSpec& s, Random random) {
  Sawtooth wave{
      s["low_bytes"],         s["amplitude_bytes"],        s["period_s"],   s["duty"],         s["period_spread"],
      s["period_drift"],      s["amplitude_spread"],       s["modulation"], s["modulation_s"], s["leak_bytes_per_s"],
      s["floor_bytes_per_s"], static_cast<int>(s["form"]), random};
  wave.begin_cycle();
  return wave;
}

Curve make_gc(const ShapeSpec& s, Random random) {
  Gc gc{s["keep_bytes"],
        s["threshold_bytes"],
        s["rate_bytes_per_s"],
        s["threshold_spread"],
        s["rate_spread"],
        s["leak_bytes"],
        random};
  gc.begin_cycle();
  return gc;
}

Curve make_evaluation(const ShapeSpec& s, Random random) {
  Evaluation evaluation{s["bytes"], s["every_s"], s["lasts_s"], s["spread"], s["leak_bytes"], random};
  evaluation.height = evaluation.bytes * evaluation.random.around_one(evaluation.spread);
  return evaluation;
}

Curve make_diurnal(const ShapeSpec& s, Random) {
  return [low = s["low_bytes"], high = s["high_bytes"], day_s = s["day_s"], peak_s = s["peak_s"],
          sharpness = s["sharpness"]](double t_s) {
    const double wave = 0.5 + 0.5 * std::cos(2 * std::numbers::pi * (t_s - peak_s) / day_s);
    return low + (high - low) * std::pow(wave, sharpness);
  };
}

}  // namespace

extern const ShapeKind sawtooth_shape{"sawtooth", "rises and falls; floor and peak may creep", kSawtooth,
                                      make_sawtooth};
extern const ShapeKind gc_shape{"gc", "garbage grows to a threshold and is collected", kGc, make_gc};
extern const ShapeKind evaluation_shape{"evaluation", "a burst at the end of every epoch", kEvaluation,
                                        make_evaluation};
extern const ShapeKind diurnal_shape{"diurnal", "day and night", kDiurnal, make_diurnal};

}  // namespace vramtrack::sim
