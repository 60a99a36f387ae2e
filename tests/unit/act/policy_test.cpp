#include "act/policy.hpp"

#include <gmock/gmock.h>

#include <csignal>

#include "subjects.hpp"

namespace vramtrack::act {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* kFull = R"([detection]
leak-prior = 0.2

[[policy]]
name = "training"
when.kind = "leak"
when.pattern = ["gradual_leak", "step-increase"]
when.severity = "warning"
when.confidence = 0.9
when.ends_within = "30min"
when.growth = "60MiB/min"
when.held_for = "1min"
when.user = "alice"
when.command = "train"
when.device = 0
when.labels = { framework = "PyTorch" }
deny.commands = ["debug"]
steps = [
  { do = "notify" },
  { do = "checkpoint", signal = "SIGUSR1", usually_takes = "120s" },
  { do = "throttle", cpu_percent = 10 },
  { do = "freeze" },
  { do = "terminate", after = "60s" },
  { do = "kill", after = "30s" },
  { do = "run", program = ["save.sh", "{pid}"] },
]
)";

std::string error_of(const std::string& toml) {
  const auto parsed = parse_policies(toml, "p.toml");
  return parsed ? std::string() : parsed.error().message;
}

std::string with_when(const std::string& when) {
  return "[[policy]]\nname = \"a\"\nwhen = { " + when + " }\nsteps = [{ do = \"notify\" }]\n";
}

std::string with_step(const std::string& step) {
  return "[[policy]]\nname = \"a\"\nsteps = [\n  { do = \"notify\" },\n  { " + step + " },\n]\n";
}

TEST(Policy, IsReadWithItsConditionsAndSteps) {
  const Policies policies = policies_of(kFull);
  ASSERT_EQ(policies.rules.size(), 1U);
  const Policy& policy = policies.rules.front();
  EXPECT_EQ(policy.name, "training");
  EXPECT_THAT(policy.when.patterns, ElementsAre(Pattern::gradual_leak, Pattern::step_increase));
  EXPECT_EQ(policy.when.ends_within_s, 1800);
  EXPECT_DOUBLE_EQ(policy.when.growth_bytes_per_s.value_or(0), 1024.0 * 1024);
  EXPECT_EQ(policy.when.held_for_s, 60);
  EXPECT_THAT(policy.when.devices, ElementsAre("0"));
  ASSERT_EQ(policy.steps.size(), 7U);
  EXPECT_EQ(policy.steps[1].arguments.number("signal", 0), SIGUSR1);
  EXPECT_EQ(policy.steps[1].usually_takes_s, 120);
  EXPECT_TRUE(policy.steps[1].stops_on_failure);
  EXPECT_EQ(policy.steps[2].arguments.number("cpu-percent", 0), 10);
  EXPECT_EQ(policy.steps[4].after_s, 60);
  EXPECT_EQ(policy.steps[4].line, 23U);
}

TEST(Policy, EachErrorNamesFileLineAndWhatWasExpected) {
  const std::pair<std::string, std::string> cases[] = {
      {with_when("kind = \"leek\""), "p.toml:3: 'kind' cannot be 'leek'; the nearest is 'leak'"},
      {with_when("severty = \"watch\""), "p.toml:3: unknown key 'severty' in 'when'; the nearest is 'severity'"},
      {with_when("confidence = 97"), "p.toml:3: 'confidence' must be a number from 0 to 1"},
      {with_when("ends_within = \"soon\""), "p.toml:3: 'ends-within' must be a duration"},
      {with_when("growth = \"10MiB\""), "p.toml:3: 'growth' must be a rate such as \"10MiB/min\""},
      {with_when("command = \"(\""), "p.toml:3: 'command': '(' is not a regular expression"},
      {with_step("do = \"terminat\""), "p.toml:5: unknown action 'terminat'; the nearest is 'terminate'"},
      {with_step("after = \"1s\""), "p.toml:5: a step needs an action"},
      {with_step("do = \"checkpoint\", signal = \"SIGFOO\""), "p.toml:5: 'signal' must be a signal such as"},
      {with_step("do = \"checkpoint\""), "p.toml:5: 'checkpoint' needs either 'signal' or 'program'"},
      {with_step("do = \"throttle\""), "p.toml:5: 'throttle' needs 'cpu-percent'"},
      {with_step("do = \"throttle\", cpu_percent = 0"), "p.toml:5: 'cpu-percent' must be from 1 to"},
      {with_step("do = \"kill\", afer = \"1s\""),
       "p.toml:5: unknown key 'afer' of the step 'kill'; the nearest is 'after'"},
      {"[[policy]]\nsteps = [{ do = \"notify\" }]\n", "p.toml:1: a policy needs a name"},
      {"[[policy]]\nname = \" \"\nsteps = [{ do = \"notify\" }]\n", "p.toml:1: a policy needs a name"},
      {"[[policy]]\nname = \"a\"\n", "p.toml:1: a policy needs steps"},
      {"[policy]\nname = \"a\"\n", "p.toml:1: policies are an array of tables; write [[policy]]"},
      {"[[policy]]\nname = \"a\"\nsteps = [{do=\"notify\"}]\n[[policy]]\nname = \"a\"\nsteps = [{do=\"notify\"}]\n",
       "p.toml:4: the policy on line 1 is also named 'a'"},
      {"[[policy\n", "p.toml:1: not valid TOML"},
  };
  for (const auto& [toml, message] : cases) EXPECT_THAT(error_of(toml), HasSubstr(message)) << toml;
}

