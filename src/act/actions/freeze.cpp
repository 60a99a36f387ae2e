// freeze: stops the process through its own cgroup (v2, v1), or with SIGSTOP if it has none.
#include <fmt/format.h>
#include <unistd.h>

#include <csignal>

#include "act/cgroup_control.hpp"
#include "act/proof.hpp"
#include "core/printable.hpp"
#include "host/small_file.hpp"

namespace vramtrack::act {
namespace {

std::string words(const Subject& subject, const StepArguments& /*arguments*/) {
  return "freeze " + subject_words(subject);
}

/// The data for undo(): the method, and the cgroup's folder.
Result<ActPlan> plan(const ActRequest& request) {
  if (const auto held = hold(request); !held) return fail(held.error());
  const auto cgroup = own_cgroup(request, "freezer", "freezer.state", "cgroup.freeze");
  const std::string what = words(request.subject, request.arguments);
  if (!cgroup) return ActPlan{fmt::format("{} with SIGSTOP ({})", what, printable(cgroup.error().message)), "stop\n"};
  const std::string file = cgroup->folder + (cgroup->is_v2 ? "/cgroup.freeze" : "/freezer.state");
  const auto before = read_control(file);
  if (!before) return fail(before.error());
  if (*before == "1" || *before == "FROZEN") return fail("something else has already frozen it");
  return ActPlan{fmt::format("{}: write '{}' into {}", what, cgroup->is_v2 ? "1" : "FROZEN", printable(file)),
                 fmt::format("{}\n{}", cgroup->is_v2 ? "v2" : "v1", file)};
}

/// Follows the plan exactly, so that undo() matches it, in this run or in another.
Result<std::string> perform(const ActRequest& request, const ActPlan& plan) {
  const auto held = hold(request);
  if (!held) return fail(held.error());
  std::string_view rest = plan.undo;
  const std::string_view how = next_line(rest);
  const std::string file(rest);
  if (how == "stop") {
    if (const Status sent = held->send(SIGSTOP); !sent) return fail(sent.error());
    return "SIGSTOP was sent";
  }
  const std::string_view value = how == "v2" ? "1" : "FROZEN";
  if (const Status written = write_control(file, value); !written) return fail(written.error());
  return fmt::format("'{}' was written into {}", value, printable(file));
}

Result<std::string> undo(const ActRequest& request, const std::string& text) {
  std::string_view rest = text;
  const std::string_view how = next_line(rest);
  const std::string file(rest);
  if (how == "stop") {
    const auto held = hold(request);
    if (!held) return "the process has ended";
    if (const Status sent = held->send(SIGCONT); !sent) return fail(sent.error());
    return "SIGCONT was sent";
  }
  if (::access(file.c_str(), F_OK) != 0) return "the cgroup is gone";
  const std::string_view value = how == "v2" ? "0" : "THAWED";
  if (const Status written = write_control(file, value); !written) return fail(written.error());
  return fmt::format("'{}' was written into {}", value, printable(file));
}

std::string by_hand(const Subject& subject, const std::string& text) {
  std::string_view rest = text;
  const std::string_view how = next_line(rest);
  if (how == "stop") return fmt::format("kill -CONT {}", subject.process.pid);
  return fmt::format("echo {} > '{}'", how == "v2" ? "0" : "THAWED", printable(rest));
}

}  // namespace

extern const ActionInfo freeze_action;
const ActionInfo freeze_action{
    .name = "freeze",
    .help = "Pause the process, through its own cgroup or with SIGSTOP, until the next step",
    .memory = "stays in use and does not grow; queued kernels still finish",
    .parameters = {},
    .traits = {.needs_process = true, .stops_growth = true, .is_repeatable = true},
    .words = words,
    .plan = plan,
    .perform = perform,
    .undo = undo,
    .state = "frozen",
    .by_hand = by_hand,
};

}  // namespace vramtrack::act
