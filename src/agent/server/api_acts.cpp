// The activity of the policies: their ladders, the last acts, and the switch.
#include "agent/server/api_parts.hpp"
#include "core/json.hpp"

namespace vramtrack::agent {
namespace {

/// Only clients that may see a command line elsewhere may see its secrets here.
bool may_see(const Rights& rights, const act::Subject& subject) {
  return rights.all_commands || (!rights.user.empty() && rights.user == subject.user);
}

Json climb_json(const act::ActsState::Standing& climb, const Rights& rights) {
  Json out;
  out["id"] = climb.id;
  out["policy"] = climb.policy;
  out["phase"] = climb.phase;
  out["step"] = climb.step;
  out["steps"] = climb.steps;
  out["next"] = climb.next.empty() ? Json(nullptr) : Json(climb.next);
  out["began"] = iso8601(climb.began);
  out["dry_run"] = climb.dry_run;
  out["held"] = climb.held;
  out["pid"] = climb.subject.process.pid;
  out["user"] = climb.subject.user;
  out["command"] = may_see(rights, climb.subject) ? climb.subject.command : std::string();
  out["device"] = climb.subject.device_id;
  out["severity"] = to_string(climb.subject.severity);
  out["because"] = climb.subject.because;
  return out;
}

}  // namespace

std::string acts_json(const act::ActsState& state, const Rights& rights) {
  Json out;
  out["schema"] = "vramtrack.acts.v1";
  out["enabled"] = state.enabled;
  out["dry_run"] = state.dry_run;
  out["off"] = state.off;
  out["off_because"] = state.off ? Json(state.off_why) : Json(nullptr);
  out["policies"] = state.policies;
  out["climbs"] = Json::array();
  for (const auto& climb : state.climbs) out["climbs"].push_back(climb_json(climb, rights));
  std::vector<act::AuditEntry> acts = state.acts;
  for (act::AuditEntry& entry : acts)
    if (!may_see(rights, entry.subject)) entry.subject.command = entry.text = entry.undo = entry.workload = "";
  out["acts"] = Json::parse(act::audit_list_json(acts)).value_or(nullptr);
  return json_text(out);
}

Response Api::acts(const Request& request, const ApiConfig& config) {
  const bool is_switch = request.path.ends_with("/off");
  const bool changes = request.method == "POST" || request.method == "DELETE";
  if (is_switch != changes)
    return error(405, "method", "GET /api/v1/acts; POST /api/v1/acts/off switches acting off, DELETE switches it on");
  const Rights asker = rights(request, config);
  if (config.runner == nullptr) {
    if (changes) return error(404, "no_policies", "this agent has no policies, so nothing is ever done");
    return text_response(200, "application/json", acts_json({}, asker));
  }
  if (changes) {
    const std::string by = asker.user.empty() ? "by the API" : "by " + asker.user;
    if (const Status switched = config.runner->switch_off(request.method == "POST", by); !switched)
      return error(500, "off_file", switched.error().message);
  }
  return text_response(200, "application/json", acts_json(config.runner->state(), asker));
}

}  // namespace vramtrack::agent
