#include "live.hpp"

#include <unistd.h>

#include <array>
#include <cstdio>
#include <fstream>
#include <string>

#include "../gpu/shared_state.hpp"

namespace fake_nvml {

void describe_live(Device& device) {
  const int number = static_cast<int>(*device.live);
  if (device.uuid.empty()) device.uuid = fake_gpu::device_uuid_text(number);
  if (device.total.at(0) == 0) device.total.values = {fake_gpu::device_bytes(number)};
  if (device.pci.empty()) {
    std::array<char, 20> text{};
    std::snprintf(text.data(), text.size(), "00000000:%02X:00.0",
                  static_cast<unsigned>(fake_gpu::kFirstBus + number) & 0xffU);
    device.pci = text.data();
  }
}

Scenario live_machine() {
  Scenario scenario;
  for (int i = 0; i < fake_gpu::device_count(); ++i) {
    auto* device = new Device;
    device->index = static_cast<unsigned>(i);
    device->live = device->index;
    device->name = "Fake GPU";
    device->gpu_percent = 50;
    describe_live(*device);
    scenario.gpus.push_back(device);
  }
  return scenario;
}

std::vector<Process> live_processes(const Device& device) {
  const int number = static_cast<int>(*device.live);
  std::vector<Process> processes;
  for (const fake_gpu::ProcessUse& row : fake_gpu::SharedState::get().processes(number)) {
    Process process;
    process.pid = static_cast<std::uint32_t>(row.pid);
    process.used.values = {row.bytes.at(static_cast<std::size_t>(number))};
    processes.push_back(process);
  }
  return processes;
}

std::vector<Process> file_processes(const Device& device, std::uint64_t& left_bytes) {
  std::vector<Process> processes;
  std::ifstream file(device.holders);
  std::uint64_t pid = 0, bytes = 0, left = 0;
  while (file >> pid >> bytes >> left) {
    if (access(("/proc/" + std::to_string(pid)).c_str(), F_OK) != 0) {
      left_bytes += left;
      continue;
    }
    Process process;
    process.pid = static_cast<std::uint32_t>(pid);
    process.used.values = {bytes};
    processes.push_back(process);
  }
  return processes;
}

}  // namespace fake_nvml
