// The conclusion about the run of a gated program: passes, leaks, or was not tested.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "gate/growth_test.hpp"
#include "gate/run/gated_program.hpp"

namespace vramtrack::gate {

struct GateRules {
  GrowthLimits limits;
  std::string mark;              ///< the one to test; empty: the one in limit_text, else the most frequent one
  std::string limit_text;        ///< as the user wrote it: "2MiB/epoch" names the mark
  double sample_interval_s = 1;  ///< for the text about a program without marks
};

enum class GateOutcome : std::uint8_t {
  passes,
  leaks,           ///< even if the program also failed: a leak takes precedence
  inconclusive,    ///< it ran, but growth above the limit was neither proven nor excluded
  not_tested,      ///< no visible memory, too few iterations, or interrupted
  program_failed,  ///< whatever the test says about its memory
};
/// "passes", "LEAKS", "inconclusive", "not tested".
std::string_view outcome_words(GateOutcome outcome);

struct TestedSeries {
  IterationSeries series;
  GrowthResult result;
};

struct Conclusion {
  GateOutcome outcome = GateOutcome::not_tested;
  std::string words;  ///< for messages: why, with the figures
  std::string key;    ///< the key of the writer of the series that decided
  std::vector<TestedSeries> tested;
};

/// Tests each writer's series of the chosen mark (without marks: the samples), sharing the error rate among them. The
/// worst one decides. Writers with less than a tenth of the longest one's marks are left out. Pure.
Conclusion conclude(ProgramRun run, const GateRules& rules);

}  // namespace vramtrack::gate
