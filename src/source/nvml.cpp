// Source "nvml": NVIDIA GPUs through the driver's own library.
//
//     answering --(driver gone, all lost)--> closed --(reopened, back-off)--> answering
//        |  one GPU lost: its series pause, the others continue;  ^
//        +---- the library is reopened after the same back-off +

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <set>
#include <tuple>

#include "core/format.hpp"
#include "core/pci_address.hpp"
#include "core/xid.hpp"
#include "host/host_memory.hpp"
#include "host/privilege.hpp"
#include "host/process_watch.hpp"
#include "source/nvml_library.hpp"
#include "source/nvml_processes.hpp"
#include "source/nvml_units.hpp"
#include "source/source.hpp"

namespace vramtrack {
namespace nvml {
namespace {

constexpr std::string_view kDefaultLibrary = "libnvidia-ml.so.1";
/// An unknown error may be temporary; a GPU counts as lost after this many in a row.
constexpr int kUnknownErrorsUntilLost = 3;
constexpr std::chrono::seconds kMigRefresh{30};
constexpr std::chrono::seconds kLimitsPace{10};
/// The pauses between attempts double. Without a driver an attempt costs almost nothing; with one, reopening for a
/// single lost GPU initialises all the others, which can keep the driver busy for a second.
constexpr std::chrono::seconds kFirstPause{1};
constexpr std::chrono::seconds kLongestPauseWithoutDriver{30};
constexpr std::chrono::seconds kLongestPause{300};
constexpr int kMostEventsAPoll = 64;

class NvmlSource final : public Source {
 public:
  NvmlSource(const SourcesConfig& config, Catalog& catalog, std::unique_ptr<NvmlLibrary> library)
      : library_path_(library_path(config)),
        proc_root_(config.proc_root),
        cgroup_root_(config.sys_root + "/fs/cgroup"),
        catalog_(catalog),
        watch_(config.proc_root, catalog) {
    attach(std::move(library));
  }

  static std::string library_path(const SourcesConfig& config) {
    return config.nvml_library.empty() ? std::string(kDefaultLibrary) : config.nvml_library;
  }

  [[nodiscard]] bool sees_gpus() const { return !gpus_.empty(); }
  [[nodiscard]] const SourceNotes& notes() const override { return notes_; }

  Result<Progress> poll(Timestamp now, Batch& out) override {
    now_ = now;
    watch_.begin(now);
    if (any_lost() && now >= next_reopen_) reopen(out);
    if (library_) {
      read_events(out);
      if (now >= next_mig_refresh_) refresh_instances(out);
      for (Gpu& gpu : gpus_) {
        if (library_ && !gpu.lost)
          read_gpu(gpu, out);
        else if (library_ && gpu.handle != nullptr)
          try_resume(gpu, out);
      }
    }
    for (const Gpu& gpu : gpus_)
      if (gpu.lost) mark_unanswered(gpu);
    watch_.end(out);
    if (library_ && reports_limits_ && now >= next_limits_) read_limits(out);
    refresh_notes();
    return Progress::more;
  }

 private:
  // --- finding devices -------------------------------------------------------------------------------------

  /// Starts to use `library` and looks up its GPUs: known ones by UUID, because an index may change.
  void attach(std::unique_ptr<NvmlLibrary> library) {
    library_ = std::move(library);
    reader_.emplace(*library_, [this](std::uint32_t pid) { return watch_.visible(pid); });
    const auto count = library_->device_count();
    for (unsigned index = 0; count && index < count.value; ++index) {
      const auto handle = library_->device_by_index(index);
      const auto uuid = handle ? library_->uuid(handle.value) : Answer<std::string>{handle.code, {}};
      if (!uuid) {
        const std::string warning = fmt::format(
            "GPU {} is present but does not answer: {}; see nvidia-smi and the kernel log", index, describe(uuid.code));
        if (std::find(warnings_.begin(), warnings_.end(), warning) == warnings_.end()) warnings_.push_back(warning);
        continue;
      }
      auto known = std::find_if(gpus_.begin(), gpus_.end(), [&](const Gpu& gpu) { return gpu.uuid == uuid.value; });
      if (known == gpus_.end()) {
        gpus_.emplace_back();
        known = gpus_.end() - 1;
      }
      known->handle = handle.value;
      known->has_mig = known->has_utilisation = true;
      describe_unit(*known, uuid.value, index, "");
      const std::uint64_t events = library_->listen(handle.value, kEventXid | kEventMigChange);
      known->health = HealthReader(index, (events & kEventXid) != 0);
      known->gauges = GaugeReader(index);
    }
    next_mig_refresh_ = Timestamp::min();
  }

