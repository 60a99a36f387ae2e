// ProbeTrace: what a trace of `vramtrack run` shows of each process: what holds memory, and how it changed in the run.
// Names of native frames are looked up later (probe_names.hpp).
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
#include "trace/category.hpp"
#include "trace/lockstep.hpp"
#include "trace/probe_file.hpp"
#include "trace/site_growth.hpp"
#include "trace/symbols.hpp"

namespace vramtrack::trace {

/// Memory that is counted apart.
enum class Ledger : std::uint8_t {
  device,  ///< the device's own and managed
  host,    ///< pinned host memory
  mapped,  ///< another's, mapped and not owned
};
inline constexpr std::size_t kLedgers = 3;
constexpr Ledger ledger_of(probe::Memory memory) {
  if (memory == probe::Memory::host) return Ledger::host;
  return memory == probe::Memory::mapped ? Ledger::mapped : Ledger::device;
}

/// A frame as it was recorded.
struct RawFrame {
  bool is_python = false;
  bool is_entry = false;      ///< of Python: the native frames after it called the interpreter's loop
  std::uint32_t line = 0;     ///< of Python
  std::uint64_t address = 0;  ///< native: the return address; Python: number of the code object
};

struct CodeObject {
  std::uint32_t first_line = 0;
  std::uint32_t file = 0, name = 0;  ///< texts
};

struct MappedModule {
  std::string path;
  std::uint64_t begin = 0, length = 0;
  std::uint64_t file_offset = 0;
};

/// Bytes and blocks; while sampling those that the recorded ones stand for.
struct Held {
  std::int64_t bytes = 0;
  std::int64_t blocks = 0;
};

/// What keeps blocks, as the program found it at one look (Record::kept).
struct FoundKeeper {
  std::string words;            ///< "losses (list, 406 items), local of train() at train.py:16"; untrusted
  bool is_rooted = false;       ///< it leads to a variable
  bool has_graphs = false;      ///< some of what it keeps has a graph, which keeps blocks that Python has no object for
  std::uint64_t blocks = 0;     ///< of the site, of those that the look named: a sample
  std::uint64_t looked_us = 0;  ///< when the look began
  Held stands_for;              ///< what it keeps of the site, estimated from the sample
  std::int64_t live_blocks = 0;                            ///< of the site when the look ended
  std::uint64_t first_us = 0, middle_us = 0, last_us = 0;  ///< when the blocks of the sample were allocated
};

/// What the newest look says of a site's blocks besides.
struct SiteLook {
  std::int64_t live_blocks = 0;  ///< of the site at that moment
  /// Blocks that Python has an object for (a sample): nothing was found to refer to it, or it was not asked about.
  std::uint64_t unheld = 0, unasked = 0;
};

/// The end of a look at what keeps memory.
struct KeptLook {
  std::uint64_t time_us = 0;
  bool was_made = false;  ///< false: it was refused
  std::string why;        ///< it was refused, or is not complete; empty: it is
};

/// One stack that allocates by one call on one device.
struct CallSite {
  std::uint32_t stack = 0;  ///< its number in the process
  probe::Call call = probe::Call::none;
  probe::Level level = probe::Level::driver;
  Ledger ledger = Ledger::device;
  std::int8_t device = 0;
  std::uint16_t thread = 0;  ///< that allocated there first
  Held live;                 ///< without those in which blocks lie
  Held low;                  ///< the least in the stretch that is open
  Held epoch;                ///< and in the epoch that is open
  std::uint64_t allocations = 0;
  std::uint64_t first_us = 0, last_us = 0;           ///< of the first and the last of them
  std::uint64_t returned = 0;                        ///< blocks of earlier epochs that were given back
  std::uint32_t first_stretch = 0, first_epoch = 0;  ///< of the first entry of the next two; before it: nothing
  std::vector<Floor> stretches, epochs;
  std::uint64_t oldest_us = 0;  ///< of what is live at the end; see ProcessTrace::finish()
};

struct TraceMark {
  std::string name;
  std::uint64_t time_us = 0;
  std::int64_t live_bytes = 0;
  std::vector<Held> sites;  ///< of each call site, where the moment was asked for
};

/// An allocation that a limit refused or that failed, and what was live then.
struct MemoryFailure {
  std::uint64_t time_us = 0;
  std::uint64_t asked_bytes = 0;
  std::uint64_t figure_bytes = 0;  ///< refused: what was held; failed: what the device had free, 0: not known
  std::uint64_t limit_bytes = 0;   ///< that was in force; 0: none
  bool is_refused = false;         ///< by a limit
  int device = 0;
  probe::Call call = probe::Call::none;
  std::uint32_t stack = 0;
  std::int64_t live_bytes = 0;  ///< of the device ledger, blocks in backing counted once
  std::int64_t backing_bytes = 0;
  std::int64_t cached_bytes = 0;  ///< backing that no block used
  std::vector<Held> sites;        ///< of each call site
};

/// What the driver and the probe said at one moment.
struct ResidualReading {
  std::int64_t realtime_us = 0;
  std::uint64_t process_bytes = 0;
  std::int64_t tracked_bytes = 0;
};

/// A moment that a caller names: a mark ("epoch", "epoch#3": the third of that name), or a time ("12.5s").
struct MomentName {
  std::string mark;
  std::uint64_t number = 1;
  std::optional<std::uint64_t> time_us;
};
/// Errors: neither a time nor a name.
Result<MomentName> parse_moment(const std::string& text);

struct DeviceOfTrace {
  std::string uuid, name;
  std::uint64_t total_bytes = 0;
  std::uint64_t allocated_bytes = 0, reserved_bytes = 0;  ///< as the framework said last
  bool has_totals = false;
};

/// "device 0 (NVIDIA H100)". Where the API has no ordinals, the name alone: a number would be ours, and mean nothing.
std::string device_words(int number, std::string_view name);

/// Sees each change of what is live: for exports of events. `bytes` negative: given back.
using ChangeVisit = std::function<Status(std::uint32_t process, const CallSite& site, std::uint64_t address,
                                         std::uint64_t time_us, std::int64_t bytes)>;

/// The replay of one process. Memory: 40 bytes a live block, up to 2 KiB a call site, 512 KiB of last allocations, the
/// names; at the end 8 bytes more for each of a million blocks.
class ProcessTrace {
 public:
  ProcessTrace(std::uint32_t index, ProbeProcess process) : index_(index), process_(std::move(process)) {}

