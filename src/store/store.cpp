#include "store/store.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <map>
#include <utility>

#include "core/out_of_memory.hpp"
#include "store/catalog_writer.hpp"
#include "store/chunk.hpp"
#include "store/device_minutes.hpp"
#include "store/location.hpp"
#include "store/lock.hpp"
#include "store/packer.hpp"
#include "store/private_file.hpp"
#include "store/program_row.hpp"
#include "store/rows.hpp"
#include "store/schema.hpp"
#include "store/uptime.hpp"

namespace vramtrack {
namespace {

constexpr std::size_t kPendingSamples = 16384;  ///< then flush at once: bounds memory and the journal's rows
constexpr std::size_t kBacklogBytes = 1U << 20;
constexpr std::size_t kBacklogRecords = 4096;  ///< events, and as many alerts
constexpr std::size_t kNotices = 64;
constexpr int kJournalLevel = 1;

std::int64_t ns_of(Timestamp time) {
  return time.time_since_epoch().count();
}

}  // namespace

struct Store::Core {
  /// A stretch of samples, ready to become a journal row.
  struct Sealed {
    Bytes data;
    std::int64_t t_min_ns = 0, t_max_ns = 0;
    std::size_t samples = 0;
  };

  Core(const StoreConfig& config_, const Catalog& catalog_, Timestamp now)
      : config(config_),
        path(store_path(config_)),
        catalog(catalog_),
        opened(now),
        flush_ns(from_seconds(config_.flush_seconds).count()) {}

  Status connect();
  Status reconnect_if_replaced();
  Status check_clock();
  Status seal();
  Status write();
  Status flush_or_throw();
  Status flush();
  Status report(Status status);
  void buffer(const Sample& sample);
  [[nodiscard]] bool due(Timestamp newest) const;
  void give_up(std::size_t samples) { lost_samples += samples; }

  const StoreConfig config;
  const std::string path;
  const Catalog& catalog;
  const Timestamp opened;
  const std::int64_t flush_ns;

  std::optional<WriterLock> lock;
  std::optional<sql::Database> database;  // declared before everything that holds its statements
  std::optional<FileIdentity> identity;
  sql::Statement put_journal, put_event, put_alert;
  std::optional<CatalogWriter> series;
  std::optional<DeviceMinuteWriter> device_minutes;
  std::optional<Uptime> uptime;
  std::optional<Packer> packer;
  std::int64_t last_seq = 0;
  std::optional<bool> clock_is_relative;  ///< as recorded in the file, once known

  std::vector<Sample> pending;
  std::optional<Timestamp> pending_since;
  ChunkBuilder builder;
  Compressor compressor;
  std::deque<Sealed> backlog;
  std::size_t backlog_bytes = 0;
  std::vector<Event> events;
  std::vector<Alert> alerts;
  std::map<std::string, Program> programs;  ///< still to be written, by key

