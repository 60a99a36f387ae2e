// Actions: what a step of a policy can do. An action is one file src/act/actions/NAME.cpp that defines
// `const ActionInfo NAME_action`, and one line in actions.def. The ladder decides when; an action only does.
//
//   plan()      looks and proves, changes nothing: what exactly would be done, and what it takes to undo it
//   (journal)   the plan is written down and synced
//   perform()   does it
//   (journal)   so is the result
//   undo()      takes it back, from what the plan says: in this run of the program or in the next one
//
// An action keeps nothing between its calls: after a crash another run goes on from the journal.
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

/// What a parameter of a step holds, in the file and here.
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
  std::string_view name;  ///< as in the file, with dashes
  ParameterKind kind = ParameterKind::text;
  bool is_required = false;
  std::string_view help;  ///< one sentence
  double min = 0;         ///< of numbers, sizes and durations; min == max: any that is not negative
  double max = 0;
};

using ArgumentValue = std::variant<bool, double, std::string, std::vector<std::string>>;

/// The parameters of one step, as the policy gives them; each has been checked against its Parameter.
class StepArguments {
 public:
  void set(std::string name, ArgumentValue value) { values_[std::move(name)] = std::move(value); }
  [[nodiscard]] bool has(const std::string& name) const { return values_.contains(name); }
  /// What was given, or `otherwise`. REQUIRES: the parameter's kind is of that type.
  [[nodiscard]] std::string text(const std::string& name, std::string otherwise = {}) const;
  [[nodiscard]] std::vector<std::string> words(const std::string& name) const;
  [[nodiscard]] double number(const std::string& name, double otherwise) const;  ///< durations, sizes, signals, too
  [[nodiscard]] bool flag(const std::string& name, bool otherwise = false) const;
  /// "signal 10, program save.sh now"; empty where nothing was given.
  [[nodiscard]] std::string words_for_people() const;
  friend bool operator==(const StepArguments&, const StepArguments&) = default;

 private:
  std::map<std::string, ArgumentValue> values_;
};

struct KubernetesAnswer;  // act/kubernetes.hpp

/// Where the Kubernetes API is, and as whom it is asked. The defaults are those of a pod.
struct KubernetesAccess {
  std::string server;  ///< "https://10.0.0.1:443"; empty: KUBERNETES_SERVICE_HOST and _PORT of the environment
  std::string folder = "/var/run/secrets/kubernetes.io/serviceaccount";  ///< with `token` and `ca.crt`
  /// Asked instead of a server: for tests. Empty: over HTTPS.
  std::function<Result<KubernetesAnswer>(const std::string& method, const std::string& path)> ask = {};
};

/// What actions reach the world through. Tests give their own; the fields are set once, before the first act.
struct Tools {
  std::string proc_root = "/proc";
  std::string cgroup_root = "/sys/fs/cgroup";
  double timeout_s = 60;  ///< of a program, where a step does not say
  std::string node;       ///< this machine's name, as a scheduler knows it
  /// Proves a subject of another machine (its `node` is set) as hold() proves one of this: its process as it is now.
  /// Empty: none can be acted on.
  std::function<Result<ProcessInfo>(const Subject& subject)> prove;
  /// Runs a program without a shell, argv[0] looked up in PATH, for at most timeout_s: what it wrote to standard output
  /// (at most 64 KiB) when its exit status is 0. Errors name the program and the last that it said.
  std::function<Result<std::string>(const std::vector<std::string>& argv, double timeout_s)> run;
  /// Sends one line to the run (vramtrack run) that the process belongs to, and returns its answer; empty: no run can
  /// be asked. Errors: the process does not run under one.
  std::function<Result<std::string>(std::uint32_t pid, const std::string& line)> ask_run;
  KubernetesAccess kubernetes;
  /// Hands a message to the notifier; empty: nobody is notified.
  std::function<void(Note)> tell;
};

