// How much memory earlier runs of a command needed, as remembered by this user's watches and as shown by probe traces.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/program.hpp"
#include "core/result.hpp"

namespace vramtrack::cli {

/// The needs of the finished runs of one program.
struct RunsNeed {
  double most_bytes = 0;              ///< the highest peak
  std::optional<double> usual_bytes;  ///< median of the runs that levelled off
  std::optional<double> warm_up_s;    ///< median time until then, for runs that were seen from their start
};
RunsNeed need_of(const Program& program);

struct EarlierRuns {
  std::string name;                ///< name of the program; untrusted
  std::optional<Program> watched;  ///< nullopt: no watch has seen a run end
  std::vector<double>
      traced_bytes;  ///< the peak of each run that has a trace: what all of its processes together had allocated
  [[nodiscard]] bool any() const { return watched || !traced_bytes.empty(); }
  [[nodiscard]] double most_bytes() const;
};

/// Returns an error if traces are given without the command that they belong to.
Status check_traces(const std::vector<std::string>& command, const std::vector<std::string>& traces);

/// The runs of `command` by this user; two commands are the same if their words are (core/program.hpp). `store` need
/// not exist if there are traces. Errors: a store or a trace cannot be read, or a trace belongs to another command.
/// Cost: reads each trace in full.
Result<EarlierRuns> earlier_runs(const std::vector<std::string>& command, const std::string& store,
                                 const std::vector<std::string>& traces);

/// "2 earlier runs, 0 leaked, 0 ran out of memory", "  usually 16.0 GiB after 1h, at most 16.0 GiB", and the results
/// from traces, each on a line.
std::string earlier_runs_text(const EarlierRuns& runs);

}  // namespace vramtrack::cli
