#include "fleet/judge.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

#include "core/order.hpp"
#include "engine/engine.hpp"
#include "report/conclusion.hpp"
#include "report/report.hpp"

namespace vramtrack::fleet {
namespace {

/// The number of samples passed to the engine at once: enough that the cost of a batch is negligible.
constexpr std::size_t kBatch = 4096;
/// The number of programs per machine whose runs on GPUs are remembered.
constexpr std::size_t kMostPrograms = 128;

bool is_on_device(const ProgramIdentity& identity) {
  return identity.text.starts_with(ProgramMemory::kOnDevice);
}

/// Keeps, for work that has a name but no command, only the heights at which it stood still: the next run may differ in
/// size, and memory that rose until the run was ended may have been a cache.
Program heights_of(Program program) {
  std::erase_if(program.recent, [](const FinishedRun& run) { return run.outcome != RunOutcome::settled; });
  for (FinishedRun& run : program.recent) run.seen_from_start = false;
  return program;
}

/// See GpuVerdict::users_at().
std::vector<const Workload*> users_of(const std::vector<Tenancy>& tenancies, Timestamp time) {
  if (tenancies.empty()) return {};
  // The latest time up to `time` at which anybody used it.
  std::int64_t at_ms = INT64_MIN;
  for (const Tenancy& tenancy : tenancies)
    if (time_of(tenancy.first_ms) <= time) at_ms = std::max(at_ms, std::min(tenancy.last_ms, ms_of(time)));
  at_ms = std::max(at_ms, tenancies.front().first_ms);
  std::vector<const Workload*> users;
  for (const Tenancy& tenancy : tenancies)
    if (tenancy.first_ms <= at_ms && at_ms <= tenancy.last_ms) users.push_back(&tenancy.workload);
  // One of several scrapes may have fewer labels.
  if (std::any_of(users.begin(), users.end(), [](const Workload* user) { return !user->group().empty(); }))
    std::erase_if(users, [](const Workload* user) { return user->group().empty(); });
  return users;
}

}  // namespace

const Alert* GpuVerdict::leak() const {
  for (const Alert& alert : alerts)
    if (alert.finding.leak && !alert.cleared) return &alert;
  return nullptr;
}

bool GpuVerdict::is_paged() const {
  return std::any_of(alerts.begin(), alerts.end(), [](const Alert& alert) {
    return alert.finding.leak && !alert.cleared && !alert.paged_because.empty();
  });
}

bool GpuVerdict::has_leaked() const {
  return std::any_of(alerts.begin(), alerts.end(), shows_leak);
}

std::vector<const Workload*> GpuVerdict::users_at(Timestamp time) const {
  return users_of(tenancies, time);
}

/// The readings of one series on their way into the engine.
struct MachineJudge::Feed {
  SeriesId series{};
  std::vector<Reading> readings;
  std::size_t at = 0;
};

struct MachineJudge::State {
  explicit State(const Config& config) : engine(config, catalog) {
    ProgramMemory memory;
    memory.find = [this](const ProgramIdentity& identity) -> std::optional<Program> {
      if (!is_on_device(identity)) return Program{};  // a process has a name here, but is not identified by it
      const auto program = programs.find(identity.text);
      return program != programs.end() ? std::optional(heights_of(program->second)) : std::nullopt;
    };
    memory.put = [this](const ProgramIdentity& identity, const Program& program) { remember(identity, program); };
    memory.program_on = [this](const SeriesKey& device, Timestamp begin) { return program_on(device, begin); };
    engine.remember(std::move(memory));
  }

  struct Known {
    std::int64_t last_ms = INT64_MIN;           ///< the time of the last sample that the engine has
    std::int64_t busy_last_ms = INT64_MIN;      ///< the same for how busy the GPU is
    std::int64_t received_last_ms = INT64_MIN;  ///< and for the data it receives
    std::vector<Tenancy> tenancies;
    std::string engine_host;  ///< the engine's series keep the first host
    std::string host;
    bool has_uuid = false;
    bool is_shared = false;
    bool is_by_agent = false;
    bool has_capacity = false;
  };

  Catalog catalog;
  Engine engine;
  std::map<GpuKey, Known> known;
  std::map<std::pair<GpuKey, std::uint32_t>, std::int64_t> processes;  ///< last_ms, by GPU and pid
  std::map<std::string, Program> programs;  ///< the record of their runs, by ProgramIdentity::text

  [[nodiscard]] const Known* find(const SeriesKey& key) const {
    for (const GpuKey& of : {GpuKey{{}, key.device_id}, GpuKey{key.host, key.device_id}})
      if (const auto gpu = known.find(of); gpu != known.end()) return &gpu->second;
    return nullptr;
  }

  /// The program of those who used the device at that time; empty if unknown.
  [[nodiscard]] std::string program_on(const SeriesKey& device, Timestamp begin) const {
    std::set<std::string> all;
    if (const Known* const gpu = find(device))
      for (const Workload* const user : users_of(gpu->tenancies, begin))
        if (std::string program = user->program(); !program.empty()) all.insert(user->user + '\t' + program);
    return fmt::format("{}", fmt::join(all, "\n"));
  }