  void describe_unit(Unit& unit, const std::string& uuid, std::optional<unsigned> index, const std::string& parent) {
    unit.uuid = uuid;
    DeviceInfo info;
    info.id = uuid;
    if (index) info.index = static_cast<int>(*index);
    info.name = library_->name(unit.handle).value;
    info.pci_bus_id = normal_pci_address(library_->pci_bus_id(unit.handle).value);
    info.parent_id = parent;
    catalog_.describe(info);
    if (const auto memory = library_->memory(unit.handle)) adjust_total(unit, memory.value.total);
    unit.used = catalog_.intern({Metric::device_used, uuid, 0, 0});
    unit.watched = watch_.device(uuid);
  }

  void refresh_instances(Batch& out) {
    next_mig_refresh_ = now_ + kMigRefresh;
    for (Gpu& gpu : gpus_) {
      if (gpu.lost || !gpu.has_mig) continue;
      const auto mode = library_->mig_mode(gpu.handle);
      if (mode.code == kNotSupported || mode.code == kFunctionNotFound) gpu.has_mig = false;
      if (mode) list_instances(gpu, mode.value.enabled, out);
    }
  }

  void list_instances(Gpu& gpu, bool enabled, Batch& out) {
    std::vector<MigInstance> found;
    const auto most = enabled ? library_->max_mig_devices(gpu.handle) : Answer<unsigned>{};
    for (unsigned i = 0; enabled && most && i < most.value; ++i) {
      const auto handle = library_->mig_device(gpu.handle, i);
      const auto uuid = handle ? library_->uuid(handle.value) : Answer<std::string>{handle.code, {}};
      if (!uuid) continue;  // a slot without an instance
      MigInstance instance;
      instance.handle = handle.value;
      if (const auto id = library_->gpu_instance_id(handle.value)) instance.gpu_instance_id = id.value;
      if (const auto id = library_->compute_instance_id(handle.value)) instance.compute_instance_id = id.value;
      describe_unit(instance, uuid.value, std::nullopt, gpu.uuid);
      found.push_back(std::move(instance));
    }
    for (const MigInstance& before : gpu.instances) {
      const bool still = std::any_of(found.begin(), found.end(), [&](const Unit& u) { return u.uuid == before.uuid; });
      if (!still) device_event(Event::Kind::device_lost, before.uuid, "the MIG instance was removed", out);
    }
    gpu.instances = std::move(found);
  }

  // --- one poll --------------------------------------------------------------------------------------------

  void read_gpu(Gpu& gpu, Batch& out) {
    const int code = read_memory(gpu, out);
    if (code == kSuccess) {
      gpu.unknown_errors = 0;
    } else if (is_driver_gone(code)) {
      close_driver(code, out);
      return;
    } else if (is_gpu_gone(code) || (code == kUnknown && ++gpu.unknown_errors >= kUnknownErrorsUntilLost)) {
      lose(gpu, code, out);
      return;
    }
    for (MigInstance& instance : gpu.instances)
      if (instance.handle != nullptr) read_memory(instance, out);
    read_state(gpu, out);
    read_processes(gpu);
  }

