// What the run of a gated program comes to: passes, leaks, or was not tested.
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
  std::string mark;        ///< the one to test; empty: the one in limit_text, else the one that was made most often
  std::string limit_text;  ///< as the user wrote it: "2MiB/epoch" names the mark
  double sample_interval_s = 1;  ///< for the words about a program without marks
};

enum class GateOutcome : std::uint8_t {
  passes,
  leaks,           ///< also where the program failed besides: a leak is told first
  inconclusive,    ///< it ran, and growth above the limit was neither shown nor excluded
  not_tested,      ///< no memory to see, too few iterations, interrupted
  program_failed,  ///< whatever the test says of its memory
};
/// "passes", "LEAKS", "inconclusive", "not tested".
std::string_view outcome_words(GateOutcome outcome);

struct TestedSeries {
  IterationSeries series;
  GrowthResult result;
};

struct Conclusion {
  GateOutcome outcome = GateOutcome::not_tested;
  std::string words;  ///< for people: why, with the figures
  std::string key;    ///< of the writer of the series that decided
  std::vector<TestedSeries> tested;
};

/// Tests each writer's series of the chosen mark (without marks: the samples), the error rate shared among them. The
/// worst decides. Writers with less than a tenth of the longest one's marks are left out. Pure.
Conclusion conclude(ProgramRun run, const GateRules& rules);

}  // namespace vramtrack::gate
