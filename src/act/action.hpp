// Actions: what a step of a policy can do. An action is one file src/act/actions/NAME.cpp that defines `const
// ActionInfo NAME_action`, and one line in actions.def. The ladder decides when to act; an action only acts.
//
//   plan()      inspects and verifies, changes nothing; returns what exactly would be done, and what undoing it needs
//   (journal)   the plan is written down and synced
//   perform()   carries it out
//   (journal)   the result is written down and synced too
//   undo()      reverts it, using the plan: in this run of the program or in the next one
//
// An action keeps no state between its calls: after a crash, another run continues from the journal.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "act/note.hpp"
#include "act/subject.hpp"
#include "core/result.hpp"

namespace vramtrack::act {

/// The type of a step's parameter, in the policy file and in C++.
enum class ParameterKind : std::uint8_t {
  text,      ///< a string                             std::string
  words,     ///< an array of strings, at least one    std::vector<std::string>
  duration,  ///< "60s", or a number of seconds        double, seconds, >= 0
  number,    ///< a number                             double
  size,      ///< "24GiB"                              double, bytes
  signal,    ///< "SIGUSR1", "USR1" or its number      double, its number
  flag,      ///< true or false                        bool
};

struct Parameter {
  std::string_view name;  ///< as in the policy file, with dashes
  ParameterKind kind = ParameterKind::text;
  bool is_required = false;
  std::string_view help;  ///< one sentence
  double min = 0;         ///< for numbers, sizes and durations; min == max: any non-negative value
  double max = 0;
};

using ArgumentValue = std::variant<bool, double, std::string, std::vector<std::string>>;

/// The parameters of one step, as the policy gives them, each already checked against its Parameter.
class StepArguments {
 public:
  void set(std::string name, ArgumentValue value) { values_[std::move(name)] = std::move(value); }
  [[nodiscard]] bool has(const std::string& name) const { return values_.contains(name); }
  /// The value given, or `otherwise`. REQUIRES: the parameter's kind has that type.
  [[nodiscard]] std::string text(const std::string& name, std::string otherwise = {}) const;
  [[nodiscard]] std::vector<std::string> words(const std::string& name) const;
  [[nodiscard]] double number(const std::string& name, double otherwise) const;  ///< also for durations, sizes, signals
  [[nodiscard]] bool flag(const std::string& name, bool otherwise = false) const;
  /// "signal SIGUSR1, timeout 60 s, program save.sh now"; empty if nothing was given.
  [[nodiscard]] std::string words_for_people(std::span<const Parameter> parameters) const;
  friend bool operator==(const StepArguments&, const StepArguments&) = default;

 private:
  std::map<std::string, ArgumentValue> values_;
};

struct KubernetesAnswer;  // act/kubernetes.hpp

/// The address of the Kubernetes API, and the credentials for it. The defaults are those of a pod.
struct KubernetesAccess {
  std::string server;  ///< "https://10.0.0.1:443"; empty: from KUBERNETES_SERVICE_HOST and _PORT in the environment
  std::string folder = "/var/run/secrets/kubernetes.io/serviceaccount";  ///< contains `token` and `ca.crt`
  /// Called instead of a server, for tests. Empty: requests go over HTTPS.
  std::function<Result<KubernetesAnswer>(const std::string& method, const std::string& path)> ask = {};
};

/// The interface of actions to the outside world. Tests provide their own; all fields are set before the first act.
struct Tools {
  std::string proc_root = "/proc";
  std::string cgroup_root = "/sys/fs/cgroup";
  double timeout_s = 60;  ///< for a program, if the step sets none
  std::string node;       ///< this machine's name in its scheduler
  /// Verifies a subject on another machine (its `node` is set) as hold() does on this one; returns its process in its
  /// current state. Empty: subjects on other machines cannot be acted on.
  std::function<Result<ProcessInfo>(const Subject& subject)> prove;
  /// Runs a program without a shell, argv[0] looked up in PATH, for at most timeout_s. Returns what it wrote to
  /// standard output (at most 64 KiB) if its exit status is 0. Errors name the program and its last output.
  std::function<Result<std::string>(const std::vector<std::string>& argv, double timeout_s)> run;
  /// Sends one line to the run (vramtrack run) that the process belongs to, and returns the answer; empty: there is no
  /// way to reach a run. Errors: the process does not belong to a run.
  std::function<Result<std::string>(std::uint32_t pid, const std::string& line)> ask_run;
  KubernetesAccess kubernetes;
  /// Hands a message to the notifier; empty: nobody is notified.
  std::function<void(Note)> notify;
};

/// One step for one subject.
struct ActRequest {
  const Subject& subject;  ///< in its state at the tick that made the step due
  const StepArguments& arguments;
  const Tools& tools;
  std::string policy;  ///< the rule's name
  std::string id;      ///< of this act: unique on this machine and unchanged by a crash
  Timestamp time;      ///< now, by the samples' clock
  /// Time since the first call of perform() for this act; 0: this is the first call.
  double tried_for_s = 0;
  /// perform() sets it along with its Error if something else prevents the act for now, so that it did nothing: it is
  /// called again with the same plan after this many seconds, and other acts continue meanwhile.
  mutable std::optional<double> again_in_s = std::nullopt;

