#include "source/sim/instruments.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <utility>

#include "source/sim/random.hpp"

namespace vramtrack::sim {
namespace {

constexpr double kHealthEvery_s = 10;
constexpr double kTau = 6.283185307179586;

/// Board power, in watts, of the cards that scenarios name; other cards get the last value.
constexpr std::array<std::pair<std::string_view, double>, 9> kPower = {{{"H100", 700},
                                                                        {"H200", 700},
                                                                        {"A100", 400},
                                                                        {"4090", 450},
                                                                        {"L40S", 350},
                                                                        {"V100", 300},
                                                                        {"A6000", 300},
                                                                        {"A10", 150},
                                                                        {"", 300}}};

double power_limit_watts(std::string_view name) {
  return std::find_if(kPower.begin(), kPower.end(),
                      [&](const auto& known) { return name.find(known.first) != std::string_view::npos; })
      ->second;
}

/// A card in a desktop or workstation has a fan, and one in a desktop has no ECC; the server cools a server's card.
bool is_desktop(std::string_view name) {
  return name.find("GeForce") != std::string_view::npos;
}
bool has_fan(std::string_view name) {
  return is_desktop(name) || name.find("RTX") != std::string_view::npos;
}

/// A value for `name` in a stream, 0..1, which is always the same.
double own(std::uint64_t stream, std::string_view name) {
  return Random(substream(stream, name)).uniform();
}

}  // namespace

ProcessLoad simulated_load(const Scenario& scenario, const Run& run, const Holding& holding, double t_s) {
  const std::uint64_t stream = substream(substream(run.stream, "load"), holding.device);
  const double phase = own(stream, "phase");
  // Two waves of different lengths: batches, and anything else that makes a load vary.
  const double wave = 0.5 * std::sin(kTau * (t_s / 37 + phase)) + 0.5 * std::sin(kTau * (t_s / 211 + 2 * phase));
  ProcessLoad load;
  // A process that holds little does little: a notebook, a debugger.
  const double share = holding.used_bytes / static_cast<double>(scenario.devices[holding.device].capacity_bytes);
  const double usual = share < 0.06 ? 0.04 * own(stream, "gpu") : 0.55 + 0.35 * own(stream, "gpu");
  load.gpu_ratio = std::clamp(std::round(100 * usual * (1 + 0.12 * wave)) / 100, 0.0, 1.0);
  load.cpu_ratio = std::max(0.0, (0.1 + 1.1 * own(stream, "cpu")) * (1 + 0.1 * wave));
  load.host_bytes = static_cast<std::uint64_t>((1 + 11 * own(stream, "host")) * 1024 * 1024 * 1024);
  return load;
}

DeviceReading Instruments::read(std::size_t device, double busy_ratio, double t_s, Timestamp time) {
  const std::string_view name = scenario_.devices[device].info.name;
  const double wave = std::sin(kTau * (t_s / 300 + 0.31 * static_cast<double>(device)));
  DeviceReading reading{time, scenario_.devices[device].info.id, std::round(100 * busy_ratio) / 100, {}, {}, {}};
  DeviceGauges& gauges = reading.gauges;
  gauges.memory_utilisation_ratio = std::round(100 * 0.6 * busy_ratio) / 100;
  gauges.temperature_celsius = std::round(34 + 36 * busy_ratio + 2 * wave + static_cast<double>(device % 4));
  gauges.power_limit_watts = power_limit_watts(name);
  gauges.power_watts = std::round(*gauges.power_limit_watts * (0.12 + 0.78 * busy_ratio + 0.01 * wave));
  gauges.sm_clock_hertz = 1e6 * std::round(210 + 1500 * std::sqrt(busy_ratio) - 20 * busy_ratio * wave);
  if (has_fan(name)) gauges.fan_ratio = std::round(100 * (0.3 + 0.45 * busy_ratio)) / 100;
  if (t_s < health_next_s_[device]) return reading;
  health_next_s_[device] = t_s + kHealthEvery_s;
  DeviceHealth& health = reading.health.emplace();
  health.time = time;
  health.temperature_celsius = gauges.temperature_celsius;
  health.throttle.emplace();
  if (busy_ratio < 0.01) health.throttle->add(Throttle::idle);
  health.hears_xids = true;
  if (is_desktop(name)) return reading;
  health.ecc_enabled = true;
  health.ecc_since_load = health.ecc_lifetime = {0, 0};
  health.repair_pending = health.repair_failed = false;
  health.remapped_rows = 0;
  return reading;
}

}  // namespace vramtrack::sim
