// A fake libnvidia-ml.so.1: NVML's binary interface over a scenario file. See README.md. Deliberately shares no
// declaration with vramtrack's own nvml_abi.hpp.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>

#include "live.hpp"
#include "scenario.hpp"

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace {

using fake_nvml::Device;
using fake_nvml::Process;

enum { kOk = 0, kUninitialised = 1, kInvalid = 2, kUnsupported = 3, kAbsent = 6, kTooSmall = 7, kTimedOut = 10 };
constexpr int kWrongVersion = 25;

struct Entry16 {
  unsigned pid;
  unsigned long long used;
};
struct Entry24 {
  unsigned pid;
  unsigned long long used;
  unsigned gpu_instance, compute_instance;
};
struct Entry32 {
  unsigned pid;
  unsigned long long used;
  unsigned gpu_instance, compute_instance;
  unsigned long long protected_bytes;
};
static_assert(sizeof(Entry16) == 16 && sizeof(Entry24) == 24 && sizeof(Entry32) == 32);
#ifdef FAKE_NVML_WIDE_ENTRIES
using EntryV3 = Entry32;
#else
using EntryV3 = Entry24;
#endif

fake_nvml::Scenario scenario;
int initialised = 0;
std::uint64_t counted_tick = 0;
std::uint64_t xids_told_before = 0;

constexpr const char* kTickVariable = "VRAMTRACK_FAKE_NVML_TICK";
constexpr const char* kStateVariable = "VRAMTRACK_FAKE_NVML_STATE";

std::uint64_t number_from(const char* variable) {
  const char* text = std::getenv(variable);
  return text != nullptr ? std::strtoull(text, nullptr, 10) : 0;
}

std::uint64_t tick() {
  return scenario.clock_from_environment ? number_from(kTickVariable) : counted_tick;
}

/// The tick and the reported events outlive the library in the environment: it is unloaded and loaded again.
void keep_state() {
  const std::string text = std::to_string(counted_tick) + " " + std::to_string(xids_told_before);
  setenv(kStateVariable, text.c_str(), 1);
}
void recall_state() {
  const char* text = std::getenv(kStateVariable);
  if (text == nullptr) return;
  char* rest = nullptr;
  counted_tick = std::strtoull(text, &rest, 10);
  xids_told_before = std::strtoull(rest, nullptr, 10);
}

/// The scripted failure of `call` on `gpu` now, else kOk.
int failure(const std::string& call, const Device* device, bool includes_any = true) {
  for (const auto& f : scenario.failures) {
    const bool this_call = f.call == call || (includes_any && f.call == "any");
    const bool this_gpu = !f.gpu || (device != nullptr && *f.gpu == device->index);
    if (this_call && this_gpu && f.span.holds(tick())) return f.code;
  }
  return kOk;
}

int ready(const std::string& call, const Device* device) {
  return initialised == 0 ? kUninitialised : failure(call, device);
}

bool on_instance(const Process& process, const Device& instance) {
  return process.gpu_instance == instance.gpu_instance && process.compute_instance == instance.compute_instance;
}

/// For a live device: a list of this thread's own, valid until it asks again.
const std::vector<Process>& processes_of(const Device& device) {
  const Device& gpu = device.parent != nullptr ? *device.parent : device;
  if (!gpu.live && gpu.holders.empty()) return gpu.processes;
  thread_local std::vector<Process> now;
  std::uint64_t left_bytes = 0;
  now = gpu.live ? fake_nvml::live_processes(gpu) : fake_nvml::file_processes(gpu, left_bytes);
  now.insert(now.end(), gpu.processes.begin(), gpu.processes.end());
  return now;
}

bool listed(const Process& process, const Device& device) {
  return process.span.holds(tick()) && (device.parent == nullptr || on_instance(process, device));
}

std::uint64_t used_bytes(const Device& device) {
  std::uint64_t sum = device.used.at(tick());
  if (!device.holders.empty()) static_cast<void>(fake_nvml::file_processes(device, sum));
  for (const Process& process : processes_of(device)) {
    if (!listed(process, device)) continue;
    const std::uint64_t used = process.used.at(tick());
    if (used != fake_nvml::kNone) sum += used;
  }
  return sum;
}

/// A second question for memory to the same device begins the next tick.
void count_tick(Device& device) {
  if (device.asked_in_tick == counted_tick) {
    ++counted_tick;
    for (const fake_nvml::Note& note : scenario.notes)
      if (note.at == counted_tick) std::ofstream(note.file).put('\n');
  }
  device.asked_in_tick = counted_tick;
}

template <class Entry>
void fill(Entry& entry, const Process& process) {
  entry.pid = process.pid;
  entry.used = process.used.at(tick());
  if constexpr (sizeof(Entry) > sizeof(Entry16)) {
    entry.gpu_instance = process.gpu_instance;
    entry.compute_instance = process.compute_instance;
  }
  if constexpr (sizeof(Entry) == sizeof(Entry32)) entry.protected_bytes = 0;
}

template <class Entry>
int list_processes(void* handle, unsigned* count, void* out, const char* name, const char* version, unsigned list) {
  auto* device = static_cast<Device*>(handle);
  if (device == nullptr || count == nullptr) return kInvalid;
  if (const int code = ready(name, device); code != kOk) return code;
  if (const int code = failure(std::string(name) + version, device); code != kOk) return code;
  if (device->parent == nullptr)
    if (const int code = failure(std::string("parent_") + name, device, false); code != kOk) return code;
  const std::vector<Process>& processes = processes_of(*device);
  unsigned needed = 0;
  for (const Process& process : processes)
    if (listed(process, *device) && (process.lists & list) != 0) ++needed;
  const unsigned room = *count;
  *count = needed;
  if (needed > room) return kTooSmall;
  auto* entry = static_cast<Entry*>(out);
  for (const Process& process : processes)
    if (listed(process, *device) && (process.lists & list) != 0) fill(*entry++, process);
  return kOk;
}

int give_text(const std::string& text, char* out, unsigned length) {
  if (text.size() + 1 > length) return kTooSmall;
  std::memcpy(out, text.c_str(), text.size() + 1);
  return kOk;
}

Device* as_device(void* handle) {
  return static_cast<Device*>(handle);
}

void forget_scenario() {
  for (Device* gpu : scenario.gpus) {
    for (Device* instance : gpu->instances) delete instance;
    delete gpu;
  }
  scenario = {};
}

}  // namespace

