// restart: restarts the systemd unit or the container that the process runs in, or runs a program to do so.
#include <fmt/format.h>

#include <array>

#include "act/proof.hpp"
#include "core/printable.hpp"
#include "host/cgroup.hpp"

namespace vramtrack::act {
namespace {

constexpr std::array kParameters = {
    Parameter{"unit", ParameterKind::text, false, "The systemd unit, in which the process must run"},
    Parameter{"runtime", ParameterKind::text, false, "docker, podman or nerdctl: restarts the process's container"},
    Parameter{"program", ParameterKind::words, false, "A program, with its arguments, that restarts it"},
    kProgramTimeout,
};

std::string check(const StepArguments& arguments) {
  const int given = int{arguments.has("unit")} + int{arguments.has("runtime")} + int{arguments.has("program")};
  if (given != 1) return "needs one of 'unit', 'runtime' and 'program'";
  return {};
}

std::string workload(const Subject& subject, const StepArguments& arguments) {
  if (arguments.has("unit")) return "unit " + arguments.text("unit");
  if (arguments.has("runtime")) return "container " + subject.container;
  return fmt::format("'{}' of {}", subject.command, subject.user);
}

std::string words(const Subject& subject, const StepArguments& arguments) {
  if (arguments.has("unit"))
    return fmt::format("restart the unit {} of {}", printable(arguments.text("unit")), subject_words(subject));
  if (arguments.has("runtime"))
    return fmt::format("restart the container {} of {}", printable(subject.container.substr(0, 12)),
                       subject_words(subject));
  return fmt::format("run '{}' to restart {}", program_words(arguments.words("program")), subject_words(subject));
}

/// Whether systemd runs the process in that unit.
bool runs_in(const ActRequest& request, const std::string& unit) {
  const auto cgroup = cgroup_of(request.tools.proc_root, request.subject.process.pid);
  return cgroup && cgroup->unit == unit;
}

Result<std::vector<std::string>> argv_of(const ActRequest& request) {
  const StepArguments& arguments = request.arguments;
  if (arguments.has("unit")) {
    const std::string unit = arguments.text("unit");
    if (unit.empty() || unit.front() == '-' || !runs_in(request, unit))
      return fail(fmt::format("the process is not running in the unit {}: its cgroup does not name that unit",
                              printable(unit)));
    return std::vector<std::string>{"systemctl", "restart", unit};
  }
  if (arguments.has("runtime")) {
    if (request.subject.container.empty())
      return fail("the process is not running in a container that vramtrack knows");
    return std::vector<std::string>{arguments.text("runtime"), "restart", request.subject.container};
  }
  return filled_in(arguments.words("program"), request);
}

Result<ActPlan> plan(const ActRequest& request) {
  if (const auto held = hold(request); !held) return fail(held.error());
  const auto argv = argv_of(request);
  if (!argv) return fail(argv.error());
  return ActPlan{fmt::format("run '{}'", program_words(*argv)), {}};
}

Result<std::string> perform(const ActRequest& request, const ActPlan& /*plan*/) {
  const auto held = hold(request);
  if (!held) return fail(held.error());
  if (request.arguments.has("program")) return run_program_of(request);
  const auto argv = argv_of(request);
  if (!argv) return fail(argv.error());
  const auto ran = request.tools.run(*argv, request.arguments.number("timeout", request.tools.timeout_s));
  if (!ran) return fail(ran.error());
  return fmt::format("'{}' ended with exit status 0", program_words(*argv));
}

}  // namespace

extern const ActionInfo restart_action;
const ActionInfo restart_action{
    .name = "restart",
    .help = "Restart the systemd unit or the container of the process",
    .memory = "freed, and used again by the new process",
    .parameters = kParameters,
    .traits = {.needs_process = true, .ends_process = true, .needs_running = true, .counts_as_retry = true},
    .words = words,
    .plan = plan,
    .perform = perform,
    .workload = workload,
    .check = check,
};

}  // namespace vramtrack::act
