// The scenario that drives the fake NVML: see README.md.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace fake_nvml {

constexpr std::uint64_t kNone = ~std::uint64_t{0};

/// An amount that changes with the tick.
struct Amount {
  std::vector<std::uint64_t> values{0};  ///< one a tick, the last for ever
  std::uint64_t growth = 0;
  std::uint64_t period = 0;  ///< 0: grows for ever
  std::uint64_t limit = kNone;
  [[nodiscard]] std::uint64_t at(std::uint64_t tick) const;
};

struct Span {
  std::uint64_t from = 0;
  std::uint64_t to = ~std::uint64_t{0};
  [[nodiscard]] bool holds(std::uint64_t tick) const { return tick >= from && tick <= to; }
};

struct Process {
  std::uint32_t pid = 0;
  unsigned lists = 1;  ///< bits: 1 compute, 2 graphics, 4 MPS
  Amount used;
  std::optional<Amount> sm;  ///< per cent; not there: the driver has no sample of it
  Span span;
  std::uint32_t gpu_instance = ~std::uint32_t{0};
  std::uint32_t compute_instance = ~std::uint32_t{0};
};

/// A limit of the driver's own on a cgroup.
struct Limit {
  std::string cgroup;  ///< the end of its path
  Amount hard, soft;
};

/// A GPU or, with a parent, a MIG instance.
struct Device {
  unsigned index = 0;
  Device* parent = nullptr;
  std::string uuid, name, pci;
  Amount total;
  std::uint64_t reserved = 0;
  Amount used;
  std::optional<unsigned> gpu_percent, memory_percent;
  std::map<std::string, Amount> health;  ///< by the key of the scenario line; not there: not supported
  std::uint32_t gpu_instance = ~std::uint32_t{0};
  std::uint32_t compute_instance = ~std::uint32_t{0};
  std::vector<Process> processes;  ///< of GPUs
  std::vector<Limit> limits;       ///< of GPUs
  std::vector<Device*> instances;  ///< MIG, of GPUs
  std::optional<unsigned> live;    ///< the device of the fake driver whose processes it has besides
  std::string holders;             ///< file of the processes that it has besides, read each time
  std::uint64_t asked_in_tick = ~std::uint64_t{0};
};

struct Failure {
  std::string call;
  std::optional<unsigned> gpu;
  int code = 0;
  Span span;
};

struct Xid {
  unsigned gpu = 0;
  std::uint64_t code = 0, at = 0;
};

/// A file to make when a tick has been reached.
struct Note {
  std::string file;
  std::uint64_t at = 0;
};

struct Scenario {
  bool clock_from_environment = false;
  std::vector<Device*> gpus;  ///< never freed but by the library being unloaded
  std::vector<Failure> failures;
  std::vector<Xid> xids;
  std::vector<Note> notes;
};

/// Reads the file; without one, the machine of the fake driver where there is one (VRAMTRACK_FAKE_GPU_STATE, or a
/// library that is built for it). Ends the program with a message when there is no scenario: a test must not continue.
Scenario read_scenario(const char* path);

}  // namespace fake_nvml