/// A program may have several users of NVML: PyTorch and vramtrack. The last that leaves closes it.
EXPORT int nvmlInit_v2() {
  if (initialised > 0) {
    ++initialised;
    return kOk;
  }
  scenario = fake_nvml::read_scenario(std::getenv("VRAMTRACK_FAKE_NVML"));
  recall_state();
  if (const int code = failure("init", nullptr, false); code != kOk) {
    ++counted_tick;
    keep_state();
    forget_scenario();
    return code;
  }
  ++initialised;
  return kOk;
}
EXPORT int nvmlInit() {
  return nvmlInit_v2();
}

EXPORT int nvmlShutdown() {
  if (initialised == 0) return kUninitialised;
  if (--initialised > 0) return kOk;
  keep_state();
  forget_scenario();
  return kOk;
}

EXPORT int nvmlDeviceGetCount_v2(unsigned* count) {
  if (const int code = ready("count", nullptr); code != kOk) return code;
  *count = static_cast<unsigned>(scenario.gpus.size());
  return kOk;
}

EXPORT int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** out) {
  if (initialised == 0) return kUninitialised;
  if (index >= scenario.gpus.size()) return kInvalid;
  if (const int code = failure("handle", scenario.gpus[index]); code != kOk) return code;
  *out = scenario.gpus[index];
  return kOk;
}

EXPORT int nvmlDeviceGetUUID(void* device, char* out, unsigned length) {
  if (const int code = ready("uuid", as_device(device)); code != kOk) return code;
  return give_text(as_device(device)->uuid, out, length);
}

EXPORT int nvmlDeviceGetName(void* device, char* out, unsigned length) {
  if (const int code = ready("name", as_device(device)); code != kOk) return code;
  return give_text(as_device(device)->name, out, length);
}

struct Pci {
  char legacy[16];
  unsigned domain, bus, device, id, subsystem;
  char text[32];
};
static_assert(sizeof(Pci) == 68);

EXPORT int nvmlDeviceGetPciInfo_v2(void* device, Pci* pci) {
  if (const int code = ready("pci", as_device(device)); code != kOk) return code;
  // "00000000:1D:00.0" had a domain of four digits then.
  const std::string& text = as_device(device)->pci;
  std::memset(pci->legacy, 0, sizeof pci->legacy);
  if (text.size() == 16) std::memcpy(pci->legacy, text.c_str() + 4, 12);
  return kOk;
}