/// One step for one subject.
struct ActRequest {
  const Subject& subject;  ///< as of the tick that made the step due
  const StepArguments& arguments;
  const Tools& tools;
  std::string policy;  ///< the rule's name
  std::string id;      ///< of this act: unique on this machine, and the same after a crash
  Timestamp time;      ///< now, by the samples' clock
  /// Since perform() was first called for this act; 0: this is the first call.
  double tried_for_s = 0;
  /// Set by perform() beside its Error, where it did nothing because somebody else forbids it for now: it is called
  /// again with the same plan so many seconds later, and other acts go on meanwhile.
  mutable std::optional<double> again_in_s = std::nullopt;

  /// The machine of the subject, as its scheduler knows it.
  [[nodiscard]] const std::string& node() const { return subject.node.empty() ? tools.node : subject.node; }
};

struct ActPlan {
  std::string what;  ///< one line for people, exactly: "send SIGUSR1 to pid 4242 (python train.py, alice)"
  std::string undo;  ///< what undo() needs, in the action's own words; empty: there is nothing to undo
};

/// What an action is like. The ladder, `policy check` and the documentation go by it.
struct ActionTraits {
  bool needs_process = false;  ///< refused for a subject that is a device alone
  bool ends_process = false;   ///< afterwards the memory is watched until it is back
  bool needs_running = false;  ///< what was frozen or throttled is undone right after it
  bool stops_growth = false;   ///< while it lasts, growth that stops is no evidence against a leak
  bool is_repeatable = false;  ///< doing it twice is the same as once: so a crash in the midst is met by doing it again
  bool counts_as_retry = false;   ///< starts the work again: bounded by act.max-retries
  bool stops_on_failure = false;  ///< unless the step says otherwise, a failure ends the ladder
  bool asks_to_save = false;      ///< the work may tell that it has saved; then the next step does not wait longer
  bool is_free = false;           ///< changes nothing on the machine: not counted by act.max-acts-per-hour
};

/// Functions are called on the runner's thread, one at a time; they may take as long as their own timeouts. They throw
/// nothing. Errors say what was expected and what to do; a failed step is recorded, and the ladder goes on.
struct ActionInfo {
  std::string_view name;    ///< `do = "NAME"`
  std::string_view help;    ///< one sentence, without a full stop
  std::string_view memory;  ///< what becomes of the GPU memory, likewise
  std::span<const Parameter> parameters;
  ActionTraits traits;
  /// What is done, in words and without a look at the machine: "send SIGTERM to pid 4242 (python train.py, alice)".
  /// Pure.
  std::string (*words)(const Subject& subject, const StepArguments& arguments) = nullptr;
  Result<ActPlan> (*plan)(const ActRequest& request) = nullptr;
  /// Returns one line of what was done. REQUIRES: `plan` is what plan() gave for this act, perhaps in an earlier run.
  Result<std::string> (*perform)(const ActRequest& request, const ActPlan& plan) = nullptr;
  /// nullptr: cannot be undone. `undo` as in the plan. It may be called where perform() was never reached or has been
  /// undone already, and then leaves things as they are.
  Result<std::string> (*undo)(const ActRequest& request, const std::string& undo) = nullptr;
  /// Of an act that an earlier run began and may not have ended: what is left of it is done, and what was done is said;
  /// nullopt: it was not begun, or the process it was about still runs as it did. nullptr: perform() again is the same.
  /// It may be called where the process has ended.
  Result<std::optional<std::string>> (*complete)(const ActRequest& request, const ActPlan& plan) = nullptr;
  /// The work that is started again, the same after a restart: "slurm job 1234". Pure. nullptr where traits do not
  /// count it as a retry.
  std::string (*workload)(const Subject& subject, const StepArguments& arguments) = nullptr;
  /// What is wrong with the arguments together: "needs 'signal' or 'program'"; empty: nothing. Pure; nullptr: nothing
  /// ever is.
  std::string (*check)(const StepArguments& arguments) = nullptr;
};

/// The actions in the order of actions.def; by name, nullptr where there is none of it.
std::span<const ActionInfo* const> actions();
const ActionInfo* find_action(std::string_view name);

}  // namespace vramtrack::act
