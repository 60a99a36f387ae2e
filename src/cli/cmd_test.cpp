// test: the leak gate around a program. Its marks are the iterations; without any, the samples are.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <fstream>
#include <span>

#include "cli/commands.hpp"
#include "cli/shared_arguments.hpp"
#include "core/format.hpp"
#include "core/markup.hpp"
#include "core/median.hpp"
#include "gate/growth_test.hpp"
#include "gate/run/evidence_files.hpp"
#include "gate/run/gated_program.hpp"
#include "gate/run/process_tree.hpp"

namespace vramtrack::cli {
using namespace vramtrack::gate;

namespace {

enum ExitCode : int { kPasses = 0, kLeaks = 1, kNotTested = 2, kProgramFailed = 3 };

struct TestOptions {
  ConfigRequest config;
  std::vector<std::string> program;  ///< and its arguments
  std::string limit = "0.2 MiB/iter";
  double error_rate = 1e-4;
  std::string mark;  ///< empty: the one made most often
  std::optional<double> sample_interval_s;
  std::string junit;  ///< empty: none
};

struct Tested {
  IterationSeries series;
  gate::GrowthResult result;
};

struct Conclusion {
  int exit_code = kNotTested;
  std::string words;  ///< for people, and the failure's text in JUnit
  std::string key;    ///< of the series that decided
  std::vector<Tested> tested;
};

std::string command_line(const std::vector<std::string>& program) {
  return fmt::format("{}", fmt::join(program, " "));
}

/// JUnit's XML as its readers agree on it: one suite, one case; failure: it leaks, error: it was not tested.
std::string junit(const TestOptions& options, const Conclusion& conclusion, const std::vector<std::string>& grown,
                  double seconds) {
  const std::string name = escape_markup(printable(command_line(options.program)));
  const bool failure = conclusion.exit_code == kLeaks;
  const bool error = conclusion.exit_code > kLeaks;
  std::string more;
  for (const std::string& line : grown) more += "\n" + line;
  std::string out = fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n  <testsuite name=\"vramtrack test\" tests=\"1\" "
      "failures=\"{}\" "
      "errors=\"{}\" time=\"{:.3f}\">\n    <testcase classname=\"vramtrack\" name=\"{}\" time=\"{:.3f}\">\n      "
      "<properties>\n",
      failure ? 1 : 0, error ? 1 : 0, seconds, name, seconds);
  for (const Tested& t : conclusion.tested) {
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
  return out + "    </testcase>\n  </testsuite>\n</testsuites>\n";
}

/// What is read while a program gives its memory back and ends is no iteration of it.
void drop_end(std::vector<double>& samples) {
  if (samples.size() < 8) return;
  std::vector<double> last(samples.end() - static_cast<std::ptrdiff_t>(samples.size() / 4), samples.end());
  const double usual = upper_median(std::span(last));
  while (!samples.empty() && samples.back() < 0.5 * usual) samples.pop_back();
}

/// The series that count: of the mark that was asked for, else of the one that the limit is said for ("2MiB/epoch"),
/// else of the one that was made most often.
std::vector<IterationSeries> chosen(const ProgramRun& run, std::string wanted, const std::string& limit) {
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

/// Leaves out writers with less than a tenth of the longest one's marks, such as a helper process that ended soon: too
/// few for any test, they would make it none at all. Returns how many.
std::size_t leave_out_short(std::vector<IterationSeries>& series) {
  std::size_t longest = 0;
  for (const IterationSeries& s : series) longest = std::max(longest, s.used_bytes.size());
  const auto is_short = [&](const IterationSeries& s) { return 10 * s.used_bytes.size() < longest; };
  const auto end = std::remove_if(series.begin(), series.end(), is_short);
  const auto left_out = static_cast<std::size_t>(series.end() - end);
  series.erase(end, series.end());
  return left_out;
}

Conclusion conclude(const TestOptions& options, ProgramRun run, const gate::GrowthLimits& limits) {
  Conclusion c;
  if (run.interrupted) {
    c.words = "interrupted";
    return c;
  }
  std::vector<IterationSeries> series = chosen(run, options.mark, options.limit);
  const bool sampled = series.empty() && options.mark.empty();
  if (sampled && !run.samples.empty()) {
    drop_end(run.samples);
    series.push_back({"sample", "", std::move(run.samples)});
  }
  const std::size_t left_out = leave_out_short(series);
  // Several series are several chances to be wrong.
  gate::GrowthLimits share = limits;
  share.error_rate = limits.error_rate / static_cast<double>(std::max<std::size_t>(1, series.size()));
  const Tested* worst = nullptr;
  for (IterationSeries& s : series) {
    gate::GrowthResult result = gate::test_growth(s.used_bytes, share);
    c.tested.push_back({std::move(s), std::move(result)});
  }
  const auto rank = [](const Tested& t) {
    return t.result.outcome == gate::Outcome::fails        ? 3
           : t.result.outcome == gate::Outcome::too_short  ? 2
           : t.result.outcome == gate::Outcome::warming_up ? 1
                                                           : 0;
  };
  for (const Tested& t : c.tested)
    if (worst == nullptr || rank(t) > rank(*worst)) worst = &t;

  if (worst == nullptr) {
    if (!options.mark.empty())
      c.words = fmt::format("the program made no mark '{}'", options.mark);
    else if (!run.not_measured.empty())
      c.words = run.not_measured;
    else
      c.words = "the program held no GPU memory that can be seen here, and made no marks (docs/leak-gate.md)";
  } else {
    const std::string unit = sampled
                                 ? fmt::format("sample of {}", format_duration(options.sample_interval_s.value_or(1.0)))
                                 : worst->series.name;
    c.key = worst->series.key;
    const bool alone = c.tested.size() == 1 && left_out == 0;
    if (alone) c.tested.front().series.key.clear();  // tells it from nobody, and its number differs from run to run
    const std::string who = worst->series.key.empty() ? "" : fmt::format(" (by {})", printable(worst->series.key));
    std::string because = worst->result.because;
    for (std::size_t at = 0; (at = because.find("/iteration", at)) != std::string::npos;)
      because.replace(at, 10, "/" + unit);
    c.words = fmt::format("GPU memory{}: {}", who, because);
    if (left_out > 0)
      c.words += fmt::format("; {} with less than a tenth of these iterations left out",
                             left_out == 1 ? "one writer" : fmt::format("{} writers", left_out));
    if (sampled) c.words += "; the program makes no marks, so its process tree's memory was tested by time";
    c.exit_code = worst->result.outcome == gate::Outcome::fails       ? kLeaks
                  : worst->result.outcome == gate::Outcome::too_short ? kNotTested
                                                                      : kPasses;
  }
  if (run.skipped_lines > 0) c.words += fmt::format("; {} lines on the pipe were no marks", run.skipped_lines);
  if (c.exit_code != kLeaks && run.exit_code.value_or(1) != 0) {
    c.exit_code = kProgramFailed;
    c.words = run.exit_code ? fmt::format("the program ended with {}; {}", *run.exit_code, c.words)
                            : fmt::format("the program was ended by signal {}; {}", run.signal, c.words);
  }
  return c;
}

int test(const TestOptions& options, const LayeredConfig& layers, Console& console) {
  const auto limit = gate::parse_growth_limit(options.limit);
  if (!limit) {
    console.error("--limit: " + limit.error().message);
    return kNotTested;
  }
  const gate::GrowthLimits limits{*limit, options.error_rate, gate::GrowthLimits{}.contaminated_blocks};
  const auto begin = std::chrono::steady_clock::now();
  // Made with the first look: a program that tells its bytes itself needs no GPU to be seen from here.
  std::unique_ptr<ProcessTreeMemory> memory;
  const auto used_bytes = [&](int root) -> Result<double> {
    if (!memory) memory = std::make_unique<ProcessTreeMemory>(layers.config().sources);
    return memory->used_bytes(static_cast<std::uint32_t>(root));
  };
  const EvidenceFolder evidence;
  auto run = run_gated(options.program, options.sample_interval_s.value_or(1.0), used_bytes, evidence.path());
  if (!run) {
    console.error(run.error().message);
    return kNotTested;
  }
  const Conclusion conclusion = conclude(options, std::move(*run), limits);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  const char* const word = conclusion.exit_code == kPasses  ? "passes"
                           : conclusion.exit_code == kLeaks ? "LEAKS"
                                                            : "not tested";
  std::vector<std::string> grown;
  if (conclusion.exit_code == kLeaks) grown = grown_words(read_grown_lines(evidence.path(), conclusion.key));
  console.warn(fmt::format("{}: {}", word, conclusion.words));
  for (const std::string& line : grown) console.warn(line);
  if (!options.junit.empty()) {
    std::ofstream out(options.junit, std::ios::binary);
    out << junit(options, conclusion, grown, took.count());
    out.close();
    if (!out) {
      console.error(fmt::format("cannot write {}; name another file with --junit", options.junit));
      return kNotTested;
    }
  }
  return conclusion.exit_code;
}

Runner declare(Arguments& arguments) {
  const auto options = std::make_shared<TestOptions>();
  arguments.operands("PROGRAM", "The program and its arguments, after '--'", text(options->program))
      .required()
      .program();
  arguments.option("--limit", "SIZE/ITER", "Growth per iteration that is allowed (default 0.2 MiB/iter)",
                   text(options->limit));
  arguments.option("--error-rate", "P", "Share of healthy programs that may fail, from 1e-6 to 0.05 (default 1e-4)",
                   number(options->error_rate, 1e-6, 0.05));
  arguments.option("--mark", "NAME", "Count this mark as the iteration (default: the most frequent mark)",
                   text(options->mark));
  arguments.option("--interval", "DURATION", "Time between two samples of a program that makes no marks (default 1s)",
                   duration(options->sample_interval_s));
  arguments.option("--junit", "FILE", "Write the result as JUnit XML", text(options->junit)).file();
  add_config(arguments, options->config);
  return configured<TestOptions>(options, test);
}

}  // namespace

const CommandInfo test_command{
    "test", "Run a program and fail when its GPU memory grows with every iteration",
    "Examples:\n"
    "  vramtrack test -- python train.py --steps 300          which calls vramtrack.mark(\"step\") in each step\n"
    "  vramtrack test --limit 1MiB/step --junit leak.xml -- ./bench\n"
    "Exit: 0 passes, 1 leaks, 2 could not be tested, 3 the program itself failed. See docs/leak-gate.md.",
    declare};

}  // namespace vramtrack::cli
