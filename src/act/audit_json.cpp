// The entries of the audit as JSON.
#include <fmt/format.h>

#include "act/audit.hpp"
#include "core/json.hpp"

namespace vramtrack::act {
namespace {

constexpr std::string_view kSchema = "vramtrack.act.v1";

std::int64_t ns(Timestamp time) {
  return time.time_since_epoch().count();
}

Json object_of(const AuditEntry& e) {
  Json out;
  out["schema"] = kSchema;
  out["event"] = e.event;
  out["time"] = iso8601(e.time);
  out["time_ns"] = ns(e.time);
  out["written_ns"] = ns(e.written);
  add_nonempty(out, "boot", e.boot);
  out["climb"] = e.climb;
  out["policy"] = e.policy;
  add_nonempty(out, "policy_text", e.policy_text);
  if (e.step) out["step"] = *e.step;
  add_nonempty(out, "action", e.action);
  add_nonempty(out, "text", e.text);
  add_nonempty(out, "undo", e.undo);
  add_nonempty(out, "workload", e.workload);
  out["dry_run"] = e.dry_run;
  if (e.is_for_people) out["for_people"] = true;
  add_nonempty(out, "reason", e.reason);
  if (e.claim)
    out["claim"] = {{"fingerprint", e.claim->fingerprint},
                    {"starts_at_ns", ns(e.claim->starts_at)},
                    {"first_seen_ns", ns(e.claim->first_seen)},
                    {"resolved", e.claim->is_resolved},
                    {"over", e.claim->is_over},
                    {"labels", e.claim->labels}};
  const Subject& s = e.subject;
  Json& process = out["process"];
  process["pid"] = s.process.pid;
  process["start_ticks"] = s.process.start_ticks;
  add_nonempty(process, "host", s.process.host);
  add_nonempty(process, "node", s.node);
  add_nonempty(process, "user", s.user);
  add_nonempty(process, "command", s.command);
  add_nonempty(process, "container", s.container);
  add_nonempty(process, "pod", s.pod);
  add_nonempty(process, "job", s.job);
  add_nonempty(process, "job_name", s.job_name);
  Json& device = out["device"];
  device["id"] = s.device_id;
  if (s.device_index) device["index"] = *s.device_index;
  add_nonempty(device, "name", s.device_name);
  Json& evidence = out["evidence"];
  evidence["kind"] = to_string(s.trouble);
  evidence["severity"] = to_string(s.severity);
  evidence["pattern"] = to_string(s.pattern);
  evidence["confidence"] = s.confidence;
  evidence["growth_bytes_per_s"] = s.growth_bytes_per_s.mid;
  if (s.ends_in_s) evidence["ends_in_s"] = {s.ends_in_s->low, s.ends_in_s->mid, s.ends_in_s->high};
  evidence["used_bytes"] = s.used_bytes;
  evidence["held_s"] = s.held_s;
  if (s.unattributed_bytes) evidence["unattributed_bytes"] = *s.unattributed_bytes;
  add_nonempty(evidence, "because", s.because);
  add_nonempty(evidence, "incident", s.incident);
  return out;
}

double number_in(const Json& in, const char* name) {
  const Json* const at = in.find(name);
  return at != nullptr && at->is_number() ? at->get<double>() : 0;
}

template <class T>
T whole_in(const Json& in, const char* name) {
  const Json* const at = in.find(name);
  if (at == nullptr || !at->is_number_integer()) return {};
  if (at->is_number_unsigned())
    return std::in_range<T>(at->get<std::uint64_t>()) ? static_cast<T>(at->get<std::uint64_t>()) : T{};
  return std::in_range<T>(at->get<std::int64_t>()) ? static_cast<T>(at->get<std::int64_t>()) : T{};
}

bool flag_in(const Json& in, const char* name) {
  const Json* const at = in.find(name);
  return at != nullptr && at->is_boolean() && at->get<bool>();
}

Timestamp time_in(const Json& in, const char* name) {
  return Timestamp{Duration{whole_in<std::int64_t>(in, name)}};
}

template <class E>
E word_in(const Json& in, const char* name, std::span<const std::string_view> words) {
  const std::string word = text_in(in, name);
  for (std::size_t i = 0; i < words.size(); ++i)
    if (words[i] == word) return static_cast<E>(i);
  return E{};
}

std::optional<Claim> claim_in(const Json& in) {
  const Json* const at = in.find("claim");
  if (at == nullptr || !at->is_object()) return std::nullopt;
  Claim claim;
  claim.fingerprint = text_in(*at, "fingerprint");
  claim.starts_at = time_in(*at, "starts_at_ns");
  claim.first_seen = time_in(*at, "first_seen_ns");
  claim.is_resolved = flag_in(*at, "resolved");
  claim.is_over = flag_in(*at, "over");
  if (const Json* const labels = at->find("labels"); labels != nullptr)
    for (const auto& [name, value] : labels->items())
      if (value.is_string()) claim.labels[name] = value.text();
  return claim;
}

Subject subject_in(const Json& in) {
  Subject s;
  const Json none = Json::object();
  const auto part = [&](const char* name) -> const Json& {
    const Json* const at = in.find(name);
    return at != nullptr ? *at : none;
  };
  const Json& process = part("process");
  s.process = {whole_in<std::uint32_t>(process, "pid"), whole_in<std::uint64_t>(process, "start_ticks"),
               text_in(process, "host")};
  s.node = text_in(process, "node");
  s.user = text_in(process, "user");
  s.command = text_in(process, "command");
  s.container = text_in(process, "container");
  s.pod = text_in(process, "pod");
  s.job = text_in(process, "job");
  s.job_name = text_in(process, "job_name");
  const Json& device = part("device");
  s.device_id = text_in(device, "id");
  if (device.find("index") != nullptr) s.device_index = whole_in<int>(device, "index");
  s.device_name = text_in(device, "name");
  const Json& evidence = part("evidence");
  s.trouble = word_in<Trouble>(evidence, "kind", kTroubleWords);
  s.severity = word_in<Severity>(evidence, "severity", words_of<Severity>());
  s.pattern = word_in<Pattern>(evidence, "pattern", words_of<Pattern>());
  s.confidence = number_in(evidence, "confidence");
  const double growth = number_in(evidence, "growth_bytes_per_s");
  s.growth_bytes_per_s = {growth, growth, growth};
  if (const Json* const at = evidence.find("ends_in_s"); at != nullptr && at->is_array() && at->size() == 3 &&
                                                         (*at)[0].is_number() && (*at)[1].is_number() &&
                                                         (*at)[2].is_number())
    s.ends_in_s = Interval{(*at)[0].get<double>(), (*at)[1].get<double>(), (*at)[2].get<double>()};
  s.used_bytes = whole_in<std::uint64_t>(evidence, "used_bytes");
  s.held_s = number_in(evidence, "held_s");
  if (evidence.find("unattributed_bytes") != nullptr) s.unattributed_bytes = number_in(evidence, "unattributed_bytes");
  s.because = text_in(evidence, "because");
  s.incident = text_in(evidence, "incident");
  return s;
}

}  // namespace

std::string audit_json(const AuditEntry& entry) {
  return json_text(object_of(entry));
}

std::string audit_list_json(const std::vector<AuditEntry>& entries) {
  Json list = Json::array();
  for (const AuditEntry& entry : entries) list.push_back(object_of(entry));
  return json_text(list);
}

Result<AuditEntry> parse_audit(std::string_view line) {
  const Json in = Json::parse(line).value_or(nullptr);
  if (!in.is_object()) return fail("the line is not a JSON object");
  if (text_in(in, "schema") != kSchema) return fail(fmt::format("its schema is not {}", kSchema));
  AuditEntry e;
  e.event = text_in(in, "event");
  e.climb = text_in(in, "climb");
  if (e.event.empty() || e.climb.empty()) return fail("it has no \"event\" or no \"climb\"");
  e.time = time_in(in, "time_ns");
  e.written = time_in(in, "written_ns");
  e.boot = text_in(in, "boot");
  e.policy = text_in(in, "policy");
  e.policy_text = text_in(in, "policy_text");
  if (in.find("step") != nullptr) e.step = whole_in<std::size_t>(in, "step");
  e.action = text_in(in, "action");
  e.text = text_in(in, "text");
  e.undo = text_in(in, "undo");
  e.workload = text_in(in, "workload");
  e.dry_run = flag_in(in, "dry_run");
  e.is_for_people = flag_in(in, "for_people");
  e.reason = text_in(in, "reason");
  e.claim = claim_in(in);
  e.subject = subject_in(in);
  return e;
}

}  // namespace vramtrack::act
