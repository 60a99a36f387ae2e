// LogRows: where a parser puts what it reads. Interns devices and processes, keeps time in order, counts
// what could not be read.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/sample.hpp"
#include "core/scale.hpp"
#include "core/series.hpp"
#include "source/log/order.hpp"
#include "source/log/roster.hpp"
#include "source/source.hpp"

namespace vramtrack {

/// The budget of a recording: what its GPUs, processes and names may take while it is analysed. A log that needs more
/// is refused. It is what leaves a log of any content below 256 MiB.
struct SeriesBudget {
  static constexpr std::size_t kBytes = 208U << 20;
  static constexpr std::size_t kSeriesBytes = 8U << 10;   ///< a GPU or a process, also when it has ended
  static constexpr std::size_t kLivingBytes = 24U << 10;  ///< its detectors, while it is watched
  static constexpr std::size_t kCopies = 8;               ///< of a text: parsers and the catalog have their own
};

/// Rows of one log. Not thread-safe. `catalog` and `roster` must outlive it.
class LogRows {
 public:
  LogRows(Catalog& catalog, DeviceRoster& roster, std::string file, std::optional<std::uint64_t> capacity_bytes)
      : catalog_(catalog), roster_(roster), file_(std::move(file)), default_capacity_(capacity_bytes) {
    if (capacity_bytes) most_bytes_ = *capacity_bytes;
  }

  // --- devices ---
  /// Position of a device in this log; describes it in the catalog. Parsers cache the answer.
  std::size_t device(const LogDevice& device);
  /// Its device_used series.
  SeriesId device_series(std::size_t device);
  /// What else is reported of the device: what a program's allocator holds (allocator_allocated, allocator_reserved),
  /// or a fact (device_busy, device_received). `pid` 0: of no process, or not known.
  SeriesId further_series(std::size_t device, Metric metric, std::uint32_t pid) {
    devices_[device].has_allocator |= metric == Metric::allocator_allocated || metric == Metric::allocator_reserved;
    return intern({metric, devices_[device].id, pid, 0});
  }
  /// The row of `time` says how much memory the device has; to be called before its samples are added. A total
  /// known before the device's first sample goes into the catalog; one that is learnt or changes later is an event
  /// of that time, because the catalog is read while earlier samples are still being judged. Cheap when the total
  /// has not changed.
  void total(Timestamp time, std::size_t device, std::uint64_t bytes) {
    if (bytes != devices_[device].total_bytes) set_total(time, device, bytes);
  }
  [[nodiscard]] const std::string& device_id(std::size_t device) const { return devices_[device].id; }

  // --- processes ---
  /// A process listed on a device. `has_bytes` false: its memory is not known (no series is made).
  /// The same pid under another name is another process.
  std::size_t process(std::size_t device, std::uint32_t pid, std::string_view name, std::string_view kind,
                      std::string_view user, std::string_view command, bool has_bytes);
  /// A listed process that is still running; parsers cache `process`.
  void seen(std::size_t process, double clock_s) { processes_[process].seen_s = clock_s; }
  [[nodiscard]] bool ended(std::size_t process) const { return processes_[process].ended; }
  [[nodiscard]] SeriesId process_series(std::size_t process) const { return processes_[process].series; }
  [[nodiscard]] double seen_s(std::size_t process) const { return processes_[process].seen_s; }
  /// Ends every process on `device` (kEveryDevice: all) last seen before `clock_s`, an event at `time` each.
  static constexpr std::size_t kEveryDevice = SIZE_MAX;
  void end_unseen(std::size_t device, double clock_s, Timestamp time);

  /// A parser, or the catalog, keeps a text of the log for as long as it is read: its share of the SeriesBudget.
  void keeps_text(std::size_t bytes);

  // --- messages ---
  /// The line being read, `message`, says that a GPU ran out of memory: adds an event at the time of the last reading.
  /// One event per device for all messages between two readings (a traceback). None before the first reading. A limit
  /// that it names is a wall from then on, until more is held. A process that it is about, and that is not listed
  /// again, has ended for it.
  void out_of_memory(std::string_view message);
  /// It says that a program ended, not which: likewise, but one event for all messages between two readings. Where it
  /// says that the host's memory ran out, a process that it names, or the only one, has ended for that if it is not
  /// listed again.
  void program_ended(std::string_view message);
  /// It says that a GPU was lost: an event for that GPU, or for each of the log if it does not say which, since no
  /// readings follow. A later sample of a GPU says that it is back.
  void device_lost(std::string_view message);
  /// The row being read has this in place of the used memory of `device`: counted if it is an error (cell_error), and
  /// an event as above if it says that the GPU was lost.
  void no_reading(std::size_t device, std::string_view cell);

