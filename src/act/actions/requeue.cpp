// requeue: puts the Slurm job back into the queue, to run on another node.
#include <fmt/format.h>

#include <array>

#include "act/proof.hpp"
#include "act/slurm.hpp"
#include "core/printable.hpp"

namespace vramtrack::act {
namespace {

constexpr double kUsualTimeout_s = 120;

constexpr std::array kParameters = {
    Parameter{"hold", ParameterKind::flag, false, "Hold it until a person releases it"},
    Parameter{"same-node", ParameterKind::flag, false, "It may start on the same node again"},
    Parameter{"timeout", ParameterKind::duration, false, "How long its processes may take to end; default 120 s"},
};

std::string words(const Subject& subject, const StepArguments& arguments) {
  return fmt::format("requeue{} the Slurm job {} of {}", arguments.flag("hold") ? " and hold" : "",
                     printable(subject.job), subject_words(subject));
}

std::string workload(const Subject& subject, const StepArguments& /*arguments*/) {
  return "slurm job " + job_number(subject.job);
}

Result<SlurmJob> running_job(const ActRequest& request) {
  if (const auto proven = prove(request); !proven) return fail(proven.error());
  auto job = slurm_job(request.subject, request.tools);
  if (job && job->state != "RUNNING" && job->state != "SUSPENDED")
    return fail(fmt::format("job {} is not running: Slurm reports {}", job->id, printable(job->state)));
  return job;
}

Result<ActPlan> plan(const ActRequest& request) {
  const auto job = running_job(request);
  if (!job) return fail(job.error());
  return ActPlan{words(request.subject, request.arguments), {}};
}

Result<std::string> perform(const ActRequest& request, const ActPlan& /*plan*/) {
  const auto job = running_job(request);
  if (!job) return fail(job.error());
  return slurm_requeue(*job, request.tools, request.arguments.flag("hold"), !request.arguments.flag("same-node"),
                       request.arguments.number("timeout", kUsualTimeout_s));
}

Result<std::optional<std::string>> complete(const ActRequest& request, const ActPlan& /*plan*/) {
  const auto job = slurm_job(request.subject, request.tools);
  if (!job) return fail(job.error());
  if (job->state == "RUNNING" || job->state == "SUSPENDED") {
    if (prove(request)) return std::optional<std::string>();  // still the same run of the job
    return std::optional(fmt::format("job {} is running again", job->id));
  }
  const bool is_elsewhere = !request.arguments.flag("same-node");
  if (is_elsewhere && job->excluded_nodes.ends_with(request.node()))  // the last step of requeueing
    return std::optional(fmt::format("job {} had already been requeued, excluding {}", job->id, request.node()));
  auto done = slurm_after_requeue(*job, request.tools, request.arguments.flag("hold"),
                                  is_elsewhere ? request.node() : std::string(),
                                  request.arguments.number("timeout", kUsualTimeout_s));
  if (!done) return fail(done.error());
  return std::optional(std::move(*done));
}

}  // namespace

extern const ActionInfo requeue_action;
const ActionInfo requeue_action{
    .name = "requeue",
    .help = "Requeue the Slurm job, so that it runs on another node",
    .memory = "freed here, and used again where the job restarts",
    .parameters = kParameters,
    .traits = kStartsElsewhere,
    .words = words,
    .plan = plan,
    .perform = perform,
    .complete = complete,
    .workload = workload,
};

}  // namespace vramtrack::act