TEST(Policy, EachConditionDecides) {
  const Subject subject = leaking();
  const std::pair<const char*, const char*> cases[] = {
      {"kind = \"stalled\"", "its kind is 'leak'"},
      {"pattern = \"sudden_spike\"", "its pattern is gradual_leak"},
      {"severity = \"critical\"", "its severity is warning, below critical"},
      {"confidence = 0.98", "its confidence is 97 %"},
      {"ends_within = \"10min\"", "memory lasts"},
      {"growth = \"1GiB/s\"", "it grows by"},
      {"held_for = \"2min\"", "its alert has been active for 90 s"},
      {"user = [\"bob\", \"root\"]", "its user is 'alice'"},
      {"command = \"^serve\"", "its command does not match /^serve/"},
      {"container = \".\"", "its container does not match"},
      {"job = \".\"", "its job does not match"},
      {"device = [\"1\", \"GPU-2\"]", "it is on another device"},
      {"labels = { framework = \"JAX\" }", "its label 'framework' does not match /JAX/"},
  };
  for (const auto& [when, why] : cases) {
    const Policies policies = policies_of(with_when(when));
    ASSERT_EQ(policies.rules.size(), 1U);
    EXPECT_THAT(why_not(policies.rules.front(), acting(), subject), HasSubstr(why)) << when;
  }
  for (const char* when :
       {"", "pattern = \"gradual-leak\"", "severity = \"warning\"", "confidence = 0.97", "ends_within = \"1000s\"",
        "held_for = 90", "user = \"*\"", "command = \"train\\\\.py\"", "device = 0", "device = \"GPU-1\""})
    EXPECT_EQ(why_not(policies_of(with_when(when)).rules.front(), acting(), subject), "") << when;
}

TEST(Policy, TheListsExclude) {
  const Subject subject = leaking();
  ActConfig config = acting();
  const Policies policies = policies_of(with_when(""));
  config.deny_users = {"alice"};
  EXPECT_THAT(why_not(policies.rules.front(), config, subject), HasSubstr("act.deny-users"));
  config.deny_users = {};
  config.deny_commands = {"train"};
  EXPECT_THAT(why_not(policies.rules.front(), config, subject), HasSubstr("act.deny-commands"));
  const auto listed = [&](const std::string& list) {
    return why_not(policies_of(with_when("") + list).rules.front(), acting(), subject);
  };
  EXPECT_THAT(listed("allow = { users = [\"bob\"] }\n"), HasSubstr("does not allow the user"));
  EXPECT_THAT(listed("deny = { commands = [\"python\"] }\n"), HasSubstr("denies its command"));
  EXPECT_EQ(listed("allow = { users = [\"alice\"], commands = [\"python\"] }\n"), "");
}

