#include "gate/run/junit.hpp"

#include <fmt/format.h>

#include <cmath>

#include "core/format.hpp"
#include "core/markup.hpp"

namespace vramtrack::gate {

std::string junit_xml(const std::vector<std::string>& program, const Conclusion& conclusion,
                      const std::vector<std::string>& grown_lines, double took_s, bool inconclusive_fails) {
  const std::string name = escape_markup(printable(fmt::format("{}", fmt::join(program, " "))));
  const bool inconclusive = conclusion.outcome == GateOutcome::inconclusive;
  const bool failure = conclusion.outcome == GateOutcome::leaks || (inconclusive && inconclusive_fails);
  const bool skipped = inconclusive && !inconclusive_fails;
  const bool error = !failure && !skipped && conclusion.outcome != GateOutcome::passes;
  std::string more;
  for (const std::string& line : grown_lines) more += "\n" + line;
  std::string out = fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n  <testsuite name=\"vramtrack test\" tests=\"1\" "
      "failures=\"{}\" "
      "errors=\"{}\" skipped=\"{}\" time=\"{:.3f}\">\n    <testcase classname=\"vramtrack\" name=\"{}\" "
      "time=\"{:.3f}\">\n      "
      "<properties>\n",
      failure ? 1 : 0, error ? 1 : 0, skipped ? 1 : 0, took_s, name, took_s);
  for (const TestedSeries& t : conclusion.tested) {
    const std::string prefix = escape_markup(t.series.name + (t.series.key.empty() ? "" : "." + t.series.key));
    const auto property = [&](std::string_view what, const std::string& value) {
      out += fmt::format("        <property name=\"{}.{}\" value=\"{}\"/>\n", prefix, what, value);
    };
    property("outcome", std::string(to_string(t.result.outcome)));
    property("iterations", std::to_string(t.result.iterations));
    property("warm_up_iterations", std::to_string(t.result.warm_up_iterations));
    property("growth_bytes_per_iteration", fmt::format("{:.1f}", t.result.growth_bytes));
    property("growth_low_bytes", std::isfinite(t.result.low_bytes) ? fmt::format("{:.1f}", t.result.low_bytes) : "");
    property("growth_high_bytes", fmt::format("{:.1f}", t.result.high_bytes));
  }
  out += "      </properties>\n";
  if (failure || error)
    out += fmt::format("      <{0} message=\"{1}\">{1}{2}</{0}>\n", failure ? "failure" : "error",
                       escape_markup(conclusion.words), escape_markup(more));
  if (skipped) out += fmt::format("      <skipped message=\"{}\"/>\n", escape_markup(conclusion.words));
  return out + "    </testcase>\n  </testsuite>\n</testsuites>\n";
}

}  // namespace vramtrack::gate
