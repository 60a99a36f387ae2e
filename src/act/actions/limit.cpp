// limit: sets the probe's memory limit for a process that runs under 'vramtrack run'.
#include <fmt/format.h>

#include <array>

#include "act/proof.hpp"
#include "core/format.hpp"
#include "core/option.hpp"

namespace vramtrack::act {
namespace {

constexpr std::array kParameters = {
    Parameter{"size", ParameterKind::size, false, "The limit on each device; default: what the process holds now", 1,
              1e15},
};

std::uint64_t limit_of(const Subject& subject, const StepArguments& arguments) {
  return static_cast<std::uint64_t>(arguments.number("size", static_cast<double>(subject.used_bytes)));
}

std::string words(const Subject& subject, const StepArguments& arguments) {
  return fmt::format("limit the GPU memory of {} to {}", subject_words(subject),
                     format_bytes(static_cast<double>(limit_of(subject, arguments))));
}

/// The number after `name=` in "ok limit=1 soft-limit=2"; empty if there is none.
std::string field_of(const std::string& answer, const std::string& name) {
  const std::size_t at = answer.find(' ' + name + '=');
  if (at == std::string::npos) return {};
  const std::size_t begin = at + name.size() + 2;
  return answer.substr(begin, answer.find_first_of(" \n", begin) - begin);
}

Result<std::string> ask(const ActRequest& request, const std::string& line) {
  if (!request.tools.ask_run) return fail("this vramtrack cannot reach the runs of 'vramtrack run'");
  return request.tools.ask_run(request.subject.process.pid, line);
}

Result<ActPlan> plan(const ActRequest& request) {
  if (const auto held = hold(request); !held) return fail(held.error());
  const auto status = ask(request, "status");
  if (!status) return fail(status.error());
  const std::string before = field_of(*status, "limit");
  const std::uint64_t limit = limit_of(request.subject, request.arguments);
  if (limit == 0) return fail("how much the process holds is not known: give the step a 'size'");
  return ActPlan{words(request.subject, request.arguments), fmt::format("{}", before.empty() ? "0" : before)};
}

Result<std::string> perform(const ActRequest& request, const ActPlan& /*plan*/) {
  const auto held = hold(request);
  if (!held) return fail(held.error());
  const auto answer = ask(request, fmt::format("limit {}", limit_of(request.subject, request.arguments)));
  if (!answer) return fail(answer.error());
  return "allocations beyond the limit are refused from now on";
}

Result<std::string> undo(const ActRequest& request, const std::string& before) {
  if (!hold(request)) return "the process has ended";
  const auto answer = ask(request, "limit " + before);
  if (!answer) return fail(answer.error());
  return before == "0" ? "the limit was removed" : "the earlier limit was restored";
}

std::string by_hand(const Subject& subject, const std::string& before) {
  return fmt::format("vramtrack control {} {} {}", subject.process.pid, name_of(Option::limit), before);
}

}  // namespace

extern const ActionInfo limit_action;
const ActionInfo limit_action{
    .name = "limit",
    .help = "Refuse allocations beyond a limit, if the process runs under 'vramtrack run'",
    .memory = "stays in use and does not grow; the program gets an out-of-memory error, which it may catch",
    .parameters = kParameters,
    .traits = {.needs_process = true, .stops_growth = true, .is_repeatable = true},
    .words = words,
    .plan = plan,
    .perform = perform,
    .undo = undo,
    .state = "limited",
    .by_hand = by_hand,
};

}  // namespace vramtrack::act
