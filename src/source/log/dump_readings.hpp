// Common parts of the readers of tools' output: when a dump was made, and its values for each GPU, in any order, on one
// line or several. A reader splits the text; this class turns the values into readings.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/result.hpp"
#include "source/log/format.hpp"
#include "source/log/messages.hpp"
#include "source/log/recording.hpp"
#include "source/log/rows.hpp"
#include "source/log/stamp.hpp"
#include "source/log/text.hpp"

namespace vramtrack {

/// A parser that reads one line at a time.
class LineReader : public LogParser {
 public:
  std::uint64_t parse(std::string_view lines, std::uint64_t number, bool complete, LogRows& rows) final {
    for (; !lines.empty(); ++number) {
      const bool last_is_cut = !complete && lines.find('\n') == std::string_view::npos;
      const std::string_view line = logtext::take_line(lines);
      rows.line = number;
      if (reports_out_of_memory(line)) {
        end_reading(rows);
        rows.message_time(time_of_message(line));
        rows.out_of_memory(line);
        continue;
      }
      if (reports_lost_gpu(line)) {
        end_reading(rows);
        rows.message_time(time_of_message(line));
        rows.device_lost(line);
        continue;
      }
      if (reports_end(line)) {
        end_reading(rows);
        rows.message_time(time_of_message(line));
        rows.program_ended(line);
      }
      read_line(line, number, !last_is_cut, rows);
    }
    return number;
  }

 protected:
  /// `whole` is false for a last line without a newline, which may be truncated anywhere.
  virtual void read_line(std::string_view line, std::uint64_t number, bool whole, LogRows& rows) = 0;
  /// A message follows: the values read so far make a reading.
  virtual void end_reading(LogRows& /*rows*/) {}
  /// The time given in the line of a message; LogRows::kNever if there is none.
  virtual Timestamp time_of_message(std::string_view /*line*/) { return LogRows::kNever; }
};

/// The time in a line with little else: "==== Sun May 4 04:27:32 AM EDT 2025 ====", "Date: 2026-03-01 10:00:00", "#
/// 1772359200" (seconds since 1970). Empty if there is none.
std::string_view dated_text(std::string_view line);

/// The cells of "| a | b | c |", at most eight.
std::vector<std::string_view> bar_cells(std::string_view line);

/// Where a tool's output has its times.
struct DumpTimes {
  using Find = std::function<std::string_view(std::string_view line)>;

  Find find = dated_text;            ///< the time in a line; empty: none
  Find otherwise{};                  ///< likewise, used if `find` finds no time in the head
  std::optional<DateOrder> order{};  ///< set if the tool always uses the same order
  bool has_period = false;           ///< the tool has a usual period, used if there is no time
  std::string_view example{};        ///< an example of their format, used if the head has none; empty: no times then
};

/// Not thread-safe.
class DumpClock {
 public:
  /// Determines from the lines of the head how times are written.
  static Result<DumpClock> detect(const LogHead& head, std::vector<std::string>& assumptions, const DumpTimes& times);

  /// The time in a line, found as in the head; empty if there is none.
  [[nodiscard]] std::string_view find(std::string_view line) const { return find_(line); }
  /// Returns whether `text` is a time, at which the dump that follows was made.
  bool take(std::string_view text);
  /// The time of the dump that begins. If the log has dates, each dump needs its own: nullopt if there was none since
  /// the previous dump.
  std::optional<Timestamp> next();
  /// Reads a time that is in the rows themselves.
  bool read(std::string_view text, Timestamp& time) { return stamp_.read(text, time); }

  [[nodiscard]] bool is_relative() const { return stamp_.is_relative(); }
  [[nodiscard]] bool wraps() const { return stamp_.wraps(); }
  /// The thing that counts() counts, if there is no time.
  [[nodiscard]] Scale scale() const { return stamp_.scale(); }
  [[nodiscard]] bool counts() const { return stamp_.kind() == StampReader::Kind::none; }

 private:
  DumpClock(StampReader stamp, DumpTimes::Find find) : stamp_(std::move(stamp)), find_(std::move(find)) {}

