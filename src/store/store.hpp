// Store: the data of a watch, kept in one SQLite file. Samples live in compressed chunks, old ones only as min/mean/max
// rollups. The file's layout and its guarantees: docs/formats/store.md.
//
//   append -> pending (memory, <= flush_seconds) -> journal (committed) -> chunk + rollups (committed)
//
// A sample survives `kill -9` and a crash of the program as soon as the flush that took it has returned. No clock is
// read: the samples carry the time.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/clock_mark.hpp"
#include "core/config.hpp"
#include "core/program.hpp"
#include "core/result.hpp"
#include "core/sample.hpp"
#include "core/series.hpp"
#include "core/time_range.hpp"
#include "core/verdict.hpp"

namespace vramtrack {

/// $XDG_STATE_HOME/vramtrack/vramtrack.db; if that variable is missing (or not an absolute path),
/// ~/.local/state/vramtrack/vramtrack.db.
std::string default_store_path();
/// config.path, or the default if it is empty.
std::string store_path(const StoreConfig& config);

/// The writer: at most one per file, over all programs of this machine. Use it from one thread. A file holds the series
/// of one machine: its schema has no host, and append() rejects a series that names one. No function throws or ends the
/// program; running out of memory is an error, too. After an error, the store stays usable and tries again at the next
/// flush. While the disk refuses (when full, say), unwritten data waits in memory, at most 1 MiB of it compressed;
/// beyond that, the oldest is dropped and counted.
class Store {
 public:
  /// Opens or creates the file (and its folder) and takes its lock. `catalog` must outlive the store:
  /// its series, devices and processes are written with the samples that name them. It may retire a series
  /// as soon as append() and record() have been given the last of it. `now` is only written
  /// into the lock, for the message that a second writer gets. Errors: a second writer (names pid, start and
  /// command of the first), no right to write, a damaged file, another program's file, a newer schema.
  /// Costs milliseconds; a journal left by a crash is taken over, at most 15 minutes of samples.
  static Result<std::unique_ptr<Store>> open(const StoreConfig& config, const Catalog& catalog, Timestamp now);

  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;
  /// Flushes, as far as the disk allows, and releases the lock.
  ~Store();

  /// The readings of the machine's clocks at the samples that follow. Without these marks nothing expires, since
  /// retention counts only by them: by the machine's uptime, never by the samples' own times, which may be wrong.
  void keep_time(const ClockMark& mark);
  /// The last mark: until one is given, that of the last writer of this file. nullopt if it left none.
  [[nodiscard]] std::optional<ClockMark> clock_mark() const;

  /// Buffers; flushes when flush_seconds have passed by the samples' own time. Any order of times is
  /// kept exactly, equal stamps included. An error is returned once per cause: the same one again is
  /// silent until a flush has succeeded; the store tries again with every flush. Cost: some 10 ns per sample, about 0.1
  /// ms per flush, and once in about 15 minutes of samples some ms to pack; when the log is taken over into the
  /// file, also the time that the disk takes to sync (10 to 100 ms).
  Status append(const Batch& batch);

  /// Adds or replaces (same series and `raised`) an alert and flushes. Errors as append.
  Status record(const Alert& alert);

  /// Adds or replaces what is remembered about a program (by its key); written with the next flush. Kept forever, as
  /// the hourly summaries are.
  Status remember(const Program& program);
  /// The entry for `key`, whether already written or not; nullopt if there is none, or if it could not be read.
  [[nodiscard]] std::optional<Program> program(const std::string& key) const;

  /// Writes what is pending now. Success: everything that was appended is committed. Errors are returned each time.
  Status flush();

  /// Notices for the user, each returned once: a size cap that cut history short, space that became available, dropped
  /// samples, a damaged row that was skipped. A second call returns only new ones.
  [[nodiscard]] std::vector<std::string> take_notices();

  /// Why appended data cannot be written at present; empty while it can.
  [[nodiscard]] const std::string& failing() const;

  [[nodiscard]] const std::string& path() const;

