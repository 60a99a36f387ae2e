// notify: notifies the receivers of [notify], through the same queue as the alerts.
#include <fmt/format.h>

#include <array>

#include "act/action.hpp"
#include "core/printable.hpp"

namespace vramtrack::act {
namespace {

constexpr std::array kParameters = {
    Parameter{"text", ParameterKind::text, false, "Text to put before the evidence"},
};

std::string words(const Subject& subject, const StepArguments& /*arguments*/) {
  return "notify about " + subject_words(subject);
}

Result<std::string> perform(const ActRequest& request, const ActPlan& /*plan*/) {
  if (!request.tools.notify) return fail("nobody is notified: set notify.webhook, notify.slack or notify.exec");
  const Subject& subject = request.subject;
  Note note;
  note.act_id = request.id;
  note.key.device_id = subject.device_id;
  note.key.host = subject.process.host;
  note.key.pid = subject.process.pid;
  note.key.pid_start_ticks = subject.process.start_ticks;
  note.severity = subject.severity;
  note.time = request.time;
  const std::string own_text = request.arguments.text("text");
  note.text = fmt::format("POLICY {}: {}{}{}: {}", printable(request.policy), printable(own_text),
                          own_text.empty() ? "" : ": ", subject_words(subject), printable(subject.because));
  request.tools.notify(std::move(note));
  return "queued for the channels of [notify]";
}

}  // namespace

extern const ActionInfo notify_action;
const ActionInfo notify_action{
    .name = "notify",
    .help = "Notify the channels of [notify]",
    .memory = "stays in use",
    .parameters = kParameters,
    .traits = {.is_repeatable = true, .is_free = true},
    .words = words,
    .perform = perform,
};

}  // namespace vramtrack::act
