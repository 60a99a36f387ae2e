#include "again.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <stdexcept>
#include <string_view>

#include "source/sim/random.hpp"
#include "stage.hpp"

namespace vramtrack::accuracy {
namespace {

constexpr std::array<std::string_view, 4> kLeaks{"linear", "accelerating", "staircase", "requests"};
constexpr std::array<std::string_view, 3> kLeftBehind{"leak_bytes", "leak_bytes_per_s", "floor_bytes_per_s"};

/// How one run differs from another.
struct Variation {
  double level = 1;
  double pace = 1;

  explicit Variation(sim::Random& random) : level(random.uniform(0.97, 1)), pace(random.uniform(0.93, 1.07)) {}

  void apply(sim::ShapeSpec& shape) const {
    for (std::size_t i = 0; i < shape.values.size(); ++i) {
      double& value = shape.values[i];
      switch (shape.kind->parameters[i].unit) {
        case sim::Unit::bytes:
          if (!shape.multiply) value *= level;
          break;
        case sim::Unit::seconds:
          // A day is a day.
          if (shape.kind->name != "diurnal") value *= pace;
          break;
        case sim::Unit::interval_s:
          value *= pace;
          break;
        case sim::Unit::bytes_per_s:
          value *= level / pace;
          break;
        case sim::Unit::per_s:
          value /= pace;
          break;
        default:
          break;
      }
    }
    shape.onset_s *= pace;
    shape.until_s *= pace;
    shape.release_s *= pace;
    shape.release_every_s *= pace;
  }
  void apply(sim::ProcessSpec& process) const {
    for (sim::ShapeSpec& shape : process.shapes) apply(shape);
    process.start_s *= pace;
    if (process.end_s) *process.end_s *= pace;
    if (process.lifetime_s) *process.lifetime_s *= pace;
  }
};

sim::Scenario scenario_of(const Trace& trace) {
  if (trace.scenario) return *trace.scenario;
  auto scenario = sim::parse_scenario(trace.toml, trace.family);
  if (!scenario) throw std::runtime_error(scenario.error().message);
  return std::move(*scenario);
}

sim::ProcessSpec& victim(sim::Scenario& scenario) {
  for (sim::ProcessSpec& process : scenario.processes)
    if (process.info.pid == kVictim) return process;
  throw std::runtime_error(scenario.name + ": no program to be run again");
}

/// A separate run: its chance, and each of its programs' level and pace.
Trace varied(const Trace& trace, std::string_view name, std::size_t number) {
  sim::Random random(sim::substream(sim::substream(trace.seed, name), number));
  sim::Scenario scenario = scenario_of(trace);
  scenario.seed = random.next() % 1000000007;
  Trace run = trace;
  for (sim::ProcessSpec& process : scenario.processes) {
    const Variation variation(random);
    variation.apply(process);
    if (process.info.pid != kVictim) continue;
    run.label.onset_s *= variation.pace;
    run.label.life_s *= variation.pace;
    if (run.label.growth_bytes_per_s) *run.label.growth_bytes_per_s *= variation.level / variation.pace;
    run.straight_share *= variation.level;
  }
  run.scenario = std::make_shared<const sim::Scenario>(std::move(scenario));
  return run;
}

}  // namespace

sim::Scenario without_leak(sim::Scenario scenario) {
  for (sim::ProcessSpec& process : scenario.processes) {
    std::erase_if(process.shapes, [](const sim::ShapeSpec& shape) {
      return std::find(kLeaks.begin(), kLeaks.end(), shape.kind->name) != kLeaks.end();
    });
    for (sim::ShapeSpec& shape : process.shapes)
      for (std::size_t i = 0; i < shape.values.size(); ++i)
        if (std::find(kLeftBehind.begin(), kLeftBehind.end(), shape.kind->parameters[i].key) != kLeftBehind.end())
          shape.values[i] = 0;
  }
  return scenario;
}

Trace this_run(const Trace& trace) {
  return varied(trace, "this run", 0);
}

Trace earlier_run(const Trace& trace, Earlier how, std::size_t number) {
  Trace run = varied(trace, "earlier run", number);
  sim::Scenario scenario = *run.scenario;
  sim::Random random(sim::substream(sim::substream(trace.seed, "length"), number));
  const double planned_s = scenario.duration_s;
  // Another batch of work: a run may be shorter or longer, and a daily load ends with a day.
  scenario.duration_s *= random.uniform(0.7, 1.2);
  if (trace.label.leak && how != Earlier::leaked) scenario = without_leak(std::move(scenario));
  if (trace.label.leak && how == Earlier::leaked && random.uniform() < 1.0 / 3)
    victim(scenario).end_s = trace.label.onset_s + random.uniform(0.4, 0.9) * std::min(trace.label.life_s, planned_s);
  run.label.leak = trace.label.leak && how == Earlier::leaked;
  run.scenario = std::make_shared<const sim::Scenario>(std::move(scenario));
  return run;
}

Trace with_new_command(const Trace& run) {
  sim::Scenario scenario = scenario_of(run);
  victim(scenario).info.command += " --hidden-size 4096";
  Trace changed = run;
  changed.scenario = std::make_shared<const sim::Scenario>(std::move(scenario));
  return changed;
}

Trace with_siblings(const Trace& run, std::size_t siblings, bool alike) {
  sim::Scenario scenario = scenario_of(run);
  const sim::DeviceSpec device = scenario.devices.front();
  const sim::ProcessSpec program = victim(scenario);
  const sim::Scenario healthy = alike ? scenario : without_leak(scenario);
  sim::Random random(sim::substream(run.seed, "siblings"));
  for (std::size_t i = 1; i <= siblings; ++i) {
    sim::DeviceSpec own = device;
    own.info.id = fmt::format("{}-{}", device.info.id, i);
    own.info.pci_bus_id = fmt::format("00000000:{:02X}:00.0", 0x80 + i);
    own.info.index = static_cast<decltype(own.info.index)>(i);
    scenario.devices.push_back(std::move(own));
    sim::Scenario of = healthy;
    sim::ProcessSpec sibling = victim(of);
    const Variation variation(random);
    variation.apply(sibling);
    sibling.name = fmt::format("{} {}", program.name, i);
    sibling.info.name = sibling.name;
    sibling.info.pid = kVictim + static_cast<std::uint32_t>(i);
    sibling.devices = {i};
    sibling.start_s = program.start_s + random.uniform(0, 5);
    scenario.processes.push_back(std::move(sibling));
  }
  Trace job = run;
  job.label.on_all_devices = run.label.leak && alike;
  job.scenario = std::make_shared<const sim::Scenario>(std::move(scenario));
  return job;
}

}  // namespace vramtrack::accuracy
