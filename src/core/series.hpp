// What is measured, and for whom: metrics, devices, processes, and the catalog that interns them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/scale.hpp"

namespace vramtrack {

enum class Metric : std::uint8_t {
  device_used,          ///< bytes in use on the device, by anybody
  device_reserved,      ///< bytes the driver keeps for itself
  process_used,         ///< bytes one process holds on one device
  allocator_allocated,  ///< bytes in live tensors, by the framework's allocator
  allocator_reserved,   ///< bytes the allocator holds from the driver
  probe_live,           ///< outstanding bytes seen by the probe
  device_unattributed,  ///< the bytes in use that the device's processes do not hold: derived from both by the engine
  // Facts besides memory: recorded and replayed as memory is, but never judged, and in no View
  // (docs/design/0027-facts.md).
  device_busy,      ///< share of time during which some kernel ran on the device, in 1/kBusyWhole
  device_received,  ///< bytes per second that the device receives over its bus
  process_busy,     ///< as device_busy, for one process
  process_read,  ///< bytes that a process has read from files since it began, by calls or mapped; on any of its devices
  process_clients,  ///< open connections to the services of a process that listens; likewise
  // The host memory of a process that holds device memory, on any of its devices.
  host_anonymous,  ///< bytes that no file backs: anonymous, shared and swapped out; judged as device memory is
  host_resident,   ///< bytes in the host's memory, including files that it has mapped; a fact
  host_pinned,     ///< the part of these bytes that may not move, so that devices can reach them; a fact
  host_available,  ///< bytes by which it can still grow in the host, or within its cgroup's limit; a fact
  process_age,     ///< seconds since a process began; a fact about its memory on any of its devices
};

/// The value for a device or process that is busy all the time.
inline constexpr double kBusyWhole = 10'000;

/// Whether it is not memory, but helps to judge memory.
constexpr bool is_fact(Metric metric) {
  return metric >= Metric::device_busy && metric != Metric::host_anonymous;
}

/// Whether it is about the host's memory, which belongs to no device.
constexpr bool is_of_host(Metric metric) {
  return metric >= Metric::host_anonymous && metric <= Metric::host_available;
}

/// Whether it is about a device, whoever holds the memory; otherwise it is about a process.
constexpr bool is_of_device(Metric metric) {
  return metric == Metric::device_used || metric == Metric::device_reserved || metric == Metric::device_unattributed ||
         metric == Metric::device_busy || metric == Metric::device_received;
}

/// "device_used", ... and back; nullopt for an unknown name.
std::string_view to_string(Metric metric);
std::optional<Metric> parse_metric(std::string_view name);

/// Identity of a series. Two keys identify the same series exactly when all five fields agree.
struct SeriesKey {
  Metric metric = Metric::device_used;
  std::string device_id;              ///< UUID; in a recording without one: PCI bus id, else the index as text
  std::uint32_t pid = 0;              ///< 0 for device series
  std::uint64_t pid_start_ticks = 0;  ///< /proc/PID/stat field 22: distinguishes a reused pid; 0 when unknown
  std::string host;                   ///< the machine it was measured on; empty: this one. Never contains a '/'
  friend bool operator==(const SeriesKey&, const SeriesKey&) = default;
};

/// Identity of a device: ids need not be unique across machines (a recording may have only an index).
struct DeviceKey {
  std::string id;
  std::string host;
  friend bool operator==(const DeviceKey&, const DeviceKey&) = default;
};

/// Identity of a process: pid 4242 on two machines is two processes.
struct ProcessKey {
  std::uint32_t pid = 0;
  std::uint64_t start_ticks = 0;
  std::string host;
  friend bool operator==(const ProcessKey&, const ProcessKey&) = default;
};

/// For hash tables keyed by either.
struct KeyHash {
  std::size_t operator()(const DeviceKey& key) const {
    return std::hash<std::string>{}(key.id) + 0x9e3779b97f4a7c15U * std::hash<std::string>{}(key.host);
  }
  std::size_t operator()(const ProcessKey& key) const {
    return key.start_ticks * 0x9e3779b97f4a7c15U + key.pid + std::hash<std::string>{}(key.host);
  }
};

/// The owner of the memory that a series measures: its device; its process (pid 0 for a device's series).
inline DeviceKey device_key(const SeriesKey& key) {
  return {key.device_id, key.host};
}
inline ProcessKey process_key(const SeriesKey& key) {
  return {key.pid, key.pid_start_ticks, key.host};
}

/// Dense id of a series, stable within one Catalog (and within one store).
enum class SeriesId : std::uint32_t {};
inline std::uint32_t index_of(SeriesId id) {
  return static_cast<std::uint32_t>(id);
}

/// What is known about a device. Unknown fields stay empty: missing is not zero.
struct DeviceInfo {
  std::string id;            ///< as in SeriesKey::device_id
  std::optional<int> index;  ///< as the driver counts; for people, never identity while live
  std::string name;          ///< "NVIDIA H200"
  std::string pci_bus_id;    ///< "00000000:1D:00.0", lower case as the driver prints it
  std::string parent_id;     ///< for a MIG instance: the GPU's id
  std::optional<std::uint64_t> capacity_bytes;
  bool shares_host_memory = false;  ///< it has no memory of its own: where the host's ends, the kernel ends a process
  std::string host;                 ///< as in SeriesKey::host
  friend bool operator==(const DeviceInfo&, const DeviceInfo&) = default;
};

/// What is known about a process that holds device memory.
struct ProcessInfo {
  std::uint32_t pid = 0;
  std::uint64_t start_ticks = 0;
  std::string user;          ///< name, or the uid as text if it has no name here
  std::string command;       ///< command line, arguments joined by spaces, at most 256 bytes
  std::string name;          ///< short name (comm, or the log's process name)
  std::string kind;          ///< "C", "G", "C+G", "MPS"; empty when unknown
  std::string cgroup;        ///< path as in /proc/PID/cgroup
  std::string container;     ///< container id (64 hex) or its runtime's name for it
  std::string pod;           ///< Kubernetes pod UID
  std::string slurm_job;     ///< Slurm job id, "1234" or "1234.0"
  std::string image;         ///< of its container; known while it is watched, but not recorded
  std::string job_name;      ///< of its Slurm job; likewise
  std::string framework;     ///< "PyTorch", "vLLM", ...; empty when not recognised
  std::uint32_t ns_pid = 0;  ///< its pid inside its own pid namespace (its container), when that differs
  std::string host;          ///< as in SeriesKey::host
  friend bool operator==(const ProcessInfo&, const ProcessInfo&) = default;
};

/// Interns series and keeps what is known about their devices and processes. One per engine; not thread-safe: sources
/// and the engine use it from the one writer thread. Ids are never reused. Cost: intern is one hash of the device id
/// and pid; sources cache the SeriesId they get. Memory: what is known about series, devices and processes that are not
/// retired; nothing is kept for those that are.
class Catalog {
 public:
  // Out of line; otherwise each file that has one would generate them.
  Catalog();
  Catalog(Catalog&&) = default;
  Catalog& operator=(Catalog&&) = default;
  ~Catalog();

