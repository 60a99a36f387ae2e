// ProbeTrace: what a trace of `vramtrack run` shows about each process: what holds memory, and how it changed over
// time. Names of native frames are looked up later (probe_names.hpp).
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "probe/wire.hpp"
#include "trace/address_table.hpp"
#include "trace/call_site.hpp"
#include "trace/category.hpp"
#include "trace/exit_trail.hpp"
#include "trace/extents.hpp"
#include "trace/keeper_looks.hpp"
#include "trace/last_allocations.hpp"
#include "trace/lockstep.hpp"
#include "trace/memory_failure.hpp"
#include "trace/probe_file.hpp"
#include "trace/process_names.hpp"
#include "trace/run_floors.hpp"
#include "trace/site_table.hpp"
#include "trace/symbols.hpp"
#include "trace/trace_moments.hpp"

namespace vramtrack::trace {

/// The figures of the driver and of the probe at one moment.
struct ResidualReading {
  std::int64_t realtime_us = 0;
  std::uint64_t process_bytes = 0;
  std::int64_t tracked_bytes = 0;
};

struct DeviceOfTrace {
  std::string uuid, name;
  std::uint64_t total_bytes = 0;
  std::uint64_t allocated_bytes = 0, reserved_bytes = 0;  ///< as last reported by the framework
  bool has_totals = false;
};

/// The device as text: "device 0 (NVIDIA H100)", or the name alone if the API has no ordinals (ours mean nothing).
std::string device_words(int number, std::string_view name);

/// Receives each change of live memory, for exports of events. Negative `bytes`: freed.
using ChangeVisit = std::function<Status(std::uint32_t process, const CallSite& site, std::uint64_t address,
                                         std::uint64_t time_us, std::int64_t bytes)>;

/// The replay of one process. Memory: 40 bytes per live block, up to 2 KiB per call site, 512 KiB of last allocations,
/// the names; at the end, 8 more bytes per block for a million blocks.
class ProcessTrace {
 public:
  ProcessTrace(std::uint32_t index, ProbeProcess process) : index_(index), process_(std::move(process)) {}

  void wants(std::vector<MomentName> moments) { moments_.want(std::move(moments)); }
  Status take(std::span<const probe::Slot> slots, const ChangeVisit& visit);
  void take(const ProbeReading& reading);
  void take(const ProbeEnd& end) { end_ = end; }
  /// Call once, at the end. The memory that the process released last, with no further allocation, is its exit; the
  /// state before it is judged and shown. `end_us`: the end of the whole run on this process's clock, up to which
  /// moments are known.
  void finish(std::uint64_t end_us);

  [[nodiscard]] const ProbeProcess& process() const { return process_; }
  [[nodiscard]] std::string command() const;
  [[nodiscard]] const ProcessNames& names() const { return names_; }
  [[nodiscard]] const std::vector<CallSite>& sites() const { return sites_.all(); }
  /// Memory held by each call site; empty if the process continues.
  [[nodiscard]] const std::vector<Held>& held_at_exit() const { return at_exit_; }
  /// Whether the recording ended before the process.
  [[nodiscard]] bool goes_on() const { return goes_on_; }
  [[nodiscard]] const std::map<int, DeviceOfTrace>& devices() const { return devices_; }
  [[nodiscard]] const std::vector<TraceMark>& marks() const { return moments_.marks(); }
  /// The requested moments, in the order of the request; nullopt: the process has no such moment.
  [[nodiscard]] const std::vector<std::optional<TraceMark>>& moments() const { return moments_.all(); }
  [[nodiscard]] const std::vector<ResidualReading>& readings() const { return readings_; }
  [[nodiscard]] const std::optional<ProbeEnd>& end() const { return end_; }
  /// The floors of the run without its exit.
  [[nodiscard]] const RunFloors& floors() const { return floors_; }

