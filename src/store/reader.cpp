#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <deque>
#include <tuple>
#include <unordered_map>
#include <unordered_set>

#include "core/errno_words.hpp"
#include "core/out_of_memory.hpp"
#include "store/chunk.hpp"
#include "store/program_row.hpp"
#include "store/rollup.hpp"
#include "store/rows.hpp"
#include "store/schema.hpp"
#include "store/store.hpp"

namespace vramtrack {
namespace {

constexpr std::size_t kBatchSamples = 8192;
constexpr std::int64_t kSecondNs = 1'000'000'000;

Timestamp at(std::int64_t ns) {
  return Timestamp(Duration(ns));
}

/// Closed bounds for SQL: a missing time imposes no bound. Empty ranges give low > high.
struct Bounds {
  std::int64_t low = INT64_MIN, high = INT64_MAX;
  explicit Bounds(const TimeRange& range) {
    if (range.from) low = range.from->time_since_epoch().count();
    if (range.to) {
      const std::int64_t to = range.to->time_since_epoch().count();
      high = to == INT64_MIN ? to : to - 1;
      if (to == INT64_MIN) low = INT64_MAX;
    }
  }
  [[nodiscard]] bool contain(std::int64_t ns) const { return low <= ns && ns <= high; }
};

/// A chunk or journal row that the scan has not read yet.
struct Stretch {
  bool journal = false;
  std::int64_t id = 0, t_min_ns = 0, t_max_ns = 0;
  std::uint32_t rank = 0;  ///< by age in the file: for equal times, the older sample comes first
};

/// A sample that was read but not yet handed out.
struct Waiting {
  std::int64_t time_ns = 0;
  std::uint32_t rank = 0;
  std::uint32_t series = 0;
  std::uint64_t bytes = 0;
  friend bool operator<(const Waiting& a, const Waiting& b) {
    return std::tie(a.time_ns, a.rank) < std::tie(b.time_ns, b.rank);
  }
};

/// The samples of a chunk tick by tick, which is in time order unless the clock was set back.
std::vector<Waiting> in_time_order(const Chunk& chunk, std::uint32_t rank) {
  std::vector<std::uint32_t> offset(chunk.times_ns.size() + 1, 0);
  for (const std::uint32_t tick : chunk.ticks) ++offset[tick + 1];
  for (std::size_t i = 1; i < offset.size(); ++i) offset[i] += offset[i - 1];
  std::vector<Waiting> samples(chunk.points());
  for (const Chunk::Series& series : chunk.series)
    for (std::uint32_t i = 0; i < series.count; ++i) {
      const std::uint32_t tick = chunk.ticks[series.first + i];
      samples[offset[tick]++] = {chunk.times_ns[tick], rank, series.id, chunk.value(series, i)};
    }
  if (!std::is_sorted(samples.begin(), samples.end())) std::stable_sort(samples.begin(), samples.end());
  return samples;
}

}  // namespace

struct StoreReader::Core {
  std::string path;
  std::optional<sql::Database> database;

  // The scan.
  TimeRange range;
  bool scanning = false;
  bool finished = false;          ///< until the next select()
  std::optional<Error> deferred;  ///< returned once everything else that was read has been handed out
  std::deque<Stretch> stretches;  ///< still to be read, by their first time
  std::vector<Waiting> waiting;   ///< in order, starting at waiting_at
  std::size_t waiting_at = 0;
  sql::Statement read_event;
  std::optional<Event> event;  ///< the next one
  /// Maps the file's id to the id in the scan's catalog. A table, not an array: a damaged file may contain any id.
  std::unordered_map<std::uint32_t, SeriesId> ids;
  std::unordered_set<std::uint32_t> nameless;  ///< series ids that could not be looked up

