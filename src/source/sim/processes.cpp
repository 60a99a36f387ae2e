#include "source/sim/processes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "source/sim/random.hpp"

namespace vramtrack::sim {
namespace {

constexpr double kNever_s = std::numeric_limits<double>::infinity();
constexpr std::uint32_t kPidLimit = 4'194'304;
constexpr std::uint32_t kFirstPid = 2000;
constexpr std::uint32_t kFirstTenantPid = 100'000;
/// The simulated machine booted an hour before the scenario starts.
constexpr double kUptime_s = 3600;

ShapeSpec load_shape(double bytes, double over_s) {
  ShapeSpec load;
  load.kind = find_shape_kind("load");
  load.values = {bytes, over_s, 8};
  return load;
}

}  // namespace

Processes::Processes(const Scenario& scenario) : scenario_(scenario), used_bytes_(scenario.devices.size(), 0) {
  std::uint32_t pid = kFirstPid;
  for (const ProcessSpec& spec : scenario_.processes) {
    add_runs(spec, spec.info.pid != 0 ? spec.info.pid : pid);
    pid += 100;
  }
  for (const TenantsSpec& tenants : scenario_.tenants) expand_tenants(tenants);
}

void Processes::add_runs(const ProcessSpec& spec, std::uint32_t pid) {
  const std::size_t ranks = spec.one_per_device ? spec.devices.size() : 1;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    Run run;
    run.spec = &spec;
    run.rank = rank;
    run.stream = substream(substream(scenario_.seed, spec.name), rank);
    run.next_start_s = spec.start_s;
    run.pid = pid + static_cast<std::uint32_t>(rank);
    runs_.push_back(std::move(run));
  }
}

void Processes::expand_tenants(const TenantsSpec& tenants) {
  Random random(substream(scenario_.seed, tenants.name));
  const double end_s = std::min(tenants.end_s.value_or(scenario_.duration_s), scenario_.duration_s);
  const auto add = [&](double start_s) {
    ProcessSpec spec;
    spec.name = fmt::format("{} {}", tenants.name, tenant_specs_.size());
    spec.info = tenants.info;
    spec.devices = {
        tenants.devices[static_cast<std::size_t>(random.uniform() * static_cast<double>(tenants.devices.size()))]};
    spec.start_s = start_s;
    spec.lifetime_s = std::max(random.exponential(tenants.lifetime_s), 1.0);
    spec.visible = tenants.visible;
    spec.needs_bytes = random.log_uniform(tenants.min_bytes, tenants.max_bytes);
    spec.shapes.push_back(load_shape(spec.needs_bytes, tenants.load_s));
    tenant_specs_.push_back(std::move(spec));
    const auto number = static_cast<std::uint32_t>(tenant_specs_.size());
    add_runs(tenant_specs_.back(), tenants.info.pid != 0 ? tenants.info.pid + number : kFirstTenantPid + number);
  };
  for (double i = 0; i < tenants.at_start; ++i) add(tenants.start_s);
  if (tenants.arrivals_per_s <= 0) return;
  const double gap_s = 1 / tenants.arrivals_per_s;
  for (double at = tenants.start_s + random.exponential(gap_s); at < end_s; at += random.exponential(gap_s)) add(at);
}

/// Whether the memory that the process needs is free, in addition to what the others will need.
bool Processes::admitted(const ProcessSpec& spec, std::size_t rank) const {
  if (spec.needs_bytes <= 0) return true;
  for (std::size_t i = 0; i < spec.devices.size(); ++i) {
    if (spec.one_per_device && i != rank) continue;
    const DeviceSpec& device = scenario_.devices[spec.devices[i]];
    double taken = device.baseline_bytes + spec.needs_bytes + 64 * scenario_.quantum_bytes;
    for (const Run& run : runs_)
      for (const Holding& holding : run.holdings)
        if (holding.device == spec.devices[i]) taken += std::max(holding.used_bytes, run.spec->needs_bytes);
    if (taken > static_cast<double>(device.capacity_bytes)) return false;
  }
  return true;
}

