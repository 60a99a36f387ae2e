// checkpoint: asks the program to save its work, by a signal or by a program that the user supplies.
#include <fmt/format.h>

#include <array>

#include "act/policy.hpp"
#include "act/proof.hpp"

namespace vramtrack::act {
namespace {

constexpr std::array kParameters = {
    Parameter{"signal", ParameterKind::signal, false, "The signal on which the program saves its work"},
    Parameter{
        "program", ParameterKind::words, false,
        "A program and its arguments that make it save, instead of a signal; {pid}, {job} and others are replaced"},
    kProgramTimeout,
};

int signal_of(const StepArguments& arguments) {
  return static_cast<int>(arguments.number("signal", 0));
}

std::string check(const StepArguments& arguments) {
  const bool signal = arguments.has("signal");
  const bool program = arguments.has("program");
  if (signal == program) return "needs either 'signal' or 'program'";
  return {};
}

std::string words(const Subject& subject, const StepArguments& arguments) {
  if (arguments.has("program"))
    return fmt::format("run '{}' to make {} save its work", program_words(arguments.words("program")),
                       subject_words(subject));
  return fmt::format("send {} to {}, which then saves its work", signal_name(signal_of(arguments)),
                     subject_words(subject));
}

/// A program may reach a process on another machine; a signal cannot.
Status prove_for(const ActRequest& request, bool program) {
  if (program) {
    const auto proven = prove(request);
    return proven ? Status() : fail(proven.error());
  }
  const auto held = hold(request);
  return held ? Status() : fail(held.error());
}

Result<ActPlan> plan(const ActRequest& request) {
  const bool runs = request.arguments.has("program");
  if (const Status proven = prove_for(request, runs); !proven) return fail(proven.error());
  if (runs) return program_plan(request);
  return ActPlan{words(request.subject, request.arguments), {}};
}

Result<std::string> perform(const ActRequest& request, const ActPlan& /*plan*/) {
  if (request.arguments.has("program")) {
    if (const Status proven = prove_for(request, true); !proven) return fail(proven.error());
    return run_program_of(request);
  }
  return send_signal(request, signal_of(request.arguments));
}

}  // namespace

extern const ActionInfo checkpoint_action;
const ActionInfo checkpoint_action{
    .name = "checkpoint",
    .help = "Ask the program to save its work",
    .memory = "stays in use",
    .parameters = kParameters,
    .traits = {.needs_process = true, .needs_running = true, .stops_on_failure = true, .asks_to_save = true},
    .words = words,
    .plan = plan,
    .perform = perform,
    .check = check,
};

}  // namespace vramtrack::act
