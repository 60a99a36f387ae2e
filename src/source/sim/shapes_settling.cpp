// Shapes that change and then stay: loads, warm-ups, caches, fragmentation. Healthy growth.
#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "source/sim/shape.hpp"

namespace vramtrack::sim {
namespace {

constexpr std::array kSpike{Parameter{"bytes", Unit::bytes}, Parameter{"rise_s", Unit::seconds, 0},
                            Parameter{"hold_s", Unit::seconds, 60}, Parameter{"remain", Unit::ratio, 0, 0, 1}};
constexpr std::array kLoad{Parameter{"bytes", Unit::bytes}, Parameter{"over_s", Unit::seconds, 0},
                           Parameter{"shards", Unit::count, 1, 1, 1e6}};
constexpr std::array kKvCache{Parameter{"bytes", Unit::bytes}, Parameter{"after_s", Unit::seconds, 10}};
constexpr std::array kWarmUp{Parameter{"bytes", Unit::bytes}, Parameter{"over_s", Unit::seconds, kRequired, 0.001},
                             Parameter{"form", Unit::word, 0, 0, 0, "exponential|log|linear"}};
constexpr std::array kSettling{Parameter{"bytes", Unit::bytes}, Parameter{"over_s", Unit::seconds},
                               Parameter{"steps", Unit::count, 3, 1, 1000}};
constexpr std::array kRunningMax{Parameter{"typical_bytes", Unit::bytes}, Parameter{"every_s", Unit::interval_s},
                                 Parameter{"sigma", Unit::ratio, 0.3, 0, 3}, Parameter{"max_bytes", Unit::bytes, 1e18}};
constexpr std::array kCache{Parameter{"limit_bytes", Unit::bytes}, Parameter{"item_bytes", Unit::bytes},
                            Parameter{"requests_per_s", Unit::per_s}, Parameter{"universe_bytes", Unit::bytes, 1e18}};
constexpr std::array kFragmentation{Parameter{"bytes", Unit::bytes}, Parameter{"over_s", Unit::seconds},
                                    Parameter{"steps", Unit::count, 12, 1, 1000}};

/// Steps at fixed times, each of a fixed size.
struct Steps {
  struct Step {
    double at_s, bytes;
  };
  std::vector<Step> steps;
  std::size_t done = 0;
  double level = 0;

  double operator()(double t_s) {
    for (; done < steps.size() && steps[done].at_s <= t_s; ++done) level += steps[done].bytes;
    return level;
  }
};

/// Scales the sizes so that they add up to `bytes`.
void scale_to(std::vector<Steps::Step>& steps, double bytes) {
  double sum = 0;
  for (const Steps::Step& step : steps) sum += step.bytes;
  for (Steps::Step& step : steps) step.bytes *= bytes / sum;
}

/// A caching allocator with batches of varying size keeps enough memory for the largest it has seen.
struct RunningMax {
  double typical, every_s, sigma, max;
  Random random;
  double batches = 0;
  double level = 0;

  double operator()(double t_s) {
    for (; batches * every_s <= t_s; ++batches) level = std::max(level, typical * std::exp(sigma * random.normal()));
    return std::min(level, max);
  }
};

/// Requests over a finite universe of items: the fuller the cache, the fewer the misses.
struct Cache {
  double limit, item, requests_per_s, universe;
  Random random;
  double next_s = 0;
  double level = 0;

