// Shapes that only grow: the leaks, and the constant they start from.
#include <array>
#include <cmath>

#include "source/sim/shape.hpp"

namespace vramtrack::sim {
namespace {

constexpr std::array kConstant{Parameter{"bytes", Unit::bytes}};
constexpr std::array kLinear{Parameter{"rate_bytes_per_s", Unit::bytes_per_s, kRequired, -1e15, 1e15}};
constexpr std::array kAccelerating{Parameter{"bytes", Unit::bytes}, Parameter{"over_s", Unit::seconds, kRequired, 1},
                                   Parameter{"power", Unit::ratio, 2, 0.1, 10}};
constexpr std::array kStaircase{Parameter{"step_bytes", Unit::bytes}, Parameter{"every_s", Unit::interval_s},
                                Parameter{"intervals", Unit::word, 0, 0, 0, "regular|jittered|random"},
                                Parameter{"step_spread", Unit::ratio, 0, 0, 1},
                                Parameter{"steps", Unit::count, 1e9, 0}};
constexpr std::array kRequests{Parameter{"requests_per_s", Unit::per_s}, Parameter{"leak_share", Unit::ratio, 1, 0, 1},
                               Parameter{"leak_bytes", Unit::bytes},
                               Parameter{"sizes", Unit::word, 1, 0, 0, "fixed|exponential"}};

/// A step of about `step_bytes` at every event; events are regular, within +-20 % of regular, or Poisson.
struct Staircase {
  enum Intervals { regular, jittered, random_times };
  double step_bytes, every_s, step_spread, max_steps;
  int intervals;
  Random random;
  double next_s = 0;
  double steps = 0;
  double level = 0;

  void schedule() {
    if (intervals == regular) next_s = (steps + 1) * every_s;
    if (intervals == jittered) next_s = (steps + random.around_one(0.2)) * every_s;
    if (intervals == random_times) next_s += random.exponential(every_s);
  }
  double operator()(double t_s) {
    for (; steps < max_steps && next_s <= t_s; schedule()) {
      level += step_bytes * random.around_one(step_spread);
      ++steps;
    }
    return level;
  }
};

/// Compound Poisson: every request leaks with some probability, by a fixed or exponentially distributed amount.
struct Requests {
  double leaks_per_s, leak_bytes;
  bool fixed;
  Random random;
  double next_s = 0;
  double level = 0;

  double operator()(double t_s) {
    for (; next_s <= t_s; next_s += random.exponential(1 / leaks_per_s)) {
      level += fixed ? leak_bytes : random.exponential(leak_bytes);
    }
    return level;
  }
};

Curve make_constant(const ShapeSpec& spec, Random) {
  return [bytes = spec["bytes"]](double) { return bytes; };
}

Curve make_linear(const ShapeSpec& spec, Random) {
  return [rate = spec["rate_bytes_per_s"]](double t_s) { return rate * t_s; };
}

Curve make_accelerating(const ShapeSpec& spec, Random) {
  return [bytes = spec["bytes"], over_s = spec["over_s"], power = spec["power"]](double t_s) {
    return bytes * std::pow(t_s / over_s, power);
  };
}

Curve make_staircase(const ShapeSpec& spec, Random random) {
  Staircase stairs{spec["step_bytes"],
                   spec["every_s"],
                   spec["step_spread"],
                   spec["steps"],
                   static_cast<int>(spec["intervals"]),
                   random};
  stairs.schedule();
  return stairs;
}

Curve make_requests(const ShapeSpec& spec, Random random) {
  const double leaks_per_s = spec["requests_per_s"] * spec["leak_share"];
  if (leaks_per_s <= 0) return [](double) { return 0.0; };
  Requests requests{leaks_per_s, spec["leak_bytes"], spec["sizes"] == 0, random};
  requests.next_s = requests.random.exponential(1 / leaks_per_s);
  return requests;
}

}  // namespace

extern const ShapeKind constant_shape{"constant", "the same all the time", kConstant, make_constant};
extern const ShapeKind linear_shape{"linear", "a leak at a steady rate", kLinear, make_linear};
extern const ShapeKind accelerating_shape{"accelerating", "grows as a power of time", kAccelerating, make_accelerating};
extern const ShapeKind staircase_shape{"staircase", "a step at every event: per epoch, per buffer", kStaircase,
                                       make_staircase};
extern const ShapeKind requests_shape{"requests", "requests, some of which leak (compound Poisson)", kRequests,
                                      make_requests};

}  // namespace vramtrack::sim
