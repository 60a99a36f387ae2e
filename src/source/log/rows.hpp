// LogRows: collects what a parser reads. It interns devices and processes, keeps time in order, and counts what could
// not be read.
#pragma once

#include <algorithm>
#include <cmath>
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
#include "core/units.hpp"
#include "source/log/order.hpp"
#include "source/log/roster.hpp"
#include "source/source.hpp"

namespace vramtrack {

/// The budget of a recording: the memory that its GPUs, processes and names may take during analysis. A log that needs
/// more is refused. This keeps the memory for any log below 256 MiB.
struct SeriesBudget {
  static constexpr std::size_t kBytes = 208U << 20;
  static constexpr std::size_t kSeriesBytes = 8U << 10;   ///< for a GPU or a process, even after it has ended
  static constexpr std::size_t kLivingBytes = 24U << 10;  ///< for the detectors of one, while it is watched
  static constexpr std::size_t kCopies = 8;               ///< for a text: the parsers and the catalog each keep a copy
};

/// The memory of one GPU, or of a program on it, at one time, as far as a row gives it. The rest is empty.
struct GpuMemory {
  std::optional<std::uint64_t> used, free, total;
  std::optional<std::uint64_t> allocated, reserved;  ///< by a program's allocator
  std::optional<double> percent;                     ///< used memory, in per cent of the total
  std::uint64_t grain_bytes = kBytesPerMiB;          ///< used and free memory are rounded to it
  std::uint64_t most_free_bytes = 0;                 ///< in a log with only free memory: it stands for the total
  bool waits_for_total = false;                      ///< another row of the log gives the total of `percent`

  /// Adds the figures of `more`, which has the same owner and time. Returns false, and changes nothing, if both give
  /// the same figure: then `more` belongs to another reading.
  bool take(const GpuMemory& more);
};

/// Rows of one log. Not thread-safe. `catalog` and `roster` must outlive it.
class LogRows {
 public:
  LogRows(Catalog& catalog, DeviceRoster& roster, std::string file, std::optional<std::uint64_t> capacity_bytes)
      : catalog_(catalog), roster_(roster), file_(std::move(file)), default_capacity_(capacity_bytes) {
    if (capacity_bytes) most_bytes_ = *capacity_bytes;
  }

  // --- devices ---
  /// Position of a device in this log; describes it in the catalog. Parsers cache the result.
  std::size_t device(const LogDevice& device);
  /// The device's device_used series.
  SeriesId device_series(std::size_t device);
  /// The device's other series: a program's allocator (allocator_allocated, allocator_reserved), or a fact
  /// (device_busy, device_received). `pid` 0: no process, or unknown.
  SeriesId further_series(std::size_t device, Metric metric, std::uint32_t pid) {
    devices_[device].has_allocator |= metric == Metric::allocator_allocated || metric == Metric::allocator_reserved;
    return intern({metric, devices_[device].id, pid, 0});
  }
  /// The row at `time` gives the device's total memory; call before adding its samples. A total known before the
  /// device's first sample goes into the catalog; one that is learned or changes later becomes an event at that
  /// time, because the catalog is read while earlier samples are still being judged. Cheap if the total has not
  /// changed.
  void total(Timestamp time, std::size_t device, std::uint64_t bytes) {
    if (bytes != devices_[device].total_bytes) set_total(time, device, bytes);
  }
  /// Whether an earlier row, or --capacity, has given the device's total memory.
  [[nodiscard]] bool knows_total(std::size_t device) const {
    return default_capacity_ || devices_[device].total_bytes > 0;
  }
  /// The total memory as last given; 0 if not yet.
  [[nodiscard]] std::uint64_t total_of(std::size_t device) const { return devices_[device].total_bytes; }
  /// Completes the figures of `device` in a row of `time`, in any syntax: the total from used and free memory, and used
  /// memory from free memory or a percentage. Without a total, a percentage is on the scale of percentages
  /// (core/scale.hpp), which the device is on from then on: 100 % is its capacity; in a log whose head has amounts in
  /// bytes, it is left out with a warning, since one scale cannot have both. The total is reported. Returns why figures
  /// of memory in use were removed (they are above the total, say); nullptr: none were. Used memory stays empty if it
  /// follows from a total that is not known yet. Cheap.
  const char* complete(Timestamp time, std::size_t device, GpuMemory& figures);
  [[nodiscard]] bool is_in_percent(std::size_t device) const { return devices_[device].in_percent; }
  /// Whether all amounts so far are on the scale of percentages.
  [[nodiscard]] bool counts_percent() const;
  [[nodiscard]] const std::string& device_id(std::size_t device) const { return devices_[device].id; }
  /// The series that merged() looks at. A list may contain a process twice, beside good readings of its GPU.
  enum class MergedOf : std::uint8_t { all, gpus };
  /// Why some readings are of several owners that nothing tells apart: a series often has several amounts at one time,
  /// although its times are further apart than they are written. Empty: none are. Samples of one GPU within the same
  /// second, or the same minute, are not such readings, nor are those of one step, unless they alternate between
  /// levels.
  [[nodiscard]] std::string merged(MergedOf of = MergedOf::all) const;
  /// The readings are events of one program, several of which may have one time.
  void expect_events() { are_events_ = true; }