  int read_memory(Unit& unit, Batch& out) {
    const auto memory = library_->memory(unit.handle);
    if (memory) {
      unit.has_own_memory = true;
      adjust_total(unit, memory.value.total);
      out.samples.push_back({now_, unit.used, memory.value.used});
      if (memory.value.reserved) {
        if (!unit.reserved) unit.reserved = catalog_.intern({Metric::device_reserved, unit.uuid, 0, 0});
        out.samples.push_back({now_, *unit.reserved, *memory.value.reserved});
      }
    } else if (memory.code == kNotSupported && !unit.has_own_memory && read_shared_memory(unit, out)) {
      return kSuccess;
    } else if ((memory.code == kNotSupported || memory.code == kNoPermission) && !unit.warned) {
      unit.warned = true;
      warnings_.push_back(fmt::format(
          "{}: the driver does not report the memory in use: {}; its processes are watched if the driver "
          "lists them{}",
          unit.uuid, describe(memory.code), memory.code == kNoPermission ? "; running as root may help" : ""));
    }
    return memory.code;
  }

  /// A driver that limits the group in which vramtrack runs adjusts the total, even during a watch. The total of an
  /// earlier watch enters the catalog only after the source has been opened.
  void adjust_total(const Unit& unit, std::uint64_t total_bytes) {
    const DeviceInfo* const known = catalog_.device(unit.uuid);
    if (total_bytes == 0 || (known != nullptr && known->capacity_bytes == total_bytes)) return;
    DeviceInfo info;
    info.id = unit.uuid;
    info.capacity_bytes = total_bytes;
    catalog_.describe(info);
  }

  /// For a GPU without memory of its own (GB10, Jetson), the driver reports none: its memory is the host's.
  bool read_shared_memory(Unit& unit, Batch& out) {
    const auto host = read_host_memory(proc_root_);
    if (!host) return false;
    if (!unit.warned) {
      unit.warned = true;
      DeviceInfo info;
      info.id = unit.uuid;
      info.capacity_bytes = host->total_bytes;
      info.shares_host_memory = true;
      catalog_.describe(info);
      warnings_.push_back(fmt::format(
          "{}: the driver reports no memory of this GPU's own: it shares the host's, and the figures are the "
          "host's; when that runs out, the kernel ends a process, without a CUDA error",
          unit.uuid));
    }
    out.samples.push_back({now_, unit.used, host->total_bytes - host->available_bytes});
    return true;
  }

  /// Limits of cgroups that the driver itself counts, on kernels without dmem. With dmem, the kernel's files report the
  /// same (host/walls.hpp). The live loop knows the other walls and notifies people of the limits; only soft limits,
  /// which are not walls, are reported here.
  void read_limits(Batch& out) {
    next_limits_ = now_ + kLimitsPace;
    std::map<std::pair<Device, std::string>, std::optional<MemoryLimit>> asked;
    Limits now_known;
    std::map<std::pair<std::string, std::string>, Threshold> thresholds;
    for (const Sample& sample : out.samples) {
      const SeriesKey& key = catalog_.key(sample.series);
      if (key.metric != Metric::process_used || key.pid_start_ticks == 0) continue;
      const auto gpu = std::find_if(gpus_.begin(), gpus_.end(), [&](const Gpu& g) { return g.uuid == key.device_id; });
      const ProcessInfo* const process = catalog_.process(key.pid, key.pid_start_ticks);
      if (gpu == gpus_.end() || gpu->lost || process == nullptr) continue;
      for (const std::string& folder : cgroup_folders(process->cgroup)) {
        const auto [known, is_new] = asked.try_emplace({gpu->handle, folder});
        if (is_new) known->second = ask_limit(gpu->handle, cgroup_root_ + folder);
        if (!reports_limits_) return;
        if (!known->second) continue;
        if (known->second->hard_bytes > 0)
          now_known[{key.device_id, key.pid, key.pid_start_ticks, folder}] = known->second->hard_bytes;
        if (known->second->soft_bytes > 0) {
          Threshold& threshold = thresholds[{key.device_id, folder}];
          threshold.bytes = known->second->soft_bytes;
          threshold.used_bytes += sample.bytes;
        }
      }
    }
    report_thresholds(std::move(thresholds), out);
    const auto report = [&](const Limits::value_type& one, std::uint64_t bytes) {
      const auto& [device_id, pid, start_ticks, folder] = one.first;
      out.events.push_back(Event{.time = now_,
                                 .kind = Event::Kind::capacity,
                                 .device_id = device_id,
                                 .pid = pid,
                                 .pid_start_ticks = start_ticks,
                                 .text = "NVIDIA's memory limit of " + (folder.empty() ? "/" : folder),
                                 .capacity_bytes = bytes});
    };
    for (const auto& one : now_known)
      if (const auto before = limits_.find(one.first); before == limits_.end() || before->second != one.second)
        report(one, one.second);
    for (const auto& one : limits_)
      if (!now_known.contains(one.first)) report(one, 0);
    limits_ = std::move(now_known);
  }

