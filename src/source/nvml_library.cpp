#include "source/nvml_library.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <string_view>

#include "host/privilege.hpp"

namespace vramtrack::nvml {
namespace {

std::string_view meaning(int code) {
  switch (code) {
    case kUninitialized:
      return "not initialised";
    case kInvalidArgument:
      return "invalid argument";
    case kNotSupported:
      return "not supported";
    case kNoPermission:
      return "no permission";
    case kNotFound:
      return "not found";
    case kInsufficientSize:
      return "insufficient size";
    case kDriverNotLoaded:
      return "driver not loaded";
    case kTimeout:
      return "timeout";
    case kLibraryNotFound:
      return "library not found";
    case kFunctionNotFound:
      return "function not found";
    case kGpuIsLost:
      return "GPU is lost";
    case kResetRequired:
      return "GPU requires reset";
    case kLibRmVersionMismatch:
      return "driver/library version mismatch";
    case kArgumentVersionMismatch:
      return "argument version mismatch";
    default:
      return "unknown error";
  }
}

/// The remedy if NVML cannot be initialised.
std::string_view remedy(int code) {
  switch (code) {
    case kDriverNotLoaded:
      return "load the driver (modprobe nvidia; nvidia-smi shows whether it works) and, in a container, pass the GPU "
             "in";
    case kLibRmVersionMismatch:
      return "the driver was updated under the running kernel module: reboot, or unload and load the nvidia modules";
    case kNoPermission:
      return "the user may not open /dev/nvidiactl: check its permissions or run as root";
    case kLibraryNotFound:
      return "an NVIDIA library is missing: reinstall the driver";
    default:
      return "nvidia-smi shows whether the driver works";
  }
}

}  // namespace

std::string describe(int code) {
  return fmt::format("{} ({})", meaning(code), code);
}

/// Entry points; null if the library lacks one. If there are several versions, the newest comes first.
struct NvmlLibrary::Symbols {
  int (*init)() = nullptr;
  int (*shutdown)() = nullptr;
  int (*count)(unsigned*) = nullptr;
  int (*by_index)(unsigned, Device*) = nullptr;
  int (*uuid)(Device, char*, unsigned) = nullptr;
  int (*name)(Device, char*, unsigned) = nullptr;
  int (*pci)(Device, PciInfo*) = nullptr;
  int (*memory_v2)(Device, MemoryV2*) = nullptr;
  int (*memory)(Device, Memory*) = nullptr;
  int (*memory_limits)(Device, MemoryLimits*) = nullptr;
  int (*utilization)(Device, Utilization*) = nullptr;
  int (*temperature)(Device, int, unsigned*) = nullptr;
  int (*power)(Device, unsigned*) = nullptr;
  int (*power_limit)(Device, unsigned*) = nullptr;
  int (*clock)(Device, int, unsigned*) = nullptr;
  int (*fan)(Device, unsigned*) = nullptr;
  int (*pcie)(Device, int, unsigned*) = nullptr;
  int (*process_utilization)(Device, ProcessUtilization*, unsigned*, unsigned long long) = nullptr;
  int (*clock_reasons)(Device, unsigned long long*) = nullptr;
  int (*ecc_mode)(Device, int*, int*) = nullptr;
  int (*ecc_errors)(Device, int, int, unsigned long long*) = nullptr;
  int (*row_remaps)(Device, unsigned*, unsigned*, unsigned*, unsigned*) = nullptr;
  int (*retirement_pending)(Device, int*) = nullptr;
  int (*mig_mode)(Device, unsigned*, unsigned*) = nullptr;
  int (*max_mig)(Device, unsigned*) = nullptr;
  int (*mig_by_index)(Device, unsigned, Device*) = nullptr;
  int (*gpu_instance)(Device, unsigned*) = nullptr;
  int (*compute_instance)(Device, unsigned*) = nullptr;
  int (*event_set_create)(EventSet*) = nullptr;
  int (*event_set_free)(EventSet) = nullptr;
  int (*event_types)(Device, unsigned long long*) = nullptr;
  int (*register_events)(Device, unsigned long long, EventSet) = nullptr;
  int (*event_wait)(EventSet, EventData*, unsigned) = nullptr;
  std::array<std::vector<ProcessCallChoice>, 3> processes;  ///< by ProcessList

  template <class Function>
  static void find(void* handle, Function& into, std::initializer_list<const char*> names) {
    for (const char* name : names)
      if (void* symbol = ::dlsym(handle, name)) {
        into = reinterpret_cast<Function>(symbol);
        return;
      }
  }