  /// The subject's machine, by the name its scheduler uses.
  [[nodiscard]] const std::string& node() const { return subject.node.empty() ? tools.node : subject.node; }
};

struct ActPlan {
  std::string what;  ///< one exact line for people: "send SIGUSR1 to pid 4242 (python train.py, alice)"
  std::string undo;  ///< the data that undo() needs, in the action's own format; empty: there is nothing to undo
};

/// Properties of an action, used by the ladder, `policy check` and the documentation.
struct ActionTraits {
  bool needs_process = false;     ///< refused for a subject that is only a device
  bool ends_process = false;      ///< afterwards, the memory is watched until it has been freed
  bool needs_running = false;     ///< freezing and throttling are undone right after it
  bool stops_growth = false;      ///< while it lasts, an end of growth is not evidence against a leak
  bool is_repeatable = false;     ///< doing it twice has the same effect as once, so after a crash it is repeated
  bool counts_as_retry = false;   ///< restarts the work: limited by act.max-retries
  bool stops_on_failure = false;  ///< unless the step overrides it, a failure ends the ladder
  bool asks_to_save = false;      ///< the work may report that it has saved; then the next step is due at once
  bool is_free = false;           ///< changes nothing on the machine: not counted by act.max-acts-per-hour
};

/// The traits of an action that makes a scheduler end the process and restart its work elsewhere.
inline constexpr ActionTraits kStartsElsewhere{
    .needs_process = true, .ends_process = true, .needs_running = true, .is_repeatable = true, .counts_as_retry = true};

/// Functions are called on the runner's thread, one at a time; they may take as long as their own timeouts. They do not
/// throw. Errors state what was expected and the remedy; a failed step is recorded, and the ladder continues.
struct ActionInfo {
  std::string_view name;    ///< `do = "NAME"`
  std::string_view help;    ///< one sentence, without a full stop
  std::string_view memory;  ///< the effect on GPU memory, likewise
  std::span<const Parameter> parameters;
  ActionTraits traits;
  /// Describes the act without looking at the machine: "send SIGTERM to pid 4242 (python train.py, alice)".
  /// Pure.
  std::string (*words)(const Subject& subject, const StepArguments& arguments) = nullptr;
  /// nullptr: the plan is words(), for a process that hold() accepts.
  Result<ActPlan> (*plan)(const ActRequest& request) = nullptr;
  /// Returns one line that describes the act. REQUIRES: `plan` is from plan() for this act, perhaps in an earlier run.
  Result<std::string> (*perform)(const ActRequest& request, const ActPlan& plan) = nullptr;
  /// nullptr: cannot be undone. `undo` is from the plan. If perform() was never reached or has already been undone, the
  /// call changes nothing.
  Result<std::string> (*undo)(const ActRequest& request, const std::string& undo) = nullptr;
  /// For an action with undo(): the state it leaves the process or node in ("frozen"), and the command with which a
  /// person undoes it ("kill -CONT 4242"). Pure.
  std::string_view state = {};
  std::string (*by_hand)(const Subject& subject, const std::string& undo) = nullptr;
  /// Completes an act that an earlier run began and may not have finished, and returns what was done; nullopt: it was
  /// not begun, or the process concerned still runs as before. nullptr: calling perform() again has the same effect.
  /// May be called after the process has ended.
  Result<std::optional<std::string>> (*complete)(const ActRequest& request, const ActPlan& plan) = nullptr;
  /// The name of the restarted work, which stays the same after a restart: "slurm job 1234". Pure. nullptr if the
  /// traits do not count the action as a retry.
  std::string (*workload)(const Subject& subject, const StepArguments& arguments) = nullptr;
  /// The error in the combination of arguments: "needs 'signal' or 'program'"; empty if there is none. Pure; nullptr:
  /// every combination is valid.
  std::string (*check)(const StepArguments& arguments) = nullptr;
};

/// All actions in the order of actions.def; and the action with a name, or nullptr if there is none.
std::span<const ActionInfo* const> actions();
const ActionInfo* find_action(std::string_view name);

}  // namespace vramtrack::act
