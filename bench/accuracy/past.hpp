// What a watch remembers of earlier runs of the programs of a trace, and the playing of such runs.
#pragma once

#include <cstddef>
#include <map>
#include <string>

#include "core/config.hpp"
#include "engine/engine.hpp"
#include "trace.hpp"

namespace vramtrack::accuracy {

/// Programs by their identity, as `analyze --history` keeps them. A copy is independent of the original.
class Past {
 public:
  /// Reads and writes this, which must outlive what is returned. Runs are taken for `before_s` older than they are.
  ProgramMemory memory(double before_s = 0);
  [[nodiscard]] const std::map<std::string, Program>& programs() const { return programs_; }

 private:
  std::map<std::string, Program> programs_;
};

/// How the earlier runs went.
enum class Earlier : std::uint8_t {
  healthy,  ///< none leaked: of a leaking program, the leak is new
  leaked,   ///< all leaked, and a third of them were stopped in time
  changed,  ///< none leaked, and the command has changed since in an argument that matters
};

/// Plays the `number`-th earlier run of the program of `trace` (0 is the first of all), `runs_ago` runs before the one
/// that will be judged, and adds it to `past`.
void play_earlier_run(const Trace& trace, Earlier how, std::size_t number, std::size_t runs_ago, const Config& config,
                      Past& past);

}  // namespace vramtrack::accuracy
