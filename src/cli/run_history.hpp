// What is known about programs when no watch records: from earlier recordings, or from a store's past state.
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

/// Programs in memory. What memory() returns refers to it.
class RunHistory {
 public:
  RunHistory() = default;

  /// As a store remembers them, without runs that had not ended at the time that `now` returns.
  static RunHistory of_store(std::vector<Program> programs, std::function<Timestamp()> now);

  /// Reads each run in `files`, with device and process logs joined as usual; earlier runs help to judge later ones.
  /// Errors name the file.
  Status read(const std::vector<std::string>& files, const RecordedOptions& options, const Config& config);

  ProgramMemory memory();
  [[nodiscard]] bool knows_any() const { return !known_.empty() || !stored_.empty(); }

 private:
  Status read_part(const RecordedPart& part, const Config& config, Duration shift);

  std::map<std::string, Program> known_;   ///< by identity
  std::map<std::string, Program> stored_;  ///< by key
  std::function<Timestamp()> now_;
};

}  // namespace vramtrack::cli