  void find_processes(void* handle, ProcessList list, const std::string& base) {
    constexpr std::array<std::pair<const char*, int>, 3> kVersions = {{{"_v3", 3}, {"_v2", 2}, {"", 1}}};
    for (const auto& [suffix, version] : kVersions)
      if (void* symbol = ::dlsym(handle, (base + suffix).c_str()))
        processes[static_cast<std::size_t>(list)].push_back({reinterpret_cast<ProcessCall>(symbol), version});
  }

  explicit Symbols(void* handle) {
    find(handle, init, {"nvmlInit_v2", "nvmlInit"});
    find(handle, shutdown, {"nvmlShutdown"});
    find(handle, count, {"nvmlDeviceGetCount_v2", "nvmlDeviceGetCount"});
    find(handle, by_index, {"nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetHandleByIndex"});
    find(handle, uuid, {"nvmlDeviceGetUUID"});
    find(handle, name, {"nvmlDeviceGetName"});
    find(handle, pci, {"nvmlDeviceGetPciInfo_v3", "nvmlDeviceGetPciInfo_v2", "nvmlDeviceGetPciInfo"});
    find(handle, memory_v2, {"nvmlDeviceGetMemoryInfo_v2"});
    find(handle, memory, {"nvmlDeviceGetMemoryInfo"});
    find(handle, memory_limits, {"nvmlDeviceGetMemoryLimits_v1"});
    find(handle, utilization, {"nvmlDeviceGetUtilizationRates"});
    find(handle, temperature, {"nvmlDeviceGetTemperature"});
    find(handle, power, {"nvmlDeviceGetPowerUsage"});
    find(handle, power_limit, {"nvmlDeviceGetEnforcedPowerLimit"});
    find(handle, clock, {"nvmlDeviceGetClockInfo"});
    find(handle, fan, {"nvmlDeviceGetFanSpeed"});
    find(handle, pcie, {"nvmlDeviceGetPcieThroughput"});
    find(handle, process_utilization, {"nvmlDeviceGetProcessUtilization"});
    find(handle, clock_reasons,
         {"nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons"});
    find(handle, ecc_mode, {"nvmlDeviceGetEccMode"});
    find(handle, ecc_errors, {"nvmlDeviceGetTotalEccErrors"});
    find(handle, row_remaps, {"nvmlDeviceGetRemappedRows"});
    find(handle, retirement_pending, {"nvmlDeviceGetRetiredPagesPendingStatus"});
    find(handle, mig_mode, {"nvmlDeviceGetMigMode"});
    find(handle, max_mig, {"nvmlDeviceGetMaxMigDeviceCount"});
    find(handle, mig_by_index, {"nvmlDeviceGetMigDeviceHandleByIndex"});
    find(handle, gpu_instance, {"nvmlDeviceGetGpuInstanceId"});
    find(handle, compute_instance, {"nvmlDeviceGetComputeInstanceId"});
    find(handle, event_set_create, {"nvmlEventSetCreate"});
    find(handle, event_set_free, {"nvmlEventSetFree"});
    find(handle, event_types, {"nvmlDeviceGetSupportedEventTypes"});
    find(handle, register_events, {"nvmlDeviceRegisterEvents"});
    find(handle, event_wait, {"nvmlEventSetWait_v2", "nvmlEventSetWait"});
    find_processes(handle, ProcessList::compute, "nvmlDeviceGetComputeRunningProcesses");
    find_processes(handle, ProcessList::graphics, "nvmlDeviceGetGraphicsRunningProcesses");
    find_processes(handle, ProcessList::mps, "nvmlDeviceGetMPSComputeRunningProcesses");
  }

  [[nodiscard]] bool sufficient() const {
    return init != nullptr && shutdown != nullptr && count != nullptr && by_index != nullptr && uuid != nullptr &&
           (memory_v2 != nullptr || memory != nullptr);
  }
};

NvmlLibrary::NvmlLibrary(void* handle, std::unique_ptr<Symbols> symbols)
    : handle_(handle), symbols_(std::move(symbols)) {}

NvmlLibrary::~NvmlLibrary() {
  if (events_ != nullptr && symbols_->event_set_free != nullptr) symbols_->event_set_free(events_);
  if (initialised_) symbols_->shutdown();
  ::dlclose(handle_);
}

Result<std::unique_ptr<NvmlLibrary>> NvmlLibrary::open(const std::string& path) {
  if (auto trusted = trusted_library(path); !trusted) return fail(trusted.error());
  void* handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* reason = ::dlerror();
    return fail(
        fmt::format("no NVIDIA driver library: {}; install the NVIDIA driver, or in a container pass the GPU "
                    "in (docker run --gpus all), or name the library with sources.nvml-library",
                    reason != nullptr ? reason : path));
  }
  auto library = std::unique_ptr<NvmlLibrary>(new NvmlLibrary(handle, std::make_unique<Symbols>(handle)));
  if (!library->symbols_->sufficient())
    return fail(
        fmt::format("{} lacks the NVML functions that every driver since 2013 has: it is not NVIDIA's library; "
                    "set sources.nvml-library to the right one",
                    path));
  if (const int code = library->symbols_->init(); code != kSuccess)
    return fail(fmt::format("NVML does not start: {}; {}", describe(code), remedy(code)));
  library->initialised_ = true;
  return library;
}