  StampReader stamp_;
  DumpTimes::Find find_;
  std::optional<Timestamp> time_;
  std::uint64_t round_ = 0;
};

/// A process as listed in a dump. Missing fields are empty.
struct DumpedProcess {
  std::uint32_t pid = 0;
  std::string name, kind, user;
  std::string command{};  ///< empty: use the name
  std::optional<std::uint64_t> bytes{};
  std::optional<std::uint64_t> age_s{};
  GpuMemory memory{};  ///< in place of `bytes`, figures that are given one by one
};

/// Not thread-safe.
class DumpReadings {
 public:
  /// `busy`: see Metric::device_busy; `received`: see Metric::device_received; `allocated` and `reserved`: those of a
  /// program's allocator if both are given, otherwise used memory. `percent`: used memory in per cent, in
  /// Scale::kPercentBytes; used if its amount is not given.
  enum class Field : std::uint8_t { used, free, total, busy, received, allocated, reserved, percent };

  explicit DumpReadings(DumpClock clock) : clock_(std::move(clock)) {}

  /// In a log with only free memory: see GpuMemory. Call before the first
  /// value.
  void assume_most_free(std::uint64_t bytes) { most_free_bytes_ = bytes; }

  // --- dumps that are separated by a clock or counted ---
  /// A value of the current dump. If the dump already has this value, a new dump begins.
  void set(const LogDevice& gpu, Field field, std::uint64_t bytes, LogRows& rows);
  /// An amount as text, in `unit_bytes` if it has no unit; at `time`, or else in the current dump. A missing amount is
  /// ignored. Text that is not an amount is reported as a fault in `line`.
  void set_text(const std::optional<Timestamp>& time, const LogDevice& gpu, Field field, std::string_view text,
                std::uint64_t unit_bytes, std::uint64_t line, LogRows& rows);
  /// "11283/62841MB", "N/A / 24 GB": used and total memory; the unit after the second applies to both. Returns false if
  /// it is not such a pair.
  bool set_pair(const std::optional<Timestamp>& time, const LogDevice& gpu, std::string_view text, LogRows& rows);
  /// "37", "37 %" or "37%": how busy the GPU is, in per cent. Anything but a percentage is ignored.
  void set_busy(const std::optional<Timestamp>& time, const LogDevice& gpu, std::string_view text, LogRows& rows);
  /// Like set(), for dumps that are separated in other ways: the last value counts.
  void put(const LogDevice& gpu, Field field, std::uint64_t bytes, LogRows& rows);
  /// Like set(), for Field::percent. Anything but a percentage is ignored.
  void set_percent(const LogDevice& gpu, double percent, LogRows& rows);
  /// The current dump lists this GPU, whether or not it has a value.
  void see(const LogDevice& gpu, LogRows& rows) { begin(gpu_of(gpu), rows); }
  /// A process that the current dump lists on a GPU. It has ended when a complete list no longer contains it.
  void list_process(const LogDevice& gpu, DumpedProcess process, LogRows& rows);
  /// The current dump has listed all processes on this GPU: any other process has ended.
  void list_is_complete(const LogDevice& gpu, LogRows& rows);
  /// Returns whether `line` has the time of the dump that begins here.
  bool take_time(std::string_view line, LogRows& rows) { return take(clock_.find(line), rows); }
  /// Returns whether `text` is a time, which is that of the dump that begins here.
  bool take(std::string_view text, LogRows& rows);
  /// The following values were read at `time`; they belong to the current dump if it has the same time.
  void begin_at(Timestamp time, LogRows& rows);
  /// The current dump is complete.
  void end_dump(LogRows& rows);
  /// Other text follows, between two dumps or within one; the current readings precede it.
  void interrupt(LogRows& rows);

  // --- values that have a time of their own ---
  void set_at(Timestamp time, const LogDevice& gpu, Field field, std::uint64_t bytes, LogRows& rows);
  /// As set_at() or put(), of a process on a GPU, by its pid and name. Nothing shows when it ends.
  void set_of_process(const std::optional<Timestamp>& time, const LogDevice& gpu, const DumpedProcess& process,
                      Field field, std::uint64_t bytes, LogRows& rows);

  /// Reads such a time in the format that the clock detected.
  bool read_time(std::string_view text, Timestamp& time) { return !text.empty() && clock_.read(text, time); }