EXPORT int nvmlDeviceGetMemoryInfo(void* device, unsigned long long* total_free_used) {
  if (initialised == 0) return kUninitialised;
  count_tick(*as_device(device));
  if (const int code = failure("memory", as_device(device)); code != kOk) return code;
  const Device& d = *as_device(device);
  total_free_used[0] = d.total.at(tick());
  total_free_used[2] = used_bytes(d) + d.reserved;
  total_free_used[1] = d.total.at(tick()) - total_free_used[2];
  return kOk;
}

EXPORT int nvmlDeviceGetUtilizationRates(void* device, unsigned* gpu_and_memory) {
  if (const int code = ready("utilization", as_device(device)); code != kOk) return code;
  const Device& d = *as_device(device);
  if (!d.gpu_percent || !d.instances.empty()) return kUnsupported;
  gpu_and_memory[0] = *d.gpu_percent;
  gpu_and_memory[1] = d.memory_percent.value_or(0);
  return kOk;
}

EXPORT int nvmlDeviceGetComputeRunningProcesses(void* device, unsigned* count, void* out) {
  return list_processes<Entry16>(device, count, out, "compute", "_v1", 1);
}
EXPORT int nvmlDeviceGetGraphicsRunningProcesses(void* device, unsigned* count, void* out) {
  return list_processes<Entry16>(device, count, out, "graphics", "_v1", 2);
}

EXPORT int nvmlEventSetCreate(void** out) {
  static int set = 0;
  if (initialised == 0) return kUninitialised;
  *out = &set;
  return kOk;
}
EXPORT int nvmlEventSetFree(void*) {
  return kOk;
}
EXPORT int nvmlDeviceGetSupportedEventTypes(void*, unsigned long long* types) {
  *types = 0x1FULL;
  return kOk;
}
EXPORT int nvmlDeviceRegisterEvents(void* device, unsigned long long, void*) {
  return ready("events", as_device(device));
}

/// What the scenario says of `key` at this tick; kUnsupported when it says nothing, or "none".
int health(const char* call, void* handle, const char* key, unsigned long long& out) {
  if (const int code = ready(call, as_device(handle)); code != kOk) return code;
  const Device& device = *as_device(handle);
  const auto it = device.health.find(key);
  if (it == device.health.end()) return kUnsupported;
  const std::uint64_t value = it->second.at(tick());
  if (value == fake_nvml::kNone) return kUnsupported;
  out = value;
  return kOk;
}

EXPORT int nvmlDeviceGetTemperature(void* device, int sensor, unsigned* celsius) {
  if (sensor != 0) return kInvalid;
  unsigned long long value = 0;
  const int code = health("temperature", device, "temp", value);
  if (code == kOk) *celsius = static_cast<unsigned>(value);
  return code;
}

namespace {
int instrument(const char* call, void* device, const char* key, unsigned* out) {
  unsigned long long value = 0;
  const int code = health(call, device, key, value);
  if (code == kOk) *out = static_cast<unsigned>(value);
  return code;
}
}  // namespace

EXPORT int nvmlDeviceGetPowerUsage(void* device, unsigned* milliwatts) {
  return instrument("power", device, "power", milliwatts);
}
EXPORT int nvmlDeviceGetEnforcedPowerLimit(void* device, unsigned* milliwatts) {
  return instrument("power_limit", device, "power_limit", milliwatts);
}
EXPORT int nvmlDeviceGetClockInfo(void* device, int clock, unsigned* megahertz) {
  if (clock != 1) return kInvalid;  // the multiprocessors'
  return instrument("clock", device, "clock", megahertz);
}
EXPORT int nvmlDeviceGetFanSpeed(void* device, unsigned* percent) {
  return instrument("fan", device, "fan", percent);
}
EXPORT int nvmlDeviceGetPcieThroughput(void* device, int counter, unsigned* kilobytes_per_s) {
  if (counter != 1) return kInvalid;  // what is received
  return instrument("pcie_rx", device, "pcie_rx", kilobytes_per_s);
}

struct EventV1 {
  void* device;
  unsigned long long type, data;
};

EXPORT int nvmlEventSetWait(void*, EventV1* event, unsigned) {
  if (const int code = ready("events", nullptr); code != kOk) return code;
  for (std::size_t i = xids_told_before; i < scenario.xids.size(); ++i) {
    const auto& xid = scenario.xids[i];
    if (xid.at > tick()) return kTimedOut;
    xids_told_before = i + 1;
    event->device = scenario.gpus.at(xid.gpu);
    event->type = 0x8;
    event->data = xid.code;
    return kOk;
  }
  return kTimedOut;
}