  /// The id of `key`, created on first sight; a new one if the key's last id has been retired.
  SeriesId intern(const SeriesKey& key);
  [[nodiscard]] std::optional<SeriesId> find(const SeriesKey& key) const;
  /// An empty key (no device id) for an id that was retired. The reference is valid until then.
  [[nodiscard]] const SeriesKey& key(SeriesId id) const;
  /// Number of ids given so far, including retired ones: every id is below this.
  [[nodiscard]] std::size_t size() const { return given_; }
  /// Number of series that are not retired.
  [[nodiscard]] std::size_t live() const { return keys_.size(); }
  [[nodiscard]] bool holds(SeriesId id) const { return keys_.contains(index_of(id)); }

  /// Forgets a series that has ended: its key and, with the last series of a process, what is known about the process.
  /// Pointers and references to these become invalid. Call it when no more samples of `id` will come and nobody will
  /// ask for its key: a source that still holds `id` would deliver samples that nobody can name. An id that is unknown
  /// or already retired is ignored. A process that was described but never had a series is not forgotten. O(1).
  void retire(SeriesId id);

  /// Adds or replaces what is known about a device or a process (by id; by pid and start ticks; both of one host).
  /// Empty fields keep what was known before. Returns true if something changed.
  bool describe(const DeviceInfo& device);
  bool describe(const ProcessInfo& process);
  /// nullptr if nothing is known.
  [[nodiscard]] const DeviceInfo* device(const DeviceKey& key) const;
  [[nodiscard]] const ProcessInfo* process(const ProcessKey& key) const;
  /// For this machine.
  [[nodiscard]] const DeviceInfo* device(std::string_view id) const { return device({std::string(id), {}}); }
  [[nodiscard]] const ProcessInfo* process(std::uint32_t pid, std::uint64_t start_ticks) const {
    return process({pid, start_ticks, {}});
  }
  [[nodiscard]] const std::deque<DeviceInfo>& devices() const { return devices_; }
  /// In the order in which they were first seen.
  [[nodiscard]] const std::list<ProcessInfo>& processes() const { return processes_; }

