#include "source/sim/scenario.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/regular_file.hpp"
#include "core/toml_depth.hpp"
#include "source/sim/table_reader.hpp"

namespace vramtrack::sim {
namespace {

constexpr double kMissing = std::numeric_limits<double>::quiet_NaN();
constexpr double kMaxTime_s = 400.0 * 86400;
constexpr double kMaxBytes = 1e15;
constexpr double kMaxEvents = 2e7;
constexpr double kMaxDevices = 4096;  ///< in one table
constexpr std::string_view kPatterns = "none|gradual_leak|sudden_spike|cyclic|step_increase|unknown";

/// A shape with so many events that a tick would take seconds is a mistake in the scenario.
void check_events(TableReader& reader, const Parameter& parameter, double value, double duration_s) {
  const double events = parameter.unit == Unit::per_s        ? value * duration_s
                        : parameter.unit == Unit::interval_s ? duration_s / value
                                                             : 0;
  if (events > kMaxEvents)
    reader.mistake(parameter.key, fmt::format("{} makes {:.0f} events in {} s; at most {:.0f} are simulated", value,
                                              events, duration_s, kMaxEvents));
}

std::optional<ShapeSpec> read_shape(const toml::table& table, const std::string& owner, double duration_s,
                                    Mistakes& mistakes) {
  TableReader reader(table, owner + " [[process.shape]]", mistakes);
  std::string names;
  for (const ShapeKind* kind : shape_kinds()) names.append(names.empty() ? "" : "|").append(kind->name);
  const int which = reader.word("kind", names, -1);
  if (which < 0) return std::nullopt;

  ShapeSpec spec;
  spec.kind = shape_kinds()[static_cast<std::size_t>(which)];
  TableReader own(table, fmt::format("{} shape '{}'", owner, spec.kind->name), mistakes);
  (void)own.text("kind");
  for (const Parameter& parameter : spec.kind->parameters) {
    if (parameter.unit == Unit::word) {
      const int fallback = parameter.required() ? -1 : static_cast<int>(parameter.fallback);
      spec.values.push_back(own.word(parameter.key, parameter.words, fallback));
      continue;
    }
    const double min = parameter.unit == Unit::interval_s ? std::max(parameter.min, 1e-3) : parameter.min;
    spec.values.push_back(own.number(parameter.key, parameter.unit, parameter.fallback, min, parameter.max));
    check_events(own, parameter, spec.values.back(), duration_s);
  }
  spec.multiply = own.word("apply", "add|multiply", 0) == 1;
  spec.cached = own.boolean("cached", false);
  spec.onset_s = own.number("onset_s", Unit::seconds, 0, 0, kMaxTime_s);
  spec.until_s = own.maybe_number("until_s", Unit::seconds, 0, kMaxTime_s).value_or(spec.until_s);
  spec.release_s = own.maybe_number("release_s", Unit::seconds, 0, kMaxTime_s).value_or(spec.release_s);
  spec.release_every_s = own.number("release_every_s", Unit::seconds, 0, 0, kMaxTime_s);
  if (spec.release_every_s > 0)
    check_events(own, {"release_every_s", Unit::interval_s}, spec.release_every_s, duration_s);
  spec.release_share = own.number("release_share", Unit::ratio, 0, 0, 1);
  spec.only_rank = static_cast<int>(own.number("only_rank", Unit::count, -1, -1, 1e6));
  own.finish();
  return spec;
}

/// Reads a process's identity; the keys are the same for [[process]] and [[tenants]].
ProcessInfo read_info(TableReader& reader) {
  ProcessInfo info;
  info.pid = static_cast<std::uint32_t>(reader.number("pid", Unit::count, 0, 0, 4194303));
  info.name = reader.text("name");
  info.command = reader.text("command");
  info.user = reader.text("user");
  info.kind = reader.text("type", "C");
  info.framework = reader.text("framework");
  info.cgroup = reader.text("cgroup");
  info.container = reader.text("container");
  info.pod = reader.text("pod");
  info.slurm_job = reader.text("slurm_job");
  return info;
}

std::string title(std::string_view what, const toml::table& table, std::size_t position) {
  if (const auto name = table["name"].value<std::string>()) return fmt::format("[[{}]] '{}'", what, *name);
  return fmt::format("[[{}]] {}", what, position);
}

std::string made_up_id(std::size_t position) {
  return fmt::format("GPU-51e0{:04}-0000-4000-8000-000000000000", position);
}

/// Appends `count` devices.
void read_devices(const toml::table& table, std::vector<DeviceSpec>& devices, Mistakes& mistakes) {
  const std::size_t position = devices.size();
  TableReader reader(table, title("device", table, position), mistakes);
  DeviceSpec device;
  const std::string id = reader.text("id");
  device.info.name = reader.text("name", "Simulated GPU");
  device.info.pci_bus_id = reader.text("pci_bus_id");
  device.capacity_bytes =
      static_cast<std::uint64_t>(reader.number("capacity_bytes", Unit::bytes, kMissing, 1, kMaxBytes));
  device.capacity_known = reader.boolean("capacity_known", true);
  device.info.shares_host_memory = reader.boolean("shares_host_memory", false);
  device.baseline_bytes = reader.number("baseline_bytes", Unit::bytes, 0, 0, kMaxBytes);
  device.reserved_bytes = reader.maybe_number("reserved_bytes", Unit::bytes, 0, kMaxBytes);
  const auto count = static_cast<std::size_t>(reader.number("count", Unit::count, 1, 1, kMaxDevices));
  reader.finish();
  if (device.capacity_known) device.info.capacity_bytes = device.capacity_bytes;
  for (std::size_t i = position; i < position + count; ++i) {
    device.info.index = static_cast<int>(i);
    device.info.id = id.empty() ? made_up_id(i) : id;
    for (const DeviceSpec& other : devices)
      if (other.info.id == device.info.id)
        mistakes.add(table.source(),
                     fmt::format("[[device]] {}: id '{}' is taken; ids distinguish devices", i, device.info.id));
    devices.push_back(device);
  }
}

ProcessSpec read_process(const toml::table& table, std::size_t position, const Scenario& scenario, Mistakes& mistakes) {
  const std::string what = title("process", table, position);
  TableReader reader(table, what, mistakes);
  ProcessSpec process;
  process.info = read_info(reader);
  process.name = process.info.name.empty() ? fmt::format("process {}", position) : process.info.name;
  process.devices = reader.positions("devices", scenario.devices.size());
  process.one_per_device = reader.boolean("one_per_device", false);
  process.start_s = reader.number("start_s", Unit::seconds, 0, -kMaxTime_s, kMaxTime_s);
  process.end_s = reader.maybe_number("end_s", Unit::seconds, 0, kMaxTime_s);
  process.lifetime_s = reader.maybe_number("lifetime_s", Unit::seconds, 1, kMaxTime_s);
  process.restart_after_s = reader.maybe_number("restart_after_s", Unit::seconds, 1, kMaxTime_s);
  process.max_restarts = reader.number("max_restarts", Unit::count, 1e9, 0, 1e9);
  process.pid_reuse = reader.boolean("pid_reuse", false);
  process.visible = reader.boolean("visible", true);
  process.allocator = reader.boolean("allocator", false);
  process.on_oom = static_cast<OnOom>(std::max(reader.word("on_oom", "die|clip|report", 0), 0));
  process.needs_bytes = reader.number("needs_bytes", Unit::bytes, 0, 0, kMaxBytes);
  process.busy = reader.maybe_number("busy", Unit::ratio, 0, 1);
  process.works_after_s = reader.number("works_after_s", Unit::seconds, 0, 0, kMaxTime_s);
  process.read_share = reader.maybe_number("read_share", Unit::ratio, 0, 1e3);
  process.reads_per_s = reader.number("reads_per_s", Unit::bytes_per_s, 0, 0, kMaxBytes);
  process.clients = reader.maybe_number("clients", Unit::count, 0, 1e6);
  process.host_limit_bytes = reader.maybe_number("host_limit_bytes", Unit::bytes, 1, kMaxBytes);
  process.host_mapped_bytes = reader.number("host_mapped_bytes", Unit::bytes, 0, 0, kMaxBytes);
  process.host_pinned = reader.maybe_number("host_pinned", Unit::ratio, 0, 1);
  const auto read_shapes = [&](std::string_view key, std::vector<ShapeSpec>& into) {
    for (const toml::table* shape : reader.tables(key))
      if (auto spec = read_shape(*shape, what, scenario.duration_s, mistakes)) into.push_back(std::move(*spec));
  };
  read_shapes("shape", process.shapes);
  read_shapes("host_shape", process.host_shapes);
  reader.finish();
  return process;
}

WallSpec read_wall(const toml::table& table, std::size_t position, const Scenario& scenario, Mistakes& mistakes) {
  const std::string what = title("wall", table, position);
  TableReader reader(table, what, mistakes);
  WallSpec wall;
  wall.name = reader.text("name");
  if (wall.name.empty()) reader.mistake("name", "is required: who limits it, and where, as in \"dmem.max of /pod\"");
  wall.device = reader.positions("device", scenario.devices.size()).front();
  wall.moves.push_back({0, reader.number("bytes", Unit::bytes, kMissing, 0, kMaxBytes)});
  wall.processes = reader.texts("processes");
  if (wall.processes.empty())
    reader.mistake("processes", "is required: the names of the processes that share the limit");
  for (const std::string& name : wall.processes)
    if (std::none_of(scenario.processes.begin(), scenario.processes.end(),
                     [&name](const ProcessSpec& process) { return process.name == name; }))
      reader.mistake("processes", fmt::format("there is no [[process]] '{}'", name));
  for (const toml::table* move : reader.tables("move")) {
    TableReader own(*move, what + " [[wall.move]]", mistakes);
    const double at_s = own.number("at_s", Unit::seconds, kMissing, 0, kMaxTime_s);
    if (at_s < wall.moves.back().at_s) own.mistake("at_s", "is earlier than the preceding move");
    wall.moves.push_back({at_s, own.number("bytes", Unit::bytes, kMissing, 0, kMaxBytes)});
    own.finish();
  }
  reader.finish();
  return wall;
}

TenantsSpec read_tenants(const toml::table& table, std::size_t position, const Scenario& scenario, Mistakes& mistakes) {
  TableReader reader(table, title("tenants", table, position), mistakes);
  TenantsSpec tenants;
  tenants.info = read_info(reader);
  tenants.name = tenants.info.name.empty() ? fmt::format("tenants {}", position) : tenants.info.name;
  tenants.devices = reader.positions("devices", scenario.devices.size());
  tenants.arrivals_per_s = reader.number("arrivals_per_s", Unit::per_s, kMissing, 0, 1e3);
  if (tenants.arrivals_per_s * scenario.duration_s > 1e4)
    reader.mistake("arrivals_per_s", "creates more than 10000 tenants; use fewer or a shorter duration_s");
  tenants.lifetime_s = reader.number("lifetime_s", Unit::seconds, kMissing, 1, kMaxTime_s);
  tenants.min_bytes = reader.number("min_bytes", Unit::bytes, kMissing, 1, kMaxBytes);
  tenants.max_bytes = reader.number("max_bytes", Unit::bytes, kMissing, 1, kMaxBytes);
  if (tenants.max_bytes < tenants.min_bytes) reader.mistake("max_bytes", "is less than min_bytes");
  tenants.load_s = reader.number("load_s", Unit::seconds, 10, 0, kMaxTime_s);
  tenants.start_s = reader.number("start_s", Unit::seconds, 0, 0, kMaxTime_s);
  tenants.end_s = reader.maybe_number("end_s", Unit::seconds, 0, kMaxTime_s);
  tenants.at_start = reader.number("at_start", Unit::count, 0, 0, 1e4);
  tenants.visible = reader.boolean("visible", true);
  reader.finish();
  return tenants;
}

FaultSpec read_fault(const toml::table& table, std::size_t position, const Scenario& scenario, Mistakes& mistakes) {
  TableReader reader(table, fmt::format("[[fault]] {}", position), mistakes);
  FaultSpec fault;
  using Kind = FaultSpec::Kind;
  const int kind = reader.word("kind", "device_lost|gap|xid|unreadable|clock_step", -1);
  if (kind < 0) return fault;
  fault.kind = static_cast<Kind>(kind);
  if (fault.kind == Kind::xid || fault.kind == Kind::clock_step) {
    fault.from_s = reader.number("at_s", Unit::seconds, kMissing, 0, kMaxTime_s);
  } else {
    fault.from_s = reader.number("from_s", Unit::seconds, kMissing, 0, kMaxTime_s);
    fault.to_s = reader.number("to_s", Unit::seconds, kMissing, 0, kMaxTime_s);
    if (fault.to_s < fault.from_s) reader.mistake("to_s", "is before from_s");
  }
  if (fault.kind != Kind::gap && fault.kind != Kind::clock_step)
    fault.device = reader.positions("device", scenario.devices.size()).front();
  if (fault.kind == Kind::xid)
    fault.code = static_cast<std::uint64_t>(reader.number("code", Unit::count, kMissing, 0, 1e6));
  if (fault.kind == Kind::clock_step)
    fault.step_s = reader.number("step_s", Unit::seconds, kMissing, -kMaxTime_s, kMaxTime_s);
  if (fault.kind == Kind::unreadable) {
    static constexpr Metric kMetrics[] = {Metric::device_used, Metric::device_reserved, Metric::process_used};
    const int metric = reader.word("metric", "device_used|device_reserved|process_used", 0);
    fault.metric = kMetrics[std::clamp(metric, 0, 2)];
    fault.process = reader.text("process");
  }
  reader.finish();
  return fault;
}

Truth read_truth(const toml::table& table, const Scenario& scenario, Mistakes& mistakes) {
  TableReader reader(table, "[truth]", mistakes);
  Truth truth;
  truth.leak = reader.boolean("leak", false);
  truth.pattern = static_cast<Pattern>(std::max(reader.word("pattern", kPatterns, 0), 0));
  truth.onset_s = reader.maybe_number("onset_s", Unit::seconds, 0, kMaxTime_s);
  truth.oom_s = reader.maybe_number("oom_s", Unit::seconds, 0, 1e12);
  if (const auto pid = reader.maybe_number("suspect_pid", Unit::count, 0, 4194303))
    truth.suspect_pid = static_cast<std::uint32_t>(*pid);
  truth.device = reader.positions("device", scenario.devices.size()).front();
  truth.note = reader.text("note");
  reader.finish();
  return truth;
}

std::optional<Timestamp> read_start(TableReader& reader) {
  const toml::date_time* start = reader.date_time("start");
  if (start == nullptr) return std::nullopt;
  const std::chrono::year_month_day day{std::chrono::year{start->date.year}, std::chrono::month{start->date.month},
                                        std::chrono::day{start->date.day}};
  if (!day.ok() || start->date.year < 1970 || start->date.year > 2200) {
    reader.mistake("start", "expected a date between 1970 and 2200");
    return std::nullopt;
  }
  const auto& time = start->time;
  Timestamp out = std::chrono::sys_days{day};
  out += std::chrono::hours{time.hour} + std::chrono::minutes{time.minute} + std::chrono::seconds{time.second} +
         std::chrono::nanoseconds{time.nanosecond};
  if (start->offset) out -= std::chrono::minutes{start->offset->minutes};
  return out;
}

Scenario read_scenario(const toml::table& table, Mistakes& mistakes) {
  TableReader reader(table, "scenario", mistakes);
  Scenario s;
  s.name = reader.text("name", "unnamed");
  s.help = reader.text("help");
  s.seed = static_cast<std::uint64_t>(reader.number("seed", Unit::count, 1, 0, 9e15));
  s.start = read_start(reader);
  s.period_s = reader.number("period_s", Unit::seconds, 1, 1e-3, 86400);
  s.duration_s = reader.number("duration_s", Unit::seconds, kMissing, 0, kMaxTime_s);
  if (s.duration_s / s.period_s > 1e9) reader.mistake("period_s", "creates more than a billion ticks");
  s.jitter = reader.number("jitter", Unit::ratio, 0, 0, 0.9);
  s.drop = reader.number("drop", Unit::ratio, 0, 0, 1);
  s.duplicate = reader.number("duplicate", Unit::ratio, 0, 0, 1);
  s.stamp_resolution_s = reader.number("stamp_resolution_s", Unit::seconds, 0, 0, 3600);
  s.quantum_bytes = reader.number("quantum_bytes", Unit::bytes, 1, 1, 1e12);
  s.gaps_per_s = reader.number("gaps_per_s", Unit::per_s, 0, 0, 1);
  s.host_memory_bytes = reader.maybe_number("host_memory_bytes", Unit::bytes, 1, kMaxBytes);
  s.gap_s = reader.number("gap_s", Unit::seconds, 60, 0, kMaxTime_s);

  for (const toml::table* device : reader.tables("device")) read_devices(*device, s.devices, mistakes);
  if (s.devices.empty()) {
    mistakes.add(table.source(), "scenario: needs at least one [[device]] with its capacity_bytes");
    s.devices.emplace_back();  // so that the positions below refer to a device
  }
  const auto processes = reader.tables("process");
  for (std::size_t i = 0; i < processes.size(); ++i) s.processes.push_back(read_process(*processes[i], i, s, mistakes));
  const auto walls = reader.tables("wall");
  for (std::size_t i = 0; i < walls.size(); ++i) s.walls.push_back(read_wall(*walls[i], i, s, mistakes));
  const auto tenants = reader.tables("tenants");
  for (std::size_t i = 0; i < tenants.size(); ++i) s.tenants.push_back(read_tenants(*tenants[i], i, s, mistakes));
  const auto faults = reader.tables("fault");
  for (std::size_t i = 0; i < faults.size(); ++i) s.faults.push_back(read_fault(*faults[i], i, s, mistakes));
  if (const toml::table* truth = reader.table("truth")) s.truth = read_truth(*truth, s, mistakes);
  reader.finish();
  return s;
}

}  // namespace

double WallSpec::bytes_at(double t_s) const {
  double bytes = 0;
  for (const Move& move : moves)
    if (move.at_s <= t_s) bytes = move.bytes;
  return bytes;
}

bool WallSpec::limits(const ProcessSpec& process) const {
  return std::find(processes.begin(), processes.end(), process.name) != processes.end();
}

Result<Scenario> parse_scenario(std::string_view text, std::string_view file_name) {
  if (const Status bounded = check_key_depth(text, file_name); !bounded) return fail(bounded.error());
  try {
    const toml::table table = toml::parse(text, std::string(file_name));
    Mistakes mistakes(file_name);
    Scenario scenario = read_scenario(table, mistakes);
    if (mistakes.any()) return fail(mistakes.first());
    return scenario;
  } catch (const toml::parse_error& error) {
    return fail(fmt::format("{}:{}: not TOML: {}", file_name, static_cast<std::uint32_t>(error.source().begin.line),
                            error.description()));
  }
}

/// Enough for thousands of processes described by hand.
constexpr std::size_t kMostScenarioBytes = 4U << 20U;

Result<Scenario> load_scenario(const std::string& path) {
  const auto text = read_regular_file(path, kMostScenarioBytes, Links::of_owner);
  if (!text) return fail(text.error());
  if (!*text) return fail(fmt::format("{}: cannot be opened; check the path and its permissions", path));
  return parse_scenario(**text, path);
}

}  // namespace vramtrack::sim