  void wants(std::vector<MomentName> moments) {
    wanted_ = std::move(moments);
    moments_.resize(wanted_.size());
  }
  Status take(std::span<const probe::Slot> slots, const ChangeVisit& visit);
  void take(const ProbeReading& reading);
  void take(const ProbeEnd& end) { end_ = end; }
  /// Once, at the end. What the process gave back at its end, with nothing allocated any more, is its exit: the state
  /// that is judged and shown is the one before that. `end_us`: of the whole run, by this process's clock: moments up
  /// to there are known.
  void finish(std::uint64_t end_us);

  [[nodiscard]] const ProbeProcess& process() const { return process_; }
  [[nodiscard]] std::string command() const;
  [[nodiscard]] const std::vector<CallSite>& sites() const { return sites_; }
  /// Of each call site; nothing of a process that goes on.
  [[nodiscard]] const std::vector<Held>& held_at_exit() const { return at_exit_; }
  /// Whether the recording ended before the process did.
  [[nodiscard]] bool goes_on() const { return goes_on_; }
  [[nodiscard]] std::string_view text(std::uint32_t number) const;
  [[nodiscard]] const std::vector<RawFrame>& stack(std::uint32_t number) const;
  /// Empty: not known.
  [[nodiscard]] std::string_view thread_name(std::uint16_t thread) const;
  [[nodiscard]] const CodeObject* code(std::uint32_t number) const;
  /// The last that was mapped there.
  [[nodiscard]] const MappedModule* module_at(std::uint64_t address) const;
  [[nodiscard]] const std::map<int, DeviceOfTrace>& devices() const { return devices_; }
  [[nodiscard]] const std::vector<TraceMark>& marks() const { return marks_; }
  /// Those that were asked for, in that order; nullopt: the process has no such moment.
  [[nodiscard]] const std::vector<std::optional<TraceMark>>& moments() const { return moments_; }
  [[nodiscard]] const std::vector<ResidualReading>& readings() const { return readings_; }
  [[nodiscard]] const std::optional<ProbeEnd>& end() const { return end_; }

