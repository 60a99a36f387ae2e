#include "store/rows.hpp"

#include <fmt/format.h>

#include <array>
#include <string>

#include "store/lifetimes_text.hpp"

namespace vramtrack::rows {
namespace {

// SQLite integers are signed: a 64-bit count is stored and read bit for bit.
std::int64_t stored(std::uint64_t value) {
  return static_cast<std::int64_t>(value);
}
std::int64_t stored(Timestamp time) {
  return time.time_since_epoch().count();
}
std::uint64_t unsigned_of(const sql::Statement& row, int column) {
  return static_cast<std::uint64_t>(row.integer(column));
}
Timestamp time_of(const sql::Statement& row, int column) {
  return Timestamp(Duration(row.integer(column)));
}
std::string text_of(const sql::Statement& row, int column) {
  return std::string(row.text(column));
}

}  // namespace

const std::string_view kPutDevice =
    "INSERT INTO device VALUES(?,?,?,?,?,?,?) ON CONFLICT DO UPDATE SET "
    "device_index=coalesce(excluded.device_index,device_index), name=coalesce(nullif(excluded.name,''),name), "
    "pci_bus_id=coalesce(nullif(excluded.pci_bus_id,''),pci_bus_id), "
    "parent_id=coalesce(nullif(excluded.parent_id,''),parent_id), "
    "capacity_bytes=coalesce(excluded.capacity_bytes,capacity_bytes), "
    "shares_host_memory=max(excluded.shares_host_memory,shares_host_memory)";
const std::string_view kPutProcess =
    "INSERT INTO process VALUES(?,?,?,?,?,?,?,?,?,?,?,?) ON CONFLICT DO UPDATE SET "
    "user=coalesce(nullif(excluded.user,''),user), command=coalesce(nullif(excluded.command,''),command), "
    "name=coalesce(nullif(excluded.name,''),name), kind=coalesce(nullif(excluded.kind,''),kind), "
    "cgroup=coalesce(nullif(excluded.cgroup,''),cgroup), container=coalesce(nullif(excluded.container,''),container), "
    "pod=coalesce(nullif(excluded.pod,''),pod), slurm_job=coalesce(nullif(excluded.slurm_job,''),slurm_job), "
    "framework=coalesce(nullif(excluded.framework,''),framework), ns_pid=max(excluded.ns_pid,ns_pid)";
const std::string_view kPutSeries = "INSERT INTO series(id,metric,device_id,pid,pid_start_ticks) VALUES(?,?,?,?,?)";
const std::string_view kPutEvent =
    "INSERT INTO event(time_ns,kind,device_id,pid,pid_start_ticks,code,text,uptime_ns) VALUES(?,?,?,?,?,?,?,?)";

const std::string_view kSelectDevice = "SELECT * FROM device ";
const std::string_view kSelectProcess =
    "SELECT pid,start_ticks,user,command,name,kind,cgroup,container,pod,slurm_job,framework,ns_pid FROM process ";
const std::string_view kSelectSeries = "SELECT id,metric,device_id,pid,pid_start_ticks,first_ns,last_ns FROM series ";
const std::string_view kSelectEvent = "SELECT time_ns,kind,device_id,pid,pid_start_ticks,code,text FROM event ";

void bind_device(sql::Statement& to, const DeviceInfo& device) {
  to.bind(1, std::string_view(device.id));
  if (device.index) to.bind(2, std::int64_t{*device.index});
  to.bind(3, std::string_view(device.name)).bind(4, std::string_view(device.pci_bus_id));
  to.bind(5, std::string_view(device.parent_id));
  if (device.capacity_bytes) to.bind(6, stored(*device.capacity_bytes));
  to.bind(7, std::int64_t{device.shares_host_memory ? 1 : 0});
}

DeviceInfo read_device(const sql::Statement& row) {
  DeviceInfo device;
  device.id = text_of(row, 0);
  if (!row.is_null(1)) device.index = static_cast<int>(row.integer(1));
  device.name = text_of(row, 2);
  device.pci_bus_id = text_of(row, 3);
  device.parent_id = text_of(row, 4);
  if (!row.is_null(5)) device.capacity_bytes = unsigned_of(row, 5);
  constexpr int kHostMemory = 6;  // a file of schema 9 or older has no such column
  device.shares_host_memory = row.columns() > kHostMemory && row.integer(kHostMemory) != 0;
  return device;
}

void bind_process(sql::Statement& to, const ProcessInfo& process) {
  to.bind(1, std::int64_t{process.pid}).bind(2, stored(process.start_ticks));
  int column = 3;
  for (const std::string* text : {&process.user, &process.command, &process.name, &process.kind, &process.cgroup,
                                  &process.container, &process.pod, &process.slurm_job, &process.framework})
    to.bind(column++, std::string_view(*text));
  to.bind(column, std::int64_t{process.ns_pid});
}

ProcessInfo read_process(const sql::Statement& row) {
  ProcessInfo process;
  process.pid = static_cast<std::uint32_t>(row.integer(0));
  process.start_ticks = unsigned_of(row, 1);
  int column = 2;
  for (std::string* text : {&process.user, &process.command, &process.name, &process.kind, &process.cgroup,
                            &process.container, &process.pod, &process.slurm_job, &process.framework})
    *text = text_of(row, column++);
  process.ns_pid = static_cast<std::uint32_t>(row.integer(column));
  return process;
}

void bind_series(sql::Statement& to, std::uint32_t store_id, const SeriesKey& key) {
  to.bind(1, std::int64_t{store_id}).bind(2, to_string(key.metric)).bind(3, std::string_view(key.device_id));
  to.bind(4, std::int64_t{key.pid}).bind(5, stored(key.pid_start_ticks));
}

Result<SeriesRow> read_series(const sql::Statement& row) {
  SeriesRow series;
  series.id = static_cast<std::uint32_t>(row.integer(0));
  const auto metric = parse_metric(row.text(1));
  if (!metric) return fail(fmt::format("series {}: unknown metric '{}'", series.id, row.text(1)));
  series.key = {*metric, text_of(row, 2), static_cast<std::uint32_t>(row.integer(3)), unsigned_of(row, 4)};
  if (!row.is_null(5) && !row.is_null(6)) {
    series.first_ns = row.integer(5);
    series.last_ns = row.integer(6);
  }
  return series;
}

namespace {

/// The column `code` (docs/formats/store.md): the data that an event of this kind carries besides its text.
constexpr std::uint64_t kWentOn = 1;
constexpr std::uint64_t kKnewRuns = 2;
constexpr std::uint64_t kRanOut = 1;
constexpr std::uint64_t kKilledByHost = 2;
/// Before it had a code, a process_ended carried this information in this text.
constexpr std::string_view kOutOfMemory = "out of memory";

std::uint64_t code_of(const Event& event) {
  switch (event.kind) {
    case Event::Kind::xid:
      return event.xid;
    case Event::Kind::capacity:
      return event.capacity_bytes;
    case Event::Kind::watch_started:
      return (event.went_on ? kWentOn : 0) | (event.knew_runs ? kKnewRuns : 0);
    case Event::Kind::process_ended:
      return (event.ran_out_of_memory ? kRanOut : 0) | (event.killed_by_host ? kKilledByHost : 0);
    case Event::Kind::device_lost:
    case Event::Kind::device_resumed:
    case Event::Kind::note:
    case Event::Kind::out_of_memory:
    case Event::Kind::lifetimes:
    case Event::Kind::held:
    case Event::Kind::let_go:
    case Event::Kind::host_out_of_memory:
    case Event::Kind::mark:
      return 0;
  }
  return 0;
}

void set_code(Event& event, std::uint64_t code) {
  switch (event.kind) {
    case Event::Kind::xid:
      event.xid = code;
      return;
    case Event::Kind::capacity:
      event.capacity_bytes = code;
      return;
    case Event::Kind::watch_started:
      event.went_on = (code & kWentOn) != 0;
      event.knew_runs = (code & kKnewRuns) != 0;
      return;
    case Event::Kind::process_ended:
      event.ran_out_of_memory = (code & kRanOut) != 0 || event.text == kOutOfMemory;
      event.killed_by_host = (code & kKilledByHost) != 0;
      return;
    default:  // code_of() names them
      break;
  }
}

}  // namespace

std::string event_text(const Event& event) {
  return event.kind == Event::Kind::lifetimes ? lifetimes_text(event.sites) : event.text;
}

void bind_event(sql::Statement& to, const Event& event, std::string_view text) {
  to.bind(1, stored(event.time)).bind(2, Event::kKindNames[static_cast<std::size_t>(event.kind)]);
  to.bind(3, std::string_view(event.device_id)).bind(4, std::int64_t{event.pid});
  to.bind(5, stored(event.pid_start_ticks)).bind(6, stored(code_of(event))).bind(7, text);
}

Result<Event> read_event(const sql::Statement& row) {
  Event event;
  event.time = time_of(row, 0);
  std::size_t kind = 0;
  while (kind < Event::kKindNames.size() && Event::kKindNames[kind] != row.text(1)) ++kind;
  if (kind == Event::kKindNames.size())
    return fail(fmt::format("event at {}: unknown kind '{}'", iso8601(event.time), row.text(1)));
  event.kind = static_cast<Event::Kind>(kind);
  event.device_id = text_of(row, 2);
  event.pid = static_cast<std::uint32_t>(row.integer(3));
  event.pid_start_ticks = unsigned_of(row, 4);
  if (event.kind == Event::Kind::lifetimes) {
    auto sites = parse_lifetimes(row.text(6));
    if (!sites) return fail(fmt::format("event at {}: {}", iso8601(event.time), sites.error().message));
    event.sites = std::move(*sites);
    return event;
  }
  event.text = text_of(row, 6);
  set_code(event, unsigned_of(row, 5));
  return event;
}

}  // namespace vramtrack::rows
