// Marks from outside: points that a program reaches, reported by someone who watches it.
#include <fmt/format.h>

#include "agent/server/api_parts.hpp"
#include "core/printable.hpp"

namespace vramtrack::agent {

Response Api::marks(const Request& request, const ApiConfig& config) {
  if (request.method != "POST") return error(405, "method", "POST /api/v1/marks with a pid and a mark");
  const auto asked = asked_mark(request.body);
  if (!asked) return error(400, "bad_body", printable(asked.error().message));
  if (!config.marks) return error(404, "no_marks", "this agent takes no marks");
  const auto snapshot = published_.latest();
  const Rights its = rights(request, config);
  std::optional<ProcessInfo> process;
  for (const std::vector<std::uint32_t>& group : asked->pids) {
    for (const std::uint32_t pid : group) {
      if (!snapshot) break;
      const auto known = process_of_client(*snapshot->view, pid, request.pid_namespace.value_or(""),
                                           [](const ProcessInfo& p) { return pid_namespace_of(p.pid); });
      // A client that may not mark the process must not learn whether it exists.
      if (!known || !(request.pid_namespace || its.change || (!its.user.empty() && known->user == its.user))) continue;
      if (process)
        return error(409, "several",
                     fmt::format("several programs here hold memory on a GPU, such as pids {} and {}; pass only "
                                 "the pid you mean",
                                 request.pid_namespace ? process->ns_pid : process->pid, pid));
      process = known;
    }
    if (process) break;
  }
  if (!process)
    return error(404, "no_process", "you have no process with that pid that holds memory on a GPU the agent watches");
  Event mark;
  mark.time = now_();
  mark.kind = Event::Kind::mark;
  mark.pid = process->pid;
  mark.pid_start_ticks = process->start_ticks;
  mark.text = asked->text;
  if (!config.marks->put(std::move(mark)))
    return refused(503, "busy",
                   fmt::format("{} marks have come since the last sample, and that is the most; mark every tenth step, "
                               "or every hundredth",
                               MarkBox::kMost));
  Response out;
  out.status = 204;
  out.body = std::make_shared<const std::string>();
  return out;
}

}  // namespace vramtrack::agent