  // --- processes ---
  /// A process listed on a device. `has_bytes` false: its memory is unknown (no series is made). The same pid under
  /// another name is another process.
  std::size_t process(std::size_t device, std::uint32_t pid, std::string_view name, std::string_view kind,
                      std::string_view user, std::string_view command, bool has_bytes);
  /// A listed process that is still running; parsers cache `process`.
  void seen(std::size_t process, double clock_s) { processes_[process].seen_s = clock_s; }
  [[nodiscard]] bool ended(std::size_t process) const { return processes_[process].ended; }
  [[nodiscard]] SeriesId process_series(std::size_t process) const { return processes_[process].series; }
  [[nodiscard]] double seen_s(std::size_t process) const { return processes_[process].seen_s; }
  /// Ends every process on `device` (kEveryDevice: all) last seen before `clock_s`, with an event at `time` for each.
  static constexpr std::size_t kEveryDevice = SIZE_MAX;
  void end_unseen(std::size_t device, double clock_s, Timestamp time);

  /// Counts a text of the log that a parser, or the catalog, keeps while the log is read against the SeriesBudget.
  void keeps_text(std::size_t bytes);

  // --- messages ---
  /// The current line, `message`, reports that a GPU ran out of memory: adds an event at the time of the last reading.
  /// All messages between two readings (a traceback) give one event per device; those before the first reading give
  /// none. A limit in the message is a wall from then on, until more is held. The process that the message names has
  /// ended because of it, if it is not listed again.
  void out_of_memory(std::string_view message);
  /// The message reports that a program ended, not which: as above, but one event for all messages between two
  /// readings. If it reports that the host's memory ran out, the process that it names, or the only one, has ended
  /// because of that if it is not listed again.
  void program_ended(std::string_view message);
  /// The message reports that a GPU was lost: adds an event for that GPU, or for each of the log if it does not name
  /// one, since no readings follow. A later sample of a GPU shows that it is back.
  void device_lost(std::string_view message);
  /// The current row has this text instead of the used memory of `device`. It is counted if it is an error
  /// (cell_error), and gives an event as above if it reports that the GPU was lost.
  void no_reading(std::size_t device, std::string_view cell);

  // --- samples ---
  void add(Timestamp time, SeriesId series, std::uint64_t bytes) {
    if (observer_) return observer_(line, time, series);
    if (bytes > kMostBytes) return skip(line, "more memory than any machine has");
    if (!lost_.empty()) resume(time, series);
    if (watch_) watch_->see(time, series);
    time += shift_;
    const Timestamp written = time;
    if (time < newest_) {
      time = out_of_order(time, series);
    } else {
      if (time > newest_) {
        step_ = newest_ == kNever ? Duration{std::chrono::seconds{1}} : time - newest_;
        newest_ = time;
      }
    }
    series_[index_of(series)].take(time, bytes, time == written);
    samples.push_back({time, series, bytes});
    if (!limits_.empty()) exceeds_limit(time, series, bytes);
    if (bytes > most_bytes_) exceeds_capacity(series, bytes);
  }

  /// Adds the used memory of a GPU, and the memory of the allocator of `pid` (0: unknown).
  void add(Timestamp time, std::size_t device, const GpuMemory& figures, std::uint32_t pid) {
    if (figures.used) add(time, device_series(device), *figures.used);
    add_allocator(time, device, figures, pid);
  }
  void add_allocator(Timestamp time, std::size_t device, const GpuMemory& figures, std::uint32_t pid) {
    if (figures.allocated) add(time, further_series(device, Metric::allocator_allocated, pid), *figures.allocated);
    if (figures.reserved) add(time, further_series(device, Metric::allocator_reserved, pid), *figures.reserved);
  }

