// signal-job: sends a signal to the batch script of the Slurm job, which is the usual way to request a checkpoint.
#include <fmt/format.h>

#include <array>

#include "act/policy.hpp"
#include "act/proof.hpp"
#include "act/slurm.hpp"
#include "core/printable.hpp"

namespace vramtrack::act {
namespace {

constexpr std::array kParameters = {
    Parameter{"signal", ParameterKind::signal, false, "The signal; default SIGUSR1"},
    Parameter{"steps", ParameterKind::flag, false, "Also send it to the job's steps, not only to its batch script"},
};

int signal_of(const StepArguments& arguments) {
  return static_cast<int>(arguments.number("signal", 10));
}

std::string words(const Subject& subject, const StepArguments& arguments) {
  return fmt::format("send {} to the Slurm job {} of {}", signal_name(signal_of(arguments)), printable(subject.job),
                     subject_words(subject));
}

Result<ActPlan> plan(const ActRequest& request) {
  if (const auto proven = prove(request); !proven) return fail(proven.error());
  const auto job = slurm_job(request.subject, request.tools);
  if (!job) return fail(job.error());
  return ActPlan{words(request.subject, request.arguments), {}};
}

Result<std::string> perform(const ActRequest& request, const ActPlan& /*plan*/) {
  if (const auto proven = prove(request); !proven) return fail(proven.error());
  const auto job = slurm_job(request.subject, request.tools);
  if (!job) return fail(job.error());
  const Status sent = slurm_signal(*job, signal_of(request.arguments), request.arguments.flag("steps"), request.tools);
  if (!sent) return fail(sent.error());
  return fmt::format("{} was sent to job {}", signal_name(signal_of(request.arguments)), job->id);
}

}  // namespace

extern const ActionInfo signal_job_action;
const ActionInfo signal_job_action{
    .name = "signal-job",
    .help = "Send a signal to the batch script of the Slurm job",
    .memory = "stays in use",
    .parameters = kParameters,
    .traits = {.needs_process = true, .needs_running = true, .asks_to_save = true},
    .words = words,
    .plan = plan,
    .perform = perform,
};

}  // namespace vramtrack::act
