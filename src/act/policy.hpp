// Policies: rules in the configuration file that define which steps are taken for which process (docs/policies.md).
// Pure: this file does not act.
//
//   [[policy]]
//   name = "training that leaks"
//   when = { kind = "leak", user = ["alice"], severity = "warning" }
//   steps = [ { do = "notify" }, { do = "checkpoint", signal = "SIGUSR1", usually-takes = "2min" },
//             { do = "terminate", after = "1min" } ]
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "act/action.hpp"
#include "act/subject.hpp"
#include "core/config.hpp"
#include "core/regex.hpp"
#include "core/result.hpp"

namespace vramtrack::act {

/// A regular expression with its source text.
struct Expression {
  std::string text;
  Regex regex;
};

/// The conditions on a subject. An empty condition is always true.
struct Conditions {
  Trouble trouble = Trouble::leak;
  std::vector<Pattern> patterns;
  Severity severity = Severity::watch;       ///< minimum
  double confidence = 0;                     ///< minimum, 0..1
  std::optional<double> ends_within_s;       ///< maximum of the low estimate of the time until memory runs out
  std::optional<double> growth_bytes_per_s;  ///< minimum of the middle estimate
  std::optional<double> held_for_s;          ///< minimum time the alert has been active
  std::vector<std::string> users;            ///< exact names; "*": everybody but root
  std::vector<Expression> commands;
  std::vector<Expression> containers;  ///< match the container's id, the pod's UID or the image
  std::vector<Expression> jobs;        ///< match the Slurm job's id or name
  std::vector<std::string> devices;    ///< indices, ids or names
  std::vector<std::pair<std::string, Expression>> labels;
};

/// One rung of a ladder.
struct Step {
  const ActionInfo* action = nullptr;
  StepArguments arguments;
  double after_s = 0;                     ///< minimum delay after the previous step was done
  std::optional<double> usually_takes_s;  ///< `usually-takes`: the step is timed to finish before memory runs out
  bool stops_on_failure = false;          ///< a failure ends the climb instead of continuing with the next step
  std::uint32_t line = 0;                 ///< in the file
};

struct Policy {
  std::string name;
  std::uint32_t line = 0;
  Conditions when;
  std::vector<std::string> deny_users;
  std::vector<Expression> deny_commands;
  std::vector<std::string> allow_users;    ///< empty: all; processes of the users named here may be acted on, too
  std::vector<Expression> allow_commands;  ///< empty: all
  std::vector<Step> steps;
  std::string text;  ///< its normalised content: two policies with the same text are equal
};

/// Everything that decides which acts are done.
struct Policies {
  std::string file;
  std::vector<Policy> rules;  ///< in the order of the file: the first match applies
};

/// The policies in `toml`; other tables in it are ignored. `file` is used only in messages. Errors name the file, the
/// line, what was expected and the nearest known word. Pure.
Result<Policies> parse_policies(std::string_view toml, std::string_view file);

/// Empty if `subject` meets all conditions of `policy` and neither its lists nor those of `config` exclude it;
/// otherwise the first condition that fails, in words: "its severity is watch, below critical". Pure.
std::string why_not(const Policy& policy, const ActConfig& config, const Subject& subject);
inline bool matches(const Policy& policy, const ActConfig& config, const Subject& subject) {
  return why_not(policy, config, subject).empty();
}
/// The first policy that matches; nullptr if none does.
const Policy* first_match(const Policies& policies, const ActConfig& config, const Subject& subject);

/// Empty if `policy` may act on processes of `user`: on vramtrack's own user always, unless that is root; on others and
/// root only if the policy names them. Otherwise the reason. `own_user`: the user that this program runs as.
std::string not_owned(const Policy& policy, const std::string& user, const std::string& own_user);
/// Empty if it may act on a process that a scheduler owns: only if its conditions name the job, the container or the
/// pod. Otherwise the reason.
std::string not_named(const Policy& policy, const Subject& subject);

/// How long after the previous step the step `at` of `policy` is due; for the first, after the start of the ladder. A
/// previous step that made a request gets the time that it usually takes.
double wait_s(const Policy& policy, std::size_t at);
/// How long before memory runs out the step `at` must be due, so that it and the later steps on the process are done by
/// then. A step that usually takes a time gets that time plus a quarter; steps after one that stops the growth have
/// unlimited time. nullopt: none of them acts on the process. Pure.
std::optional<double> needs_s(const Policy& policy, std::size_t at);

/// Warnings about valid policies: "kill follows at once: give it an 'after'". Pure.
std::vector<std::string> policy_warnings(const Policies& policies, const ActConfig& config);

/// Describes one policy in sentences: when it applies, what is then done, and how each step affects GPU memory.
std::string explain(const Policy& policy);

/// From a number, "SIGUSR1" or "usr1"; nullopt: not a signal. Next, the reverse: "SIGUSR1".
std::optional<int> parse_signal(std::string_view text);
std::string signal_name(int number);

}  // namespace vramtrack::act
