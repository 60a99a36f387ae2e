// Runs a program for the leak gate, and returns its marks, the memory of its process tree, and its exit status.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/result.hpp"

namespace vramtrack::gate {

/// Memory after each mark of one name by one writer, or at each sample if the program writes no marks.
struct IterationSeries {
  std::string name;
  std::string key;
  std::vector<double> used_bytes;
};

struct ProgramRun {
  std::optional<int> exit_code;  ///< nullopt if `signal` ended it
  int signal = 0;
  bool interrupted = false;
  std::vector<IterationSeries> marks;  ///< in the order of their first marks
  std::vector<double>
      samples;  ///< the samples of the process tree, every sample_s, beginning with the first one that is not 0
  std::uint64_t skipped_lines = 0;  ///< lines on the pipe that were not marks
  std::string not_measured;         ///< why a mark without bytes, or a sample, could not be measured; empty if all were
};

/// Memory of the process tree below `root` on all GPUs, in bytes; an Error if it cannot be determined.
using TreeMemory = std::function<Result<double>(int root)>;

/// Runs `program` (looked up in PATH) with the standard streams of this process, and with VRAMTRACK_MARK_FD and
/// VRAMTRACK_MARK_PIPE naming a pipe. Waits until it exits, even if others still have the pipe open. Forwards SIGINT
/// and SIGTERM. VRAMTRACK_TEST_EVIDENCE is set to `evidence_folder`, unless that is empty or the variable is already
/// set. Returns an Error if it could not be started.
Result<ProgramRun> run_gated(const std::vector<std::string>& program, double sample_s, const TreeMemory& memory,
                             const std::string& evidence_folder);

}  // namespace vramtrack::gate