  /// Incremented by every new series and every change by describe(): lets the engine refresh what it derived, and the
  /// store write what is new, only when needed. retire() does not count.
  [[nodiscard]] std::uint64_t revision() const { return revision_; }
  /// The revision of the last change to a device.
  [[nodiscard]] std::uint64_t device_revision() const { return device_revision_; }
  /// visit(const ProcessInfo&) for each process that changed after `revision`, the latest first. O(changed).
  template <class Visit>
  void processes_since(std::uint64_t revision, Visit visit) const {
    visit_since(changes_, revision, visit);
  }
  /// The same for devices: visit(const DeviceInfo&).
  template <class Visit>
  void devices_since(std::uint64_t revision, Visit visit) const {
    visit_since(device_changes_, revision, visit);
  }

  /// True if the recording had only relative seconds: its times are offsets from the epoch and are never shown as
  /// dates.
  bool clock_is_relative = false;

  /// The units of the recording's figures; set when its source is opened, and constant from then on.
  Scale scale;

  /// The moment as people read it.
  [[nodiscard]] std::string moment(Timestamp time) const { return scale.moment(time, clock_is_relative); }

  /// True if the source lists the processes of its devices: a device without any then has no visible process.
  bool processes_are_listed = false;

  /// Devices (of this machine, by id) for which the source currently lists some processes without their bytes: the
  /// total that the processes hold is unknown.
  std::set<std::string> devices_withholding;

 private:
  template <class Info>
  struct Change {
    std::uint64_t revision = 0;
    const Info* info = nullptr;
  };
  template <class Info>
  using Changes = std::list<Change<Info>>;  ///< one per device or process, the latest changed last
  template <class Info, class Visit>
  static void visit_since(const Changes<Info>& changes, std::uint64_t revision, Visit visit) {
    for (auto it = changes.rbegin(); it != changes.rend() && it->revision > revision; ++it) visit(*it->info);
  }
  struct Device {
    DeviceInfo* info = nullptr;
    Changes<DeviceInfo>::iterator change;
  };
  struct Process {
    std::size_t series = 0;  ///< not retired
    bool described = false;  ///< the iterators are valid
    std::list<ProcessInfo>::iterator info;
    Changes<ProcessInfo>::iterator change;
  };

  std::size_t given_ = 0;
  std::unordered_map<std::uint32_t, SeriesKey> keys_;  ///< by SeriesId; without retired series
  std::unordered_map<std::string, SeriesId> ids_;
  std::deque<DeviceInfo> devices_;
  Changes<DeviceInfo> device_changes_;
  std::unordered_map<DeviceKey, Device, KeyHash> device_index_;
  std::list<ProcessInfo> processes_;
  Changes<ProcessInfo> changes_;
  std::unordered_map<ProcessKey, Process, KeyHash> process_index_;
  std::uint64_t revision_ = 0;
  std::uint64_t device_revision_ = 0;
};

}  // namespace vramtrack