#if FAKE_NVML_LEVEL >= 2
struct Busy {
  unsigned pid;
  unsigned long long time_us;
  unsigned sm, memory, encoder, decoder;
};
static_assert(sizeof(Busy) == 32);
/// One sample a tick of each process that has an amount; the tick is its second.
EXPORT int nvmlDeviceGetProcessUtilization(void* handle, Busy* out, unsigned* count, unsigned long long since_us) {
  if (const int code = ready("process_utilization", as_device(handle)); code != kOk) return code;
  const Device& device = *as_device(handle);
  if (!device.instances.empty()) return kUnsupported;
  const unsigned long long now_us = (tick() + 1) * 1'000'000;
  unsigned needed = 0;
  for (const Process& process : device.processes)
    if (listed(process, device) && process.sm && process.sm->at(tick()) != fake_nvml::kNone) ++needed;
  if (needed == 0 || now_us <= since_us) {
    *count = 0;
    return kAbsent;
  }
  const unsigned room = *count;
  *count = needed;
  if (out == nullptr || needed > room) return kTooSmall;
  for (const Process& process : device.processes)
    if (listed(process, device) && process.sm && process.sm->at(tick()) != fake_nvml::kNone)
      *out++ = {process.pid, now_us, static_cast<unsigned>(process.sm->at(tick())), 0, 0, 0};
  return kOk;
}
EXPORT int nvmlDeviceGetCurrentClocksThrottleReasons(void* device, unsigned long long* reasons) {
  return health("throttle", device, "throttle", *reasons);
}
EXPORT int nvmlDeviceGetEccMode(void* device, int* current, int* pending) {
  unsigned long long value = 0;
  const int code = health("ecc", device, "ecc", value);
  if (code == kOk) *current = *pending = value != 0 ? 1 : 0;
  return code;
}
EXPORT int nvmlDeviceGetTotalEccErrors(void* device, int kind, int counter, unsigned long long* count) {
  constexpr const char* kKeys[2][2] = {{"corrected", "corrected_total"}, {"uncorrected", "uncorrected_total"}};
  if (kind < 0 || kind > 1 || counter < 0 || counter > 1) return kInvalid;
  return health("ecc_errors", device, kKeys[kind][counter], *count);
}
EXPORT int nvmlDeviceGetRetiredPagesPendingStatus(void* device, int* pending) {
  unsigned long long value = 0;
  const int code = health("pages", device, "retire_pending", value);
  if (code == kOk) *pending = value != 0 ? 1 : 0;
  return code;
}
EXPORT int nvmlDeviceGetPciInfo_v3(void* device, Pci* pci) {
  const int code = nvmlDeviceGetPciInfo_v2(device, pci);
  if (code == kOk) give_text(as_device(device)->pci, pci->text, sizeof pci->text);
  return code;
}

EXPORT int nvmlDeviceGetComputeRunningProcesses_v2(void* device, unsigned* count, void* out) {
  return list_processes<Entry24>(device, count, out, "compute", "_v2", 1);
}
EXPORT int nvmlDeviceGetGraphicsRunningProcesses_v2(void* device, unsigned* count, void* out) {
  return list_processes<Entry24>(device, count, out, "graphics", "_v2", 2);
}
EXPORT int nvmlDeviceGetMPSComputeRunningProcesses(void* device, unsigned* count, void* out) {
  return list_processes<Entry16>(device, count, out, "mps", "_v1", 4);
}
EXPORT int nvmlDeviceGetMPSComputeRunningProcesses_v2(void* device, unsigned* count, void* out) {
  return list_processes<Entry24>(device, count, out, "mps", "_v2", 4);
}