  std::optional<MemoryLimit> ask_limit(Device device, const std::string& folder) {
    auto limit = library_->memory_limit(device, folder);
    if (limit.code == kFunctionNotFound) reports_limits_ = false;
    if (!limit) return std::nullopt;
    if (::access((folder + "/dmem.max").c_str(), F_OK) == 0) limit.value.hard_bytes = 0;
    return limit.value;
  }

  /// A group above its soft limit can still allocate, but its processes may be killed when another needs its share.
  struct Threshold {
    std::uint64_t bytes = 0;
    std::uint64_t used_bytes = 0;  ///< used by the group's processes
    [[nodiscard]] bool is_exceeded() const { return used_bytes > bytes; }
  };

  /// Notifies people of each threshold when it is new, has moved, or is exceeded.
  void report_thresholds(std::map<std::pair<std::string, std::string>, Threshold> now_known, Batch& out) {
    const auto words = [](std::uint64_t bytes) { return format_bytes(static_cast<double>(bytes)); };
    const auto report = [&](const std::pair<std::string, std::string>& key, const std::string& text) {
      const DeviceInfo* const info = catalog_.device(key.first);
      device_event(Event::Kind::note, key.first,
                   fmt::format("{}: the soft limit of {} {}",
                               info != nullptr && info->index ? fmt::format("GPU {}", *info->index) : key.first,
                               key.second.empty() ? "/" : key.second, text),
                   out);
    };
    for (const auto& [key, threshold] : now_known) {
      const auto before = thresholds_.find(key);
      const bool has_moved = before == thresholds_.end() || before->second.bytes != threshold.bytes;
      if (!has_moved && (before->second.is_exceeded() || !threshold.is_exceeded())) continue;
      report(key, fmt::format("is {}, which is a threshold and does not limit its memory: {} in use{}",
                              words(threshold.bytes), words(threshold.used_bytes),
                              threshold.is_exceeded()
                                  ? "; its processes may be ended when others need their share of the GPU"
                                  : ""));
    }
    for (const auto& [key, threshold] : thresholds_)
      if (!now_known.contains(key)) report(key, "no longer holds, or its processes have ended");
    thresholds_ = std::move(now_known);
  }

  /// Reads how busy the GPU is and, less often, its gauges and its health.
  void read_state(Gpu& gpu, Batch& out) {
    DeviceReading reading{now_, gpu.uuid, {}, gpu.gauges.read(*library_, gpu.handle, now_), {}, {}};
    if (const auto received = gpu.gauges.received_bytes_per_s())
      out.samples.push_back(
          {now_, catalog_.intern({Metric::device_received, gpu.uuid, 0, 0}), static_cast<std::uint64_t>(*received)});
    if (gpu.has_utilisation) {
      const auto busy = library_->utilization(gpu.handle);
      if (busy) {
        reading.gpu_utilisation_ratio = busy.value.gpu / 100.0;
        reading.gauges.memory_utilisation_ratio = busy.value.memory / 100.0;
      } else if (busy.code == kNotSupported || busy.code == kFunctionNotFound) {
        gpu.has_utilisation = false;  // for example with MIG, where it has no meaning for the whole GPU
      }
    }
    reading.health = gpu.health.read(*library_, gpu.handle, now_);
    const bool has_figures = reading.gpu_utilisation_ratio || reading.health || !(reading.gauges == DeviceGauges{});
    if (has_figures) out.readings.push_back(std::move(reading));
  }

