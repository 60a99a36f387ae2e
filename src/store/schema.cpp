#include "store/schema.hpp"

#include <fmt/format.h>

#include <array>

namespace vramtrack {
namespace {

/// "vrmt" in the file's header: distinguishes a store from other SQLite files.
constexpr std::int64_t kApplicationId = 0x76726d74;

constexpr const char* kCreate = R"sql(
CREATE TABLE meta(key TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE device(id TEXT PRIMARY KEY, device_index INTEGER, name TEXT NOT NULL, pci_bus_id TEXT NOT NULL,
  parent_id TEXT NOT NULL, capacity_bytes INTEGER) WITHOUT ROWID;
CREATE TABLE process(pid INTEGER NOT NULL, start_ticks INTEGER NOT NULL, user TEXT NOT NULL, command TEXT NOT NULL,
  name TEXT NOT NULL, kind TEXT NOT NULL, cgroup TEXT NOT NULL, container TEXT NOT NULL, pod TEXT NOT NULL,
  slurm_job TEXT NOT NULL, framework TEXT NOT NULL, ns_pid INTEGER NOT NULL, PRIMARY KEY(pid, start_ticks)) WITHOUT ROWID;
CREATE TABLE series(id INTEGER PRIMARY KEY, metric TEXT NOT NULL, device_id TEXT NOT NULL, pid INTEGER NOT NULL,
  pid_start_ticks INTEGER NOT NULL, first_ns INTEGER, last_ns INTEGER,
  UNIQUE(metric, device_id, pid, pid_start_ticks));
CREATE TABLE journal(seq INTEGER PRIMARY KEY, t_min_ns INTEGER NOT NULL, t_max_ns INTEGER NOT NULL,
  samples INTEGER NOT NULL, data BLOB NOT NULL);
CREATE TABLE chunk(id INTEGER PRIMARY KEY, t_min_ns INTEGER NOT NULL, t_max_ns INTEGER NOT NULL,
  samples INTEGER NOT NULL, data BLOB NOT NULL);
CREATE INDEX chunk_time ON chunk(t_min_ns, t_max_ns);
CREATE TABLE rollup(id INTEGER PRIMARY KEY, resolution_s INTEGER NOT NULL, merged INTEGER NOT NULL,
  t_min_ns INTEGER NOT NULL, t_max_ns INTEGER NOT NULL, data BLOB NOT NULL);
CREATE INDEX rollup_time ON rollup(resolution_s, merged, t_min_ns, t_max_ns);
CREATE TABLE event(id INTEGER PRIMARY KEY, time_ns INTEGER NOT NULL, kind TEXT NOT NULL, device_id TEXT NOT NULL,
  pid INTEGER NOT NULL, pid_start_ticks INTEGER NOT NULL, code INTEGER NOT NULL, text TEXT NOT NULL);
CREATE INDEX event_time ON event(time_ns);
CREATE TABLE alert(series_id INTEGER NOT NULL, raised_ns INTEGER NOT NULL, cleared_ns INTEGER, ended TEXT NOT NULL,
  severity TEXT NOT NULL, detector TEXT NOT NULL, leak INTEGER NOT NULL, state TEXT NOT NULL, pattern TEXT NOT NULL,
  spike TEXT NOT NULL, confidence REAL, growth_low_bytes_per_s REAL,
  growth_mid_bytes_per_s REAL, growth_high_bytes_per_s REAL, r_squared REAL,
  oom_low_s REAL, oom_mid_s REAL, oom_high_s REAL, onset_ns INTEGER, because TEXT NOT NULL, end_reason TEXT NOT NULL,
  PRIMARY KEY(series_id, raised_ns)) WITHOUT ROWID;
)sql";

constexpr const char* kAddUtilisation = R"sql(
CREATE TABLE utilisation(series_id INTEGER NOT NULL, minute_s INTEGER NOT NULL, max_percent INTEGER NOT NULL,
  PRIMARY KEY(minute_s, series_id)) WITHOUT ROWID;
)sql";

/// Retention counts by uptime_ns; earlier records count as if they had been recorded at the upgrade.
constexpr const char* kAddUptime = R"sql(
CREATE TABLE clock(id INTEGER PRIMARY KEY CHECK(id=0), boot_id TEXT NOT NULL, since_boot_ns INTEGER NOT NULL,
  wall_ns INTEGER NOT NULL, stamp_ns INTEGER NOT NULL, changed_at_ns INTEGER NOT NULL, uptime_ns INTEGER NOT NULL);
ALTER TABLE chunk ADD COLUMN uptime_ns INTEGER NOT NULL DEFAULT 0;
ALTER TABLE rollup ADD COLUMN uptime_ns INTEGER NOT NULL DEFAULT 0;
ALTER TABLE event ADD COLUMN uptime_ns INTEGER NOT NULL DEFAULT 0;
CREATE INDEX chunk_uptime ON chunk(uptime_ns);
CREATE INDEX rollup_uptime ON rollup(resolution_s, merged, uptime_ns);
CREATE INDEX event_uptime ON event(uptime_ns);
)sql";

