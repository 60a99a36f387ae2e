// LiveSites: the source lines that a running program's trace shows so far, read during the run.
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

/// A leak of one or several lines.
struct FoundLeak {
  /// "train_step (train.py:57): 12 MiB/s, 1.1 GiB in 5,632 blocks, with model.py:20 forward (1.0 GiB)"
  std::string words;
  double since_s = 0;              ///< when it began: after the start of the run
  std::vector<std::string> lines;  ///< the one that probably keeps the memory is the first
};

/// The result of reading the trace.
struct SitesSoFar {
  std::string json;                    ///< the JSON of the whole report, one line
  std::string verdict;                 ///< for people
  std::vector<FoundLeak> leaks;        ///< the worst first
  std::vector<std::string> suspected;  ///< "train_step (train.py:57): 1.1 GiB in 5,632 blocks"
};

/// Reads a trace file on its own thread; a single other thread uses it. A reading takes time in proportion to the
/// length of the trace, so the next one begins only after ten times that time.
class LiveSites {
 public:
  using Read = std::function<Result<SitesSoFar>(const std::string& trace)>;

  explicit LiveSites(Read read) : read_(std::move(read)) {}
  /// Waits for a reading in progress.
  ~LiveSites();
  LiveSites(const LiveSites&) = delete;
  LiveSites& operator=(const LiveSites&) = delete;

  /// Begins a reading of `trace`, unless one is in progress or the last one ended too recently.
  void look(const std::string& trace);
  /// Leaks of which no line has been taken before, with the time at which they began.
  std::vector<std::string> new_leaks();
  /// Whether one of the lines of a rise was taken before; from now on they all were.
  bool take(const std::vector<std::string>& lines);
  /// From the newest reading; empty before the first.
  [[nodiscard]] std::string json() const;

 private:
  using Clock = std::chrono::steady_clock;
  void read(const std::string& trace);

  Read read_;
  std::thread thread_;
  mutable std::mutex mutex_;  ///< guards what follows
  bool is_reading_ = false;
  Clock::time_point next_{};
  std::optional<SitesSoFar> newest_;
  bool take_locked(const std::vector<std::string>& lines, const std::set<std::string>& before);
  std::set<std::string> reported_;  ///< by line
};

/// The report of a trace, for LiveSites and for the end of a run.
Result<SitesSoFar> sites_of_trace(const std::string& trace);

}  // namespace vramtrack::cli
