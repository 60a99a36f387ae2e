// The folder of a training run (W&B, TensorBoard, MLflow) as an argument: its recordings, and the log of the program
// beside each, which says how the run ended.
#pragma once

#include <string>
#include <vector>

#include "core/result.hpp"

namespace vramtrack {

class LogRows;

struct RunRecording {
  std::string path;
  std::string log;  ///< of the program; empty: none, or nothing says which
};

/// The recordings in `path` and below it, sorted; `path` itself if it is no folder. An Error says what a folder lacks.
Result<std::vector<RunRecording>> recordings_in(const std::string& path);

/// Reads from the end of the log at `path` how its program ended: a message that memory ran out, or of another end. It
/// is an event behind the last row of `rows`. A log that cannot be read is a warning.
void read_end(const std::string& path, LogRows& rows);

}  // namespace vramtrack
