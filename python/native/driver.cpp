// The driver's figures, by NVML: what the device and this process hold beyond what an allocator counts.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <mutex>

#include "bindings.hpp"
#include "source/nvml_library.hpp"
#include "source/nvml_processes.hpp"

namespace vramtrack::python {
namespace {

struct DeviceMemory {
  std::string uuid;
  std::uint64_t total_bytes = 0;
  std::uint64_t used_bytes = 0;
  std::optional<std::uint64_t> process_bytes;  ///< of `pid`; none: not listed, or the driver does not tell
};

/// One open library; calls from several threads take turns.
class Driver {
 public:
  explicit Driver(const std::string& path) {
    auto library = nvml::NvmlLibrary::open(path.empty() ? "libnvidia-ml.so.1" : path);
    if (!library) throw std::runtime_error(library.error().message);
    library_ = std::move(*library);
    reader_ = std::make_unique<nvml::ProcessReader>(
        *library_, [](std::uint32_t pid) { return std::filesystem::exists("/proc/" + std::to_string(pid)); });
  }

  std::vector<DeviceMemory> read(std::uint32_t pid) {
    const nb::gil_scoped_release released;
    const std::lock_guard lock(mutex_);
    std::vector<DeviceMemory> devices;
    const auto count = library_->device_count();
    for (unsigned index = 0; count && index < count.value; ++index) {
      const auto device = library_->device_by_index(index);
      if (!device) continue;
      const auto memory = library_->memory(device.value);
      if (!memory) continue;
      DeviceMemory entry;
      if (const auto uuid = library_->uuid(device.value)) entry.uuid = uuid.value;
      entry.total_bytes = memory.value.total;
      entry.used_bytes = memory.value.used;
      reader_->read(device.value, processes_);
      for (const nvml::GpuProcess& process : processes_)
        if (process.pid == pid && process.bytes) entry.process_bytes = entry.process_bytes.value_or(0) + *process.bytes;
      devices.push_back(std::move(entry));
    }
    return devices;
  }

 private:
  std::mutex mutex_;
  std::unique_ptr<nvml::NvmlLibrary> library_;
  std::unique_ptr<nvml::ProcessReader> reader_;
  std::vector<nvml::GpuProcess> processes_;
};

}  // namespace

void add_driver(nb::module_& module) {
  nb::class_<DeviceMemory>(module, "DeviceMemory")
      .def_ro("uuid", &DeviceMemory::uuid)
      .def_ro("total_bytes", &DeviceMemory::total_bytes)
      .def_ro("used_bytes", &DeviceMemory::used_bytes)
      .def_ro("process_bytes", &DeviceMemory::process_bytes);
  nb::class_<Driver>(module, "Driver")
      .def(nb::init<const std::string&>(), nb::arg("library"))
      .def("read", &Driver::read, nb::arg("pid"));
}

}  // namespace vramtrack::python