  void read_processes(Gpu& gpu) {
    const int code = reader_->read(gpu.handle, processes_);
    const bool placed = std::all_of(processes_.begin(), processes_.end(),
                                    [](const GpuProcess& p) { return p.gpu_instance_id != kNoInstance; });
    if (!gpu.instances.empty() && (code != kSuccess || processes_.empty() || !placed)) {
      // Without privilege, the list of the whole GPU lacks the instances' processes, but each instance may list them.
      read_instance_processes(gpu);
      return;
    }
    if (code != kSuccess) mark_unanswered(gpu);
    for (const GpuProcess& p : processes_)
      watch_.listed(unit_of(gpu, p).watched, p.pid, p.bytes, p.kind(), gpu.gauges.process_ratio(p.pid));
  }

  void read_instance_processes(Gpu& gpu) {
    // Processes that the whole GPU lists outside any instance are counted for the GPU.
    for (const GpuProcess& p : processes_)
      if (p.gpu_instance_id == kNoInstance) outside_.push_back(p);
    for (const MigInstance& instance : gpu.instances) {
      if (instance.handle == nullptr || reader_->read(instance.handle, processes_) != kSuccess) {
        watch_.unanswered(instance.watched);
        continue;
      }
      for (const GpuProcess& p : processes_) {
        watch_.listed(instance.watched, p.pid, p.bytes, p.kind());
        outside_.erase(std::remove_if(outside_.begin(), outside_.end(), [&](const auto& o) { return o.pid == p.pid; }),
                       outside_.end());
      }
    }
    for (const GpuProcess& p : outside_)
      watch_.listed(gpu.watched, p.pid, p.bytes, p.kind(), gpu.gauges.process_ratio(p.pid));
    outside_.clear();
  }

  /// The unit a process belongs to: its MIG instance, else the GPU.
  static const Unit& unit_of(const Gpu& gpu, const GpuProcess& process) {
    const MigInstance* same_gpu_instance = nullptr;
    for (const MigInstance& instance : gpu.instances) {
      if (instance.gpu_instance_id != process.gpu_instance_id) continue;
      if (instance.compute_instance_id == process.compute_instance_id) return instance;
      if (same_gpu_instance == nullptr) same_gpu_instance = &instance;
    }
    if (same_gpu_instance != nullptr) return *same_gpu_instance;
    return gpu;
  }

  void read_events(Batch& out) {
    for (int i = 0; i < kMostEventsAPoll; ++i) {
      const auto event = library_->next_event();
      if (!event) return;
      if (event->type == kEventMigChange) next_mig_refresh_ = now_;
      if (event->type != kEventXid) continue;
      const auto gpu =
          std::find_if(gpus_.begin(), gpus_.end(), [&](const Gpu& g) { return g.handle == event->device; });
      out.events.push_back(Event{.time = now_,
                                 .kind = Event::Kind::xid,
                                 .device_id = gpu != gpus_.end() ? gpu->uuid : std::string(),
                                 .pid = 0,
                                 .pid_start_ticks = 0,
                                 .text = describe_xid(event->data),
                                 .xid = event->data});
    }
  }

  // --- loss and return -------------------------------------------------------------------------------------

  [[nodiscard]] bool any_lost() const {
    return std::any_of(gpus_.begin(), gpus_.end(), [](const Gpu& gpu) { return gpu.lost; });
  }

  void device_event(Event::Kind kind, const std::string& device_id, std::string text, Batch& out) const {
    out.events.push_back(Event{
        .time = now_, .kind = kind, .device_id = device_id, .pid = 0, .pid_start_ticks = 0, .text = std::move(text)});
  }

  void lose(Gpu& gpu, int code, Batch& out) {
    if (gpu.lost) return;
    if (!any_lost()) {
      pause_ = kFirstPause;
      next_reopen_ = now_ + pause_;
    }
    gpu.lost = true;
    device_event(Event::Kind::device_lost, gpu.uuid, describe(code), out);
    for (const MigInstance& instance : gpu.instances)
      device_event(Event::Kind::device_lost, instance.uuid, describe(code), out);
  }

  void close_driver(int code, Batch& out) {
    for (Gpu& gpu : gpus_) lose(gpu, code, out);
    close_library();
  }

