// evict: removes the pod from this node by Kubernetes' eviction API, respecting PodDisruptionBudgets and grace periods.
#include <fmt/format.h>

#include <array>

#include "act/kubernetes.hpp"
#include "act/proof.hpp"
#include "core/printable.hpp"

namespace vramtrack::act {
namespace {

constexpr double kUsualTimeout_s = 60;

constexpr std::array kParameters = {
    Parameter{"timeout", ParameterKind::duration, false,
              "How long to retry while a PodDisruptionBudget forbids it; default 60 s"},
};

std::string words(const Subject& subject, const StepArguments& /*arguments*/) {
  return fmt::format("evict the pod {} of {}", printable(subject.pod), subject_words(subject));
}

std::string workload(const Subject& subject, const StepArguments& /*arguments*/) {
  // A restarted pod has another UID, but the same command.
  return fmt::format("pod of '{}' of {}", subject.command, subject.user);
}

Result<KubernetesPod> evictable_pod(const ActRequest& request) {
  if (const auto proven = prove(request); !proven) return fail(proven.error());
  auto pod = pod_of(request);
  if (pod && !pod->is_controlled)
    return fail(fmt::format("the pod {}/{} has no controller: nothing would start it again", pod->space, pod->name));
  if (pod && pod->is_of_daemon_set)
    return fail(
        fmt::format("the pod {}/{} belongs to a DaemonSet: it would start on this node again", pod->space, pod->name));
  return pod;
}

Result<ActPlan> plan(const ActRequest& request) {
  const auto pod = evictable_pod(request);
  if (!pod) return fail(pod.error());
  return ActPlan{fmt::format("evict the pod {}/{} of {}", pod->space, pod->name, subject_words(request.subject)), {}};
}

Result<std::string> perform(const ActRequest& request, const ActPlan& /*plan*/) {
  const auto pod = evictable_pod(request);
  if (!pod) return fail(pod.error());
  std::optional<double> again_in_s;
  auto evicted = evict_pod(request.tools.kubernetes, *pod, again_in_s);
  if (evicted || !again_in_s) return evicted;
  const double timeout_s = request.arguments.number("timeout", kUsualTimeout_s);
  if (request.tried_for_s + *again_in_s < timeout_s)
    request.again_in_s = again_in_s;
  else
    evicted.error() = evicted.error().during(
        fmt::format("a PodDisruptionBudget forbids it, and still did after {:.3g} s", timeout_s));
  return evicted;
}

}  // namespace

extern const ActionInfo evict_action;
const ActionInfo evict_action{
    .name = "evict",
    .help = "Evict the Kubernetes pod, within its PodDisruptionBudget",
    .memory = "freed when the pod has ended; used again where the pod restarts",
    .parameters = kParameters,
    .traits = kStartsElsewhere,
    .words = words,
    .plan = plan,
    .perform = perform,
    .workload = workload,
};

}  // namespace vramtrack::act
