// The conclusion about the run of a gated program: it passes, leaks, or was not tested.
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
  std::string mark;              ///< the mark to test; empty: the one in limit_text, else the most frequent one
  std::string limit_text;        ///< as the user wrote it: "2MiB/epoch" names the mark
  double sample_interval_s = 1;  ///< used in the text about a program without marks
};

enum class GateOutcome : std::uint8_t {
  passes,
  leaks,           ///< even if the program also failed: a leak takes precedence
  inconclusive,    ///< it ran, but growth above the limit was neither proven nor ruled out
  not_tested,      ///< no visible memory, too few iterations, or interrupted
  program_failed,  ///< whatever the test of its memory found
};
/// "passes", "LEAKS", "inconclusive", "not tested".
std::string_view outcome_words(GateOutcome outcome);

struct TestedSeries {
  IterationSeries series;
  GrowthResult result;
};

struct Conclusion {
  GateOutcome outcome = GateOutcome::not_tested;
  std::string words;  ///< the reason with the figures, for messages
  std::string key;    ///< the key of the writer whose series decided
  std::vector<TestedSeries> tested;
};

/// Tests each writer's series of the chosen mark (without marks, the samples), sharing the error rate among them. The
/// worst one decides. Writers with less than a tenth of the marks of the busiest one are left out. Pure.
Conclusion conclude(ProgramRun run, const GateRules& rules);

}  // namespace vramtrack::gate
