#include "gate/run/conclusion.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/format.hpp"
#include "core/median.hpp"

namespace vramtrack::gate {
namespace {

/// Removes samples taken while a program releases its memory and exits: they are not iterations.
void drop_end(std::vector<double>& samples) {
  if (samples.size() < 8) return;
  std::vector<double> last(samples.end() - static_cast<std::ptrdiff_t>(samples.size() / 4), samples.end());
  const double usual = upper_median(std::span(last));
  while (!samples.empty() && samples.back() < 0.5 * usual) samples.pop_back();
}

/// The series to test: those of the requested mark, else of the mark named in the limit ("2MiB/epoch"), else of the
/// most frequent mark.
std::vector<IterationSeries> chosen(const ProgramRun& run, const GateRules& rules) {
  const std::string& limit = rules.limit_text;
  std::string wanted = rules.mark;
  if (const std::size_t slash = limit.find('/'); wanted.empty() && slash != std::string::npos) {
    const std::size_t begin = limit.find_first_not_of(' ', slash + 1);
    const std::string unit =
        begin == std::string::npos ? "" : limit.substr(begin, limit.find_last_not_of(' ') + 1 - begin);
    for (const IterationSeries& s : run.marks)
      if (s.name == unit) wanted = unit;
  }
  std::string name = wanted;
  std::size_t most = 0;
  for (const IterationSeries& s : run.marks)
    if (wanted.empty() && s.used_bytes.size() > most) {
      most = s.used_bytes.size();
      name = s.name;
    }
  std::vector<IterationSeries> out;
  for (const IterationSeries& s : run.marks)
    if (s.name == name) out.push_back(s);
  return out;
}

/// Leaves out writers with less than a tenth of the marks of the busiest one, such as a short-lived helper process:
/// they have too few marks, and would make the whole test impossible. Returns the number left out.
std::size_t leave_out_short(std::vector<IterationSeries>& series) {
  std::size_t longest = 0;
  for (const IterationSeries& s : series) longest = std::max(longest, s.used_bytes.size());
  const auto is_short = [&](const IterationSeries& s) { return 10 * s.used_bytes.size() < longest; };
  const auto end = std::remove_if(series.begin(), series.end(), is_short);
  const auto left_out = static_cast<std::size_t>(series.end() - end);
  series.erase(end, series.end());
  return left_out;
}

}  // namespace

std::string_view outcome_words(GateOutcome outcome) {
  switch (outcome) {
    case GateOutcome::passes:
      return "passes";
    case GateOutcome::leaks:
      return "LEAKS";
    case GateOutcome::inconclusive:
      return "inconclusive";
    case GateOutcome::not_tested:
    case GateOutcome::program_failed:
      break;
  }
  return "not tested";
}

Conclusion conclude(ProgramRun run, const GateRules& rules) {
  Conclusion c;
  if (run.interrupted) {
    c.words = "interrupted";
    return c;
  }
  std::vector<IterationSeries> series = chosen(run, rules);
  const bool sampled = series.empty() && rules.mark.empty();
  if (sampled && !run.samples.empty()) {
    drop_end(run.samples);
    series.push_back({"sample", "", std::move(run.samples)});
  }
  const std::size_t left_out = leave_out_short(series);
  // Each series is another chance of a false alarm.
  GrowthLimits share = rules.limits;
  share.error_rate = rules.limits.error_rate / static_cast<double>(std::max<std::size_t>(1, series.size()));
  const TestedSeries* worst = nullptr;
  for (IterationSeries& s : series) {
    share.unit = sampled ? fmt::format("sample of {}", format_duration(rules.sample_interval_s)) : s.name;
    GrowthResult result = test_growth(s.used_bytes, share);
    c.tested.push_back({std::move(s), std::move(result)});
  }
  const auto rank = [](const TestedSeries& t) {
    switch (t.result.outcome) {
      case Outcome::fails:
        return 3;
      case Outcome::too_short:
        return 2;
      case Outcome::inconclusive:
      case Outcome::warming_up:
        return 1;
      case Outcome::passes:
        break;
    }
    return 0;
  };
  for (const TestedSeries& t : c.tested)
    if (worst == nullptr || rank(t) > rank(*worst)) worst = &t;

  if (worst == nullptr) {
    if (!rules.mark.empty())
      c.words = fmt::format("the program made no mark named '{}'", rules.mark);
    else if (!run.not_measured.empty())
      c.words = run.not_measured;
    else
      c.words = "no GPU memory of the program is visible here, and it made no marks (see docs/leak-gate.md)";
  } else {
    c.key = worst->series.key;
    const bool alone = c.tested.size() == 1 && left_out == 0;
    if (alone) c.tested.front().series.key.clear();  // not needed, and its number differs from run to run
    const std::string who = worst->series.key.empty() ? "" : fmt::format(" (by {})", printable(worst->series.key));
    c.words = fmt::format("GPU memory{}: {}", who, worst->result.because);
    if (left_out > 0)
      c.words += fmt::format("; {} with less than a tenth of these iterations left out",
                             left_out == 1 ? "one writer" : fmt::format("{} writers", left_out));
    if (sampled) c.words += "; the program makes no marks, so its process tree's memory was tested by time";
    c.outcome = worst->result.outcome == Outcome::fails       ? GateOutcome::leaks
                : worst->result.outcome == Outcome::too_short ? GateOutcome::not_tested
                : worst->result.outcome == Outcome::passes    ? GateOutcome::passes
                                                              : GateOutcome::inconclusive;
  }
  if (run.skipped_lines > 0) c.words += fmt::format("; lines on the pipe that were not marks: {}", run.skipped_lines);
  if (c.outcome != GateOutcome::leaks && run.exit_code.value_or(1) != 0) {
    c.outcome = GateOutcome::program_failed;
    c.words = run.exit_code ? fmt::format("the program ended with {}; {}", *run.exit_code, c.words)
                            : fmt::format("the program was ended by signal {}; {}", run.signal, c.words);
  }
  return c;
}

}  // namespace vramtrack::gate
