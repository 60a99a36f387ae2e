// run: runs a program that the user supplies, without a shell.
#include <fmt/format.h>

#include <array>

#include "act/proof.hpp"

namespace vramtrack::act {
namespace {

constexpr std::array kParameters = {
    Parameter{"program", ParameterKind::words, true,
              "The program and its arguments; {pid}, {user}, {device}, {gpu}, {job}, {container}, {pod}, "
              "{namespace}, {pod-name}, {node} and {policy} are replaced"},
    kProgramTimeout,
};

std::string words(const Subject& subject, const StepArguments& arguments) {
  return fmt::format("run '{}' about {}", program_words(arguments.words("program")), subject_words(subject));
}

/// The program identifies the process by its pid, so the pid must still belong to that process.
Status prove_pid(const ActRequest& request) {
  if (request.subject.process.pid == 0) return {};
  if (const auto proven = prove(request); !proven) return fail(proven.error());
  return {};
}

Result<ActPlan> plan(const ActRequest& request) {
  if (const Status proven = prove_pid(request); !proven) return fail(proven.error());
  return program_plan(request);
}

Result<std::string> perform(const ActRequest& request, const ActPlan& /*plan*/) {
  if (const Status proven = prove_pid(request); !proven) return fail(proven.error());
  return run_program_of(request);
}

}  // namespace

extern const ActionInfo run_action;
const ActionInfo run_action{
    .name = "run",
    .help = "Run a program, without a shell",
    .memory = "depends on the program",
    .parameters = kParameters,
    .traits = {},
    .words = words,
    .plan = plan,
    .perform = perform,
};

}  // namespace vramtrack::act
