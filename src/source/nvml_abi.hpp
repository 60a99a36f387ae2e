// The part of NVML's binary interface that vramtrack calls, declared here so that building needs no NVML header.
// Layouts: docs/formats/nvml.md. This file holds only layouts and numbers; nvml_library.hpp makes the calls.
#pragma once

#include <cstddef>
#include <cstdint>

namespace vramtrack::nvml {

using Device = void*;    ///< nvmlDevice_t, opaque
using EventSet = void*;  ///< nvmlEventSet_t, opaque

/// nvmlReturn_t: the values that vramtrack distinguishes; any other int may occur.
enum Return : int {
  kSuccess = 0,
  kUninitialized = 1,
  kInvalidArgument = 2,
  kNotSupported = 3,
  kNoPermission = 4,
  kNotFound = 6,
  kInsufficientSize = 7,
  kDriverNotLoaded = 9,
  kTimeout = 10,
  kLibraryNotFound = 12,
  kFunctionNotFound = 13,
  kGpuIsLost = 15,
  kResetRequired = 16,
  kLibRmVersionMismatch = 18,
  kArgumentVersionMismatch = 25,
  kUnknown = 999,
};

/// Structures with a version word keep their size in its low 24 bits and their version above.
constexpr std::uint32_t version_word(std::size_t size, std::uint32_t version) {
  return static_cast<std::uint32_t>(size) | (version << 24U);
}

/// usedGpuMemory if the driver does not report it.
constexpr std::uint64_t kNoValue = ~std::uint64_t{0};
/// gpuInstanceId and computeInstanceId of a process on a GPU without MIG.
constexpr std::uint32_t kNoInstance = ~std::uint32_t{0};

struct Memory {  // nvmlMemory_t: `used` includes what the driver reserves
  std::uint64_t total, free, used;
};
static_assert(sizeof(Memory) == 24 && offsetof(Memory, used) == 16);

struct MemoryV2 {  // nvmlMemory_v2_t: `used` without `reserved`
  std::uint32_t version;
  std::uint64_t total, reserved, free, used;
};
static_assert(sizeof(MemoryV2) == 40 && offsetof(MemoryV2, total) == 8 && offsetof(MemoryV2, reserved) == 16 &&
              offsetof(MemoryV2, free) == 24 && offsetof(MemoryV2, used) == 32);
constexpr std::uint32_t kMemoryV2Version = version_word(sizeof(MemoryV2), 2);
static_assert(kMemoryV2Version == 0x2000028);

/// nvmlGetMemoryLimits_v1_t, of driver r615 and newer. It has no version word; the caller fills in the cgroup. The soft
/// limit only ranks groups.
struct MemoryLimits {
  const char* cgroup;  ///< full path of the cgroup's folder
  std::uint64_t soft, hard, used;
};
static_assert(sizeof(MemoryLimits) == 32 && offsetof(MemoryLimits, soft) == 8 && offsetof(MemoryLimits, hard) == 16 &&
              offsetof(MemoryLimits, used) == 24);
constexpr std::uint64_t kNoMemoryLimit = ~std::uint64_t{0};  ///< `hard` if the group has no limit

struct ProcessV1 {  // nvmlProcessInfo_v1_t: written by the unsuffixed calls
  std::uint32_t pid;
  std::uint64_t used;
};
static_assert(sizeof(ProcessV1) == 16 && offsetof(ProcessV1, used) == 8);

struct ProcessV2 {  // nvmlProcessInfo_v2_t: written by the _v2 and _v3 calls
  std::uint32_t pid;
  std::uint64_t used;
  std::uint32_t gpu_instance_id, compute_instance_id;
};
static_assert(sizeof(ProcessV2) == 24 && offsetof(ProcessV2, used) == 8 && offsetof(ProcessV2, gpu_instance_id) == 16 &&
              offsetof(ProcessV2, compute_instance_id) == 20);
/// Early R535 drivers wrote entries of this size from the _v3 calls: ProcessV2 and one more word.
constexpr std::size_t kR535Stride = 32;

struct Utilization {  // nvmlUtilization_t, per cent
  std::uint32_t gpu, memory;
};
static_assert(sizeof(Utilization) == 8);

struct ProcessUtilization {  // nvmlProcessUtilizationSample_t, per cent over one of the driver's sampling periods
  std::uint32_t pid;
  std::uint64_t time_us;
  std::uint32_t sm, memory, encoder, decoder;
};
static_assert(sizeof(ProcessUtilization) == 32 && offsetof(ProcessUtilization, time_us) == 8 &&
              offsetof(ProcessUtilization, sm) == 16);

// The reasons that nvmlDeviceGetCurrentClocksEventReasons (earlier: ...ThrottleReasons) reports.
constexpr std::uint64_t kReasonIdle = 0x1;
constexpr std::uint64_t kReasonApplicationClocks = 0x2;
constexpr std::uint64_t kReasonPowerCap = 0x4;
constexpr std::uint64_t kReasonHardwareSlowdown = 0x8;
constexpr std::uint64_t kReasonThermalSoftware = 0x20;
constexpr std::uint64_t kReasonThermalHardware = 0x40;
constexpr std::uint64_t kReasonPowerBrake = 0x80;

constexpr int kClockOfMultiprocessors = 1;                     ///< nvmlClockType_t
constexpr int kPcieReceived = 1;                               ///< nvmlPcieUtilCounter_t
constexpr int kTemperatureOfGpu = 0;                           ///< nvmlTemperatureSensors_t
enum class EccKind : int { corrected = 0, uncorrected = 1 };   ///< nvmlMemoryErrorType_t
enum class EccCounter : int { since_load = 0, lifetime = 1 };  ///< nvmlEccCounterType_t: volatile, aggregate

struct PciInfo {  // nvmlPciInfo_t; before _v3 the driver leaves busId unwritten
  char bus_id_legacy[16];
  std::uint32_t domain, bus, device, pci_device_id, pci_subsystem_id;
  char bus_id[32];
};
static_assert(sizeof(PciInfo) == 68 && offsetof(PciInfo, domain) == 16 && offsetof(PciInfo, bus_id) == 36);

struct EventData {  // nvmlEventData_t; the first version ends after `data`
  Device device;
  std::uint64_t type, data;
  std::uint32_t gpu_instance_id, compute_instance_id;
};
static_assert(sizeof(EventData) == 32 && offsetof(EventData, type) == 8 && offsetof(EventData, data) == 16 &&
              offsetof(EventData, gpu_instance_id) == 24);

constexpr std::uint64_t kEventXid = 0x8;
constexpr std::uint64_t kEventMigChange = 0x100;

constexpr std::size_t kTextBytes = 96;  ///< enough for every name and UUID

}  // namespace vramtrack::nvml