  // --- samples ---
  void add(Timestamp time, SeriesId series, std::uint64_t bytes) {
    if (observer_) return observer_(line, time, series);
    if (bytes > kMostBytes) return skip(line, "more memory than any machine has");
    if (!lost_.empty()) resume(time, series);
    if (watch_) watch_->see(time, series);
    time += shift_;
    if (time < newest_) {
      time = out_of_order(time, series);
    } else {
      if (time > newest_) {
        step_ = newest_ == kNever ? Duration{std::chrono::seconds{1}} : time - newest_;
        newest_ = time;
      }
    }
    Timestamp& last = last_of_[index_of(series)];
    if (time > last) last = time;
    bytes_of_[index_of(series)] = bytes;
    samples.push_back({time, series, bytes});
    if (!limits_.empty()) exceeds_limit(time, series, bytes);
    if (bytes > most_bytes_) exceeds_capacity(series, bytes);
  }

  /// The row being read has this time, whether or not it has a value.
  void row_time(Timestamp time) {
    if (observer_) observer_(line, time, kNoSeries);
  }

  /// Gets each sample's line, time and series, as written, instead of keeping samples: for checking the order of a log.
  /// kNoSeries: the time of a row, which may have no value.
  using Observer = std::function<void(std::uint64_t line, Timestamp time, SeriesId series)>;
  void observe(Observer observer) { observer_ = std::move(observer); }
  static constexpr SeriesId kNoSeries{UINT32_MAX};

  /// Earlier than any time in a log (those are 1970 to 2100, so that no difference overflows).
  static constexpr Timestamp kNever{Duration{-1'000'000'000'000'000'000}};
  /// A reading beyond this is none: of one GPU, of all of a rack, and of what a program has ever read.
  static constexpr std::uint64_t kMostBytes = 1ULL << 56;

  /// Line being read, for messages about time.
  std::uint64_t line = 0;
  std::vector<Sample> samples;
  std::vector<Event> events;

  // --- what went wrong ---
  /// Counts a line that could not be read; the first eight are named.
  void skip(std::uint64_t line, std::string_view reason);
  /// Adds a warning, once.
  void warn(std::string text);
  [[nodiscard]] const SourceNotes& notes() const { return notes_; }
  /// The log's name, as messages give it.
  [[nodiscard]] const std::string& file() const { return file_; }
  /// The rows that follow are from `file`, which continues where the previous one ended. Its parser starts counting
  /// again: a process that it does not list has ended.
  void continue_in(std::string file);
  /// Why the log cannot be read further; empty while it can.
  [[nodiscard]] const std::string& refusal() const { return refusal_; }
  /// The log cannot be read further. The first reason is kept, and the reader of the log stops soon.
  void refuse(std::string reason) {
    if (refusal_.empty()) refusal_ = std::move(reason);
  }

  /// The log has ended: says how many processes it lists without their memory, how many rows have an error in its
  /// place, and on which devices more was used than the capacity that was given for them.
  void warn_at_end();

  // --- order of time ---
  /// What the times of the log count, for messages about them.
  void express_by(Scale scale) { scale_ = std::move(scale); }
  /// Times count from `time`, the beginning of the recording. Only before the first row.
  void begin_at(Timestamp time) { shift_ = -time.time_since_epoch(); }
  /// The most by which a sample was earlier than a previous one of another series. Zero: in order throughout.
  [[nodiscard]] Duration disorder() const { return disorder_; }
  /// Series follow one another in the file instead of interleaving: only sorting the whole file puts them in order.
  [[nodiscard]] bool series_follow_one_another() const { return blocks_; }
  /// The order of the log is known only for its beginning: it is read only once, while it is being written. `head`
  /// watches the rest. If rows turn out to need sorting, the log is refused, because what has been read can no longer
  /// be sorted.
  void watch_order(StretchSurvey head) { watch_.emplace(std::move(head)); }
  /// The log has ended: refuses it if only the whole log shows that it is out of order.
  void judge_order() {
    if (watch_ && steps_back_ > 0) refuse_other_order();
  }
  [[nodiscard]] Timestamp newest() const { return newest_; }

