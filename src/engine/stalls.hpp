// Stalls: which processes hold memory but make no progress, from readings of the kernel (core/progress.hpp), the
// driver's utilisation and changes of their memory. Their alerts begin and end here.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/config.hpp"
#include "core/sample.hpp"
#include "core/verdict.hpp"
#include "engine/announce.hpp"
#include "engine/series_table.hpp"
#include "engine/stall_facts.hpp"

namespace vramtrack {

/// One per engine. Causal and deterministic; the order of the readings within a batch does not matter. Without
/// readings of processes it does nothing and costs nothing. Not thread-safe.
///
///   each tick         the driver's figures -> busy, resting, unknown
///   each look (30 s)  the kernel's figures -> the same; then judge_stall() of each process, and alerts
class Stalls {
 public:
  /// Receives one change of an alert.

  /// All must outlive this object.
  Stalls(const Config& config, const Catalog& catalog, const SeriesTable& table)
      : config_(config), catalog_(catalog), table_(table) {}

  /// A sample of the process's memory differs from the previous one. O(log processes that are watched).
  void memory_changed(const ProcessKey& process, Timestamp time);
  /// A batch has been taken in, apart from its samples and events: O(processes that are watched), and at a look
  /// O(processes times their siblings).
  void take(const Batch& batch, const Announce& announce);
  /// The process has ended.
  void end(const ProcessKey& process, Timestamp time, const Announce& announce);
  /// The series is forgotten.
  void forget(SeriesId series) { alerts_.erase(series); }
  /// An alert that has stood since before this engine began: see Engine::adopt.
  /// Returns whether one stands now.
  bool adopt(const Alert& alert);

  /// The conclusion about the process as of the last look; nullptr if it makes progress, or is not watched.
  [[nodiscard]] const Stall* of(const ProcessKey& process) const;
  /// The alerts raised for the series, in order; nullptr if there are none.
  [[nodiscard]] const std::vector<Alert>* alerts_of(SeriesId series) const { return find_alerts(alerts_, series); }

 private:
  struct Watched {
    ProgressReading last;
    Timestamp begin;                                                   ///< of the watch
    std::optional<Timestamp> cpu, io, children, memory, gpu, parent;   ///< when each last moved
    std::optional<Timestamp> gpu_unknown, io_unknown;                  ///< when it was last unknown
    std::optional<Timestamp> spins_cpu, spins_gpu, in_state, waiting;  ///< since when
    bool cool = false;                                                 ///< since `spins_gpu`
    double cpu_ratio = 0;
    std::string group;  ///< the group of siblings
    std::uint64_t held_bytes = 0;
    const DeviceState* device = nullptr;  ///< the device on which it holds most
    SeriesId series{};                    ///< the series of its memory there
    bool ignored = false;
    std::optional<Stall> stall;
    std::optional<SeriesId> alert;  ///< the series of the alert that is active
  };
  enum class Gpu : std::uint8_t { rests, unknown, busy, spins };
  using Processes = std::map<ProcessKey, Watched, bool (*)(const ProcessKey&, const ProcessKey&)>;

  void look(const ProgressReading& reading);
  void begin_anew(Watched& process, const ProgressReading& reading) const;
  void compare(Watched& process, const ProgressReading& reading) const;
  void watch_gpu(const ProcessKey& key, Watched& process, Timestamp time) const;
  [[nodiscard]] Gpu gpu_of(const SeriesState& series) const;
  void place(const ProcessKey& key, Watched& process) const;
  [[nodiscard]] StallFacts facts_of(const Watched& process) const;
  [[nodiscard]] bool at_work(const Watched& process) const;
  void conclude(Watched& process, const Announce& announce);
  void raise(Watched& process, const Announce& announce);
  void clear(Watched& process, Timestamp time, AlertEnd end, std::string reason, const Announce& announce);
  [[nodiscard]] double window_s() const { return config_.stall.minutes * 60; }
  /// The time between two looks, as intended.
  [[nodiscard]] double pace_s() const { return std::max(config_.stall.look_s(), config_.watch.interval_seconds); }

  const Config& config_;
  const Catalog& catalog_;
  const SeriesTable& table_;
  static bool before(const ProcessKey& a, const ProcessKey& b);
  Processes processes_{&before};
  AlertsBySeries alerts_;
};

}  // namespace vramtrack
