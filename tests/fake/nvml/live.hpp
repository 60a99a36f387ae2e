// Devices that hold what the programs on the fake driver hold (tests/fake/gpu).
#pragma once

#include <vector>

#include "scenario.hpp"

namespace fake_nvml {

/// The machine that VRAMTRACK_FAKE_GPU_DEVICES and its like describe, every device live.
Scenario live_machine();
/// What a `gpu` with live=N has where its line says nothing else.
void describe_live(Device& device);
/// The processes on a live device now.
std::vector<Process> live_processes(const Device& device);
/// Those in the file `holders` that run, and what those that have ended left.
std::vector<Process> file_processes(const Device& device, std::uint64_t& left_bytes);

}  // namespace fake_nvml
