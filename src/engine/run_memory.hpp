// RunMemory: follows the runs of programs within an engine: looks up each one when it begins, and stores
// what it did when it ends.
#pragma once

#include <memory>
#include <unordered_map>
#include <vector>

#include "detect/cycles.hpp"
#include "detect/experience.hpp"
#include "detect/run_curve.hpp"
#include "engine/engine.hpp"
#include "engine/series_table.hpp"

namespace vramtrack {

/// A process's run is the run of its series; with several devices, of the one where it held most. A device's run is
/// the time between two moments when it was unused: only if processes are not listed, and the memory supports it.
///
///   first sample -> find -> Experience -> the series' detector        last sample -> RunCurve -> put
class RunMemory {
 public:
  /// `catalog` and `table` must outlive this.
  RunMemory(ProgramMemory memory, const Catalog& catalog, SeriesTable& table)
      : memory_(std::move(memory)), catalog_(catalog), table_(table) {}

  /// From here on, the memory is read and written.
  void use(ProgramMemory memory) { memory_ = std::move(memory); }

  /// Called after the series' detector has seen the sample. O(1).
  void observe(SeriesState& series, const Sample& sample);
  /// The hourly floors of the last week, in order, of a series that will come: see Days.
  void set_past_days(SeriesId id, const std::vector<std::pair<Timestamp, double>>& hour_floors);
  /// More is known about its process.
  void describe(SeriesState& series);
  /// The time when its process began has become known.
  void update_begin(SeriesState& series);
  /// After a tick: which process's level a device follows, and runs of devices. O(touched).
  void complete_tick(const std::vector<SeriesId>& touched);
  /// Called once the process has ended and the findings about it are final.
  void ended(const SeriesState& series);
  /// The recording is over: runs that still continue are stored as far as they were seen.
  void end_all();
  void forget(SeriesId id);

  /// The most that earlier runs of the process's program needed, for the last `at_most` of them. nullopt: unknown.
  struct Needed {
    double bytes = 0;
    std::uint32_t runs = 0;
  };
  [[nodiscard]] std::optional<Needed> needed(const SeriesState& process, std::size_t at_most) const;

  /// The highest level at which an earlier run of its program stood still for half an hour, until its end. nullopt if
  /// none is known. O(1).
  [[nodiscard]] std::optional<double> stood_bytes(const SeriesState& series) const;

  /// Those earlier runs, in order: when each began, and its peak. Empty if none is known.
  [[nodiscard]] std::vector<Trough> earlier(const SeriesState& process) const;

  /// Adds to its reason what would decide the case if too little is known.
  void add_advice(const SeriesState& series, Verdict& verdict) const;

 private:
  struct Seen {
    RunCurve curve;
    Experience experience;
    ProgramIdentity identity;
    Timestamp begin;
    bool maybe_older = false;       ///< it existed when watching began
    std::optional<Timestamp> born;  ///< when its process began, as facts show
    double first_bytes = 0;
    bool is_nobodys = false;            ///< for a device: the program that it is a run of is unknown
    bool remembered = false;            ///< there are earlier runs
    double settled_bytes = 0;           ///< at most, of these
    std::optional<double> stood_bytes;  ///< at most, of these that stood still for half an hour
    std::vector<Trough> peaks;          ///< of these, oldest first
    const Seen* follows = nullptr;
    std::optional<Timestamp> last_end;  ///< for a device: end of the last run that grew until its end
  };
  struct Ended {
    ProgramIdentity identity;
    FinishedRun run;
  };

  Seen* find(SeriesId id) const { return index_of(id) < seen_.size() ? seen_[index_of(id)].get() : nullptr; }
  Seen& begin(SeriesState& series, Timestamp time, double bytes);
  void ask(SeriesState& series, Seen& seen);
  [[nodiscard]] static std::optional<Timestamp> begin_of(const Seen& seen);
  [[nodiscard]] static bool seen_from_start(const Seen& seen, double settled_bytes);
  [[nodiscard]] FinishedRun run_of(const SeriesState& series, const Seen& seen) const;
  void store(const ProgramIdentity& identity, const FinishedRun& run);
  void note_device_run(SeriesState& device);
  void forget_days_of_leak(const SeriesState& device);
  void follow(SeriesState& device, const SeriesState* process);

  ProgramMemory memory_;
  const Catalog& catalog_;
  SeriesTable& table_;
  std::vector<std::unique_ptr<Seen>> seen_;                ///< by SeriesId
  std::unordered_map<ProcessKey, Ended, KeyHash> ending_;  ///< processes of which some series have ended
  std::unordered_map<std::uint32_t, Days> days_;           ///< by SeriesId, until the series comes
  std::optional<Timestamp> first_time_;
  std::optional<Timestamp> first_process_time_;
  std::size_t remembered_ = 0;  ///< number of series whose earlier runs are known
};

}  // namespace vramtrack
