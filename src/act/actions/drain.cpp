// drain: Slurm starts no new jobs on this node until the evidence is gone or a person resumes it.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "act/proof.hpp"
#include "act/slurm.hpp"
#include "core/printable.hpp"

namespace vramtrack::act {
namespace {

constexpr double kTimeout_s = 20;

constexpr std::array kParameters = {
    Parameter{"node", ParameterKind::text, false, "The node's name in Slurm; default: the name of this machine"},
};

std::string node_of(const ActRequest& request) {
  return request.arguments.text("node", request.node());
}

std::string words(const Subject& subject, const StepArguments& arguments) {
  const std::string node = arguments.text("node", subject.node);
  return fmt::format("drain {} in Slurm because of {}", node.empty() ? "this node" : "the node " + printable(node),
                     subject_words(subject));
}

/// Distinguishes our reason from a person's; the id links it to this act.
std::string mark(const ActRequest& request) {
  return "vramtrack " + printable(request.id) + ':';
}

std::string reason_of(const ActRequest& request) {
  const Subject& subject = request.subject;
  std::string reason =
      fmt::format("{} {} on GPU {}, policy {}", mark(request), to_string(subject.trouble),
                  subject.device_index ? std::to_string(*subject.device_index) : printable(subject.device_id),
                  printable(request.policy));
  if (subject.process.pid != 0) reason += fmt::format(", pid {}", subject.process.pid);
  if (!subject.job.empty()) reason += ", job " + printable(subject.job);
  std::replace(reason.begin(), reason.end(), '"', '\'');
  std::replace(reason.begin(), reason.end(), '|', '/');
  return reason;
}

Result<ActPlan> plan(const ActRequest& request) {
  const std::string node = node_of(request);
  if (node.empty()) return fail("the name of this node in Slurm is not known; set it with 'node'");
  const auto known = slurm_node(node, request.tools);
  if (!known) return fail(known.error());
  const bool is_ours = known->reason.starts_with(mark(request));
  if (known->is_drained() && !is_ours)
    return ActPlan{
        fmt::format("leave {} as it is: it is already drained ({})", printable(node), printable(known->reason)), {}};
  return ActPlan{words(request.subject, request.arguments), node + '|' + mark(request)};
}

Result<std::string> perform(const ActRequest& request, const ActPlan& plan) {
  if (plan.undo.empty()) return "the node was drained already";
  const std::string node = plan.undo.substr(0, plan.undo.find('|'));
  const auto drained = request.tools.run(
      {"scontrol", "update", "NodeName=" + node, "State=DRAIN", "Reason=" + reason_of(request)}, kTimeout_s);
  if (!drained) return fail(drained.error());
  return fmt::format("{} is drained", printable(node));
}

Result<std::string> undo(const ActRequest& request, const std::string& undo) {
  const std::size_t bar = undo.find('|');
  if (bar == std::string::npos) return "nothing was drained";
  const std::string node = undo.substr(0, bar);
  const auto known = slurm_node(node, request.tools);
  if (!known) return fail(known.error());
  if (!known->is_drained() || !known->reason.starts_with(undo.substr(bar + 1)))
    return fmt::format("{} was left as it is: others have changed it since", printable(node));
  const auto resumed = request.tools.run({"scontrol", "update", "NodeName=" + node, "State=RESUME"}, kTimeout_s);
  if (!resumed) return fail(resumed.error());
  return fmt::format("{} accepts jobs again", printable(node));
}

std::string by_hand(const Subject& /*subject*/, const std::string& undo) {
  return fmt::format("scontrol update NodeName={} State=RESUME", printable(undo.substr(0, undo.find('|'))));
}

}  // namespace

extern const ActionInfo drain_action;
const ActionInfo drain_action{
    .name = "drain",
    .help = "Drain this node in Slurm: no new job starts here",
    .memory = "stays in use",
    .parameters = kParameters,
    .traits = {.is_repeatable = true},
    .words = words,
    .plan = plan,
    .perform = perform,
    .undo = undo,
    .state = "drained",
    .by_hand = by_hand,
};

}  // namespace vramtrack::act