  /// For a machine with many jobs, only the latest are kept.
  void remember(const ProgramIdentity& identity, const Program& program) {
    if (!is_on_device(identity)) return;
    programs[identity.text] = program;
    if (programs.size() > kMostPrograms)
      programs.erase(std::min_element(programs.begin(), programs.end(),
                                      [](const auto& a, const auto& b) { return a.second.last < b.second.last; }));
  }
};

MachineJudge::MachineJudge(const Config& config) : state_(std::make_unique<State>(config)) {}
MachineJudge::~MachineJudge() = default;

void MachineJudge::take(const Machine& machine) {
  std::vector<Feed> feeds;
  const auto add = [&feeds](SeriesId series, std::vector<Reading> readings, std::int64_t& last_ms) {
    std::erase_if(readings, [&](const Reading& r) { return r.time_ms <= last_ms; });
    if (readings.empty()) return;
    last_ms = readings.back().time_ms;
    feeds.push_back({series, std::move(readings), 0});
  };
  for (const auto& [gpu_key, gpu] : machine.gpus) {
    const std::string& id = gpu.device.id;
    State::Known& known = state_->known[gpu_key];
    if (known.host.empty()) known.engine_host = gpu.device.host;
    known.host = gpu.device.host;
    known.has_uuid = gpu.has_uuid;
    DeviceInfo device = gpu.device;
    device.host = known.engine_host;
    device.capacity_bytes = gpu.capacity_bytes;
    if (!known.has_capacity) state_->catalog.describe(device);
    known.has_capacity |= gpu.capacity_bytes.has_value();
    UsedMemory used = used_memory(gpu);
    known.is_shared |= used.is_shared;
    known.is_by_agent = used.is_by_agent;
    for (Tenancy& tenancy : tenancies(gpu)) add_tenancy(known.tenancies, std::move(tenancy));
    add(state_->catalog.intern({Metric::device_used, id, 0, 0, known.engine_host}), std::move(used.readings),
        known.last_ms);
    const auto add_fact = [&](Metric metric, const std::vector<PackedSeries>& fact, std::int64_t& last_ms) {
      if (fact.empty()) return;
      add(state_->catalog.intern({metric, id, 0, 0, known.engine_host}), fact_readings(fact), last_ms);
    };
    add_fact(Metric::device_busy, gpu.busy, known.busy_last_ms);
    add_fact(Metric::device_received, gpu.received, known.received_last_ms);
    for (const ProcessTrack& process : gpu.processes) {
      if (process.samples.size() == 0 || !process.samples.is_sorted()) continue;
      std::vector<Reading> readings;
      process.samples.unpack(readings);
      ProcessInfo info;
      info.pid = process.pid;
      info.name = process.name;
      info.user = process.user;
      info.host = known.engine_host;
      state_->catalog.describe(info);
      auto& last_ms = state_->processes.try_emplace({gpu_key, process.pid}, INT64_MIN).first->second;
      add(state_->catalog.intern({Metric::process_used, id, process.pid, 0, known.engine_host}), std::move(readings),
          last_ms);
    }
  }
  feed(feeds);
}

/// Feeds all series in time order: the samples of one scrape make one tick.
void MachineJudge::feed(std::vector<Feed>& feeds) {
  Batch batch;
  batch.samples.reserve(kBatch + feeds.size());
  while (true) {
    std::int64_t now_ms = INT64_MAX;
    for (const Feed& feed : feeds)
      if (feed.at < feed.readings.size()) now_ms = std::min(now_ms, feed.readings[feed.at].time_ms);
    const bool is_end = now_ms == INT64_MAX;
    if (is_end || batch.samples.size() >= kBatch) {
      state_->engine.ingest(batch);
      batch.clear();
      if (is_end) return;
    }
    for (Feed& feed : feeds) {
      if (feed.at == feed.readings.size() || feed.readings[feed.at].time_ms != now_ms) continue;
      batch.samples.push_back({time_of(now_ms), feed.series, feed.readings[feed.at].bytes});
      ++feed.at;
    }
  }
}

void MachineJudge::end() {
  state_->engine.end_of_recording();
}

bool MachineJudge::knows_capacities() const {
  return std::all_of(state_->known.begin(), state_->known.end(),
                     [](const auto& gpu) { return gpu.second.has_capacity; });
}

std::vector<GpuVerdict> MachineJudge::verdicts() const {
  std::vector<GpuVerdict> out;
  const std::shared_ptr<const View> view = state_->engine.view();
  for (const SeriesView& series : view->series) {
    if (series.key.metric != Metric::device_used) continue;
    GpuVerdict gpu;
    gpu.device = series.device;
    gpu.used_bytes = series.used_bytes;
    gpu.samples = series.samples;
    gpu.first = series.first.value_or(Timestamp{});
    gpu.last = series.last.value_or(Timestamp{});
    gpu.verdict = series.verdict;
    gpu.verdict.dissent = {};
    gpu.verdict.causes = {};
    gpu.verdict.advice = {};
    for (const std::vector<Alert>* all : {&series.alerts, &series.suspicions})
      for (const Alert& alert : *all)
        if (alert.kind == AlertKind::leak && alert.finding.leak) gpu.alerts.push_back(alert);
    order(gpu.alerts, [](const Alert& a, const Alert& b) { return a.raised < b.raised; });
    if (!series.suspicions.empty() && !series.suspicions.back().cleared && !series.suspicions.back().finding.leak)
      gpu.suspicion = series.suspicions.back();
    if (!grows(gpu.verdict.finding)) gpu.verdict.finding.because = {};  // saves 300 bytes for each healthy GPU
    if (const State::Known* known = state_->find(series.key)) {
      gpu.device.host = known->host;
      gpu.has_uuid = known->has_uuid;
      gpu.tenancies = known->tenancies;
      gpu.is_shared = known->is_shared;
      gpu.is_by_agent = known->is_by_agent;
    }
    out.push_back(std::move(gpu));
  }
  return out;
}

std::string MachineJudge::json(const std::string& from) const {
  View view = *state_->engine.view();
  view.files = {from};
  return find_report("json")->render(view, {});
}

}  // namespace vramtrack::fleet