void Processes::start(Run& run) {
  const ProcessSpec& spec = *run.spec;
  const double at_s = run.next_start_s;
  if (!admitted(spec, run.rank)) {
    run.next_start_s = spec.restart_after_s && *spec.restart_after_s > 0 ? at_s + *spec.restart_after_s : kNever_s;
    return;
  }
  ++run.number;
  run.alive = true;
  run.seen = false;
  run.started_s = at_s;
  run.end_s = std::min(spec.end_s.value_or(kNever_s), at_s + spec.lifetime_s.value_or(kNever_s));
  if (run.number > 1 && !spec.pid_reuse) run.pid = (run.pid + 1000) % kPidLimit;
  run.start_ticks = static_cast<std::uint64_t>(std::max(0.01, kUptime_s + at_s) * 100);
  const std::uint64_t stream = substream(run.stream, run.number);
  for (std::size_t i = 0; i < spec.devices.size(); ++i) {
    if (spec.one_per_device && i != run.rank) continue;
    Holding holding;
    holding.device = spec.devices[i];
    for (std::size_t s = 0; s < spec.shapes.size(); ++s) {
      const ShapeSpec& shape = spec.shapes[s];
      if (shape.only_rank >= 0 && static_cast<std::size_t>(shape.only_rank) != i) continue;
      const std::uint64_t seed = substream(stream, i * 1000 + s);
      holding.parts.push_back({make_curve(shape, Random{seed}), shape.multiply, shape.cached});
    }
    run.holdings.push_back(std::move(holding));
  }
  run.host = {};
  run.limit_reported = run.failure_reported = run.age_reported = false;
  constexpr std::size_t kHostStreams = 1'000'000;
  for (std::size_t s = 0; s < spec.host_shapes.size(); ++s) {
    const ShapeSpec& shape = spec.host_shapes[s];
    if (shape.only_rank >= 0 && static_cast<std::size_t>(shape.only_rank) != run.rank) continue;
    run.host.parts.push_back(
        {make_curve(shape, Random{substream(stream, kHostStreams + s)}), shape.multiply, shape.cached});
  }
}

void Processes::end(Run& run, double at_s, Why why) {
  const ProcessSpec& spec = *run.spec;
  if (run.seen) endings_.push_back({run.pid, run.start_ticks, why == Why::out_of_memory, why == Why::killed_by_host});
  run.alive = false;
  run.holdings.clear();
  run.host = {};
  const bool again = spec.restart_after_s && run.number <= spec.max_restarts;
  run.next_start_s = again ? at_s + *spec.restart_after_s : kNever_s;
  if (run.next_start_s >= spec.end_s.value_or(kNever_s)) run.next_start_s = kNever_s;
}

double Processes::quantised(double bytes) const {
  if (!(bytes > 0)) return 0;
  // The slack keeps an exact multiple that is too large by a rounding error from being rounded up.
  return std::ceil(bytes / scenario_.quantum_bytes - 1e-6) * scenario_.quantum_bytes;
}

/// The host memory that a run takes, including on devices that share it.
double Processes::of_host_bytes(const Run& run) const {
  double bytes = run.host.bytes;
  for (const Holding& holding : run.holdings)
    if (scenario_.devices[holding.device].info.shares_host_memory) bytes += holding.used_bytes;
  return bytes;
}

double Processes::host_used_bytes() const {
  double used = 0;
  for (const DeviceSpec& device : scenario_.devices)
    if (device.info.shares_host_memory) used += device.baseline_bytes;
  for (const Run& run : runs_) used += of_host_bytes(run);
  return used;
}

std::optional<double> Processes::host_left_bytes(const Run& run) const {
  std::optional<double> left;
  if (run.spec->host_limit_bytes) left = *run.spec->host_limit_bytes - host_bytes_of_group(run);
  if (const auto of_host = machine_left_bytes()) left = std::min(*of_host, left.value_or(*of_host));
  if (left) left = std::max(0.0, *left);
  return left;
}

/// The host memory of all runs in the run's cgroup, which share its limit.
double Processes::host_bytes_of_group(const Run& run) const {
  if (run.spec->info.cgroup.empty()) return run.host.bytes;
  double bytes = 0;
  for (const Run& other : runs_)
    if (other.alive && other.spec->info.cgroup == run.spec->info.cgroup) bytes += other.host.bytes;
  return bytes;
}

std::optional<double> Processes::machine_left_bytes() const {
  if (!scenario_.host_memory_bytes) return std::nullopt;
  return std::max(0.0, *scenario_.host_memory_bytes - host_used_bytes());
}

/// The kernel kills the largest process of a cgroup above its limit, and of a machine that has no memory left.
void Processes::fit_host(double t_s) {
  for (Run& run : runs_) {
    if (!run.alive || !run.spec->host_limit_bytes || host_bytes_of_group(run) <= *run.spec->host_limit_bytes) continue;
    const auto holds_more = [&run](const Run& other) {
      return other.alive && !run.spec->info.cgroup.empty() && other.spec->info.cgroup == run.spec->info.cgroup &&
             other.host.bytes > run.host.bytes;
    };
    if (std::none_of(runs_.begin(), runs_.end(), holds_more)) end(run, t_s, Why::killed_by_host);
  }
  while (scenario_.host_memory_bytes && host_used_bytes() > *scenario_.host_memory_bytes) {
    const auto most = std::max_element(
        runs_.begin(), runs_.end(), [this](const Run& a, const Run& b) { return of_host_bytes(a) < of_host_bytes(b); });
    if (!most->alive) return;  // the baseline alone exceeds the limit
    end(*most, t_s, Why::killed_by_host);
  }
}

