// One measurement, and the batch in which a source delivers measurements.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/gauges.hpp"
#include "core/health.hpp"
#include "core/lifetimes.hpp"
#include "core/progress.hpp"
#include "core/series.hpp"
#include "core/time.hpp"

namespace vramtrack {

/// `bytes` of series `series` at `time`. A value that could not be read makes no sample.
struct Sample {
  Timestamp time;
  SeriesId series{};
  std::uint64_t bytes = 0;
};

/// Used instead of a device's id for a capacity of a process in the host's memory.
inline constexpr std::string_view kHostMemory = "host";

/// Something that happened, as opposed to a measurement.
struct Event {
  enum class Kind : std::uint8_t {
    process_ended,   ///< `device_id` (or empty: all devices), `pid`, `pid_start_ticks`; pid 0: some process, unknown
                     ///< which; `text` quotes who reported it
    device_lost,     ///< the driver no longer answers for the device; its series pause
    device_resumed,  ///< it answers again
    xid,             ///< NVIDIA XID error: `xid`
    note,            ///< anything a person should read once
    capacity,        ///< the device's capacity is `capacity_bytes` from here on: changes travel with the samples. With
                     ///< a `text`, which names who set it: where memory of process `pid` ends (core/wall.hpp), on
                     ///< `device_id` or in the host (kHostMemory), or with pid 0 that of the program that a log
                     ///< without processes is about; 0: no longer
    watch_started,   ///< in a store: a watch began here; what it knew of the time before: `went_on`, `knew_runs`
    out_of_memory,   ///< a program reported that an allocation failed on `device_id` (empty: unknown which); `text`
                     ///< quotes it
    lifetimes,       ///< what the lines of process `pid` have allocated, and how much of it is still live: `sites`; not
                     ///< for people
    held,            ///< from here on a policy keeps process `pid` from running or growing; `text` explains it
    let_go,          ///< it no longer does
    host_out_of_memory,  ///< the kernel ended process `pid` because the memory of the host, or of a cgroup, ran out
    mark,                ///< process `pid` has reached a point that it, or somebody for it, names: `text`
  };
  static constexpr std::array<std::string_view, 13> kKindNames = {
      "process_ended", "device_lost",   "device_resumed", "xid",  "note",   "capacity",
      "watch_started", "out_of_memory", "lifetimes",      "held", "let_go", "host_out_of_memory",
      "mark"};

  Timestamp time;
  Kind kind = Kind::note;
  std::string device_id;
  std::uint32_t pid = 0;
  std::uint64_t pid_start_ticks = 0;
  std::string text;  ///< for people; nothing is decided by it
  std::string host;  ///< of the device or process, as in SeriesKey::host

  // Fields that only one kind uses; the other kinds leave them at their defaults.
  std::uint64_t xid = 0;             ///< the number of the error
  std::uint64_t capacity_bytes = 0;  ///< for a capacity
  bool ran_out_of_memory = false;    ///< for a process_ended: its memory ran out, as the source reported
  bool killed_by_host = false;       ///< for a process_ended: the kernel ended it because the host's memory ran out
  bool went_on = false;              ///< for a watch_started: it had taken in the samples of the previous watch
  bool knew_runs = false;            ///< for a watch_started: it compared programs with their earlier runs in the store
  std::vector<SiteLifetimes> sites;  ///< for a lifetimes
};

/// How busy a device was over the driver's last sampling period, and its health; for people: no detector reads it.
struct DeviceReading {
  Timestamp time;
  std::string device_id;
  std::optional<double> gpu_utilisation_ratio;  ///< 0..1, share of time some kernel ran
  DeviceGauges gauges;
  std::optional<DeviceHealth> health;  ///< read only now and then; absent: unchanged
  std::string host;                    ///< as in SeriesKey::host
};

/// How busy a process is, over the same period.
struct ProcessReading {
  Timestamp time;
  SeriesId series{};  ///< its memory on the device
  ProcessLoad load;
};

/// The results of one poll. Samples of one series are in time order (equal stamps allowed: the last one counts).
struct Batch {
  std::vector<Sample> samples;
  std::vector<Event> events;
  std::vector<DeviceReading> readings;    ///< from live sources, where the driver reports them
  std::vector<ProcessReading> loads;      ///< likewise
  std::vector<ProgressReading> progress;  ///< from the live loop, now and then: for processes that hold much memory
  void clear() {
    samples.clear();
    events.clear();
    readings.clear();
    loads.clear();
    progress.clear();
  }
  void swap(Batch& other) noexcept {
    samples.swap(other.samples);
    events.swap(other.events);
    readings.swap(other.readings);
    loads.swap(other.loads);
    progress.swap(other.progress);
  }
};

}  // namespace vramtrack