  bool closing = false;  ///< nothing is written after this
  std::string failing;   ///< the error that was last returned and is not yet resolved
  std::size_t lost_samples = 0;
  std::vector<std::string> notices;
};

Status Store::Core::connect() {
  packer.reset();
  const auto mark = uptime ? uptime->last() : std::nullopt;
  uptime.reset();
  device_minutes.reset();
  series.reset();
  for (sql::Statement* statement : {&put_journal, &put_event, &put_alert}) *statement = sql::Statement();
  database.reset();
  lock.reset();
  clock_is_relative.reset();
  if (auto s = make_folder_of(path); !s) return s;
  auto taken = WriterLock::take(path, opened);
  if (!taken) return fail(taken.error());
  lock.emplace(std::move(*taken));
  if (auto s = make_private(path, config.group); !s) return s;
  auto opened_database = sql::Database::open(path, sql::Database::Mode::write);
  if (!opened_database) return fail(opened_database.error());
  database.emplace(std::move(*opened_database));
  if (auto s = prepare_schema(*database, path); !s) return s;

  struct Text {
    sql::Statement* statement;
    std::string_view sql;
  };
  for (const Text& text : {Text{&put_journal, "INSERT INTO journal VALUES(?,?,?,?,?)"},
                           Text{&put_event, rows::kPutEvent}, Text{&put_alert, rows::put_alert()}}) {
    auto prepared = database->prepare(text.sql);
    if (!prepared) return fail(prepared.error());
    *text.statement = std::move(*prepared);
  }
  auto writer = CatalogWriter::open(*database, catalog);
  if (!writer) return fail(writer.error());
  series.emplace(std::move(*writer));
  auto minute_writer = DeviceMinuteWriter::open(*database);
  if (!minute_writer) return fail(minute_writer.error());
  device_minutes.emplace(std::move(*minute_writer));
  auto kept = Uptime::open(*database);
  if (!kept) return fail(kept.error());
  uptime.emplace(std::move(*kept));
  if (mark) uptime->advance(*mark);
  auto made = Packer::open(*database, config, notices);
  if (!made) return fail(made.error());
  packer.emplace(std::move(*made));
  const auto seq = database->integer("SELECT max(seq) FROM journal");
  if (!seq) return fail(seq.error());
  last_seq = seq->value_or(0);
  const auto clock = database->integer("SELECT value FROM meta WHERE key='clock_is_relative'");
  if (!clock) return fail(clock.error());
  if (*clock) clock_is_relative = **clock != 0;
  identity = file_identity(path);
  return packer->advance(compressor, uptime->ns());
}

/// The file may be removed or replaced while a watch runs for weeks; continuing to write to a file without a name would
/// silently lose everything.
Status Store::Core::reconnect_if_replaced() {
  if (packer && identity && !was_replaced(path, *identity)) return {};
  for (const Sealed& sealed : backlog) give_up(sealed.samples);  // their series ids belong to the old file
  backlog.clear();
  backlog_bytes = 0;
  if (packer)
    notices.push_back(fmt::format("store: {} was removed or replaced while it was written; starting a new one", path));
  if (auto s = connect(); !s) {
    packer.reset();
    return s;
  }
  return {};
}

Status Store::Core::check_clock() {
  if (pending.empty() || !clock_is_relative || *clock_is_relative == catalog.clock_is_relative) return {};
  give_up(pending.size());
  pending.clear();
  const char* there = *clock_is_relative ? "seconds since a recording's start" : "dates";
  const char* here = *clock_is_relative ? "dates" : "only seconds since its start";
  return fail(
      fmt::format("{}: holds samples with {}, the source has {}: they cannot be kept in one file; set store.path to "
                  "another file",
                  path, there, here));
}

void Store::Core::buffer(const Sample& sample) {
  if (index_of(sample.series) >= catalog.size()) {  // not from this catalog: nothing could name it later
    give_up(1);
    return;
  }
  if (!pending_since) pending_since = sample.time;
  pending.push_back(sample);
}

bool Store::Core::due(Timestamp newest) const {
  if (!pending_since) return false;
  std::int64_t age_ns = 0;
  if (__builtin_sub_overflow(ns_of(newest), ns_of(*pending_since), &age_ns)) return true;
  return age_ns >= flush_ns || age_ns <= -flush_ns;  // a clock that was set back must not delay a flush
}

/// Pending samples become sealed stretches; the oldest are dropped if the disk has refused for too long.
Status Store::Core::seal() {
  const auto earlier = [](const Sample& a, const Sample& b) { return a.time < b.time; };
  if (!std::is_sorted(pending.begin(), pending.end(), earlier))
    std::stable_sort(pending.begin(), pending.end(), earlier);
  Status status;
  while (status && !pending.empty()) {
    std::size_t next = 0;
    builder.clear();
    for (; status && next < pending.size() && builder.points() < kPendingSamples; ++next) {
      const auto id = series->id_of(pending[next].series);
      if (id && *id == 0) {
        give_up(1);
      } else if (id) {
        builder.add(ns_of(pending[next].time), *id, pending[next].bytes);
      } else {
        status = fail(id.error());
      }
    }
    if (!status) break;
    if (!builder.empty()) {  // otherwise it held nothing that could be named
      auto data = compressor.compress(builder.payload(), kJournalLevel);
      if (!data) {
        status = fail(data.error());
        break;
      }
      const std::size_t bytes = data->size();
      backlog.push_back({std::move(*data), builder.min_ns(), builder.max_ns(), builder.points()});
      backlog_bytes += bytes;
    }
    // Immediately: a sample must be in one of the two, whatever fails next.
    pending.erase(pending.begin(), pending.begin() + static_cast<std::ptrdiff_t>(next));
  }
  while (backlog_bytes > kBacklogBytes && backlog.size() > 1) {
    backlog_bytes -= backlog.front().data.size();
    give_up(backlog.front().samples);
    backlog.pop_front();
  }
  return status;
}

/// One transaction for everything that is waiting.
Status Store::Core::write() {
  std::vector<std::uint32_t> alert_series;
  for (const Alert& alert : alerts) {
    const auto id = series->id_of(alert.series);
    if (!id) return fail(id.error());
    alert_series.push_back(*id);
  }
  std::int64_t seq = last_seq;
  auto status = sql::transaction(*database, [&]() -> Status {
    if (!clock_is_relative)
      if (auto s = database->exec(fmt::format("INSERT OR REPLACE INTO meta VALUES('clock_is_relative',{})",
                                              catalog.clock_is_relative ? 1 : 0)
                                      .c_str());
          !s)
        return s;
    if (auto s = series->write(); !s) return s;
    for (const Sealed& sealed : backlog) {
      put_journal.bind(1, ++seq).bind(2, sealed.t_min_ns).bind(3, sealed.t_max_ns);
      put_journal.bind(4, static_cast<std::int64_t>(sealed.samples))
          .bind(5, std::span<const std::uint8_t>(sealed.data));
      if (auto s = put_journal.run(); !s) return s;
    }
    if (auto s = device_minutes->write(); !s) return s;
    for (const Event& event : events) {
      const std::string text = rows::event_text(event);
      rows::bind_event(put_event, event, text);
      put_event.bind(8, uptime->ns());
      if (auto s = put_event.run(); !s) return s;
    }
    for (std::size_t i = 0; i < alerts.size(); ++i) {
      if (alert_series[i] == 0) continue;  // retired before the file came back: nothing could name its series
      rows::bind_alert(put_alert, alert_series[i], alerts[i]);
      if (auto s = put_alert.run(); !s) return s;
    }
    for (const auto& [key, program] : programs)
      if (auto s = put_program(*database, program); !s) return s;
    if (!programs.empty())
      if (auto s = keep_last_programs(*database); !s) return s;
    return uptime->write(closing);
  });
  if (!status) return status;
  // First the steps that cannot fail: anything left here would be written a second time.
  last_seq = seq;
  backlog.clear();
  backlog_bytes = 0;
  events.clear();
  alerts.clear();
  programs.clear();
  clock_is_relative = catalog.clock_is_relative;
  series->committed();
  device_minutes->committed();
  uptime->committed();
  return {};
}

Status Store::Core::flush_or_throw() {
  pending_since.reset();
  if (notices.size() > kNotices) notices.erase(notices.begin(), notices.end() - kNotices);
  const auto keep_newest = [](auto& records) {
    if (records.size() > kBacklogRecords) records.erase(records.begin(), records.end() - kBacklogRecords);
  };
  keep_newest(events);
  keep_newest(alerts);
  while (programs.size() > kBacklogRecords) programs.erase(programs.begin());
  if (auto s = check_clock(); !s) return s;
  auto status = reconnect_if_replaced();
  if (status) status = seal();
  if (!status && pending.size() > 4 * kPendingSamples) {  // they could not even be sealed
    const std::size_t excess = pending.size() - 4 * kPendingSamples;
    give_up(excess);
    pending.erase(pending.begin(), pending.begin() + static_cast<std::ptrdiff_t>(excess));
  }
  if (!status) return status;
  if (backlog.empty() && events.empty() && alerts.empty() && programs.empty()) return {};
  if (auto s = write(); !s) return s;
  if (auto s = packer->advance(compressor, uptime->ns()); !s) return s;
  if (!failing.empty() || lost_samples > 0) {
    notices.push_back(lost_samples == 0 ? fmt::format("store: {} can be written again; nothing was lost", path)
                                        : fmt::format("store: {} can be written again; {} samples were lost meanwhile",
                                                      path, lost_samples));
    failing.clear();
    lost_samples = 0;
  }
  return {};
}

/// If memory runs out, everything that waits keeps waiting, as it does when the disk refuses.
Status Store::Core::flush() {
  return or_out_of_memory([this] { return flush_or_throw(); });
}

Status Store::Core::report(Status status) {
  if (status) return status;
  if (status.error().message == failing) return {};
  failing = status.error().message;
  return status;
}

Store::Store(std::unique_ptr<Core> core) : core_(std::move(core)) {}

Result<std::unique_ptr<Store>> Store::open(const StoreConfig& config, const Catalog& catalog, Timestamp now) {
  return or_out_of_memory([&]() -> Result<std::unique_ptr<Store>> {
    auto core = std::make_unique<Core>(config, catalog, now);
    if (auto s = core->connect(); !s) return fail(s.error());
    return std::unique_ptr<Store>(new Store(std::move(core)));
  });
}

Store::~Store() {
  core_->closing = true;
  (void)core_->flush();
}

void Store::keep_time(const ClockMark& mark) {
  static_cast<void>(or_out_of_memory([&]() -> Status {  // the next mark carries the same information
    if (core_->uptime) core_->uptime->advance(mark);
    return {};
  }));
}

std::optional<ClockMark> Store::clock_mark() const {
  const auto mark = or_out_of_memory(
      [&]() -> Result<std::optional<ClockMark>> { return core_->uptime ? core_->uptime->last() : std::nullopt; });
  return mark ? *mark : std::nullopt;
}

Status Store::append(const Batch& batch) {
  Core& core = *core_;
  Status status;
  // Each step separately: if there is no memory for one, the others may still succeed.
  const auto attempt = [&](auto step) {
    if (Status s = or_out_of_memory([&]() -> Status { return step(); }); !s) status = std::move(s);
  };
  const auto flush_now = [&] { attempt([&] { return core.report(core.flush()); }); };
  attempt([&]() -> Status {
    if (core.series) core.series->collect();
    for (const Event& event : batch.events) {
      if (!core.pending_since) core.pending_since = event.time;
      core.events.push_back(event);
    }
    if (core.device_minutes)
      for (const DeviceReading& reading : batch.readings) core.device_minutes->collect(reading);
    return {};
  });
  std::size_t taken = 0;
  attempt([&]() -> Status {
    for (const Sample& sample : batch.samples) {
      core.buffer(sample);
      ++taken;
      if (!core.pending.empty() && core.pending.size() % kPendingSamples == 0) flush_now();
    }
    return {};
  });
  core.give_up(batch.samples.size() - taken);
  if ((!batch.samples.empty() && core.due(batch.samples.back().time)) ||
      (!batch.events.empty() && core.due(batch.events.back().time)))
    flush_now();
  return status;
}

Status Store::record(const Alert& alert) {
  return or_out_of_memory([&]() -> Status {
    core_->alerts.push_back(alert);
    if (core_->series) core_->series->collect();
    return core_->report(core_->flush());
  });
}

Status Store::remember(const Program& program) {
  return or_out_of_memory([&]() -> Status {
    core_->programs.insert_or_assign(program.key, program);
    return {};
  });
}

std::optional<Program> Store::program(const std::string& key) const {
  auto found = or_out_of_memory([&]() -> Result<std::optional<Program>> {
    if (const auto waiting = core_->programs.find(key); waiting != core_->programs.end()) return waiting->second;
    if (!core_->database) return std::nullopt;
    auto programs = select_programs(*core_->database, key);
    if (!programs) return fail(programs.error());
    if (programs->empty()) return std::nullopt;
    return std::move(programs->front());
  });
  return found ? std::move(*found) : std::nullopt;
}

Status Store::flush() {
  return or_out_of_memory([this]() -> Status {
    Status status = core_->flush();
    if (!status) core_->failing = status.error().message;
    return status;
  });
}

Result<std::size_t> forget_programs(const std::string& path, const std::string& key) {
  return or_out_of_memory([&]() -> Result<std::size_t> {
    // Runs its checks first: no file is created, and no other program's file is written.
    if (const auto reader = StoreReader::open(path); !reader) return fail(reader.error());
    auto database = sql::Database::open(path, sql::Database::Mode::write);
    if (!database) return fail(database.error());
    if (auto s = database->exec("PRAGMA busy_timeout=5000"); !s) return fail(s.error());
    const auto version = database->integer("PRAGMA user_version");
    if (!version) return fail(version.error());
    if (version->value_or(0) < 4) return std::size_t{0};  // the file is older than this table
    auto erase = database->prepare(key.empty() ? "DELETE FROM program" : "DELETE FROM program WHERE key=?");
    if (!erase) return fail(erase.error());
    if (!key.empty()) erase->bind(1, std::string_view(key));
    if (auto s = erase->run(); !s) return fail(s.error());
    const auto changed = database->integer("SELECT changes()");
    if (!changed) return fail(changed.error());
    return static_cast<std::size_t>(changed->value_or(0));
  });
}

std::vector<std::string> Store::take_notices() {
  return std::exchange(core_->notices, {});
}
const std::string& Store::failing() const {
  return core_->failing;
}

const std::string& Store::path() const {
  return core_->path;
}

}  // namespace vramtrack