 private:
  struct Device {
    std::string id;
    std::optional<SeriesId> used;
    std::uint64_t total_bytes = 0;  ///< the last total; 0: none yet
    bool has_allocator = false;     ///< of what a program's allocator holds on it there are series
    std::uint64_t over_bytes = 0;   ///< the most that was used beyond the capacity that was given; 0: never
  };
  struct Process {
    std::size_t device = 0;
    std::uint32_t pid = 0;
    std::uint64_t ticks = 0;  ///< 0, 1, 2, ... for each process that had this pid
    std::string name;
    SeriesId series{};
    bool has_series = false;
    bool ended = false;
    double seen_s = 0;
    std::optional<double> ran_out_s;  ///< when it was seen last before a message of its own of out of memory
    std::optional<double> killed_s;   ///< likewise before the host was said to have ended it
  };
  struct Pid {
    std::string name;
    std::uint64_t ticks = 0;
    std::size_t alive = 0;            ///< devices it is listed on
    std::vector<std::size_t> listed;  ///< positions in processes_ of those not ended, including earlier processes
  };

  void resume(Timestamp time, SeriesId series);
  void end_readings(std::vector<std::string> devices, std::string_view message);
  [[nodiscard]] std::string device_of_message(std::string_view message) const;
  Process* process_of_message(std::string_view message, const std::string& device_id);
  void limit_of_program(std::string_view message, const std::string& device_id, const Process* whose);
  void host_killed(std::string_view message);
  void exceeds_limit(Timestamp time, SeriesId series, std::uint64_t bytes);
  void set_total(Timestamp time, std::size_t device, std::uint64_t bytes);
  [[nodiscard]] bool has_samples(std::size_t device) const;
  [[nodiscard]] Timestamp event_time(Timestamp time, std::size_t device) const;
  SeriesId intern(const SeriesKey& key);
  void exceeds_capacity(SeriesId series, std::uint64_t bytes);
  Timestamp out_of_order(Timestamp time, SeriesId series);
  void refuse_other_order();

  Catalog& catalog_;
  DeviceRoster& roster_;
  std::string file_;
  std::optional<std::uint64_t> default_capacity_;
  std::uint64_t most_bytes_ = UINT64_MAX;  ///< more than this in a sample is looked at: the default capacity
  std::vector<Device> devices_;
  std::vector<std::size_t> device_of_;  ///< position in devices_, by position in the roster; SIZE_MAX: none
  std::vector<SeriesId> device_series_;
  std::vector<Process> processes_;
  bool bytes_withheld_ = false;     ///< some process was listed without its memory: then an empty list means nothing
  std::vector<std::size_t> alive_;  ///< positions in processes_
  std::size_t name_bytes_ = 0;      ///< of all devices and processes
  std::unordered_map<std::uint32_t, Pid> pids_;
  SourceNotes notes_;
  std::vector<Timestamp> last_of_;       ///< by series id
  std::vector<std::uint64_t> bytes_of_;  ///< the last of each, likewise
  Timestamp newest_ = kNever;
  Duration step_{std::chrono::seconds{1}};
  Duration shift_{};
  Scale scale_;
  Duration disorder_{};
  bool blocks_ = false;
  std::optional<StretchSurvey> watch_;  ///< for a log that is read only once
  std::uint64_t steps_back_ = 0;
  Timestamp out_of_memory_ = kNever;             ///< time of the last such message
  Timestamp program_ended_ = kNever;             ///< likewise
  bool ended_by_host_ = false;                   ///< as a message at that time said
  std::vector<Event> limits_;                    ///< that messages have named, while they hold
  std::uint64_t unread_ = 0;                     ///< rows with an error in place of used memory
  std::string first_unread_;                     ///< the first of them, in words
  std::vector<std::string> lost_;                ///< devices that were lost and have no sample since
  std::vector<std::string> said_out_of_memory_;  ///< devices of the messages at that time
  std::uint64_t first_step_back_ = 0;            ///< its line
  std::string refusal_;
  Observer observer_;
};

}  // namespace vramtrack