  /// Floors of the whole run, of equal length for every site; without the stretches of its exit.
  [[nodiscard]] std::vector<Floor> stretches(const CallSite& site) const;
  [[nodiscard]] std::size_t stretch_count() const { return fine_stretches_ / fine_in_stretch_; }
  /// The same, as fine as they are known.
  [[nodiscard]] std::vector<Floor> fine_stretches(const CallSite& site) const;
  /// From the end of the first judged stretch to the end of the last, of a run with `parts` parts and `start` skipped.
  [[nodiscard]] double judged_s() const;
  /// Floors between the marks of the name that comes most often; empty where there are fewer than kLeastEpochs of it.
  [[nodiscard]] std::vector<Floor> epochs(const CallSite& site) const;
  [[nodiscard]] std::size_t epoch_count() const { return epoch_bounds_.empty() ? 0 : epoch_bounds_.size(); }
  [[nodiscard]] const std::string& epoch_name() const { return epoch_name_; }

  [[nodiscard]] std::uint64_t events() const { return events_; }
  [[nodiscard]] std::uint64_t last_us() const { return last_us_; }
  [[nodiscard]] std::uint64_t shown_us() const { return shown_us_; }  ///< the moment that is shown: see finish()
  [[nodiscard]] bool has_exit() const { return has_exit_; }
  /// When an interpreter began to give back what it held; 0: not known.
  [[nodiscard]] std::uint64_t end_us() const { return end_us_; }
  /// When the process ended normally; 0: it did not, or the trace does not show it.
  [[nodiscard]] std::uint64_t exit_us() const { return exit_us_; }
  [[nodiscard]] std::int64_t live_bytes(Ledger ledger) const { return live_[static_cast<std::size_t>(ledger)]; }
  [[nodiscard]] std::int64_t backing_bytes() const { return backing_bytes_; }
  /// Backing that no block uses: the framework's cache.
  [[nodiscard]] std::int64_t cached_bytes() const;
  [[nodiscard]] std::int64_t peak_bytes() const { return peak_bytes_; }
  [[nodiscard]] std::uint64_t peak_us() const { return peak_us_; }
  [[nodiscard]] std::uint64_t lost_records() const { return lost_; }
  [[nodiscard]] std::uint64_t most_interval_bytes() const { return most_interval_; }
  /// Frees of addresses that the trace never saw allocated, mostly of what was there before it began. Bytes: where the
  /// freeing call tells them.
  [[nodiscard]] const Held& freed_of_before() const { return freed_of_before_; }
  [[nodiscard]] std::uint64_t replaced() const { return replaced_; }
  [[nodiscard]] std::uint64_t refused() const { return refused_; }
  [[nodiscard]] std::uint64_t failed() const { return failed_; }
  /// The failure that the program saw: the framework's first one, else the driver's. If the driver refuses memory to a
  /// framework that raises its own errors (PyTorch), the framework tries again. Null: none.
  [[nodiscard]] const MemoryFailure* failure() const {
    if (block_failure_) return &*block_failure_;
    return driver_failure_ && !has_framework_ ? &*driver_failure_ : nullptr;
  }
  /// What the program reported about live blocks; `place` is the index of the call site.
  [[nodiscard]] const std::vector<LiveTold::Told>& told() const { return told_; }
  [[nodiscard]] bool is_python() const { return is_python_; }
  /// By call site, an index of sites(): what keeps its blocks, by the newest look that found any; first what leads to a
  /// variable, and of that what keeps most. Of several that keep the same blocks it is one.
  [[nodiscard]] const std::map<std::uint32_t, std::vector<FoundKeeper>>& keepers() const { return keepers_; }
  /// Of a call site, an index of sites(). REQUIRES: last_look().
  [[nodiscard]] SiteLook site_look(std::size_t site) const {
    return site < site_looks_.size() ? site_looks_[site] : SiteLook{};
  }
  /// The newest one. Null: none was asked for, or none ended.
  [[nodiscard]] const std::optional<KeptLook>& last_look() const { return last_look_; }
  /// What each call site holds, block by block: allocated when, and at the exit given back in which order.
  [[nodiscard]] const std::vector<SiteBlocks>& blocks() const { return blocks_; }
  /// The last allocations, of whatever became of them; the call site is an index of sites().
  [[nodiscard]] const std::vector<Passing>& passing() const { return passing_; }