  /// The log has ended.
  void finish(LogRows& rows);
  [[nodiscard]] const DumpClock& clock() const { return clock_; }

 private:
  struct Gpu {
    LogDevice named;
    std::size_t device = SIZE_MAX;  ///< position in LogRows
    std::optional<std::uint64_t> values[8];
    std::optional<Timestamp> time;       ///< its own time
    std::optional<Timestamp> delivered;  ///< the last such time, if delivered before the next one was known
    std::vector<DumpedProcess> processes;
    bool lists_all = false;
    bool is_open = false;    ///< has undelivered values
    std::uint64_t line = 0;  ///< where it first occurs in the dump

    void clear() {
      for (auto& value : values) value.reset();
      processes.clear();
    }
  };

  /// Sets a value that may come several times at one time: the last counts.
  void place(Gpu& gpu, Field field, std::uint64_t bytes);
  bool begin_at(Gpu& gpu, Timestamp time, LogRows& rows);
  void see_time(Timestamp time, LogRows& rows);
  Gpu& gpu_of(const LogDevice& named);
  void set(const std::optional<Timestamp>& time, const LogDevice& gpu, Field field, std::uint64_t bytes, LogRows& rows);
  void begin(Gpu& gpu, LogRows& rows);
  void deliver(Gpu& gpu, Timestamp time, LogRows& rows);
  void complete(DumpedProcess& process, std::size_t device, Timestamp time, LogRows& rows) const;
  void deliver_late(LogRows& rows);

  DumpClock clock_;
  std::uint64_t most_free_bytes_ = 0;
  std::vector<Gpu> gpus_;
  std::unordered_map<std::string, std::size_t> gpu_of_;
  std::vector<std::size_t> open_;         ///< GPUs in the current dump, in its order
  std::vector<std::size_t> interrupted_;  ///< GPUs of a dump that may continue
  std::optional<Timestamp> row_time_;     ///< time passed to begin_at()
  std::optional<Timestamp> dump_time_;    ///< time of the dump that was delivered last
  std::uint64_t line_ = 0;                ///< line where the current dump began
  std::uint64_t dump_ = 0;
  std::uint64_t placed_ = 0;            ///< amounts of used memory given to place()
  std::uint64_t replaced_ = 0;          ///< of them, those in place of another amount
  Timestamp newest_ = LogRows::kNever;  ///< newest time of the values that have their own
};

/// `Reader` splits the text: LineReader or JsonParser.
template <class Reader>
class DumpParser : public Reader {
 public:
  /// `own_times`: the values have their own times, which are dates; the clock of the dumps is not needed.
  DumpParser(DumpClock clock, std::vector<std::string> assumptions, bool own_times = false)
      : readings_(std::move(clock)), own_times_(own_times) {
    if (own_times) assumptions.clear();
    this->assumptions_ = std::move(assumptions);
  }

  void finish(LogRows& rows) override {
    Reader::finish(rows);
    readings_.finish(rows);
  }
  [[nodiscard]] bool clock_is_relative() const override { return !own_times_ && readings_.clock().is_relative(); }
  [[nodiscard]] bool clock_wraps() const override { return !own_times_ && readings_.clock().wraps(); }
  [[nodiscard]] Scale scale() const override { return own_times_ ? Scale{} : readings_.clock().scale(); }

 protected:
  using Field = DumpReadings::Field;
  DumpReadings readings_;
  bool own_times_ = false;
};

/// A parser of lines that each describe one GPU or process; messages of programs may come between any two.
class DumpLines : public DumpParser<LineReader> {
 public:
  using DumpParser::DumpParser;

 private:
  void end_reading(LogRows& rows) final { readings_.interrupt(rows); }
};

/// A `Parser` with the clock of the head and `more` arguments.
template <class Parser, class... More>
Result<std::unique_ptr<LogParser>> make_dump_parser(const LogHead& head, const DumpTimes& times, More&&... more) {
  std::vector<std::string> assumptions;
  auto clock = DumpClock::detect(head, assumptions, times);
  if (!clock) return fail(std::move(clock.error()));
  return std::make_unique<Parser>(std::move(*clock), std::move(assumptions), std::forward<More>(more)...);
}
}  // namespace vramtrack
