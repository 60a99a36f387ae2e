// kill: sends SIGKILL through the pidfd of the process, after comparing its start time.
#include <csignal>

#include "act/proof.hpp"

namespace vramtrack::act {
namespace {

std::string words(const Subject& subject, const StepArguments& /*arguments*/) {
  return "send SIGKILL to " + subject_words(subject);
}

Result<std::string> perform(const ActRequest& request, const ActPlan& /*plan*/) {
  return send_signal(request, SIGKILL);
}

}  // namespace

extern const ActionInfo kill_action;
const ActionInfo kill_action{
    .name = "kill",
    .help = "End the process with SIGKILL",
    .memory = "freed by the driver; vramtrack checks that it is",
    .parameters = {},
    // Sending it twice has the same effect as once, and on the same process, because its start time is compared.
    .traits = {.needs_process = true, .ends_process = true, .needs_running = true, .is_repeatable = true},
    .words = words,
    .perform = perform,
};

}  // namespace vramtrack::act
