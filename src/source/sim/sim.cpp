#include "source/sim/sim.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>
#include <utility>

#include "core/format.hpp"
#include "core/limit_end.hpp"
#include "source/sim/instruments.hpp"
#include "source/sim/processes.hpp"
#include "source/sim/random.hpp"

namespace vramtrack::sim {
namespace {

constexpr double kNever_s = std::numeric_limits<double>::infinity();

/// When the next reading is taken, and with which stamp: jitter, drops, duplicates, gaps, clock steps.
class Sampling {
 public:
  explicit Sampling(const Scenario& scenario)
      : scenario_(scenario),
        random_(substream(scenario.seed, "sampling")),
        gap_random_(substream(scenario.seed, "gaps")),
        ticks_(static_cast<std::uint64_t>(scenario.duration_s / scenario.period_s + 1e-9) + 1) {
    schedule_gap(0);
  }

  struct Tick {
    double t_s = 0;      ///< true time since the scenario's start
    double stamp_s = 0;  ///< what the clock shows
    bool seen = true;    ///< false: dropped, or in a gap
  };

  [[nodiscard]] bool done() const { return index_ >= ticks_; }

  /// Makes three draws per tick whichever settings are on, so that one setting does not affect the others.
  Tick next() {
    Tick tick;
    const double offset = scenario_.jitter * (random_.uniform() - 0.5);
    const bool dropped = random_.uniform() < scenario_.drop;
    const bool duplicate = random_.uniform() < scenario_.duplicate;
    tick.t_s = std::max(static_cast<double>(index_++) + offset, 0.0) * scenario_.period_s;
    tick.stamp_s = clock(tick.t_s);
    if (duplicate && last_stamp_s_) tick.stamp_s = *last_stamp_s_;
    tick.seen = !dropped && !in_gap(tick.t_s);
    if (tick.seen) last_stamp_s_ = tick.stamp_s;
    return tick;
  }

 private:
  [[nodiscard]] double clock(double t_s) const {
    double stamp_s = t_s;
    for (const FaultSpec& fault : scenario_.faults)
      if (fault.kind == FaultSpec::Kind::clock_step && t_s >= fault.from_s) stamp_s += fault.step_s;
    const double resolution_s = scenario_.stamp_resolution_s;
    return resolution_s > 0 ? std::floor(stamp_s / resolution_s + 1e-9) * resolution_s : stamp_s;
  }
  void schedule_gap(double from_s) {
    gap_from_s_ = scenario_.gaps_per_s > 0 ? from_s + gap_random_.exponential(1 / scenario_.gaps_per_s) : kNever_s;
    gap_to_s_ = gap_from_s_ + (scenario_.gaps_per_s > 0 ? gap_random_.exponential(scenario_.gap_s) : 0);
  }
  bool in_gap(double t_s) {
    while (t_s >= gap_to_s_) schedule_gap(gap_to_s_);
    for (const FaultSpec& fault : scenario_.faults)
      if (fault.kind == FaultSpec::Kind::gap && t_s >= fault.from_s && t_s < fault.to_s) return true;
    return t_s >= gap_from_s_;
  }

  const Scenario& scenario_;
  Random random_;
  Random gap_random_;
  std::uint64_t ticks_;
  std::uint64_t index_ = 0;
  double gap_from_s_ = kNever_s;
  double gap_to_s_ = kNever_s;
  std::optional<double> last_stamp_s_;
};

class Simulation final : public Source {
 public:
  Simulation(const Scenario& scenario, Catalog& catalog)
      : scenario_(scenario),
        catalog_(catalog),
        sampling_(scenario_),
        processes_(scenario_),
        instruments_(scenario_),
        busy_(scenario_.devices.size(), 0),
        busy_reported_(scenario_.devices.size(), false),
        lost_(scenario_.devices.size(), false),
        fault_reported_(scenario_.faults.size(), false),
        reported_limits_(scenario_.walls.size(), 0) {
    if (!scenario_.start) catalog_.clock_is_relative = true;
    for (const DeviceSpec& device : scenario_.devices) {
      catalog_.describe(device.info);
      device_used_.push_back(catalog_.intern({Metric::device_used, device.info.id, 0, 0}));
      device_reserved_.push_back(
          device.reserved_bytes ? catalog_.intern({Metric::device_reserved, device.info.id, 0, 0}) : SeriesId{});
    }
  }