  Result<bool> read(Catalog& catalog, Batch& out);
  Status begin(Catalog& catalog);
  void end();
  Status load();
  Status next_event();
  std::optional<SeriesId> name_of(std::uint32_t store_id, Catalog& catalog);
  Result<SeriesId> look_up(std::uint32_t store_id, Catalog& catalog);
  void fill(Catalog& catalog, Batch& out);
  Status describe(const SeriesKey& key, Catalog& catalog);
  Error damaged(const char* table, std::int64_t id, std::int64_t t_min_ns, std::int64_t t_max_ns,
                const std::string& why) const {
    return Error{fmt::format("{}: {} {} ({} to {}) is damaged and skipped: {}", path, table, id, iso8601(at(t_min_ns)),
                             iso8601(at(t_max_ns)), why)};
  }
};

StoreReader::StoreReader(std::unique_ptr<Core> core) : core_(std::move(core)) {}
StoreReader::~StoreReader() = default;
const std::string& StoreReader::path() const {
  return core_->path;
}

Result<std::unique_ptr<StoreReader>> StoreReader::open(const std::string& path) {
  return or_out_of_memory([&]() -> Result<std::unique_ptr<StoreReader>> {
    struct stat there {};
    if (::stat(path.c_str(), &there) != 0)
      return fail(fmt::format("{}: {}; 'vramtrack watch' creates it, or name another store", path, errno_words(errno)));
    if (!S_ISREG(there.st_mode))  // SQLite would wait at a FIFO forever
      return fail(fmt::format("{}: is not a regular file; name a store", path));
    auto core = std::make_unique<Core>();
    core->path = path;
    Status checked;
    for (const auto mode : {sql::Database::Mode::read, sql::Database::Mode::immutable}) {
      core->database.reset();
      auto database = sql::Database::open(path, mode);
      if (!database) return fail(database.error());
      core->database.emplace(std::move(*database));
      (void)core->database->exec("PRAGMA cache_size=-512; PRAGMA busy_timeout=1000");
      checked = check_schema(*core->database, path);
      // A reader without permission to write the folder cannot create the shared index of a write-ahead log. If there
      // is no log next to the file, nobody writes it: it can then be read without the index.
      if (checked || ::stat((path + "-wal").c_str(), &there) == 0 || ::access(path.c_str(), R_OK) != 0) break;
    }
    if (!checked) return fail(checked.error());
    return std::unique_ptr<StoreReader>(new StoreReader(std::move(core)));
  });
}

void StoreReader::select(const TimeRange& range) {
  core_->end();
  core_->range = range;
  core_->finished = false;
  core_->deferred.reset();
}

Status StoreReader::Core::begin(Catalog& catalog) {
  if (auto s = database->exec("BEGIN"); !s) return s;
  scanning = true;
  const Bounds bounds(range);
  auto query = database->prepare(
      "SELECT 0,id,t_min_ns,t_max_ns FROM chunk WHERE t_min_ns<=?2 AND t_max_ns>=?1 UNION ALL "
      "SELECT 1,seq,t_min_ns,t_max_ns FROM journal WHERE t_min_ns<=?2 AND t_max_ns>=?1 ORDER BY 1,2");
  if (!query) return fail(query.error());
  query->bind(1, bounds.low).bind(2, bounds.high);
  Result<bool> row = false;
  while ((row = query->step()) && *row)
    stretches.push_back({query->integer(0) != 0, query->integer(1), query->integer(2), query->integer(3),
                         static_cast<std::uint32_t>(stretches.size())});
  if (!row) return fail(row.error());
  std::stable_sort(stretches.begin(), stretches.end(),
                   [](const Stretch& a, const Stretch& b) { return a.t_min_ns < b.t_min_ns; });

  auto events =
      database->prepare(std::string(rows::kSelectEvent) + "WHERE time_ns BETWEEN ? AND ? ORDER BY time_ns,id");
  if (!events) return fail(events.error());
  read_event = std::move(*events);
  read_event.bind(1, bounds.low).bind(2, bounds.high);
  if (auto s = next_event(); !s) return s;

  const auto clock = database->integer("SELECT value FROM meta WHERE key='clock_is_relative'");
  if (!clock) return fail(clock.error());
  if (*clock) catalog.clock_is_relative = **clock != 0;
  return {};
}

void StoreReader::Core::end() {
  read_event = sql::Statement();
  event.reset();
  stretches.clear();
  waiting.clear();
  waiting_at = 0;
  ids.clear();
  nameless.clear();
  if (scanning) database->roll_back();  // nothing was written
  scanning = false;
}

/// Fetches the next event that can be read; one that cannot be read becomes the deferred error.
Status StoreReader::Core::next_event() {
  event.reset();
  while (!event) {
    const auto row = read_event.step();
    if (!row) return fail(row.error());
    if (!*row) return {};
    auto next = rows::read_event(read_event);
    if (next) {
      event = std::move(*next);
    } else {
      deferred = next.error().during(path);
    }
  }
  return {};
}

/// Reads the next stretch into `waiting`.
Status StoreReader::Core::load() {
  const Stretch stretch = stretches.front();
  stretches.pop_front();
  const char* table = stretch.journal ? "journal row" : "chunk";
  auto query =
      database->prepare(stretch.journal ? "SELECT data FROM journal WHERE seq=?" : "SELECT data FROM chunk WHERE id=?");
  if (!query) return fail(query.error());
  query->bind(1, stretch.id);
  const auto row = query->step();
  if (!row) return fail(damaged(table, stretch.id, stretch.t_min_ns, stretch.t_max_ns, row.error().message));
  if (!*row) return fail(damaged(table, stretch.id, stretch.t_min_ns, stretch.t_max_ns, "the row is missing"));
  const auto chunk = decode_chunk(query->blob(0));
  if (!chunk || chunk->columns != 1)
    return fail(damaged(table, stretch.id, stretch.t_min_ns, stretch.t_max_ns,
                        chunk ? "not a chunk of samples" : chunk.error().message));
  std::vector<Waiting> samples = in_time_order(*chunk, stretch.rank);
  waiting.erase(waiting.begin(), waiting.begin() + static_cast<std::ptrdiff_t>(waiting_at));
  waiting_at = 0;
  if (waiting.empty()) {
    waiting = std::move(samples);
  } else {
    const auto middle = static_cast<std::ptrdiff_t>(waiting.size());
    waiting.insert(waiting.end(), samples.begin(), samples.end());
    std::inplace_merge(waiting.begin(), waiting.begin() + middle, waiting.end());
  }
  return {};
}

Status StoreReader::Core::describe(const SeriesKey& key, Catalog& catalog) {
  auto device = database->prepare(std::string(rows::kSelectDevice) + "WHERE id=?");
  if (!device) return fail(device.error());
  device->bind(1, std::string_view(key.device_id));
  auto row = device->step();
  if (!row) return fail(row.error());
  if (*row) catalog.describe(rows::read_device(*device));
  if (key.pid == 0) return {};
  auto process = database->prepare(std::string(rows::kSelectProcess) + "WHERE pid=? AND start_ticks=?");
  if (!process) return fail(process.error());
  process->bind(1, std::int64_t{key.pid}).bind(2, static_cast<std::int64_t>(key.pid_start_ticks));
  row = process->step();
  if (!row) return fail(row.error());
  if (*row) catalog.describe(rows::read_process(*process));
  return {};
}

Result<SeriesId> StoreReader::Core::look_up(std::uint32_t store_id, Catalog& catalog) {
  auto query = database->prepare(std::string(rows::kSelectSeries) + "WHERE id=?");
  if (!query) return fail(query.error());
  query->bind(1, std::int64_t{store_id});
  const auto row = query->step();
  if (!row) return fail(row.error());
  if (!*row)
    return fail(fmt::format("{}: samples of series {}, which the file does not name, are skipped", path, store_id));
  const auto series = rows::read_series(*query);
  if (!series) return fail(series.error().during(path));
  if (auto s = describe(series->key, catalog); !s) return fail(s.error());
  return catalog.intern(series->key);
}

/// nullopt if its samples cannot be named; the reason is deferred, once per series.
std::optional<SeriesId> StoreReader::Core::name_of(std::uint32_t store_id, Catalog& catalog) {
  if (const auto known = ids.find(store_id); known != ids.end()) return known->second;
  if (nameless.contains(store_id)) return std::nullopt;
  const auto id = look_up(store_id, catalog);
  if (!id) {
    deferred = id.error();
    nameless.insert(store_id);
    return std::nullopt;
  }
  ids.emplace(store_id, *id);
  return *id;
}

/// Moves samples from `waiting`, which holds all before the next stretch's first time, and events to `out`: either
/// samples before the next event, up to the end of an instant, or the whole instant of that event.
void StoreReader::Core::fill(Catalog& catalog, Batch& out) {
  const Bounds bounds(range);
  const std::int64_t horizon_ns = stretches.empty() ? INT64_MAX : stretches.front().t_min_ns;
  const std::int64_t event_ns = event ? event->time.time_since_epoch().count() : INT64_MAX;
  const auto ready = [&] {
    return waiting_at < waiting.size() && (stretches.empty() || waiting[waiting_at].time_ns < horizon_ns);
  };
  const auto take = [&] {
    const Waiting& sample = waiting[waiting_at++];
    if (!bounds.contain(sample.time_ns)) return;
    if (const auto id = name_of(sample.series, catalog)) out.samples.push_back({at(sample.time_ns), *id, sample.bytes});
  };
  std::int64_t last_ns = INT64_MIN;
  while (ready() && (!event || waiting[waiting_at].time_ns < event_ns) &&
         (out.samples.size() < kBatchSamples || waiting[waiting_at].time_ns == last_ns)) {
    last_ns = waiting[waiting_at].time_ns;
    take();
  }
  if (!out.samples.empty() || !event) return;
  if (!stretches.empty() && horizon_ns <= event_ns) return;  // so far there were only samples outside the range
  while (ready() && waiting[waiting_at].time_ns == event_ns) take();
  while (event && event->time.time_since_epoch().count() == event_ns) {
    out.events.push_back(std::move(*event));
    if (auto s = next_event(); !s) deferred = s.error();
  }
}

Result<bool> StoreReader::read(Catalog& catalog, Batch& out) {
  Core& core = *core_;
  out.clear();
  if (core.finished) return false;
  bool whole = false;
  auto more = or_out_of_memory([&] {
    auto got = core.read(catalog, out);
    whole = true;
    return got;
  });
  if (whole) return more;
  core.end();  // data that was still in progress cannot be separated from data that was read
  core.finished = true;
  return more;
}

Result<bool> StoreReader::Core::read(Catalog& catalog, Batch& out) {
  if (!scanning)
    if (auto s = begin(catalog); !s) {
      end();
      finished = true;
      return fail(s.error());
    }
  while (true) {
    if (deferred) return fail(*std::exchange(deferred, std::nullopt));
    while (!stretches.empty() &&
           (waiting_at == waiting.size() || stretches.front().t_min_ns <= waiting[waiting_at].time_ns))
      if (auto s = load(); !s) return fail(s.error());
    if (waiting_at == waiting.size() && !event) {
      end();
      finished = true;
      return false;
    }
    fill(catalog, out);
    if (!out.samples.empty() || !out.events.empty()) return true;
  }
}

Result<std::vector<Rollup>> StoreReader::rollups(const SeriesKey& key, Resolution resolution, const TimeRange& range) {
  return or_out_of_memory([&]() -> Result<std::vector<Rollup>> {
    if (!key.host.empty()) return std::vector<Rollup>{};  // a store belongs to one machine
    Core& core = *core_;
    sql::Database& database = *core.database;
    auto find = database.prepare(std::string(rows::kSelectSeries) +
                                 "WHERE metric=? AND device_id=? AND pid=? AND pid_start_ticks=?");
    if (!find) return fail(find.error());
    find->bind(1, to_string(key.metric)).bind(2, std::string_view(key.device_id));
    find->bind(3, std::int64_t{key.pid}).bind(4, static_cast<std::int64_t>(key.pid_start_ticks));
    auto row = find->step();
    if (!row) return fail(row.error());
    if (!*row) return std::vector<Rollup>{};
    const auto store_id = static_cast<std::uint32_t>(find->integer(0));

    const std::int64_t width_s = resolution == Resolution::minute ? 60 : 3600;
    RollupTable table(width_s * kSecondNs);
    const Bounds bounds(range);
    // Rollups, and samples that are committed but not yet packed, in one statement, so that a block that is packed in
    // between is seen on exactly one side.
    auto query = database.prepare(
        "SELECT 0,id,t_min_ns,t_max_ns,data FROM rollup WHERE resolution_s=?1 AND t_min_ns<=?3 AND t_max_ns>=?2 UNION "
        "ALL "
        "SELECT 1,seq,t_min_ns,t_max_ns,data FROM journal");
    if (!query) return fail(query.error());
    query->bind(1, width_s).bind(2, bounds.low).bind(3, bounds.high);
    while ((row = query->step()) && *row) {
      const bool journal = query->integer(0) != 0;
      const auto chunk = decode_chunk(query->blob(4));
      bool good = chunk.has_value();
      if (good && journal) {
        good = chunk->columns == 1;
        for (const Chunk::Series& series : chunk->series)
          if (good && series.id == store_id)
            for (std::uint32_t i = 0; i < series.count; ++i)
              table.add(chunk->times_ns[chunk->ticks[series.first + i]], store_id, chunk->value(series, i));
      } else if (good) {
        good = table.add(*chunk, &store_id);
      }
      if (!good)
        return fail(core.damaged(journal ? "journal row" : "rollup chunk", query->integer(1), query->integer(2),
                                 query->integer(3), chunk ? "not the columns it should have" : chunk.error().message));
    }
    if (!row) return fail(row.error());
    std::vector<Rollup> result;
    for (const RollupCell& cell : table.cells()) {
      if (!bounds.contain(cell.start_ns) || cell.count == 0) continue;
      // The mean is the least value plus a small number of bytes: a double of the whole sum would round it.
      const auto above =
          static_cast<double>(cell.sum - Uint128{cell.min} * cell.count) / static_cast<double>(cell.count);
      result.push_back({at(cell.start_ns), cell.min, cell.max, static_cast<double>(cell.min) + above, cell.count});
    }
    return result;
  });
}

Result<std::vector<SeriesExtent>> StoreReader::series() {
  return or_out_of_memory([&]() -> Result<std::vector<SeriesExtent>> {
    Core& core = *core_;
    auto query = core.database->prepare(std::string(rows::kSelectSeries) + "ORDER BY id");
    if (!query) return fail(query.error());
    std::vector<rows::SeriesRow> found;
    Result<bool> row = false;
    while ((row = query->step()) && *row) {
      auto series = rows::read_series(*query);
      if (!series) return fail(series.error().during(core.path));
      found.push_back(std::move(*series));
    }
    if (!row) return fail(row.error());
    auto journal = core.database->prepare("SELECT data FROM journal");
    if (!journal) return fail(journal.error());
    while ((row = journal->step()) && *row) {
      const auto chunk = decode_chunk(journal->blob(0));
      if (!chunk) continue;  // read() reports it
      for (const Chunk::Series& series : chunk->series) {
        const auto it = std::lower_bound(found.begin(), found.end(), series.id,
                                         [](const rows::SeriesRow& r, std::uint32_t id) { return r.id < id; });
        if (it == found.end() || it->id != series.id) continue;
        for (std::uint32_t i = 0; i < series.count; ++i) {
          const std::int64_t time_ns = chunk->times_ns[chunk->ticks[series.first + i]];
          it->first_ns = std::min(it->first_ns, time_ns);
          it->last_ns = std::max(it->last_ns, time_ns);
        }
      }
    }
    if (!row) return fail(row.error());
    std::vector<SeriesExtent> result;
    for (const rows::SeriesRow& series : found)
      if (series.first_ns <= series.last_ns) result.push_back({series.key, at(series.first_ns), at(series.last_ns)});
    return result;
  });
}

Result<std::vector<Alert>> StoreReader::alerts(Catalog& catalog) {
  return or_out_of_memory([&]() -> Result<std::vector<Alert>> {
    Core& core = *core_;
    auto query = core.database->prepare(std::string(rows::kSelectAlert) + "ORDER BY raised_ns,series_id");
    if (!query) return fail(query.error());
    std::vector<Alert> result;
    Result<bool> row = false;
    while ((row = query->step()) && *row) {
      std::uint32_t store_id = 0;
      auto alert = rows::read_alert(*query, store_id);
      if (!alert) return fail(alert.error().during(core.path));
      auto find = core.database->prepare(std::string(rows::kSelectSeries) + "WHERE id=?");
      if (!find) return fail(find.error());
      find->bind(1, std::int64_t{store_id});
      const auto known = find->step();
      if (!known) return fail(known.error());
      if (!*known) continue;
      const auto series = rows::read_series(*find);
      if (!series) return fail(series.error().during(core.path));
      if (auto s = core.describe(series->key, catalog); !s) return fail(s.error());
      alert->series = catalog.intern(series->key);
      result.push_back(std::move(*alert));
    }
    if (!row) return fail(row.error());
    return result;
  });
}

Result<std::vector<DeviceMinute>> StoreReader::device_minutes(const std::string& device_id, const TimeRange& range) {
  return or_out_of_memory([&]() -> Result<std::vector<DeviceMinute>> {
    const auto version = core_->database->integer("PRAGMA user_version");
    if (!version) return fail(version.error());
    std::vector<DeviceMinute> result;
    if (version->value_or(0) < 2) return result;  // the file is older than these tables
    const bool busy_only = version->value_or(0) < 12;
    auto query = core_->database->prepare(
        fmt::format("SELECT minute_s,{} JOIN series ON id=series_id WHERE metric='device_used' AND device_id=? AND "
                    "minute_s>=? AND minute_s<? ORDER BY minute_s",
                    busy_only ? "max_percent,NULL,NULL,NULL FROM utilisation"
                              : "max_busy_percent,max_celsius,max_watts,max_sm_mhz FROM device_minute"));
    if (!query) return fail(query.error());
    const auto bound_s = [](const std::optional<Timestamp>& time, std::int64_t without) {
      return time ? std::chrono::ceil<std::chrono::seconds>(*time).time_since_epoch().count() : without;
    };
    query->bind(1, std::string_view(device_id))
        .bind(2, bound_s(range.from, INT64_MIN))
        .bind(3, bound_s(range.to, INT64_MAX));
    const auto figure = [&](int column, double unit) {
      return query->is_null(column) ? std::nullopt : std::optional(static_cast<double>(query->integer(column)) * unit);
    };
    Result<bool> row = false;
    while ((row = query->step()) && *row)
      result.push_back({Timestamp(std::chrono::seconds(query->integer(0))), figure(1, 0.01), figure(2, 1), figure(3, 1),
                        figure(4, 1e6)});
    if (!row) return fail(row.error());
    return result;
  });
}

Result<std::vector<Program>> StoreReader::programs() {
  return or_out_of_memory([&]() -> Result<std::vector<Program>> {
    const auto version = core_->database->integer("PRAGMA user_version");
    if (!version) return fail(version.error());
    if (version->value_or(0) < 4) return std::vector<Program>{};  // the file is older than this table
    auto programs = select_programs(*core_->database, std::nullopt);
    if (!programs) return fail(programs.error().during(core_->path));
    return programs;
  });
}

Result<std::optional<std::pair<Timestamp, Timestamp>>> StoreReader::raw_extent() {
  return or_out_of_memory([&]() -> Result<std::optional<std::pair<Timestamp, Timestamp>>> {
    auto query = core_->database->prepare(
        "SELECT min(t_min_ns),max(t_max_ns) FROM (SELECT t_min_ns,t_max_ns FROM chunk UNION ALL SELECT "
        "t_min_ns,t_max_ns "
        "FROM "
        "journal)");
    if (!query) return fail(query.error());
    const auto row = query->step();
    if (!row) return fail(row.error());
    if (!*row || query->is_null(0) || query->is_null(1)) return std::nullopt;
    return std::pair{at(query->integer(0)), at(query->integer(1))};
  });
}

}  // namespace vramtrack