 private:
  struct Cell {
    std::uint64_t address = 0;
    std::uint64_t bytes = 0;
    std::uint64_t time_us : 48 = 0;
    std::uint64_t is_in_use : 1 = 0;
    std::uint64_t is_backing : 1 = 0;
    std::uint32_t site = 0;
    float stands_for = 1;  ///< blocks
    [[nodiscard]] bool is_used() const { return is_in_use != 0; }
  };
  static_assert(sizeof(Cell) == 32);
  struct Returned {
    std::uint32_t site = 0;
    std::uint64_t time_us = 0;
    Held held;
    std::optional<LiveTold::Told> told;
  };
  static Held held_of(const Cell& cell);

  void keep_frame(const probe::Slot& slot);
  void keep_text(const probe::Slot& slot);
  void keep_totals(const probe::Slot& slot);
  void describe_device(const probe::Slot& slot);
  void begin_to_end(std::uint64_t now_us);
  void label(const probe::Slot& slot);
  void lacked(const probe::Slot& slot);
  void kept(const probe::Slot& slot);
  void end_look(std::uint64_t begun_us);
  void allocated(const probe::Slot& slot);
  void freed(const probe::Slot& slot);
  void give_back(AddressTable<Cell>& table, Cell* cell, std::uint64_t now_us);
  void now_backs(std::uint64_t address, std::uint64_t bytes);
  void see_peak(std::uint64_t now_us);
  void backs_one_less(std::uint64_t address, std::uint64_t now_us);
  void forget_trail() {
    trail_.clear();
    trail_unused_.clear();
  }
  void changed(CallSite& site, const Held& by, int sign);
  std::uint32_t site_of(const probe::Slot& slot);
  void count_event();
  void close_stretch();
  void join_stretches();
  void mark(std::uint32_t text, std::uint64_t time_us);
  void close_epoch();
  void see_blocks();
  void take_moments(std::uint64_t now_us);
  void take_moment(std::size_t index, std::string name, std::uint64_t time_us);
  void remember(Status status) {
    if (visited_) visited_ = std::move(status);
  }

  std::uint32_t index_;
  ProbeProcess process_;
  std::vector<MomentName> wanted_;
  const ChangeVisit* visit_ = nullptr;
  Status visited_;

  std::unordered_map<std::uint32_t, std::string> texts_;
  std::unordered_map<std::uint16_t, std::uint32_t> threads_;  ///< the texts of their names
  std::unordered_map<std::uint32_t, CodeObject> codes_;
  std::unordered_map<std::uint32_t, std::vector<RawFrame>> stacks_;
  std::vector<MappedModule> modules_;
  std::map<int, DeviceOfTrace> devices_;
  std::vector<TraceMark> marks_;
  std::vector<std::optional<TraceMark>> moments_;  ///< by wanted_
  std::unordered_map<std::string, std::uint64_t> mark_counts_;
  std::vector<ResidualReading> readings_;
  std::optional<ProbeEnd> end_;
  std::uint32_t command_text_ = 0;
  bool is_python_ = false;

  std::vector<CallSite> sites_;
  IdTable site_ids_;
  std::uint64_t last_key_ = ~std::uint64_t{0};
  std::uint32_t last_site_ = 0;
  std::array<AddressTable<Cell>, 2> live_cells_;  ///< by level
  /// Driver allocations of device memory by address, from the first block on.
  struct Extent {
    std::uint64_t bytes = 0;
    std::uint64_t bound = 0;  ///< live blocks in it that the program itself put there
  };
  std::map<std::uint64_t, Extent> extents_;
  bool has_blocks_ = false;
  bool has_framework_ = false;                       ///< of the blocks, PyTorch's
  std::uint64_t extent_begin_ = 1, extent_end_ = 0;  ///< those found last: known to be backing

  std::array<std::int64_t, kLedgers> live_{};
  std::int64_t backing_bytes_ = 0;
  std::int64_t backed_bytes_ = 0;  ///< of blocks that lie in backing
  std::int64_t driver_bytes_ = 0;  ///< of the device ledger: what a driver's figure is compared with
  std::int64_t peak_bytes_ = 0;
  std::uint64_t peak_us_ = 0;
  std::uint64_t events_ = 0, last_us_ = 0, shown_us_ = 0, end_us_ = 0, exit_us_ = 0;
  std::uint64_t interval_ = 0, most_interval_ = 0;
  std::optional<MemoryFailure> block_failure_, driver_failure_;
  std::uint64_t limit_ = 0;
  Held freed_of_before_;
  std::uint64_t lost_ = 0, replaced_ = 0, refused_ = 0, failed_ = 0;