  Result<Progress> poll(Timestamp, Batch& out) override {
    if (sampling_.done()) return Progress::end;
    const Sampling::Tick tick = sampling_.next();
    // Time advances in the simulated world whether or not a sample is taken.
    processes_.advance(tick.t_s);
    if (tick.seen) {
      time_ = scenario_.start.value_or(Timestamp{}) + from_seconds(tick.stamp_s);
      emit_faults(tick.t_s, out);
      emit_endings(out);
      emit_devices(tick.t_s, out);
      emit_processes(tick.t_s, out);
      emit_walls(tick.t_s, out);
      emit_instruments(tick.t_s, out);
      emit_facts(tick.t_s, out);
      emit_failures(out);
    }
    return sampling_.done() ? Progress::end : Progress::more;
  }

  [[nodiscard]] const SourceNotes& notes() const override { return notes_; }

 private:
  [[nodiscard]] Event event(Event::Kind kind, std::string text) const {
    Event out;
    out.time = time_;
    out.kind = kind;
    out.text = std::move(text);
    return out;
  }

  /// Lost and resumed devices, XIDs: reported once, at the first reading that could see them.
  void emit_faults(double t_s, Batch& out) {
    std::vector<bool> lost(lost_.size(), false);
    for (std::size_t i = 0; i < scenario_.faults.size(); ++i) {
      const FaultSpec& fault = scenario_.faults[i];
      const DeviceInfo& device = scenario_.devices[fault.device].info;
      if (fault.kind == FaultSpec::Kind::device_lost && t_s >= fault.from_s && t_s < fault.to_s)
        lost[fault.device] = true;
      if (fault.kind == FaultSpec::Kind::xid && t_s >= fault.from_s && !fault_reported_[i]) {
        fault_reported_[i] = true;
        Event xid = event(Event::Kind::xid, fmt::format("XID {} on {}", fault.code, device.name));
        xid.device_id = device.id;
        xid.xid = fault.code;
        out.events.push_back(std::move(xid));
      }
    }
    for (std::size_t i = 0; i < lost.size(); ++i) {
      if (lost[i] == lost_[i]) continue;
      lost_[i] = lost[i];
      Event change =
          event(lost[i] ? Event::Kind::device_lost : Event::Kind::device_resumed,
                fmt::format("{} {}", scenario_.devices[i].info.name, lost[i] ? "no longer answers" : "answers again"));
      change.device_id = scenario_.devices[i].info.id;
      out.events.push_back(std::move(change));
    }
  }

  void emit_failures(Batch& out) {
    for (const Failure& failure : processes_.take_failures()) {
      Event failed = event(Event::Kind::out_of_memory, fmt::format("pid {} reports that memory ran out", failure.pid));
      failed.pid = failure.pid;
      failed.pid_start_ticks = failure.start_ticks;
      failed.device_id = scenario_.devices[failure.device].info.id;
      out.events.push_back(std::move(failed));
    }
  }

  void emit_endings(Batch& out) {
    for (const Ending& ending : processes_.take_endings()) {
      Event ended = event(Event::Kind::process_ended, ending.out_of_memory    ? "out of memory"
                                                      : ending.killed_by_host ? "ended by the kernel"
                                                                              : "exited");
      ended.ran_out_of_memory = ending.out_of_memory;
      ended.killed_by_host = ending.killed_by_host;
      ended.pid = ending.pid;
      ended.pid_start_ticks = ending.start_ticks;
      out.events.push_back(std::move(ended));
    }
  }

  [[nodiscard]] bool readable(double t_s, std::size_t device, Metric metric, std::string_view process = {}) const {
    if (lost_[device]) return false;
    for (const FaultSpec& fault : scenario_.faults)
      if (fault.kind == FaultSpec::Kind::unreadable && fault.device == device && fault.metric == metric &&
          (fault.process.empty() || fault.process == process) && t_s >= fault.from_s && t_s < fault.to_s)
        return false;
    return true;
  }

  void emit_devices(double t_s, Batch& out) {
    for (std::size_t i = 0; i < scenario_.devices.size(); ++i) {
      const auto used = static_cast<std::uint64_t>(processes_.used_bytes(i));
      if (readable(t_s, i, Metric::device_used)) out.samples.push_back({time_, device_used_[i], used});
      const std::optional<double> reserved = scenario_.devices[i].reserved_bytes;
      if (reserved && readable(t_s, i, Metric::device_reserved))
        out.samples.push_back({time_, device_reserved_[i], static_cast<std::uint64_t>(*reserved)});
    }
  }