  double operator()(double t_s) {
    for (; next_s <= t_s; next_s += random.exponential(1 / requests_per_s))
      if (random.uniform() * universe >= level) level = std::min(level + item, limit);
    return level;
  }
};

Curve make_spike(const ShapeSpec& s, Random) {
  return [bytes = s["bytes"], rise_s = s["rise_s"], hold_s = s["hold_s"], remain = s["remain"]](double t_s) {
    if (t_s < rise_s) return bytes * t_s / rise_s;
    return t_s < rise_s + hold_s ? bytes : bytes * remain;
  };
}

Curve make_load(const ShapeSpec& s, Random) {
  return [bytes = s["bytes"], over_s = s["over_s"], shards = s["shards"]](double t_s) {
    return t_s >= over_s ? bytes : bytes * std::floor(t_s / over_s * shards) / shards;
  };
}

Curve make_kv_cache(const ShapeSpec& s, Random) {
  return [bytes = s["bytes"], after_s = s["after_s"]](double t_s) { return t_s >= after_s ? bytes : 0.0; };
}

Curve make_warm_up(const ShapeSpec& s, Random) {
  enum Form { exponential, log, linear };
  return [bytes = s["bytes"], over_s = s["over_s"], form = static_cast<int>(s["form"])](double t_s) {
    const double share = std::min(t_s / over_s, 1.0);
    if (form == linear) return bytes * share;
    if (form == log) return bytes * std::log1p(99 * share) / std::log(100.0);
    return bytes * -std::expm1(-t_s / over_s);
  };
}

/// The large steps come first, at times uniform over the span, as when an allocator finds its working set.
Curve make_settling(const ShapeSpec& s, Random random) {
  Steps curve;
  double weight = 1;
  for (double i = 0; i < s["steps"]; ++i, weight *= 0.6) curve.steps.push_back({0, weight});
  scale_to(curve.steps, s["bytes"]);
  std::vector<double> times;
  for (std::size_t i = 0; i < curve.steps.size(); ++i) times.push_back(random.uniform(0, s["over_s"]));
  std::sort(times.begin(), times.end());
  for (std::size_t i = 0; i < times.size(); ++i) curve.steps[i].at_s = times[i];
  return curve;
}

Curve make_running_max(const ShapeSpec& s, Random random) {
  return RunningMax{s["typical_bytes"], s["every_s"], s["sigma"], s["max_bytes"], random};
}

Curve make_cache(const ShapeSpec& s, Random random) {
  if (s["requests_per_s"] <= 0) return [](double) { return 0.0; };
  return Cache{s["limit_bytes"], s["item_bytes"], s["requests_per_s"], s["universe_bytes"], random};
}

/// Smaller and smaller steps at longer and longer intervals (1.5 times the previous one, +-20 %).
Curve make_fragmentation(const ShapeSpec& s, Random random) {
  Steps curve;
  const double steps = s["steps"];
  double at = 0;
  double gap = 1;
  double weight = 1;
  for (double i = 0; i < steps; ++i, gap *= 1.5, weight *= 0.8) {
    at += gap * random.around_one(0.2);
    if (at > 1e200) break;
    curve.steps.push_back({at, weight});
  }
  scale_to(curve.steps, s["bytes"]);
  const double stretch = s["over_s"] / curve.steps.back().at_s;
  for (Steps::Step& step : curve.steps) step.at_s *= stretch;
  return curve;
}

}  // namespace

extern const ShapeKind spike_shape{"spike", "a jump that stays, goes, or goes in part", kSpike, make_spike};
extern const ShapeKind load_shape{"load", "a one-time load in shards", kLoad, make_load};
extern const ShapeKind kv_cache_shape{"kv_cache", "one reservation after start-up", kKvCache, make_kv_cache};
extern const ShapeKind warm_up_shape{"warm_up", "grows to a plateau", kWarmUp, make_warm_up};
extern const ShapeKind settle_shape{"settle", "a few steps, the first the largest, then flat", kSettling,
                                    make_settling};
extern const ShapeKind running_max_shape{"running_max", "largest batch so far: a caching allocator", kRunningMax,
                                         make_running_max};
extern const ShapeKind cache_shape{"cache", "a cache that fills to its limit", kCache, make_cache};
extern const ShapeKind fragmentation_shape{"fragmentation", "smaller and smaller steps, further and further apart",
                                           kFragmentation, make_fragmentation};

}  // namespace vramtrack::sim
