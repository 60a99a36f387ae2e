// Reports which processes run under `vramtrack run`, and which of their lines keep memory.
#include <set>

#include "agent/server/api_parts.hpp"
#include "core/number_text.hpp"
#include "report/sites.hpp"
#include "run/client/ask.hpp"

namespace vramtrack::agent {
namespace {

/// The names of a program's lines reveal as much as its command line, so the same clients may see both.
bool may_see(const Rights& rights, std::uint32_t uid) {
  return rights.all_commands || (!rights.user.empty() && rights.user == user_name(uid));
}

std::optional<std::uint32_t> pid_of(const std::string& text) {
  const auto pid = parse_number<std::uint32_t>(text);
  return pid && *pid > 0 && *pid <= INT32_MAX ? pid : std::nullopt;
}

/// The process's series with the most memory, if the view has its lines.
const SeriesView* traced_process(const View& view, std::uint32_t pid) {
  const SeriesView* found = nullptr;
  for (const SeriesView& s : view.series)
    if (s.key.pid == pid && s.key.host.empty() && !s.ended && !s.sites.empty() &&
        (found == nullptr || s.used_bytes > found->used_bytes))
      found = &s;
  return found;
}

Response not_probed() {
  return error(404, "not_probed",
               "this process is not running under 'vramtrack run', or its run belongs to a user whose runs this agent "
               "may not query; start it with 'vramtrack run -- PROGRAM', and the agent as the same user or as root, or "
               "set telemetry.enabled");
}

}  // namespace

std::vector<ProbedProcess> Api::probed(const Snapshot* snapshot, const Rights& rights, const ApiConfig& config) {
  std::vector<ProbedProcess> seen;
  if (config.sites) seen = config.sites->processes(snapshot != nullptr ? snapshot->view.get() : nullptr);
  if (config.sites && snapshot != nullptr) {
    std::set<std::uint32_t> known;
    for (const ProbedProcess& one : seen) known.insert(one.pid);
    for (const SeriesView& s : snapshot->view->series)
      if (s.key.pid != 0 && s.key.host.empty() && !s.ended && !s.sites.empty() && known.insert(s.key.pid).second)
        if (const auto uid = run::owner_of_process(s.key.pid)) seen.push_back({s.key.pid, *uid});
  }
  std::erase_if(seen, [&](const ProbedProcess& one) { return !may_see(rights, one.uid); });
  return seen;
}

Response Api::sites(const Request& request, const ApiConfig& config) {
  const Rights asker = rights(request, config);
  const auto pids = request.query.equal_range("pid");
  if (pids.first == pids.second) {
    const auto snapshot = published_.latest();
    return text_response(200, "application/json", probed_json(probed(snapshot.get(), asker, config)));
  }
  const auto pid = pid_of(pids.first->second);
  if (!pid) return error(400, "bad_pid", "'pid' must be the number of a process");
  if (!config.sites) return error(404, "not_probed", "the processes of a simulation are not run under 'vramtrack run'");
  const auto owner = run::owner_of_process(*pid);
  if (!owner) return error(404, "no_process", "there is no such process");
  if (!may_see(asker, *owner))
    return error(403, "not_yours",
                 "only the process's user, root, the agent's own user and bearers of its token may see its lines");
  const Quota::Taken asking = asking_.take(request.peer, 1, kAskingPatience);
  if (asking.answer != FairQuota::Answer::granted)
    return refused(asking.answer == FairQuota::Answer::full ? 503 : 429, "busy",
                   "runs are being queried for other requests; try again");
  const ProbedSites::Answer answer = config.sites->report(*pid, *owner);
  using State = ProbedSites::Answer::State;
  if (answer.state == State::not_probed) {
    // A run knows more about its program than an observer from outside.
    const auto snapshot = published_.latest();
    const SeriesView* const traced = snapshot != nullptr ? traced_process(*snapshot->view, *pid) : nullptr;
    return traced == nullptr ? not_probed() : text_response(200, "application/json", sites_json(sites_of(*traced)));
  }
  if (answer.state == State::busy)
    return refused(503, "busy", "the run is being queried for other requests; try again");
  if (answer.state == State::not_yet)
    return refused(503, "no_report", "the run has no report yet; it makes one within a few seconds of being asked");
  Response out;
  out.body = answer.text;
  return until_read(request, std::move(out));
}

}  // namespace vramtrack::agent