  /// The current row has this time, whether or not it has a value.
  void row_time(Timestamp time) {
    if (observer_) observer_(line, time, kNoSeries);
  }

  /// The next message has this time of its own. If it is kNever, or earlier than the newest reading, the message gets
  /// the time of that reading.
  void message_time(Timestamp time) { message_ = time == kNever ? kNever : time + shift_; }

  /// Only the samples matter; the notes are not shown.
  void leave_out_notes() { has_notes_ = false; }
  /// Whether notes that take long to write are worth the time.
  [[nodiscard]] bool has_notes() const { return has_notes_ && !observer_; }

  /// Receives each sample's line, time and series, as written; no samples are kept. For checking the order of a log.
  /// kNoSeries: the time of a row, which may have no value.
  using Observer = std::function<void(std::uint64_t line, Timestamp time, SeriesId series)>;
  void observe(Observer observer) { observer_ = std::move(observer); }
  static constexpr SeriesId kNoSeries{UINT32_MAX};

  /// Earlier than any time in a log (those are 1970 to 2100, so that no difference overflows).
  static constexpr Timestamp kNever{Duration{-1'000'000'000'000'000'000}};
  /// A larger reading is invalid, be it for one GPU, for a rack, or for the total that a program has ever read.
  static constexpr std::uint64_t kMostBytes = 1ULL << 56;

  /// Line being read, for messages about time.
  std::uint64_t line = 0;
  std::vector<Sample> samples;
  std::vector<Event> events;

  // --- what went wrong ---
  /// Counts a line that could not be read; the first eight are reported by number.
  void skip(std::uint64_t line, std::string_view reason);
  /// Adds a warning, unless it has been added before.
  void warn(std::string text);
  [[nodiscard]] const SourceNotes& notes() const { return notes_; }
  /// The log's name in messages.
  [[nodiscard]] const std::string& file() const { return file_; }
  /// The following rows are from `file`, which continues where the previous one ended. Its parser restarts its counts;
  /// a process that it does not list has ended.
  void continue_in(std::string file);
  /// Why the log cannot be read further; empty while it can.
  [[nodiscard]] const std::string& refusal() const { return refusal_; }
  /// Stops reading the log. The first reason is kept, and the reader of the log stops soon.
  void refuse(std::string reason) {
    if (refusal_.empty()) refusal_ = std::move(reason);
  }

  /// The log has ended: reports how many processes it lists without their memory, how many rows have an error instead,
  /// and on which devices more memory was used than the given capacity.
  void warn_at_end();

  // --- order of time ---
  /// The units of the log's times and amounts, as its head shows them.
  void express_by(Scale scale) { scale_ = std::move(scale); }
  /// Times count from `time`, the start of the recording. Call only before the first row.
  void begin_at(Timestamp time) { shift_ = -time.time_since_epoch(); }
  /// The largest amount by which a sample was earlier than a previous one of another series. Zero: always in order.
  [[nodiscard]] Duration disorder() const { return disorder_; }
  /// The file lists series one after another instead of interleaving them, so only sorting the whole file orders them.
  [[nodiscard]] bool series_follow_one_another() const { return blocks_; }
  /// The order of the log is known only for its beginning: it is read only once, while it is being written. `head`
  /// watches the rest. If it turns out that rows need sorting, the log is refused, because the rows already read cannot
  /// be sorted any more.
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
    std::uint64_t total_bytes = 0;  ///< the last total; 0: not yet known
    bool has_allocator = false;     ///< there are series of a program's allocator on it
    bool total_is_sum = false;      ///< it is the sum of used and free memory, since no row gives it
    bool in_percent = false;        ///< its memory is on the scale of percentages
    std::uint64_t over_bytes = 0;   ///< largest excess of used memory over the given capacity; 0: none
  };
  struct Process {
    std::size_t device = 0;
    std::uint32_t pid = 0;
    std::uint64_t ticks = 0;  ///< 0, 1, 2, ... for the processes that have had this pid
    std::string name;
    SeriesId series{};
    bool has_series = false;
    bool ended = false;
    double seen_s = 0;
    std::optional<double> ran_out_s;  ///< last seen before an out-of-memory message about it
    std::optional<double> killed_s;   ///< last seen before the host was reported to have killed it
  };
  /// Times in seconds that are further apart always differ as written.
  static constexpr Duration kSureGap = std::chrono::milliseconds{1900};
  /// Readings closer together than this may be those of one time, one after another.
  static constexpr Duration kTogether = std::chrono::milliseconds{100};
  /// What has been read of a series.
  struct SeriesState {
    Timestamp last = kNever;
    std::uint64_t bytes = 0;  ///< the last amount
    Timestamp first = kNever;
    Duration shortest = Duration::max();  ///< from one time to the next
    std::uint64_t times = 0;              ///< different ones
    std::uint64_t close = 0;              ///< of them, those less than kSureGap after the one before
    std::uint64_t shared = 0;             ///< readings with the time of the one before, and another amount
    double within = 0;                    ///< sum of the changes at one time
    double path = 0;                      ///< the same, each as a positive amount
    double between = 0;                   ///< sum of the changes from one time to the next

