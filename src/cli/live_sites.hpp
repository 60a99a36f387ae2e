// LiveSites: the leaking source lines in a running program's trace, found while it runs.
#pragma once

#include <chrono>
#include <functional>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "core/result.hpp"

namespace vramtrack::cli {

/// A leak by one or several lines.
struct FoundLeak {
  /// "train_step (train.py:57): 12 MiB/s, 1.1 GiB in 5,632 blocks, with model.py:20 forward (1.0 GiB)"
  std::string words;
  double since_s = 0;              ///< when it began, in seconds after the start of the run
  std::vector<std::string> lines;  ///< the line that probably keeps the memory comes first
};

/// The result of reading the trace.
struct SitesSoFar {
  std::string json;                    ///< the JSON of the whole report, one line
  std::string verdict;                 ///< the verdict, for people
  std::vector<FoundLeak> leaks;        ///< worst first
  std::vector<std::string> suspected;  ///< "train_step (train.py:57): 1.1 GiB in 5,632 blocks"
};

/// Reads a trace file on its own thread; one other thread uses this object. A reading takes time in proportion to the
/// length of the trace, so the next one begins only after a pause of ten times as long.
class LiveSites {
 public:
  using Read = std::function<Result<SitesSoFar>(const std::string& trace)>;

  explicit LiveSites(Read read) : read_(std::move(read)) {}
  /// Waits for a reading in progress.
  ~LiveSites();
  LiveSites(const LiveSites&) = delete;
  LiveSites& operator=(const LiveSites&) = delete;

  /// Starts a reading of `trace`, unless one is in progress or the last one ended too recently.
  void look(const std::string& trace);
  /// Leaks with none of their lines reported before, with the times at which they began.
  std::vector<std::string> new_leaks();
  /// Returns whether one of the lines of a rise was reported before; from now on, all of them count as reported.
  bool take(const std::vector<std::string>& lines);
  /// The JSON of the newest reading; empty before the first.
  [[nodiscard]] std::string json() const;

 private:
  using Clock = std::chrono::steady_clock;
  void read(const std::string& trace);

  Read read_;
  std::thread thread_;
  mutable std::mutex mutex_;  ///< guards the members below
  bool is_reading_ = false;
  Clock::time_point next_{};
  std::optional<SitesSoFar> newest_;
  bool take_locked(const std::vector<std::string>& lines, const std::set<std::string>& before);
  std::set<std::string> reported_;  ///< source lines
};

/// The report of a trace, for LiveSites and for the end of a run.
Result<SitesSoFar> sites_of_trace(const std::string& trace);

}  // namespace vramtrack::cli
