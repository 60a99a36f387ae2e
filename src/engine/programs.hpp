// What earlier runs of a program did in this watch: a run that grows no longer and no higher than they did before they
// settled or ended is one of the jobs that come and go.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace vramtrack {

/// A run that is over, or how far one has come.
struct ProgramRun {
  double lived_s = 0;
  double grew_s = 0;  ///< from its start to its last new peak
  double peak_bytes = 0;
  bool leaked = false;  ///< its growth was a leak when it ended
  bool small = false;   ///< it has grown by little of what is free: how high it is does not matter yet
};

/// Bounded: the last runs of the programs seen last, by program_identity(). Not thread-safe.
class Programs {
 public:
  void add(const std::string& program, const ProgramRun& run);
  /// What earlier runs say of one that grows.
  struct Word {
    int runs = 0;             ///< of which it is
    bool ended_long = false;  ///< they ended long before it would fill the memory; else they grew as it does
  };
  /// Nullopt where they say nothing against a leak: fewer than two that did not leak grew as long and as high as `run`
  /// has so far, and of those that lived as long and came as high a third may live until `end_in_s` from now; or as
  /// many leaked as did not. `settled`: runs beside it that have ended to grow; they count as those that grew and did
  /// not leak. O(runs kept of a program).
  [[nodiscard]] std::optional<Word> against_leak(const std::string& program, const ProgramRun& run,
                                                 std::optional<double> end_in_s,
                                                 const std::vector<ProgramRun>& settled = {}) const;

 private:
  std::unordered_map<std::string, std::deque<ProgramRun>> runs_;
  std::deque<std::string> order_;  ///< of first sight
};

}  // namespace vramtrack