  [[nodiscard]] std::uint64_t events() const { return events_; }
  [[nodiscard]] std::uint64_t last_us() const { return last_us_; }
  [[nodiscard]] std::uint64_t shown_us() const { return shown_us_; }  ///< the moment that is shown; see finish()
  [[nodiscard]] bool has_exit() const { return has_exit_; }
  /// When an interpreter began to release what it held; 0: unknown.
  [[nodiscard]] std::uint64_t end_us() const { return end_us_; }
  /// When the process ended normally; 0: it did not, or the trace does not show it.
  [[nodiscard]] std::uint64_t exit_us() const { return exit_us_; }
  [[nodiscard]] std::int64_t live_bytes(MemorySpace space) const { return live_.of(space); }
  [[nodiscard]] std::int64_t backing_bytes() const { return live_.backing_bytes; }
  /// Bytes of backing that no block uses: the framework's cache.
  [[nodiscard]] std::int64_t cached_bytes() const;
  [[nodiscard]] std::int64_t peak_bytes() const { return live_.peak_bytes; }
  [[nodiscard]] std::uint64_t peak_us() const { return live_.peak_us; }
  [[nodiscard]] std::uint64_t lost_records() const { return lost_; }
  [[nodiscard]] std::uint64_t most_interval_bytes() const { return most_interval_; }
  /// Frees of addresses with no recorded allocation, mostly of memory from before the trace began. Bytes are known only
  /// if the freeing call reports them.
  [[nodiscard]] const Held& freed_of_before() const { return freed_of_before_; }
  [[nodiscard]] std::uint64_t replaced() const { return replaced_; }
  [[nodiscard]] const MemoryFailures& failures() const { return failures_; }
  /// The failure that the program saw. Null if there is none.
  [[nodiscard]] const MemoryFailure* failure() const { return failures_.seen(has_framework_); }
  /// What the program reported about live blocks; `place` is the index of the call site.
  [[nodiscard]] const std::vector<LiveReports::BlockReport>& reported() const { return reported_; }
  [[nodiscard]] const KeeperLooks& looks() const { return looks_; }
  /// The blocks that each call site holds: when each was allocated, and in which order the exit freed them.
  [[nodiscard]] const std::vector<SiteBlocks>& blocks() const { return blocks_; }
  /// The last allocations, whether freed or not; the call site is an index into sites().
  [[nodiscard]] const std::vector<Passing>& passing() const { return last_allocations_.all(); }

 private:
  struct Live {
    std::array<std::int64_t, kMemorySpaces> by_space{};
    std::int64_t backing_bytes = 0;
    std::int64_t backed_bytes = 0;  ///< blocks that are in backing
    std::int64_t driver_bytes = 0;  ///< device memory, to compare with a driver's figure
    std::int64_t peak_bytes = 0;    ///< the peak of device memory
    std::uint64_t peak_us = 0;
    [[nodiscard]] std::int64_t of(MemorySpace space) const { return by_space[static_cast<std::size_t>(space)]; }
  };

  void take(const probe::Slot& slot);
  void keep_totals(const probe::Slot& slot);
  void describe_device(const probe::Slot& slot);
  void begin_to_end(std::uint64_t now_us);
  void go_on(std::uint64_t now_us);
  void label(const probe::Slot& slot);
  void fail_to_allocate(const probe::Slot& slot);
  void look(const probe::Slot& slot);
  void mark(const probe::Slot& slot);
  void allocated(const probe::Slot& slot);
  void freed(const probe::Slot& slot);
  void give_back(AddressTable<LiveCell>& table, LiveCell* cell, std::uint64_t now_us);
  void now_backs(std::uint64_t address, std::uint64_t bytes);
  void see_peak(std::uint64_t now_us);
  void backs_one_less(std::uint64_t address, std::uint64_t now_us);
  void changed(CallSite& site, const Held& by, int sign);
  LiveCell* named_block(std::uint64_t address);
  void begin_event(std::uint64_t now_us);
  void end_event();
  void return_exit();
  void see_blocks();
  void visit(const CallSite& site, std::uint64_t address, std::uint64_t time_us, std::int64_t bytes) {
    if (visit_ == nullptr) return;
    Status status = (*visit_)(index_, site, address, time_us, bytes);
    if (visited_) visited_ = std::move(status);
  }

