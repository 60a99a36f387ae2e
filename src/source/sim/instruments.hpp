// Instruments: what a simulated machine shows besides memory: temperature, power, fan, and how busy each process is.
// The values are made up but plausible, and equal for equal scenarios and times; no detector reads them.
#pragma once

#include "core/sample.hpp"
#include "source/sim/processes.hpp"

namespace vramtrack::sim {

/// The load that `run` puts on one device at `t_s`.
ProcessLoad simulated_load(const Scenario& scenario, const Run& run, const Holding& holding, double t_s);

/// The instruments of a device and, less often, its health. `busy_ratio`: the load of all its processes, at most 1.
class Instruments {
 public:
  explicit Instruments(const Scenario& scenario) : scenario_(scenario), health_next_s_(scenario.devices.size(), 0) {}

  DeviceReading read(std::size_t device, double busy_ratio, double t_s, Timestamp time);

 private:
  const Scenario& scenario_;
  std::vector<double> health_next_s_;
};

}  // namespace vramtrack::sim