/// Earlier records had been confirmed.
constexpr const char* kAddStage = R"sql(
ALTER TABLE alert ADD COLUMN stage TEXT NOT NULL DEFAULT 'confirmed';
ALTER TABLE alert ADD COLUMN suspected_s REAL;
ALTER TABLE alert ADD COLUMN oom_if_growth_continues_s REAL;
)sql";

/// Results of finished runs of the same program. `key` holds the command as a hash, because it may contain secrets.
constexpr const char* kAddPrograms = R"sql(
CREATE TABLE program(key TEXT PRIMARY KEY, name TEXT NOT NULL, user TEXT NOT NULL, first_ns INTEGER NOT NULL,
  last_ns INTEGER NOT NULL, runs INTEGER NOT NULL, leaked INTEGER NOT NULL, out_of_memory INTEGER NOT NULL,
  recent BLOB NOT NULL) WITHOUT ROWID;
)sql";

/// Earlier records were leaks.
constexpr const char* kAddAlertKind = R"sql(
ALTER TABLE alert ADD COLUMN kind TEXT NOT NULL DEFAULT 'leak';
)sql";

/// Earlier records state it in the words of their reason.
constexpr const char* kAddEndKind = R"sql(
ALTER TABLE alert ADD COLUMN end_kind TEXT;
UPDATE alert SET end_kind='out_of_memory' WHERE ended='process_ended' AND end_reason LIKE 'memory ran out at %';
)sql";

/// Earlier alerts were raised as soon as a leak was confirmed.
constexpr const char* kAddPagedBecause = R"sql(
ALTER TABLE alert ADD COLUMN paged_because TEXT NOT NULL DEFAULT '';
)sql";

/// From here on, a capacity with a pid is where memory of that process ends. No table changes, but a program that does
/// not know it would take it for the capacity of the device.
constexpr const char* kAllowWalls = "";

/// From here on there are series of the host's memory, and devices that have no other.
constexpr const char* kAddHostMemory = R"sql(
ALTER TABLE device ADD COLUMN shares_host_memory INTEGER NOT NULL DEFAULT 0;
)sql";

/// Earlier alerts named no incident: they are grouped when they are read.
constexpr const char* kAddIncident = R"sql(
ALTER TABLE alert ADD COLUMN incident TEXT NOT NULL DEFAULT '';
)sql";

/// Earlier records contain only how busy devices were.
constexpr const char* kAddGauges = R"sql(
CREATE TABLE device_minute(series_id INTEGER NOT NULL, minute_s INTEGER NOT NULL, max_busy_percent INTEGER,
  max_celsius INTEGER, max_watts INTEGER, max_sm_mhz INTEGER, PRIMARY KEY(minute_s, series_id)) WITHOUT ROWID;
INSERT INTO device_minute SELECT series_id,minute_s,max_percent,NULL,NULL,NULL FROM utilisation;
DROP TABLE utilisation;
)sql";

