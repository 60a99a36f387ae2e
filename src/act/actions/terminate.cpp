// terminate: sends SIGTERM through the pidfd of the process, after comparing its start time.
#include <csignal>

#include "act/proof.hpp"

namespace vramtrack::act {
namespace {

std::string words(const Subject& subject, const StepArguments& /*arguments*/) {
  return "send SIGTERM to " + subject_words(subject);
}

Result<std::string> perform(const ActRequest& request, const ActPlan& /*plan*/) {
  return send_signal(request, SIGTERM);
}

}  // namespace

extern const ActionInfo terminate_action;
const ActionInfo terminate_action{
    .name = "terminate",
    .help = "Ask the process to end with SIGTERM",
    .memory = "freed when the process ends; vramtrack checks that it is",
    .parameters = {},
    .traits = {.needs_process = true, .ends_process = true, .needs_running = true},
    .words = words,
    .perform = perform,
};

}  // namespace vramtrack::act
