// cordon: Kubernetes places no new pods on this node until the evidence is gone or a person uncordons it.
#include <fmt/format.h>

#include "act/kubernetes.hpp"
#include "act/proof.hpp"
#include "core/printable.hpp"

namespace vramtrack::act {
namespace {

std::string words(const Subject& subject, const StepArguments& /*arguments*/) {
  return fmt::format("cordon {} because of {}",
                     subject.node.empty() ? "this Kubernetes node" : "the Kubernetes node " + printable(subject.node),
                     subject_words(subject));
}

Result<ActPlan> plan(const ActRequest& request) {
  if (request.node().empty()) return fail("the name of this node in Kubernetes is not known");
  const auto node = kubernetes_node(request.tools.kubernetes, request.node());
  if (!node) return fail(node.error());
  if (node->is_unschedulable && node->cordoned_by != request.id)
    return ActPlan{fmt::format("leave the node {} as it is: it is already cordoned", request.node()), {}};
  return ActPlan{words(request.subject, request.arguments), request.node() + '|' + request.id};
}

Result<std::string> perform(const ActRequest& request, const ActPlan& plan) {
  if (plan.undo.empty()) return "the node was cordoned already";
  const auto done =
      set_cordon(request.tools.kubernetes, request.node(), request.id, true,
                 fmt::format("{}: {}", subject_words(request.subject), request.subject.because), request.time);
  if (!done) return fail(done.error());
  if (!*done) return fmt::format("the node {} was left as it is: somebody else has cordoned it", request.node());
  return fmt::format("the node {} is cordoned", request.node());
}

Result<std::string> undo(const ActRequest& request, const std::string& undo) {
  const std::size_t bar = undo.find('|');
  if (bar == std::string::npos) return "nothing was cordoned";
  const std::string name = undo.substr(0, bar);
  const auto done =
      set_cordon(request.tools.kubernetes, name, undo.substr(bar + 1), false, "No GPU memory leak", request.time);
  if (!done) return fail(done.error());
  if (!*done) return fmt::format("the node {} was left as it is: others have changed it since", printable(name));
  return fmt::format("the node {} accepts pods again", printable(name));
}

std::string by_hand(const Subject& /*subject*/, const std::string& undo) {
  return "kubectl uncordon " + printable(undo.substr(0, undo.find('|')));
}

}  // namespace

extern const ActionInfo cordon_action;
const ActionInfo cordon_action{
    .name = "cordon",
    .help = "Cordon this node in Kubernetes: no new pod is placed here",
    .memory = "stays in use",
    .parameters = {},
    .traits = {.is_repeatable = true},
    .words = words,
    .plan = plan,
    .perform = perform,
    .undo = undo,
    .state = "cordoned",
    .by_hand = by_hand,
};

}  // namespace vramtrack::act