namespace {

/// Calls `function` with a pointer to its result as the last argument; kFunctionNotFound if the library lacks it.
template <class T, class Function, class... Arguments>
Answer<T> ask(Function function, Arguments... arguments) {
  Answer<T> answer;
  answer.code = function != nullptr ? function(arguments..., &answer.value) : kFunctionNotFound;
  return answer;
}

template <class Function>
Answer<std::string> ask_text(Function function, Device device) {
  if (function == nullptr) return {kFunctionNotFound, {}};
  std::array<char, kTextBytes> text{};
  const int code = function(device, text.data(), static_cast<unsigned>(text.size()));
  text.back() = '\0';
  return {code, code == kSuccess ? std::string(text.data()) : std::string()};
}

}  // namespace

Answer<unsigned> NvmlLibrary::device_count() {
  return ask<unsigned>(symbols_->count);
}
Answer<Device> NvmlLibrary::device_by_index(unsigned index) {
  return ask<Device>(symbols_->by_index, index);
}
Answer<std::string> NvmlLibrary::uuid(Device device) {
  return ask_text(symbols_->uuid, device);
}
Answer<std::string> NvmlLibrary::name(Device device) {
  return ask_text(symbols_->name, device);
}
Answer<MemoryLimit> NvmlLibrary::memory_limit(Device device, const std::string& cgroup_folder) {
  if (symbols_->memory_limits == nullptr) return {kFunctionNotFound, {}};
  MemoryLimits limits{cgroup_folder.c_str(), 0, kNoMemoryLimit, 0};
  const int code = symbols_->memory_limits(device, &limits);
  const auto known = [](std::uint64_t bytes) { return bytes == kNoMemoryLimit ? 0 : bytes; };
  const MemoryLimit out{known(limits.hard), known(limits.soft)};
  if (code == kSuccess && out.hard_bytes == 0 && out.soft_bytes == 0) return {kNotFound, {}};
  return {code, out};
}
Answer<Utilization> NvmlLibrary::utilization(Device device) {
  return ask<Utilization>(symbols_->utilization, device);
}

Answer<unsigned> NvmlLibrary::temperature_celsius(Device device) {
  return ask<unsigned>(symbols_->temperature, device, kTemperatureOfGpu);
}
Answer<unsigned> NvmlLibrary::power_milliwatts(Device device) {
  return ask<unsigned>(symbols_->power, device);
}
Answer<unsigned> NvmlLibrary::power_limit_milliwatts(Device device) {
  return ask<unsigned>(symbols_->power_limit, device);
}
Answer<unsigned> NvmlLibrary::sm_clock_megahertz(Device device) {
  return ask<unsigned>(symbols_->clock, device, kClockOfMultiprocessors);
}
Answer<unsigned> NvmlLibrary::fan_percent(Device device) {
  return ask<unsigned>(symbols_->fan, device);
}
Answer<unsigned> NvmlLibrary::received_kilobytes_per_s(Device device) {
  return ask<unsigned>(symbols_->pcie, device, kPcieReceived);
}
int NvmlLibrary::process_utilization(Device device, std::uint64_t since_us, std::vector<ProcessUtilization>& out) {
  constexpr std::size_t kFirstRoom = 64;
  if (symbols_->process_utilization == nullptr) return kFunctionNotFound;
  out.resize(std::max(kFirstRoom, out.capacity()));
  int code = kInsufficientSize;
  for (int tries = 0; tries < 3 && code == kInsufficientSize; ++tries) {
    auto count = static_cast<unsigned>(out.size());
    code = symbols_->process_utilization(device, out.data(), &count, since_us);
    const bool fits = count <= out.size();
    if (code == kInsufficientSize && fits && count != 0) break;  // it does not report how many there are
    out.resize(code == kSuccess ? std::min<std::size_t>(count, out.size()) : std::size_t{count} + kFirstRoom);
  }
  if (code != kSuccess) out.clear();
  return code;
}
Answer<std::uint64_t> NvmlLibrary::clock_reasons(Device device) {
  const auto answer = ask<unsigned long long>(symbols_->clock_reasons, device);
  return {answer.code, answer.value};
}
Answer<bool> NvmlLibrary::ecc_enabled(Device device) {
  if (symbols_->ecc_mode == nullptr) return {kFunctionNotFound, false};
  int current = 0;
  int pending = 0;
  const int code = symbols_->ecc_mode(device, &current, &pending);
  return {code, current == 1};
}
Answer<std::uint64_t> NvmlLibrary::ecc_errors(Device device, EccKind kind, EccCounter counter) {
  const auto answer =
      ask<unsigned long long>(symbols_->ecc_errors, device, static_cast<int>(kind), static_cast<int>(counter));
  return {answer.code, answer.value};
}
Answer<RowRemaps> NvmlLibrary::row_remaps(Device device) {
  if (symbols_->row_remaps == nullptr) return {kFunctionNotFound, {}};
  RowRemaps rows;
  unsigned pending = 0;
  unsigned failed = 0;
  const int code = symbols_->row_remaps(device, &rows.corrected, &rows.uncorrected, &pending, &failed);
  rows.pending = pending != 0;
  rows.failed = failed != 0;
  return {code, rows};
}
Answer<bool> NvmlLibrary::page_retirement_pending(Device device) {
  const auto answer = ask<int>(symbols_->retirement_pending, device);
  return {answer.code, answer.value == 1};
}