    /// `is_as_written`: false if the time of the reading before was put in place of its own.
    void take(Timestamp time, std::uint64_t amount, bool is_as_written) {
      const double change = static_cast<double>(amount) - static_cast<double>(bytes);
      if (times == 0) {
        first = time;
        times = 1;
      } else if (const Duration gap = time - last; gap >= kTogether || !is_as_written) {
        ++times;
        between += change;
        if (is_as_written) shortest = std::min(shortest, gap);
        close += gap < kSureGap ? 1U : 0U;
      } else if (change != 0) {
        ++shared;
        within += change;
        path += std::abs(change);
      }
      if (time > last) last = time;
      bytes = amount;
    }
    [[nodiscard]] bool is_merged(bool counts) const;
  };
  struct Pid {
    std::string name;
    std::uint64_t ticks = 0;
    std::size_t alive = 0;            ///< number of devices that list it
    std::vector<std::size_t> listed;  ///< positions in processes_ of those not ended, including earlier processes
  };

  void resume(Timestamp time, SeriesId series);
  void end_readings(std::vector<std::string> devices, std::string_view message);
  [[nodiscard]] std::string device_of_message(std::string_view message) const;
  Process* process_of_message(std::string_view message, const std::string& device_id);
  void limit_of_program(std::string_view message, const std::string& device_id, const Process* failed);
  [[nodiscard]] Timestamp time_of_message() const;
  void host_killed(std::string_view message);
  void exceeds_limit(Timestamp time, SeriesId series, std::uint64_t bytes);
  void set_total(Timestamp time, std::size_t device, std::uint64_t bytes);
  std::optional<std::uint64_t> used_of_percent(Timestamp time, std::size_t device, double percent);
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
  std::uint64_t most_bytes_ = UINT64_MAX;  ///< larger samples are examined: the default capacity
  std::vector<Device> devices_;
  std::vector<std::size_t> device_of_;  ///< position in devices_, by position in the roster; SIZE_MAX: none
  std::vector<SeriesId> device_series_;
  std::vector<Process> processes_;
  bool bytes_withheld_ = false;     ///< some process was listed without its memory, so an empty list proves nothing
  std::vector<std::size_t> alive_;  ///< positions in processes_
  std::size_t name_bytes_ = 0;      ///< of the names of all devices and processes
  std::unordered_map<std::uint32_t, Pid> pids_;
  SourceNotes notes_;
  std::vector<SeriesState> series_;  ///< by series id
  Timestamp newest_ = kNever;
  Duration step_{std::chrono::seconds{1}};
  Duration shift_{};
  std::optional<Scale> scale_;  ///< not yet known while the head is read
  Duration disorder_{};
  bool blocks_ = false;
  std::optional<StretchSurvey> watch_;  ///< used for a log that is read only once
  std::uint64_t steps_back_ = 0;
  Timestamp message_ = kNever;                       ///< the current message's own time
  Timestamp out_of_memory_ = kNever;                 ///< time of the last such message
  Timestamp program_ended_ = kNever;                 ///< likewise for reports that a program ended
  bool ended_by_host_ = false;                       ///< according to a message at that time, the host ended it
  std::vector<Event> limits_;                        ///< named in messages, while they apply
  std::uint64_t unread_ = 0;                         ///< rows with an error in place of used memory
  std::string first_unread_;                         ///< the first of them, for messages
  std::vector<std::string> lost_;                    ///< lost devices without a sample since
  std::vector<std::string> reported_out_of_memory_;  ///< devices of the messages at that time
  std::uint64_t first_step_back_ = 0;                ///< line of the first backward step
  std::string refusal_;
  bool has_notes_ = true;
  bool are_events_ = false;
  Observer observer_;
};

}  // namespace vramtrack