void Processes::evaluate(Run& run, double t_s) {
  run.host.bytes = 0;
  for (Holding::Part& part : run.host.parts) {
    const double value = part.curve(t_s - run.started_s);
    run.host.bytes = part.multiply ? run.host.bytes * value : run.host.bytes + value;
  }
  run.host.bytes = std::clamp(run.host.bytes, 0.0, 1e17);
  for (Holding& holding : run.holdings) {
    double used = 0;
    double allocated = 0;
    for (Holding::Part& part : holding.parts) {
      const double value = part.curve(t_s - run.started_s);
      used = part.multiply ? used * value : used + value;
      if (!part.cached) allocated = part.multiply ? allocated * value : allocated + value;
    }
    holding.previous_bytes = holding.used_bytes;
    // No sensible scenario has more than this; it keeps sums and conversions to integers exact.
    holding.used_bytes = quantised(std::min(used, 1e17));
    holding.allocated_bytes = std::clamp(std::floor(allocated), 0.0, holding.used_bytes);
  }
}

void Processes::sum() {
  for (std::size_t i = 0; i < used_bytes_.size(); ++i) used_bytes_[i] = scenario_.devices[i].baseline_bytes;
  for (const Run& run : runs_)
    for (const Holding& holding : run.holdings) {
      used_bytes_[holding.device] += holding.used_bytes;
      if (&holding == &run.holdings.front() && scenario_.devices[holding.device].info.shares_host_memory)
        used_bytes_[holding.device] += run.host.bytes;
    }
}

void Processes::fit(std::size_t device, const WallSpec* wall, double t_s) {
  const double limit =
      wall != nullptr ? wall->bytes_at(t_s) : static_cast<double>(scenario_.devices[device].capacity_bytes);
  if (wall != nullptr && limit <= 0) return;
  while (true) {
    Run* asking = nullptr;
    Holding* asked = nullptr;
    double walled_bytes = 0;
    // A wall that has moved takes no memory away; only growth fails.
    double most = wall != nullptr ? 0 : -kNever_s;
    for (Run& run : runs_)
      for (Holding& holding : run.holdings) {
        if (holding.device != device || (wall != nullptr && !wall->limits(*run.spec))) continue;
        walled_bytes += holding.used_bytes;
        if (!(holding.used_bytes > 0) || !(holding.used_bytes - holding.previous_bytes > most)) continue;
        most = holding.used_bytes - holding.previous_bytes;
        asking = &run;
        asked = &holding;
      }
    const double used_bytes = wall != nullptr ? walled_bytes : used_bytes_[device];
    if (used_bytes <= limit) return;
    if (asking == nullptr) {
      if (wall == nullptr) used_bytes_[device] = limit;  // the baseline alone exceeds the capacity
      return;
    }
    if (asking->spec->on_oom != OnOom::die) {
      if (asking->spec->on_oom == OnOom::report && asking->seen && !std::exchange(asking->failure_reported, true))
        failures_.push_back({asking->pid, asking->start_ticks, device});
      const double kept =
          std::max(asked->used_bytes - (used_bytes - limit), wall != nullptr ? asked->previous_bytes : 0.0);
      asked->used_bytes = std::floor(kept / scenario_.quantum_bytes) * scenario_.quantum_bytes;
      asked->allocated_bytes = std::min(asked->allocated_bytes, asked->used_bytes);
      // A process that was clipped is not clipped again in this tick unless no other is left.
      asked->previous_bytes = std::max(asked->previous_bytes, asked->used_bytes);
    } else {
      const bool by_host = wall == nullptr && scenario_.devices[device].info.shares_host_memory;
      end(*asking, t_s, by_host ? Why::killed_by_host : Why::out_of_memory);
    }
    sum();
  }
}

void Processes::advance(double t_s) {
  for (Run& run : runs_) {
    // Several short runs may fit between two ticks.
    while (true) {
      if (run.alive && run.end_s <= t_s) {
        end(run, run.end_s, Why::exited);
      } else if (!run.alive && run.next_start_s <= t_s) {
        start(run);
      } else {
        break;
      }
    }
    if (run.alive) evaluate(run, t_s);
  }
  fit_host(t_s);
  sum();
  for (const WallSpec& wall : scenario_.walls) fit(wall.device, &wall, t_s);
  for (std::size_t device = 0; device < used_bytes_.size(); ++device) fit(device, nullptr, t_s);
}

std::vector<Failure> Processes::take_failures() {
  return std::exchange(failures_, {});
}

std::vector<Ending> Processes::take_endings() {
  return std::exchange(endings_, {});
}

}  // namespace vramtrack::sim
