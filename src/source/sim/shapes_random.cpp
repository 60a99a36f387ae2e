// Shapes without a trend: noise, wander, and the bursts of serving.
#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "source/sim/shape.hpp"

namespace vramtrack::sim {
namespace {

constexpr std::array kWander{Parameter{"sigma_bytes", Unit::bytes},
                             Parameter{"correlation_s", Unit::seconds, kRequired, 0.001}};
constexpr std::array kNoise{Parameter{"sigma_bytes", Unit::bytes}};
constexpr std::array kRandomWalk{Parameter{"step_bytes", Unit::bytes}, Parameter{"every_s", Unit::interval_s},
                                 Parameter{"low_bytes", Unit::bytes, 0}, Parameter{"high_bytes", Unit::bytes}};
constexpr std::array kServing{Parameter{"requests_per_s", Unit::per_s},
                              Parameter{"request_bytes", Unit::bytes},
                              Parameter{"service_s", Unit::seconds, kRequired, 0.001},
                              Parameter{"burst_factor", Unit::ratio, 1, 0, 1000},
                              Parameter{"burst_every_s", Unit::interval_s, 600},
                              Parameter{"burst_lasts_s", Unit::interval_s, 30},
                              Parameter{"max_requests", Unit::count, 1e6, 1}};
constexpr std::array kLora{Parameter{"slots", Unit::count, 4, 1, 1024}, Parameter{"adapter_bytes", Unit::bytes},
                           Parameter{"spread", Unit::ratio, 0.5, 0, 1}, Parameter{"every_s", Unit::interval_s},
                           Parameter{"overlap_s", Unit::seconds, 5},    Parameter{"active_s", Unit::seconds, 0},
                           Parameter{"idle_s", Unit::seconds, 0},       Parameter{"leak_bytes", Unit::bytes, 0}};

/// Ornstein-Uhlenbeck, exactly discretised: AR(1) with a coefficient that depends on the time between calls.
struct Wander {
  double sigma, correlation_s;
  Random random;
  double last_s = 0;
  double value = 0;

  double operator()(double t_s) {
    const double rho = std::exp(-(t_s - last_s) / correlation_s);
    last_s = t_s;
    value = rho * value + sigma * std::sqrt(1 - rho * rho) * random.normal();
    return value;
  }
};

/// Steps of either sign, reflected at two walls; it starts in the middle.
struct RandomWalk {
  double step, every_s, low, high;
  Random random;
  double steps = 0;
  double value = 0;

  double operator()(double t_s) {
    for (; (steps + 1) * every_s <= t_s; ++steps) {
      value += step * random.normal();
      if (value > high) value = 2 * high - value;
      if (value < low) value = 2 * low - value;
      value = std::clamp(value, low, high);
    }
    return value;
  }
};

/// Requests in flight: Poisson arrivals (faster in bursts), exponential service, no queue: M/M/inf with a
/// two-state modulated rate, event by event. The next event is drawn ahead of its time, so that what happens
/// does not depend on how often the curve is evaluated.
struct Serving {
  double requests_per_s, request_bytes, service_s, burst_factor, burst_every_s, burst_lasts_s, max_requests;
  Random random;
  double next_s = -1;
  double which = 0;  ///< uniform in [0, sum of the rates): arrival, then departure, then change of the burst
  double in_flight = 0;
  bool burst = false;

  [[nodiscard]] double arrivals_per_s() const { return requests_per_s * (burst ? burst_factor : 1); }
  void draw() {
    const double total = arrivals_per_s() + in_flight / service_s + 1 / (burst ? burst_lasts_s : burst_every_s);
    next_s += random.exponential(1 / total);
    which = random.uniform() * total;
  }
  void apply() {
    if (which < arrivals_per_s()) {
      in_flight = std::min(in_flight + 1, max_requests);
    } else if (which < arrivals_per_s() + in_flight / service_s) {
      --in_flight;
    } else {
      burst = !burst;
    }
  }
  double operator()(double t_s) {
    if (next_s < 0) {
      next_s = 0;
      draw();
    }
    while (next_s <= t_s) {
      apply();
      draw();
    }
    return request_bytes * in_flight;
  }
};

/// Adapters in slots; a swap loads the new one before it drops the old one. Active and idle stretches alternate.
struct Lora {
  double adapter_bytes, spread, every_s, overlap_s, active_s, idle_s, leak;
  Random random;
  std::vector<double> slots;
  double next_s = 0;
  double overlap_until_s = -1;
  double leaving = 0;
  double leaked = 0;

  double operator()(double t_s) {
    for (; next_s <= t_s; next_s += random.exponential(every_s)) {
      const double phase = active_s > 0 ? std::fmod(next_s, active_s + idle_s) : 0;
      const auto slot = static_cast<std::size_t>(random.uniform() * static_cast<double>(slots.size()));
      const double size = adapter_bytes * random.around_one(spread);
      if (active_s > 0 && phase >= active_s) continue;
      leaving = slots[slot];
      overlap_until_s = next_s + overlap_s;
      slots[slot] = size;
      leaked += leak;
    }
    double sum = leaked + (t_s < overlap_until_s ? leaving : 0);
    for (const double bytes : slots) sum += bytes;
    return sum;
  }
};

Curve make_wander(const ShapeSpec& s, Random random) {
  return Wander{s["sigma_bytes"], s["correlation_s"], random};
}

Curve make_noise(const ShapeSpec& s, Random random) {
  return [sigma = s["sigma_bytes"], random](double) mutable { return sigma * random.normal(); };
}

Curve make_random_walk(const ShapeSpec& s, Random random) {
  const double low = std::min(s["low_bytes"], s["high_bytes"]);
  return RandomWalk{s["step_bytes"], s["every_s"], low, s["high_bytes"], random, 0, (low + s["high_bytes"]) / 2};
}

Curve make_serving(const ShapeSpec& s, Random random) {
  return Serving{s["requests_per_s"], s["request_bytes"], s["service_s"],    s["burst_factor"],
                 s["burst_every_s"],  s["burst_lasts_s"], s["max_requests"], random};
}

Curve make_lora(const ShapeSpec& s, Random random) {
  Lora lora{s["adapter_bytes"], s["spread"], s["every_s"],    s["overlap_s"],
            s["active_s"],      s["idle_s"], s["leak_bytes"], random};
  lora.slots.resize(static_cast<std::size_t>(s["slots"]));
  for (double& bytes : lora.slots) bytes = lora.adapter_bytes * lora.random.around_one(lora.spread);
  lora.next_s = lora.random.exponential(lora.every_s);
  return lora;
}

}  // namespace

extern const ShapeKind wander_shape{"wander", "mean-reverting noise with a correlation time (AR(1))", kWander,
                                    make_wander};
extern const ShapeKind noise_shape{"noise", "white noise", kNoise, make_noise};
extern const ShapeKind random_walk_shape{"random_walk", "a random walk between two walls", kRandomWalk,
                                         make_random_walk};
extern const ShapeKind serving_shape{"serving", "requests in flight, with bursts", kServing, make_serving};
extern const ShapeKind lora_shape{"lora", "adapters swapped in slots", kLora, make_lora};

}  // namespace vramtrack::sim