EXPORT int nvmlDeviceGetMigMode(void* device, unsigned* current, unsigned* pending) {
  if (const int code = ready("mig", as_device(device)); code != kOk) return code;
  *current = *pending = as_device(device)->instances.empty() ? 0 : 1;
  return kOk;
}
EXPORT int nvmlDeviceGetMaxMigDeviceCount(void* device, unsigned* count) {
  if (const int code = ready("mig", as_device(device)); code != kOk) return code;
  *count = 7;
  return kOk;
}
EXPORT int nvmlDeviceGetMigDeviceHandleByIndex(void* device, unsigned index, void** out) {
  if (const int code = ready("mig", as_device(device)); code != kOk) return code;
  const auto& instances = as_device(device)->instances;
  if (index >= instances.size()) return kAbsent;
  *out = instances[index];
  return kOk;
}
EXPORT int nvmlDeviceGetGpuInstanceId(void* device, unsigned* id) {
  *id = as_device(device)->gpu_instance;
  return as_device(device)->parent != nullptr ? kOk : kInvalid;
}
EXPORT int nvmlDeviceGetComputeInstanceId(void* device, unsigned* id) {
  *id = as_device(device)->compute_instance;
  return as_device(device)->parent != nullptr ? kOk : kInvalid;
}

struct EventV2 : EventV1 {
  unsigned gpu_instance, compute_instance;
};
static_assert(sizeof(EventV2) == 32);
EXPORT int nvmlEventSetWait_v2(void* set, EventV2* event, unsigned timeout_ms) {
  event->gpu_instance = event->compute_instance = ~0U;
  return nvmlEventSetWait(set, event, timeout_ms);
}
#endif

#if FAKE_NVML_LEVEL >= 3
EXPORT int nvmlDeviceGetCurrentClocksEventReasons(void* device, unsigned long long* reasons) {
  return nvmlDeviceGetCurrentClocksThrottleReasons(device, reasons);
}
EXPORT int nvmlDeviceGetRemappedRows(void* device, unsigned* corrected, unsigned* uncorrected, unsigned* pending,
                                     unsigned* failed) {
  unsigned long long rows = 0;
  unsigned long long waits = 0;
  unsigned long long fails = 0;
  const int code = health("rows", device, "remapped", rows);
  if (code != kOk) return code;
  health("rows", device, "repair_pending", waits);
  health("rows", device, "repair_failed", fails);
  *corrected = static_cast<unsigned>(rows);
  *uncorrected = 0;
  *pending = waits != 0 ? 1 : 0;
  *failed = fails != 0 ? 1 : 0;
  return kOk;
}

struct MemoryV2 {
  unsigned version;
  unsigned long long total, reserved, free, used;
};
static_assert(sizeof(MemoryV2) == 40);

EXPORT int nvmlDeviceGetMemoryInfo_v2(void* device, MemoryV2* memory) {
  if (initialised == 0) return kUninitialised;
  if (memory->version != (sizeof(MemoryV2) | 2U << 24U)) return kWrongVersion;
  if (const int code = failure("memory_v2", as_device(device), false); code != kOk) return code;
  count_tick(*as_device(device));
  if (const int code = failure("memory", as_device(device)); code != kOk) return code;
  const Device& d = *as_device(device);
  memory->total = d.total.at(tick());
  memory->reserved = d.reserved;
  memory->used = used_bytes(d);
  memory->free = d.total.at(tick()) - memory->used - d.reserved;
  return kOk;
}

struct MemoryLimitsV1 {
  const char* name_space;
  unsigned long long soft, hard, used;
};
static_assert(sizeof(MemoryLimitsV1) == 32);

EXPORT int nvmlDeviceGetMemoryLimits_v1(void* device, MemoryLimitsV1* limits) {
  if (initialised == 0) return kUninitialised;
  if (const int code = failure("limits", as_device(device)); code != kOk) return code;
  const std::string folder = limits->name_space;
  for (const auto& limit : as_device(device)->limits) {
    const std::uint64_t hard = limit.hard.at(tick());
    if (folder.size() < limit.cgroup.size() || folder.substr(folder.size() - limit.cgroup.size()) != limit.cgroup)
      continue;
    limits->soft = limit.soft.at(tick());
    limits->hard = hard;
    limits->used = 0;
    return kOk;
  }
  return kAbsent;
}

EXPORT int nvmlDeviceGetComputeRunningProcesses_v3(void* device, unsigned* count, void* out) {
  return list_processes<EntryV3>(device, count, out, "compute", "_v3", 1);
}
EXPORT int nvmlDeviceGetGraphicsRunningProcesses_v3(void* device, unsigned* count, void* out) {
  return list_processes<EntryV3>(device, count, out, "graphics", "_v3", 2);
}
EXPORT int nvmlDeviceGetMPSComputeRunningProcesses_v3(void* device, unsigned* count, void* out) {
  return list_processes<EntryV3>(device, count, out, "mps", "_v3", 4);
}
#endif
