// The folder of a training run (W&B, TensorBoard, MLflow) as an argument: its recordings, and the program log next to
// each, which shows how the run ended.
#pragma once

#include <string>
#include <vector>

#include "core/result.hpp"

namespace vramtrack {

class LogRows;

struct RunRecording {
  std::string path;
  std::string log;  ///< the program's log; empty: none, or ambiguous
};

/// The recordings in `path` and below it, sorted; `path` itself if it is not a folder. An Error says what it lacks.
Result<std::vector<RunRecording>> recordings_in(const std::string& path);

/// Reads from the end of the log at `path` how its program ended: an out-of-memory message, or another end. Adds it as
/// an event after the last row of `rows`. A log that cannot be read is a warning.
void read_end(const std::string& path, LogRows& rows);

}  // namespace vramtrack