  std::uint64_t stretch_events_ = 1, open_events_ = 0;
  std::vector<std::uint64_t> stretch_ends_us_;
  std::size_t fine_stretches_ = 0;  ///< without those of the exit
  std::size_t fine_in_stretch_ = 1;
  std::vector<std::string> epoch_names_;            ///< of the mark that begins each epoch that is kept
  std::uint64_t epoch_marks_ = 1, open_marks_ = 0;  ///< marks in each epoch that is kept, and in the one that is open
  std::uint64_t epoch_begin_us_ = 0;
  bool is_in_epoch_ = false;
  std::string epoch_name_;
  std::vector<std::pair<std::size_t, std::size_t>> epoch_bounds_;  ///< of the name that comes most often

  /// A block that the open look named.
  struct KeptBlock {
    std::uint32_t text = 0, site = 0;
    std::uint8_t flags = 0;
    std::uint64_t address = 0, time_us = 0;
    Held held;
    std::uint64_t all_bytes = 0;  ///< that its keeper keeps
  };
  std::vector<KeptBlock> open_look_;
  std::vector<SiteLook> site_looks_;
  std::map<std::uint32_t, std::vector<FoundKeeper>> keepers_;
  std::optional<KeptLook> last_look_;

  LiveTold live_told_;
  std::vector<LiveTold::Told> told_;

  std::vector<Passing> passing_;  ///< a ring until finish()
  std::size_t passing_next_ = 0;
  std::vector<SiteBlocks> blocks_;

  // What was given back since the last allocation: perhaps the exit.
  std::vector<Returned> trail_;
  /// By address: what became its site's again since then, as nothing lay in it any more.
  std::unordered_map<std::uint64_t, std::uint32_t> trail_unused_;
  std::uint64_t trail_begin_us_ = 0;
  std::int64_t trail_live_ = 0, trail_freed_ = 0;
  std::int64_t trail_backing_ = 0, trail_backed_ = 0;
  std::size_t trail_stretches_ = 0, trail_blocks_ = 0;
  std::vector<Held> at_exit_;
  bool is_ending_ = false;  ///< the process said so
  bool has_exit_ = false;
  bool goes_on_ = false;
};

/// All processes of a run. Reads one file or several that belong together (a trace and the rings that outlived it).
class ProbeTrace : public ProbeFileVisit {
 public:
  ProbeTrace();
  ~ProbeTrace() override;
  /// Before reading: what each process held at these moments is kept.
  void wants(std::vector<MomentName> moments) { wanted_ = std::move(moments); }
  void sees_changes(ChangeVisit visit) { visit_ = std::move(visit); }

  Status read(ByteInput input);
  /// Once, after the last file.
  void finish();

  [[nodiscard]] const std::vector<std::unique_ptr<ProcessTrace>>& processes() const { return processes_; }
  /// Of the first file.
  [[nodiscard]] const ProbeFileInfo& info() const { return info_; }
  [[nodiscard]] const std::vector<std::string>& losses() const { return losses_; }
  /// The commands of the files, each once.
  [[nodiscard]] std::string program() const;
  [[nodiscard]] double duration_s() const;
  /// Of the last record, or of the program's end.
  [[nodiscard]] std::int64_t end_realtime_us() const;
  [[nodiscard]] const std::optional<ProbeEnd>& end() const { return end_; }
  /// Which processes held memory when an allocation failed; empty if no driver lists processes.
  [[nodiscard]] const std::vector<ProbeHolder>& holders() const { return holders_; }
  /// Empty: not known.
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
  std::vector<std::size_t> of_file_;  ///< by the index in the file that is read
  std::unordered_map<std::string, std::string> build_ids_;
  ProbeFileInfo info_;
  std::vector<std::string> programs_;
  bool has_info_ = false;
  std::vector<std::string> losses_;
  std::vector<ProbeHolder> holders_;
  std::optional<ProbeEnd> end_;
};

}  // namespace vramtrack::trace