/// Step i upgrades schema i to i + 1; step 0 turns an empty file into a store. Append steps, never change them.
constexpr std::array<const char*, kSchemaVersion> kSteps = {
    kCreate,     kAddUtilisation,  kAddUptime,  kAddStage,      kAddPrograms, kAddAlertKind,
    kAddEndKind, kAddPagedBecause, kAllowWalls, kAddHostMemory, kAddIncident, kAddGauges};

Result<int> version_of(sql::Database& database, const std::string& path) {
  const auto id = database.integer("PRAGMA application_id");
  if (!id) return fail(id.error());
  const auto version = database.integer("PRAGMA user_version");
  if (!version) return fail(version.error());
  const auto tables = database.integer("SELECT count(*) FROM sqlite_master");
  if (!tables) return fail(tables.error());
  const bool empty = tables->value_or(0) == 0 && id->value_or(0) == 0 && version->value_or(0) == 0;
  if (empty) return 0;
  if (id->value_or(0) != kApplicationId)
    return fail(
        fmt::format("{}: an SQLite file of another program (application id {:#x}), not a vramtrack store; set "
                    "store.path to another file",
                    path, id->value_or(0)));
  if (version->value_or(0) > kSchemaVersion)
    return fail(
        fmt::format("{}: written by a newer vramtrack (schema {}, this one knows up to {}); use that version, or set "
                    "store.path to another file",
                    path, version->value_or(0), kSchemaVersion));
  if (version->value_or(0) < 1)
    return fail(fmt::format("{}: damaged (schema {}); move it away (mv '{}' '{}.damaged') and start again", path,
                            version->value_or(0), path, path));
  return static_cast<int>(version->value_or(0));
}

}  // namespace

Status prepare_schema(sql::Database& database, const std::string& path, int version) {
  auto found = version_of(database, path);
  if (!found) return fail(found.error());
  // auto_vacuum can only be chosen while the file is empty. The cache is small on purpose: a watch writes each page
  // once and rarely reads one.
  if (*found == 0)
    if (auto s = database.exec("PRAGMA page_size=4096; PRAGMA auto_vacuum=INCREMENTAL"); !s) return s;
  if (auto s = database.exec("PRAGMA cache_size=-192; PRAGMA temp_store=MEMORY; PRAGMA busy_timeout=200"); !s) return s;
  // An empty file switches to a write-ahead log by way of a rollback journal. EXTRA: its removal is synced, too. If it
  // came back after a power loss, SQLite would undo the switch and discard the log with all that it holds.
  if (auto s = database.exec("PRAGMA synchronous=EXTRA"); !s) return s;
  auto mode = database.text("PRAGMA journal_mode=WAL");
  if (!mode) return fail(mode.error());
  if (*mode != "wal")
    return fail(
        fmt::format("{}: this file system cannot keep a write-ahead log (journal mode {}); set store.path to a local "
                    "file system",
                    path, *mode));
  // NORMAL: no fsync at each commit. See "Guarantees" in docs/formats/store.md.
  if (auto s =
          database.exec("PRAGMA synchronous=NORMAL; PRAGMA wal_autocheckpoint=256; PRAGMA journal_size_limit=2097152");
      !s)
    return s;
  for (int step = *found; step < version; ++step) {
    const std::string script =
        fmt::format("BEGIN IMMEDIATE; {} PRAGMA application_id={}; PRAGMA user_version={}; COMMIT",
                    kSteps[static_cast<std::size_t>(step)], kApplicationId, step + 1);
    if (auto s = database.exec(script.c_str()); !s) {
      database.roll_back();
      return s;
    }
  }
  return {};
}

Status check_schema(sql::Database& database, const std::string& path) {
  const auto version = version_of(database, path);
  if (!version) return fail(version.error());
  if (*version == 0)
    return fail(fmt::format("{}: empty, not a vramtrack store; record into it first with 'vramtrack watch'", path));
  return {};
}

}  // namespace vramtrack
