// The conclusion about a gated program as JUnit's XML, which CI servers show.
#pragma once

#include <string>
#include <vector>

#include "gate/run/conclusion.hpp"

namespace vramtrack::gate {

/// One suite with one case, named by the command line: a failure where it leaks (with `grown_lines`), an error where
/// it was not tested or the program failed; where it is inconclusive, skipped or a failure, as `inconclusive_fails`
/// says. The figures of each tested series are properties. Pure.
std::string junit_xml(const std::vector<std::string>& program, const Conclusion& conclusion,
                      const std::vector<std::string>& grown_lines, double took_s, bool inconclusive_fails = false);

}  // namespace vramtrack::gate
