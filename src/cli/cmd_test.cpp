// test: runs a program under the leak gate. Its marks are the iterations; without marks, the samples are.
#include <fmt/format.h>

#include <chrono>

#include "cli/commands.hpp"
#include "cli/shared_arguments.hpp"
#include "core/output_file.hpp"
#include "gate/growth_test.hpp"
#include "gate/run/conclusion.hpp"
#include "gate/run/evidence_files.hpp"
#include "gate/run/gated_program.hpp"
#include "gate/run/junit.hpp"
#include "gate/run/process_tree.hpp"

namespace vramtrack::cli {
using namespace vramtrack::gate;

namespace {

constexpr int kNotTested = 2;

struct TestOptions {
  ConfigRequest config;
  std::vector<std::string> program;  ///< the program and its arguments
  std::string limit = "0.2 MiB/iter";
  double error_rate = 1e-4;
  std::string mark;  ///< empty: the most frequent one
  std::optional<double> sample_interval_s;
  std::string junit;  ///< empty: none
  std::string junit_inconclusive = "skipped";
};

int exit_code(GateOutcome outcome) {
  switch (outcome) {
    case GateOutcome::passes:
      return 0;
    case GateOutcome::leaks:
      return 1;
    case GateOutcome::inconclusive:
    case GateOutcome::not_tested:
      break;
    case GateOutcome::program_failed:
      return 3;
  }
  return kNotTested;
}

int test(const TestOptions& options, const LayeredConfig& layers, Console& console) {
  const auto limit = parse_growth_limit(options.limit);
  if (!limit) {
    console.error("--limit: " + limit.error().message);
    return kNotTested;
  }
  const GrowthLimits limits{*limit, options.error_rate, GrowthLimits{}.contaminated_blocks};
  const auto begin = std::chrono::steady_clock::now();
  // Created on first use: for a program that reports its bytes itself, no GPU need be visible from here.
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
  const GateRules rules{limits, options.mark, options.limit, options.sample_interval_s.value_or(1.0)};
  const Conclusion conclusion = conclude(std::move(*run), rules);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  std::vector<std::string> grown;
  if (conclusion.outcome == GateOutcome::leaks) grown = grown_words(read_grown_lines(evidence.path(), conclusion.key));
  console.warn(fmt::format("{}: {}", outcome_words(conclusion.outcome), conclusion.words));
  for (const std::string& line : grown) console.warn(line);
  if (!options.junit.empty()) {
    const Status written = write_output(options.junit, junit_xml(options.program, conclusion, grown, took.count(),
                                                                 options.junit_inconclusive == "failure"));
    if (!written) {
      console.error(written.error().message);
      return kNotTested;
    }
  }
  return exit_code(conclusion.outcome);
}

Runner declare(Arguments& arguments) {
  const auto options = std::make_shared<TestOptions>();
  arguments.operands("PROGRAM", "The program and its arguments, after '--'", text(options->program))
      .required()
      .program();
  arguments.option("--limit", "SIZE/ITER", "Allowed growth per iteration (default 0.2 MiB/iter)", text(options->limit));
  arguments.option("--error-rate", "P", "Share of healthy programs that may fail, from 1e-6 to 0.05 (default 1e-4)",
                   number(options->error_rate, 1e-6, 0.05));
  arguments.option("--mark", "NAME", "Count this mark as the iteration (default: the most frequent mark)",
                   text(options->mark));
  arguments.option("--interval", "DURATION", "Time between two samples of a program that makes no marks (default 1s)",
                   duration(options->sample_interval_s));
  arguments.option("--junit", "FILE", "Write the result as JUnit XML", file_to_write(options->junit)).file();
  arguments.option("--junit-inconclusive", "skipped|failure",
                   "How JUnit XML shows an inconclusive run (default skipped)",
                   one_of({"skipped", "failure"}, options->junit_inconclusive));
  add_config(arguments, options->config);
  return configured<TestOptions>(options, test);
}

}  // namespace

const CommandInfo test_command{
    "test", "Run a program and fail when its GPU memory grows with every iteration",
    "Examples:\n"
    "  vramtrack test -- python train.py --steps 300          which calls vramtrack.mark(\"step\") in each step\n"
    "  vramtrack test --limit 1MiB/step --junit leak.xml -- ./bench\n"
    "Exit: 0 passes, 1 leaks, 2 inconclusive or not tested, 3 the program itself failed. See docs/leak-gate.md.",
    declare};

}  // namespace vramtrack::cli
