// What a tool's dumps say about each GPU. A dump gives used, free and total memory in any order, on one line or
// several, so its values are gathered until it is complete.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "source/log/dump_clock.hpp"
#include "source/log/rows.hpp"

namespace vramtrack {

/// Not thread-safe.
class DumpReadings {
 public:
  /// `busy`: as Metric::device_busy; `received`: as Metric::device_received; `allocated` and `reserved`: by a program's
  /// allocator, if both are given; else what is in use.
  enum class Field : std::uint8_t { used, free, total, busy, received, allocated, reserved };

  explicit DumpReadings(DumpClock clock) : clock_(std::move(clock)) {}

  // --- dumps that are separated by a clock or counted ---
  /// A value of the present dump. A value that the dump already has begins the next dump.
  void set(const LogDevice& gpu, Field field, std::uint64_t bytes, LogRows& rows);
  /// An amount as written, in `unit_bytes` if it has no unit: at `time`, else of the present dump. A missing one is no
  /// value. What is no amount is noted as a fault of `line`.
  void set_text(const std::optional<Timestamp>& time, const LogDevice& gpu, Field field, std::string_view text,
                std::uint64_t unit_bytes, std::uint64_t line, LogRows& rows);
  /// "37", "37 %" or "37%": in per cent, how busy the GPU is. What is no percentage is passed over.
  void set_busy(const std::optional<Timestamp>& time, const LogDevice& gpu, std::string_view text, LogRows& rows);
  /// As set(), for dumps that are separated by something else: the last value counts.
  void put(const LogDevice& gpu, Field field, std::uint64_t bytes, LogRows& rows);
  /// As set(), for logs that give memory in percent only: shown on a scale of --capacity or of 1 GiB a percent.
  void set_percent(const LogDevice& gpu, double percent, const std::optional<std::uint64_t>& capacity, LogRows& rows);
  /// A process that the present dump lists on a GPU. It ends when a complete list does not have it.
  void list_process(const LogDevice& gpu, std::uint32_t pid, std::string_view name, std::optional<std::uint64_t> bytes,
                    LogRows& rows);
  /// The present dump lists all processes of this GPU: a process that is not among them has ended.
  void list_is_complete(const LogDevice& gpu, LogRows& rows);
  /// True when `line` is a time between two dumps.
  bool take_time(std::string_view line, LogRows& rows);
  /// The present dump is complete.
  void end_dump(LogRows& rows);

  // --- values that have a time of their own ---
  void set_at(Timestamp time, const LogDevice& gpu, Field field, std::uint64_t bytes, LogRows& rows);

  /// Reads such a time in the way the clock determined.
  bool read_time(std::string_view text, Timestamp& time) { return !text.empty() && clock_.read(text, time); }

  /// The log has ended.
  void finish(LogRows& rows);
  [[nodiscard]] const DumpClock& clock() const { return clock_; }

 private:
  struct Process {
    std::uint32_t pid = 0;
    std::string name;
    std::optional<std::uint64_t> bytes;
  };
  struct Gpu {
    LogDevice named;
    std::size_t device = SIZE_MAX;  ///< in LogRows
    std::optional<std::uint64_t> values[7];
    std::optional<Timestamp> time;       ///< its own
    std::optional<Timestamp> delivered;  ///< the last such time, if it was delivered before the next was known
    std::uint64_t sum_bytes = 0;         ///< of used and free: serves as the total if none is given
    std::vector<Process> processes;
    bool lists_all = false;
    bool is_open = false;  ///< has something not delivered yet
  };

  Gpu& gpu_of(const LogDevice& named);
  void begin(Gpu& gpu, LogRows& rows);
  void deliver(Gpu& gpu, Timestamp time, LogRows& rows);
  void deliver_late(LogRows& rows);

  DumpClock clock_;
  std::vector<Gpu> gpus_;
  std::unordered_map<std::string, std::size_t> gpu_of_;
  std::vector<std::size_t> open_;  ///< of the present dump, in its order
  std::uint64_t line_ = 0;         ///< where the present dump began
  std::uint64_t dump_ = 0;
  Timestamp newest_ = LogRows::kNever;  ///< of the values that have times of their own
};

}  // namespace vramtrack