 private:
  struct Core;
  explicit Store(std::unique_ptr<Core> core);
  std::unique_ptr<Core> core_;
};

/// Half-open: from <= time < to. Absent: no bound on that side.
enum class Resolution : std::uint8_t { minute, hour };

/// The samples of one series in [start, start + minute or hour). A stretch without samples has no rollup.
struct Rollup {
  Timestamp start;
  std::uint64_t min = 0;
  std::uint64_t max = 0;
  double mean = 0;  ///< exact to one byte
  std::uint64_t count = 0;
};

/// The maximum of each of a device's gauges in the minute from `start`. Unreported values are nullopt.
struct DeviceMinute {
  Timestamp start;
  std::optional<double> busy_ratio;  ///< 0..1, share of time that some kernel ran, to a hundredth, rounded up
  std::optional<double> temperature_celsius;
  std::optional<double> power_watts;
  std::optional<double> sm_clock_hertz;
  friend bool operator==(const DeviceMinute&, const DeviceMinute&) = default;
};

/// A series in the store, and when its first and last samples ever were (their raw samples may be
/// gone by now; the hourly rollups are not).
struct SeriesExtent {
  SeriesKey key;
  Timestamp first;
  Timestamp last;
};

/// Forgets the program of `key`, or all of them if it is empty; returns how many there were. A writer that is active
/// meanwhile may remember it again when a run of it ends. Errors: no store, or it cannot be written.
Result<std::size_t> forget_programs(const std::string& path, const std::string& key);

/// Any number of readers may work concurrently with a writer, in any program; each is used from one thread.
/// Opens read-only and never changes the file.
class StoreReader {
 public:
  /// Errors: no such file, not a store, damaged, a newer schema.
  static Result<std::unique_ptr<StoreReader>> open(const std::string& path);

  StoreReader(const StoreReader&) = delete;
  StoreReader& operator=(const StoreReader&) = delete;
  ~StoreReader();

  /// Starts a new scan, over `range`; without it, the first read() starts one over everything.
  void select(const TimeRange& range);

  /// Fills `out` (cleared first) with the next samples and events, in time order over all series, and
  /// describes in `catalog` the series it meets, their devices and their processes. False: nothing was
  /// left and `out` is empty. All samples of one instant come in one batch, and no batch holds a sample
  /// later than an event in it, so a replay may take the batches as a live watch would have made them.
  /// Pass the same catalog for a whole scan. An error names the damaged chunk; the next call continues after it, so
  /// that a loop over errors ends, too (running out of memory ends the scan): after the last of the data, every call
  /// returns false. From the first read to the last, the scan sees the file as it was at the first, and keeps the
  /// writer's write-ahead log from being reset: scan long ranges hour by hour if you pause between reads. Memory: one
  /// chunk (about 2 MiB), more only if the clock was set back.
  Result<bool> read(Catalog& catalog, Batch& out);

  /// Rollups of one series that start in `range`, in time order, up to the last committed sample. Empty
  /// for a series that the store does not have. Minutes reach back minute_days, hours forever.
  Result<std::vector<Rollup>> rollups(const SeriesKey& key, Resolution resolution, const TimeRange& range = {});

  /// For the minutes that start in `range`, in time order, as far as the driver reported it; kept for minute_days.
  Result<std::vector<DeviceMinute>> device_minutes(const std::string& device_id, const TimeRange& range = {});

  /// Every series with the time of its first and last sample.
  Result<std::vector<SeriesExtent>> series();

  /// Every alert, oldest first; their series are interned in `catalog` and described there.
  Result<std::vector<Alert>> alerts(Catalog& catalog);

  /// All remembered programs, the last seen first; empty for a store older than that feature.
  Result<std::vector<Program>> programs();

  /// Times of the oldest and newest raw sample; nullopt if there is none.
  Result<std::optional<std::pair<Timestamp, Timestamp>>> raw_extent();

  [[nodiscard]] const std::string& path() const;

 private:
  struct Core;
  explicit StoreReader(std::unique_ptr<Core> core);
  std::unique_ptr<Core> core_;
};

}  // namespace vramtrack