Answer<unsigned> NvmlLibrary::max_mig_devices(Device device) {
  return ask<unsigned>(symbols_->max_mig, device);
}
Answer<Device> NvmlLibrary::mig_device(Device device, unsigned index) {
  return ask<Device>(symbols_->mig_by_index, device, index);
}
Answer<std::uint32_t> NvmlLibrary::gpu_instance_id(Device mig) {
  return ask<std::uint32_t>(symbols_->gpu_instance, mig);
}
Answer<std::uint32_t> NvmlLibrary::compute_instance_id(Device mig) {
  return ask<std::uint32_t>(symbols_->compute_instance, mig);
}

Answer<std::string> NvmlLibrary::pci_bus_id(Device device) {
  PciInfo pci{};
  const int code = symbols_->pci != nullptr ? symbols_->pci(device, &pci) : static_cast<int>(kFunctionNotFound);
  if (code != kSuccess) return {code, {}};
  pci.bus_id[sizeof pci.bus_id - 1] = '\0';
  pci.bus_id_legacy[sizeof pci.bus_id_legacy - 1] = '\0';
  return {code, pci.bus_id[0] != '\0' ? pci.bus_id : pci.bus_id_legacy};
}

Answer<MemoryReading> NvmlLibrary::memory(Device device) {
  if (symbols_->memory_v2 != nullptr) {
    MemoryV2 memory{};
    memory.version = kMemoryV2Version;
    const int code = symbols_->memory_v2(device, &memory);
    if (code == kSuccess) return {code, {memory.total, memory.used, memory.reserved}};
    const bool absent = code == kFunctionNotFound || code == kArgumentVersionMismatch;
    if (!absent || symbols_->memory == nullptr) return {code, {}};
    symbols_->memory_v2 = nullptr;
  }
  Memory memory{};
  const int code = symbols_->memory(device, &memory);
  return {code, {memory.total, memory.used, std::nullopt}};
}

Answer<MigMode> NvmlLibrary::mig_mode(Device device) {
  if (symbols_->mig_mode == nullptr) return {kFunctionNotFound, {}};
  unsigned current = 0;
  unsigned pending = 0;
  const int code = symbols_->mig_mode(device, &current, &pending);
  return {code, {code == kSuccess && current == 1}};
}

ProcessCallChoice NvmlLibrary::process_call(ProcessList list) const {
  const auto& calls = symbols_->processes[static_cast<std::size_t>(list)];
  return calls.empty() ? ProcessCallChoice{} : calls.front();
}

bool NvmlLibrary::strike_process_call(ProcessList list) {
  auto& calls = symbols_->processes[static_cast<std::size_t>(list)];
  if (!calls.empty()) calls.erase(calls.begin());
  return !calls.empty();
}

std::uint64_t NvmlLibrary::listen(Device device, std::uint64_t types) {
  const Symbols& s = *symbols_;
  if (s.event_set_create == nullptr || s.event_types == nullptr || s.register_events == nullptr ||
      s.event_wait == nullptr)
    return 0;
  if (events_ == nullptr && s.event_set_create(&events_) != kSuccess) {
    events_ = nullptr;
    return 0;
  }
  unsigned long long supported = 0;
  if (s.event_types(device, &supported) != kSuccess || (supported & types) == 0) return 0;
  return s.register_events(device, supported & types, events_) == kSuccess ? supported & types : 0;
}

std::optional<EventData> NvmlLibrary::next_event() {
  if (events_ == nullptr) return std::nullopt;
  EventData event{};
  if (symbols_->event_wait(events_, &event, 0) != kSuccess) return std::nullopt;
  return event;
}

}  // namespace vramtrack::nvml
