// What earlier runs of a command needed: as watches of this user remember them, and as traces of the probe show them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/program.hpp"
#include "core/result.hpp"

namespace vramtrack::cli {

/// The needs of the finished runs of one program.
struct RunsNeed {
  double most_bytes = 0;              ///< at a peak
  std::optional<double> usual_bytes;  ///< median of those that settled
  std::optional<double> warm_up_s;    ///< until then, likewise, of those seen from their start
};
RunsNeed need_of(const Program& program);

struct EarlierRuns {
  std::string name;                ///< of the program; untrusted
  std::optional<Program> watched;  ///< nullopt: no watch has seen one end
  std::vector<double>
      traced_bytes;  ///< the peak of each run in a trace: what it had allocated, in all of its processes
  [[nodiscard]] bool any() const { return watched || !traced_bytes.empty(); }
  [[nodiscard]] double most_bytes() const;
};

/// An error where traces are given without the command whose runs they show.
Status check_traces(const std::vector<std::string>& command, const std::vector<std::string>& traces);

/// The runs of `command` by this user: two commands are the same if their words are (core/program.hpp). `store` may not
/// be there where there are traces. Errors: a store or a trace that cannot be read, a trace of another command. Cost:
/// reads all of each trace.
Result<EarlierRuns> earlier_runs(const std::vector<std::string>& command, const std::string& store,
                                 const std::vector<std::string>& traces);

/// "2 earlier runs, 0 leaked, 0 ran out of memory", "  usually 16.0 GiB after 1h, at most 16.0 GiB", and what traces
/// show: a line each.
std::string earlier_runs_text(const EarlierRuns& runs);

}  // namespace vramtrack::cli
