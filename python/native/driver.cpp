// The driver's figures, by NVML: what a device and each process on it hold beyond what an allocator counts.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bindings.hpp"
#include "core/pci_address.hpp"
#include "source/nvml_library.hpp"
#include "source/nvml_processes.hpp"

namespace vramtrack::python {
namespace {

/// What a device is known by: a GPU, or a MIG instance of one.
struct DriverDevice {
  std::string uuid;         ///< "GPU-..." or "MIG-..."
  std::string name;         ///< empty: the driver does not report it
  std::string pci_bus_id;   ///< "00000000:1d:00.0", of an instance its GPU's; empty: the driver does not report it
  std::string parent_uuid;  ///< of a MIG instance
  unsigned index = 0;       ///< the driver's, of an instance its GPU's; never CUDA's ordinal
  bool is_divided = false;  ///< a GPU in MIG mode: CUDA sees its instances, never itself
};

struct DeviceReading {
  std::optional<std::uint64_t> total_bytes;
  std::optional<std::uint64_t> used_bytes;
  /// pid and bytes, none where the driver does not report it. Includes all processes that are listed.
  std::vector<std::pair<std::uint32_t, std::optional<std::uint64_t>>> processes;
};

/// One open library; calls from several threads take turns. Handles are the library's and live as long as it does.
class Driver {
 public:
  explicit Driver(const std::string& path) {
    auto library = nvml::NvmlLibrary::open(path);
    if (!library) throw std::runtime_error(library.error().message);
    library_ = std::move(*library);
    reader_ = std::make_unique<nvml::ProcessReader>(
        *library_, [](std::uint32_t pid) { return std::filesystem::exists("/proc/" + std::to_string(pid)); });
  }

  /// All of them, GPUs in the order of their PCI addresses, each followed by its MIG instances. A device that does not
  /// answer is left out.
  std::vector<DriverDevice> devices() {
    const GilReleased released;
    const std::lock_guard lock(mutex_);
    units_.clear();
    const auto count = library_->device_count();
    for (unsigned index = 0; count && index < count.value; ++index) add_gpu(index);
    std::vector<DriverDevice> devices;
    devices.reserve(units_.size());
    for (const Unit& unit : units_) devices.push_back(unit.device);
    return devices;
  }

  /// For a device that devices() has listed.
  DeviceReading read(const std::string& uuid) {
    Result<DeviceReading> reading;
    {
      const GilReleased released;
      const std::lock_guard lock(mutex_);
      reading = read_unit(uuid);
    }
    return value_or_raise(std::move(reading));
  }

 private:
  struct Unit {
    DriverDevice device;
    nvml::Device handle = nullptr;
    nvml::Device parent = nullptr;  ///< of a MIG instance
    std::uint32_t gpu_instance_id = nvml::kNoInstance;
    std::uint32_t compute_instance_id = nvml::kNoInstance;
  };

  void add_gpu(unsigned index) {
    const auto handle = library_->device_by_index(index);
    if (!handle) return;
    const auto uuid = library_->uuid(handle.value);
    if (!uuid) return;
    Unit gpu;
    gpu.handle = handle.value;
    gpu.device.uuid = uuid.value;
    gpu.device.index = index;
    if (const auto name = library_->name(handle.value)) gpu.device.name = name.value;
    if (const auto pci = library_->pci_bus_id(handle.value)) gpu.device.pci_bus_id = normal_pci_address(pci.value);
    const auto mode = library_->mig_mode(handle.value);
    gpu.device.is_divided = mode && mode.value.enabled;
    units_.push_back(gpu);
    if (!gpu.device.is_divided) return;
    const auto most = library_->max_mig_devices(handle.value);
    for (unsigned slot = 0; most && slot < most.value; ++slot) add_instance(gpu, slot);
  }

  void add_instance(const Unit& gpu, unsigned slot) {
    const auto handle = library_->mig_device(gpu.handle, slot);
    if (!handle) return;  // a slot without an instance
    const auto uuid = library_->uuid(handle.value);
    if (!uuid) return;
    Unit instance;
    instance.handle = handle.value;
    instance.parent = gpu.handle;
    instance.device.uuid = uuid.value;
    instance.device.name = gpu.device.name;
    instance.device.pci_bus_id = gpu.device.pci_bus_id;
    instance.device.parent_uuid = gpu.device.uuid;
    instance.device.index = gpu.device.index;
    if (const auto id = library_->gpu_instance_id(handle.value)) instance.gpu_instance_id = id.value;
    if (const auto id = library_->compute_instance_id(handle.value)) instance.compute_instance_id = id.value;
    units_.push_back(std::move(instance));
  }

  Result<DeviceReading> read_unit(const std::string& uuid) {
    const auto unit = std::find_if(units_.begin(), units_.end(), [&](const Unit& u) { return u.device.uuid == uuid; });
    if (unit == units_.end()) return fail("the driver has not listed a device " + uuid + "; call devices() first");
    DeviceReading reading;
    const auto memory = library_->memory(unit->handle);
    if (memory) {
      reading.total_bytes = memory.value.total;
      reading.used_bytes = memory.value.used;
    }
    int code = reader_->read(unit->handle, processes_);
    if (unit->parent != nullptr && (code != nvml::kSuccess || processes_.empty())) {
      // With privilege the whole GPU may list what its instance does not.
      code = reader_->read(unit->parent, processes_);
      const auto elsewhere = [&](const nvml::GpuProcess& process) {
        return process.gpu_instance_id != unit->gpu_instance_id ||
               process.compute_instance_id != unit->compute_instance_id;
      };
      processes_.erase(std::remove_if(processes_.begin(), processes_.end(), elsewhere), processes_.end());
    }
    if (!memory && code != nvml::kSuccess)
      return fail(uuid + " does not answer: " + nvml::describe(memory.code) + "; run nvidia-smi for details");
    for (const nvml::GpuProcess& process : processes_) reading.processes.emplace_back(process.pid, process.bytes);
    return reading;
  }

  std::mutex mutex_;
  std::unique_ptr<nvml::NvmlLibrary> library_;
  std::unique_ptr<nvml::ProcessReader> reader_;
  std::vector<Unit> units_;
  std::vector<nvml::GpuProcess> processes_;
};

}  // namespace

void add_driver(nb::module_& module) {
  nb::class_<DriverDevice>(module, "DriverDevice")
      .def_ro("uuid", &DriverDevice::uuid)
      .def_ro("name", &DriverDevice::name)
      .def_ro("pci_bus_id", &DriverDevice::pci_bus_id)
      .def_ro("parent_uuid", &DriverDevice::parent_uuid)
      .def_ro("index", &DriverDevice::index)
      .def_ro("is_divided", &DriverDevice::is_divided);
  nb::class_<DeviceReading>(module, "DeviceReading")
      .def_ro("total_bytes", &DeviceReading::total_bytes)
      .def_ro("used_bytes", &DeviceReading::used_bytes)
      .def_ro("processes", &DeviceReading::processes);
  nb::class_<Driver>(module, "Driver")
      .def(nb::init<const std::string&>(), nb::arg("library"))
      .def("devices", &Driver::devices)
      .def("read", &Driver::read, nb::arg("uuid"));
}

}  // namespace vramtrack::python