  void close_library() {
    reader_.reset();
    library_.reset();
    for (Gpu& gpu : gpus_) {
      gpu.handle = nullptr;
      for (MigInstance& instance : gpu.instances) instance.handle = nullptr;
    }
  }

  void reopen(Batch& out) {
    // Close it first: a replaced driver has another library file, which the loader finds only after the old one is
    // closed.
    close_library();
    if (auto opened = NvmlLibrary::open(library_path_)) attach(std::move(*opened));
    pause_ = std::min(pause_ * 2, library_ ? kLongestPause : kLongestPauseWithoutDriver);
    next_reopen_ = now_ + pause_;
    for (Gpu& gpu : gpus_)
      if (gpu.handle == nullptr) lose(gpu, kNotFound, out);
  }

  /// A lost GPU counts as resumed once it is found again and reports its memory.
  void try_resume(Gpu& gpu, Batch& out) {
    const auto memory = library_->memory(gpu.handle);
    if (!memory && (memory.code != kNotSupported || gpu.has_own_memory)) return;
    gpu.lost = false;
    gpu.unknown_errors = 0;
    device_event(Event::Kind::device_resumed, gpu.uuid, "", out);
    if (gpu.has_mig)
      if (const auto mode = library_->mig_mode(gpu.handle)) list_instances(gpu, mode.value.enabled, out);
    for (const MigInstance& instance : gpu.instances) device_event(Event::Kind::device_resumed, instance.uuid, "", out);
    read_gpu(gpu, out);
  }

  void mark_unanswered(const Gpu& gpu) {
    watch_.unanswered(gpu.watched);
    for (const MigInstance& instance : gpu.instances) watch_.unanswered(instance.watched);
  }

  void refresh_notes() {
    if (watch_.unseen() == reported_unseen_ && warnings_.size() == reported_warnings_) return;
    reported_unseen_ = watch_.unseen();
    reported_warnings_ = warnings_.size();
    notes_.warnings = warnings_;
    for (std::string& text : unseen_warnings(reported_unseen_, !may_read_others()))
      notes_.warnings.push_back(std::move(text));
  }

  std::string library_path_;
  std::string proc_root_;
  std::string cgroup_root_;
  Catalog& catalog_;
  ProcessWatch watch_;
  std::unique_ptr<NvmlLibrary> library_;  ///< null while there is no driver
  std::optional<ProcessReader> reader_;   ///< reads with library_
  std::vector<Gpu> gpus_;
  Timestamp now_ = Timestamp::min();
  Timestamp next_mig_refresh_ = Timestamp::min();
  Timestamp next_reopen_ = Timestamp::min();
  using Limits = std::map<std::tuple<std::string, std::uint32_t, std::uint64_t, std::string>, std::uint64_t>;
  Limits limits_;  ///< in bytes, by device, pid, start ticks and cgroup folder
  std::map<std::pair<std::string, std::string>, Threshold> thresholds_;  ///< by device and cgroup folder
  Timestamp next_limits_ = Timestamp::min();
  bool reports_limits_ = true;
  std::chrono::seconds pause_ = kFirstPause;
  std::vector<GpuProcess> processes_;  ///< scratch
  std::vector<GpuProcess> outside_;    ///< scratch
  std::vector<std::string> warnings_;
  Unseen reported_unseen_;
  std::size_t reported_warnings_ = 0;
  SourceNotes notes_;
};

Result<std::unique_ptr<Source>> make(const SourcesConfig& config, Catalog& catalog) {
  auto library = NvmlLibrary::open(NvmlSource::library_path(config));
  if (!library) return fail(std::move(library.error()));
  auto source = std::make_unique<NvmlSource>(config, catalog, std::move(*library));
  if (!source->sees_gpus())
    return fail(
        "the NVIDIA driver works but shows no GPU; in a container, pass one in (docker run --gpus all); otherwise, see "
        "nvidia-smi and the kernel log");
  return source;
}

}  // namespace
}  // namespace nvml

extern const SourceInfo nvml_source;
const SourceInfo nvml_source = {"nvml", "NVIDIA GPUs and their processes, through the driver's libnvidia-ml",
                                nvml::make};

}  // namespace vramtrack
