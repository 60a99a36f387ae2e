// What earlier runs of a program did in this watch: a run that grows no longer and no higher than they did before they
// settled or ended is one of the jobs that come and go.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/time.hpp"

namespace vramtrack {

/// A run that is over, or the part of a run seen so far.
struct ProgramRun {
  double lived_s = 0;
  double grew_s = 0;  ///< from its start to its last new peak
  double peak_bytes = 0;
  bool leaked = false;  ///< whether its growth was a leak when it ended
  bool small = false;   ///< it has grown by little of what is free, so its level does not matter yet
  Timestamp begin{};
};

/// Bounded: the last runs of the programs seen last, by program_identity(). Not thread-safe.
class Programs {
 public:
  void add(const std::string& program, const ProgramRun& run);
  /// The runs kept of the program, in the order in which they ended; nullptr if there are none.
  [[nodiscard]] const std::deque<ProgramRun>* of(const std::string& program) const;
  /// What earlier runs show about one that grows.
  struct Word {
    int runs = 0;             ///< number of runs that it is based on
    bool ended_long = false;  ///< they ended long before this one would fill the memory; else they grew as it does
  };
  /// Nullopt if they are no evidence against a leak. They are if at least two that did not leak, and more than leaked,
  /// grew about as long and as high as `run` so far; or if at least two lived as long and rose as high, and less than a
  /// third of these may live until `end_in_s` from now. `settled`: runs beside it that have stopped growing; they count
  /// as runs that grew and did not leak. O(runs kept of a program).
  [[nodiscard]] std::optional<Word> against_leak(const std::string& program, const ProgramRun& run,
                                                 std::optional<double> end_in_s,
                                                 const std::vector<ProgramRun>& settled = {}) const;

 private:
  std::unordered_map<std::string, std::deque<ProgramRun>> runs_;
  std::deque<std::string> order_;  ///< in the order of first sight
};

}  // namespace vramtrack
