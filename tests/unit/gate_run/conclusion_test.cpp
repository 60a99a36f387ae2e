#include "gate/run/conclusion.hpp"

#include <gmock/gmock.h>

#include "core/units.hpp"
#include "gate/run/junit.hpp"

namespace vramtrack::gate {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::StartsWith;

/// `iterations` of 1 GiB that grow by `leak_mib` each, slightly irregular like real ones.
std::vector<double> memory(std::size_t iterations, double leak_mib) {
  std::vector<double> used_bytes;
  for (std::size_t i = 0; i < iterations; ++i)
    used_bytes.push_back(kGiB + (leak_mib * static_cast<double>(i) + 0.01 * static_cast<double>(i * 7 % 5)) * kMiB);
  return used_bytes;
}

ProgramRun run_of(std::vector<IterationSeries> marks) {
  ProgramRun run;
  run.exit_code = 0;
  run.marks = std::move(marks);
  return run;
}

GateRules rules() {
  GateRules r;
  r.limits.limit_bytes_per_iteration = 0.2 * kMiB;
  r.limit_text = "0.2 MiB/iter";
  return r;
}

TEST(Conclusion, HealthyPassesAndTheUnitIsTheMark) {
  const Conclusion c = conclude(run_of({{"step", "", memory(400, 0)}}), rules());
  EXPECT_EQ(c.outcome, GateOutcome::passes);
  EXPECT_EQ(outcome_words(c.outcome), "passes");
  EXPECT_THAT(c.words, AllOf(StartsWith("GPU memory: grows "), HasSubstr("the limit is 0.20 MiB/step"),
                             Not(HasSubstr("/iteration"))));
}

TEST(Conclusion, ALeakFailsAndIsToldBeforeTheProgramsFailure) {
  ProgramRun run = run_of({{"step", "", memory(400, 0.5)}});
  run.exit_code = 7;
  const Conclusion c = conclude(run, rules());
  EXPECT_EQ(c.outcome, GateOutcome::leaks);
  EXPECT_EQ(outcome_words(c.outcome), "LEAKS");
  EXPECT_THAT(c.words, StartsWith("GPU memory: grows 0.50 MiB/step (at least "));
  ASSERT_THAT(c.tested, SizeIs(1));
  EXPECT_EQ(c.tested[0].result.outcome, Outcome::fails);
}

TEST(Conclusion, ProgramsFailureIsToldBeforeAPass) {
  ProgramRun run = run_of({{"step", "", memory(400, 0)}});
  run.exit_code = 7;
  const Conclusion failed = conclude(run, rules());
  EXPECT_EQ(failed.outcome, GateOutcome::program_failed);
  EXPECT_THAT(failed.words, StartsWith("the program ended with 7; GPU memory: "));
  run.exit_code.reset();
  run.signal = 9;
  EXPECT_THAT(conclude(run, rules()).words, StartsWith("the program was ended by signal 9; "));
  run.interrupted = true;
  EXPECT_EQ(conclude(run, rules()).outcome, GateOutcome::not_tested);
  EXPECT_EQ(conclude(run, rules()).words, "interrupted");
}

TEST(Conclusion, MarkIsTheOneAskedForOrOfTheLimitOrTheMostFrequent) {
  const ProgramRun run = run_of({{"epoch", "", memory(100, 5)}, {"step", "", memory(1000, 0)}});
  GateRules r = rules();
  EXPECT_EQ(conclude(run, r).tested[0].series.name, "step");
  r.limit_text = "2 MiB / epoch ";
  EXPECT_EQ(conclude(run, r).tested[0].series.name, "epoch");
  r.mark = "step";
  EXPECT_EQ(conclude(run, r).tested[0].series.name, "step");
  r.mark = "batch";
  const Conclusion none = conclude(run, r);
  EXPECT_EQ(none.outcome, GateOutcome::not_tested);
  EXPECT_EQ(none.words, "the program made no mark named 'batch'");
}

TEST(Conclusion, WorstWriterDecidesAndIsNamed) {
  const Conclusion c =
      conclude(run_of({{"step", "rank0", memory(400, 0)}, {"step", "rank1", memory(400, 0.5)}}), rules());
  EXPECT_EQ(c.outcome, GateOutcome::leaks);
  EXPECT_EQ(c.key, "rank1");
  EXPECT_THAT(c.words, AllOf(StartsWith("GPU memory (by rank1): "), HasSubstr("error rate 5e-05")))
      << "two writers share the error rate";
  const Conclusion alone = conclude(run_of({{"step", "pid77", memory(400, 0.5)}}), rules());
  EXPECT_EQ(alone.key, "pid77") << "its evidence is found by it";
  EXPECT_THAT(alone.words, Not(HasSubstr("pid77")));
}

TEST(Conclusion, WritersOfFewMarksDecideNothing) {
  const Conclusion c = conclude(
      run_of({{"step", "main", memory(400, 0)}, {"step", "a", memory(5, 9)}, {"step", "b", memory(39, 9)}}), rules());
  EXPECT_EQ(c.outcome, GateOutcome::passes);
  EXPECT_THAT(c.words, HasSubstr("; 2 writers with less than a tenth of these iterations left out"));
  EXPECT_THAT(conclude(run_of({{"step", "main", memory(400, 0)}, {"step", "a", memory(40, 9)}}), rules()).tested,
              SizeIs(2))
      << "a tenth is enough";
}

TEST(Conclusion, TooFewIterationsAreNoTest) {
  const Conclusion c = conclude(run_of({{"step", "", memory(30, 5)}}), rules());
  EXPECT_EQ(c.outcome, GateOutcome::not_tested);
  EXPECT_EQ(outcome_words(c.outcome), "not tested");
  EXPECT_THAT(c.words, HasSubstr("30 iterations"));
}

/// A cache of 5 MiB entries that is full after 300 of 400.
std::vector<double> filling() {
  std::vector<double> used_bytes = memory(400, 5);
  for (std::size_t i = 300; i < used_bytes.size(); ++i) used_bytes[i] = used_bytes[299];
  return used_bytes;
}

TEST(Conclusion, WhatIsNeitherShownNorExcludedIsInconclusive) {
  const Conclusion c = conclude(run_of({{"step", "", filling()}}), rules());
  EXPECT_EQ(c.outcome, GateOutcome::inconclusive);
  EXPECT_EQ(outcome_words(c.outcome), "inconclusive");
  EXPECT_THAT(c.words, HasSubstr("inconclusive after 400 iterations"));
  const Conclusion zeros = conclude(run_of({{"step", "", std::vector<double>(400, 0)}}), rules());
  EXPECT_EQ(zeros.outcome, GateOutcome::inconclusive);
  EXPECT_THAT(zeros.words, HasSubstr("nothing was measured"));

  const std::string skipped = junit_xml({"job"}, c, {}, 1.5);
  EXPECT_THAT(skipped, AllOf(HasSubstr("failures=\"0\" errors=\"0\" skipped=\"1\""),
                             HasSubstr("<skipped message=\"GPU memory: grows "), Not(HasSubstr("<failure"))));
  const std::string failed = junit_xml({"job"}, c, {}, 1.5, true);
  EXPECT_THAT(failed, AllOf(HasSubstr("failures=\"1\" errors=\"0\" skipped=\"0\""), HasSubstr("<failure message="),
                            Not(HasSubstr("<skipped"))));
}

TEST(Conclusion, WithoutMarksTheSamplesAreTestedButNotTheProgramsEnd) {
  ProgramRun run = run_of({});
  run.samples = memory(400, 0);
  for (int i = 0; i < 5; ++i) run.samples.push_back(0.1 * kGiB);  // it releases its memory
  GateRules r = rules();
  r.sample_interval_s = 0.5;
  const Conclusion c = conclude(run, r);
  EXPECT_EQ(c.outcome, GateOutcome::passes);
  ASSERT_THAT(c.tested, SizeIs(1));
  EXPECT_THAT(c.tested[0].series.used_bytes, SizeIs(400));
  EXPECT_THAT(c.words, AllOf(HasSubstr("/sample of 0.5s"), HasSubstr("; the program makes no marks")));
}

TEST(Conclusion, NothingToSeeSaysWhy) {
  ProgramRun run = run_of({});
  EXPECT_THAT(conclude(run, rules()).words, StartsWith("no GPU memory of the program is visible here"));
  run.not_measured = "no GPU memory can be read here";
  EXPECT_EQ(conclude(run, rules()).words, "no GPU memory can be read here");
  run.skipped_lines = 3;
  EXPECT_EQ(conclude(run, rules()).words, "no GPU memory can be read here; lines on the pipe that were not marks: 3");
}

TEST(Junit, ALeakIsAFailureWithItsLines) {
  const Conclusion c = conclude(run_of({{"a<b", "r&d", memory(400, 0.5)}, {"a<b", "x", memory(400, 0)}}), rules());
  const std::string xml =
      junit_xml({"python", "-c", "print('<&>\x1b')"}, c, {"grew most:", "  train.py:12 in <module>: +64 MiB"}, 1.5);
  EXPECT_THAT(xml, StartsWith("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n"));
  EXPECT_THAT(xml, AllOf(HasSubstr("failures=\"1\" errors=\"0\" skipped=\"0\" time=\"1.500\""),
                         HasSubstr("name=\"python -c print(&#39;&lt;&amp;&gt;?&#39;)\""),
                         HasSubstr("<property name=\"a&lt;b.r&amp;d.outcome\" value=\"fails\"/>"),
                         HasSubstr("<property name=\"a&lt;b.r&amp;d.iterations\" value=\"400\"/>"),
                         HasSubstr("<failure message=\"GPU memory (by r&amp;d): grows"),
                         HasSubstr("\n  train.py:12 in &lt;module&gt;: +64 MiB</failure>")));
}

TEST(Junit, WhatWasNotTestedIsAnErrorAndAPassIsNeither) {
  const std::string error = junit_xml({"true"}, conclude(run_of({}), rules()), {}, 0);
  EXPECT_THAT(error, AllOf(HasSubstr("failures=\"0\" errors=\"1\""),
                           HasSubstr("<error message=\"no GPU memory of the program")));
  const std::string passed = junit_xml({"true"}, conclude(run_of({{"step", "", memory(400, 0)}}), rules()), {}, 0);
  EXPECT_THAT(passed,
              AllOf(HasSubstr("failures=\"0\" errors=\"0\""), Not(HasSubstr("<error")), Not(HasSubstr("<failure"))));
  ProgramRun failed = run_of({});
  failed.exit_code = 1;
  EXPECT_THAT(junit_xml({"false"}, conclude(failed, rules()), {}, 0), HasSubstr("errors=\"1\""));
}

}  // namespace
}  // namespace vramtrack::gate
