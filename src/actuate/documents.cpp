#include "actuate/documents.hpp"

#include <fmt/format.h>

#include "core/format.hpp"
#include "core/json.hpp"
#include "core/printable.hpp"
#include "report/view_json.hpp"

namespace vramtrack::actuate {
namespace {

constexpr std::string_view kSummarySchema = "vramtrack.actuate.v1";
constexpr std::size_t kLongestName = 200;
constexpr std::size_t kLongestReason = 1000;

Json time_or_null(const std::optional<Timestamp>& time) {
  return time ? Json(exact_time(*time)) : Json(nullptr);
}

Timestamp time_at(const Json& in, const char* name) {
  const auto time = parse_exact_time(in.get<std::string>(name));
  if (!time) throw std::invalid_argument(std::string(name) + " is not a time");
  return *time;
}

std::optional<Timestamp> time_if(const Json& in, const char* name) {
  return in.find(name) != nullptr && in.at(name).is_string() ? std::optional(time_at(in, name)) : std::nullopt;
}

Json breaker_json(const std::optional<act::Breaker>& breaker) {
  return breaker ? Json{{"since", exact_time(breaker->since)}, {"why", breaker->why}} : Json(nullptr);
}

std::optional<act::Breaker> breaker_in(const Json& in) {
  const Json* const breaker = in.find("breaker");
  if (breaker == nullptr || breaker->is_null()) return std::nullopt;
  return act::Breaker{time_at(*breaker, "since"), breaker->get<std::string>("why")};
}

using Phase = act::Climb::Phase;

/// Whether the claim has a subject.
bool is_bound(const act::Climb& one) {
  return one.phase != Phase::claimed && !one.subject.device_id.empty();
}

Json alert_json(const act::Climb& one) {
  const ProcessKey process = is_bound(one) ? one.subject.process : ProcessKey{};
  Json out;
  out["fingerprint"] = one.claim->fingerprint;
  out["starts_at"] = exact_time(one.claim->starts_at);
  out["labels"] = one.claim->labels;
  out["first_seen"] = exact_time(one.claim->first_seen);
  out["last_seen"] = exact_time(one.claim->last_seen);
  out["resolved"] = one.claim->is_resolved;
  out["subject"] = is_bound(one) ? act::subject_key(one.subject) : "";
  out["process"] = {{"host", process.host}, {"pid", process.pid}, {"start_ticks", process.start_ticks}};
  out["begun"] = one.phase != Phase::claimed;
  out["closed"] = one.phase == Phase::over;
  out["refusal"] = one.refusal;
  out["why"] = one.why;
  return out;
}

act::Climb alert_in(const Json& in) {
  act::Climb one;
  one.claim = act::Claim{in.get<std::string>("fingerprint"),
                         time_at(in, "starts_at"),
                         in.get<std::map<std::string, std::string>>("labels"),
                         time_at(in, "first_seen"),
                         time_at(in, "last_seen"),
                         in.get<bool>("resolved")};
  one.id = one.claim->id();
  const Json& process = in.at("process");
  one.subject.process.host = process.get<std::string>("host");
  one.subject.process.pid = process.get<std::uint32_t>("pid");
  one.subject.process.start_ticks = process.get<std::uint64_t>("start_ticks");
  one.phase = in.get<bool>("closed") ? Phase::over : in.get<bool>("begun") ? Phase::climbing : Phase::claimed;
  one.refusal = in.get<std::string>("refusal");
  one.why = in.get<std::string>("why");
  return one;
}

/// Applies `read` to an object with that schema; an exception becomes the error.
template <class T, class Read>
Result<T> parsed(std::string_view text, std::string_view schema, Read read) {
  const Json in = Json::parse(text).value_or(nullptr);
  if (!in.is_object()) return fail("it is not a JSON object");
  try {
    if (in.value("schema", "") != schema) return fail(fmt::format("its schema is not {}", schema));
    return read(in);
  } catch (const std::exception& e) {
    return fail(printable(e.what()));
  }
}

const char* phase_of(const act::Climb& one) {
  if (one.phase == Phase::over) return "closed";
  if (one.has_subject()) return "acting";
  return one.claim->is_resolved ? "resolved" : "open";
}

std::string label_of(const act::Climb& one, const char* name) {
  const auto at = one.claim->labels.find(name);
  return at == one.claim->labels.end() ? "?" : printable(at->second);
}

}  // namespace

std::string summary_json(const Summary& summary, std::size_t most) {
  Json out;
  out["schema"] = kSummarySchema;
  out["dry_run"] = summary.dry_run;
  out["policies"] = summary.policies;
  out["breaker"] = breaker_json(summary.breaker);
  out["nodes_acted_on"] = summary.nodes_acted_on;
  out["nodes_allowed"] = summary.nodes_allowed;
  out["climbing"] = summary.climbing;
  out["last_webhook"] = time_or_null(summary.last_webhook);
  out["cases"] = Json::array();
  for (std::size_t i = 0; i < summary.alerts_known.size() && i < most; ++i)
    out["cases"].push_back(alert_json(summary.alerts_known[i]));
  return json_text(out);
}

Result<Summary> parse_summary(std::string_view text) {
  return parsed<Summary>(text, kSummarySchema, [](const Json& in) {
    Summary out;
    out.dry_run = in.get<bool>("dry_run");
    out.policies = in.get<std::vector<std::string>>("policies");
    out.breaker = breaker_in(in);
    out.nodes_acted_on = in.get<std::size_t>("nodes_acted_on");
    out.nodes_allowed = in.get<std::int64_t>("nodes_allowed");
    out.climbing = in.get<std::size_t>("climbing");
    out.last_webhook = time_if(in, "last_webhook");
    for (const Json& one : in.at("cases").list()) out.alerts_known.push_back(alert_in(one));
    return out;
  });
}

std::string summary_words(const Summary& summary) {
  std::string out = fmt::format("{} with {} polic{}\n", summary.dry_run ? "dry run: nothing is done" : "acting",
                                summary.policies.size(), summary.policies.size() == 1 ? "y" : "ies");
  if (summary.breaker)
    out += fmt::format("circuit breaker: OPEN since {}: {}\n", format_moment(summary.breaker->since, false),
                       summary.breaker->why);
  else
    out += fmt::format("circuit breaker: closed; {} of {} nodes acted on\n", summary.nodes_acted_on,
                       summary.nodes_allowed);
  out += fmt::format("last webhook: {}\n",
                     summary.last_webhook ? format_moment(*summary.last_webhook, false) : "none yet");
  for (const act::Climb& one : summary.alerts_known) {
    const ProcessKey& process = one.subject.process;
    out +=
        fmt::format("{}  {:8}  {} {}{}{}{}\n", format_moment(one.claim->starts_at, false), phase_of(one),
                    label_of(one, "alertname"), process.host.empty() ? label_of(one, "Hostname") : process.host,
                    process.pid != 0 ? fmt::format(" pid {}", process.pid) : "", one.why.empty() ? "" : ": ", one.why);
  }
  return printable_lines(out);
}

Result<ResetRequest> parse_reset(std::string_view body) {
  const Json in = Json::parse(body).value_or(nullptr);
  if (!in.is_object()) return fail(R"(expected {"by": "NAME", "reason": "TEXT"})");
  ResetRequest out{text_in(in, "by"), text_in(in, "reason")};
  if (out.by.empty() || out.by.size() > kLongestName)
    return fail(fmt::format("'by' must name the person who closes the breaker, in at most {} bytes", kLongestName));
  if (out.reason.size() > kLongestReason) return fail(fmt::format("'reason' has more than {} bytes", kLongestReason));
  return out;
}

std::string reset_json(const ResetRequest& request) {
  return json_text(Json{{"by", request.by}, {"reason", request.reason}});
}

AgentVersion parse_version(std::string_view text) {
  const Json in = Json::parse(text).value_or(nullptr);
  if (!in.is_object()) return {};
  const std::string node = text_in(in, "node");
  return {node.empty() ? text_in(in, "host") : node, text_in(in, "simulated")};
}

}  // namespace vramtrack::actuate
