// GatedProgram: a program that is run for the leak gate: its marks, the memory of its process tree, and its end.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/result.hpp"

namespace vramtrack::gate {

/// Memory after each mark of one name by one writer; or at each sample, where the program makes no marks.
struct IterationSeries {
  std::string name;
  std::string key;
  std::vector<double> used_bytes;
};

struct ProgramRun {
  std::optional<int> exit_code;  ///< none: ended by `signal`
  int signal = 0;
  bool interrupted = false;
  std::vector<IterationSeries> marks;  ///< in the order their first marks came
  std::vector<double> samples;         ///< of the process tree, each sample_s; begins with the first that holds memory
  std::uint64_t skipped_lines = 0;     ///< lines on the pipe that were no marks
  std::string not_measured;  ///< why a mark without bytes, or a sample, could not be measured; empty: it could
};

/// What the process tree below `root` holds on all GPUs, in bytes; an Error where nobody can tell.
using TreeMemory = std::function<Result<double>(int root)>;

/// Runs `program` (looked up in PATH) with this one's standard streams, and with VRAMTRACK_MARK_FD and
/// VRAMTRACK_MARK_PIPE naming a pipe. Waits for its end, whoever still has the pipe. A SIGINT or SIGTERM is passed on.
/// VRAMTRACK_TEST_EVIDENCE is `evidence_folder`, unless that is empty or the variable is set already. An Error: it
/// could not be started.
Result<ProgramRun> run_gated(const std::vector<std::string>& program, double sample_s, const TreeMemory& memory,
                             const std::string& evidence_folder);

}  // namespace vramtrack::gate