  std::uint32_t index_;
  ProbeProcess process_;
  const ChangeVisit* visit_ = nullptr;
  Status visited_;

  ProcessNames names_;
  std::map<int, DeviceOfTrace> devices_;
  TraceMoments moments_;
  std::vector<ResidualReading> readings_;
  std::optional<ProbeEnd> end_;

  SiteTable sites_;
  std::array<AddressTable<LiveCell>, 2> live_cells_;  ///< by level
  Extents extents_;
  bool has_framework_ = false;  ///< a framework's blocks are recorded (PyTorch)
  Live live_;
  RunFloors floors_;
  MemoryFailures failures_;
  KeeperLooks looks_;
  LastAllocations last_allocations_;
  std::vector<SiteBlocks> blocks_;
  LiveReports live_reports_;
  std::vector<LiveReports::BlockReport> reported_;

  std::uint64_t events_ = 0, last_us_ = 0, shown_us_ = 0, end_us_ = 0, exit_us_ = 0;
  std::uint64_t interval_ = 0, most_interval_ = 0;
  Held freed_of_before_;
  std::uint64_t lost_ = 0, replaced_ = 0;

  ExitTrail trail_;
  std::vector<Held> at_exit_;
  bool is_ending_ = false;  ///< the process reported its end
  bool has_exit_ = false;
  bool goes_on_ = false;
};

/// All processes of a run. Reads one file or several that belong together (a trace and the rings that outlived it).
class ProbeTrace : public ProbeFileVisit {
 public:
  ProbeTrace();
  ~ProbeTrace() override;
  /// Call before reading: keeps what each process held at these moments.
  void wants(std::vector<MomentName> moments) { wanted_ = std::move(moments); }
  void sees_changes(ChangeVisit visit) { visit_ = std::move(visit); }

  Status read(ByteInput input);
  /// Call once, after the last file.
  void finish();

  [[nodiscard]] const std::vector<std::unique_ptr<ProcessTrace>>& processes() const { return processes_; }
  /// The facts about the first file.
  [[nodiscard]] const ProbeFileInfo& info() const { return info_; }
  [[nodiscard]] const std::vector<std::string>& losses() const { return losses_; }
  /// The commands of the files, each once.
  [[nodiscard]] std::string program() const;
  [[nodiscard]] double duration_s() const;
  /// The time of the last record, or of the program's end.
  [[nodiscard]] std::int64_t end_realtime_us() const;
  [[nodiscard]] const std::optional<ProbeEnd>& end() const { return end_; }
  /// Which processes held memory when an allocation failed; empty if no driver lists processes.
  [[nodiscard]] const std::vector<ProbeHolder>& holders() const { return holders_; }
  /// The build id of the module at `path`; empty if unknown.
  [[nodiscard]] std::string_view build_id(const std::string& path) const;

  Status process(std::uint32_t index, const ProbeProcess& process) override;
  Status slots(std::uint32_t process, std::span<const probe::Slot> slots) override;
  Status module(std::uint32_t process, const ProbeModule& module) override;
  Status reading(std::uint32_t process, const ProbeReading& reading) override;
  Status holder(const ProbeHolder& holder) override;
  Status end(std::uint32_t process, const ProbeEnd& end) override;

 private:
  std::vector<MomentName> wanted_;
  ChangeVisit visit_;
  std::vector<std::unique_ptr<ProcessTrace>> processes_;
  std::vector<std::size_t> of_file_;  ///< by the index in the file being read
  std::unordered_map<std::string, std::string> build_ids_;
  ProbeFileInfo info_;
  std::vector<std::string> programs_;
  bool has_info_ = false;
  std::vector<std::string> losses_;
  std::vector<ProbeHolder> holders_;
  std::optional<ProbeEnd> end_;
};

}  // namespace vramtrack::trace
