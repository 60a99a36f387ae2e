// The history of programs when no watch is recording: from earlier recordings, or from a store's past state.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "cli/console.hpp"
#include "core/config.hpp"
#include "engine/engine.hpp"
#include "recorded/recorded.hpp"

namespace vramtrack::cli {

/// Programs in memory. The result of memory() refers to this object.
class RunHistory {
 public:
  RunHistory() = default;

  /// The programs as a store remembers them, without runs that had not ended at the time returned by `now`.
  static RunHistory of_store(std::vector<Program> programs, std::function<Timestamp()> now);

  /// Reads each run in `files`, with device and process logs joined as usual; earlier runs help to judge later ones.
  /// Errors name the file.
  Status read(const std::vector<std::string>& files, const RecordedOptions& options, const Config& config);

  ProgramMemory memory();
  [[nodiscard]] bool knows_any() const { return !known_.empty() || !stored_.empty(); }

 private:
  Status read_part(const RecordedPart& part, const Config& config, Duration shift);

  std::map<std::string, Program> known_;   ///< keyed by identity
  std::map<std::string, Program> stored_;  ///< keyed by program key
  std::function<Timestamp()> now_;
};

}  // namespace vramtrack::cli
