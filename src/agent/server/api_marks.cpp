// Marks from outside: points that a program comes to, told by whoever watches its work.
#include "agent/server/api_parts.hpp"
#include "core/printable.hpp"

namespace vramtrack::agent {

Response Api::marks(const Request& request, const ApiConfig& config) {
  if (request.method != "POST") return error(405, "method", "POST /api/v1/marks with a pid and a mark");
  const auto asked = asked_mark(request.body);
  if (!asked) return error(400, "bad_body", printable(asked.error().message));
  const auto snapshot = published_.latest();
  const auto process = snapshot ? process_of_client(*snapshot->view, asked->pid, request.pid_namespace.value_or(""),
                                                    [](const ProcessInfo& p) { return pid_namespace_of(p.pid); })
                                : std::nullopt;
  const Rights its = rights(request, config);
  const bool may = request.pid_namespace || its.change || (process && !its.user.empty() && process->user == its.user);
  // Whoever may not mark it does not learn whether it is there.
  if (!process || !may)
    return error(404, "no_process", "no process of yours with that pid holds memory of a GPU that the agent watches");
  Event mark;
  mark.time = now_();
  mark.kind = Event::Kind::mark;
  mark.pid = process->pid;
  mark.pid_start_ticks = process->start_ticks;
  mark.text = asked->text;
  if (!config.marks || !config.marks->put(std::move(mark)))
    return refused(
        503, "busy",
        "4096 marks have come since the last sample, and that is the most; mark every tenth step, or every hundredth");
  Response out;
  out.status = 204;
  out.body = std::make_shared<const std::string>();
  return out;
}

}  // namespace vramtrack::agent