  void emit_processes(double t_s, Batch& out) {
    std::fill(busy_.begin(), busy_.end(), 0.0);
    for (const Run& run : processes_.runs())
      for (const Holding& holding : run.holdings)
        busy_[holding.device] +=
            (1 - busy_[holding.device]) * simulated_load(scenario_, run, holding, t_s).gpu_ratio.value_or(0);
    for (Run& run : processes_.runs()) {
      if (!run.alive || !run.spec->visible) continue;
      for (Holding& holding : run.holdings) {
        if (!readable(t_s, holding.device, Metric::process_used, run.spec->name)) continue;
        if (!holding.interned) intern(run, holding);
        out.samples.push_back({time_, holding.used_id, static_cast<std::uint64_t>(holding.used_bytes)});
        out.loads.push_back({time_, holding.used_id, simulated_load(scenario_, run, holding, t_s)});
        if (!run.spec->allocator) continue;
        out.samples.push_back({time_, holding.reserved_id, static_cast<std::uint64_t>(holding.used_bytes)});
        out.samples.push_back({time_, holding.allocated_id, static_cast<std::uint64_t>(holding.allocated_bytes)});
      }
    }
  }

  /// Emits each wall of each process that is seen, and each later move.
  void emit_walls(double t_s, Batch& out) {
    for (std::size_t i = 0; i < scenario_.walls.size(); ++i) {
      const WallSpec& wall = scenario_.walls[i];
      const auto bytes = static_cast<std::uint64_t>(wall.bytes_at(t_s));
      const std::string& device = scenario_.devices[wall.device].info.id;
      for (const Run& run : processes_.runs()) {
        const auto holding = std::find_if(run.holdings.begin(), run.holdings.end(),
                                          [&wall](const Holding& h) { return h.device == wall.device && h.interned; });
        if (!run.alive || holding == run.holdings.end() || !wall.limits(*run.spec)) continue;
        std::uint64_t& reported = reported_walls_[{i, run.pid, run.start_ticks}];
        if (reported == bytes) continue;
        reported = bytes;
        Event moved = event(Event::Kind::capacity, wall.name);
        moved.device_id = device;
        moved.pid = run.pid;
        moved.pid_start_ticks = run.start_ticks;
        moved.capacity_bytes = bytes;
        out.events.push_back(std::move(moved));
      }
      const auto before = std::exchange(reported_limits_[i], bytes);
      if (before == bytes || before == 0) continue;
      const std::string was = format_bytes(static_cast<double>(before));
      Event note =
          event(Event::Kind::note, bytes == 0 ? fmt::format("the limit of {} was lifted: {}", was, wall.name)
                                              : fmt::format("the limit of {} is now {}: {}", was,
                                                            format_bytes(static_cast<double>(bytes)), wall.name));
      note.device_id = device;
      out.events.push_back(std::move(note));
    }
  }

  void emit_instruments(double t_s, Batch& out) {
    for (std::size_t i = 0; i < scenario_.devices.size(); ++i)
      if (!lost_[i]) out.readings.push_back(instruments_.read(i, busy_[i], t_s, time_));
  }

  /// Emitted after the memory of the tick, as in a live watch.
  void emit_facts(double t_s, Batch& out) {
    std::vector<std::optional<double>> rests(scenario_.devices.size());
    for (Run& run : processes_.runs()) {
      if (!run.alive) continue;
      const bool works = t_s >= run.started_s + run.spec->works_after_s;
      if (run.spec->busy)
        for (const Holding& holding : run.holdings)
          rests[holding.device] = rests[holding.device].value_or(1) * (1 - (works ? *run.spec->busy : 0));
      if (!run.spec->visible || !run.holdings.front().interned) continue;
      const std::string& device = scenario_.devices[run.holdings.front().device].info.id;
      const auto add = [&](Metric metric, double value) {
        const SeriesId id = catalog_.intern({metric, device, run.pid, run.start_ticks});
        out.samples.push_back({time_, id, static_cast<std::uint64_t>(value)});
      };
      emit_host(run, add, out);
      if (run.started_s < 0 && !std::exchange(run.age_reported, true)) add(Metric::process_age, t_s - run.started_s);
      if (run.spec->read_share) add(Metric::process_read, read_so_far(run, works, t_s));
      if (run.spec->clients) add(Metric::process_clients, *run.spec->clients);
    }
    if (const auto left = processes_.machine_left_bytes())
      for (std::size_t i = 0; i < scenario_.devices.size(); ++i)
        if (const DeviceInfo& device = scenario_.devices[i].info; device.shares_host_memory && !lost_[i])
          out.samples.push_back(
              {time_, catalog_.intern({Metric::host_available, device.id, 0, 0}), static_cast<std::uint64_t>(*left)});
    // A device is busy while any of its processes works, and idle once its processes have ended.
    for (std::size_t i = 0; i < rests.size(); ++i) {
      if (rests[i]) busy_reported_[i] = true;
      if (!busy_reported_[i] || lost_[i]) continue;
      const SeriesId id = catalog_.intern({Metric::device_busy, scenario_.devices[i].info.id, 0, 0});
      out.samples.push_back(
          {time_, id, static_cast<std::uint64_t>(std::llround((1 - rests[i].value_or(1)) * kBusyWhole))});
    }
  }