TEST(Policy, TheFirstThatMatchesCounts) {
  const Policies policies = policies_of(with_when("severity = \"critical\"") +
                                        "[[policy]]\nname = \"b\"\nsteps = [{ do = \"notify\" }]\n"
                                        "[[policy]]\nname = \"c\"\nsteps = [{ do = \"kill\" }]\n");
  const Policy* first = first_match(policies, acting(), leaking());
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(first->name, "b");
}

TEST(Policy, OthersProcessesAndRootsMustBeNamed) {
  const Policy unnamed = policies_of(with_when("")).rules.front();
  EXPECT_EQ(not_owned(unnamed, "alice", "alice"), "");
  EXPECT_THAT(not_owned(unnamed, "bob", "alice"), HasSubstr("a user that the policy does not name"));
  EXPECT_THAT(not_owned(unnamed, "root", "root"), HasSubstr("a user that the policy does not name"));
  EXPECT_THAT(not_owned(unnamed, "bob", "root"), HasSubstr("a user that the policy does not name"));
  const Policy named = policies_of(with_when("user = [\"bob\"]")).rules.front();
  EXPECT_EQ(not_owned(named, "bob", "root"), "");
  const Policy all = policies_of(with_when("user = \"*\"")).rules.front();
  EXPECT_EQ(not_owned(all, "bob", "root"), "");
  EXPECT_THAT(not_owned(all, "root", "root"), HasSubstr("a user that the policy does not name"));
}

TEST(Policy, AJobOrAPodMustBeNamed) {
  Subject subject = leaking();
  subject.job = "1234.0";
  EXPECT_THAT(not_named(policies_of(with_when("")).rules.front(), subject), HasSubstr("must name 'job'"));
  EXPECT_EQ(not_named(policies_of(with_when("job = \".\"")).rules.front(), subject), "");
}

TEST(Policy, WarnsOfWhatIsCorrectAndUnwise) {
  const Policies policies = policies_of(
      "[[policy]]\nname = \"a\"\nsteps = [\n{ do = \"terminate\" },\n{ do = \"kill\" },\n{ do = \"freeze\" }]\n");
  const auto warnings = policy_warnings(policies, ActConfig{});
  EXPECT_THAT(warnings, ::testing::IsSupersetOf({HasSubstr("p.toml:4: 'terminate' is the first step"),
                                                 HasSubstr("p.toml:5: 'kill' immediately follows the previous step"),
                                                 HasSubstr("p.toml:6: 'freeze' is the last step"),
                                                 HasSubstr("names no user"), HasSubstr("act.enabled is false")}));
}

TEST(Policy, IsExplainedWithWhatBecomesOfMemory) {
  const std::string text = explain(policies_of(kFull).rules.front());
  EXPECT_THAT(text, HasSubstr("a leak alert is active"));
  EXPECT_THAT(text, HasSubstr("memory may run out within 30 min"));
  EXPECT_THAT(text, HasSubstr("2. checkpoint, when memory may run out within 3 min: signal SIGUSR1\n"));
  EXPECT_THAT(text, HasSubstr("5. terminate, 60 s after the previous step"));
  for (const ActionInfo* info : actions()) {
    EXPECT_FALSE(info->memory.empty()) << info->name;
    EXPECT_NE(info->words, nullptr) << info->name;
    EXPECT_TRUE(info->plan != nullptr || info->undo == nullptr) << info->name;
    EXPECT_NE(info->perform, nullptr) << info->name;
    EXPECT_EQ(info->traits.counts_as_retry, info->workload != nullptr) << info->name;
    // A step undone before the next one must support that. Steps without a process (drain, cordon) are for the node.
    if (info->traits.needs_process) {
      EXPECT_EQ(info->traits.stops_growth, info->undo != nullptr) << info->name;
    }
  }
}

TEST(Policy, ASignalIsANameOrANumber) {
  EXPECT_EQ(parse_signal("SIGUSR1"), SIGUSR1);
  EXPECT_EQ(parse_signal("usr2"), SIGUSR2);
  EXPECT_EQ(parse_signal("15"), SIGTERM);
  EXPECT_EQ(parse_signal("0"), std::nullopt);
  EXPECT_EQ(parse_signal("65"), std::nullopt);
  EXPECT_EQ(parse_signal("SIGNOPE"), std::nullopt);
}

}  // namespace
}  // namespace vramtrack::act
