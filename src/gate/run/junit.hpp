// Writes the conclusion about a gated program as JUnit XML, which CI servers display.
#pragma once

#include <string>
#include <vector>

#include "gate/run/conclusion.hpp"

namespace vramtrack::gate {

/// One suite with one case named after the command line: a failure if it leaks (with `grown_lines`), an error if it was
/// not tested or the program failed. If inconclusive, `inconclusive_fails` makes it a failure; else it is skipped. The
/// figures of each tested series become properties. Pure.
std::string junit_xml(const std::vector<std::string>& program, const Conclusion& conclusion,
                      const std::vector<std::string>& grown_lines, double took_s, bool inconclusive_fails = false);

}  // namespace vramtrack::gate