  template <class Add>
  void emit_host(Run& run, const Add& add, Batch& out) {
    const ProcessSpec& spec = *run.spec;
    if (run.host.parts.empty()) return;
    if (const auto limit = spec.host_limit_bytes ? spec.host_limit_bytes : scenario_.host_memory_bytes;
        limit && !std::exchange(run.limit_reported, true)) {
      Event wall = event(Event::Kind::capacity,
                         spec.host_limit_bytes
                             ? "memory.max of " + (spec.info.cgroup.empty() ? "/" + spec.name : spec.info.cgroup)
                             : std::string(kMachineMemory));
      wall.device_id = kHostMemory;
      wall.pid = run.pid;
      wall.pid_start_ticks = run.start_ticks;
      wall.capacity_bytes = static_cast<std::uint64_t>(*limit);
      out.events.push_back(std::move(wall));
    }
    if (const auto left = processes_.host_left_bytes(run)) add(Metric::host_available, *left);
    add(Metric::host_resident, run.host.bytes + spec.host_mapped_bytes);
    if (spec.host_pinned) add(Metric::host_pinned, *spec.host_pinned * run.host.bytes);
    add(Metric::host_anonymous, run.host.bytes);
  }

  static double read_so_far(Run& run, bool works, double t_s) {
    double holds = 0;
    for (const Holding& holding : run.holdings) holds += holding.used_bytes;
    if (run.read_at_s < run.started_s) run.read_bytes = run.grown_bytes = 0;  // a new run
    run.read_bytes += works ? run.spec->reads_per_s * std::max(0.0, t_s - std::max(run.read_at_s, run.started_s))
                            : *run.spec->read_share * std::max(0.0, holds - run.grown_bytes);
    run.grown_bytes = std::max(run.grown_bytes, holds);
    run.read_at_s = t_s;
    return run.read_bytes;
  }

  void intern(Run& run, Holding& holding) {
    const std::string& device = scenario_.devices[holding.device].info.id;
    const auto id = [&](Metric metric) { return catalog_.intern({metric, device, run.pid, run.start_ticks}); };
    ProcessInfo info = run.spec->info;
    info.pid = run.pid;
    info.start_ticks = run.start_ticks;
    catalog_.describe(info);
    holding.used_id = id(Metric::process_used);
    if (run.spec->allocator) {
      holding.reserved_id = id(Metric::allocator_reserved);
      holding.allocated_id = id(Metric::allocator_allocated);
    }
    holding.interned = true;
    run.seen = true;
  }

  const Scenario scenario_;
  Catalog& catalog_;
  Sampling sampling_;
  Processes processes_;
  Instruments instruments_;
  std::vector<double> busy_;         ///< per device: share of time in which one of its processes works
  std::vector<bool> busy_reported_;  ///< per device: whether its utilisation is reported
  std::vector<SeriesId> device_used_;
  std::vector<SeriesId> device_reserved_;
  std::vector<bool> lost_;
  std::vector<bool> fault_reported_;
  std::map<std::tuple<std::size_t, std::uint32_t, std::uint64_t>, std::uint64_t>
      reported_walls_;                          ///< by wall and process
  std::vector<std::uint64_t> reported_limits_;  ///< by wall
  Timestamp time_{};
  SourceNotes notes_;
};

}  // namespace

std::unique_ptr<Source> make_simulation(const Scenario& scenario, Catalog& catalog) {
  return std::make_unique<Simulation>(scenario, catalog);
}

}  // namespace vramtrack::sim
