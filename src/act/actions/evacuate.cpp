// evacuate: moves the other Slurm jobs on the leak's node to other nodes; the leaking job stays.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>

#include "act/policy.hpp"
#include "act/proof.hpp"
#include "act/slurm.hpp"
#include "core/printable.hpp"

namespace vramtrack::act {
namespace {

constexpr double kRequeueTimeout_s = 120, kSave_s = 60, kMostJobs = 4, kSleepMargin_s = 10;

constexpr std::array kParameters = {
    Parameter{"users", ParameterKind::words, false, "Jobs of these users; required if no partitions are named"},
    Parameter{"partitions", ParameterKind::words, false, "Jobs in these partitions; required if no users are named"},
    Parameter{"signal", ParameterKind::signal, false,
              "This signal is sent to each batch script first, so that it saves its work"},
    Parameter{"wait", ParameterKind::duration, false, "How long a job has to save its work; default 60 s"},
    Parameter{"at-most", ParameterKind::number, false, "The maximum number of jobs that are moved; default 4", 1, 64},
    Parameter{"node", ParameterKind::text, false,
              "The node's name in Slurm, if it differs from the name of the machine"},
    Parameter{"timeout", ParameterKind::duration, false,
              "How long the processes of a job may take to end; default 120 s"},
};

std::string words(const Subject& subject, const StepArguments& arguments) {
  std::string which;
  if (arguments.has("users")) which += fmt::format(" of {}", fmt::join(arguments.words("users"), ", "));
  if (arguments.has("partitions"))
    which += fmt::format(" in partition {}", fmt::join(arguments.words("partitions"), ", "));
  return fmt::format("move at most {:.0f} other Slurm jobs{} away from {}", arguments.number("at-most", kMostJobs),
                     printable(which), subject_words(subject));
}

std::string workload(const Subject& subject, const StepArguments& /*arguments*/) {
  return subject.job.empty() ? fmt::format("neighbours of pid {}", subject.process.pid)
                             : "neighbours of slurm job " + job_number(subject.job);
}

std::string check(const StepArguments& arguments) {
  return arguments.has("users") || arguments.has("partitions")
             ? ""
             : "needs 'users' or 'partitions', to choose the jobs to move";
}

Result<std::vector<SlurmJob>> neighbours(const ActRequest& request) {
  if (const auto proven = prove(request); !proven) return fail(proven.error());
  Neighbours wanted;
  wanted.node = request.arguments.text("node", request.node());
  wanted.except = request.subject.job;
  wanted.users = request.arguments.words("users");
  wanted.partitions = request.arguments.words("partitions");
  auto jobs = slurm_neighbours(wanted, request.tools);
  if (!jobs) return fail(jobs.error());
  if (jobs->empty()) return fail(fmt::format("no other job that may be moved runs on node {}", printable(wanted.node)));
  const auto most = static_cast<std::size_t>(request.arguments.number("at-most", kMostJobs));
  if (jobs->size() > most) jobs->resize(most);
  return jobs;
}

std::string list_of(const std::vector<SlurmJob>& jobs) {
  std::string out;
  for (const SlurmJob& job : jobs) out += fmt::format("{}{}", out.empty() ? "" : ", ", job.id);
  return out;
}

Result<ActPlan> plan(const ActRequest& request) {
  const auto jobs = neighbours(request);
  if (!jobs) return fail(jobs.error());
  return ActPlan{fmt::format("{}: job {}", words(request.subject, request.arguments), list_of(*jobs)), {}};
}

/// Jobs that could not be asked are moved nevertheless, because the leak would destroy their unsaved work anyway. The
/// result names them.
std::string save(const std::vector<SlurmJob>& jobs, const ActRequest& request) {
  if (!request.arguments.has("signal")) return {};
  std::string not_asked;
  for (const SlurmJob& job : jobs)
    if (const Status sent =
            slurm_signal(job, static_cast<int>(request.arguments.number("signal", 0)), false, request.tools);
        !sent)
      not_asked += fmt::format("; job {} was not asked to save its work: {}", job.id, sent.error().message);
  // Waits by running a program, so that the wait ends when this program ends.
  const double wait_s = request.arguments.number("wait", kSave_s);
  (void)request.tools.run({"sleep", fmt::format("{:.3f}", wait_s)}, wait_s + kSleepMargin_s);
  return not_asked;
}

Result<std::string> perform(const ActRequest& request, const ActPlan& /*plan*/) {
  // The jobs in their current state: those that an earlier run moved no longer run here.
  const auto jobs = neighbours(request);
  if (!jobs) return fail(jobs.error());
  const std::string not_asked = save(*jobs, request);
  std::string moved, failed;
  for (const SlurmJob& job : *jobs) {
    const auto done =
        slurm_requeue(job, request.tools, false, true, request.arguments.number("timeout", kRequeueTimeout_s));
    std::string& list = done ? moved : failed;
    list += fmt::format("{}{}", list.empty() ? "" : "; ", done ? *done : done.error().message);
  }
  if (failed.empty()) return moved + not_asked;
  return fail(failed + (moved.empty() ? "" : "; " + moved) + not_asked);
}

}  // namespace

extern const ActionInfo evacuate_action;
const ActionInfo evacuate_action{
    .name = "evacuate",
    .help = "Move the other Slurm jobs of the node to other nodes, so that the leak takes none of them down",
    .memory = "stays in use by the leak; the memory of the moved jobs is freed here",
    .parameters = kParameters,
    .traits = {.needs_process = true, .is_repeatable = true, .counts_as_retry = true},
    .words = words,
    .plan = plan,
    .perform = perform,
    .workload = workload,
    .check = check,
};

}  // namespace vramtrack::act
