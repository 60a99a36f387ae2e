// Binary files of training runs as text: W&B's .wandb files and TensorBoard's event files become JSON lines, which the
// format `scalars` reads. To the log reader they are just another text encoding. Also a run's folder as an argument:
// its recordings, and the program log next to each, which shows how the run ended.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.hpp"

namespace vramtrack {

/// Takes a file's bytes in pieces of any size and returns lines. Not thread-safe. Holds one record of at most 16 MiB.
class RunFile {
 public:
  /// The reader for a file that begins with `start` (32 bytes or more, unless the file is shorter); nullptr if it is
  /// not such a file. An Error if its version is unknown.
  static Result<std::unique_ptr<RunFile>> recognise(std::string_view start);

  RunFile() = default;
  RunFile(const RunFile&) = delete;
  RunFile& operator=(const RunFile&) = delete;
  virtual ~RunFile() = default;

  /// Takes the next bytes; appends the lines of the completed records.
  void feed(std::string_view bytes, std::string& lines);
  /// The file has ended.
  void end();
  /// Reports damage or truncation; empty if there was none.
  [[nodiscard]] std::string warning() const;

 protected:
  /// Takes one record, or padding, off the front of `bytes`; returns the number of bytes taken, 0 if more are needed.
  virtual std::size_t take(std::string_view bytes, std::string& lines) = 0;
  void damaged() { ++damaged_; }
  /// No further record can be found.
  void give_up() { gave_up_ = true; }

 private:
  std::string waiting_;
  std::uint64_t damaged_ = 0;
  bool gave_up_ = false;
  bool cut_off_ = false;
};

class LogRows;

struct RunRecording {
  std::string path;
  std::vector<std::string> logs;  ///< logs of the program; one of them may show how it ended
  std::string note;               ///< notes that a run has no log; empty: it has one, or is not known to be a run
};

/// The recordings in `path` and below it, sorted, with their logs; `path` itself if it is not a folder, with its log if
/// it is a W&B file. An Error reports what it lacks.
Result<std::vector<RunRecording>> recordings_in(const std::string& path);

/// Reads from the ends of the logs at `paths` how their program ended: an out-of-memory message in any of them, or
/// another end. Adds it as an event after the last row of `rows`. A log that cannot be read is a warning.
void read_end(const std::vector<std::string>& paths, LogRows& rows);

}  // namespace vramtrack
